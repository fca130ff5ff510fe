"""What each kind of rule tests on one task of one study, and the rules of single claims that need no more than that."""

import math
from itertools import pairwise

import pandas as pd

from fpt.claims import by_rate, losses, planes, steps  # noqa: F401  # their functions are entered
from fpt.claims.reading import Part, Reading
from fpt.claims.registry import decides, function_of, kind
from fpt.claims.words import CONSISTENT, READ, SLIP, TOO_CLOSE
from fpt.papers.schema import LEVELS, Claim, Rule
from fpt.results.attention import maps_of, scores
from fpt.results.baselines import LINEAR, Score, known_scores
from fpt.results.cells import TUNED, Cell
from fpt.results.stats import POINT, paired

TOLERANCE = 0.5  # points, of a computed baseline


def parts_of(reading: Reading) -> list[Part]:
    """What the rule tests there; one part that says why, where it cannot."""
    if (problem := reading.problem()) is not None:
        return [problem]
    return function_of(reading.rule.kind)(reading) or [reading.untested("not measured in this study")]


def tied(first: Cell, other: Cell) -> bool:
    """Whether the paper prints the same for both rows, on all tasks for which the cells stand."""
    both = [(first.printed[task].value, other.printed[task].value) for task in first.printed if task in other.printed]
    return bool(both) and all(one == two for one, two in both)


def _above(reading: Reading, above: str, under: str) -> Part:
    """A tie in the paper is a tie in the rule."""
    if tied(reading.rows[above], reading.rows[under]):
        return reading.contrast([above], [under], -reading.margin, notes=["a tie in the paper"])
    return reading.contrast([above], [under], reading.rule.by * POINT, reading.rule.to * POINT)


@kind
def beats(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    return [_above(reading, first, other) for other in others]


@kind
def matches(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    return [reading.contrast([first], [other], -reading.margin) for other in others]


@kind
def comparable(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    margin = reading.margin
    return [reading.contrast([first], [other], -margin, margin, equivalence=True) for other in others]


@kind
def order(reading: Reading) -> list[Part]:
    return [_above(reading, above, under) for under, above in pairwise(reading.rule.rows)]


@decides("L-39", "L-42")
def jump(reading: Reading) -> list[Part]:
    """The first step minus each of the others."""
    first, *others = ((end, start) for start, end in pairwise(reading.rule.rows))
    return [_larger(reading, first, other) for other in others]


@decides("L-54", "L-56", "P-29", "P-33")
def larger_difference(reading: Reading) -> list[Part]:
    first, second, third, fourth = reading.rule.rows
    return [_larger(reading, (first, second), (third, fourth))]


def _larger(reading: Reading, one: tuple[str, str], other: tuple[str, str]) -> Part:
    """One difference minus another one."""
    words = " - ".join(f"({reading.label(above)} - {reading.label(under)})" for above, under in (one, other))
    return reading.contrast([one[0], other[1]], [one[1], other[0]], comparison=words)


@kind
def near(reading: Reading) -> list[Part]:
    numbers = [(row, printed.value) for row, cell in reading.rows.items() for printed in cell.printed.values()]
    gaps = [(row, value[0] - value[1] if isinstance(value, tuple) else value) for row, value in numbers]
    return [_within(reading, row, Score(n / 100), f"{n:g} as printed") for row, n in gaps if isinstance(n, int | float)]


@decides("L-13")
def linear(reading: Reading) -> list[Part]:
    score = known_scores(reading.task).get(LINEAR)
    if score is None:
        return [reading.untested(f"no {LINEAR} was fitted")]
    return [_within(reading, row, score, f"{LINEAR} ({100 * score.share:.1f})") for row in reading.rule.rows]


@decides("P-20", "P-21")
def above_linear(reading: Reading) -> list[Part]:
    """Each row minus a linear classifier on the inputs, which has an error of its own."""
    score = known_scores(reading.task).get(LINEAR)
    if score is None:
        return [reading.untested(f"no {LINEAR} was fitted")]
    words = f"{LINEAR} ({100 * score.share:.1f})"
    return [
        reading.contrast([row], (), less=score, comparison=f"{reading.label(row)} - {words}")
        for row in reading.rule.rows
    ]


def _within(reading: Reading, row: str, score: Score, words: str) -> Part:
    """The row within the margin of a score, which has an error of its own where it was counted."""
    words = f"{reading.label(row)} - {words}"
    return reading.contrast([row], (), -reading.margin, reading.margin, equivalence=True, less=score, comparison=words)


@decides("L-06", "L-07", "L-37")
def reaches(reading: Reading) -> list[Part]:
    level = math.nextafter(float(reading.rule.level) / 100, 0)  # reached counts as reached
    return [reading.contrast([row], (), level) for row in reading.rule.rows]


@decides("L-26")
def small_gap(reading: Reading) -> list[Part]:
    return [reading.contrast([row], (), -math.inf, reading.margin) for row in reading.rule.rows]


@kind
def smaller_gap(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    return [reading.contrast([other], [first], reading.rule.by * POINT) for other in others]


@decides("L-27", "R-16", "X-03")
def underfits(reading: Reading) -> list[Part]:
    """Training accuracy after the last step, tuned: that of every other row is above that of the first."""
    first, *others = (reading.rows[row] for row in reading.rule.rows)
    own = _training(first)
    return [
        reading.part(f"training accuracy of {other.label} - {first.label}", paired(_training(other), own))
        for other in others
    ]


def _training(cell: Cell) -> "pd.Series[float]":
    """By seed; a run that was never finite has none."""
    return cell.at(TUNED)["train_accuracy_last"].astype(float)


@decides("L-22", "L-23", "L-24")
def attends(reading: Reading) -> list[Part]:
    """Scores of the first layer's attention (fpt.results.attention), above what `level` names."""
    at = reading.rule.at
    if any(maps_of(cell, at).empty for cell in reading.rows.values()):
        return []
    first, last = (reading.rows[row] for row in (reading.rule.rows[0], reading.rule.rows[-1]))
    now, before = (scores(maps_of(first, at, trained)) for trained in (True, False))
    other = scores(maps_of(last, at))["mass"]
    tests = {
        "needed": {
            "twice an even spread": (now["mass"], 2 * now["chance"]),
            "untrained": (now["mass"], before["mass"]),
        },
        "lead": {"other strings": (now["lead"], 0 * now["lead"]), "untrained": (now["lead"], before["lead"])},
        "weaker": {"an even spread": (now["mass"], now["chance"]), f"less than {last.label}": (other, now["mass"])},
    }[str(reading.rule.level)]
    return [reading.part(f"{first.label}: {name}", paired(*pair)) for name, pair in tests.items()]


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
