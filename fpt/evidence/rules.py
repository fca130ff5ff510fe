"""The kinds of rules: what each of them tests on one task of one study, by a function of its name."""

import math
from collections.abc import Callable, Mapping
from itertools import combinations, pairwise
from typing import get_args

import numpy as np
import pandas as pd

from fpt.evidence.attention import maps_of, scores
from fpt.evidence.baselines import chance, linear_score, missing_data
from fpt.evidence.cells import AT_PAPERS_RATE, TUNED, Cell, steps_to
from fpt.evidence.reading import DIVERGED, EDGE, NOT_TESTED, SUPPORTED, Part, Reading, compare, word_of
from fpt.evidence.runs import rate_text
from fpt.evidence.stats import POINT, Paired, paired
from fpt.papers.schema import Kind

ORDERS = (1e-5, 1e-3)  # the range of rates of `orders_differ` (Rothermel et al. 2021, section 4)
SAME_RATE = 1 + 1e-6


def parts_of(reading: Reading) -> list[Part]:
    """What the rule tests there; one part that says why, where it cannot."""
    word, note = reading.problem()
    parts = [] if word else KINDS[reading.rule.kind](reading)
    return parts or [reading.untested(note or "not measured in this study", word or NOT_TESTED)]


def tied(first: Cell, other: Cell) -> bool:
    """Whether the paper prints the same for both rows, on all tasks for which the cells stand."""
    both = [(first.printed[task].value, other.printed[task].value) for task in first.printed if task in other.printed]
    return bool(both) and all(one == two for one, two in both)


def _above(reading: Reading, above: str, under: str) -> Part:
    """A tie in the paper is a tie in the rule."""
    if tied(reading.rows[above], reading.rows[under]):
        return reading.contrast([above], [under], -reading.margin, notes=["a tie in the paper"])
    return reading.contrast([above], [under], reading.rule.by * POINT, reading.rule.to * POINT)


