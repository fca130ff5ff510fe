"""Every number that README.md says of results is what the published runs say."""

import re
from pathlib import Path

import pytest

from fpt.results import baseline, contrast, level
from fpt.results.contrasts import pooled
from fpt.results.estimate import PERCENT, number_text, two_digits
from fpt.results.stats import SIGNIFICANCE, holm
from fpt.show import lora_ratios

README = Path(__file__).parents[1] / "README.md"
FIRST_SCREEN = README.read_text(encoding="utf-8").partition("\n## ")[0]
ROWS = {  # row of the table -> study and arms
    "MNIST, 2 layers of MiniLM, 1,600 steps": ("plane-minilm", "FP", "UP"),
    "the same, eight new seeds": ("fresh-minilm", "FP", "UP"),
    "CIFAR-10, 2 layers of MiniLM, 800 steps": ("minilm-cifar10", "FP", "UP"),
    "MNIST, 4 layers of SmolLM2, 400 steps": ("smollm2", "FP (layers 4)", "UP (layers 4)"),
    "MNIST, tiny-lm, 3,000 steps": ("plane-mnist", "FP", "UP"),
    "handwritten digits, tiny-lm, 6,000 steps": ("plane-digits", "FP", "UP"),
}


def _table() -> dict[str, list[str]]:
    lines = [line.strip("| ").split(" | ") for line in FIRST_SCREEN.splitlines() if line.startswith("|")]
    return {name: cells for name, *cells in lines[2:]}


def test_the_first_screen_is_short() -> None:
    assert len(FIRST_SCREEN.rstrip().splitlines()) <= 25


def test_every_row_of_the_table_is_known() -> None:
    assert list(_table()) == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_what_the_runs_say(row: str) -> None:
    study, *arms = ROWS[row]
    expected = []
    for at in (1e-3, "tuned"):
        found = contrast(study, *arms, at=at)
        expected += [
            found.cell if found.open else f"**{found.cell}**",
            f"{number_text(found.first, PERCENT)}, {number_text(found.second, PERCENT)}",
        ]
    task = "digits" if "digits" in row else "cifar10" if "CIFAR" in row else "mnist"
    assert _table()[row] == [*expected, f"{baseline(task, 'linear classifier'):.1f}"]


def test_the_sentences_hold() -> None:
    fixed, tuned = (contrast("fresh-minilm", "FP", "UP", at=at) for at in (1e-3, "tuned"))
    levels = [fixed.first, fixed.second, tuned.first, tuned.second]
    assert re.findall(r"\d+\.\d%", FIRST_SCREEN) == [f"{each:.1f}%" for each in levels]
    all_tuned = [contrast(study, *arms) for study, *arms in ROWS.values()]
    assert not any(each.low > 0 for each in all_tuned)
    assert sum(each.high < 0 for each in all_tuned) == 1, "full training in one"


def test_the_sentences_about_the_schedule_hold() -> None:
    mini = contrast("recipe", "FP (minilm, layers 2)", "UP (minilm, layers 2)", at=1e-3)
    tiny = contrast("recipe", "UP", "FP", at=1e-3)
    assert min(mini.low, tiny.low) > 0
    assert mini.cell in FIRST_SCREEN
    assert tiny.cell in FIRST_SCREEN


def test_tuned_against_training_from_scratch() -> None:
    shorter = ("plane-minilm", "fresh-minilm", "plane-mnist")
    known = [(study, *arms, "") for study, *arms in ROWS.values() if study not in (*shorter, "smollm2")]
    others = [
        ("long-minilm", ""),
        ("long-mnist", ""),
        ("laptop-rothermel2021", "listops-short"),
        ("laptop-rothermel2021", "digits-lra"),
        ("laptop-lu2021", "bit-xor"),
        ("laptop-lu2021", "bit-memory"),
    ]
    pairs = known + [(study, "FP", "UP", task) for study, task in others]
    leads = [contrast(study, frozen, full.replace("UP", "UR"), task=task) for study, frozen, full, task in pairs]
    assert (len(leads), sum(each.low > 0 for each in leads), sum(each.high < 0 for each in leads)) == (8, 1, 2)
    clear = [each for each, p in zip(leads, holm([each.p for each in leads]), strict=True) if p < SIGNIFICANCE]
    assert (len(clear), max(each.high for each in clear) < 0) == (1, True), "corrected: none, one"


def test_tiny_lm_alone_is_shown_to_beat_a_linear_classifier() -> None:
    assert level("long-mnist", "UP").low > baseline("mnist", "linear classifier")
    for row, (study, *arms) in ROWS.items():
        linear = float(_table()[row][-1])
        assert not [arm for arm in arms if level(study, arm).low > linear]


def test_loras_best_rates_are_what_the_runs_say() -> None:
    early, found = lora_ratios(125), lora_ratios()
    (line,) = (line for line in FIRST_SCREEN.split("\n- ") if line.startswith("LoRA"))
    assert re.findall(r"\d\.\d", line) == [two_digits(each.value) for each in (*found.values(), *early.values())]
    assert all(str(width) in line for width in found)
    assert all(each.excludes(10) for each in (*found.values(), *early.values()))


def test_at_half_of_the_steps_freezing_leads_on_both_sets_of_seeds() -> None:
    both = pooled(("plane-minilm", "fresh-minilm"), "FP", "UP", budget=800)
    (line,) = (line for line in FIRST_SCREEN.splitlines() if "after 800 of 1,600 steps" in line)
    assert (both.n, both.low > 0) == (16, True)
    assert both.cell.removesuffix(")") in line
