"""Contrasts: one arm minus another in a study, as pages, findings and verdicts read them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pandas as pd

from fpt.errors import SpecError, unknown
from fpt.results.arm import TUNED, Arm, Origin, published_arms, same_rate
from fpt.results.baselines import known_scores
from fpt.results.cells import Point, paired_difference, total
from fpt.results.runs import arms_in, find_study, rate_text
from fpt.results.stats import MINIMUM_PAIRS, POINT, SIGNIFICANCE, Paired, paired

QUANTITIES = ("accuracy", "gap")
MINUS = "\N{MINUS SIGN}"
COMMON = "common"  # the rate with the best mean over all seeds, the same for each of them


@dataclass(frozen=True)
class Contrast:
    """One arm minus another: points of test accuracy, with a 95% interval over paired seeds.

    `first`, `second`: the levels, in percent (of a difference of differences: the two leads, in points). `n`: pairs of
    seeds. `p`: two-sided. `common`: the same with one rate for all seeds of an arm; None unless read tuned, and where
    an arm has no rate at which every seed stayed finite.
    """

    mean: float
    low: float
    high: float
    n: int
    first: float
    second: float
    p: float
    common: "Contrast | None" = None

    @property
    def open(self) -> bool:
        """Whether the interval holds 0."""
        return self.low <= 0 <= self.high

    @property
    def most_lost(self) -> float:
        """Points that the first arm loses at most ("no loss above"), by the lower end of the interval."""
        return max(0.0, -self.low)

    def __neg__(self) -> "Contrast":
        """The second arm minus the first."""
        common = -self.common if self.common else None
        turned = replace(self, mean=-self.mean, low=-self.high, high=-self.low, common=common)
        return replace(turned, first=self.second, second=self.first)

    @property
    def cell(self) -> str:
        """As a table shows it: 6.4 (3.3 to 9.5), signed where it is open."""
        return interval_text(self.mean, self.low, self.high)

    def __str__(self) -> str:
        mean, interval = self.cell.split(" ", 1)
        return f"{mean} points {interval}"


@dataclass(frozen=True)
class Level:
    """The accuracy of one arm in percent, with a 95% interval over seeds. `rate`: the best one over all seeds at its
    budget, whatever rate was read."""

    mean: float
    low: float
    high: float
    n: int
    rate: float | None

    @property
    def cell(self) -> str:
        """As a table shows it: 96.9 (95.6 to 98.2)."""
        return level_text(self.mean, self.low, self.high)

    def __str__(self) -> str:
        mean, space, interval = self.cell.partition(" ")
        return f"{mean}%{space}{interval}"


def contrast(
    study: str,
    first: str,
    second: str,
    *,
    task: str = "",
    at: str | float = TUNED,
    budget: int | None = None,
    minus: tuple[str, str] | None = None,
    of: str = "accuracy",
    root: Path | None = None,
    origin: Origin = "published",
) -> Contrast:
    """The arm `first` minus the arm `second` in the results of a study: the published ones, or with `origin` "own" the
    reader's.

    Arms are named as the study's tables name them: "FP", "FR (layers 1)"; one that is there once by any name of
    fpt.models.arm: "frozen-pretrained", "frozen". `task` is needed where the study has
    several. `at`: "tuned" (each seed at the rate that is best on the other seeds), "common" (each arm at the rate with
    the best mean over all seeds) or a learning rate for both arms.
    `budget`: gradient steps, one of those that are reported; the last one, if None. `minus`: two more arms, whose
    difference is taken off. `of`: "accuracy" on test data, or "gap", training minus test accuracy.

    Raises SpecError for a study, task, arm, rate or budget that is not there, with fewer than three pairs of seeds, and
    for arms that end after different numbers of steps where no budget is named.
    """
    named = (first, second, *(minus or ()))
    arms = {name: cell_of(study, name, task=task, root=root, of=of, origin=origin) for name in named}
    found = _contrast(arms, first, second, at, budget, minus)
    if at != TUNED or any(cell.best_rate(budget) is None for cell in arms.values()):
        return found
    return replace(found, common=_contrast(arms, first, second, COMMON, budget, minus))


def pooled(
    studies: Sequence[str], first: str, second: str, *, at: str | float = TUNED, budget: int | None = None
) -> Contrast:
    """The arm `first` minus the arm `second` over the seeds of several studies that differ in their seeds alone; each
    seed's rate is chosen within its own study. Arguments and errors as those of `contrast`.

    The test set is the same for all seeds, so its noise is that of one study.
    """
    arms = [[cell_of(study, name) for study in studies] for name in (first, second)]
    one, two = (pd.concat([cell.values(rate_of(cell, at, budget), budget) for cell in arm]) for arm in arms)
    noise = sum(cell.test_noise(rate_of(cell, at, budget), budget) for arm in arms for cell in arm)
    without = None
    if at == TUNED:  # a seed takes part in the choices of its own study alone: without it the others keep their values
        apart = pd.concat([a.without(at, budget) - b.without(at, budget) for a, b in zip(*arms, strict=True)])
        without = apart.fillna(one - two).mask(np.eye(len(apart), dtype=bool))
    test = paired(one, two, noise=noise / len(studies), without=without)
    low, high = interval_of(test)
    levels = 100 * float(one.mean()), 100 * float(two.mean())
    return Contrast(test.mean / POINT, low / POINT, high / POINT, test.n, levels[0], levels[1], test.p)


def level(
    study: str,
    arm: str,
    *,
    task: str = "",
    at: str | float = TUNED,
    budget: int | None = None,
    of: str = "accuracy",
    root: Path | None = None,
    origin: Origin = "published",
) -> Level:
    """The test accuracy of one arm in the results of a study, or its gap; arguments and errors as those of
    `contrast`."""
    cell = cell_of(study, arm, task=task, root=root, of=of, origin=origin)
    rate = rate_of(cell, at, budget)
    mean, low, high = (100 * each for each in cell.interval(rate, budget))
    return Level(mean, low, high, int(cell.values(rate, budget).notna().sum()), cell.best_rate(budget))


def baseline(task: str, name: str) -> float:
    """The accuracy in percent of a strategy that needs no training of ours: "linear classifier", "majority class".

    Raises SpecError for one that was not counted on this task.
    """
    known = known_scores(task)
    if name not in known:
        raise unknown(f"baseline of {task}", name, known)
    return 100 * known[name].share


def arms_of(
    study: str, root: Path | None = None, of: str = "accuracy", origin: Origin = "published"
) -> dict[tuple[str, str], Arm]:
    """The arms of a study, by task and name: the published ones, or the reader's own.

    `of`: what their values are, "accuracy" on test data or "gap". A published sweep that cannot be read is left out: a
    warning names it. Raises SpecError for anything else.
    """
    return {(arm.task, arm.name): arm for arm in _of(arms_in(find_study(study, root), origin).values(), of)}


def _of(arms: Iterable[Arm], of: str) -> list[Arm]:
    if of not in QUANTITIES:
        raise unknown("quantity", of, QUANTITIES)
    return [arm if of == arm.of else replace(arm, of=of) for arm in arms]


def cell_of(
    study: str,
    name: str,
    *,
    task: str = "",
    root: Path | None = None,
    of: str = "accuracy",
    origin: Origin = "published",
) -> Arm:
    """One arm of a study's results, by a name as those of `contrast`; errors as its."""
    folder = find_study(study, root)
    arms, faults = published_arms(folder) if origin == "published" else (arms_in(folder, origin), {})
    if not arms and not faults:
        make = "fpt run and fpt publish make them" if origin == "published" else "fpt run makes them"
        raise SpecError(f"the study {study} has no {origin} results; {make}")
    tasks = sorted({arm.task for arm in arms.values()} | {each for each, _ in faults})
    if task and task not in tasks:
        raise unknown(f"task with results in the study {study}", task, tasks)
    if not task and len(tasks) != 1:
        raise SpecError(f"the study {study} has results on {', '.join(tasks)}: name one as `task`")
    task = task or tasks[0]
    if (task, name) in faults:
        raise faults[task, name]
    here = {arm.name: arm for arm in _of(arms.values(), of) if arm.task == task}
    if name in here:
        return here[name]
    unlisted = [error for (each, sweep), error in faults.items() if each == task and sweep.startswith(f"{task}.")]
    if unlisted:  # the name may be its
        raise unlisted[0]
    return _by_other_name(study, name, here)


