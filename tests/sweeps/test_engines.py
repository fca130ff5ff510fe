"""What every engine promises, on a stand-in notebook: success, failure, loss, and the death of everybody involved."""

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import synthetic
from engine_contract import (
    APART,
    CORES,
    LOCAL,
    ON_RAY,
    STUDY,
    Engine,
    family,
    folder,
    kernel_pid,
)
from processes import PATIENCE, all_gone, eventually
from stand_in import FAILING, LONG, LOST_ONCE, QUICK, SLOW, spec

from fpt.cli.progress import SweepBars
from fpt.errors import LockedError, SpecError
from fpt.sweeps import SweepSpec, engines, ledger
from fpt.sweeps.engines import local, ray
from fpt.sweeps.ledger import sweep_state
from fpt.sweeps.record import RESULT

pytestmark = pytest.mark.timeout(2 * PATIENCE)
BOTH = pytest.mark.parametrize("engine", [LOCAL, APART], indirect=True)  # on Ray the harder way of two


@BOTH
def test_a_sweep_is_done_with_its_notebook_and_without_leftovers(
    workspace: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side by side, since there are more cores than sweeps."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(CORES)), raising=False)
    sweeps = [spec(random_gain=gain) for gain in (1, 2)]
    assert engine.run(sweeps, threads=1) == []
    for sweep in sweeps:
        state = sweep_state(sweep, STUDY)
        assert state.complete
        assert (state.result["threads"], state.result["workers"]) == (1, "2")
        assert not {local.PARTIAL, engines.FAILED, engines.LOG} & set(os.listdir(folder(sweep)))
        text = (folder(sweep) / ledger.NOTEBOOK).read_text()
        assert str(workspace) not in text
        assert json.loads(text)["metadata"]["papermill"]["output_path"] == f"{folder(sweep)}/notebook.ipynb"


def test_bars_go_on_after_a_result_that_is_damaged(tmp_path: Path) -> None:
    """The engine names it among its failures; the other sweeps are not stopped for it."""
    sweeps = [spec(random_gain=gain) for gain in (1, 2)]
    (tmp_path / sweeps[0].folder_name).mkdir()
    (tmp_path / sweeps[0].folder_name / RESULT).write_text("{broken")
    bars = SweepBars(sweeps, tmp_path)
    with bars as watch:
        watch(sweeps, [])
        watch(sweeps[1:], sweeps[:1])
    assert (bars.done, len(bars.live)) == (0, 1)


@BOTH
def test_a_sweep_that_takes_every_core_runs_alone(
    workspace: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(CORES)), raising=False)
    seen: list[tuple[int, int]] = []
    sweeps = [spec(random_gain=gain) for gain in (1, 2)]
    assert engine.run(sweeps, threads=CORES, watch=lambda running, ended: seen.append((len(running), len(ended)))) == []
    assert max(running for running, _ in seen) <= 1
    assert sum(ended for _, ended in seen) == 2
    for sweep in sweeps:
        result = sweep_state(sweep, STUDY).result
        assert (result["threads"], result["workers"]) == (CORES, "1")


def test_a_folder_that_somebody_else_takes_while_others_run_is_a_failure_of_its_sweep_alone(workspace: Path) -> None:
    class Taken(engines.Attempt):
        def poll(self) -> int | None:
            raise LockedError("process 7 writes it")

        def hang_up(self) -> None:
            pass

    (failure,) = engines.schedule(lambda spec, number: Taken(spec, folder(spec), number), [spec()], None)
    assert failure.reason == "process 7 writes it"


def settled(code: int, number: int = 1) -> Any:
    """What follows when the worker of an attempt at the sweep has ended with this code."""
    attempt: Any = SimpleNamespace(spec=spec(), folder=folder(spec()), number=number)
    return engines.settle(attempt, code)


