"""Contrasts: one arm minus another in a study, as pages, findings and verdicts read them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from fpt.errors import SpecError, check_known, unknown
from fpt.results.arm import TUNED, Arm, Origin, published_arms, same_rate
from fpt.results.baselines import known_scores
from fpt.results.difference import Point, paired_difference, total
from fpt.results.estimate import Estimate
from fpt.results.runs import arms_in, folder_of, rate_text
from fpt.results.stats import MINIMUM_PAIRS, paired

if TYPE_CHECKING:
    from fpt.sweeps.study import Study

QUANTITIES = ("accuracy", "gap")
COMMON = "common"  # the rate with the best mean over all seeds, the same for each of them


@dataclass(frozen=True)
class Contrast(Estimate):
    """One arm minus another, in points of test accuracy, over paired seeds.

    `first`, `second`: the levels, in percent (of a difference of differences: the two leads, in points). `common`: the
    same with one rate for all seeds of an arm; None unless read tuned, and where an arm has no rate at which every seed
    stayed finite.
    """

    first: float = math.nan
    second: float = math.nan
    common: "Contrast | None" = None

    @property
    def most_lost(self) -> float:
        """Points that the first arm loses at most ("no loss above"), by the lower end of the interval."""
        return max(0.0, -self.low)

    def __neg__(self) -> Self:
        """The second arm minus the first."""
        common = -self.common if self.common else None
        return replace(super().__neg__(), first=self.second, second=self.first, common=common)


@dataclass(frozen=True)
class Level(Estimate):
    """The accuracy of one arm in percent. `rate`: the best one over all seeds at its budget, whatever rate was read."""

    rate: float | None = None


def contrast(
    study: "str | Path | Study",
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
    """The arm `first` minus the arm `second` in the results of a study, by its name, its folder or as load_study gives
    it: the published ones, or with `origin` "own" the reader's.

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
    arms = {name: find_arm(study, name, task=task, root=root, of=of, origin=origin) for name in named}
    found = _contrast(arms, first, second, at, budget, minus)
    if at != TUNED or any(arm.best_rate(budget) is None for arm in arms.values()):
        return found
    return replace(found, common=_contrast(arms, first, second, COMMON, budget, minus))


def at_equal_compute(
    study: str, first: str, second: str, share: float, *, task: str = "", budget: int | None = None
) -> Contrast:
    """The arm `first` minus the arm `second` where both have cost the same, each tuned.

    A step of the second costs `share` of one of the first, so the second has trained for `budget` steps [all], and the
    first for `share` times as many. Between two of its budgets the first lies on a line over the logarithm of the
    steps, seed by seed. Raises SpecError as `contrast`, and where the first is not reported early enough.
    """
    one, other = (find_arm(study, name, task=task) for name in (first, second))
    budget = other.steps if budget is None else budget
    steps = share * budget
    reached = [each for each in one.budgets if each <= steps]
    if not reached or steps > one.steps:
        raise SpecError(f"{first} of the study {study} is reported at {one.budgets} steps; given: {steps:,.0f}")
    below, above = reached[-1], next(each for each in one.budgets if each >= steps)
    weight = math.log(steps / below) / math.log(above / below) if above > below else 0.0
    ends = [(below, 1 - weight), (above, weight)] if weight else [(below, 1.0)]
    values: Any = sum(part * one.values(TUNED, at) for at, part in ends)
    without = sum(part * one.without(TUNED, at) for at, part in ends) - other.without(TUNED, budget)
    # One test set: the noise of the two budgets goes together, and that of their mean is no larger than this.
    noise = sum(part * one.test_noise(TUNED, at) for at, part in ends) + other.test_noise(TUNED, budget)
    fallen = [*(one.collapsed(TUNED, at) for at, _ in ends), other.collapsed(TUNED, budget)]
    test = paired(values, other.values(TUNED, budget), any(each.any() for each in fallen), noise, without)
    levels = [100 * float(each.mean()) for each in (values, other.values(TUNED, budget))]
    return Contrast.of(test.in_points, first=levels[0], second=levels[1])


def pooled(
    studies: Sequence[str], first: str, second: str, *, at: str | float = TUNED, budget: int | None = None
) -> Contrast:
    """The arm `first` minus the arm `second` over the seeds of several studies that differ in their seeds alone; each
    seed's rate is chosen within its own study. Arguments and errors as those of `contrast`.

    The test set is the same for all seeds, so its noise is that of one study.
    """
    sides = [[find_arm(study, name) for study in studies] for name in (first, second)]
    one, two = (pd.concat([arm.values(rate_of(arm, at, budget), budget) for arm in side]) for side in sides)
    noise = sum(arm.test_noise(rate_of(arm, at, budget), budget) for side in sides for arm in side)
    without = None
    if at == TUNED:  # a seed takes part in the choices of its own study alone: without it the others keep their values
        apart = pd.concat([a.without(at, budget) - b.without(at, budget) for a, b in zip(*sides, strict=True)])
        without = apart.fillna(one - two).mask(np.eye(len(apart), dtype=bool))
    test = paired(one, two, noise=noise / len(studies), without=without)
    return Contrast.of(test.in_points, first=100 * float(one.mean()), second=100 * float(two.mean()))


def level(
    study: "str | Path | Study",
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
    found = find_arm(study, arm, task=task, root=root, of=of, origin=origin)
    rate = rate_of(found, at, budget)
    return Level.of(found.estimate(rate, budget).in_percent, rate=found.best_rate(budget))


def baseline(task: str, name: str) -> float:
    """The accuracy in percent of a strategy that needs no training of ours: "linear classifier", "majority class".

    Raises SpecError for one that was not counted on this task.
    """
    known = known_scores(task)
    check_known(f"baseline of {task}", name, known)
    return 100 * known[name].share


def arms_of(
    study: "str | Path | Study", root: Path | None = None, of: str = "accuracy", origin: Origin = "published"
) -> dict[tuple[str, str], Arm]:
    """The arms of a study, by task and name: the published ones, or the reader's own.

    `of`: what their values are, "accuracy" on test data or "gap". A published sweep that cannot be read is left out: a
    warning names it. Raises SpecError for anything else.
    """
    return {(arm.task, arm.name): arm for arm in _of(arms_in(folder_of(study, root), origin).values(), of)}


def _of(arms: Iterable[Arm], of: str) -> list[Arm]:
    check_known("quantity", of, QUANTITIES)
    return [arm if of == arm.of else replace(arm, of=of) for arm in arms]


def find_arm(
    study: "str | Path | Study",
    name: str,
    *,
    task: str = "",
    root: Path | None = None,
    of: str = "accuracy",
    origin: Origin = "published",
) -> Arm:
    """One arm of a study's results, by a name as those of `contrast`; errors as its."""
    folder = folder_of(study, root)
    study = folder.name
    arms, faults = published_arms(folder) if origin == "published" else (arms_in(folder, origin), {})
    if not arms and not faults:
        make = "fpt run and fpt publish make them" if origin == "published" else "fpt run makes them"
        raise SpecError(f"the study {study} has no {origin} results; {make}")
    tasks = sorted({arm.task for arm in arms.values()} | {each for each, _ in faults})
    if task:
        check_known(f"task with results in the study {study}", task, tasks)
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
    one, two = (100 * float(each.loc[both].mean()) for each in levels)
    return Contrast.of(test.in_points, first=one, second=two)
