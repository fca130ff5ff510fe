"""Sweeps of `lu2021` are executed in reduced form, so that no row of the study is decoration: one of each kind, and
all of them with the marker `soak`."""

import os
import shutil
from pathlib import Path

import pytest

from fpt.errors import DataError
from fpt.models import BACKBONES
from fpt.sweeps import ledger, smoke
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import load_study
from fpt.tasks import TASKS

ROOT = Path(__file__).parents[2]
STUDY = load_study(ROOT / "runs" / "lu2021")


@pytest.fixture(autouse=True)
def _in_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


TASKS_OF_STUDY = sorted({spec.task for spec in STUDY.sweeps})


def of_task(task: str) -> list[SweepSpec]:
    """The sweeps of one task, and those whose weights they start from."""
    return with_keepers([spec for spec in STUDY.sweeps if spec.task == task])


def one_of_each_kind(task: str) -> list[SweepSpec]:
    """The first sweep of each family, policy and initialisation on one task."""
    kinds: dict[tuple[str, ...], SweepSpec] = {}
    for spec in STUDY.sweeps:
        if spec.task == task:
            kinds.setdefault((BACKBONES[spec.backbone].family, str(spec.trainable), spec.init), spec)
    return with_keepers(list(kinds.values()))


def with_keepers(chosen: list[SweepSpec]) -> list[SweepSpec]:
    needed = {spec.pretrained_by for spec in chosen}
    return chosen + [spec for spec in STUDY.sweeps if spec.folder_name in needed and spec not in chosen]


def run(chosen: list[SweepSpec]) -> None:
    """In this process, whose tables are as before at the end."""
    before = dict(BACKBONES), dict(TASKS), dict(os.environ)
    seen: list[SweepSpec] = []
    failures = smoke.smoke(chosen, "lu2021", seen.append)
    assert [f"{spec.title}: {error}" for spec, error in failures] == []
    assert len(seen) == len(chosen)
    assert (dict(BACKBONES), dict(TASKS), dict(os.environ)) == before


@pytest.mark.parametrize("task", TASKS_OF_STUDY)
def test_one_sweep_of_each_kind_works(task: str) -> None:
    run(one_of_each_kind(task))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task", TASKS_OF_STUDY)
def test_every_sweep_of_lu2021_works(task: str) -> None:
    run(of_task(task))


def test_no_kind_is_left_out() -> None:
    chosen = [spec for task in TASKS_OF_STUDY for spec in one_of_each_kind(task)]
    kinds, every = ({(spec.task, str(spec.trainable), spec.init) for spec in specs} for specs in (chosen, STUDY.sweeps))
    assert kinds == every


def test_the_reduced_form_keeps_what_makes_a_row_what_it_is() -> None:
    reduced: dict[str, str] = {}
    for spec in of_task("cifar10"):
        small = smoke.reduced_form(spec, reduced | {str(spec.pretrained_by): "bit-memory.unfrozen-random-12345678"})
        kept = ("task", "variant", "backbone", "init", "trainable", "random_init", "input_init", "measures", "dropout",
                "warmup", "shuffle_tokens")  # fmt: skip
        assert [getattr(small, name) for name in kept] == [getattr(spec, name) for name in kept]
        assert (small.steps, small.extend, small.compute_type) == (3, 0, "float32")
        assert len(small.seeds) == 1


def test_a_failure_is_reported_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *_ = of_task("bit-xor")
    run_sweep = smoke.run_sweep

    def sometimes(spec: SweepSpec, *where: Path) -> object:
        if spec.arm == first.arm and not spec.pretrained_by:
            raise ValueError("the loss is a banana")
        return run_sweep(spec, *where)

    monkeypatch.setattr(smoke, "run_sweep", sometimes)
    failures = smoke.smoke([first, second], "lu2021")
    assert [(spec, str(error)) for spec, error in failures] == [(first, "the loss is a banana")]


def test_its_results_are_no_results_of_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever copied them into the study's folder would find them stale, and `fpt publish` would refuse them."""
    spec = next(spec for spec in STUDY.sweeps if spec.task == "bit-xor" and spec.pretrained_by is None)
    kept: list[Path] = []
    run_sweep = smoke.run_sweep

    def copying(small: SweepSpec, folder: Path, data: Path) -> object:
        result = run_sweep(small, folder, data)
        kept.append(Path(shutil.copytree(folder, tmp_path / folder.name)))
        return result

    monkeypatch.setattr(smoke, "run_sweep", copying)
    smoke.smoke([spec], "lu2021")
    assert ledger.sweep_state(spec, tmp_path).state == "waiting"
    assert ledger.read_result(kept[0], spec) is None


def test_without_the_small_data_it_says_where_they_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="tests/data"):
        smoke.smoke(STUDY.sweeps[:1], "lu2021")
