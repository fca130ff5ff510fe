"""Steps to reach a goal: the first budget at which the mean curve of a row is there, with an interval by inversion."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fpt.claims.case import Case, Comparison
from fpt.results.arm import TUNED, Arm, remembered
from fpt.results.difference import Point, paired_difference, total
from fpt.results.estimate import TIMES, Estimate
from fpt.results.stats import SIGNIFICANCE, paired

REACHED = 1e-9  # what is equal to the goal has reached it
Goal = float | Arm  # what is to be reached: an accuracy, or that of another arm at its last budget, by seed


@dataclass(frozen=True)
class Reach:
    """When a row reaches a goal, by p-values at ascending `steps`.

    `there[k]`: that the mean curve is at the goal from steps[k] on; `short[k]`: that it is not until steps[k]. Both are
    the largest p of all the steps that they speak of, so each is a confidence bound without a correction over steps:
    where the curve crosses the goal, that step is among them.
    """

    steps: tuple[int, ...]
    first: float  # the first step at which the mean is at the goal; infinite: at none
    there: tuple[float, ...]
    short: tuple[float, ...]
    last: Estimate  # the row minus the goal at the last step
    edges: bool = False  # whether an end of a grid keeps something from being known

    @property
    def interval(self) -> tuple[float, float]:
        """The last step until which the goal is not reached for sure (0: none) and the first from which it is
        (infinite: none), together with 95%."""
        return self.bounds(SIGNIFICANCE / 2)

    def bounds(self, level: float) -> tuple[float, float]:
        """The same with one-sided tests at this level."""
        low = [step for step, p in zip(self.steps, self.short, strict=True) if p < level]
        high = [step for step, p in zip(self.steps, self.there, strict=True) if p < level]
        return float(max(low, default=0)), float(min(high, default=math.inf))

    @property
    def words(self) -> str:
        """200 (100 to 400), > 400."""
        low, high = self.interval
        first = self._in_words(self.first)
        if low == self.steps[-1]:
            return first
        return f"{first} ({low:,.0f} to {self._in_words(high)})"

    def _in_words(self, steps: float) -> str:
        return f"{steps:,.0f}" if math.isfinite(steps) else f"> {self.steps[-1]:,}"


def goal_of(case: Case, row: str) -> Goal | None:
    """The goal of the table: the threshold of the row's sweep, or what the row `until` comes to; None where there is
    none."""
    until = case.any_cell.table.until
    return case.arms[row].threshold if until == "threshold" else case.arms[until]


@remembered
def reach(arm: Arm, goal: Goal, at: str | float = TUNED, fine: bool = False) -> Reach:
    """By test accuracy at the budgets, or (`fine`) by the best validation accuracy so far at every evaluation step.

    At an end of the grid an accuracy is a lower bound: it does not show that the goal is not reached, and one at which
    the goal is bounded does not show that it is.
    """
    last: list[Point] = [] if isinstance(goal, float) else [(goal, at, None)]
    level = goal if isinstance(goal, float) else 0.0
    if fine:
        by_step = arm.validated(at).T
        tests = {step: paired(by_step[step], total(last, level)) for step in map(int, by_step.columns)}
    else:
        tests = {step: paired_difference([(arm, at, step)], last, level) for step in arm.budgets}
    is_goal = any(each.name == arm.name for each, *_ in last) and not fine
    above = [test.above(-REACHED) for test in tests.values()]
    below = [test.below(-REACHED) for test in tests.values()]
    if is_goal:  # at its last budget a row is where it comes to
        above[-1], below[-1] = 0.0, 1.0
    ends = [at == TUNED and bool(arm.ends(step)) for step in tests]
    bounded = at == TUNED and any(each.at_edge for each, *_ in last) and not is_goal
    there = [1.0 if bounded else max(above[k:]) for k in range(len(tests))]
    short = [1.0 if any(ends[: k + 1]) else max(below[: k + 1]) for k in range(len(tests))]
    first = next((float(step) for step, test in tests.items() if test.mean >= -REACHED), math.inf)
    return Reach(
        steps=tuple(tests),
        first=first,
        there=tuple(there),
        short=tuple(short),
        last=list(tests.values())[-1],
        edges=bounded or any(ends),
    )


def ratio_of_steps(over: Reach, under: Reach) -> Estimate:
    """The steps of one row over those of another, with a 95% interval by bounds of each at half of the level. Nothing
    bounds it where a row is never there."""
    one, two = (each.bounds(SIGNIFICANCE / 4) for each in (over, under))
    low = one[0] / two[1]
    high = one[1] / two[0] if two[0] and math.isfinite(one[1]) else math.inf
    known = math.isfinite(over.first) and math.isfinite(under.first)
    return Estimate(over.first / under.first if known else math.nan, unit=TIMES, ends=(low, high))


def slower(first: Reach, other: Reach, times: float) -> float:
    """One-sided p of: `other` needs more than `times` the steps of `first` (a tie says nothing: it lies between steps).

    There must be a step from which the first is there, and `times` as many until which the other is not: two bounds,
    each of which errs with p, so twice the larger of them.
    """
    bounds = [1.0]
    for step, there in zip(first.steps, first.there, strict=True):
        wanted = times * step * (1 - REACHED)
        later = [short for k, short in zip(other.steps, other.short, strict=True) if k >= wanted]
        bounds += [max(there, short) for short in later[:1]]
    return min(1.0, 2 * min(bounds))


def faster(case: Case) -> list[Comparison]:
    """The other rows need more steps to the table's goal than the first, `by` to `to` times as many.

    Read at the budgets on test data; where `to` bounds the ratio, at every evaluation step on validation data, since
    budgets are a factor of two apart.
    """
    at, by, to = case.rule.at, max(case.rule.by, 1.0), case.rule.to
    fine, found = math.isfinite(to), dict[str, Reach]()
    for row, arm in case.arms.items():
        goal = goal_of(case, row)
        if goal is None:
            return [case.untested("no threshold is set in this study")]
        found[row] = reach(arm, goal, case.rows[row].rate(at), fine)
    first, *others = case.rule.rows
    comparisons = []
    for other in others:
        more, less = slower(found[first], found[other], by), slower(found[other], found[first], 1 / by)
        if fine:
            more = max(more, slower(found[other], found[first], 1 / to))
            less = min(less, slower(found[first], found[other], to))
        more, less = min(1.0, 2 * more), min(1.0, 2 * less)  # two-sided, as the interval
        both = min(slower(found[first], found[other], 1.0), slower(found[other], found[first], 1.0))
        comparisons.append(
            Comparison(
                f"steps of {case.label(other)} / {case.label(first)}",
                replace(ratio_of_steps(found[other], found[first]), p_of_none=min(1.0, 2 * both)),
                supports=more,
                contradicts=less,
                note=_in_words(case, {row: found[row] for row in (first, other)}, " on validation data" * fine),
                limits=(by, to),
                of=f"steps to {_goal_in_words(case)}{' on validation data' * fine}",
                plus=case.sweeps([other]),
                minus=case.sweeps([first]),
            )
        )
    return comparisons


def _goal_in_words(case: Case) -> str:
    """The threshold, or the sweep whose last accuracy is to be reached."""
    goal = goal_of(case, case.rule.rows[0])
    return f"{goal:g}" if isinstance(goal, float) else f"the end of {goal.sweep}" if goal else ""


def never_reaches(case: Case) -> list[Comparison]:
    """The first row does not come to the accuracy of the second at the last budget."""
    first, second = case.rule.rows
    found = reach(case.arms[first], case.arms[second], case.any_cell.rate(case.rule.at))
    supports, contradicts = (min(1.0, 2 * p[-1]) for p in (found.short, found.there))
    difference, note = case.compared([first], [second]), _in_words(case, {first: found})
    limits = (-math.inf, 0.0)
    return [replace(difference, supports=supports, contradicts=contradicts, note=note, limits=limits)]


def _in_words(case: Case, found: Mapping[str, Reach], of: str = "") -> str:
    """The steps of each row, with their 95% intervals."""
    note = f"steps{of}: {', '.join(f'{case.label(row)} {each.words}' for row, each in found.items())}"
    bounded = [case.label(row) for row, each in found.items() if each.edges]
    return f"{note}; edge of the grid: {', '.join(bounded)}" if bounded else note
