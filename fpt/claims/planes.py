"""Which of two arms wins, by learning rate and budget: the plane (P-01), and the budget at which a tuned arm overtakes
another (P-02). Both come from the sweeps of the two arms: a run at a constant rate contains every shorter one.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd

from fpt.claims.case import Case, Comparison
from fpt.results.arm import TUNED, Arm, remembered
from fpt.results.difference import paired_difference, shared_rates
from fpt.results.estimate import Estimate
from fpt.results.runs import rate_text
from fpt.results.stats import MINIMUM_PAIRS, SIGNIFICANCE, holm

AHEAD, BEHIND, NEITHER, BOUNDED = "+", "-", "0", "?"

Tests = Mapping[tuple[float, int], Estimate]  # by rate and budget


@dataclass(frozen=True)
class Crossing:
    """Where the first of two tuned arms overtakes the second, by paired differences at budgets in ascending order.

    `edges`: budgets at which the first, the second arm is tuned to an end of its grid. Its accuracy is a lower bound
    there, which decides nothing where that arm trails.
    """

    tests: Mapping[int, Estimate]
    edges: tuple[Collection[int], Collection[int]] = ((), ())

    @cached_property
    def signs(self) -> dict[int, str]:
        """By budget, all of them right with 95% (Bonferroni): the first arm is ahead: +, behind: -, neither: 0;
        ? where the arm that trails is at an edge."""
        return {budget: self._sign(budget, len(self.tests)) for budget in self.tests}

    @cached_property
    def band(self) -> list[int]:
        """C, the budgets whose own 95% interval holds 0: if the arms cross once, at one of the budgets, it is in C with
        95%. A budget where the arm that trails is at an edge is in it too."""
        return [budget for budget in self.tests if self._sign(budget) in (NEITHER, BOUNDED)]

    def _sign(self, budget: int, of: int = 1) -> str:
        first, second = self.edges
        sign = sign_of(self.tests[budget], of)
        trailing: Collection[int] = {AHEAD: second, BEHIND: first}.get(sign, ())
        return BOUNDED if budget in trailing else sign

    @cached_property
    def answer(self) -> str:
        """By the signs together, in words that follow the name of the first arm."""
        ahead, behind = self._budgets(AHEAD), self._budgets(BEHIND)
        if ahead and behind and behind[-1] < ahead[0]:
            return f"overtakes between {behind[-1]:,} and {ahead[0]:,} steps"
        if ahead and behind:
            return f"ahead and later behind: {''.join(self.signs.values())}"
        if behind and behind[-1] == (last := max(self.tests)):
            return f"not within {last:,} steps"
        if not ahead and not behind:
            return "undecided at every budget"
        rest = "; undecided at other budgets" if len(ahead or behind) < len(self.tests) else ""
        return f"{'ahead' if ahead else 'behind'} at {steps_in_words(ahead or behind)} steps{rest}"

    def _budgets(self, sign: str) -> list[int]:
        return [budget for budget, each in self.signs.items() if each == sign]

    @property
    def p_values(self) -> tuple[float, float]:
        """That the first arm overtakes or is ahead, and that it does not within the budgets; 1 where it is
        ahead and later behind."""
        signs = "".join(self.signs.values())
        if AHEAD in signs and BEHIND in signs[signs.index(AHEAD) :]:
            return 1.0, 1.0
        last, (first, second) = max(self.tests), self.edges
        times = 2 * len(self.tests)  # two-sided, and Bonferroni's correction over the budgets
        above = times * self.tests[self.clearest].above(0) if self.clearest not in second else 1.0
        below = times * self.tests[last].below(0) if last not in first else 1.0
        return min(1.0, above), min(1.0, below)

    @property
    def clearest(self) -> int:
        """The budget at which the first arm's lead is clearest; one where the second is not tuned to an end of its
        grid, if there is any."""
        return min(self.tests, key=lambda budget: (budget in self.edges[1], self.tests[budget].above(0)))


def sign_of(test: Estimate, of: int = 1) -> str:
    """Where the mean of a test is, with 95%, corrected for so many tests (Bonferroni): above 0: +, below: -, not known:
    0."""
    for sign, p in ((AHEAD, test.above(0)), (BEHIND, test.below(0))):
        if 2 * of * p < SIGNIFICANCE:
            return sign
    return NEITHER


def steps_in_words(budgets: Iterable[int]) -> str:
    """Budgets, as 1,000, 3,000."""
    return ", ".join(f"{budget:,}" for budget in budgets)


@remembered
def by_budget(first: Arm, second: Arm, at: str | float = TUNED) -> dict[int, Estimate]:
    """The first minus the second at the budgets that both have, paired by seed, each seed at its own rate [at one]."""
    shared = [budget for budget in first.budgets if budget in second.budgets]
    return {budget: paired_difference([(first, at, budget)], [(second, at, budget)]) for budget in shared}


def crossing_of(first: Arm, second: Arm) -> Crossing:
    """Of two arms, each seed at its own rate."""
    return Crossing(by_budget(first, second), (_edges(first), _edges(second)))


def _edges(arm: Arm) -> list[int]:
    """The budgets at which some tuned rate is an end of the grid."""
    return [budget for budget in arm.budgets if arm.ends(budget)]


def crossing(case: Case) -> list[Comparison]:
    """The first row comes to lead the second within the budgets, both tuned.

    Supported: ahead at some budget and behind at no later one. Contradicted: behind at the last, never ahead. The
    difference is that at the budget whose p the comparison has: the clearest lead, or the last one where it speaks
    more clearly against it.
    """
    first, second = case.rule.rows
    found = crossing_of(case.arms[first], case.arms[second])
    if not found.tests:
        return []
    supports, contradicts = found.p_values
    leads = supports < contradicts
    shown = found.clearest if leads else max(found.tests)
    which = "the clearest lead" if leads else "the last budget"
    label = f"{case.label(first)} - {case.label(second)}, tuned, after {shown:,} steps ({which})"
    at_budget = case.compared([first], [second], at=(TUNED, TUNED), budget=shown, label=label)
    signs = ", ".join(f"{sign} after {budget:,}" for budget, sign in found.signs.items())
    note = f"{found.answer}; {signs} steps"
    return [replace(at_budget, supports=supports, contradicts=contradicts, note=note)]


def plane_tests(first: Arm, second: Arm) -> Tests:
    """At every rate and budget that both arms have, in ascending order: the first minus the second, paired by seed."""
    rates = shared_rates(first, second)
    return {(rate, budget): test for rate in rates for budget, test in by_budget(first, second, rate).items()}


def plane_table(tests: Tests) -> pd.DataFrame:
    """One row per rate and budget: `pairs`, the `mean` difference (fraction) and its 95% interval `low` to `high`, `p`
    (two-sided), `corrected` (Holm, over the plane), and `band`: the interval holds 0, the winner may change here."""
    rows = [(*place, test.n, test.mean, *test.interval, test.p) for place, test in tests.items()]
    table = pd.DataFrame(rows, columns=["rate", "budget", "pairs", "mean", "low", "high", "p"])
    return table.assign(corrected=holm(list(table["p"])), band=table["p"] >= SIGNIFICANCE)


def plane(case: Case) -> list[Comparison]:
    """Each row beats the other at some rate and budget, at one rate for both: a comparison a row.

    Supported: at one of them or more, after Holm's correction over the plane (both comparisons must be). Contradicted:
    at none of them so, and at each the upper end of its one-sided 95% interval is below the margin
    (intersection-union): nowhere ahead by a margin. Else open, as where the intervals are wide.
    """
    first, second = case.rule.rows
    tests = plane_tests(case.arms[first], case.arms[second])
    if not tests:
        return [case.untested("no rate that both have")]
    turned = {place: -test for place, test in tests.items()}
    return [_ahead_somewhere(case, first, second, tests), _ahead_somewhere(case, second, first, turned)]


def _ahead_somewhere(case: Case, first: str, second: str, tests: Tests) -> Comparison:
    corrected = holm([test.p for test in tests.values()])
    leads = [p for p, test in zip(corrected, tests.values(), strict=True) if test.value > 0]
    supports = min(leads, default=1.0)
    significant = sum(p < SIGNIFICANCE for p in leads)
    behind = max(test.below(case.margin) for test in tests.values())
    contradicts = 1.0 if significant else behind
    rate, budget = min(tests, key=lambda place: (tests[place].n < MINIMUM_PAIRS, tests[place].above(0)))
    note = f"the clearest of {len(tests)} pairs of rate and budget; significant at {significant} of them"
    label = f"{case.label(first)} - {case.label(second)} at {rate_text(rate)} after {budget:,} steps"
    found = case.compared([first], [second], at=(rate, rate), budget=budget, label=label)
    return replace(found, supports=supports, contradicts=contradicts, note=note)
