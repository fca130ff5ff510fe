"""The ratio of best rates: parabolas whose lowest point is known, every reason to leave it open, and the simulation."""

import math

import numpy as np
import pandas as pd
import pytest

from fpt.errors import SpecError
from fpt.results.contrasts import find_arm
from fpt.results.rate_ratio import last_losses, of_arms, rate_ratio, slope, slope_in_steps, slope_of_arms
from fpt.results.rate_ratio_simulated import Made, simulated, table

GRID = 10.0 ** np.arange(-4.5, -1.4, 0.25)


def valley(place: float, seeds: int = 4, grid: np.ndarray = GRID, curvature: float = 0.1) -> pd.DataFrame:
    """Losses whose logarithm is a parabola with its lowest point at 10^place; a seed has a level of its own."""
    score = curvature * (np.log10(grid) - place) ** 2
    return pd.DataFrame(np.exp(score + 0.1 * np.arange(seeds)[:, None]), range(seeds), grid)


def lost_at(rate: float) -> pd.DataFrame:
    """The same with its lowest point at 1e-3, and one run that diverged at a rate."""
    plane = valley(-3.0)
    plane.loc[1, rate] = math.nan
    return plane


@pytest.mark.parametrize(("first", "second"), [(-2.6, -3.1), (-3.1, -3.1), (-3.4, -2.4)])
def test_of_exact_parabolas_the_ratio_is_exact_and_the_interval_what_the_rule_adds(first, second):
    found = rate_ratio(valley(first), valley(second))
    assert found.value == pytest.approx(10 ** (first - second))
    assert math.log10(found.high / found.value) == pytest.approx(0.05)
    assert math.log10(found.value / found.low) == pytest.approx(0.05)
    assert found.first.rate == pytest.approx(10**first)
    assert found.excludes(10.0**3)
    assert not found.excludes(found.value)


def test_the_interval_is_the_jackknifes_over_paired_seeds():
    places = np.array([-3.0, -2.9, -3.1, -2.95])
    moved = pd.concat([valley(place, 4).iloc[[seed]] for seed, place in enumerate(places)])
    found = rate_ratio(moved, valley(-3.0))
    error = places.std(ddof=1) / 2  # the lowest point of a mean of equally curved parabolas is the mean of theirs
    assert math.log10(found.high / found.value) == pytest.approx(3.182446 * error + 0.05)
    both = rate_ratio(moved, moved * 1.1)  # seeds that move both arms alike say nothing against the ratio
    assert both.high / both.value == pytest.approx(10**0.05)


def test_seeds_that_only_one_arm_has_are_left_out():
    assert rate_ratio(valley(-3.0, 6), valley(-2.9, 4)).n == 4
    with pytest.raises(SpecError, match="2 seeds"):
        rate_ratio(valley(-3.0, 6), valley(-3.0, 2))


def test_a_grid_as_it_is_written_has_two_rates_on_each_side():
    written = np.array([1e-4, 1.8e-4, 3e-4, 5.6e-4, 1e-3, 1.8e-3, 3e-3, 5.6e-3, 1e-2])
    for place in np.log10(written[2:-2]):
        assert len(rate_ratio(valley(place, grid=written), valley(-3.0)).first.window) == 5


OPEN = {
    "an end of the grid": valley(-4.3),
    "no lowest point": valley(-3.0),
    "among the rates": pd.DataFrame(
        np.exp(np.where(GRID > 1e-3, 5.0, 0.001 * np.log10(GRID) ** 2)[None].repeat(4, 0)), range(4), GRID
    ),
    "diverged": lost_at(GRID[7]),
    "fewer than": valley(-3.0, grid=np.array([1e-4, 1e-3, 1e-2])),
}


@pytest.mark.parametrize("reason", OPEN)
def test_a_curve_without_a_lowest_point_inside_leaves_the_ratio_open(reason):
    curve = OPEN[reason]
    if reason == "no lowest point":  # the best rate is so by chance alone: to both sides the curve bends down
        curve = valley(-3.0, curvature=0.0) + 1.0
        curve.iloc[:, 4:9] += np.array([0.01, 0.05, 0.0, 0.05, 0.01]) - 1.0
    found = rate_ratio(curve, valley(-3.0))
    assert reason in found.reason
    assert math.isnan(found.value)
    assert not any(found.excludes(ratio) for ratio in (0.1, 1, 10))


def test_a_run_that_diverged_far_from_the_best_rate_changes_nothing():
    whole = rate_ratio(valley(-3.0), valley(-3.2))
    lost = lost_at(GRID[-1])
    assert rate_ratio(lost, valley(-3.2)) == whole


def test_of_published_runs_the_losses_are_those_of_the_last_step():
    arm = find_arm("plane-minilm", "FP")
    plane, curves = last_losses(arm), arm.curves
    row = curves[(curves["step"] == arm.steps) & (curves["seed"] == plane.index[0])]
    assert plane.iloc[0].tolist() == row.sort_values("learning_rate")["validation_loss"].tolist()
    assert of_arms("plane-minilm", "FP", "UP").n == len(plane)


