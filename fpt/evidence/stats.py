"""Paired tests, partial conjunction, and the number of seeds that would decide."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

SIGNIFICANCE = 0.05
POINT = 0.01  # accuracies are fractions
MINIMUM_PAIRS = 3  # two pairs carry a t-interval of 12.7 standard errors: no verdict from them
MOST_SEEDS = 1000
NO_SPREAD = 1e-12


@dataclass(frozen=True)
class Paired:
    """The mean paired difference with its 95% t-interval, in the units of what was compared.

    `exact`: the differences have no spread or a run collapsed; then there is no interval, and p-values come from
    flipping signs. Without enough pairs everything but `n` is nan.
    """

    n: int
    mean: float = math.nan
    sd: float = math.nan
    low: float = math.nan
    high: float = math.nan
    differences: tuple[float, ...] = ()  # one a pair
    exact: bool = False

    @property
    def p(self) -> float:
        """Two-sided p of a mean of 0."""
        return float(np.minimum(1.0, 2 * np.minimum(self.above(0), self.below(0))))

    def above(self, limit: float) -> float:
        """One-sided p: small where the mean is above `limit`."""
        return self._tail(limit, 1)

    def below(self, limit: float) -> float:
        """One-sided p: small where the mean is below `limit`."""
        return self._tail(limit, -1)

    def _tail(self, limit: float, sign: int) -> float:
        if self.n < MINIMUM_PAIRS:
            return math.nan
        if math.isinf(limit):
            return float(limit * sign > 0)
        beyond = sign * (np.array(self.differences) - limit)
        if not self.exact:
            return float(stats.ttest_1samp(beyond, 0.0, alternative="greater").pvalue)
        flips = stats.permutation_test(
            (beyond,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="greater"
        )
        return float(flips.pvalue)


def paired(first: "pd.Series[float]", second: "pd.Series[float]", exact: bool = False) -> Paired:
    """Compare two series indexed by seed: seeds in only one of them, and pairs with a nan, are left out."""
    both = pd.concat([first, second], axis=1, join="inner").dropna()
    n = len(both)
    if n < MINIMUM_PAIRS:
        return Paired(n)
    difference = both.iloc[:, 0].to_numpy(float) - both.iloc[:, 1].to_numpy(float)
    each, mean = tuple(map(float, difference)), float(difference.mean())
    if np.ptp(difference) < NO_SPREAD:  # the t statistic is 0/0 or infinite
        return Paired(n, mean, 0.0, differences=each, exact=True)
    sd = float(difference.std(ddof=1))
    if exact:
        return Paired(n, mean, sd, differences=each, exact=True)
    interval = stats.ttest_1samp(difference, 0.0).confidence_interval(1 - SIGNIFICANCE)
    return Paired(n, mean, sd, float(interval.low), float(interval.high), each)


def mean_interval(values: "pd.Series[float]") -> tuple[float, float, float]:
    """Mean and 95% t-interval of one arm's runs; the interval is nan with fewer than two values."""
    kept = values.dropna().to_numpy(float)
    if len(kept) == 0:
        return math.nan, math.nan, math.nan
    mean = float(kept.mean())
    if len(kept) < 2:
        return mean, math.nan, math.nan
    if np.ptp(kept) < NO_SPREAD:
        return mean, mean, mean
    interval = stats.ttest_1samp(kept, 0.0).confidence_interval(1 - SIGNIFICANCE)
    return mean, float(interval.low), float(interval.high)


def sem(values: "pd.Series[float]") -> float:
    """Standard error of the mean: what the papers print, never an interval."""
    kept = values.dropna()
    return float(stats.sem(kept)) if len(kept) > 1 else math.nan


def partial_conjunction(p_values: Sequence[float], least: int) -> float:
    """p of "at least `least` of these hypotheses hold" (Benjamini and Heller 2008, after Bonferroni)."""
    return min(1.0, (len(p_values) - least + 1) * sorted(p_values)[least - 1])


def seeds_needed(difference: float, sd: float, power: float = 0.8) -> int | None:
    """Pairs with which a two-sided paired t-test at 5% finds `difference`; None: more than 1,000."""
    from statsmodels.stats.power import TTestPower

    n = np.arange(MINIMUM_PAIRS, MOST_SEEDS + 1)
    effect = difference / max(sd, difference / 4)  # at 4 standard deviations 3 pairs are enough
    power_of = np.nan_to_num(TTestPower().power(effect, n, SIGNIFICANCE), nan=1.0)  # nan where it is all but 1
    enough = n[power_of >= power]
    return int(enough[0]) if len(enough) else None
