"""What each kind of rule tests on one task of one study, and the rules of single claims that need no more than that."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fpt.claims import by_rate, losses, planes, steps  # noqa: F401  # their functions are entered
from fpt.claims.case import Case, Comparison
from fpt.claims.registry import (
    KINDS,
    SINGLE,
    Entry,
    alone,
    decides,
    entry_of,
    first_step,
    in_order,
    kind,
    less_first,
    two_differences,
    with_first,
)
from fpt.claims.words import CONSISTENT, READ, SLIP, TOO_CLOSE
from fpt.errors import check_known
from fpt.papers.schema import LEVELS, Claim, Rule
from fpt.results.attention import maps_of, scores
from fpt.results.baselines import LINEAR, Score, known_scores
from fpt.results.cells import TUNED, TableCell
from fpt.results.stats import POINT, paired
from fpt.sweeps.selection import tuned_without

TOLERANCE = 0.5  # points, of a computed baseline


def comparisons_of(case: Case) -> list[Comparison]:
    """What the rule tests there; one comparison that says why, where it cannot."""
    if (problem := case.problem()) is not None:
        return [problem]
    return entry_of(case.rule.kind).function(case) or [case.untested("not measured in this study")]


def is_likeness(rule: Rule) -> bool:
    """Whether a rule asks that two things are alike: within a margin, or a ratio between two bounds."""
    return entry_of(rule.kind).likeness or (rule.kind == "rate_ratio" and math.isfinite(rule.to))


@dataclass(frozen=True)
class Difference:
    """A rule that is one contrast with limits, for each way in which its rows are compared.

    `low`, `high`: names of the limits between which the contrast must lie, of `limit`.
    """

    pairs: Callable[[Sequence[str]], list[tuple[tuple[str, ...], tuple[str, ...]]]]
    low: str = "0"
    high: str = "inf"
    likeness: bool = False
    ties: bool = False  # whether a tie in the paper is a tie in the rule
    linear: bool = False  # whether the score of a linear classifier on the inputs is taken off

    def __call__(self, case: Case) -> list[Comparison]:
        if not self.linear:
            return [self._of(case, plus, minus) for plus, minus in self.pairs(case.rule.rows)]
        score = known_scores(case.task, case.variant).get(LINEAR)
        if score is None:
            return [case.untested(f"no {LINEAR} was fitted")]
        words = f"{LINEAR} ({100 * score.share:.1f})"
        return [self._of(case, plus, minus, less=score, score=words) for plus, minus in self.pairs(case.rule.rows)]

    def _of(self, case: Case, plus: Sequence[str], minus: Sequence[str], **less: Any) -> Comparison:
        if self.ties and tied(case.rows[plus[0]], case.rows[minus[0]]):
            return case.contrast(plus, minus, limit(case, "-margin"), notes=["a tie in the paper"])
        low, high = limit(case, self.low), limit(case, self.high)
        return case.contrast(plus, minus, low, high, equivalence=self.likeness, label=_label(case, plus, minus), **less)


def limit(case: Case, name: str) -> float:
    """A limit by its name, as a fraction: a number, the margin of the task, or what the rule gives."""
    if name.endswith("margin"):
        return -case.margin if name.startswith("-") else case.margin
    if name == "level":
        return math.nextafter(float(case.rule.level) / 100, 0)  # reached counts as reached
    given = {"by": case.rule.by, "to": case.rule.to}
    return given[name] * POINT if name in given else float(name)


def _label(case: Case, plus: Sequence[str], minus: Sequence[str]) -> str:
    """Of a difference of differences: (a - b) - (c - d). Others are named by their rows."""
    if len(plus) < 2:
        return ""
    both = (plus[0], minus[0]), (minus[1], plus[1])
    return " - ".join(f"({case.label(above)} - {case.label(under)})" for above, under in both)


def tied(first: TableCell, other: TableCell) -> bool:
    """Whether the paper prints the same for both rows, on all tasks for which the cells stand."""
    both = [(first.printed[task].value, other.printed[task].value) for task in first.printed if task in other.printed]
    return bool(both) and all(one == two for one, two in both)


DIFFERENCES = {  # kinds of rules that many claims share
    "beats": Difference(with_first, "by", "to", ties=True),
    "matches": Difference(with_first, "-margin"),
    "comparable": Difference(with_first, "-margin", "margin", likeness=True),
    "order": Difference(in_order, "by", "to", ties=True),
    "smaller_gap": Difference(less_first, "by"),
}
OF_SOME = {  # those that serve a few claims
    "jump": (Difference(first_step), ("L-39", "L-42")),
    "larger_difference": (Difference(two_differences), ("L-54", "L-56", "P-29", "P-33")),
    "linear": (Difference(alone, "-margin", "margin", likeness=True, linear=True), ("L-13",)),
    "above_linear": (Difference(alone, linear=True), ("P-20", "P-21")),
    "reaches": (Difference(alone, "level"), ("L-06", "L-07", "L-37")),
    "small_gap": (Difference(alone, "-inf", "margin"), ("L-26",)),
}
for _name, _rule in DIFFERENCES.items():
    KINDS[_name] = Entry(_rule, splits=_rule.pairs, likeness=_rule.likeness)
for _name, (_rule, _claims) in OF_SOME.items():
    SINGLE[_name] = Entry(_rule, _claims, splits=_rule.pairs, likeness=_rule.likeness)


@kind(splits=alone, likeness=True)
def near(case: Case) -> list[Comparison]:
    """Each row within the margin of the number, or of the gap, that the paper prints for it."""
    numbers = [(row, printed.value) for row, cell in case.rows.items() for printed in cell.printed.values()]
    gaps = [(row, value[0] - value[1] if isinstance(value, tuple) else value) for row, value in numbers]
    return [
        case.contrast(
            [row], (), -case.margin, case.margin, equivalence=True, less=Score(n / 100), score=f"{n:g} as printed"
        )
        for row, n in gaps
        if isinstance(n, int | float)
    ]


@decides("L-27", "R-16", "X-03")
def underfits(case: Case) -> list[Comparison]:
    """Training accuracy after the last step, tuned: that of every other row is above that of the first."""
    first, *others = (case.rows[row] for row in case.rule.rows)
    own, own_without = _training(first)
    found = []
    for other in others:
        training, without = _training(other)
        found.append(
            case.comparison(
                f"training accuracy of {other.label} - {first.label}",
                paired(training, own, without=without - own_without),
                of="training accuracy",
                plus=(other.sweep,),
                minus=(first.sweep,),
                levels=(float(training.mean()) / POINT, float(own.mean()) / POINT),
            )
        )
    return found


def _training(cell: TableCell) -> tuple["pd.Series[float]", pd.DataFrame]:
    """By seed, and the same without each seed; a run that was never finite has none."""
    if (tables := cell.arm) is None:
        return pd.Series(dtype=float), pd.DataFrame()
    plane = tables.plane(column="train_accuracy_last")
    return cell.at(TUNED)["train_accuracy_last"].astype(float), tuned_without(tables.validation(), plane)


@decides("L-22", "L-23", "L-24")
def attends(case: Case) -> list[Comparison]:
    """Scores of the first layer's attention (fpt.results.attention), above what `level` names."""
    at = case.rule.at
    if any(maps_of(cell, at).empty for cell in case.rows.values()):
        return []
    first, last = (case.rows[row] for row in (case.rule.rows[0], case.rule.rows[-1]))
    now, before = (scores(maps_of(first, at, trained)) for trained in (True, False))
    other = scores(maps_of(last, at))["mass"]
    tests = {
        "needed": {
            "twice an even spread": (now["mass"], 2 * now["chance"]),
            "untrained": (now["mass"], before["mass"]),
        },
        "lead": {"other strings": (now["lead"], 0 * now["lead"]), "untrained": (now["lead"], before["lead"])},
        "weaker": {"an even spread": (now["mass"], now["chance"]), f"less than {last.label}": (other, now["mass"])},
    }
    check_known("level of attends", str(case.rule.level), tests)
    return [
        case.comparison(
            f"{first.label}: {name}",
            paired(*pair),
            of=f"attention, {case.rule.level}: {name}",
            plus=(first.sweep,),
            minus=case.sweeps(case.rule.rows[1:]),
        )
        for name, pair in tests[str(case.rule.level)].items()
    ]


def baseline_verdict(claim: Claim, rule: Rule, task: str) -> tuple[str, str]:
    """A word and a note: consistent where the computed score is the printed number within 0.5 points or two standard
    errors of their difference; a slip beyond twice that; only read where it was not counted."""
    name, scores = str(rule.level), known_scores(task)
    if name not in scores:
        return READ, f"{task}: {name} was not counted"
    score, noise = 100 * scores[name].share, 100 * scores[name].standard_error
    printed, error = claim.numbers["accuracy"], claim.numbers.get("se", 0.0)
    if isinstance(printed, dict):
        printed = printed[LEVELS.index(name)]
    allowed = printed if isinstance(printed, list | tuple) else [printed]
    away, close = min(abs(score - number) for number in allowed), max(TOLERANCE, 2 * math.hypot(error, noise))
    word = TOO_CLOSE
    if away <= close:
        word = CONSISTENT
    elif away > 2 * close:
        word = SLIP
    return word, f"{task}: {name} {score:.1f}, printed {' and '.join(f'{number:g}' for number in allowed)}"
