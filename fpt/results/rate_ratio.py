"""How many times the best learning rate of one arm is that of another, by the validation loss of the last step.

The score of a rate is the mean over seeds of the logarithm of that loss. A parabola over the logarithm of the rate,
through the rates within half a decade of the best one, has its lowest point at the arm's best rate. The ratio is that
of two such points. Its interval is the jackknife's over seeds that both arms have (Tukey 1958): everything is chosen
anew for each seed that is left out. It is made wider by what a parabola misses where a curve is steeper on one side.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from fpt.errors import SpecError
from fpt.models import adapted, backbone
from fpt.results.cells import TableCell
from fpt.results.contrasts import cell_of
from fpt.results.runs import SweepTables, rate_text
from fpt.results.stats import MINIMUM_PAIRS, SIGNIFICANCE
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

    `open`: why there is none, in words; empty where there is one. `window`: the rates that the parabola is fitted to.
    """

    rate: float = math.nan
    window: tuple[float, ...] = ()
    coefficients: tuple[float, ...] = ()
    open: str = ""

    @property
    def words(self) -> str:
        """The rate with two digits, 1.3e-3; where it is open, why."""
        return self.open or rate_text(f"{self.rate:.1e}")


@dataclass(frozen=True)
class RateRatio:
    """The best rate of the first arm over that of the second, with a 95% interval over `n` seeds.

    `first` and `second`: the curves of both arms. `open`: why the ratio is not known; its numbers are nan then, and it
    excludes nothing.
    """

    first: Valley
    second: Valley
    n: int
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    open: str = ""
    error: float = math.nan  # the jackknife's standard error, in decades

    def above(self, ratio: float) -> float:
        """One-sided p of "the ratio is at most this one"; 1 where it is open. The interval holds what neither `above`
        nor `below` refuses at 2.5%."""
        return self._beyond(math.log10(self.ratio / ratio))

    def below(self, ratio: float) -> float:
        """One-sided p of "the ratio is at least this one"; 1 where it is open."""
        return self._beyond(math.log10(ratio / self.ratio))

    def _beyond(self, decades: float) -> float:
        if self.open or decades <= ASYMMETRY:
            return 1.0
        return _tail(decades - ASYMMETRY, self.error, self.n)

    def excludes(self, ratio: float) -> bool:
        """Whether a ratio lies outside of the interval."""
        return not self.open and not self.low <= ratio <= self.high

    @property
    def cell(self) -> str:
        """As a table shows it: 2.4 (1.6 to 3.5)."""
        return self.open or f"{self.ratio:.2g} ({self.low:.2g} to {self.high:.2g})"


def of_arms(study: str, first: str, second: str, *, task: str = "", root: Path | None = None) -> RateRatio:
    """The ratio of two arms in the published results of a study, named as its tables name them.

    Raises SpecError for a study, task or arm that is not there, and with fewer than three seeds in common.
    """
    return rate_ratio(*(losses_of(cell_of(study, name, task, root)) for name in (first, second)))


def slope_of_arms(study: str, pairs: Sequence[tuple[str, str]], *, task: str = "", root: Path | None = None) -> "Slope":
    """The exponent in width of the ratio of two arms, a pair for each width, named as the study's tables name them.

    Raises SpecError for a study, task or arm that is not there, for fewer than two widths, two arms of different
    widths, a width that is given twice, and with fewer than three seeds in common.
    """
    by_width = {}
    for first, second in pairs:
        cells = [cell_of(study, name, task, root) for name in (first, second)]
        width, other = map(_width, cells)
        if width != other:
            raise SpecError(f"{first} has width {width:g} and {second} {other:g}: a ratio needs two arms of one width")
        if width in by_width:
            raise SpecError(f"{first} and {second}: width {width:g} is given twice")
        by_width[width] = losses_of(cells[0]), losses_of(cells[1])
    return slope(by_width)


def _width(cell: TableCell) -> float:
    return float(backbone(cell.spec.backbone).width) if cell.spec else math.nan


