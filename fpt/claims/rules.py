"""Which kinds of rules there are: a difference with limits is a row of `KINDS`, and what is more has a function there.

A row says what is measured, on which rows of a table, and between which limits it has to lie.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fpt.claims import by_rate, losses, planes, steps
from fpt.claims.attention import attends
from fpt.claims.case import Case, Comparison
from fpt.claims.differences import above_linear, above_printed, accuracy, training_accuracy
from fpt.papers.schema import Rule
from fpt.results.arm import TUNED
from fpt.results.cells import AT_PAPERS_RATE, TableCell
from fpt.results.estimate import TIMES
from fpt.results.stats import POINT

EVERY_RATE: tuple[str, ...] = ()  # read on the whole grid
AT_BOTH = (TUNED, AT_PAPERS_RATE)
Rows = Sequence[str]
Sides = list[tuple[Rows, Rows]]  # of each single rule: the rows that are added, and those that are taken off


# --- which rows are compared


def with_first(rows: Rows) -> Sides:
    """The first row minus each of the others."""
    first, *others = rows
    return [((first,), (other,)) for other in others]


def less_first(rows: Rows) -> Sides:
    """Each of the others minus the first."""
    return [(other, first) for first, other in with_first(rows)]


def in_order(rows: Rows) -> Sides:
    """Each row minus the one before."""
    return [((above,), (under,)) for under, above in pairwise(rows)]


def alone(rows: Rows) -> Sides:
    """Each row, from which a score is taken off, or nothing."""
    return [((row,), ()) for row in rows]


def first_step(rows: Rows) -> Sides:
    """The difference of the first two rows, minus that of each later two that are neighbours."""
    (start, end), *others = pairwise(rows)
    return [((end, under), (start, above)) for under, above in others]


def two_differences(rows: Rows) -> Sides:
    """The first row minus the second, minus the difference of the third and the fourth."""
    first, second, third, fourth = rows
    return [((first, fourth), (second, third))]


def two_by_two(rows: Rows) -> Sides:
    """The first row of every two, and the second."""
    return [(rows[::2], rows[1::2])]


@dataclass(frozen=True)
class Kind:
    """What decides the rules of a kind.

    What is `measured` between its `sides` lies between `low` and `high`: numbers, or names of limits (`limit`). Or
    `decide` does so, a function, and `sides` say which of the rows a single rule needs.
    """

    measured: Callable[[Case, Rows, Rows], list[Comparison]] | None = None
    sides: Callable[[Rows], Sides] | None = None
    low: str = "0"
    high: str = "inf"
    likeness: bool = False
    ties: bool = False  # whether a tie in the paper is a tie in the rule
    together: bool = False  # whether one study has to have all of its rows
    at: tuple[str, ...] | None = None  # where rates are read; None: where the rule says
    decide: Callable[[Case], list[Comparison]] | None = None

    def __post_init__(self) -> None:
        assert (self.measured is None) is not (self.decide is None), "a kind measures, or decides by a function"


KINDS = {
    "beats": Kind(accuracy, with_first, "by", "to", ties=True),
    "matches": Kind(accuracy, with_first, "-within"),
    "comparable": Kind(accuracy, with_first, "-within", "within", likeness=True),
    "order": Kind(accuracy, in_order, "by", "to", ties=True),
    "smaller_gap": Kind(accuracy, less_first, "by"),
    "near": Kind(above_printed, alone, "-within", "within", likeness=True),
    "rate_ratio": Kind(losses.ratio_of_rates, with_first, "by", "to", at=EVERY_RATE),
    "faster": Kind(sides=with_first, decide=steps.faster),
    # those that serve a few claims
    "jump": Kind(accuracy, first_step, together=True),
    "larger_difference": Kind(accuracy, two_differences),
    "linear": Kind(above_linear, alone, "-margin", "margin", likeness=True),
    "above_linear": Kind(above_linear, alone),
    "reaches": Kind(accuracy, alone, "level"),
    "small_gap": Kind(accuracy, alone, "-inf", "margin"),
    "underfits": Kind(training_accuracy, less_first, together=True),
    "loses_at_papers_rate": Kind(by_rate.lost_at_papers_rate, alone, "by", at=AT_BOTH),
    "lower": Kind(losses.test_loss, less_first, together=True),
    "falls_with_steps": Kind(losses.fall_of_ratio, with_first, "1", at=EVERY_RATE),
    # nearer to 0, the same at every width, than to one half
    "ratio_slope": Kind(losses.exponent_in_width, two_by_two, "-0.25", "0.25", likeness=True, at=EVERY_RATE),
    "same_loss": Kind(decide=losses.same_loss, likeness=True),
    "unstable": Kind(sides=alone, decide=by_rate.unstable, at=AT_BOTH),
    "drop": Kind(by_rate.drop, alone, "by", at=EVERY_RATE),
    "lower_rate": Kind(sides=with_first, decide=by_rate.lower_rate, at=EVERY_RATE),
    "inverts": Kind(decide=by_rate.inverts, at=EVERY_RATE),
    "inverts_somewhere": Kind(decide=by_rate.inverts_somewhere, at=EVERY_RATE),
    "fixed_and_tuned": Kind(by_rate.fixed_and_tuned, with_first, together=True, at=AT_BOTH),
    "orders_differ": Kind(decide=by_rate.orders_differ, at=EVERY_RATE),
    "plane": Kind(decide=planes.plane, at=EVERY_RATE),
    "crossing": Kind(decide=planes.crossing),
    "never_reaches": Kind(decide=steps.never_reaches),
    "attends": Kind(decide=attends),
}


def rates_of(rule: Rule) -> tuple[str, ...]:
    """Where its learning rates are read; none: at every one."""
    at = KINDS[rule.kind].at
    return (rule.at,) if at is None else at


def is_likeness(rule: Rule) -> bool:
    """Whether a rule asks that two things are alike: within a margin, or a ratio between two bounds."""
    return KINDS[rule.kind].likeness or (rule.kind == "rate_ratio" and math.isfinite(rule.to))


def single_rules(rule: Rule) -> list[Rule]:
    """A rule as rules of two sides each, so that each may be read in the study that speaks for it."""
    kind = KINDS[rule.kind]
    if kind.sides is None or kind.together:
        return [rule]
    parts = [{*plus, *minus} for plus, minus in kind.sides(rule.rows)]
    return [rule.model_copy(update={"rows": tuple(row for row in rule.rows if row in part)}) for part in parts]


def comparisons_of(case: Case) -> list[Comparison]:
    """What the rule tests there; one comparison that says why, where it cannot."""
    if (problem := case.problem(rates_of(case.rule))) is not None:
        return [problem]
    kind = KINDS[case.rule.kind]
    found = kind.decide(case) if kind.decide else _measured(case, kind)
    return found or [case.untested("not measured in this study")]


def _measured(case: Case, kind: Kind) -> list[Comparison]:
    """What is measured of every pair of rows, between the limits."""
    found = []
    assert kind.measured
    for plus, minus in kind.sides(case.rule.rows) if kind.sides else []:
        tie = kind.ties and _tied(case.rows[plus[0]], case.rows[minus[0]])
        low, high = ("-margin", "inf") if tie else (kind.low, kind.high)
        for each in kind.measured(case, plus, minus):
            times = each.estimate.unit == TIMES
            within = each.within(limit(case, low, times), limit(case, high, times), is_likeness(case.rule))
            found.append(replace(within, note="; ".join(filter(None, ["a tie in the paper" * tie, within.note]))))
    return found


def limit(case: Case, name: str, times: bool = False) -> float:
    """A limit by its name: a number, the margin of the task, or what the rule gives, in points or, of a ratio, in
    times. `within` is the margin of the rule, or of the task where the rule has none."""
    if name.endswith(("margin", "within")):
        margin = (case.rule.by * POINT if name.endswith("within") else 0) or case.margin
        return -margin if name.startswith("-") else margin
    if name == "level":
        return math.nextafter(float(case.rule.level) / 100, 0)  # reached counts as reached
    given = {"by": case.rule.by, "to": case.rule.to}
    return given[name] * (1 if times else POINT) if name in given else float(name)


def _tied(first: TableCell, other: TableCell) -> bool:
    """Whether the paper prints the same for both rows, on all tasks for which the cells stand."""
    both = [(first.printed[task].value, other.printed[task].value) for task in first.printed if task in other.printed]
    return bool(both) and all(one == two for one, two in both)
