"""The rules that are read on the whole grid of learning rates, with all seeds at every rate."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from fpt.claims.case import Case, Comparison
from fpt.results.arm import TUNED, Arm, remembered, same_rate
from fpt.results.baselines import chance
from fpt.results.cells import AT_PAPERS_RATE
from fpt.results.difference import paired_difference, shared_rates
from fpt.results.estimate import TIMES, Estimate
from fpt.results.runs import rate_text
from fpt.results.stats import POINT, SIGNIFICANCE
from fpt.sweeps import selection

ORDERS = (1e-5, 1e-3)  # the range of rates of `orders_differ` (Rothermel et al. 2021, section 4)
UNBOUNDED = (0.0, math.inf)  # a ratio of which nothing is known
SLACK = 1 + selection.SAME_RATE  # by which equal rates may differ


def lost_at_papers_rate(case: Case, plus: Sequence[str], minus: Sequence[str] = ()) -> list[Comparison]:
    """Each row, tuned, minus the same at the paper's rate."""
    (row,) = plus
    if same_rate(case.arms[row].choices(), case.rows[row].papers_rate).all():
        return [case.untested(f"the paper's rate is the tuned one of {case.label(row)} for every seed")]
    words = f"{case.label(row)}, tuned - at the paper's rate"
    return [case.compared([row], [row], at=(TUNED, AT_PAPERS_RATE), label=words)]


def unstable(case: Case) -> list[Comparison]:
    """The same, by more than `by`; a run that diverged at the paper's rate is enough."""
    comparisons = []
    for row, arm in case.arms.items():
        lost = arm.diverged(case.rows[row].papers_rate)
        for each in lost_at_papers_rate(case, [row]):
            found = each.within(case.rule.by * POINT)
            if lost and found.tested:
                found = replace(found, supports=0.0, contradicts=1.0, note=f"{lost} runs diverged")
            comparisons.append(found)
    return comparisons


def drop(case: Case, plus: Sequence[str], minus: Sequence[str] = ()) -> list[Comparison]:
    """A row at the paper's rate minus at the next one of the grid, or at the rate `level`; not tested where it cannot
    fall so far: it is not as far above chance, or, before the next one, as far below its best already."""
    (row,) = plus
    arm, paper, named = case.arms[row], case.rows[row].papers_rate, case.rule.level
    higher = [rate for rate in arm.rates if rate > paper * SLACK]
    after = higher if named == "" else [rate for rate in arm.rates if same_rate(rate, float(named))]
    if not after or not same_rate(arm.rates, paper).any():
        return []
    limit, lost = case.rule.by * POINT, float(arm.values().mean() - arm.values(paper).mean())
    over = float(arm.values(paper).mean()) - chance(case.task)  # nan where chance is not known
    if named == "" and lost > limit:
        return [case.untested(f"{case.label(row)} has lost {lost / POINT:.0f} points at {rate_text(paper)}")]
    if over <= limit:
        return [case.untested(f"{case.label(row)} is {over / POINT:.0f} points over chance at {rate_text(paper)}")]
    label = f"{case.label(row)} at {rate_text(paper)} - at {rate_text(min(after))}"
    return [case.compared([row], [row], at=(paper, min(after)), label=label)]


def lower_rate(case: Case) -> list[Comparison]:
    """The best rate of the first row is at most 1/`by` of that of every other one."""
    first, *others = case.rule.rows
    return [_ratio_of_rates(case, first, other) for other in others]


def _ratio_of_rates(case: Case, first: str, other: str) -> Comparison:
    """Which pair of rates is the best one of each row? The claim is supported where every pair that breaks it is
    refuted, contradicted where every one that keeps it is. The true pair is among them, so the p-value is their largest
    (intersection-union)."""
    one, two = (refuted(case.arms[row]) for row in (first, other))
    if not one or not two:
        return case.undecided("diverged at every rate")
    supports, contradicts = _p_of_ratio(one, two, case.rule.by)
    edges = [case.label(row) for row in (first, other) if case.arms[row].at_edge]
    sets = [f"{case.label(row)} {_set_words(found)}" for row, found in ((first, one), (other, two))]
    at_edge = [f"edge of the grid: {', '.join(edges)}"] if edges else []
    note = "; ".join([f"best rates by 97.5% confidence sets: {', '.join(sets)}", *at_edge])
    words = f"best rate of {case.label(other)} / {case.label(first)}"
    return Comparison(
        words,
        replace(ratio_of_best(case.arms[other], case.arms[first]), p_of_none=math.nan),
        supports=supports,
        contradicts=contradicts,
        note=note,
        limits=(case.rule.by, math.inf),
        of="best rate by accuracy",
        plus=case.sweeps([other]),
        minus=case.sweeps([first]),
    )


