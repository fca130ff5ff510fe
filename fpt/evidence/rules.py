"""The kinds of rules: what each of them tests on one task of one study."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
import pandas as pd

from fpt.evidence.attention import maps_of, scores
from fpt.evidence.baselines import chance, linear_score, on_this_machine
from fpt.evidence.cells import (
    AT_PAPERS_RATE,
    CONFIRMATION,
    NOT_RUN,
    SELECTION,
    TUNED,
    Cell,
    steps_to,
)
from fpt.evidence.runs import near, rate_text
from fpt.evidence.stats import MINIMUM_PAIRS, POINT, SIGNIFICANCE, Paired, paired, seeds_needed
from fpt.papers import Rule

SUPPORTED, CONTRADICTED, INCONCLUSIVE = "supported", "contradicted", "inconclusive"
EDGE, DIVERGED, NOT_TESTED = "inconclusive (edge)", "inconclusive (diverged)", "not tested"
MARGIN, LISTOPS_MARGIN = 1 * POINT, 2 * POINT  # comparable: within so much
COLLAPSE = 0.3  # so far below the median of its rate a run has collapsed: no t-test
BY_RATE = ("drop", "inverts", "orders_differ", "lower_rate")  # read on the whole grid: seeds of selection
AT_BOTH = ("unstable", "fixed_and_tuned")
ORDERS = (1e-5, 1e-3)  # the range of rates of `orders_differ` (Rothermel et al. 2021, section 4)
SAME_RATE = 1 + 1e-6
Values = "pd.Series[float]"


@dataclass(frozen=True)
class Part:
    """One comparison that a rule makes on one task, at the level of 5%."""

    task: str  # as it was run
    comparison: str  # "FPT - random"
    test: Paired
    word: str
    note: str = ""
    supports: float = 1.0  # p-values, 1 where an edge of the grid could change the word
    contradicts: float = 1.0
    seeds: str = ""  # with which it would be decided, where it is not


@dataclass(frozen=True)
class Reading:
    """A rule on one task: `cells` are all rows of its table there."""

    rule: Rule
    cells: Mapping[str, Cell]

    @property
    def needed(self) -> list[str]:
        """The rows that the rule names, and the one that others have to reach."""
        until = self.any_cell.table.until
        return [*self.rule.rows, *([until] if self.rule.kind == "faster" and until != "threshold" else [])]

    @property
    def rows(self) -> dict[str, Cell]:
        return {row: self.cells[row] for row in self.needed}

    @property
    def any_cell(self) -> Cell:
        return self.cells[self.rule.rows[0]]

    @property
    def task(self) -> str:
        return self.any_cell.task

    @property
    def margin(self) -> float:
        return LISTOPS_MARGIN if self.task.startswith("listops") else MARGIN

    @property
    def ats(self) -> tuple[str, ...]:
        """Where the learning rate is read."""
        if self.rule.kind in BY_RATE:
            return ()
        return (TUNED, AT_PAPERS_RATE) if self.rule.kind in AT_BOTH else (self.rule.at,)

    @cached_property
    def stage(self) -> str:
        """Fresh seeds where all rows have them, else those that chose the rates; empty: not run at this rate."""
        if not self.ats:
            return SELECTION
        found = (s for s in (CONFIRMATION, SELECTION) if all(self._has(cell, s) for cell in self.rows.values()))
        return next(found, "")

    def _has(self, cell: Cell, stage: str) -> bool:
        return all(len(cell.values(at, stage)) for at in self.ats)

    def values(self, row: str, at: str = "") -> "pd.Series[float]":
        """By seed, at the rule's rates [or `at`]; a run that was never finite counts as chance."""
        cell = self.rows[row]
        values = cell.values(at or self.rule.at, self.stage)
        return values.fillna(chance(cell.task)) if cell.table.kind == "accuracy" else values

    def by_rate(self, row: str) -> "dict[float, pd.Series[float]]":
        cell = self.rows[row]
        return {rate: values.fillna(chance(cell.task)) for rate, values in cell.by_rate().items()}

    def problem(self) -> tuple[str, str]:
        """Why the rows are not compared here: a word and a note; empty where they are."""
        rows = self.rows.values()
        if missing := [cell.label for cell in rows if cell.problem]:
            return NOT_RUN, f"not run: {', '.join(missing)}"
        if len({cell.spec.steps for cell in rows if cell.spec}) > 1:
            return NOT_TESTED, "not compared: trained for different numbers of steps"
        if own := [c.label for c in rows if c.spec and (c.spec.pretrained_by or "").partition(".")[0] == c.task]:
            return NOT_TESTED, f"not compared: {own[0]} was pretrained on this very task"
        if never := [cell.label for cell in rows if TUNED in self.ats and cell.best_rate is None]:
            return DIVERGED, f"diverged at every rate: {', '.join(never)}"
        return ("", "") if self.stage else (NOT_TESTED, "not run at the paper's rate")

    def parts(self) -> list[Part]:
        """What the rule tests here; one part that says why, where it cannot."""
        word, note = self.problem()
        parts = [] if word else KINDS[self.rule.kind](self)
        return parts or [Part(self.task, "", Paired(0), word or NOT_TESTED, note or "not measured in this study")]

    def part(
        self,
        comparison: str,
        test: Paired,
        low: float = 0.0,
        high: float = math.inf,
        *,
        equivalence: bool = False,
        up: bool = False,
        down: bool = False,
        edges: Iterable[str] = (),
        notes: Iterable[str] = (),
    ) -> Part:
        """Whether the mean lies between the limits: by its 95% interval, or by two one-sided tests.

        `up`, `down`: the true difference may be larger, smaller than the one measured, since a better rate may lie
        beyond the grid. A word stands if it is the same for all of them.
        """
        supports = contradicts = 1.0
        if test.n >= MINIMUM_PAIRS:
            bounded = (up and high < math.inf) or (down and low > -math.inf)
            inside = max(test.above(low), test.below(high))
            supports = 1.0 if bounded else min(1.0, inside if equivalence else 2 * inside)
            contradicts = min(1.0, 2 * min(1 if up else test.below(low), 1 if down else test.above(high)))
        edges = [self.rows[row].label for row in dict.fromkeys(edges)]
        word = _word(supports, contradicts, EDGE if edges else INCONCLUSIVE)
        at_edge = [f"edge of the grid: {', '.join(edges)}"] if edges else []
        open_points = word == INCONCLUSIVE and test.sd > 0 and self.any_cell.table.kind != "steps"
        seeds = _seeds(test.sd) if open_points else ""
        return Part(
            self.task,
            comparison,
            test,
            word,
            "; ".join([*notes, *at_edge, *_of_test(test)]),
            supports,
            contradicts,
            seeds,
        )

    def contrast(
        self,
        plus: Sequence[str],
        minus: Sequence[str] = (),
        low: float = 0.0,
        high: float = math.inf,
        *,
        equivalence: bool = False,
        at: str = "",
        less: float = 0.0,
        comparison: str = "",
        notes: Iterable[str] = (),
    ) -> Part:
        """Rows `plus` minus rows `minus` and the number `less`."""
        at = at or self.rule.at
        series = [self.values(row, at) for row in (*plus, *minus)]
        first = pd.concat(series[: len(plus)], axis=1, join="inner").sum(axis=1, skipna=False)
        second = pd.concat([0 * first + less, *series[len(plus) :]], axis=1, join="inner").sum(axis=1, skipna=False)
        of_accuracy = self.any_cell.table.kind == "accuracy"
        test, collapsed = compare(first, second, series if of_accuracy else ())
        edges = [row for row in (*plus, *minus) if at == TUNED and self.rows[row].at_edge]
        known = of_accuracy or not edges  # an edge bounds an accuracy, nothing else
        diverged = {self.rows[row].label: self.rows[row].diverged(at) for row in (*plus, *minus)}
        lost = [f"{label} ({count})" for label, count in diverged.items() if count]
        return self.part(
            comparison or " - ".join(self.rows[row].label for row in (*plus, *minus)),
            test, low, high, equivalence=equivalence, edges=edges,
            up=not known or bool(set(edges) & set(plus)), down=not known or bool(set(edges) & set(minus)),
            notes=[*notes, *collapsed, *([f"diverged runs: {', '.join(lost)}"] if lost else [])],
        )  # fmt: skip


