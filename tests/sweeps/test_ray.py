"""The Ray engine beyond the contract, on real Ray: nodes and their loss, GPUs, results, what it refuses."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from engine_contract import APART, CORES, SHARED, STUDY, WORKER, Engine, family, folder, scratch
from processes import PATIENCE, all_gone, command_line, eventually
from stand_in import QUICK, ROOT, SLOW_ONCE, spec

from fpt.errors import FptError, SpecError
from fpt.sweeps import engines, ledger, run_sweep
from fpt.sweeps.engines import ray as ray_engine
from fpt.sweeps.ledger import sweep_state

pytestmark = [pytest.mark.ray, pytest.mark.timeout(2 * PATIENCE)]
A_NODE_APART = pytest.mark.parametrize("engine", [APART], indirect=True)


@pytest.fixture
def add_gpu(cluster: Any) -> Iterator[Callable[[], Any]]:
    """Adds nodes of one declared GPU each, where sweeps go as long as there are any; removed at the end."""

    def add() -> Any:
        node = cluster.add_node(num_cpus=CORES, num_gpus=1)
        ends.callback(lambda: node in cluster.worker_nodes and cluster.remove_node(node))
        return node

    with ExitStack() as ends:  # each is removed, though the removal of another fails
        ends.callback(cluster.wait_for_nodes, timeout=PATIENCE)
        yield add


@pytest.mark.parametrize("engine", [SHARED], indirect=True)
def test_a_lost_node_is_replaced_and_its_checkpoints_serve_where_the_folder_is_shared(
    workspace: Path, engine: Engine, cluster: Any, add_gpu: Callable[[], Any]
) -> None:
    sweep, lost = spec(SLOW_ONCE), add_gpu()
    with engine.start_driver(sweep) as driver:
        members = family(driver, [sweep])
        add_gpu()
        cluster.remove_node(lost, allow_graceful=False)
        eventually(lambda: all_gone(members))
        assert driver.wait(timeout=PATIENCE) == 0
    state = sweep_state(sweep, STUDY)
    assert state.complete
    assert state.result["resumed"]
    assert engines.LOG not in os.listdir(state.folder)


@A_NODE_APART
def test_a_lost_task_takes_its_worker_along_and_is_tried_again(workspace: Path, engine: Engine) -> None:
    sweep, before = spec(SLOW_ONCE), scratch()
    with engine.start_driver(sweep) as driver:
        members = family(driver, [sweep])
        worker = next(member for member in members if WORKER in command_line(member))
        assert len(scratch() - before) == 1
        task = worker.parent()
        task.kill()
        eventually(lambda: all_gone([*members, task]))
        assert driver.wait(timeout=PATIENCE) == 0
    state = sweep_state(sweep, STUDY)
    assert state.complete
    assert not state.result["resumed"]  # the first attempt's workspace is out of reach


@A_NODE_APART
def test_more_sweeps_than_gpus_take_turns(workspace: Path, engine: Engine, add_gpu: Callable[[], Any]) -> None:
    add_gpu()
    before = scratch()
    os.utime(
        tempfile.mkdtemp(prefix=ray_engine.TEMPORARY, dir=os.environ["TMPDIR"]), (0, 0)
    )  # as if a task had been killed long ago
    sweeps = [spec(random_gain=gain) for gain in (1, 2, 4)]
    seen: list[list[str]] = []  # the state of every sweep, at every call of `watch`
    engine.run(sweeps, watch=lambda *_: seen.append([sweep_state(sweep, STUDY).state for sweep in sweeps]))
    assert max(states.count("running") for states in seen) == 1
    assert ["running", "waiting", "waiting"] in [sorted(states) for states in seen]
    assert scratch() <= before
    for sweep in sweeps:
        result = sweep_state(sweep, STUDY).result
        assert result["gpu"] == "0"


@A_NODE_APART
def test_a_real_sweep_gives_the_same_bytes_as_here(workspace: Path, engine: Engine, tmp_path: Path) -> None:
    Path("notebooks/sweep.ipynb").write_bytes((ROOT / "notebooks" / "sweep.ipynb").read_bytes())
    few = {"evaluation_examples": 50, "budget_examples": 50, "test_examples": 50}
    real = spec(QUICK, evaluations=2, compute_type="float32", **few)
    (STUDY / "study.yaml").write_text("asks: [R-01]")
    assert engine.run([real]) == []
    here = run_sweep(real, tmp_path / "here")
    state = sweep_state(real, STUDY)
    assert state.complete
    assert list(state.result["asks"]) == ["R-01"]  # the node was told
    for name in ("runs.parquet", "curves.parquet"):
        assert (folder(real) / name).read_bytes() == (here.folder / name).read_bytes()


@A_NODE_APART
def test_sweeps_that_start_from_the_same_kept_weights_all_find_them(workspace: Path, engine: Engine) -> None:
    """On a node that does not see the workspace."""
    keeper = spec()
    folder(keeper).mkdir()
    (folder(keeper) / ledger.KEPT_WEIGHTS).write_text("weights")
    sweeps = [spec(arm="frozen-pretrained", pretrained_by=keeper.folder_name, batch_size=n) for n in (8, 16)]
    assert engine.run(sweeps) == []
    assert [sweep_state(each, STUDY).result["started_from"] for each in sweeps] == ["weights", "weights"]


@A_NODE_APART
def test_a_node_with_another_fpt_is_refused(workspace: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    job = ray_engine._job
    monkeypatch.setattr(ray_engine, "_job", lambda *about: job(*about) | {"hash": "another", "version": "99"})
    (failure,) = engine.run([spec()])
    assert "the driver 99, and they differ" in failure.reason
    assert failure.evidence == folder(spec()) / engines.LOG
    assert "Traceback" in failure.evidence.read_text() or "sweep_on_node" in failure.evidence.read_text()


@A_NODE_APART
def test_more_threads_than_any_node_has_are_refused(workspace: Path, engine: Engine) -> None:
    with pytest.raises(SpecError, match=rf"--threads 99.*they have {CORES} cores and 0 GPUs"):
        engine.run([spec()], threads=99)
    assert os.listdir(STUDY) == ["study.yaml"]


@pytest.mark.parametrize(
    ("address", "answer"),
    [
        ("127.0.0.1:1", "no Ray cluster at 127.0.0.1:1 .*refused"),
        ("ray://127.0.0.1:10001", "without a protocol"),
        ("nonsense", "no Ray cluster at nonsense"),
    ],
)
def test_an_address_without_a_cluster_is_refused_at_once(workspace: Path, address: str, answer: str) -> None:
    with pytest.raises(FptError, match=answer):
        Engine("ray", address).run([spec()])


def test_without_ray_it_says_how_to_get_it(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(FptError, match=r"pip install -e '.\[ray\]'"):
        Engine("ray").run([spec()])