def _p_of_ratio(one: Mapping[float, float], two: Mapping[float, float], by: float) -> tuple[float, float]:
    """Of the best rate of the second over that of the first: the p of each side of `by` times."""
    breaks, keeps = [0.0], [0.0]
    for low, high, p in pairs_of_rates(one, two):
        # beyond the same end of both grids lie rates of any ratio
        beyond = low == high and (low == 0 or math.isinf(low))
        if beyond or high * SLACK < by * low:
            breaks.append(p)
        if beyond or high * SLACK >= by * low:
            keeps.append(p)
    return max(breaks), max(keeps)


def ratio_of_best(over: Arm, under: Arm, budget: int | None = None) -> Estimate:
    """The best rate of one arm over that of another, by mean validation accuracy (nan where all rates diverged), and
    its 95% interval: the ratios of all pairs that are not refuted as the best. 0 and infinity: an end of a grid bounds
    nothing."""
    one, two = over.best_rate(budget), under.best_rate(budget)
    pairs = pairs_of_rates(refuted(over, budget), refuted(under, budget))
    kept = np.array([(above, below) for above, below, p in pairs if p >= SIGNIFICANCE])
    if one is None or two is None or not len(kept):
        return Estimate(unit=TIMES, ends=UNBOUNDED)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = kept[:, 0] / kept[:, 1]
    if np.isnan(ratios).any():  # beyond the same end of both grids lie rates of any ratio
        return Estimate(one / two, unit=TIMES, ends=UNBOUNDED)
    return Estimate(one / two, unit=TIMES, ends=(float(ratios.min()), float(ratios.max())))


def pairs_of_rates(one: Mapping[float, float], two: Mapping[float, float]) -> list[tuple[float, float, float]]:
    """(rate of the first, rate of the second, p of "they are not the best of both"), by what `refuted` gives: a pair is
    refuted where one of its rates is (Bonferroni over the two)."""
    return [(low, high, min(1.0, 2 * min(one[low], two[high]))) for low in one for high in two]


@remembered
def refuted(arm: Arm, budget: int | None = None) -> dict[float, float]:
    """Rate -> p of "it is not the best at this budget": another rate beats it, one-sided and paired by seed,
    Bonferroni-corrected over the others. Rates at which a run diverged are never chosen. 0 and infinity stand for the
    rates below and above the grid, which are as good as its ends at best, if accuracy has one hump; none above an end
    that diverged."""
    finite = [float(rate) for rate in selection.eligible(arm.validation(budget)).columns]
    found = {}
    for rate in finite:
        tests = [paired_difference([(arm, other, budget)], [(arm, rate, budget)]) for other in finite if other != rate]
        found[rate] = min([1.0, *(len(tests) * test.above(0) for test in tests)])
    if finite and same_rate(finite[0], arm.rates[0]):
        found[0.0] = found[finite[0]]
    if finite and same_rate(finite[-1], arm.rates[-1]):
        found[math.inf] = found[finite[-1]]
    return found


def _set_words(refuted: Mapping[float, float]) -> str:
    """The rates that are not refuted, one of two such sets: 1e-3 or 1e-3 to 1e-2, and whether it ends with the grid."""
    kept = sorted(rate for rate, p in refuted.items() if 2 * p >= SIGNIFICANCE)
    inside = [rate_text(rate) for rate in kept if rate and math.isfinite(rate)]
    beyond = " and ".join(word for word, end in (("lower", 0.0), ("higher", math.inf)) if end in kept)
    return " to ".join(dict.fromkeys([*inside[:1], *inside[-1:]])) + (f", or {beyond}" if beyond else "")