def test_a_worker_without_a_result_one_with_a_damaged_one_and_one_that_is_lost_too_often_are_failures(
    workspace: Path,
) -> None:
    place = folder(spec())
    synthetic.write(spec(), place)
    (place / "runs.parquet").write_bytes(b"half")
    damaged = settled(0)
    assert "runs.parquet: its SHA-256" in damaged.reason
    assert damaged.evidence == place
    (place / RESULT).unlink()
    log = place / engines.LOG
    silent = settled(0)
    assert f"exit code 0 and no result of this sweep: {log} is empty" in silent.reason
    log.write_text("loading\nnothing to do\n")
    assert settled(0).reason.endswith("exit code 0 and no result of this sweep: nothing to do")
    assert settled(engines.LOST, engines.RETRIES) == "again"
    lost = settled(engines.LOST, engines.RETRIES + 1)
    assert f"killed {engines.RETRIES + 1} times" in lost.reason
    assert [failure.evidence for failure in (silent, lost)] == [log, log]


@BOTH
def test_a_failing_sweep_is_reported_and_the_others_go_on(workspace: Path, engine: Engine) -> None:
    failing, other = spec(FAILING), spec(QUICK)
    (failure,) = engine.run([failing, other])
    assert sweep_state(other, STUDY).complete
    assert failure.spec == failing
    assert failure.reason == "ValueError: the loss is a banana"
    assert failure.evidence == folder(failing) / engines.FAILED
    assert sweep_state(failing, STUDY).state == "unfinished"
    assert not (folder(failing) / ledger.NOTEBOOK).exists()


@BOTH
def test_a_killed_kernel_is_a_lost_sweep_and_is_tried_again(workspace: Path, engine: Engine) -> None:
    assert engine.run([spec(LOST_ONCE)]) == []
    assert sweep_state(spec(LOST_ONCE), STUDY).complete


@BOTH
def test_a_done_sweep_without_its_notebook_gets_it_again(workspace: Path, engine: Engine) -> None:
    synthetic.write(spec(), folder(spec()))
    assert engine.run([spec()]) == []
    state = sweep_state(spec(), STUDY)
    assert state.complete
    assert state.result["found"]  # so that a real sweep is read there, not trained again


@BOTH
def test_a_notebook_without_the_parameters_is_refused(workspace: Path, engine: Engine) -> None:
    source = Path("notebooks/sweep.ipynb")
    source.write_text(source.read_text().replace("random_gain", "gain"))
    (failure,) = engine.run([spec()])
    assert "random_gain" in failure.reason
    assert failure.evidence == folder(spec()) / engines.LOG


