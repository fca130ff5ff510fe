"""Estimates from values by seed, of pairs or of one arm; the noise of test examples; seeds that would decide."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from fpt.results.estimate import MINIMUM_PAIRS as MINIMUM_PAIRS
from fpt.results.estimate import SHARE, Estimate
from fpt.results.estimate import SIGNIFICANCE as SIGNIFICANCE

POINT = 0.01  # accuracies are fractions
MOST_SEEDS, POWER = 1000, 0.8
NO_SPREAD = 1e-12  # as a share of the largest score: differences that vary by less are equal up to rounding


def paired(
    first: "pd.Series[float]",
    second: "pd.Series[float] | float",
    exact: bool = False,
    noise: float = 0.0,
    without: pd.DataFrame | None = None,
    unit: str = SHARE,
) -> Estimate:
    """The mean difference of two series indexed by seed, or of one and a number, in their unit: seeds in only one of
    them, and pairs with a nan, are left out. Nothing but their number is known of fewer than three.

    `exact`: a run collapsed, so signs are flipped in the t-test's place. `noise`: the variance of the mean beyond that
    between seeds. `without`: where rates were chosen by the seeds, what the differences would be without one of them
    (the seed that is left out x the seeds, as fpt.sweeps.selection.tuned_without gives it for one arm).
    """
    if isinstance(second, pd.Series) and not first.index.equals(second.index):
        first, second = first.align(second)
    one, other = np.asarray(first), np.asarray(second)
    difference = pd.Series(one - other, first.index, dtype=float).dropna()
    n = len(difference)
    if n < MINIMUM_PAIRS:
        return Estimate(n=n, unit=unit)
    varied = spread(difference, without)
    variance = _variance(varied, max(np.nanmax(np.abs(each)) for each in (one, other)))
    exact = exact or not variance  # the t statistic is 0/0 or infinite
    by_seed = difference.to_numpy()
    return Estimate(
        float(by_seed.mean()),
        n,
        unit,
        seed_variance=variance,
        test_variance=noise,
        df=math.nan if exact else n - 1,
        by_seed=tuple(map(float, by_seed)),
        flips=tuple(map(float, varied)) if exact else (),
    )


def spread(values: "pd.Series[float]", without: pd.DataFrame | None) -> "np.ndarray[Any, Any]":
    """What an interval goes by: the values by seed, or where these vary more, since a choice hangs on single seeds, the
    pseudo-values of the jackknife (Tukey 1958). Their mean is that of the values; of a plain mean they are the values.
    """
    own = values.to_numpy(float)
    if without is None:
        return own
    if not (without.index.equals(values.index) and without.columns.equals(values.index)):
        without = without.reindex(index=values.index, columns=values.index)
    aligned = without.to_numpy(float)
    left_out = np.nansum(aligned, axis=1) / (~np.isnan(aligned)).sum(axis=1)
    jackknifed = own.mean() + (len(own) - 1) * (left_out.mean() - left_out)
    more = jackknifed.std() > own.std() * (1 + NO_SPREAD)  # equal up to rounding where no seed changes a choice
    return jackknifed if more else own


def _variance(values: "np.ndarray[Any, Any]", largest: float) -> float:
    """That of the mean of some values; 0 where they are equal up to rounding. `largest`: of what they were taken."""
    same = np.ptp(values) <= NO_SPREAD * largest
    return 0.0 if same else float(values.var(ddof=1)) / len(values)


def mean_of(values: "pd.Series[float]", noise: float = 0.0, without: pd.DataFrame | None = None) -> Estimate:
    """The mean of one arm's runs, which has no interval with fewer than two values.

    `noise` as in `paired`, p (1 - p) / m for a fixed test set of m images; `without` as there.
    """
    kept = values.dropna().astype(float)
    n = len(kept)
    if n < 2:
        return Estimate(float(kept.mean()) if n else math.nan, n)
    varied = spread(kept, without)
    variance = _variance(varied, kept.abs().max())
    return Estimate(
        float(kept.mean()), n, seed_variance=variance, test_variance=noise, df=n - 1, by_seed=tuple(map(float, kept))
    )


def welch(first: "pd.Series[float]", second: "pd.Series[float]", noise: float = 0.0) -> Estimate:
    """Two arms whose runs are no pairs (Welch 1947): the difference of their means. `n`: the runs of the smaller arm.

    `noise` as in `paired`. Where no arm has any spread there is no interval, and p is that of exchanging runs, or of
    the noise alone where that is larger. Nothing is known with fewer than three runs in an arm.
    """
    arms = [each.dropna().to_numpy(float) for each in (first, second)]
    n = min(map(len, arms))
    if n < MINIMUM_PAIRS:
        return Estimate(n=n)
    mean = float(arms[0].mean() - arms[1].mean())
    largest = max(np.abs(arm).max() for arm in arms)
    if max(map(np.ptp, arms)) <= NO_SPREAD * largest:
        of_noise = 2 * float(special.ndtr(-abs(mean) / math.sqrt(noise))) if noise else 0.0
        exchanged = 2 / math.comb(sum(map(len, arms)), len(arms[0]))
        p = max(of_noise, exchanged) if abs(mean) > NO_SPREAD * largest else 1.0
        return Estimate(mean, n, test_variance=noise, p_of_none=p)
    shares = [float(arm.var(ddof=1)) / len(arm) for arm in arms]
    freedom = sum(shares) ** 2 / sum(share**2 / (len(arm) - 1) for share, arm in zip(shares, arms, strict=True))
    return Estimate(mean, n, seed_variance=sum(shares), test_variance=noise, df=freedom)


def sampling_noise(share: float, images: float) -> float:
    """The variance p (1 - p) / m that a test set of `images` adds to an accuracy (a fraction), 0 where one is nan."""
    found = share * (1 - share) / images
    return found if math.isfinite(found) else 0.0


def example_noise(apart: pd.DataFrame) -> float:
    """The variance that a test set which all seeds share adds to a mean difference of accuracies, beyond that between
    seeds. `apart`: of each seed x example, how far the arms are apart: right minus right, as 1, 0 or -1.

    Seeds and examples are both drawn: apart[s, t] = mean + seed[s] + example[t] + rest[s, t]. Over n seeds and m
    examples the mean varies by V(seed) / n + V(example) / m + V(rest) / (n m). The spread between the seeds' accuracies
    holds V(seed) + V(rest) / m, so it brings the first and the last of these, and V(example) / m is left. The means
    over seeds vary from example to example by V(example) + V(rest) / n, of which V(rest) / n is taken off; below 0,
    it is 0. An example that both arms get right, or both miss, adds nothing: p (1 - p) / m of each arm counts it twice.
    """
    values = apart.to_numpy(float)
    n, m = values.shape
    rest = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    of_rest = float((rest**2).sum()) / ((n - 1) * (m - 1))
    return max(0.0, (float(values.mean(0).var(ddof=1)) - of_rest / n) / m)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected over all of them (Holm 1979): what statsmodels gives, which takes 50 ms a call."""
    given = np.array(p_values, dtype=float)
    order = given.argsort(kind="stable")
    stepped = np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1))
    found: list[float] = np.minimum(1.0, stepped)[order.argsort()].tolist()
    return found


def seeds_needed(difference: float, sd: float, noise: float = 0.0) -> int | None:
    """Pairs with which a two-sided paired t-test at 5% finds `difference`; None: more than
    1,000, or with no number of them, where the noise of the test set alone is too large."""
    from statsmodels.stats.power import TTestPower

    n = np.arange(MINIMUM_PAIRS, MOST_SEEDS + 1)
    effect = difference / np.sqrt(np.maximum(sd, difference / 4) ** 2 + n * noise)  # at 4 sd 3 pairs are enough
    power_of = np.nan_to_num(TTestPower().power(effect, n, SIGNIFICANCE), nan=1.0)  # nan where it is all but 1
    enough = n[power_of >= POWER]
    return int(enough[0]) if len(enough) else None
