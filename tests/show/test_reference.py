"""Tables of the reference pages: nothing is left out, and what they count is what is there."""

from pathlib import Path

import committed
import pytest

import fpt
from fpt.models import ARMS, BACKBONES
from fpt.papers import claims, papers
from fpt.show import arms_table, backbones_table, downloads, parameters, slips_table, task_card
from fpt.sweeps.study_file import read_study


def test_every_study_says_what_it_is() -> None:
    for name, folder in committed.studies().items():
        assert read_study(folder, name).about, name


def test_every_arm_and_backbone_has_a_row() -> None:
    assert list(arms_table().frame["arm"]) == list(ARMS)
    assert list(backbones_table().frame["backbone"]) == list(BACKBONES)


def test_a_card_has_the_baselines_of_its_task() -> None:
    card = task_card("digits").frame
    properties = dict(zip(card.iloc[:, 0], card.iloc[:, 1], strict=True))
    assert "linear classifier" in properties["baselines"]


def test_parameters_are_those_of_the_live_model() -> None:
    live = fpt.models.build(fpt.tasks.load("digits"), backbone="tiny-lm", init="random", trainable="fpt").report()
    assert parameters("tiny-lm", "fpt").equals(live)


@pytest.mark.parametrize("paper", papers())
def test_every_claim_without_a_rule_is_in_one_table(paper: str) -> None:
    shown = [
        name for kind in ("oddity", "counted", "read") for name in slips_table(paper, kind, "").frame.get("id", [])
    ]
    expected = [name for name, claim in claims().items() if claim.paper == paper and not claim.rule]
    assert sorted(shown) == sorted(expected)


def test_what_is_offered_is_written(tmp_path: Path) -> None:
    lines = downloads(tmp_path).splitlines()
    assert lines
    written = sorted(path.name for path in tmp_path.iterdir())
    assert len(written) == 3 * len(lines)
    assert all(name in "\n".join(lines) for name in written)