def inverts(case: Case) -> list[Comparison]:
    """The first row matches or beats the second at the paper's rate; the second beats it at every lower rate at which
    one of them has learned: come half of the way from chance to its best, in the mean over seeds."""
    first, second = case.rule.rows
    paper, rates = case.any_cell.papers_rate, shared_rates(*case.arms.values())
    if not same_rate(rates, paper).any():
        return []
    comparisons = []
    for rate in rates:
        if at_paper := same_rate(rate, paper):
            above, under, limit = first, second, -case.margin
        else:
            above, under, limit = second, first, 0.0
        if at_paper or (rate < paper and _some_learned(case, rate)):
            comparisons.append(_at_one_rate(case, above, under, rate).within(limit))
    return comparisons if len(comparisons) > 1 else []


def inverts_somewhere(case: Case) -> list[Comparison]:
    """The first row matches or beats the second at the paper's rate; the second beats it at one lower rate or more,
    Bonferroni-corrected over those at which one of them has learned. The comparison has the rate that is clearest."""
    first, second = case.rule.rows
    paper, rates = case.any_cell.papers_rate, shared_rates(*case.arms.values())
    lower = [rate for rate in rates if rate * SLACK < paper and _some_learned(case, rate)]
    if not lower or not same_rate(rates, paper).any():
        return []
    one, two = case.arms[first], case.arms[second]
    tests = {rate: paired_difference([(two, rate, None)], [(one, rate, None)]) for rate in lower}
    clearest = min(tests, key=lambda rate: tests[rate].above(0))
    supports = min(1.0, 2 * len(tests) * tests[clearest].above(0))
    contradicts = min(1.0, 2 * max(test.below(0) for test in tests.values()))
    at_lower = replace(
        _at_one_rate(case, second, first, clearest),
        supports=supports,
        contradicts=contradicts,
        note=f"the clearest of {len(tests)} lower rates",
    )
    return [_at_one_rate(case, first, second, paper).within(-case.margin), at_lower]


def _at_one_rate(case: Case, first: str, second: str, rate: float) -> Comparison:
    label = f"{case.label(first)} - {case.label(second)} at {rate_text(rate)}"
    return case.compared([first], [second], at=(rate, rate), label=label)


def _some_learned(case: Case, rate: float) -> bool:
    return any(_has_learned(case, arm, rate) for arm in case.arms.values())


def _has_learned(case: Case, arm: Arm, rate: float) -> bool:
    best = max(arm.values(each).mean() for each in arm.rates)
    return bool(arm.values(rate).mean() >= (chance(case.task) + best) / 2)


def fixed_and_tuned(case: Case, plus: Sequence[str], minus: Sequence[str]) -> list[Comparison]:
    """The first row minus the second at the paper's rate, and the second minus the first where each has its own."""
    sides = ((plus, minus, AT_PAPERS_RATE, "paper's rate"), (minus, plus, TUNED, "tuned"))
    return [
        case.compared(above, under, at=(at, at), label=f"{case.label(above[0])} - {case.label(under[0])}, {words}")
        for above, under, at, words in sides
    ]


def orders_differ(case: Case) -> list[Comparison]:
    """Two rates differ if two rows change places between them, Bonferroni-corrected over the pairs of rows; they do
    not if every pair is in the same order at both."""
    low, high = ORDERS
    within = [rate for rate in shared_rates(*case.arms.values()) if low <= rate * SLACK and rate <= high * SLACK]
    return [_changed(case, one, two) for one, two in combinations(within, 2)]


def _changed(case: Case, one: float, two: float) -> Comparison:
    change, equal = [], []
    for first, second in combinations(case.arms.values(), 2):
        here, there = (paired_difference([(first, rate, None)], [(second, rate, None)]) for rate in (one, two))
        above, below = ([each.above(0) for each in (here, there)], [each.below(0) for each in (here, there)])
        change += [max(above[0], below[1]), max(below[0], above[1])]
        equal.append(2 * min(max(above), max(below)))
    supports, contradicts = min(1.0, len(change) * min(change)), min(1.0, max(equal))
    words = f"orders at {rate_text(one)} and {rate_text(two)}"
    return Comparison(
        words,
        supports=supports,
        contradicts=contradicts,
        limits=(math.nan, math.nan),
        of="order",
        plus=case.sweeps(case.rows),
        at=f"{rate_text(one)} and {rate_text(two)}",
    )
