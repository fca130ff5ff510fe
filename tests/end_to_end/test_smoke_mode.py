"""Sweeps of the papers' studies are executed in reduced form, so that no row is decoration: every task, family, policy
and initialisation once, and all sweeps with the marker `slow`."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from fpt.errors import DataError, WeightsError
from fpt.models import BACKBONES
from fpt.sweeps import ledger, smoke
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import load_study
from fpt.sweeps.words import title

ROOT = Path(__file__).parents[2]
NAMES = ("lu2021", "rothermel2021", "laptop-rothermel2021", "smollm2", "controls")
STUDIES = {name: load_study(ROOT / "runs" / name) for name in NAMES}
STUDY = STUDIES["lu2021"]
Place = tuple[str, str]  # a study and a task


@pytest.fixture(autouse=True)
def _in_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def kinds(spec: SweepSpec) -> set[tuple[int, str]]:
    """Its task, its family, its policy and its initialisation; how these go together, tests/contract.py says."""
    values = (spec.task, BACKBONES[spec.backbone].family, str(spec.trainable), spec.init)
    return set(enumerate(values))


def with_keepers(chosen: Iterable[SweepSpec], sweeps: Sequence[SweepSpec]) -> list[SweepSpec]:
    """And the sweeps whose weights they start from."""
    chosen = list(chosen)
    needed = {spec.pretrained_by for spec in chosen}
    return chosen + [spec for spec in sweeps if spec.folder_name in needed and spec not in chosen]


def every(study: str, task: str) -> list[SweepSpec]:
    sweeps = STUDIES[study].sweeps
    return with_keepers((spec for spec in sweeps if spec.task == task), sweeps)


def one_of_each_kind() -> dict[Place, list[SweepSpec]]:
    """The first sweep of each kind, in the first study that has it."""
    seen: set[tuple[int, str]] = set()
    found: dict[Place, list[SweepSpec]] = {}
    for name, study in STUDIES.items():
        for spec in study.sweeps:
            if not kinds(spec) <= seen:
                seen |= kinds(spec)
                found.setdefault((name, spec.task), []).append(spec)
    return {place: with_keepers(chosen, STUDIES[place[0]].sweeps) for place, chosen in found.items()}


FIRST = one_of_each_kind()
EVERY = [(name, task) for name, study in STUDIES.items() for task in sorted({spec.task for spec in study.sweeps})]


def run(chosen: list[SweepSpec], study: str) -> None:
    seen: list[SweepSpec] = []
    failures = smoke.smoke(chosen, study, seen.append)
    assert [f"{title(spec)}: {error}" for spec, error in failures] == []
    assert len(seen) == len(chosen)


@pytest.mark.parametrize("place", FIRST, ids="-".join)
def test_one_sweep_of_each_kind_runs(place: Place) -> None:
    run(FIRST[place], place[0])


def test_what_is_read_and_predicted_by_the_models_own_table_is_tried() -> None:
    sweeps = load_study(ROOT / "runs" / "lora-text").sweeps
    first = {spec.arm: spec for spec in reversed(sweeps)}
    assert {"lora-pretrained", "unfrozen-pretrained"} <= first.keys()
    assert smoke.smoke(list(first.values()), "lora-text") == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("place", EVERY, ids="-".join)
def test_every_sweep_runs(place: Place) -> None:
    run(every(*place), place[0])


def test_the_reduced_form_keeps_what_makes_a_row_what_it_is() -> None:
    reduced: dict[str, str] = {}
    for spec in every("lu2021", "cifar10"):
        small = smoke.reduced_form(spec, reduced | {str(spec.pretrained_by): "bit-memory.unfrozen-random-12345678"})
        kept = ("task", "variant", "backbone", "init", "trainable", "random_init", "input_init", "measures", "dropout",
                "warmup", "shuffle_tokens")  # fmt: skip
        assert [getattr(small, name) for name in kept] == [getattr(spec, name) for name in kept]
        assert (small.steps, small.extend, small.compute_type) == (3, 0, "float32")
        assert len(small.seeds) == 1


def test_a_failure_is_reported_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *_ = every("lu2021", "bit-xor")
    run_sweep = smoke.run_sweep

    def sometimes(spec: SweepSpec, folder: Path, prepared: object) -> object:
        if spec.arm == first.arm and not spec.pretrained_by:
            raise ValueError("the loss is a banana")
        return run_sweep(spec, folder, prepared=prepared)

    monkeypatch.setattr(smoke, "run_sweep", sometimes)
    failures = smoke.smoke([first, second], "lu2021")
    assert [(spec, str(error)) for spec, error in failures] == [(first, "the loss is a banana")]


def test_a_sweep_without_its_keeper_says_so() -> None:
    alone = next(spec for spec in STUDY.sweeps if spec.pretrained_by and spec.task == "bit-xor")
    ((spec, error),) = smoke.smoke([alone], "lu2021")
    assert spec is alone
    assert isinstance(error, WeightsError)
    assert str(alone.pretrained_by) in str(error)


def test_its_results_are_no_results_of_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever copied them into the study's folder would find them stale, and `fpt publish` would refuse them."""
    spec = next(spec for spec in STUDY.sweeps if spec.task == "bit-xor" and spec.pretrained_by is None)
    kept: list[Path] = []
    run_sweep = smoke.run_sweep

    def copying(small: SweepSpec, folder: Path, prepared: object) -> object:
        result = run_sweep(small, folder, prepared=prepared)
        kept.append(Path(shutil.copytree(folder, tmp_path / folder.name)))
        return result

    monkeypatch.setattr(smoke, "run_sweep", copying)
    smoke.smoke([spec], "lu2021")
    assert ledger.sweep_state(spec, tmp_path).state == "waiting"
    assert ledger.read_result(kept[0], spec) is None


def test_without_the_small_data_it_says_where_they_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="tests/data"):
        smoke.smoke([next(spec for spec in STUDY.sweeps if spec.task == "mnist")], "lu2021")
