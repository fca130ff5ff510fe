"""Paired intervals, equivalence, Holm's correction, and the number of seeds that would decide."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

SIGNIFICANCE = 0.05
POINT = 0.01  # "comparable" means within one percentage point
MINIMUM_PAIRS = 3  # two pairs carry a t-interval of 12.7 standard errors: no verdict from them


@dataclass(frozen=True)
class Paired:
    """The mean paired difference with its 95% t-interval; accuracies are fractions, so 0.01 is one point.

    `p` tests the mean against 0; `p_equivalence` (TOST) tests whether it lies within one point of 0.
    Without enough pairs everything but `n` is nan.
    """

    n: int
    mean: float = math.nan
    sd: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_equivalence: float = math.nan
    differences: tuple[float, ...] = ()  # one per pair

    @property
    def comparable(self) -> bool:
        return self.p_equivalence < SIGNIFICANCE


def paired(first: "pd.Series[float]", second: "pd.Series[float]") -> Paired:
    """Compare two series indexed by seed: seeds in only one of them, and pairs with a nan, are left out."""
    both = pd.concat([first, second], axis=1, join="inner").dropna()
    n = len(both)
    if n < MINIMUM_PAIRS:
        return Paired(n)
    left, right = both.iloc[:, 0].to_numpy(float), both.iloc[:, 1].to_numpy(float)
    difference = left - right
    mean = float(difference.mean())
    if np.ptp(difference) < 1e-12:  # no spread: the t statistic is 0/0 or infinite
        inside = abs(mean) < POINT
        p, p_equivalence = 0.0 if abs(mean) > 1e-12 else 1.0, 0.0 if inside else 1.0
        return Paired(n, mean, 0.0, mean, mean, p, p_equivalence, tuple(map(float, difference)))
    from statsmodels.stats.weightstats import ttost_paired

    test = stats.ttest_rel(left, right)
    interval = test.confidence_interval(1 - SIGNIFICANCE)
    equivalence = float(ttost_paired(left, right, -POINT, POINT)[0])
    sd = float(difference.std(ddof=1))
    low, high = float(interval.low), float(interval.high)
    return Paired(n, mean, sd, low, high, float(test.pvalue), equivalence, tuple(map(float, difference)))


def mean_interval(values: "pd.Series[float]") -> tuple[float, float, float]:
    """Mean and 95% t-interval of one arm's runs; the interval is nan with fewer than two values."""
    kept = values.dropna().to_numpy(float)
    if len(kept) == 0:
        return math.nan, math.nan, math.nan
    mean = float(kept.mean())
    if len(kept) < 2:
        return mean, math.nan, math.nan
    if np.ptp(kept) < 1e-12:
        return mean, mean, mean
    interval = stats.ttest_1samp(kept, 0.0).confidence_interval(1 - SIGNIFICANCE)
    return mean, float(interval.low), float(interval.high)


def sem(values: "pd.Series[float]") -> float:
    """Standard error of the mean: what the papers print, never an interval."""
    kept = values.dropna()
    return float(kept.std(ddof=1) / math.sqrt(len(kept))) if len(kept) > 1 else math.nan


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted p-values; a planned test that could not be made (nan) counts as p = 1 and stays nan."""
    given = np.nan_to_num(np.asarray(p_values, dtype=float), nan=1.0)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty_like(given)
    adjusted[order] = np.maximum.accumulate(np.arange(len(given), 0, -1) * given[order])
    return [math.nan if math.isnan(p) else float(min(a, 1.0)) for p, a in zip(p_values, adjusted, strict=True)]


def seeds_needed(mean: float, sd: float, alpha: float = SIGNIFICANCE, power: float = 0.8) -> int | None:
    """Pairs with which a paired t-test finds a difference as large as the one seen with 80% power.

    None when there is no difference to find, or when it would take more than 1,000.
    """
    if not (math.isfinite(mean) and math.isfinite(sd)) or abs(mean) < 1e-12:
        return None
    if sd < 1e-12:
        return MINIMUM_PAIRS
    n = np.arange(MINIMUM_PAIRS, 1001)
    critical = stats.t.ppf(1 - alpha / 2, n - 1)
    power_of = stats.nct.sf(critical, n - 1, abs(mean) / sd * np.sqrt(n))
    enough = n[power_of >= power]
    return int(enough[0]) if len(enough) else None
