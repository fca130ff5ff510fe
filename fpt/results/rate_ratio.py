"""How many times the best learning rate of one arm is that of another, by the validation loss of the last step.

The score of a rate is the mean over seeds of the logarithm of that loss. A parabola over the logarithm of the rate,
through the rates within half a decade of the best one, has its lowest point at the arm's best rate. The ratio is that
of two such points. Its interval is the jackknife's over seeds that both arms have (Tukey 1958): everything is chosen
anew for each seed that is left out. It is made wider by what a parabola misses where a curve is steeper on one side.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpt.errors import SpecError
from fpt.results.arm import Arm
from fpt.results.contrasts import find_arm
from fpt.results.estimate import EXPONENT, MINIMUM_PAIRS, TIMES, Estimate
from fpt.results.runs import rate_text
from fpt.results.stats import paired

if TYPE_CHECKING:
    from fpt.sweeps.spec import SweepSpec

HALF_DECADE = 0.5
ROUNDED = 0.03  # decades by which 1, 1.8, 3, 5.6 and 10 are off quarters of a decade
# Decades at each end of the interval. A cubic term of half the quadratic one, in decades, moves the lowest point of the
# parabola by so much.
ASYMMETRY = 0.05
LEAST = 3  # rates that a parabola needs
TENFOLD = 10.0  # "LoRA Without Regret"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Valley:
    """The lowest point of one arm's curve: the parabola's, of the score `coefficients` in log10 of the rate.

    `reason`: why there is none, in words; empty where there is one. `window`: the rates that the parabola is fitted to.
    """

    rate: float = math.nan
    window: tuple[float, ...] = ()
    coefficients: tuple[float, ...] = ()
    reason: str = ""

    @property
    def open(self) -> bool:
        """Whether there is none."""
        return bool(self.reason)

    @property
    def words(self) -> str:
        """The rate with two digits, 1.3e-3; where it is open, why."""
        return self.reason or rate_text(f"{self.rate:.1e}")


@dataclass(frozen=True)
class RateRatio(Estimate):
    """The best rate of the first arm over that of the second, a ratio, and the curves of both."""

    first: Valley = Valley()
    second: Valley = Valley()

    def __neg__(self) -> Self:
        """The second arm's over the first's."""
        return replace(super().__neg__(), first=self.second, second=self.first)


def of_arms(study: str, first: str, second: str, *, task: str = "", step: int | None = None) -> RateRatio:
    """The ratio of two arms in the published results of a study, named as its tables name them, after the last step or
    an earlier one that was evaluated.

    Raises SpecError for a study, task or arm that is not there, and with fewer than three seeds in common.
    """
    return rate_ratio(*(last_losses(find_arm(study, name, task=task), step) for name in (first, second)))


def slope_of_arms(study: str, pairs: Sequence[tuple[str, str]], *, task: str = "") -> Estimate:
    """The exponent in width of the ratio of two arms, a pair for each width, named as the study's tables name them.

    The two arms of a pair have one width, of which there is no other pair. Raises SpecError for a study, task or arm
    that is not there, and with fewer than three seeds in common.
    """
    from fpt.models import backbone

    by_width = {}
    for first, second in pairs:
        arms = [find_arm(study, name, task=task) for name in (first, second)]
        width, other = (float(backbone(arm.fields["backbone"]).width) for arm in arms)
        assert width == other, f"{first} has width {width:g} and {second} {other:g}: a ratio is of one width"
        assert width not in by_width, f"{first} and {second}: width {width:g} is given twice"
        by_width[width] = last_losses(arms[0]), last_losses(arms[1])
    return slope(by_width)


def ratio_in_theory(first: "SweepSpec", second: "SweepSpec") -> float | None:
    """Width / (2 alpha), the ratio that the theory of Schulman et al. 2025 gives for LoRA over full training.

    None for any other two arms.
    """
    from fpt.models import adapted, backbone

    if not adapted(first.trainable) or adapted(second.trainable):
        return None
    return backbone(first.backbone).width / (2 * first.alpha)


def last_losses(arm: Arm, step: int | None = None) -> pd.DataFrame:
    """Validation loss in nats of the last step, or of an earlier one that was evaluated, seeds x rates; nan where a run
    diverged by then."""
    step = arm.steps if step is None else step
    curves = arm.curves[arm.curves["step"] == step]
    plane = curves.pivot(index="seed", columns="learning_rate", values="validation_loss")
    lost = arm.runs.pivot(index="seed", columns="learning_rate", values="diverged_at").astype(float) <= step
    return plane.where(np.isfinite(plane)).mask(lost.reindex_like(plane))


def rate_ratio(first: pd.DataFrame, second: pd.DataFrame) -> RateRatio:
    """Of validation losses above 0, seeds x rates. Raises SpecError with fewer than three seeds in common."""
    (one, other), found = _jackknife([first, second], _decades, ASYMMETRY, TIMES, "a ratio of rates")
    return RateRatio.of(found, first=one, second=other)


def fall(first: Arm, second: Arm, step: int) -> Estimate:
    """The ratio of two arms' best rates after so many steps over that after the last one: above 1 where the ratio
    falls. Raises SpecError with fewer than three seeds in common.
    """

    def apart(valleys: Sequence[Valley]) -> float:
        return _decades(valleys[:2]) - _decades(valleys[2:])

    planes = [last_losses(arm, then) for then in (step, None) for arm in (first, second)]
    _, found = _jackknife(planes, apart, ASYMMETRY, TIMES, "a ratio of ratios")
    return found


def slope_in_steps(by_steps: Mapping[int, Sequence[float]]) -> Estimate:
    """The exponent in steps of what pretrained models have after so many steps, a value a model in one order: each has
    its own, by least squares over the logarithms. The models are the unit of the t-interval, of which nothing but
    their number is known with fewer than three."""
    steps, values = np.log10(list(by_steps)), np.log10(list(by_steps.values()))
    return paired(pd.Series(np.polyfit(steps, values, 1)[0]), 0.0, unit=EXPONENT)


def slope(by_width: Mapping[float, tuple[pd.DataFrame, pd.DataFrame]]) -> Estimate:
    """The exponent in width of the ratio of two arms' best rates, by least squares over the logarithms.

    0: the ratio is the same at every width; 1: it grows as the width. `by_width`: validation losses above 0 of the
    first and of the second arm, seeds x rates, for each width. A seed is left out of every width at once. The interval
    is made wider by what `ASYMMETRY` between the two outermost widths does to the slope: curves that are steeper on one
    side are so at every width, which moves all ratios alike.
    Raises SpecError with fewer than two widths, or three seeds in common.
    """
    if len(by_width) < 2:
        raise SpecError(f"{len(by_width)} widths: the exponent of a ratio in width needs two")
    widths = np.log10(np.array(list(by_width), dtype=float))

    def exponent(valleys: Sequence[Valley]) -> float:
        ratios = [_decades(both) for both in zip(valleys[::2], valleys[1::2], strict=True)]
        return float(np.polyfit(widths, ratios, 1)[0])

    planes = [plane for both in by_width.values() for plane in both]
    _, found = _jackknife(planes, exponent, ASYMMETRY / float(np.ptp(widths)), EXPONENT, "an exponent")
    return found


def _decades(valleys: Sequence[Valley]) -> float:
    return math.log10(valleys[0].rate / valleys[1].rate)


def _jackknife(
    planes: Sequence[pd.DataFrame], read: Callable[[Sequence[Valley]], float], slack: float, unit: str, name: str
) -> tuple[Sequence[Valley], Estimate]:
    """The lowest point of every arm, and what is read of them (of a ratio its log10) with the variance that a jackknife
    over the seeds gives which all arms have.

    `name`: what is read, for an error. Open as soon as one arm has no lowest point without one of the seeds.
    """
    seeds = sorted(set.intersection(*(set(plane.index) for plane in planes)))
    n = len(seeds)
    if n < MINIMUM_PAIRS:
        raise SpecError(f"the arms have {n} seeds in common; {name} needs {MINIMUM_PAIRS}")
    ordered = [plane.loc[seeds].sort_index(axis=1) for plane in planes]
    arms = [(np.log10(plane.columns.to_numpy(float)), np.log(plane.to_numpy(float))) for plane in ordered]
    whole = [_valley(*arm) for arm in arms]
    left_out = [[_valley(rates, np.delete(scores, seed, axis=0)) for rates, scores in arms] for seed in range(n)]
    reasons = [each.reason for valleys in (whole, *left_out) for each in valleys if each.open]
    if reasons:
        return whole, Estimate(n=n, unit=unit, reason=reasons[0])
    spread, found = np.array([read(valleys) for valleys in left_out]), read(whole)
    variance = (n - 1) / n * float(((spread - spread.mean()) ** 2).sum())
    value = 10**found if unit == TIMES else found
    return whole, Estimate(value, n, unit, seed_variance=variance, df=n - 1, slack=slack)


def _valley(log_rates: Floats, scores: Floats) -> Valley:
    """Of scores (seeds, rates) at rates in log10, ascending."""
    means = scores.mean(0)  # nan where a seed diverged
    if np.isnan(means).all():
        return Valley(reason="some run diverged at every rate")
    best = log_rates[np.nanargmin(means)]
    reach = HALF_DECADE - ROUNDED
    if log_rates[0] > best - reach or log_rates[-1] < best + reach:
        return Valley(reason="the best rate is less than half a decade from an end of the grid")
    inside = np.abs(log_rates - best) <= HALF_DECADE + ROUNDED
    rates = tuple(float(10**log_rate) for log_rate in log_rates[inside])
    if np.isnan(means[inside]).any():
        return Valley(window=rates, reason="a run diverged within half a decade of the best rate")
    if len(rates) < LEAST:
        return Valley(window=rates, reason=f"fewer than {LEAST} rates within half a decade of the best one")
    curvature, slope, height = np.polyfit(log_rates[inside], means[inside], 2)
    lowest = -slope / (2 * curvature) if curvature > 0 else math.nan
    if not log_rates[inside][0] <= lowest <= log_rates[inside][-1]:
        return Valley(window=rates, reason="the parabola has no lowest point among the rates that it is fitted to")
    return Valley(10**lowest, rates, (curvature, slope, height))
