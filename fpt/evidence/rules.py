"""The kinds of rules: what each of them tests on one task of one study."""

import math
from collections.abc import Callable, Mapping
from itertools import combinations, pairwise

import numpy as np
import pandas as pd

from fpt.evidence.attention import maps_of, scores
from fpt.evidence.baselines import chance, linear_score, missing_data
from fpt.evidence.cells import AT_PAPERS_RATE, TUNED, Cell, steps_to
from fpt.evidence.reading import DIVERGED, EDGE, NOT_TESTED, SUPPORTED, Part, Reading, compare, word_of
from fpt.evidence.runs import near, rate_text
from fpt.evidence.stats import POINT, Paired, paired

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


def _beats(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    return [_above(reading, first, other) for other in others]


def _matches_or_beats(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    return [reading.contrast([first], [other], -reading.margin) for other in others]


def _comparable(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    margin = reading.margin
    return [reading.contrast([first], [other], -margin, margin, equivalence=True) for other in others]


def _order(reading: Reading) -> list[Part]:
    return [_above(reading, above, under) for under, above in pairwise(reading.rule.rows)]


def _jump(reading: Reading) -> list[Part]:
    """The first step minus each of the others."""
    (start, end), *others = pairwise(reading.rule.rows)
    named = {row: cell.label for row, cell in reading.rows.items()}
    return [
        reading.contrast(
            [end, under], [start, above],
            comparison=f"({named[end]} - {named[start]}) - ({named[above]} - {named[under]})",
        )
        for under, above in others
    ]  # fmt: skip


def _near(reading: Reading) -> list[Part]:
    parts = []
    for row, cell in reading.rows.items():
        for printed in cell.printed.values():
            value = printed.value
            number = value[0] - value[1] if isinstance(value, tuple) else value
            if isinstance(number, int | float):
                limits = (-reading.margin, reading.margin)
                words = f"{cell.label} - {number:g} as printed"
                parts.append(
                    reading.contrast([row], (), *limits, equivalence=True, less=number / 100, comparison=words)
                )
    return parts


def _linear(reading: Reading) -> list[Part]:
    if missing := missing_data(reading.task):
        return [reading.untested(missing)]
    score, margin = linear_score(reading.task), reading.margin
    words = f"{reading.any_cell.label} - linear classifier ({100 * score:.1f})"
    (row,) = reading.rule.rows
    return [reading.contrast([row], (), -margin, margin, equivalence=True, less=score, comparison=words)]


def _reaches(reading: Reading) -> list[Part]:
    level = math.nextafter(float(reading.rule.level) / 100, 0)  # reached counts as reached
    return [reading.contrast([row], (), level) for row in reading.rule.rows]


def _steps(reading: Reading, row: str) -> "pd.Series[float]":
    """First evaluated step at the table's goal by seed: the sweep's threshold, or the best mean of another row."""
    cell, (at,) = reading.rows[row], reading.ats
    if cell.table.until == "threshold":
        return cell.values(at, reading.stage)
    goal = reading.rows[cell.table.until].curve(at, reading.stage).mean(axis=1).max()
    return steps_to(cell.curve(at, reading.stage), float(goal))


def _faster(reading: Reading) -> list[Part]:
    """Logarithms of the ratio of steps. A run that never arrived counts as the last step, less than it needs; a pair
    of which neither did says nothing."""
    first, *others = reading.rule.rows
    if reading.any_cell.table.until == "threshold" and not all(
        c.spec and c.spec.threshold for c in reading.rows.values()
    ):
        return [reading.untested("no threshold is set in this study")]
    low, high = math.log(reading.rule.by or 1), math.log(reading.rule.to)
    parts = []
    for other in others:
        both = pd.concat({row: _steps(reading, row) for row in (other, first)}, axis=1, join="inner")
        arrived = both[np.isfinite(both).any(axis=1)]
        last = reading.any_cell.spec.steps if reading.any_cell.spec else math.inf
        logs = arrived.clip(upper=last).map(math.log)
        edges = [row for row in (first, other) if reading.rule.at == TUNED and reading.rows[row].at_edge]
        up, down = (bool(edges) or bool(np.isinf(arrived[row]).any()) for row in (other, first))
        never = [f"{len(both) - len(arrived)} pairs reached the goal in neither"] if len(arrived) < len(both) else []
        words = f"steps of {reading.rows[other].label} / {reading.rows[first].label}"
        test = paired(logs[other], logs[first])
        parts.append(reading.part(words, test, low, high, up=up, down=down, edges=edges, notes=never))
    return parts


def _never_reaches(reading: Reading) -> list[Part]:
    """The best mean of the second row's curve minus that of the first, each by seed at its step."""
    first, second = reading.rule.rows
    curves = {row: reading.rows[row].curve(reading.rule.at, reading.stage) for row in (first, second)}
    if any(curve.empty for curve in curves.values()):
        return []
    best = {row: curve.iloc[int(np.nanargmax(curve.mean(axis=1)))].astype(float) for row, curve in curves.items()}
    test, notes = compare(best[second], best[first])
    edges = [row for row in (first, second) if reading.rule.at == TUNED and reading.rows[row].at_edge]
    labels = f"best of {reading.rows[second].label} - best of {reading.rows[first].label}"
    return [reading.part(labels, test, up=second in edges, down=first in edges, edges=edges, notes=notes)]


def _small_gap(reading: Reading) -> list[Part]:
    return [reading.contrast([row], (), -math.inf, reading.margin) for row in reading.rule.rows]


def _smaller_gap(reading: Reading) -> list[Part]:
    first, *others = reading.rule.rows
    return [reading.contrast([other], [first], reading.rule.by * POINT) for other in others]


def _unstable(reading: Reading) -> list[Part]:
    parts = []
    for row, cell in reading.rows.items():
        words = f"{cell.label}, tuned - at the paper's rate"
        if lost := cell.diverged(AT_PAPERS_RATE):
            parts.append(Part(reading.task, words, Paired(0), SUPPORTED, f"{lost} runs diverged", 0.0, 1.0))
            continue
        test, notes = compare(reading.values(row, TUNED), reading.values(row, AT_PAPERS_RATE))
        edges = [row] if cell.at_edge else []
        limit = reading.rule.by * POINT
        parts.append(reading.part(words, test, limit, up=cell.at_edge, edges=edges, notes=notes))
    return parts


def _drop(reading: Reading) -> list[Part]:
    """At the paper's rate minus at the next one of the grid, or at the rate `level`."""
    parts = []
    for row, cell in reading.rows.items():
        by_rate, paper = reading.by_rate(row), cell.papers_rate or math.nan
        here, named = _at(by_rate, paper), reading.rule.level
        after = [rate for rate in by_rate if (rate > paper * SAME_RATE if named == "" else same(rate, float(named)))]
        beyond = min(after, default=None)
        if here is not None and beyond is not None:
            test, notes = compare(here, by_rate[beyond])
            words = f"{cell.label} at {rate_text(paper)} - at {rate_text(beyond)}"
            parts.append(reading.part(words, test, reading.rule.by * POINT, notes=notes))
    return parts


def _at(by_rate: "Mapping[float, pd.Series[float]]", rate: float) -> "pd.Series[float] | None":
    return next((values for each, values in by_rate.items() if same(each, rate)), None)


def same(one: float, other: float) -> bool:
    return bool(near(pd.Series([one]), other).all())


def _lower_rate(reading: Reading) -> list[Part]:
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


def _inverts(reading: Reading) -> list[Part]:
    """The first row matches or beats the second at the paper's rate; the second beats it at every lower rate at which
    one of them has come half of the way from chance to its best."""
    first, second = reading.rule.rows
    by_rate = {row: reading.by_rate(row) for row in (first, second)}
    paper = reading.any_cell.papers_rate or math.nan
    names = [reading.rows[row].label for row in (first, second)]
    start, least = chance(reading.task), {}
    for row, values in by_rate.items():
        least[row] = (start + max(each.mean() for each in values.values())) / 2
    parts = []
    for rate, ours in sorted(by_rate[first].items()):
        theirs = _at(by_rate[second], rate)
        if theirs is None or rate > paper * SAME_RATE:
            continue
        at_paper = same(rate, paper)
        if not at_paper and ours.mean() < least[first] and theirs.mean() < least[second]:
            continue
        test, notes = compare(ours, theirs) if at_paper else compare(theirs, ours)
        words = " - ".join(names if at_paper else names[::-1]) + f" at {rate_text(rate)}"
        parts.append(reading.part(words, test, -reading.margin if at_paper else 0.0, notes=notes))
    return parts if len(parts) > 1 and _at(by_rate[first], paper) is not None else []


def _fixed_and_tuned(reading: Reading) -> list[Part]:
    first, second = reading.rule.rows
    names = [reading.rows[row].label for row in (first, second)]
    at_paper = reading.contrast([first], [second], at=AT_PAPERS_RATE, comparison=f"{' - '.join(names)}, paper's rate")
    tuned = reading.contrast([second], [first], at=TUNED, comparison=f"{' - '.join(names[::-1])}, tuned")
    return [at_paper, tuned]


def _orders_differ(reading: Reading) -> list[Part]:
    """Two rates differ if two rows change places between them, Bonferroni-corrected over the pairs of rows; they do
    not if every pair is in the same order at both."""
    by_rate = {row: reading.by_rate(row) for row in reading.rule.rows}
    low, high = ORDERS
    within = [rate for rate in by_rate[reading.rule.rows[0]] if low <= rate * SAME_RATE and rate <= high * SAME_RATE]
    at = {rate: {row: _at(values, rate) for row, values in by_rate.items()} for rate in sorted(within)}
    kept = {rate: {r: v for r, v in rows.items() if v is not None} for rate, rows in at.items()}
    whole = {rate: rows for rate, rows in kept.items() if len(rows) == len(by_rate)}
    return [_changed(reading, (one, whole[one]), (two, whole[two])) for one, two in combinations(whole, 2)]


def _changed(
    reading: Reading, one: "tuple[float, dict[str, pd.Series[float]]]", two: "tuple[float, dict[str, pd.Series[float]]]"
) -> Part:
    change, same = [], []
    for pair in combinations(reading.rule.rows, 2):
        here, there = (compare(at[pair[0]], at[pair[1]])[0] for _, at in (one, two))
        above, below = (here.above(0), there.above(0)), (here.below(0), there.below(0))
        change += [max(above[0], below[1]), max(below[0], above[1])]
        same.append(2 * min(max(above), max(below)))
    differ, equal = (float(np.nan_to_num(p, nan=1.0)) for p in (min(1.0, len(change) * min(change)), max(same)))
    words = f"orders at {rate_text(one[0])} and {rate_text(two[0])}"
    return Part(reading.task, words, Paired(0), word_of(differ, equal), "", differ, min(1.0, equal))


def _attends(reading: Reading) -> list[Part]:
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


KINDS: Mapping[str, Callable[[Reading], list[Part]]] = {
    "beats": _beats,
    "matches_or_beats": _matches_or_beats,
    "comparable": _comparable,
    "order": _order,
    "jump": _jump,
    "near": _near,
    "linear": _linear,
    "reaches": _reaches,
    "faster": _faster,
    "never_reaches": _never_reaches,
    "small_gap": _small_gap,
    "smaller_gap": _smaller_gap,
    "unstable": _unstable,
    "drop": _drop,
    "lower_rate": _lower_rate,
    "inverts": _inverts,
    "fixed_and_tuned": _fixed_and_tuned,
    "orders_differ": _orders_differ,
    "attends": _attends,
}