def _by_other_name(study: str, name: str, here: Mapping[str, Arm]) -> Arm:
    """The arm that fpt.models.arm knows by this name, where the study has one alone. Raises SpecError."""
    from fpt import models

    refused = unknown(f"arm with results in the study {study}", name, here)
    try:
        wanted = models.arm(name)
    except SpecError:
        raise refused from None
    if wanted.letters in here:
        return here[wanted.letters]
    asked = models.name_of(wanted.init, wanted.trainable)
    found = {each: arm for each, arm in here.items() if arm.fields["arm"] == asked}
    if not found:
        raise refused
    if len(found) > 1:
        raise SpecError(f"{name} is several arms of the study {study}: name one of {', '.join(found)}")
    return next(iter(found.values()))


def rate_of(arm: Arm, at: str | float, budget: int | None) -> str | float:
    """Where an arm is read. SpecError for a rate at which it was not trained."""
    if at == TUNED:
        return TUNED
    if at == COMMON:
        if (found := arm.best_rate(budget)) is None:
            raise SpecError(f"{arm.folder}, {arm.name}: some run diverged at every rate, so there is no common one")
        return found
    given = ", ".join(map(rate_text, arm.rates))
    try:
        rate = float(at)
    except (TypeError, ValueError):
        rate = math.nan
    if not math.isfinite(rate):
        raise SpecError(f"at = {at!r}: must be {TUNED!r}, {COMMON!r}, or one of the rates {given}")
    if not same_rate(np.array(arm.rates), rate).any():
        raise SpecError(f"{arm.folder}, {arm.name}: it was not trained at {rate_text(rate)}, but at {given}")
    return rate


