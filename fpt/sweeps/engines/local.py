"""Workers, and the local engine: every sweep in a fresh worker process that executes the sweep notebook by papermill.

A worker lives only as long as who started it: it reads a pipe that the other holds open, and ends itself and its
kernel when that pipe closes, however the other came to its end. Run as a module, this file is the worker.

An engine is a function (specs, study, threads, watch, ...) -> failures. It starts from `to_do`, gives each sweep to a
worker by `start` on some machine, and asks `settle` what follows from the worker's end: fpt/sweeps/engines/ray.py is
the other one, and tests/sweeps/test_engines.py is what both promise.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fpt import models
from fpt.errors import SpecError
from fpt.files import write_json
from fpt.sweeps import ledger
from fpt.sweeps.spec import SweepSpec

SOURCE = Path("notebooks/sweep.ipynb")
PARTIAL, FAILED, LOG = "notebook.partial.ipynb", "notebook.failed.ipynb", "worker.log"
OWN_ERROR, LOST = 1, 138  # exit codes of a worker; 138 is papermill's own for a dead kernel
RETRIES = 2  # of a lost worker; a sweep that fails by its own error is not tried again
POLL = 0.2  # seconds
# glibc gives big blocks back to the kernel at every free and faults them in again: 1.3 times slower, measured.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**32)}

WORKERS = "FPT_WORKERS"  # read by fpt.training.memory

Watch = Callable[[Sequence[SweepSpec], Sequence[SweepSpec]], None]  # (running, finished since the last call)


@dataclass(frozen=True)
class Failure:
    """A sweep that did not finish: why, and the file that tells more."""

    spec: SweepSpec
    reason: str
    evidence: Path


@dataclass
class Worker:
    """The process of one attempt at one sweep."""

    spec: SweepSpec
    folder: Path
    slot: str
    attempt: int
    process: "subprocess.Popen[bytes]"

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

    `study` is relative to the working directory, which is the workspace. Returns the sweeps that failed; the
    others go on meanwhile. Whatever ends this function ends its workers. Raises LockedError before any start
    if somebody else is at work in one of the folders.
    """
    waiting = [(spec, 1) for spec in to_do(specs, study)]
    slots, threads = _slots(threads)
    beside = min(len(slots), len(waiting))
    running: list[Worker] = []
    failures: list[Failure] = []
    try:
        while waiting or running:
            while waiting and slots:
                spec, attempt = waiting.pop(0)
                running.append(start(spec, study, threads, slots.pop(0), attempt, beside=beside))
            ended = [worker for worker in running if worker.process.poll() is not None]
            for worker in ended:
                running.remove(worker)
                worker.hang_up()
                slots.append(worker.slot)
                outcome = settle(worker.spec, worker.folder, worker.process.returncode, worker.attempt)
                if outcome == "again":
                    waiting.append((worker.spec, worker.attempt + 1))
                elif outcome:
                    failures.append(outcome)
            if watch:
                watch([worker.spec for worker in running], [worker.spec for worker in ended])
            time.sleep(POLL)
    finally:
        for worker in running:  # first all pipes, so that the workers end together
            worker.hang_up()
        for worker in running:
            worker.stop()
    return failures


def in_order(
    engine: Callable[..., list[Failure]],
    specs: Sequence[SweepSpec],
    study: Path,
    threads: int | None = None,
    watch: Watch | None = None,
) -> list[Failure]:
    """Run the sweeps by `engine`, after all others those that start from the weights which one of the others keeps."""
    first = [spec for spec in specs if spec.pretrained_by is None]
    failures = engine(first, study, threads, watch) if first else []
    ready = []
    for spec in specs:
        if spec.pretrained_by and (study / spec.pretrained_by / ledger.WEIGHTS).is_file():
            ready.append(spec)
        elif spec.pretrained_by:
            reason = f"it starts from the weights of {spec.pretrained_by}, which has not kept any"
            failures.append(Failure(spec, reason, study / spec.pretrained_by))
    return failures + (engine(ready, study, threads, watch) if ready else [])


