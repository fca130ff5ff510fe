"""Intervals, equivalence, flipped signs and the number of seeds, on data whose answer is known."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from fpt.results.stats import (
    example_noise,
    holm,
    mean_of,
    paired,
    sampling_noise,
    seeds_needed,
)


def series(values: list[float], seeds: range | None = None) -> "pd.Series[float]":
    return pd.Series(values, index=list(seeds or range(len(values))), dtype=float)


UNEVEN = series([0.51, 0.62, 0.73, 0.6]), series([0.50, 0.60, 0.70, 0.59])


def test_a_paired_interval_is_the_textbook_one() -> None:
    # differences 1, 2, 3 points: mean 2, standard deviation 1, t(0.975, 2) = 4.3027
    test = paired(series([0.51, 0.62, 0.73]), series([0.50, 0.60, 0.70]))
    assert (test.n, round(test.mean, 9), round(test.sd, 9)) == (3, 0.02, 0.01)
    half = 4.302653 * 0.01 / math.sqrt(3)
    assert test.low == pytest.approx(0.02 - half, abs=1e-7)
    assert test.high == pytest.approx(0.02 + half, abs=1e-7)
    assert 0.05 < test.p < 0.1
    assert sorted(round(d, 4) for d in test.by_seed) == [0.01, 0.02, 0.03]


def test_seeds_are_paired_by_value_not_by_place() -> None:
    first, second = series([0.9, 0.8, 0.7], range(3)), series([0.7, 0.8, 0.9], range(3))
    assert paired(first, second.iloc[::-1]).mean == pytest.approx(paired(first, second).mean)
    assert paired(first, second[::-1].set_axis([0, 1, 2])).mean == pytest.approx(0.0)


def test_a_missing_seed_and_a_nan_leave_their_pair_out() -> None:
    first = series([0.9, 0.8, 0.7, 0.6], range(4))
    second = series([0.8, math.nan, 0.6, 0.5, 0.1], range(5))
    test = paired(first, second)
    assert test.n == 3
    assert test.mean == pytest.approx(0.1)


@pytest.mark.parametrize("pairs", [0, 1, 2])
def test_too_few_pairs_give_no_interval(pairs: int) -> None:
    test = paired(series([0.9] * pairs), series([0.1] * pairs))
    assert test.n == pairs
    assert math.isnan(test.low)
    assert test.p == test.above(0) == test.below(0) == 1.0


@pytest.mark.parametrize("pairs", [3, 5, 8])
def test_without_spread_the_signs_are_flipped(pairs: int) -> None:
    apart = paired(series([1.0] * pairs), series([0.5] * pairs))
    assert apart.flips
    assert (apart.mean, apart.sd) == (0.5, 0.0)
    assert apart.above(0) == pytest.approx(1 / 2**pairs)  # all of the signs one way
    assert apart.p == pytest.approx(2 / 2**pairs)
    assert apart.below(0) == 1.0
    assert apart.interval == ((0.5, 0.5) if pairs == 8 else (-math.inf, math.inf))
    same = paired(series([1.0] * pairs), series([1.0] * pairs))
    assert same.p == 1.0
    assert max(same.above(-0.01), same.below(0.01)) == pytest.approx(1 / 2**pairs)


def test_flipped_signs_by_hand() -> None:
    test = paired(series([0.5, 0.2, -0.1]), series([0.0, 0.0, 0.0]), exact=True)
    # sums of the eight choices of signs: 0.8, 0.6, 0.4, 0.2 and their negatives; 0.6 is the second largest
    assert test.above(0) == pytest.approx(2 / 8)
    assert test.p == pytest.approx(4 / 8)


@pytest.mark.parametrize("pairs", [15, 16])
def test_the_signs_of_up_to_16_pairs_are_all_flipped(pairs: int) -> None:
    test = paired(series([0.1] * pairs), series([0.0] * pairs))
    assert test.above(0) == 2.0**-pairs  # no p-value from drawn flips is an inverse power of two


def test_of_more_pairs_a_bounded_number_of_signs_is_flipped_the_same_each_time() -> None:
    apart = paired(series([0.1] * 20), series([0.0] * 20))
    assert 1 <= apart.above(0) * (2**16 + 1) <= 3  # 2**-20 if all were flipped, which takes more than a gigabyte
    values = series([0.3, 0.2, -0.2, -0.1] * 5)
    test, again = (paired(values, 0 * values, exact=True) for _ in range(2))
    assert test.above(0) == again.above(0)
    # The sum is 1, of variance 20 * 0.045 under the null and in steps of 0.2: half a step for continuity.
    assert test.above(0) == pytest.approx(scipy.stats.norm.sf((1 - 0.1) / math.sqrt(0.9)), abs=0.01)
    assert test.above(0) + test.below(0) > 1  # what was found counts on both sides


@pytest.mark.parametrize("noise", [0.0, 0.02**2])
def test_the_interval_excludes_what_the_tests_exclude(noise: float) -> None:
    test = paired(*UNEVEN, noise=noise)
    for limit in (test.low - 1e-6, test.low + 1e-6, test.high - 1e-6, test.high + 1e-6):
        assert (2 * min(test.above(limit), test.below(limit)) > 0.05) == (test.low < limit < test.high)
    assert (test.above(-math.inf), test.above(math.inf)) == (0.0, 1.0)
    assert (test.below(-math.inf), test.below(math.inf)) == (1.0, 0.0)


def test_equivalence_agrees_with_statsmodels() -> None:
    from statsmodels.stats.weightstats import ttost_paired

    rng = np.random.default_rng(0)
    first, second = rng.uniform(0.8, 0.9, 8), rng.uniform(0.8, 0.9, 8)
    test = paired(series(list(first)), series(list(second)))
    assert max(test.above(-0.01), test.below(0.01)) == pytest.approx(ttost_paired(first, second, -0.01, 0.01)[0])


@given(st.floats(0.001, 0.5), st.floats(0.001, 0.2))
@settings(max_examples=30)
def test_more_noise_needs_more_seeds(difference: float, sd: float) -> None:
    few, many = seeds_needed(difference, sd), seeds_needed(difference, 2 * sd)
    assert few is None or few >= 3
    assert many is None or few is not None
    assert few is None or many is None or many >= few


def test_seeds_needed_agrees_with_the_power_of_a_paired_t_test() -> None:
    from statsmodels.stats.power import TTestPower

    expected = math.ceil(TTestPower().solve_power(effect_size=0.8, alpha=0.05, power=0.8))
    assert seeds_needed(0.008, 0.01) == expected
    assert seeds_needed(1e-6, 0.1) is None  # more than 1,000
    assert seeds_needed(0.1, 0.0) == 3


def test_one_arm_alone() -> None:
    equal = mean_of(series([0.5, 0.5]))
    assert (equal.value, *equal.interval) == (0.5, 0.5, 0.5)
    noisy = mean_of(series([0.4, 0.5, 0.6]), noise=0.05**2)  # on one test set, which all seeds share
    half = 4.302653 * math.sqrt(0.1**2 / 3 + 0.05**2)
    assert noisy.interval == pytest.approx((0.5 - half, 0.5 + half), abs=1e-6)
    found = mean_of(series([0.4, 0.5, 0.6, math.nan]))
    assert (found.value, found.n) == (pytest.approx(0.5), 3)
    assert found.low == pytest.approx(0.5 - 4.302653 * 0.1 / math.sqrt(3), abs=1e-6)
    assert found.high > found.value
    assert math.isnan(mean_of(series([])).value)
    assert math.isnan(mean_of(series([0.5])).low)


def test_the_larger_spread_decides_interval_and_word_together() -> None:
    first, second = series([0.62, 0.66, 0.61, 0.65]), series([0.60, 0.60, 0.60, 0.60])
    alike = first - second  # what is left of a plain mean without each seed
    plain = paired(first, second)
    without = pd.DataFrame({seed: alike.drop(seed) for seed in alike.index}).T
    assert paired(first, second, without=without) == plain
    apart = without.add([0.0, 0.01, 0.02, 0.05], axis=0)  # without a seed the others choose another rate
    wider = paired(first, second, without=apart)
    left_out = apart.mean(axis=1)
    error = math.sqrt(3 / 4 * ((left_out - left_out.mean()) ** 2).sum())  # of the jackknife, by hand
    half = 3.182446 * error
    assert (wider.mean, wider.low, wider.high) == pytest.approx((plain.mean, plain.mean - half, plain.mean + half))
    assert wider.by_seed == plain.by_seed  # drawn as they are
    assert wider.above(wider.low) == pytest.approx(0.025)
    assert wider.above(0) > plain.above(0)
    narrower = without.sub(0.5 * (without.mean(axis=1) - without.mean(axis=1).mean()), axis=0)
    assert paired(first, second, without=narrower) == plain
    flips = [paired(first, second, exact=True, without=each).above(0) for each in (without, apart)]
    assert flips[0] == 1 / 2**4 < flips[1]  # one pseudo-value is below 0
    assert mean_of(alike, without=apart).interval == pytest.approx(wider.interval)


def over_test_sets(noise: bool, sets: int = 400, images: int = 400, seeds: int = 8) -> float:
    """How often the interval holds the difference of two equal models, over test sets drawn anew: each seed of a model
    answers an image as most seeds of it do with 90%, and all seeds are scored on the same images."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(sets):
        usual = rng.random((2, images)) < 0.8  # what each model answers rightly, whatever the seed
        flips = rng.random((2, seeds, images)) < 0.1
        scores = (usual[:, None, :] ^ flips).mean(axis=2)
        p = scores.mean(axis=1)
        added = float((p * (1 - p)).sum() / images) if noise else 0.0
        test = paired(series(list(scores[0])), series(list(scores[1])), noise=added)
        held += test.low < 0 < test.high
    return held / sets


