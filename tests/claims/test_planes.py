"""The plane and the crossing budget: every answer, every verdict, and what holds of all curves."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_cells import Arm
from scipy import stats

from fpt.claims.case import NOT_TESTED, Case
from fpt.claims.planes import Crossing, by_budget, crossing, crossing_of, plane, plane_table, plane_tests
from fpt.claims.words import AGAINST, FOR, OPEN
from fpt.papers.schema import Rule
from fpt.results.stats import paired

BUDGETS = [10, 20, 40, 80, 160, 320]
RATES = [1e-4, 1e-3, 1e-2]
SEEDS = 8


def curves(means, sd=0.3, seed=0, seeds=SEEDS):
    """Seeds x budgets around these means, in percent."""
    noise = np.random.default_rng(seed).normal(0, sd, (seeds, len(means)))
    return pd.DataFrame((np.array(means) + noise) / 100, columns=BUDGETS[: len(means)])


def case(kind, first, second):
    rule = Rule.model_construct(kind=kind, rows=(first.name, second.name), at="tuned")
    table = SimpleNamespace(kind="accuracy")
    rows = {
        arm.name: SimpleNamespace(arm=arm, task=arm.task, label=arm.name, table=table, rate=lambda at: at)
        for arm in (first, second)
    }
    return Case(rule, rows)


def tuned(leads, edges=((), ())):
    """UP and FP whose tuned difference has these means, in points."""
    second = curves([50.0] * len(leads), seed=1)
    first = second + curves(leads)
    return Arm("UP", {"tuned": first}, edges[0]), Arm("FP", {"tuned": second}, edges[1])


ANSWERS = {  # leads by budget -> signs, verdict, the budget that is shown: the clearest that decides, or the last
    "between two": ([-5, -4, 0, 0, 3, 6], "--00++", FOR, 320),
    "between neighbours": ([-5, -4, -3, 2, 3, 6], "---+++", FOR, 320),
    "from the first": ([2, 4, 4, 4, 3, 6], "++++++", FOR, 320),
    "first, then open": ([2, 0, 0, 0, 0, 0], "+00000", FOR, 10),
    "by a later one": ([0, 0, 0, 4, 3, 6], "000+++", FOR, 320),
    "never": ([0, 0, 0, -1, -3, -6], "000---", AGAINST, 320),
    "there and back": ([-2, 2, 0, 0, 3, -6], "-+00+-", OPEN, 320),
    "lost": ([3, 0, 0, 0, 0, -6], "+0000-", OPEN, 320),
    "behind, then open": ([-3, -3, 0, 0, 0, 0], "--0000", OPEN, 320),
    "open": ([0, 0, 0, 0, 0, 0], "000000", OPEN, 320),
}


def cross(first, second, **edges):
    return Crossing({budget: paired(first[budget], second[budget]) for budget in first}, **edges)


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_of_the_crossing_with_its_verdict_and_the_budget_that_it_shows(name):
    leads, signs, verdict, budget = ANSWERS[name]
    (comparison,) = crossing(case("crossing", *tuned(leads)))
    assert "".join(crossing_of(*tuned(leads)).signs.values()) == signs
    assert comparison.word == verdict
    assert f"after {budget} steps" in comparison.label
    assert comparison.budget == budget
    assert comparison.estimate.mean == pytest.approx(leads[BUDGETS.index(budget)] / 100, abs=0.005)


@given(leads=st.lists(st.integers(-6, 6), min_size=6, max_size=6))
def test_the_p_of_a_crossing_is_that_of_the_budget_whose_estimate_it_shows(leads):
    (comparison,) = crossing(case("crossing", *tuned(leads)))
    least = min(comparison.supports, comparison.contradicts)
    own = (
        comparison.estimate.above(0) if comparison.supports <= comparison.contradicts else comparison.estimate.below(0)
    )
    assert least == pytest.approx(min(1.0, 2 * len(BUDGETS) * own)) or least == 1.0


def test_an_arm_that_trails_at_an_edge_decides_nothing():
    """Its accuracy is a lower bound: a better rate may lie beyond the grid. The arm that leads may be at an edge."""
    leads = [-5, -4, -3, 2, 3, 6]
    signs = {sign: "".join(found.signs.values()) for sign, found in (
        ("first", crossing_of(*tuned(leads, ((10, 20, 320), ())))),
        ("second", crossing_of(*tuned(leads, ((), (20, 160, 320))))),
    )}  # fmt: skip
    assert signs == {"first": "??-+++", "second": "---+??"}
    behind = [-5, -4, -3, -2, -3, -6]
    (comparison,) = crossing(case("crossing", *tuned(behind, ((320,), ()))))
    assert (comparison.word, comparison.note.partition(";")[0]) == (OPEN, "behind at 10, 20, 40, 80, 160 steps")
    found = crossing_of(*tuned(behind, ((320,), ())))
    assert found.band == [320]


def test_the_band_is_wider_than_where_the_signs_are_open():
    """The band is read at 95% at each budget, the signs at 95% for all of them together."""
    lead = pd.DataFrame({10: [-1.0, -1.1, -0.9, -1.2], 20: [-0.1, 0.1, -0.3, 0.2], 40: [0.1, 0.9, 0.5, 0.8]})
    found = cross(lead / 100, 0 * lead)
    assert found.tests[40].p == pytest.approx(stats.ttest_1samp(lead[40], 0).pvalue)
    assert SIGNIFICANT_AT_5_BUT_NOT_AT_1_7 < found.tests[40].p < 0.05
    assert (found.band, "".join(found.signs.values())) == ([20], "-00")


SIGNIFICANT_AT_5_BUT_NOT_AT_1_7 = 0.05 / 3


def test_a_collapsed_run_is_compared_by_sign_flips_and_a_fixed_test_set_widens():
    first, second = tuned([5] * 6)
    plain = by_budget(first, second)[20]
    first.by_rate["tuned"].loc[0, 10] = 0.1
    noisy = by_budget(replace(first, noise=1e-4), replace(second, noise=2e-4))
    assert noisy[10].flips
    assert not noisy[20].flips
    assert noisy[20].high - noisy[20].mean == pytest.approx(
        stats.t.ppf(0.975, SEEDS - 1) * np.sqrt(plain.sd**2 / SEEDS + 3e-4)
    )


leads = st.lists(st.floats(-6, 6), min_size=1, max_size=6)


@settings(deadline=None, max_examples=40)
@given(leads, st.integers(0, 99), st.sets(st.sampled_from(BUDGETS)), st.sets(st.sampled_from(BUDGETS)))
def test_whatever_the_curves(means, seed, first, second):
    one, other = curves(means, 2.0, seed), curves([0.0] * len(means), 2.0, seed + 1)
    found, mirrored = cross(one, other, edges=(first, second)), cross(other, one, edges=(second, first))
    swapped = str.maketrans("+-", "-+")
    assert "".join(found.signs.values()).translate(swapped) == "".join(mirrored.signs.values())
    assert found.band == mirrored.band
    decided = {budget for budget, sign in found.signs.items() if sign in "+-"}
    assert not decided & {*found.band}  # what holds for all budgets together holds for each
    supports, contradicts = found.p_values
    assert max(supports, contradicts) >= 0.05
    before, ahead, after = "".join(found.signs.values()).partition("+")
    assert (supports < 0.05) == (ahead == "+" and "-" not in after)
    assert (contradicts < 0.05) == (ahead == "" and before.endswith("-"))


def arms(by_rate, sd=0.3):
    """FP and UP whose differences at the rates have these means by budget, in points."""
    second = {rate: curves([50.0] * 6, sd, place) for place, rate in enumerate(by_rate)}
    first = {rate: second[rate] + curves(means, sd, 10 + place) for place, (rate, means) in enumerate(by_rate.items())}
    return Arm("FP", first), Arm("UP", second)


PLANES = {  # -> word of FP ahead, of UP ahead
    "each somewhere": ({1e-4: [-3] * 6, 1e-3: [0] * 6, 1e-2: [5] * 6}, 0.3, [FOR, FOR]),
    "one budget each": ({1e-3: [4, 0, 0, 0, 0, -4]}, 0.3, [FOR, FOR]),
    "one arm everywhere": (dict.fromkeys(RATES, [-3] * 6), 0.3, [AGAINST, FOR]),
    "equal everywhere": (dict.fromkeys(RATES, [0] * 6), 0.2, [AGAINST, AGAINST]),
    "wide intervals": (dict.fromkeys(RATES, [-3] * 5 + [0]), 6.0, [OPEN, OPEN]),
}


@pytest.mark.parametrize("name", PLANES)
def test_the_plane_is_judged_side_by_side(name):
    means, sd, words = PLANES[name]
    comparisons = plane(case("plane", *arms(means, sd)))
    assert [comparison.word for comparison in comparisons] == words
    assert [comparison.label.partition(" at ")[0] for comparison in comparisons] == ["FP - UP", "UP - FP"]


def test_a_plane_names_its_clearest_place():
    first, _ = plane(case("plane", *arms({1e-4: [-3] * 6, 1e-3: [0, 0, 0, 0, 9, 0], 1e-2: [-1] * 6})))
    assert first.label == "FP - UP at 1e-3 after 160 steps"
    assert (first.at, first.budget) == ("1e-3", 160)
    assert first.note == "the clearest of 18 pairs of rate and budget; significant at 1 of them"
    assert first.estimate.mean == pytest.approx(0.09, abs=0.005)


def test_what_one_place_shows_at_5_percent_is_no_verdict_of_a_plane():
    """One in twenty places of two equal arms does; Holm's correction leaves none."""
    cells = arms(dict.fromkeys(RATES, [0] * 6), 1.0)
    table = plane_table(plane_tests(*cells))
    assert (table["p"] < 0.05).any()
    assert [comparison.word for comparison in plane(case("plane", *cells))] != [FOR, FOR]
    assert (table["corrected"] >= 0.05).all()