def to_do(specs: Sequence[SweepSpec], study: Path) -> list[SweepSpec]:
    """The sweeps that are not complete, once it is sure that nobody is at work on any; see `run_local`."""
    if not SOURCE.is_file():
        raise SpecError(f"{SOURCE} is missing in the workspace {Path.cwd()}: it is what runs a sweep")
    for spec in specs:
        ledger.wait_until_free(study / spec.folder_name)
    specs = [spec for spec in specs if not ledger.sweep_state(spec, study).complete]  # another driver may have done it

    def groups(spec: SweepSpec) -> int:
        return len(models.trainable_groups(spec.trainable, spec.backbone, backbone_options=spec.backbone_options))

    # Longest first: what trains everything takes twice as long, and would keep the other cores waiting at the end.
    return sorted(specs, key=groups, reverse=True)


def _slots(threads: int | None) -> tuple[list[str], int]:
    """One slot per GPU, named by its index; without GPUs one unnamed slot for every `threads` cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if devices := _devices():
        return devices, threads or max(1, cores // len(devices))
    threads = threads or 1
    return [""] * max(1, cores // threads), threads


def _devices() -> list[str]:
    """The GPUs this process may use, found without importing torch."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name.strip() not in ("", "-1")]
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False, timeout=60)
    return [str(index) for index, _ in enumerate(line for line in listed.stdout.splitlines() if line.startswith("GPU"))]


def start(
    spec: SweepSpec,
    study: Path,
    threads: int,
    slot: str = "",
    attempt: int = 1,
    root: Path | None = None,
    beside: int = 1,
) -> Worker:
    """A worker on one sweep, in the workspace `root` [the working directory]; one of `beside` that share the memory."""
    name = study / spec.folder_name
    folder = (root or Path()) / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FAILED).unlink(missing_ok=True)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "JUPYTER_PREFER_ENV_PATH": "1"} | KEEP_MEMORY
    environment["TORCHINDUCTOR_COMPILE_THREADS"] = str(threads)  # else as many processes as there are cores
    environment |= {"CUDA_VISIBLE_DEVICES": slot} if slot else {WORKERS: str(beside)}
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
    return Worker(spec, folder, slot, attempt, process)


def settle(spec: SweepSpec, folder: Path, code: int, attempt: int) -> Failure | Literal["again"] | None:
    """What follows when a worker ended with `code`: nothing if the sweep is done, another attempt, or a failure."""
    log, failed = folder / LOG, folder / FAILED
    if code == 0 and ledger.read_result(folder, spec):
        log.unlink(missing_ok=True)
        return None
    if code < 0 or code == LOST:
        reason = f"its process was killed {attempt} times, most often for lack of memory"
        return "again" if attempt <= RETRIES else Failure(spec, reason, log)
    if failed.is_file() and (error := _notebook_error(failed)):
        return Failure(spec, error, failed)
    lines = log.read_text(errors="replace").strip().splitlines() or ["it ended without a word"]
    return Failure(spec, lines[-1], log)


def _notebook_error(path: Path) -> str | None:
    """`Name: message` of the exception that an executed notebook ends with."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                return f"{output['ename']}: {output['evalue']}"
    return None


def main(parameters: dict[str, Any], folder: Path) -> int:
    """The worker: execute the notebook into `folder`, under its final name only once it is whole."""
    threading.Thread(target=_end_with_driver, daemon=True).start()
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    from fpt.sweeps.spec import resolve

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
            text = text.replace(f"{root.as_posix()}/", "")
        notebook = json.loads(text)
        notebook["metadata"]["papermill"]["output_path"] = (folder / ledger.NOTEBOOK).as_posix()
        write_json(folder / ledger.NOTEBOOK, notebook)
        partial.unlink()
    return 0


def execute_notebook(parameters: dict[str, Any], output: Path) -> None:
    """papermill on the sweep notebook, by relative paths only, after the check that papermill leaves out."""
    import papermill

    known = papermill.inspect_notebook(SOURCE.as_posix())
    if unknown_names := sorted(set(parameters) - set(known)):
        raise SpecError(f"{SOURCE} has no parameters {', '.join(unknown_names)}; it has {', '.join(known)}")
    # nbclient waits 4 s for late output, which a loaded machine misses; papermill makes that an error
    papermill.execute_notebook(
        SOURCE.as_posix(), output.as_posix(), parameters=parameters, progress_bar=False, iopub_timeout=60
    )


def _end_with_driver() -> None:
    os.read(0, 1)  # returns when the driver closes the pipe, or dies
    import psutil

    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    os._exit(LOST)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), Path(sys.argv[2])))