def compare(
    first: "pd.Series[float]", second: "pd.Series[float]", accuracies: "Iterable[pd.Series[float]] | None" = None
) -> tuple[Paired, list[str]]:
    """The paired test, by sign flips where a run of `accuracies` [both series] collapsed; and a note that says so."""
    series = (first, second) if accuracies is None else accuracies
    count = sum(int((values < values.median() - COLLAPSE).sum()) for values in series)
    if not count:
        return paired(first, second), []
    medians = " and ".join(f"{100 * values.median():.1f}" for values in (first, second))
    return paired(first, second, exact=True), [f"{count} collapsed runs, medians {medians}"]


def _of_test(test: Paired) -> list[str]:
    if test.n < MINIMUM_PAIRS:
        return ["too few pairs"] if test.n else []
    return ["p by sign flips"] if test.exact else []


def _seeds(sd: float) -> str:
    one, three = (seeds_needed(points * POINT, sd) or "more than 1,000" for points in (1, 3))
    return f"differences of 1 and 3 points would take {one} and {three} seeds"


def _word(supports: float, contradicts: float, otherwise: str = INCONCLUSIVE) -> str:
    if supports < SIGNIFICANCE:
        return SUPPORTED
    return CONTRADICTED if contradicts < SIGNIFICANCE else otherwise


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
    if not on_this_machine(reading.task):
        return [Part(reading.task, "", Paired(0), NOT_TESTED, f"the data of {reading.task} are not on this machine")]
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
    low, high = math.log(reading.rule.by or 1), math.log(reading.rule.to)
    parts = []
    for other in others:
        both = pd.concat([_steps(reading, other), _steps(reading, first)], axis=1, join="inner")
        arrived = both[np.isfinite(both).any(axis=1)]
        logs = np.log(arrived.clip(upper=reading.any_cell.spec.steps if reading.any_cell.spec else math.inf))
        edges = [row for row in (first, other) if reading.rule.at == TUNED and reading.rows[row].at_edge]
        up, down = (bool(edges) or bool(np.isinf(arrived.iloc[:, place]).any()) for place in (0, 1))
        never = [f"{len(both) - len(arrived)} pairs reached the goal in neither"] if len(arrived) < len(both) else []
        labels = f"steps of {reading.rows[other].label} / {reading.rows[first].label}"
        test = paired(logs.iloc[:, 0], logs.iloc[:, 1])
        parts.append(reading.part(labels, test, low, high, up=up, down=down, edges=edges, notes=never))
    return parts


def _never_reaches(reading: Reading) -> list[Part]:
    """The best mean of the second row's curve minus that of the first, each by seed at its step."""
    first, second = reading.rule.rows
    curves = {row: reading.rows[row].curve(reading.rule.at, reading.stage) for row in (first, second)}
    if any(curve.empty for curve in curves.values()):
        return []
    best = {row: curve.loc[curve.mean(axis=1).idxmax()].astype(float) for row, curve in curves.items()}
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
    word = _word(supports, contradicts, EDGE)
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
        here, there = (compare(*(at[row] for row in pair))[0] for _, at in (one, two))
        above, below = (here.above(0), there.above(0)), (here.below(0), there.below(0))
        change += [max(above[0], below[1]), max(below[0], above[1])]
        same.append(2 * min(max(above), max(below)))
    differ, equal = (float(np.nan_to_num(p, nan=1.0)) for p in (min(1.0, len(change) * min(change)), max(same)))
    words = f"orders at {rate_text(one[0])} and {rate_text(two[0])}"
    return Part(reading.task, words, Paired(0), _word(differ, equal), "", differ, min(1.0, equal))


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
