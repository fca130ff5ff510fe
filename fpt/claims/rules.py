"""What each kind of rule tests on one task of one study, and the rules of single claims that need no more than that."""

import math
from itertools import pairwise

import pandas as pd

from fpt.claims import by_rate, losses, planes, steps  # noqa: F401  # their functions are entered
from fpt.claims.case import Case, Comparison
from fpt.claims.registry import ALONE, IN_ORDER, WITH_FIRST, decides, entry_of, kind
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


def tied(first: TableCell, other: TableCell) -> bool:
    """Whether the paper prints the same for both rows, on all tasks for which the cells stand."""
    both = [(first.printed[task].value, other.printed[task].value) for task in first.printed if task in other.printed]
    return bool(both) and all(one == two for one, two in both)


def _above(case: Case, above: str, under: str) -> Comparison:
    """A tie in the paper is a tie in the rule."""
    if tied(case.rows[above], case.rows[under]):
        return case.contrast([above], [under], -case.margin, notes=["a tie in the paper"])
    return case.contrast([above], [under], case.rule.by * POINT, case.rule.to * POINT)


@kind(splits=WITH_FIRST)
def beats(case: Case) -> list[Comparison]:
    first, *others = case.rule.rows
    return [_above(case, first, other) for other in others]


@kind(splits=WITH_FIRST)
def matches(case: Case) -> list[Comparison]:
    first, *others = case.rule.rows
    return [case.contrast([first], [other], -case.margin) for other in others]


@kind(splits=WITH_FIRST, likeness=True)
def comparable(case: Case) -> list[Comparison]:
    first, *others = case.rule.rows
    margin = case.margin
    return [case.contrast([first], [other], -margin, margin, equivalence=True) for other in others]


@kind(splits=IN_ORDER)
def order(case: Case) -> list[Comparison]:
    return [_above(case, above, under) for under, above in pairwise(case.rule.rows)]


@decides("L-39", "L-42")
def jump(case: Case) -> list[Comparison]:
    """The first step minus each of the others."""
    first, *others = ((end, start) for start, end in pairwise(case.rule.rows))
    return [_larger(case, first, other) for other in others]


@decides("L-54", "L-56", "P-29", "P-33")
def larger_difference(case: Case) -> list[Comparison]:
    first, second, third, fourth = case.rule.rows
    return [_larger(case, (first, second), (third, fourth))]


def _larger(case: Case, one: tuple[str, str], other: tuple[str, str]) -> Comparison:
    """One difference minus another one."""
    words = " - ".join(f"({case.label(above)} - {case.label(under)})" for above, under in (one, other))
    return case.contrast([one[0], other[1]], [one[1], other[0]], label=words)


@kind(splits=ALONE, likeness=True)
def near(case: Case) -> list[Comparison]:
    numbers = [(row, printed.value) for row, cell in case.rows.items() for printed in cell.printed.values()]
    gaps = [(row, value[0] - value[1] if isinstance(value, tuple) else value) for row, value in numbers]
    return [_within(case, row, Score(n / 100), f"{n:g} as printed") for row, n in gaps if isinstance(n, int | float)]


@decides("L-13", splits=ALONE, likeness=True)
def linear(case: Case) -> list[Comparison]:
    score = known_scores(case.task, case.variant).get(LINEAR)
    if score is None:
        return [case.untested(f"no {LINEAR} was fitted")]
    return [_within(case, row, score, f"{LINEAR} ({100 * score.share:.1f})") for row in case.rule.rows]


@decides("P-20", "P-21")
def above_linear(case: Case) -> list[Comparison]:
    """Each row minus a linear classifier on the inputs, which has an error of its own."""
    score = known_scores(case.task, case.variant).get(LINEAR)
    if score is None:
        return [case.untested(f"no {LINEAR} was fitted")]
    words = f"{LINEAR} ({100 * score.share:.1f})"
    return [case.contrast([row], (), less=score, label=f"{case.label(row)} - {words}") for row in case.rule.rows]


def _within(case: Case, row: str, score: Score, words: str) -> Comparison:
    """The row within the margin of a score, which has an error of its own where it was counted."""
    words = f"{case.label(row)} - {words}"
    return case.contrast([row], (), -case.margin, case.margin, equivalence=True, less=score, label=words)


@decides("L-06", "L-07", "L-37", splits=ALONE)
def reaches(case: Case) -> list[Comparison]:
    level = math.nextafter(float(case.rule.level) / 100, 0)  # reached counts as reached
    return [case.contrast([row], (), level) for row in case.rule.rows]


@decides("L-26", splits=ALONE)
def small_gap(case: Case) -> list[Comparison]:
    return [case.contrast([row], (), -math.inf, case.margin) for row in case.rule.rows]


@kind(splits=WITH_FIRST)
def smaller_gap(case: Case) -> list[Comparison]:
    first, *others = case.rule.rows
    return [case.contrast([other], [first], case.rule.by * POINT) for other in others]


@decides("L-27", "R-16", "X-03")
def underfits(case: Case) -> list[Comparison]:
    """Training accuracy after the last step, tuned: that of every other row is above that of the first."""
    first, *others = (case.rows[row] for row in case.rule.rows)
    own, own_without = _training(first)
    found = []
    for other in others:
        training, without = _training(other)
        test = paired(training, own, without=without - own_without)
        found.append(case.comparison(f"training accuracy of {other.label} - {first.label}", test))
    return found


def _training(cell: TableCell) -> tuple["pd.Series[float]", pd.DataFrame]:
    """By seed, and the same without each seed; a run that was never finite has none."""
    if (tables := cell.tables) is None:
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
        case.comparison(f"{first.label}: {name}", paired(*pair)) for name, pair in tests[str(case.rule.level)].items()
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
