"""What the explorer shows, as its script reads it: the numbers of the tables, and valid HTML around them."""

import json
from pathlib import Path
from typing import Any

import pytest
import synthetic
from bs4 import BeautifulSoup

from fpt.claims.planes import crossing_of, plane_table, plane_tests
from fpt.results import StudyCells
from fpt.results.arm import Arm
from fpt.results.baselines import LINEAR, known_scores
from fpt.results.runs import rate_text
from fpt.results.stats import SIGNIFICANCE
from fpt.show import explorer, setups
from fpt.show.explore import HOLDS_ZERO, SURE, UNCORRECTED, Setups


@pytest.fixture(scope="module")
def arms(study: Path) -> dict[str, Arm]:
    (found,) = setups([StudyCells(study)]).values()
    return found


@pytest.fixture(scope="module")
def page(study: Path) -> BeautifulSoup:
    return BeautifulSoup(explorer(setups([StudyCells(study)]))._repr_html_(), "html.parser")


@pytest.fixture(scope="module")
def setup(page: BeautifulSoup) -> dict[str, Any]:
    (found,) = json.loads(page.select_one(".fpt-explorer script[type='application/json']").string)  # type: ignore
    return found  # type: ignore[no-any-return]


def test_there_is_a_setup_with_its_arms_pairs_rates_and_budgets(setup: dict[str, Any]) -> None:
    assert (setup["task"], setup["model"]) == ("Digits", "tiny-lm (laptop)")
    assert setup["about"] == "Study laptop, own results, 8 seeds. Bands: 95% intervals."
    assert list(setup["arms"]) == ["UP", "UR", "FP", "FR"]
    assert setup["pairs"][0]["arms"] == ["UP", "FP"]
    assert [pair["arms"] for pair in setup["pairs"][1::2]] == [["UP", "UR"], ["UR", "FP"], ["FP", "FR"]]
    assert len(setup["pairs"]) == 6
    assert setup["rates"] == ["1e-4", "1e-3", "1e-2", "1e-1"]
    assert setup["budgets"] == sorted(setup["budgets"])


def test_points_are_means_with_their_intervals(setup: dict[str, Any], arms: dict[str, Arm]) -> None:
    points_of = setup["arms"]["UP"]["points"]
    assert len(points_of) == len(arms["UP"].budgets)
    for budget, rate in ((12, 1e-4), (400, 1e-3)):
        found = arms["UP"].estimate(rate, budget).in_percent
        mean, low, high, words = points_of[str(budget)][rate_text(rate)]
        assert (mean, low, high) == pytest.approx((found.value, *found.interval), abs=0.005)
        assert words.startswith(f"{found.value:.1f}%")


def test_a_linear_classifier_is_to_beat(setup: dict[str, Any]) -> None:
    assert setup["linear"] == pytest.approx(100 * known_scores("digits")[LINEAR].share, abs=0.005)


def test_the_plane_and_the_tuned_differences_are_those_of_the_tables(
    setup: dict[str, Any], arms: dict[str, Arm]
) -> None:
    looks = set()
    for pair in setup["pairs"]:
        first, second = (arms[arm] for arm in pair["arms"])
        tests, found = plane_tests(first, second), crossing_of(first, second)
        assert sum(map(len, pair["plane"].values())) == len(tests)
        for row, test in zip(plane_table(tests).itertuples(), tests.values(), strict=True):
            mean, *texts, look = pair["plane"][str(row.budget)][rate_text(row.rate)]
            assert mean == pytest.approx(100 * row.mean, abs=0.005)
            assert texts == [*test.in_points.texts(signed=True)]
            assert (look == SURE, look == HOLDS_ZERO) == (row.corrected < SIGNIFICANCE, row.band)
            looks.add(look)
        for budget, test in found.tests.items():
            *numbers, sign = pair["tuned"][str(budget)]
            assert numbers == [*test.in_points.texts(signed=True)]
            alone = found.signs[budget] == "0" and (test.low > 0 or test.high < 0)
            assert sign == (UNCORRECTED if alone else found.signs[budget])
    assert SURE in looks
    assert looks - {SURE}, "nothing is unsure"


