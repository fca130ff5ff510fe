"""Sweeps of the papers' studies are executed in reduced form, so that no row is decoration: one of each kind, and all
of them with the marker `slow`. What trains has changed afterwards, and what is frozen has not."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

from fpt.errors import DataError, WeightsError
from fpt.models import BACKBONES, build
from fpt.models.template import Template
from fpt.sweeps import ledger, smoke
from fpt.sweeps.run import run_sweep
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import load_study
from fpt.tasks import load
from fpt.tasks.task import Task
from fpt.training.recipe import WEIGHTS

ROOT = Path(__file__).parents[2]
NAMES = ("lu2021", "rothermel2021", "laptop-rothermel2021", "smollm2", "controls")
STUDIES = {name: load_study(ROOT / "runs" / name) for name in NAMES}
STUDY = STUDIES["lu2021"]
WIDTH = 16  # of every tiny model
Place = tuple[str, str]  # a study and a task
Tensors = dict[str, Tensor]


@pytest.fixture(autouse=True)
def _in_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def kinds(spec: SweepSpec) -> set[tuple[str, ...]]:
    """Its task; and its family with policy and initialisation."""
    return {(spec.task,), (BACKBONES[spec.backbone].family, str(spec.trainable), spec.init)}


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
    seen: set[tuple[str, ...]] = set()
    found: dict[Place, list[SweepSpec]] = {}
    for name, study in STUDIES.items():
        for spec in study.sweeps:
            if not kinds(spec) <= seen:
                seen |= kinds(spec)
                found.setdefault((name, spec.task), []).append(spec)
    return {place: with_keepers(chosen, STUDIES[place[0]].sweeps) for place, chosen in found.items()}


FIRST = one_of_each_kind()
EVERY = [(name, task) for name, study in STUDIES.items() for task in sorted({spec.task for spec in study.sweeps})]


def wrong_groups(template: Template, before: Tensors, after: Tensors) -> tuple[set[str], set[str]]:
    """(Frozen tensors that changed, groups that train of which no tensor did). Of a sweep on features that were
    computed once `after` has the output layer alone."""
    changed = {name for name, tensor in after.items() if not tensor.equal(before[name])}
    train = set(template.trainable)
    return changed - train, {template.groups[name] for name in train} - {template.groups[name] for name in changed}


def watched(spec: SweepSpec, folder: Path, prepared: tuple[Task, Template]) -> object:
    """The sweep, and whether its groups changed as they should."""
    spec, (_, template) = spec.changed(measures={*spec.measures, WEIGHTS}), prepared
    assert template.width == WIDTH
    result = run_sweep(spec, folder, prepared=prepared)
    after = load_file(folder / ledger.WEIGHTS)
    assert wrong_groups(template, template.initialise(spec.seeds[0]), after) == (set(), set()), spec.title
    return result


def run(chosen: list[SweepSpec], study: str) -> None:
    seen: list[SweepSpec] = []
    failures = smoke.smoke(chosen, study, seen.append)
    assert [f"{spec.title}: {error}" for spec, error in failures] == []
    assert len(seen) == len(chosen)


@pytest.mark.parametrize("place", FIRST, ids="-".join)
def test_one_sweep_of_each_kind_trains_what_it_says(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke, "run_sweep", watched)
    run(FIRST[place], place[0])


def test_what_is_read_and_predicted_by_the_models_own_table_is_tried() -> None:
    sweeps = load_study(ROOT / "runs" / "lora-text").sweeps
    first = {spec.arm: spec for spec in reversed(sweeps)}
    assert {"lora-pretrained", "unfrozen-pretrained"} <= first.keys()
    assert smoke.smoke(list(first.values()), "lora-text") == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("place", EVERY, ids="-".join)
def test_every_sweep_trains_what_it_says(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke, "run_sweep", watched)
    run(every(*place), place[0])


def test_no_kind_is_left_out() -> None:
    chosen = (spec for specs in FIRST.values() for spec in specs)
    sweeps = (spec for study in STUDIES.values() for spec in study.sweeps)
    assert set().union(*map(kinds, chosen)) == set().union(*map(kinds, sweeps))


def test_a_frozen_tensor_that_changes_and_a_group_that_does_not_train_are_found() -> None:
    template = build(load("bit-xor"), "tiny-lm")
    before = template.initialise(0)
    trained = before | {name: before[name] + 1 for name in template.trainable}
    assert wrong_groups(template, before, trained) == (set(), set())
    assert wrong_groups(template, before, before) == (set(), {"input", "output", "layer_norm", "positions"})
    (frozen,) = (name for name in before if name.endswith("h.1.attn.c_attn.weight"))
    assert wrong_groups(template, before, trained | {frozen: before[frozen] + 1}) == ({frozen}, set())


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

    def sometimes(spec: SweepSpec, folder: Path, prepared: tuple[Task, Template]) -> object:
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

    def copying(small: SweepSpec, folder: Path, prepared: tuple[Task, Template]) -> object:
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
        smoke.smoke(STUDY.sweeps[:1], "lu2021")