def _contrast(
    arms: dict[str, Arm],
    first: str,
    second: str,
    at: str | float,
    budget: int | None,
    minus: tuple[str, str] | None,
) -> Contrast:
    def point(name: str) -> Point:
        return arms[name], rate_of(arms[name], at, budget), budget

    steps = {arm.steps for arm in arms.values()}
    if budget is None and len(steps) > 1:
        trained = ", ".join(f"{name} for {arm.steps:,}" for name, arm in arms.items())
        raise SpecError(f"steps of training differ, {trained}: name a budget that all report")
    plus, less = [point(first)], [point(second)]
    others = [point(name) for name in minus or ()]
    test = paired_difference([*plus, *others[1:]], [*less, *others[:1]])
    if test.n < MINIMUM_PAIRS:
        raise SpecError(f"{first} and {second} have {test.n} seeds in common; a contrast needs {MINIMUM_PAIRS}")
    levels = [total(plus), total(less)]
    if others:
        levels = [total(plus) - total(less), total(others[:1]) - total(others[1:])]
    both = levels[0].index.intersection(levels[1].index)
    low, high = interval_of(test)
    one, two = (100 * float(each.loc[both].mean()) for each in levels)
    return Contrast(
        test.mean / POINT,
        low=low / POINT,
        high=high / POINT,
        n=test.n,
        first=one,
        second=two,
        p=test.p,
    )


def interval_of(test: Paired) -> tuple[float, float]:
    """The 95% interval of a paired test; where it goes by sign flips, the means that they do not refuse.

    Sign flips of fewer than six pairs refuse nothing at 2.5% a side: the interval has no ends then.
    """
    if not test.exact:
        return test.low, test.high
    if test.sd == 0 and not test.noise:
        refused = 2.0**-test.n <= SIGNIFICANCE / 2  # of equal differences one of 2^n flips is as extreme
        return (test.mean, test.mean) if refused else (-math.inf, math.inf)
    reach = 10 * (float(np.ptp(test.spread)) + math.sqrt(test.noise))
    return _end(test.above, test.mean, -reach), _end(test.below, test.mean, reach)


def _end(p_value: Callable[[float], float], mean: float, reach: float) -> float:
    """Where a one-sided p-value, which is large at the mean, falls to 2.5%; infinite where it never does."""
    side = SIGNIFICANCE / 2
    if p_value(mean + reach) > side:
        return math.copysign(math.inf, reach)
    from scipy import optimize

    return float(optimize.bisect(lambda limit: p_value(limit) - side, mean + reach, mean, xtol=1e-5 * POINT))


def interval_text(mean: float, low: float, high: float) -> str:
    """Points with their interval: 6.4 (3.3 to 9.5), signed where it holds 0."""
    signed = low <= 0 <= high or mean < 0
    shown = [points_text(each, signed) for each in (mean, low, high)]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def level_text(mean: float, low: float, high: float) -> str:
    """A level in percent with its interval: 96.9 (95.6 to 98.2). The mean alone where the interval has no ends, as that
    of one seed."""
    shown = [points_text(each, False) for each in (mean, low, high)]
    return shown[0] if math.isnan(low) else f"{shown[0]} ({shown[1]} to {shown[2]})"


def rounded(value: float, digits: int, sign: str = "") -> str:
    """A number as text, halves away from zero, with thousands and a true minus; `sign` "+": with its sign.

    Pages round what was computed, cards the digits that a table keeps of it: binary halves would go either way.
    """
    if not math.isfinite(value):
        return f"{value:{sign}}".replace("-", MINUS)
    exact = Decimal(str(round(value, 9)))  # equal means print alike, however they were summed
    nearest = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0  # + 0: no minus before 0
    return f"{nearest:{sign},}".replace("-", MINUS)


def two_digits(value: float) -> str:
    """The first two digits of a number, with a true minus, and never a power of ten: 0.5, 2.4, 1,000."""
    text = f"{float(f'{abs(value):.2g}'):,.10g}"
    return MINUS + text if value < 0 else text


def points_text(points: float, signed: bool) -> str:
    """Points with a true minus, and a plus where asked for; a second digit where one hides the side of 0."""
    text = rounded(abs(points), 1)
    if text == "0.0":
        text = rounded(abs(points), 2)
    if text == "0.00":
        return "0.0"
    if points < 0:
        return MINUS + text
    return f"+{text}" if signed else text
