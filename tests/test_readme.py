"""Every number that README.md says of results is what the published runs say."""

import re
from pathlib import Path

import pytest

from fpt.results import baseline, contrast, level
from fpt.results.arm import Arm
from fpt.results.baselines import LINEAR
from fpt.results.contrasts import arms_of
from fpt.results.difference import paired_difference
from fpt.results.estimate import PERCENT, Estimate, number_text
from fpt.results.texts import labels_of
from fpt.show import PAIRS, Place
from fpt.show.picture import FULL, PROBE, texts_arms

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_SCREEN = README.partition("\n## ")[0]
ROWS: dict[str, tuple[str, str | float, int | None]] = {  # row of the table -> study, rate and steps (None: the last)
    "MiniLM, both at 1e-3, 1,600 steps": ("fresh-minilm", 1e-3, None),
    "MiniLM, each at its own rate, 1,600 steps": ("fresh-minilm", "tuned", None),
    "MiniLM, each at its own rate, 200 steps": ("fresh-minilm", "tuned", 200),
    "tiny-lm, each at its own rate, 6,000 steps": ("long-mnist", "tuned", None),
}


def _table() -> dict[str, list[str]]:
    lines = [line.strip("| ").split(" | ") for line in FIRST_SCREEN.splitlines() if line.startswith("|")]
    return {name: cells for name, *cells in lines[2:]}


def test_the_first_screen_is_short() -> None:
    assert len(FIRST_SCREEN.rstrip().splitlines()) <= 25


def test_its_pictures_are_there() -> None:
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', FIRST_SCREEN)
    assert len(pictures) == 2
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_every_row_of_the_table_is_known() -> None:
    assert list(_table()) == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_what_the_runs_say(row: str) -> None:
    study, at, budget = ROWS[row]
    found = contrast(study, "UP", "FP", at=at, budget=budget)
    levels = [number_text(each, PERCENT) for each in (found.first, found.second)]
    assert _table()[row] == [*levels, found.cell if found.open else f"**{found.cell}**"]


def test_only_tiny_lm_is_shown_to_beat_a_linear_classifier_on_mnist() -> None:
    linear = baseline("mnist", LINEAR)
    assert f"a linear classifier has {linear:.1f}%" in FIRST_SCREEN
    assert level("long-mnist", "UP").low > linear
    others = [place for place in PAIRS.values() if place.task == "mnist" and "tiny-lm" not in place.arm("UP").pair]
    others += [Place("fresh-minilm", "mnist"), Place("recipe", "mnist", "minilm, layers 2")]
    others.append(Place("long-minilm", "mnist"))
    assert not [place for place in others for arm in ("FP", "UP") if place.level(arm).low > linear]


def test_on_texts_the_probe_is_hard_to_beat() -> None:
    few = {arm.letters: arm for arm in arms_of("intents-rates").values() if labels_of(arm) == 10}
    assert (few["probe"].classes or 0) * 10 == 770
    assert not [each for each in _beside_the_probe(few["WP"], few["probe"]) if each.low > 0]


def test_the_words_for_the_right_panel_are_true() -> None:
    """Of what the picture draws now: a reader who does not see it knows it from these words."""
    arms = texts_arms()
    found = _beside_the_probe(arms[FULL], arms[PROBE])
    assert any(each.high >= 0 for each in found), "full training reaches a probe"
    assert any(each.high < 0 for each in found), "at its best rates alone"


def _beside_the_probe(full: Arm, probe: Arm) -> list[Estimate]:
    """Full training at each rate minus the probe at its own strength."""
    return [paired_difference([(full, rate, None)], [(probe, "tuned", None)]) for rate in full.rates]
