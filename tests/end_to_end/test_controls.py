"""Every control of the study `controls` in reduced form: it runs, and exactly the groups that it names change."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fpt import papers
from fpt.sweeps import smoke
from fpt.sweeps.run import prepare
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import load_study
from fpt.training.fleet import Fleet
from fpt.training.measures import run_weights

ROOT = Path(__file__).parents[2]
STUDY = load_study(ROOT / "runs" / "controls")
ROWS = {  # of all tables that the study has something of; a row is one sweep on digits, or on MNIST alone
    planned.row: planned.spec
    for table in papers.paper_of("ours").tables.values()
    for planned in sorted(STUDY.planned(table), key=lambda planned: planned.task, reverse=True)
    if planned.spec
}
FROZEN = {"input", "output", "layer_norm", "positions"}
ALL = FROZEN | {"attention", "feed_forward"}
GROUPS = {  # by the first word of a row, or by the whole
    "FP": FROZEN, "FR": FROZEN, "UP": ALL, "UR": ALL,
    "no backbone": {"input", "output"}, "FR, 1 layer": FROZEN, "1 layer, attention": FROZEN | {"attention"},
    "UR, 1 layer": ALL,
}  # fmt: skip


@pytest.fixture(scope="module")
def _stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with smoke.stand_ins(STUDY.sweeps, tmp_path_factory.mktemp("controls")):
        yield


def kinds() -> list[SweepSpec]:
    """The first sweep of each thing in which controls differ, whatever its weights."""
    found: dict[tuple[object, ...], SweepSpec] = {}
    for spec in ROWS.values():
        found.setdefault((spec.backbone == "none", spec.warmup, spec.clip, spec.data_fraction, spec.shuffle_tokens,
                          spec.random_gain, str(spec.backbone_options), str(spec.trainable)), spec)  # fmt: skip
    return list(found.values())


def test_one_control_of_each_kind_is_trained_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failures = smoke.smoke(kinds(), "controls")
    assert [f"{spec.title}: {error}" for spec, error in failures] == []


@pytest.mark.usefixtures("_stand_ins")
@pytest.mark.parametrize("row", ROWS)
def test_exactly_the_groups_of_a_control_change(row: str) -> None:
    small = smoke.reduced_form(ROWS[row], {})
    task, template = prepare(small, ROOT / "tests" / "data")
    fleet = Fleet(task, template, small.recipe, [1e-2], [3], torch.device("cpu"))
    for step in range(1, small.steps + 1):
        fleet.step(step)
    start, end = template.initialise(3), run_weights(fleet, 0, fleet.parameters)
    changed = {name for name in start if not torch.equal(start[name], end[name])}
    expected = GROUPS.get(row) or GROUPS[row.partition(" ")[0]]
    assert changed == {name for name, group in template.groups.items() if group in expected}
    assert expected == {template.groups[name] for name in changed}