def beats(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    return [_above(reading, first, other) for other in others]


def matches_or_beats(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    return [reading.contrast([first], [other], -reading.margin) for other in others]


def comparable(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    margin = reading.margin
    return [reading.contrast([first], [other], -margin, margin, equivalence=True) for other in others]


def order(reading: Reading) -> list[Part]:
    return [_above(reading, above, under) for under, above in pairwise(reading.rule.rows)]


def jump(reading: Reading) -> list[Part]:
    """The first step minus each of the others."""
    (start, end), *others = pairwise(reading.rule.rows)
    label = reading.label
    return [
        reading.contrast(
            [end, under],
            [start, above],
            comparison=f"({label(end)} - {label(start)}) - ({label(above)} - {label(under)})",
        )
        for under, above in others
    ]


def near(reading: Reading) -> list[Part]:
    numbers = [(row, printed.value) for row, cell in reading.rows.items() for printed in cell.printed.values()]
    gaps = [(row, value[0] - value[1] if isinstance(value, tuple) else value) for row, value in numbers]
    return [_within(reading, row, n / 100, f"{n:g} as printed") for row, n in gaps if isinstance(n, int | float)]


def linear(reading: Reading) -> list[Part]:
    if missing := missing_data(reading.task):
        return [reading.untested(missing)]
    score = linear_score(reading.task)
    return [_within(reading, row, score, f"linear classifier ({100 * score:.1f})") for row in reading.rule.rows]


def _within(reading: Reading, row: str, number: float, words: str) -> Part:
    """The row within the margin of a number."""
    limits = (-reading.margin, reading.margin)
    words = f"{reading.label(row)} - {words}"
    return reading.contrast([row], (), *limits, equivalence=True, less=number, comparison=words)


def reaches(reading: Reading) -> list[Part]:
    level = math.nextafter(float(reading.rule.level) / 100, 0)  # reached counts as reached
    return [reading.contrast([row], (), level) for row in reading.rule.rows]


def _steps(reading: Reading, row: str) -> "pd.Series[float]":
    """First evaluated step at the table's goal by seed: the sweep's threshold, or the best mean of another row."""
    cell, (at,) = reading.rows[row], reading.ats
    if cell.table.until == "threshold":
        return cell.values(at, reading.stage)
    goal = reading.rows[cell.table.until].curve(at, reading.stage).mean(axis=1).max()
    return steps_to(cell.curve(at, reading.stage), float(goal))


def faster(reading: Reading) -> list[Part]:
    """Logarithms of the ratio of steps. A run that never arrived counts as the last step, less than it needs; a pair
    of which neither did says nothing."""
    specs = [cell.spec for cell in reading.rows.values() if cell.spec]
    if reading.any_cell.table.until == "threshold" and not all(spec.threshold for spec in specs):
        return [reading.untested("no threshold is set in this study")]
    first, *others = reading.rule.rows
    parts = []
    for other in others:
        both = pd.concat({row: _steps(reading, row) for row in (other, first)}, axis=1, join="inner")
        arrived = both[np.isfinite(both).any(axis=1)]
        logs = arrived.clip(upper=specs[0].steps).map(math.log)
        edges = reading.edges((first, other), reading.rule.at)
        up, down = (bool(edges) or bool(np.isinf(arrived[row]).any()) for row in (other, first))
        parts.append(
            reading.part(
                f"steps of {reading.label(other)} / {reading.label(first)}",
                paired(logs[other], logs[first]), math.log(reading.rule.by or 1), math.log(reading.rule.to),
                up=up, down=down, edges=edges,
                notes=[f"{n} pairs reached the goal in neither"] if (n := len(both) - len(arrived)) else [],
            )
        )  # fmt: skip
    return parts


def never_reaches(reading: Reading) -> list[Part]:
    """The best mean of the second row's curve minus that of the first, each by seed at its step."""
    first, second = reading.rule.rows
    curves = [reading.rows[row].curve(reading.rule.at, reading.stage) for row in (first, second)]
    if any(curve.empty for curve in curves):
        return []
    under, above = (curve.iloc[int(np.nanargmax(curve.mean(axis=1)))].astype(float) for curve in curves)
    test, notes = compare(above, under)
    edges = reading.edges((first, second), reading.rule.at)
    words = f"best of {reading.label(second)} - best of {reading.label(first)}"
    return [reading.part(words, test, up=second in edges, down=first in edges, edges=edges, notes=notes)]


def small_gap(reading: Reading) -> list[Part]:
    return [reading.contrast([row], (), -math.inf, reading.margin) for row in reading.rule.rows]


def smaller_gap(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    return [reading.contrast([other], [first], reading.rule.by * POINT) for other in others]


def unstable(reading: Reading) -> list[Part]:
    parts = []
    for row, cell in reading.rows.items():
        words = f"{cell.label}, tuned - at the paper's rate"
        if lost := cell.diverged(AT_PAPERS_RATE):
            parts.append(Part(reading.task, words, Paired(0), SUPPORTED, f"{lost} runs diverged", 0.0, 1.0))
        else:
            limit, at = reading.rule.by * POINT, (TUNED, AT_PAPERS_RATE)
            parts.append(reading.contrast([row], [row], limit, at=at, comparison=words))
    return parts


def drop(reading: Reading) -> list[Part]:
    """At the paper's rate minus at the next one of the grid, or at the rate `level`."""
    parts = []
    for row, cell in reading.rows.items():
        paper, named = cell.papers_rate or math.nan, reading.rule.level
        after = [rate for rate in cell.rates if (rate > paper * SAME_RATE if named == "" else same(rate, float(named)))]
        if after and any(same(rate, paper) for rate in cell.rates):
            words = f"{cell.label} at {rate_text(paper)} - at {rate_text(min(after))}"
            limit, at = reading.rule.by * POINT, (paper, min(after))
            parts.append(reading.contrast([row], [row], limit, at=at, comparison=words))
    return parts


def same(one: float, other: float) -> bool:
    """Whether two rates are the same but for rounding; nan is none."""
    return math.isclose(one, other, rel_tol=1e-6)


def _shared_rates(reading: Reading) -> list[float]:
    """The rates of the first row's grid that all rows have."""
    grids = [cell.rates for cell in reading.rows.values()]
    return [rate for rate in sorted(grids[0]) if all(any(same(rate, each) for each in grid) for grid in grids)]


def lower_rate(reading: Reading) -> list[Part]:
    """By the rates that selection chose: a count, no test."""
    first, *others = reading.rule.rows
    return [_ratio_of_rates(reading, reading.rows[first], reading.rows[other]) for other in others]


def _ratio_of_rates(reading: Reading, first: Cell, other: Cell) -> Part:
    if first.best_rate is None or other.best_rate is None:
        return Part(reading.task, "", Paired(0), DIVERGED, "diverged at every rate")
    holds = other.best_rate * SAME_RATE >= reading.rule.by * first.best_rate
    up = _end(first) == "low" or _end(other) == "high"  # the ratio may be larger
    down = _end(first) == "high" or _end(other) == "low"
    supports, contradicts = float(not holds or down), float(holds or up)
    words = f"best rates: {first.label} {rate_text(first.best_rate)}, {other.label} {rate_text(other.best_rate)}"
    word = word_of(supports, contradicts, EDGE)
    return Part(reading.task, words, Paired(0), word, "the rates chosen, no test", supports, contradicts)


def _end(cell: Cell) -> str:
    """At which end of the grid the best rate lies, or nothing."""
    if not cell.at_edge or cell.best_rate is None:
        return ""
    return "low" if cell.best_rate <= min(cell.rates) * SAME_RATE else "high"


def inverts(reading: Reading) -> list[Part]:
    """The first row matches or beats the second at the paper's rate; the second beats it at every lower rate at which
    one of them has come half of the way from chance to its best."""
    first, second = reading.rule.rows
    paper, rates = reading.any_cell.papers_rate or math.nan, _shared_rates(reading)
    if not any(same(rate, paper) for rate in rates):
        return []
    parts = []
    for rate in rates:
        if at_paper := same(rate, paper):
            above, under, limit = first, second, -reading.margin
        else:
            above, under, limit = second, first, 0.0
        if at_paper or (rate < paper and any(_has_learned(reading, row, rate) for row in (first, second))):
            words = f"{reading.label(above)} - {reading.label(under)} at {rate_text(rate)}"
            parts.append(reading.contrast([above], [under], limit, at=(rate, rate), comparison=words))
    return parts if len(parts) > 1 else []


def _has_learned(reading: Reading, row: str, rate: float) -> bool:
    best = max(reading.values(row, each).mean() for each in reading.rows[row].rates)
    return bool(reading.values(row, rate).mean() >= (chance(reading.task) + best) / 2)


def fixed_and_tuned(reading: Reading) -> list[Part]:
    first, second = reading.rule.rows
    sides = ((first, second, AT_PAPERS_RATE, "paper's rate"), (second, first, TUNED, "tuned"))
    return [
        reading.contrast(
            [above], [under], at=(at, at), comparison=f"{reading.label(above)} - {reading.label(under)}, {words}"
        )
        for above, under, at, words in sides
    ]


def orders_differ(reading: Reading) -> list[Part]:
    """Two rates differ if two rows change places between them, Bonferroni-corrected over the pairs of rows; they do
    not if every pair is in the same order at both."""
    low, high = ORDERS
    within = [rate for rate in _shared_rates(reading) if low <= rate * SAME_RATE and rate <= high * SAME_RATE]
    return [_changed(reading, one, two) for one, two in combinations(within, 2)]


def _changed(reading: Reading, one: float, two: float) -> Part:
    change, same = [], []
    for first, second in combinations(reading.rule.rows, 2):
        here, there = (compare(reading.values(first, rate), reading.values(second, rate))[0] for rate in (one, two))
        above, below = (here.above(0), there.above(0)), (here.below(0), there.below(0))
        change += [max(above[0], below[1]), max(below[0], above[1])]
        same.append(2 * min(max(above), max(below)))
    differ, equal = (float(np.nan_to_num(p, nan=1.0)) for p in (min(1.0, len(change) * min(change)), max(same)))
    words = f"orders at {rate_text(one)} and {rate_text(two)}"
    return Part(reading.task, words, Paired(0), word_of(differ, equal), "", differ, min(1.0, equal))


def attends(reading: Reading) -> list[Part]:
    """Scores of the first layer's attention (fpt.evidence.attention), above what `level` names."""
    at, stage = reading.rule.at, reading.stage
    if any(maps_of(cell, at, stage=stage).empty for cell in reading.rows.values()):
        return []
    first, last = (reading.rows[row] for row in (reading.rule.rows[0], reading.rule.rows[-1]))
    now, before = (scores(maps_of(first, at, trained, stage)) for trained in (True, False))
    other = scores(maps_of(last, at, stage=stage))["mass"]
    tests = {
        "needed": {
            "twice an even spread": (now["mass"], 2 * now["chance"]),
            "untrained": (now["mass"], before["mass"]),
        },
        "lead": {"other strings": (now["lead"], 0 * now["lead"]), "untrained": (now["lead"], before["lead"])},
        "weaker": {"an even spread": (now["mass"], now["chance"]), f"less than {last.label}": (other, now["mass"])},
    }[str(reading.rule.level)]
    return [reading.part(f"{first.label}: {name}", paired(*pair)) for name, pair in tests.items()]


KINDS: Mapping[str, Callable[[Reading], list[Part]]] = {  # a kind is tested by the function of its name
    kind: globals()[kind] for kind in get_args(Kind) if kind in globals()
}
