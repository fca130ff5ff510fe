"""Estimates: what texts say of no effect, how numbers are rounded, and that turning round changes nothing else."""

import math
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from fpt.results.estimate import (
    EXPONENT,
    MINUS,
    NATS,
    PERCENT,
    POINTS,
    SIGNIFICANCE,
    TIMES,
    Estimate,
    number_text,
    rounded,
    two_digits,
)
from fpt.results.stats import paired

ENDS = st.floats(-100, 100).map(lambda value: round(value, 8))
FLIPPED = (0.3, 0.1, -0.2, 0.4, 0.15, 0.25, 0.2)


def known(value: float, low: float, high: float, unit: str = POINTS) -> Estimate:
    return Estimate(value, unit=unit, ends=(low, high))


def by_t(value: float = 0.02, unit: str = "share", **fields: float) -> Estimate:
    return Estimate(value, 8, unit, seed_variance=0.01**2, df=7, **fields)


def read_back(text: str) -> list[float]:
    """The value and the ends that a cell prints."""
    plain = text.replace(MINUS, "-").replace(",", "").replace("(", "").replace(")", "").replace(" to ", " ")
    return [float(each) for each in plain.split()]


@pytest.mark.parametrize("unit", [POINTS, PERCENT, NATS, EXPONENT])
@given(given=st.tuples(ENDS, ENDS, ENDS).map(sorted))
@example(given=[-1.0, -1.0, -2e-08])
def test_a_printed_interval_holds_0_where_the_interval_does(unit: str, given: list[float]) -> None:
    low, value, high = given
    estimate = known(value, low, high, unit)
    shown = read_back(estimate.cell)
    assert (shown[1] <= 0 <= shown[2]) == estimate.open
    assert shown[1] <= shown[0] <= shown[2]
    if unit == POINTS and estimate.open:
        assert all(text[0] in f"+{MINUS}0" for text in estimate.cell.replace("(", "").split() if text != "to")


@given(st.tuples(*[st.floats(0.001, 1000)] * 3).map(sorted))
def test_a_printed_ratio_holds_1_where_the_interval_does(given: list[float]) -> None:
    low, value, high = given
    assume(all(each == 1 or abs(each - 1) > 1e-8 for each in given))
    estimate = known(value, low, high, TIMES)
    shown = read_back(estimate.cell)
    assert (shown[1] <= 1 <= shown[2]) == estimate.open


@given(st.integers(-(10**9), 10**9), st.integers(0, 8), st.integers(0, 4))
def test_a_number_is_rounded_once_as_decimals_are(digits: int, places: int, kept: int) -> None:
    value = Decimal(digits).scaleb(-places)
    expected = value.quantize(Decimal(1).scaleb(-kept), ROUND_HALF_UP)
    assert Decimal(rounded(float(value), kept).replace(MINUS, "-").replace(",", "")) == expected


@given(st.tuples(ENDS, ENDS, ENDS).map(sorted))
def test_turned_round_an_interval_is_mirrored(given: list[float]) -> None:
    low, value, high = given
    turned = -known(value, low, high)
    assert (turned.value, turned.low, turned.high) == (-value, -high, -low)
    assert turned.open == known(value, low, high).open
    assert -turned == known(value, low, high)


@pytest.mark.parametrize(
    "estimate",
    [by_t(), by_t(test_variance=1e-4), by_t(slack=0.01), by_t(2.0, TIMES), Estimate(0.17, 7, flips=FLIPPED)],
    ids=["t", "with noise of the test", "with slack", "a ratio", "by flips"],
)
def test_turned_round_the_other_side_has_the_p(estimate: Estimate) -> None:
    turned = -estimate
    for limit in (0.5, 1.0, 3.0):
        mirrored = 1 / limit if estimate.unit == TIMES else -limit
        assert turned.below(mirrored) == pytest.approx(estimate.above(limit))
        assert turned.above(mirrored) == pytest.approx(estimate.below(limit))
    assert turned.p == pytest.approx(estimate.p)
    ends = sorted((1 / turned.low, 1 / turned.high) if estimate.unit == TIMES else (-turned.low, -turned.high))
    assert ends == pytest.approx(estimate.interval, abs=1e-6)


def test_interval_and_p_are_those_of_a_t_test_with_both_variances() -> None:
    found, error = by_t(test_variance=3e-4), 0.02
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 7) * error)
    assert found.above(0.01) == pytest.approx(stats.t.sf(0.01 / error, 7))
    assert found.p == pytest.approx(2 * stats.t.sf(1, 7))
    assert (found.above(-math.inf), found.above(math.inf)) == (0.0, 1.0)


@pytest.mark.parametrize("unit", ["share", TIMES])
def test_slack_widens_the_interval_and_the_p_values_alike(unit: str) -> None:
    found = Estimate(2.0, 4, unit, seed_variance=1e-4, df=3, slack=0.05)
    assert found.above(found.low) == pytest.approx(0.025)
    assert found.below(found.high) == pytest.approx(0.025)
    assert found.above(found.value) == found.below(found.value) == 1


def test_without_any_spread_what_lies_beyond_the_slack_is_certain() -> None:
    found = Estimate(2.0, 4, TIMES, seed_variance=0.0, df=3, slack=0.05)
    assert (found.above(1.0), found.above(1.9), found.below(1.9)) == (0, 1, 1)