PLAIN = """
name: mine
defaults: {compute_type: float32, learning_rates: [1e-3, 1e-2], seeds: [0, 1, 2]}
sweeps:
"""
PAIR = "arm: [frozen-pretrained, unfrozen-pretrained]"
CROSSED = f"{PLAIN}  - {{task: bit-xor, task_options: [{{length: 5}}, {{length: 16}}], {PAIR}}}"
FIXED_FIRST = f"""{PLAIN}
  - {{task: digits, arm: frozen-pretrained}}
  - {{task: digits, arm: frozen-random, random_init: fixed}}
  - {{task: digits, arm: frozen-random}}
"""
FEW = f"  - {{task: digits, {PAIR}, steps: 100}}"
LONGER = f"""{PLAIN}
  - {{task: digits, {PAIR}, steps: [100, 400]}}
  - {{task: digits, arm: unfrozen-random, steps: 400, batch_size: 16}}
"""


def made(folder: Path, text: str, name: str = "mine") -> Setups:
    return setups([StudyCells(synthetic.finish(synthetic.workspace(folder, name, text)))])


def test_random_weights_of_matched_scale_stand_for_the_arm_whatever_is_written_first(tmp_path: Path) -> None:
    (cells,) = made(tmp_path, FIXED_FIRST).values()
    inits = {name: cell.spec.random_init for name, cell in cells.items()}
    assert inits == {"FP": "matched", "FR": "matched"}


def test_what_is_not_the_same_task_is_another_setup(tmp_path: Path) -> None:
    found = made(tmp_path, CROSSED)
    assert list(found) == [("Bit XOR", f"tiny-lm, length {length} (mine)") for length in (5, 16)]
    for length, cells in zip((5, 16), found.values(), strict=True):
        assert list(cells) == ["UP", "FP"]
        assert {cell.spec.task_options["length"] for cell in cells.values()} == {length}
    shown = json.loads(BeautifulSoup(explorer(found)._repr_html_(), "html.parser").select_one("script").string)  # type: ignore
    assert {(each["task"], each["model"]) for each in shown} == {
        ("Bit XOR", "tiny-lm, length 5 (mine)"), ("Bit XOR", "tiny-lm, length 16 (mine)"),
    }  # fmt: skip


def test_own_data_in_the_place_of_a_papers_task_have_no_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.npz").write_bytes(b"data")
    found = made(tmp_path, synthetic.STUDY.replace("digits", "'npz:mine.npz'"))
    assert list(found) == [("npz:mine.npz", "tiny-lm (mine)")]
    html = explorer({(task, f"{model} </script>"): cells for (task, model), cells in found.items()})._repr_html_()
    assert html.count("</script>") == 1  # nothing in the data ends its element
    (shown,) = json.loads(BeautifulSoup(html, "html.parser").select_one("script").string)  # type: ignore
    assert (shown["floor"], list(shown["arms"])) == (None, ["UP", "UR", "FP", "FR"])
    assert all(pair["plane"] for pair in shown["pairs"])


def test_what_was_not_trained_alike_is_not_compared(tmp_path: Path) -> None:
    found = made(tmp_path, LONGER)
    assert {name: list(cells) for name, cells in found.items()} == {
        ("Digits", "tiny-lm, steps 100 (mine)"): ["UP", "FP"], ("Digits", "tiny-lm, steps 400 (mine)"): ["UP", "FP"],
    }  # fmt: skip
    for steps, cells in zip((100, 400), found.values(), strict=True):
        assert {cell.spec.steps for cell in cells.values()} == {steps}


def test_the_study_that_is_asked_for_is_shown_first(tmp_path: Path) -> None:
    found = {**made(tmp_path, LONGER), **made(tmp_path, PLAIN + FEW, "other")}
    for first, expected in {"": ["mine", "mine", "other"], "other": ["other", "mine", "mine"]}.items():
        html = BeautifulSoup(explorer(found, first)._repr_html_(), "html.parser")
        assert [each["study"] for each in json.loads(html.select_one("script").string)] == expected  # type: ignore


def test_a_line_stands_by_where_scripts_are_off(page: BeautifulSoup) -> None:
    assert [line.name for line in page.select(".fpt-explorer noscript > *")] == ["p"]


def test_without_results_the_page_says_so() -> None:
    assert explorer({})._repr_html_() == "<p>Nothing was run yet.</p>"
