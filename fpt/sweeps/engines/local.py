"""The local engine, and the worker of every engine.

A worker lives only as long as who started it: it reads a pipe that the other holds open, and ends itself and its
kernel when that pipe closes, however the other came to its end. Run as a module, this file is the worker.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fpt.errors import SpecError
from fpt.files import home, write_json
from fpt.sweeps import engines, ledger
from fpt.sweeps.engines import FAILED, LOG, LOST, OWN_ERROR, SOURCE, Attempt, Failure, Watch
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.training.libraries import faster_libraries

PARTIAL = "notebook.partial.ipynb"
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # version 2: microseconds of processor time in a period, and the period
WORKERS = "FPT_WORKERS"  # read by fpt.training.memory
DRIVER_WAIT = 20  # seconds: a driver that hangs never answers


@dataclass(eq=False)
class Worker(Attempt):
    """An attempt with its process on this machine, on a slot that is one of `free` once it ended."""

    process: "subprocess.Popen[bytes]"
    slot: str
    free: list[str]
    _code: int | None = field(default=None, init=False)  # once its end was seen, which frees the slot once

    def poll(self) -> int | None:
        if self._code is None and (code := self.process.poll()) is not None:
            self._code = code
            self.hang_up()
            self.free.append(self.slot)
        return self._code

    def hang_up(self) -> None:
        """Close the pipe, which ends the worker and its kernel."""
        if self.process.stdin:
            self.process.stdin.close()

    def stop(self) -> None:
        """Hang up, and insist if the worker does not end soon."""
        self.hang_up()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run_local(
    specs: Sequence[SweepSpec], study: Path, threads: int | None = None, watch: Watch | None = None
) -> list[Failure]:
    """Run the sweeps into the folder of their study, as many at once as there are devices, else cores.

    `study` is relative to the working directory, which is the workspace. Returns the sweeps that failed; raises
    before any start as `to_do` does.
    """
    specs = engines.to_do(specs, study)
    slots, threads = free_slots(threads)
    beside = min(len(slots), len(specs))

    def launch(spec: SweepSpec, number: int) -> Worker | None:
        return start(spec, study, threads, slots, number, beside=beside) if slots else None

    return engines.schedule(launch, specs, watch)


def free_slots(threads: int | None) -> tuple[list[str], int]:
    """One slot per GPU, named by its index; without GPUs one unnamed slot for every `threads` cores."""
    if devices := _devices():
        return devices, threads or max(1, cores() // len(devices))
    threads = threads or 1
    return [""] * max(1, cores() // threads), threads


def cores() -> int:
    """Those that this process may use, within the quota of a container (`docker --cpus`)."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # without a quota it reads "max"
        quota, period = map(int, QUOTA.read_text(encoding="utf-8").split())
        own = min(own, max(1, quota // period))
    return own


def _devices() -> list[str]:
    """The GPUs this process may use, found without importing torch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name.strip() not in ("", "-1")]
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False, timeout=DRIVER_WAIT)
    except subprocess.TimeoutExpired:
        warnings.warn(
            f"nvidia-smi has not answered in {DRIVER_WAIT} s: sweeps run on the CPU. If the GPU works, name it: "
            "CUDA_VISIBLE_DEVICES=0",
            stacklevel=2,
        )
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # workers would wait for the same driver
        return []
    devices = [line for line in listed.stdout.splitlines() if line.startswith("GPU")]
    return [str(index) for index in range(len(devices))]


def start(
    spec: SweepSpec,
    study: Path,
    threads: int,
    slots: list[str],
    number: int = 1,
    beside: int = 1,
    root: Path | None = None,
) -> Worker:
    """A worker on one sweep, in the workspace `root` [the working directory], on the first of the free `slots`; one of
    `beside` that share the memory."""
    name, slot = study / spec.folder_name, slots.pop(0)
    folder = (root or Path()) / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FAILED).unlink(missing_ok=True)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "JUPYTER_PREFER_ENV_PATH": "1"} | faster_libraries()
    environment.setdefault("HOME", str(home()))  # Jupyter does without none
    environment["TORCHINDUCTOR_COMPILE_THREADS"] = str(threads)  # else as many processes as there are cores
    environment[WORKERS] = str(beside)  # of GPUs, too: without CUDA in torch, all compute in main memory
    environment |= {"CUDA_VISIBLE_DEVICES": slot} if slot else {}
    command = [sys.executable, "-m", "fpt.sweeps.engines.local", json.dumps(spec.parameters()), name.as_posix()]
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=root,
            start_new_session=True,  # Ctrl-C reaches the driver alone, which then ends its workers in order
        )
    return Worker(spec, folder, number, process=process, slot=slot, free=slots)


def main(parameters: dict[str, Any], folder: Path) -> int:
    """The worker: execute the notebook into `folder`, under its final name only once it is whole."""
    profile = tempfile.mkdtemp(prefix="fpt-ipython-")  # empty: start-up files of the user would define parameters
    threading.Thread(target=_end_with_driver, args=[profile], daemon=True).start()
    try:
        os.environ["IPYTHONDIR"] = profile
        os.environ.pop("PYTHONSTARTUP", None)  # IPython runs it as well
        return _work(parameters, folder)
    finally:
        shutil.rmtree(profile, ignore_errors=True)


def _work(parameters: dict[str, Any], folder: Path) -> int:
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    partial = folder / PARTIAL
    with ledger.hold(folder / ledger.NOTEBOOK_LOCK, resolve(parameters)):
        try:
            execute_notebook({**parameters, "folder": folder.as_posix()}, partial)
        except PapermillExecutionError:
            os.replace(partial, folder / FAILED)
            return OWN_ERROR
        except DeadKernelError:
            return LOST
        text = partial.read_text(encoding="utf-8")
        for root in (Path.cwd(), Path(__file__).parents[3]):  # warnings name their file
            if root.name:  # not the root of the disk
                text = re.sub(rf"(?<![\w./-]){re.escape(root.as_posix())}/", "", text)
        notebook = json.loads(text)
        notebook["metadata"]["papermill"] |= {
            "input_path": SOURCE.as_posix(),  # wherever this machine has it
            "output_path": (folder / ledger.NOTEBOOK).as_posix(),
        }
        write_json(folder / ledger.NOTEBOOK, notebook)
        partial.unlink()
    return 0


def execute_notebook(parameters: dict[str, Any], output: Path) -> None:
    """papermill on the sweep notebook, after the check that papermill leaves out."""
    import papermill

    source = engines.sweep_notebook().as_posix()
    known = papermill.inspect_notebook(source)
    if unknown_names := sorted(set(parameters) - set(known)):
        raise SpecError(f"{source} has no parameters {', '.join(unknown_names)}; it has {', '.join(known)}")
    from fpt.sweeps.engines.kernel import OwnPython

    # nbclient waits 4 s for late output, which a loaded machine misses; papermill makes that an error
    papermill.execute_notebook(
        source,
        output.as_posix(),
        parameters=parameters,
        progress_bar=False,
        iopub_timeout=60,
        kernel_manager_class=OwnPython,
    )


def _end_with_driver(profile: str) -> None:
    os.read(0, 1)  # returns when the driver closes the pipe, or dies
    try:  # whatever fails here, nobody outlives the driver: a kernel ends within a second of its worker
        import psutil

        with suppress(psutil.Error):
            for child in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    child.kill()
        shutil.rmtree(profile, ignore_errors=True)
    finally:
        os._exit(LOST)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), Path(sys.argv[2])))