def test_a_fixed_test_set_is_part_of_the_interval() -> None:
    assert over_test_sets(noise=False) < 0.7
    assert over_test_sets(noise=True) > 0.94  # conservative: p (1 - p) counts the spread between seeds again


def test_noise_widens_intervals_and_p_values_alike() -> None:
    plain, noisy = paired(*UNEVEN), paired(*UNEVEN, noise=0.02**2)
    assert noisy.high - noisy.low > plain.high - plain.low
    assert plain.above(0) < noisy.above(0) < 0.5
    much = paired(*UNEVEN, noise=1.0)  # beside which the seeds do not count
    assert (much.high - much.low) / 2 == pytest.approx(3.182446, abs=1e-3)  # t(0.975, 3)


def test_flipped_signs_are_never_surer_than_the_noise_allows() -> None:
    apart = [series([1.0] * 8), series([0.9] * 8)]
    assert paired(*apart).above(0) == pytest.approx(1 / 2**8)
    assert paired(*apart, noise=0.1**2).above(0) == pytest.approx(0.1587, abs=1e-4)  # one standard deviation


def test_the_noise_of_the_test_set_sets_a_limit_to_what_seeds_can_show() -> None:
    needed = seeds_needed(0.01, 0.01)
    assert (seeds_needed(0.01, 0.01, noise=0.001**2) or 0) > needed
    assert seeds_needed(0.01, 0.01, noise=0.01**2) is None