def losses_of(cell: TableCell) -> pd.DataFrame:
    """`last_losses` of an arm. Raises SpecError for one without results."""
    if cell.tables is None:
        raise SpecError(f"the study {cell.study} has no results of {cell.row}")
    return last_losses(cell.tables)


def ratio_in_theory(first: SweepSpec, second: SweepSpec) -> float | None:
    """Width / (2 alpha), the ratio that the theory of Schulman et al. 2025 gives for LoRA over full training.

    None for any other two arms.
    """
    if not adapted(first.trainable) or adapted(second.trainable):
        return None
    return backbone(first.backbone).width / (2 * first.alpha)


def last_losses(tables: SweepTables) -> pd.DataFrame:
    """Validation loss in nats of the last step, seeds x rates; nan where a run diverged."""
    curves = tables.curves[tables.curves["step"] == tables.spec.steps]
    plane = curves.pivot(index="seed", columns="learning_rate", values="validation_loss")
    lost = tables.runs.pivot(index="seed", columns="learning_rate", values="diverged_at").notna()
    return plane.where(np.isfinite(plane)).mask(lost.reindex_like(plane))


def rate_ratio(first: pd.DataFrame, second: pd.DataFrame) -> RateRatio:
    """Of validation losses above 0, seeds x rates. Raises SpecError with fewer than three seeds in common."""
    seeds = first.index.intersection(second.index)
    if len(seeds) < MINIMUM_PAIRS:
        raise SpecError(f"the arms have {len(seeds)} seeds in common; a ratio of rates needs {MINIMUM_PAIRS}")
    arms = [_Arm.of(plane.loc[seeds]) for plane in (first, second)]
    valleys = _valleys(arms)
    found = RateRatio(valleys[0], valleys[1], len(seeds))
    left_out = [_valleys(arms, without=k) for k in range(len(seeds))]
    reasons = [each.open for pair in (valleys, *left_out) for each in pair if each.open]
    if reasons:
        return replace(found, open=reasons[0])
    middle, error = _decades(valleys), jackknife_error([_decades(pair) for pair in left_out])
    half = error * float(special.stdtrit(len(seeds) - 1, 1 - SIGNIFICANCE / 2)) + ASYMMETRY
    ratio, low, high = (10 ** (middle + side * half) for side in (0, -1, 1))
    return replace(found, ratio=ratio, low=low, high=high, error=error)


def jackknife_error(left_out: Sequence[float]) -> float:
    """The standard error of an estimate by what it is with each seed left out (Tukey 1958)."""
    spread = np.array(left_out)
    return math.sqrt((len(spread) - 1) / len(spread) * float(((spread - spread.mean()) ** 2).sum()))


def _tail(away: float, error: float, seeds: int) -> float:
    """p of a t-test; without any spread a difference is certain."""
    return float(special.stdtr(seeds - 1, -away / error)) if error > 0 else 0.0


@dataclass(frozen=True)
class Slope:
    """How the logarithm of a ratio of best rates goes with that of the width: an exponent, with a 95% interval.

    0: the ratio is the same at every width; 1: it grows as the width. `open`: why it is not known; it excludes nothing
    then. `n`: seeds that all arms have.
    """

    n: int
    exponent: float = math.nan
    low: float = math.nan
    high: float = math.nan
    open: str = ""
    error: float = math.nan
    slack: float = math.nan  # by which the asymmetry of the curves widens each end

    def excludes(self, exponent: float) -> bool:
        """Whether an exponent lies outside of the interval."""
        return not self.open and not self.low <= exponent <= self.high

    def above(self, exponent: float) -> float:
        """One-sided p of "the exponent is at most this one"; 1 where it is open."""
        return self._beyond(self.exponent - exponent)

    def below(self, exponent: float) -> float:
        """One-sided p of "the exponent is at least this one"; 1 where it is open."""
        return self._beyond(exponent - self.exponent)

    def _beyond(self, away: float) -> float:
        return 1.0 if self.open or away <= self.slack else _tail(away - self.slack, self.error, self.n)

    @property
    def cell(self) -> str:
        """As a table shows it: 0.9 (0.6 to 1.2)."""
        return self.open or f"{self.exponent:.2g} ({self.low:.2g} to {self.high:.2g})"