@pytest.mark.parametrize("found", [by_t(), Estimate(0.17, 7, flips=FLIPPED)], ids=["t", "flips"])
def test_in_points_it_is_the_same_a_hundred_times(found: Estimate) -> None:
    points = found.in_points
    assert points.unit == POINTS
    assert points.value == pytest.approx(100 * found.value)
    assert points.interval == pytest.approx((100 * found.low, 100 * found.high))
    assert (points.p, points.above(1.0)) == pytest.approx((found.p, found.above(0.01)))
    assert points.sd == pytest.approx(100 * found.sd, nan_ok=True)


def test_what_is_not_known_excludes_nothing() -> None:
    none = Estimate(n=4, unit=TIMES, reason="the best rate is an end")
    assert none.open
    assert not none.excludes(10)
    assert none.above(0.001) == none.below(1000) == none.p == 1
    assert none.cell == str(none) == "the best rate is an end"
    assert Estimate().cell == "-"


@pytest.mark.parametrize(
    ("estimate", "cell", "text"),
    [
        (known(6.4, 3.3, 9.5), "6.4 (3.3 to 9.5)", "6.4 points (3.3 to 9.5)"),
        (known(0.5, -0.04, 1), f"+0.5 ({MINUS}0.04 to +1.0)", f"+0.5 points ({MINUS}0.04 to +1.0)"),
        (known(-3, -6, -0.004), f"{MINUS}3.0 ({MINUS}6.0 to {MINUS}0.004)",
         f"{MINUS}3.0 points ({MINUS}6.0 to {MINUS}0.004)"),
        (known(96.9, 95.6, 98.2, PERCENT), "96.9 (95.6 to 98.2)", "96.9% (95.6 to 98.2)"),
        (known(12, 0, 30, PERCENT), "12.0 (0.0 to 30.0)", "12.0% (0.0 to 30.0)"),
        (known(96.9, math.nan, math.nan, PERCENT), "96.9", "96.9%"),
        (known(100, 10, 1000, TIMES), "100 (10 to 1,000)", "100 times (10 to 1,000)"),
        (known(3.2, 1.004, math.inf, TIMES), "3.2 (1.004 to any)", "3.2 times (1.004 to any)"),
        (known(0.1465, 0.14, 0.153, NATS), "0.147 (0.140 to 0.153)", "0.147 nats (0.140 to 0.153)"),
        (known(-0.5, -0.75, -0.25, EXPONENT), f"{MINUS}0.50 ({MINUS}0.75 to {MINUS}0.25)",
         f"exponent {MINUS}0.50 ({MINUS}0.75 to {MINUS}0.25)"),
    ],
)  # fmt: skip
def test_in_a_cell_and_in_a_sentence(estimate: Estimate, cell: str, text: str) -> None:
    assert estimate.cell == cell
    assert str(estimate) == text


def test_signed_where_asked_for() -> None:
    assert known(6.4, 3.3, 9.5).texts(signed=True) == ("+6.4", "+3.3 to +9.5")


@pytest.mark.parametrize(
    ("value", "text"),
    [(99.6, "100"), (0.5, "0.5"), (1234.0, "1,200"), (-0.16, f"{MINUS}0.16"), (0.0, "0")],
)
def test_two_digits_are_no_power_of_ten_and_have_a_true_minus(value: float, text: str) -> None:
    assert two_digits(value) == text


@pytest.mark.parametrize(
    ("value", "sign", "text"),
    [(-1234.5, "", f"{MINUS}1,235"), (0.5, "+", "+1"), (-0.2, "", "0"), (-math.inf, "", f"{MINUS}inf")],
)
def test_a_rounded_number_has_a_true_minus(value: float, sign: str, text: str) -> None:
    assert rounded(value, 0, sign) == text


def test_a_second_digit_where_one_hides_the_side_of_0() -> None:
    shown = [number_text(each, POINTS, signed=True) for each in (0.04, -0.04, 0.004, 0.0)]
    assert shown == ["+0.04", f"{MINUS}0.04", "0.0", "0.0"]


@given(st.lists(st.floats(-0.5, 0.5), min_size=6, max_size=10, unique=True))
@settings(max_examples=20)
def test_by_sign_flips_the_ends_are_where_the_test_refuses(differences: list[float]) -> None:
    test = paired(pd.Series(differences), 0.0, exact=True)
    low, high = test.interval
    step = 1e-6 + 1e-4 * np.ptp(differences)
    assert low <= test.mean <= high
    assert test.above(low - step) <= SIGNIFICANCE / 2
    assert test.below(high + step) <= SIGNIFICANCE / 2
    assert test.above(low + step) > SIGNIFICANCE / 2 or low + step >= test.mean


def test_five_pairs_refuse_nothing_by_sign_flips() -> None:
    assert paired(pd.Series([1.0, 2, 3, 4, 5]), 0.0, exact=True).interval == (-math.inf, math.inf)


@pytest.mark.parametrize(("pairs", "bounded"), [(3, False), (5, False), (6, True), (8, True)])
@pytest.mark.parametrize("apart", [0.05, 0.0])
def test_equal_differences_of_few_pairs_exclude_nothing(pairs: int, bounded: bool, apart: float) -> None:
    test = paired(pd.Series([0.80 + apart] * pairs), pd.Series([0.80] * pairs))
    low, high = test.interval
    assert math.isfinite(low) == math.isfinite(high) == bounded
    assert (test.above(test.mean - 0.01) <= SIGNIFICANCE / 2) == bounded
