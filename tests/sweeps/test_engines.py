"""The local engine on a stand-in notebook: success, failure, loss, and the death of everybody involved."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from stand_in import FAILING, LOST, LOST_ONCE, QUICK, ROOT, SLOW, spec

from fpt.errors import LockedError, SpecError
from fpt.sweeps import SweepSpec, engines, ledger, run_sweep
from fpt.sweeps.engines import run_local
from fpt.sweeps.ledger import sweep_state

STUDY = Path("runs/mine")
PATIENCE = 120  # seconds a busy machine may need to start a kernel
DRIVER = """
import json, sys
from pathlib import Path
from fpt.sweeps.engines import run_local
from fpt.sweeps.spec import resolve
failures = run_local([resolve(json.loads(text)) for text in sys.argv[1:]], Path("runs/mine"))
sys.exit(len(failures))
"""


def folder(sweep: SweepSpec) -> Path:
    return STUDY / sweep.folder_name


def eventually(happens: Callable[[], object], within: float = PATIENCE) -> None:
    deadline = time.monotonic() + within
    while not happens():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def start_driver(*sweeps: SweepSpec) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", DRIVER, *(json.dumps(sweep.resolved()) for sweep in sweeps)]
    # A shell starts background jobs with SIGINT ignored, and children inherit it: Ctrl-C is to mean Ctrl-C here.
    return subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))


def family(driver: "subprocess.Popen[bytes]", sweeps: Sequence[SweepSpec]) -> list[psutil.Process]:
    """Workers and kernels, once every kernel is at work."""
    eventually(lambda: all(sweep_state(sweep, STUDY).progress for sweep in sweeps))
    members = psutil.Process(driver.pid).children(recursive=True)
    kernels = {int((folder(sweep) / "kernel-pid").read_text()) for sweep in sweeps}
    assert kernels <= {member.pid for member in members}
    return members


def all_gone(members: list[psutil.Process]) -> bool:
    return not any(member.is_running() and member.status() != psutil.STATUS_ZOMBIE for member in members)


def test_a_sweep_is_done_with_its_notebook_and_without_leftovers(workspace: Path) -> None:
    told: list[tuple[int, int]] = []
    sweeps = [spec(random_gain=gain) for gain in (1, 2, 4)]
    assert run_local(sweeps, STUDY, watch=lambda running, ended: told.append((len(running), len(ended)))) == []
    for sweep in sweeps:
        assert sweep_state(sweep, STUDY).complete
        assert not {engines.PARTIAL, engines.FAILED, engines.LOG} & set(os.listdir(folder(sweep)))
        text = (folder(sweep) / ledger.NOTEBOOK).read_text()
        assert str(workspace) not in text
        assert json.loads(text)["metadata"]["papermill"]["output_path"] == f"{folder(sweep)}/notebook.ipynb"
    assert sum(ended for _, ended in told) == 3
    assert max(running for running, _ in told) <= max(1, len(os.sched_getaffinity(0)))


def test_threads_are_given_to_the_kernel(workspace: Path) -> None:
    assert run_local([spec()], STUDY, threads=3) == []
    result = sweep_state(spec(), STUDY).result
    assert result
    assert result["threads"] == "3"


def test_a_failing_sweep_is_reported_and_the_others_go_on(workspace: Path) -> None:
    failing, other = spec(FAILING), spec(QUICK)
    (failure,) = run_local([failing, other], STUDY)
    assert sweep_state(other, STUDY).complete
    assert failure.spec == failing
    assert failure.reason == "ValueError: the loss is a banana"
    assert failure.evidence == folder(failing) / engines.FAILED
    assert sweep_state(failing, STUDY).state == "unfinished"
    assert not (folder(failing) / ledger.NOTEBOOK).exists()


def test_a_killed_kernel_is_a_lost_sweep_and_is_tried_again(workspace: Path) -> None:
    assert run_local([spec(LOST_ONCE)], STUDY) == []
    assert sweep_state(spec(LOST_ONCE), STUDY).complete


def test_a_sweep_that_is_always_lost_is_given_up(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "RETRIES", 1)
    (failure,) = run_local([spec(LOST)], STUDY)
    assert "killed 2 times" in failure.reason
    assert sweep_state(spec(LOST), STUDY).state == "unfinished"


def test_a_done_sweep_without_its_notebook_gets_it_again(workspace: Path) -> None:
    run_local([spec()], STUDY)
    (folder(spec()) / ledger.NOTEBOOK).unlink()
    assert run_local([spec()], STUDY) == []
    assert sweep_state(spec(), STUDY).complete


def test_a_notebook_without_the_parameters_is_refused(workspace: Path) -> None:
    source = Path("notebooks/sweep.ipynb")
    source.write_text(source.read_text().replace("random_gain", "gain"))
    (failure,) = run_local([spec()], STUDY)
    assert "random_gain" in failure.reason
    assert failure.evidence == folder(spec()) / engines.LOG
    source.unlink()
    with pytest.raises(SpecError, match=r"notebooks/sweep.ipynb is missing"):
        run_local([spec()], STUDY)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nobody_survives_the_driver_and_the_next_run_finishes(workspace: Path, how: signal.Signals) -> None:
    sweeps = [spec(SLOW), spec(SLOW, random_gain=2)][: len(os.sched_getaffinity(0))]
    driver = start_driver(*sweeps)
    members = family(driver, sweeps)
    driver.send_signal(how)
    driver.wait(timeout=30)
    eventually(lambda: all_gone(members), within=15)
    eventually(lambda: all(sweep_state(sweep, STUDY).state == "unfinished" for sweep in sweeps), within=5)
    source = Path("notebooks/sweep.ipynb")
    source.write_text(source.read_text().replace("time.sleep(120)", "time.sleep(0)"))
    assert run_local(sweeps, STUDY) == []


def test_a_real_sweep_killed_in_training_is_trained_to_the_same_bytes(workspace: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "notebooks" / "sweep.ipynb", "notebooks")
    real = spec(60, evaluations=30, evaluation_examples=50, confirmation_seeds=[], compute_type="float32")
    driver = start_driver(real)
    eventually(lambda: (sweep_state(real, STUDY).progress or {"step": 0})["step"] > 0)
    members = psutil.Process(driver.pid).children(recursive=True)
    driver.kill()
    driver.wait()
    eventually(lambda: all_gone(members) and sweep_state(real, STUDY).state == "unfinished", within=15)
    assert run_local([real], STUDY) == []
    assert sweep_state(real, STUDY).complete
    undisturbed = run_sweep(real, tmp_path / "undisturbed").folder
    for name in ("runs.parquet", "curves.parquet"):
        assert (folder(real) / name).read_bytes() == (undisturbed / name).read_bytes()


def test_the_kernel_does_not_survive_its_worker(workspace: Path) -> None:
    driver = start_driver(spec(SLOW))
    members = family(driver, [spec(SLOW)])
    worker = next(member for member in members if "fpt.sweeps.engines" in member.cmdline())
    kernel = psutil.Process(int((folder(spec(SLOW)) / "kernel-pid").read_text()))
    try:
        worker.kill()
        eventually(lambda: all_gone([kernel]), within=15)  # ipykernel looks after its parent every second
        eventually(lambda: json.loads((folder(spec(SLOW)) / ledger.LOCK).read_text())["pid"] != kernel.pid)
    finally:
        members = psutil.Process(driver.pid).children(recursive=True)
        driver.kill()
        driver.wait()
    eventually(lambda: all_gone(members), within=15)


def test_a_folder_somebody_else_writes_is_left_alone(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = start_driver(spec(SLOW))
    members = family(driver, [spec(SLOW)])
    kernel = (folder(spec(SLOW)) / "kernel-pid").read_text()
    monkeypatch.setattr(ledger, "LOCK_WAIT", 0.3)
    try:
        with pytest.raises(LockedError, match=f"process {kernel} on"):
            run_local([spec(SLOW)], STUDY)
    finally:
        driver.kill()
        driver.wait()
    eventually(lambda: all_gone(members), within=15)


class TestSlots:
    def test_without_gpus_one_for_every_threads_cores(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
        assert engines._slots(None) == ([""] * 8, 1)
        assert engines._slots(4) == ([""] * 2, 4)
        assert engines._slots(99) == ([""], 99)

    def test_one_for_every_gpu_that_may_be_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
        assert engines._slots(None) == (["2", "5"], 4)
        assert engines._slots(1) == (["2", "5"], 1)

    def test_gpus_are_counted_without_torch(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text("#!/bin/sh\necho 'GPU 0: one'\necho '  MIG 1g: x'\necho 'GPU 1: other'\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        assert engines._devices() == ["0", "1"]
        program.write_text("#!/bin/sh\necho 'no driver' >&2\nexit 9\n")
        assert engines._devices() == []