def test_the_p_values_are_those_of_the_interval():
    moved = pd.concat([valley(place, 4).iloc[[seed]] for seed, place in enumerate((-3.0, -2.9, -3.1, -2.95))])
    found = rate_ratio(moved, valley(-3.3))
    assert found.above(found.low) == pytest.approx(0.025)
    assert found.below(found.high) == pytest.approx(0.025)
    assert found.above(found.value) == found.below(found.value) == 1
    none = rate_ratio(valley(-4.4), valley(-3.0))
    assert none.above(0.001) == none.below(1000) == 1


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_of_exact_parabolas_the_exponent_is_exact(exponent):
    widths = (64, 128, 256)
    found = slope({width: (valley(-3.2 + exponent * math.log10(width / 64)), valley(-3.2)) for width in widths})
    assert found.value == pytest.approx(exponent)
    assert found.high - found.value == pytest.approx(0.05 / math.log10(4))
    assert [each for each in (0.0, 0.5, 1.0) if found.excludes(each)] == [
        each for each in (0.0, 0.5, 1.0) if each != exponent
    ]


def test_an_exponent_that_cannot_be_known():
    both = (valley(-3.0), valley(-3.0))
    with pytest.raises(SpecError, match="two"):
        slope({128: both})
    with pytest.raises(SpecError, match="2 seeds"):
        slope({64: both, 128: (valley(-3.0, 2), valley(-3.0))})
    found = slope({64: both, 128: (valley(-4.4), valley(-3.0))})
    assert "end of the grid" in found.reason
    assert not found.excludes(0)
    assert found.above(-9) == found.below(9) == 1


def exponents(true: float, trials: int) -> list:
    """What the rule says of made curves of three widths whose ratio goes with this power of the width."""
    random, found = np.random.default_rng(0), []
    noise = Made(curvature=0.06, skew=0.02, of_seed=0.01, of_run=0.004, of_place=0.03)
    for _ in range(trials):
        levels = 0.5 + noise.of_seed * random.standard_normal(8)
        planes = {}
        for width in (64, 128, 256):
            places = (-3.2 + true * math.log10(width / 64), -3.2)
            planes[width] = tuple(noise.losses(place, GRID, levels, random) for place in places)
        found.append(slope(planes))
    return found


@pytest.mark.parametrize("true", [0.0, 0.5, 1.0])
def test_on_made_curves_the_interval_holds_the_exponent(true):
    found = exponents(true, 40)
    assert sum(not each.excludes(true) for each in found) >= 36
    far = 1.0 if true < 0.75 else 0.0
    if true != 0.5:
        assert sum(each.excludes(far) for each in found) >= 30


@pytest.mark.slow
def test_on_made_curves_the_interval_holds_the_ratio_and_tells_two_from_ten():
    found = table(300)
    assert found["covered"].min() >= 0.93, found.to_string()
    assert found["open"].max() <= 0.07
    two = found[found["ratio"] == 2].set_index("scenario")
    assert two["excludes 10"].min() >= 0.93, found.to_string()
    assert two.loc["as in the pilot", "excludes 1"] >= 0.9
    assert found[found["ratio"] == 1].set_index("scenario").loc["as in the pilot", "excludes 2"] >= 0.9


def test_of_published_runs_the_exponent_is_that_of_their_losses_by_width():
    arms = {64: ("LP (tiny-lm-64)", "UP (tiny-lm-64)"), 256: ("LP (tiny-lm-256)", "UP (tiny-lm-256)")}
    planes = {}
    for width, both in arms.items():
        first, second = (last_losses(find_arm("lora-text", name)) for name in both)
        planes[width] = first, second
    assert slope_of_arms("lora-text", list(arms.values())) == slope(planes)
    with pytest.raises(SpecError, match="FP"):
        slope_of_arms("lora-text", [("FP", "UP")])


def test_made_grids_have_three_rates_to_each_side_of_where_the_valley_was_thought_to_be(monkeypatch):
    exact, seen = Made(curvature=0.1, skew=0, of_seed=0, of_run=0, of_place=0), []
    monkeypatch.setattr("fpt.results.rate_ratio_simulated.rate_ratio", lambda *arms: seen.extend(arms))
    simulated(2.0, exact, exact, 3, 50, np.random.default_rng(0))
    middles = np.log10([arm.columns[3] for arm in seen]) - np.tile([math.log10(2) - 3, -3], 50)
    assert {len(arm.columns) for arm in seen} == {7}
    assert 0.1 < np.abs(middles).max() <= 0.125


def test_the_exponent_in_steps_has_the_models_as_its_unit():
    exponents, steps = np.array([-0.3, -0.2, -0.1]), (125, 250, 1000)
    found = slope_in_steps({at: 3 * at**exponents for at in steps})
    assert (found.value, found.n, found.unit) == (pytest.approx(-0.2), 3, "exponent")
    assert found.high - found.value == pytest.approx(4.302653 * 0.1 / math.sqrt(3))
    assert math.isnan(slope_in_steps({at: at ** exponents[:2] for at in steps}).low)