def slope(by_width: Mapping[float, tuple[pd.DataFrame, pd.DataFrame]]) -> Slope:
    """The exponent of the ratio of two arms in width, by least squares over the logarithms.

    `by_width`: validation losses above 0 of the first and of the second arm, seeds x rates, for each width. The
    interval is the jackknife's over seeds that all arms have: a seed is left out of every width at once. It is made
    wider by what `ASYMMETRY` between the two outermost widths does to the slope: curves that are steeper on one side
    are so at every width, which moves all ratios alike.
    Raises SpecError with fewer than two widths, or three seeds in common.
    """
    if len(by_width) < 2:
        raise SpecError(f"{len(by_width)} widths: the exponent of a ratio in width needs two")
    planes = [plane for both in by_width.values() for plane in both]
    seeds = sorted(set.intersection(*(set(plane.index) for plane in planes)))
    if len(seeds) < MINIMUM_PAIRS:
        raise SpecError(f"the arms have {len(seeds)} seeds in common; an exponent needs {MINIMUM_PAIRS}")
    arms = [_Arm.of(plane.loc[seeds]) for plane in planes]
    widths = np.log10(np.array(list(by_width), dtype=float))
    valleys = _valleys(arms)
    left_out = [_valleys(arms, without=k) for k in range(len(seeds))]
    reasons = [each.open for found in (valleys, *left_out) for each in found if each.open]
    if reasons:
        return Slope(len(seeds), open=reasons[0])
    middle, error = _exponent(widths, valleys), jackknife_error([_exponent(widths, found) for found in left_out])
    slack = ASYMMETRY / float(widths.max() - widths.min())
    half = error * float(special.stdtrit(len(seeds) - 1, 1 - SIGNIFICANCE / 2)) + slack
    return Slope(len(seeds), middle, middle - half, middle + half, error=error, slack=slack)


def _exponent(widths: Floats, valleys: list[Valley]) -> float:
    """`valleys`: at each width those of the first and the second arm."""
    ratios = [_decades(both) for both in zip(valleys[::2], valleys[1::2], strict=True)]
    return float(np.polyfit(widths, ratios, 1)[0])


def _decades(valleys: Sequence[Valley]) -> float:
    return math.log10(valleys[0].rate / valleys[1].rate)


def _valleys(arms: "Sequence[_Arm]", without: int | None = None) -> list[Valley]:
    return [arm.valley(without) for arm in arms]


@dataclass(frozen=True)
class _Arm:
    """Scores of an arm: places (rates,) in log10, scores (seeds, rates)."""

    places: Floats
    scores: Floats

    @staticmethod
    def of(losses: pd.DataFrame) -> "_Arm":
        ordered = losses.sort_index(axis=1)
        return _Arm(np.log10(ordered.columns.to_numpy(float)), np.log(ordered.to_numpy(float)))

    def valley(self, without: int | None = None) -> Valley:
        """Of all seeds, or of all but one."""
        scores = self.scores if without is None else np.delete(self.scores, without, axis=0)
        means = scores.mean(0)  # nan where a seed diverged
        if np.isnan(means).all():
            return Valley(open="some run diverged at every rate")
        best = self.places[np.nanargmin(means)]
        reach = HALF_DECADE - ROUNDED
        if self.places[0] > best - reach or self.places[-1] < best + reach:
            return Valley(open="the best rate is less than half a decade from an end of the grid")
        inside = np.abs(self.places - best) <= HALF_DECADE + ROUNDED
        rates = tuple(float(10**place) for place in self.places[inside])
        if np.isnan(means[inside]).any():
            return Valley(window=rates, open="a run diverged within half a decade of the best rate")
        if len(rates) < LEAST:
            return Valley(window=rates, open=f"fewer than {LEAST} rates within half a decade of the best one")
        curvature, slope, height = np.polyfit(self.places[inside], means[inside], 2)
        if curvature <= 0:
            return Valley(window=rates, open="the curve has no lowest point")
        return Valley(10 ** (-slope / (2 * curvature)), rates, (curvature, slope, height))