def test_holm_agrees_with_statsmodels() -> None:
    from statsmodels.stats.multitest import multipletests

    p_values = [0.01, 0.04, 0.03, 0.005, 0.04, 0.9]
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("level", "apart"), [(1e-13, 1e-14), (0.8, 0.01), (4e4, 300.0)])
def test_whether_there_is_spread_does_not_depend_on_the_unit(level: float, apart: float) -> None:
    seeds = np.arange(8)
    first = pd.Series(level + apart * np.cos(seeds))
    assert not paired(first, pd.Series(level + apart * np.sin(seeds))).flips
    assert paired(first, first - apart).flips


LEVEL, OTHER, TEXTS, OF_SEEDS = 1.4, 1.3, 3080, 0.05  # an arm is right where a latent score is below its level


def answered(
    rng: np.random.Generator, shared: float, own: float, rest: float, of_seeds: float = OF_SEEDS
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Right or not, 8 seeds x texts, of two arms. The spreads: how hard a text is for both, and for one of them; what
    is drawn anew in every run; and what a seed shifts."""
    common, found = rng.normal(0, shared, TEXTS), []
    for level in (LEVEL, OTHER):
        of_arm = common + rng.normal(0, own, TEXTS) + rng.normal(0, of_seeds, (8, 1)) + rng.normal(0, rest, (8, TEXTS))
        found.append(pd.DataFrame((of_arm < level).astype(float)))
    return found[0], found[1]


def pq_noise(*arms: pd.DataFrame) -> float:
    return sum(sampling_noise(float(arm.to_numpy().mean()), TEXTS) for arm in arms)


@pytest.mark.parametrize("spreads", [(1.0, 0.3, 0.3), (1.0, 0.0, 0.5), (0.0, 1.0, 0.3), (0.3, 0.3, 1.0)])
def test_an_interval_that_is_paired_over_examples_covers(spreads: tuple[float, float, float]) -> None:
    """A little more where texts bring most of the noise: the t-interval has the 7 degrees of freedom of the seeds."""
    rng, whole = np.random.default_rng(0), math.hypot(*spreads, OF_SEEDS)
    true = scipy.stats.norm.cdf(LEVEL / whole) - scipy.stats.norm.cdf(OTHER / whole)
    covered = 0
    for _ in range(250):
        one, two = answered(rng, *spreads)
        test = paired(one.mean(axis=1), two.mean(axis=1), noise=example_noise(one - two))
        covered += test.low <= true <= test.high
    assert 0.92 <= covered / 250 <= 0.995


def test_arms_that_miss_the_same_examples_have_far_less_noise_than_each_alone() -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        one, two = answered(rng, 1.0, 0.2, 0.2)
        paired_over, alone = (
            paired(one.mean(axis=1), two.mean(axis=1), noise=noise)
            for noise in (example_noise(one - two), pq_noise(one, two))
        )
        assert paired_over.test_variance < 0.15 * alone.test_variance
        assert paired_over.high - paired_over.low < 0.75 * (alone.high - alone.low)


def test_arms_that_are_independent_have_the_noise_of_both() -> None:
    rng = np.random.default_rng(2)
    pairs = [answered(rng, 0.0, 1.0, 0.0, of_seeds=0.0) for _ in range(20)]
    shares = [example_noise(one - two) / pq_noise(one, two) for one, two in pairs]
    assert np.mean(shares) == pytest.approx(1, abs=0.02)


def test_what_is_drawn_anew_in_every_run_is_the_seeds_noise_alone() -> None:
    rng = np.random.default_rng(3)
    one, two = answered(rng, 0.0, 0.0, 1.0)
    assert example_noise(one - two) < 0.05 * pq_noise(one, two)
    assert example_noise(one - one) == 0


def test_example_noise_is_the_textbook_estimate_of_a_two_way_layout() -> None:
    """Mean squares of rows, columns and rest (Searle, Casella and McCulloch 1992, table 4.8)."""
    apart = pd.DataFrame([[1, 0, 0, -1], [1, 0, 1, 0], [1, -1, 0, 0]], dtype=float)
    n, m = apart.shape
    grand, seeds, texts = apart.to_numpy().mean(), apart.mean(axis=1), apart.mean()
    columns = n * ((texts - grand) ** 2).sum() / (m - 1)
    whole = ((apart - grand) ** 2).to_numpy().sum()
    rest = (whole - (m - 1) * columns - m * ((seeds - grand) ** 2).sum()) / ((n - 1) * (m - 1))
    assert example_noise(apart) == pytest.approx((columns - rest) / n / m)
