"""A case of a rule, one task of one study: the values of its rows, and how they are compared."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fpt import tasks
from fpt.claims.words import pair_word
from fpt.papers import table
from fpt.papers.schema import Rule
from fpt.results.arm import Arm
from fpt.results.baselines import Score
from fpt.results.cells import AT_PAPERS_RATE, NOT_RUN_YET, PAPER_SCALE, TUNED, StudyCells, TableCell
from fpt.results.difference import Point, paired_difference, total
from fpt.results.estimate import Estimate
from fpt.results.runs import rate_text
from fpt.results.stats import MINIMUM_PAIRS, POINT

NOT_TESTED = "not tested"
ACCURACY, GAP = "test accuracy", "training minus test accuracy"  # quantities; others have one kind of rule alone
NOTHING, NO_ESTIMATE = Score(0.0), Estimate()
UNKNOWN = (math.nan, math.nan)


@dataclass(frozen=True)
class Comparison:
    """One comparison that a rule makes on one task: an estimate, and what the claim's limits make of it.

    `supports`, `contradicts`: the claim's p-values at its limits, each to be compared with 5%: twice a one-sided p, and
    of a likeness the larger of its two one-sided tests. 1 where an edge of the grid could change the word.
    """

    label: str  # "FPT - random"
    estimate: Estimate = NO_ESTIMATE
    supports: float = 1.0
    contradicts: float = 1.0
    note: str = ""
    at: str = ""  # the learning rate, where the rule does not say it: "1e-3", "tuned and 1e-3"
    likeness: bool = False  # by two one-sided tests
    missing: str = ""  # why it says nothing: not run, not tested
    budget: int = 0  # steps at which it is read; 0: the last
    limits: tuple[float, float] | None = None  # the claim's own, in the unit of the estimate: for it lies between them
    of: str = ACCURACY  # the quantity
    plus: tuple[str, ...] = ()  # the sweeps that are added, and those that are taken off, or the score that is
    minus: tuple[str, ...] = ()
    levels: tuple[float, float] = UNKNOWN  # of both sides, in the unit of the estimate
    up: tuple[
        str, ...
    ] = ()  # rows for which a better rate may lie beyond the grid, so that the true value may be larger
    down: tuple[str, ...] = ()  # or smaller

    @property
    def word(self) -> str:
        """For, against or open; why it says nothing, where it does not."""
        return self.missing or pair_word(self.supports, self.contradicts)

    def within(self, low: float = 0.0, high: float = math.inf, likeness: bool = False) -> "Comparison":
        """Whether the value lies between limits: by its 95% interval, or as a likeness by two one-sided tests. A word
        stands if it is the same for all values that rates beyond the grid may give."""
        if self.missing or self.estimate.reason:
            return self
        value = self.estimate
        bounded = (self.up and high < math.inf) or (self.down and low > -math.inf)
        inside = max(value.above(low), value.below(high)) * (1 if likeness else 2)
        outside = 2 * min(1 if self.up else value.below(low), 1 if self.down else value.above(high))
        return replace(
            self,
            supports=1.0 if bounded else min(1.0, inside),
            contradicts=min(1.0, outside),
            limits=(low, high),
            likeness=likeness,
        )


@dataclass(frozen=True)
class Case:
    """A rule on one task of one study: `cells` are all rows of its table there."""

    rule: Rule
    cells: Mapping[str, TableCell]

    @property
    def needed(self) -> list[str]:
        """The rows that the rule names, and the one that others have to reach."""
        until = next(iter(self.cells.values())).table.until
        return [*self.rule.rows, *([until] if self.rule.kind == "faster" and until != "threshold" else [])]

    @property
    def rows(self) -> dict[str, TableCell]:
        return {row: self.cells[row] for row in self.needed}

    def label(self, row: str) -> str:
        return self.rows[row].label

    @property
    def is_planned(self) -> bool:
        """Whether every row has a sweep of its own. No sweep is compared with itself: two rows of a paper may be one
        model in a study that sets its layers."""
        names = {self.cells[row].sweep for row in {*self.needed} & self.cells.keys()}
        return len(names - {""}) == len({*self.needed})

    @property
    def any_cell(self) -> TableCell:
        return self.cells[self.rule.rows[0]]

    @property
    def task(self) -> str:
        return self.any_cell.task

    @property
    def variant(self) -> str:
        """Of the task, as it was run."""
        return self.any_cell.variant

    @property
    def margin(self) -> float:
        """Accuracies within it are comparable, a fraction."""
        return tasks.entry(self.task).margin * POINT

    def problem(self, ats: Collection[str]) -> Comparison | None:
        """Why the rows are not compared at these rates (none: at every one); None if they are."""
        rows = self.rows.values()
        if missing := [cell.label for cell in rows if cell.problem]:
            return self.untested(f"not run: {', '.join(missing)}", NOT_RUN_YET)
        if why := _incomparable(rows):
            return self.untested(f"not compared: {why}")
        if never := [cell.label for cell in rows if TUNED in ats and cell.best_rate() is None]:
            return self.undecided(f"diverged at every rate: {', '.join(never)}")
        off = AT_PAPERS_RATE in ats and not all(len(cell.at(AT_PAPERS_RATE)) for cell in rows)
        return self.untested("not run at the paper's rate") if off else None

    def untested(self, why: str, word: str = NOT_TESTED) -> Comparison:
        return Comparison("", note=why, missing=word)

    def undecided(self, why: str) -> Comparison:
        """Runs that were made leave it open, whatever their number."""
        words = " and ".join(cell.label for cell in self.rows.values())
        return Comparison(words, note=why, plus=self.sweeps(self.needed))

    def sweeps(self, rows: Iterable[str]) -> tuple[str, ...]:
        """The names of the sweeps that these rows are read from."""
        return tuple(self.rows[row].sweep for row in rows)

    def contrast(
        self,
        plus: Sequence[str],
        minus: Sequence[str] = (),
        *,
        at: tuple[str | float, str | float] | None = None,
        less: Score = NOTHING,
        score: str = "",
        label: str = "",
    ) -> Comparison:
        """Rows `plus` minus rows `minus` and the score `less`, called `score`, at the rule's rate [or each side at its
        own]."""
        plus_at, minus_at = at or (self.rule.at, self.rule.at)
        sides = self._points(plus, plus_at), self._points(minus, minus_at)
        up, down = map(_at_edge, sides)
        of_gaps = self.any_cell.table.kind == "gap"
        if self.any_cell.table.kind != "accuracy":  # an edge bounds an accuracy alone
            up = down = (*up, *down)
        lost = [f"{cell.label} ({n})" for side in sides for cell, rate, _ in side if (n := cell.diverged(rate))]
        found = paired_difference(sides[0], sides[1], less.share, less.standard_error**2)
        names = " - ".join(f"{'gap of ' * of_gaps}{self.label(row)}" for row in (*plus, *minus))
        said = [*_collapsed(sides, less.share), *([f"diverged runs: {', '.join(lost)}"] if lost else [])]
        said += [f"edge of the grid: {', '.join(dict.fromkeys([*up, *down]))}"] if up or down else []
        return Comparison(
            label or (f"{names} - {score}" if score else names),
            found,
            note="; ".join(filter(None, [*said, of_test(found)])),
            at=self.rates_in_words(at or (self.rule.at,)),
            of=GAP if of_gaps else ACCURACY,
            plus=self.sweeps(plus),
            minus=(*self.sweeps(minus), *([score] if score else [])),
            levels=levels_of(sides[0], sides[1], less.share),
            up=up,
            down=down,
        )

    def _points(self, rows: Sequence[str], rate: str | float) -> list[Point]:
        return [(self.rows[row], rate, None) for row in rows]

    def rates_in_words(self, ats: Iterable[str | float]) -> str:
        """Where the learning rate is read: tuned, 1e-3, tuned and 1e-3."""
        rates = {at: self.any_cell.papers_rate if at == AT_PAPERS_RATE else at for at in ats}
        words = [TUNED if rate == TUNED else rate_text(rate) for rate in rates.values() if rate is not None]
        return " and ".join(dict.fromkeys(words))


def levels_of(plus: Sequence[Point], minus: Sequence[Point], less: float = 0.0) -> tuple[float, float]:
    """The means of both sides over the seeds that they share; not known where a side is a sum of arms."""
    if len(plus) != 1 or len(minus) > 1:
        return UNKNOWN
    one, two = total(plus), total(minus, less)
    both = (one - two).dropna().index
    first, second = (each[both].mean() if isinstance(each, pd.Series) else each for each in (one, two))
    return float(first), float(second)


def _incomparable(rows: Collection[TableCell]) -> str:
    """Why accuracies of these rows say nothing about their arms; empty where they do."""
    arms = {cell.label: cell.arm for cell in rows if cell.arm}
    if len({arm.steps for arm in arms.values()}) > 1:
        return "trained for different numbers of steps"
    if len({arm.result["compute_type"] for arm in arms.values()}) > 1:
        return "different number types"
    if other := _of_other_data(arms):
        return f"other data than those of {other}"
    started = {label: (arm.fields.get("pretrained_by") or "").partition(".")[0] for label, arm in arms.items()}
    seen = [label for label, task in started.items() if task == arms[label].task]
    return f"{seen[0]} was pretrained on this very task" if seen else ""


def _of_other_data(arms: Mapping[str, Arm]) -> str:
    """The first row of which another one has the task, and not the data; empty where there is none."""
    first: dict[str, str] = {}
    for label, arm in arms.items():
        task = str([arm.task, arm.variant, sorted(arm.fields["task_options"].items())])
        other = first.setdefault(task, label)
        if arms[other].result.get("data_checksum") != arm.result.get("data_checksum"):
            return other
    return ""


def _at_edge(side: Sequence[Point]) -> tuple[str, ...]:
    """The rows whose tuned rate is an end of the grid."""
    return tuple(cell.label for cell, rate, _ in side if rate == TUNED and cell.at_edge)


def _collapsed(sides: Sequence[Sequence[Point]], less: float) -> list[str]:
    """How many runs collapsed, and the medians of both sides."""
    runs = {(cell.name, rate): cell.collapsed(rate) for side in sides for cell, rate, _ in side}
    count = sum(int(each.sum()) for each in runs.values())
    medians = [f"{100 * np.nanmedian(values):.1f}" for values in (total(sides[0]), total(sides[1], less)) if count]
    return [f"{count} collapsed runs, medians {' and '.join(medians)}"] if count else []


def of_test(test: Estimate) -> str:
    """What the note of a comparison says of its test, if anything."""
    if test.n < MINIMUM_PAIRS:
        return "too few pairs" if test.n else ""
    return "p by sign flips" if test.flips else ""


def cases_of(rule: Rule, study: StudyCells) -> list[Case]:
    """A rule on every task on which the study has a sweep for each of its rows."""
    cases = [Case(rule, cells) for cells in study.by_task(table(rule.table)).values()]
    planned = [each for each in cases if each.is_planned]
    if not rule.tasks:
        return planned
    # What stands for other tasks too cannot tell apart what the claim does.
    return [each for each in planned if each.task in rule.tasks or {*each.any_cell.stands_for} <= {*rule.tasks}]


def decides(case: Case) -> bool:
    """What is printed of the paper's own models is tested on these alone."""
    return not case.rule.of_own_scale or all(cell.scale == PAPER_SCALE for cell in case.rows.values())