@settings(deadline=None, max_examples=10)
@given(st.lists(st.floats(-4, 4), min_size=6, max_size=6), st.lists(st.floats(-4, 4), min_size=6, max_size=6))
def test_the_table_of_a_plane(low, high):
    first, second = arms({1e-3: low, 1e-2: high}, 1.0)
    table = plane_table(plane_tests(first, second))
    assert list(table["rate"]) == [1e-3] * 6 + [1e-2] * 6
    assert list(table["budget"]) == BUDGETS * 2
    difference = first.by_rate[1e-2][40] - second.by_rate[1e-2][40]
    row = table[(table["rate"] == 1e-2) & (table["budget"] == 40)].iloc[0]
    assert row["mean"] == pytest.approx(difference.mean())
    assert row["band"] == (row["low"] <= 0 <= row["high"])


def test_rates_that_only_one_arm_has_are_no_part_of_the_plane():
    first, _ = arms(dict.fromkeys(RATES, [0] * 6))
    other, _ = arms(dict.fromkeys([1e-3 * (1 + 1e-9), 1e-1], [0] * 6))
    assert {rate for rate, _ in plane_tests(first, other)} == {1e-3}
    _, lone = arms({3e-1: [0] * 6})
    assert {comparison.word for comparison in plane(case("plane", first, lone))} == {NOT_TESTED}