@pytest.mark.parametrize(
    ("engine", "how"),
    [
        (LOCAL, signal.SIGKILL),
        pytest.param(LOCAL, signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("ray", signal.SIGTERM, marks=ON_RAY),
        pytest.param("ray, apart", signal.SIGKILL, marks=ON_RAY),
        pytest.param("ray, apart", signal.SIGINT, marks=ON_RAY),
    ],
    indirect=["engine"],
)
def test_nobody_survives_the_driver_and_the_next_run_finishes(
    workspace: Path, engine: Engine, how: signal.Signals
) -> None:
    sweeps = [spec(SLOW), spec(SLOW, random_gain=2)][: len(os.sched_getaffinity(0)) if engine.name == LOCAL else 1]
    with engine.start_driver(*sweeps) as driver:
        members = family(driver, sweeps)
        driver.send_signal(how)
        driver.wait(timeout=PATIENCE)
        eventually(lambda: all_gone(members))
    eventually(lambda: all(sweep_state(sweep, STUDY).state == "unfinished" for sweep in sweeps))
    if how == signal.SIGINT:  # it leaves in the folders what the others leave
        return
    source = Path("notebooks/sweep.ipynb")
    source.write_text(source.read_text().replace(f"time.sleep({LONG})", "time.sleep(0)"))
    assert engine.run(sweeps) == []


@BOTH
def test_the_kernel_does_not_survive_its_worker(workspace: Path, engine: Engine) -> None:
    with engine.start_driver(spec(SLOW)) as driver:
        members = family(driver, [spec(SLOW)])
        first = next(member for member in members if member.pid == kernel_pid(spec(SLOW)))
        worker = first.parent()
        worker.kill()
        eventually(lambda: all_gone([first]))  # ipykernel looks after its parent every second
        eventually(lambda: kernel_pid(spec(SLOW)) != first.pid)
        family(driver, [spec(SLOW)])  # tried again; nobody survives the driver


@BOTH
def test_a_folder_somebody_else_writes_is_left_alone(
    workspace: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine.start_driver(spec(SLOW)) as driver:
        family(driver, [spec(SLOW)])
        writer = json.loads((folder(spec(SLOW)) / ledger.LOCK).read_text())["pid"]
        assert writer == (driver.pid if "apart" in engine.name else kernel_pid(spec(SLOW)))
        monkeypatch.setattr(ledger, "LOCK_WAIT", 0.3)
        with pytest.raises(LockedError, match=f"process {writer} on"):
            engine.run([spec(SLOW)])


def test_own_data_are_read_where_a_node_sees_the_workspace_and_named_where_it_does_not(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    Path("mine.npz").write_bytes(b"mine")
    (STUDY / "sign").touch()
    job = ray._job(spec(task="npz:mine.npz"), STUDY) | {"sign": "sign", "share": {"num_cpus": 1}}
    seen: list[Path] = []

    def start(sweep: SweepSpec, study: Path, *_: object, root: Path, **__: object) -> None:
        seen.append(root / study / sweep.folder_name)  # of the content of the file
        raise KeyboardInterrupt

    monkeypatch.setattr(ray.local, "start", start)
    monkeypatch.setattr(ray, "_beside", lambda job: 1)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(KeyboardInterrupt):
        next(ray.sweep_on_node(job))
    assert [place.parent for place in seen] == [workspace / STUDY]
    with pytest.raises(SpecError, match=r"npz:mine\.npz"):
        next(ray.sweep_on_node(job | {"workspace": "/nowhere"}))


class TestSlots:
    def test_one_for_every_gpu_or_for_every_threads_cores(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert local.free_slots(None) == ([""] * 8, 1)
        assert local.free_slots(4) == ([""] * 2, 4)
        assert local.free_slots(99) == ([""], 99)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
        assert local.free_slots(None) == (["2", "5"], 4)
        assert local.free_slots(1) == (["2", "5"], 1)

    @pytest.mark.parametrize("slot", ["", "5"])
    def test_a_worker_knows_how_many_share_the_memory(
        self, slot: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Also where it has a GPU: without CUDA in torch it computes in main memory."""
        monkeypatch.setattr(local.subprocess, "Popen", lambda *_, env, **__: SimpleNamespace(env=env))
        worker = local.start(spec(), Path("runs/mine"), 1, [slot], beside=3, root=tmp_path)
        environment = worker.process.env  # type: ignore[attr-defined]
        assert environment["FPT_WORKERS"] == "3"
        assert not slot or environment["CUDA_VISIBLE_DEVICES"] == slot

    def test_gpus_are_counted_without_torch(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text("#!/bin/sh\necho 'GPU 0: one'\necho '  MIG 1g: x'\necho 'GPU 1: other'\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        assert local._devices() == ["0", "1"]
        program.write_text("#!/bin/sh\necho 'no driver' >&2\nexit 9\n")
        assert local._devices() == []


@pytest.mark.parametrize(("text", "share"), [("150000 100000", 1), ("max 100000", None), ("400000 100000", 4)])
def test_the_quota_of_a_container_counts(text, share, monkeypatch, tmp_path):
    (tmp_path / "cpu.max").write_text(f"{text}\n")
    monkeypatch.setattr(local, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(local.os, "sched_getaffinity", lambda _: range(64))
    assert local.cores() == (share or 64)
