"""A case of a rule, one task of one study: the values of its rows, and how they are compared."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from fpt import tasks
from fpt.claims.words import pair_word
from fpt.papers import table
from fpt.papers.schema import Rule
from fpt.results.arm import TUNED, Arm
from fpt.results.baselines import Score
from fpt.results.cells import AT_PAPERS_RATE, StudyCells, TableCell
from fpt.results.difference import Point, paired_difference, total
from fpt.results.estimate import Estimate
from fpt.results.pairs import pairs
from fpt.results.runs import rate_text
from fpt.results.stats import MINIMUM_PAIRS, POINT
from fpt.sweeps.row_on_task import PAPER_SCALE, RowOnTask

NOT_TESTED = "not tested"
ACCURACY, GAP = "test accuracy", "training minus test accuracy"  # quantities; others have one kind of rule alone
NOTHING, NO_ESTIMATE = Score(0.0), Estimate()
UNKNOWN = (math.nan, math.nan)


@dataclass(frozen=True)
class Comparison:
    """One comparison that a rule makes on one task: an estimate, and what the claim's limits make of it.

    `supports`, `contradicts`: the claim's p-values at its limits, each to be compared with 5%: twice a one-sided p;
    of a likeness the larger of its two one-sided tests; that an arm leads nowhere (`plane`, as planned) the largest of
    the one-sided tests. 1 where an edge of the grid could change the word.
    """

    label: str  # "FPT - random"
    estimate: Estimate = NO_ESTIMATE
    supports: float = 1.0
    contradicts: float = 1.0
    note: str = ""
    at: str = ""  # the learning rate, where the rule does not say it: "1e-3", "tuned and 1e-3"
    likeness: bool = False  # by two one-sided tests
    tested: bool = True  # else its note says why it is not
    budget: int = 0  # steps at which it is read; 0: the last
    limits: tuple[float, float] | None = None  # the claim's own, in the unit of the estimate: for it lies between them
    of: str = ACCURACY  # the quantity
    plus: tuple[str, ...] = ()  # the sweeps that are added, and those that are taken off, or the score that is
    minus: tuple[str, ...] = ()
    levels: tuple[float, float] = UNKNOWN  # of both sides, in the unit of the estimate
    # rows for which a better rate may lie beyond the grid, so that the true value may be larger, or smaller
    up: tuple[str, ...] = ()
    down: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """For, against or open; or not tested."""
        return pair_word(self.supports, self.contradicts) if self.tested else NOT_TESTED

    def within(self, low: float = 0.0, high: float = math.inf, likeness: bool = False) -> "Comparison":
        """Whether the value lies between limits: by its 95% interval, or as a likeness by two one-sided tests. A word
        stands if it is the same for all values that rates beyond the grid may give."""
        if not self.tested or self.estimate.reason:
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
    """A rule on one task of one study: the cells of the rows that it reads."""

    rule: Rule
    rows: Mapping[str, TableCell]

    @cached_property
    def arms(self) -> dict[str, Arm]:
        """By row."""
        return {row: cell.arm for row, cell in self.rows.items()}

    def label(self, row: str) -> str:
        return self.rows[row].label

    @property
    def any_cell(self) -> TableCell:
        return self.rows[self.rule.rows[0]]

    @property
    def task(self) -> str:
        return self.any_cell.task

    @property
    def margin(self) -> float:
        """Accuracies within it are comparable, a fraction."""
        return tasks.entry(self.task).margin * POINT

    def problem(self, ats: Collection[str]) -> Comparison | None:
        """Why the rows are not compared at these rates (none: at every one); None if they are."""
        if why := _incomparable({cell.label: cell.arm for cell in self.rows.values()}):
            return self.untested(f"not compared: {why}")
        if never := [self.label(row) for row, arm in self.arms.items() if TUNED in ats and arm.best_rate() is None]:
            return self.undecided(f"diverged at every rate: {', '.join(never)}")
        off = AT_PAPERS_RATE in ats and not all(len(cell.arm.at(cell.papers_rate)) for cell in self.rows.values())
        return self.untested("not run at the paper's rate") if off else None

    def untested(self, why: str) -> Comparison:
        return Comparison("", note=why, tested=False)

    def undecided(self, why: str) -> Comparison:
        """Runs that were made leave it open, whatever their number."""
        return Comparison(" and ".join(map(self.label, self.rows)), note=why, plus=self.sweeps(self.rows))

    def sweeps(self, rows: Iterable[str]) -> tuple[str, ...]:
        """The names of the sweeps that these rows are read from."""
        return tuple(self.arms[row].sweep for row in rows)

    def compared(
        self,
        plus: Sequence[str],
        minus: Sequence[str] = (),
        *,
        at: tuple[str | float, str | float] | None = None,
        budget: int | None = None,
        less: Score = NOTHING,
        score: str = "",
        label: str = "",
    ) -> Comparison:
        """Rows `plus` minus rows `minus` and the score `less`, called `score`, at the rule's rate [or each side at its
        own], after the last step [or at a budget]."""
        plus_at, minus_at = at or (self.rule.at, self.rule.at)
        read = [(row, self.rows[row].rate(rate)) for rows, rate in ((plus, plus_at), (minus, minus_at)) for row in rows]
        points = [(self.arms[row], rate, budget) for row, rate in read]
        sides = points[: len(plus)], points[len(plus) :]
        ends = [self.label(row) if rate == TUNED and self.arms[row].ends(budget) else "" for row, rate in read]
        up, down = (tuple(filter(None, side)) for side in (ends[: len(plus)], ends[len(plus) :]))
        kind = self.any_cell.table.kind
        if kind != "accuracy":  # an edge bounds an accuracy alone
            up = down = (*up, *down)
        lost = [f"{self.label(row)} ({n})" for row, rate in read if (n := self.arms[row].diverged(rate))]
        found = paired_difference(sides[0], sides[1], less.share, less.standard_error**2)
        names = " - ".join(f"{'gap of ' * (kind == 'gap')}{self.label(row)}" for row in (*plus, *minus))
        said = [*_collapsed(sides, less.share), *([f"diverged runs: {', '.join(lost)}"] if lost else [])]
        said += [f"edge of the grid: {', '.join(dict.fromkeys([*up, *down]))}"] if up or down else []
        return Comparison(
            label or (f"{names} - {score}" if score else names),
            found,
            note="; ".join(filter(None, [*said, of_test(found)])),
            at=self.rates_in_words(at or (self.rule.at,)),
            of=GAP if kind == "gap" else ACCURACY,
            plus=self.sweeps(plus),
            minus=(*self.sweeps(minus), *([score] if score else [])),
            levels=_levels(sides[0], sides[1], less.share),
            budget=budget or 0,
            up=up,
            down=down,
        )

    def rates_in_words(self, ats: Iterable[str | float]) -> str:
        """Where the learning rate is read: tuned, 1e-3, tuned and 1e-3."""
        rates = [self.any_cell.rate(at) for at in ats]
        words = [TUNED if rate == TUNED else rate_text(rate) for rate in rates if rate == TUNED or float(rate) > 0]
        return " and ".join(dict.fromkeys(words))


def _levels(plus: Sequence[Point], minus: Sequence[Point], less: float = 0.0) -> tuple[float, float]:
    """The means of both sides over the seeds that they share; not known where a side is a sum of arms."""
    if len(plus) != 1 or len(minus) > 1:
        return UNKNOWN
    one, two = total(plus), total(minus, less)
    both = (one - two).dropna().index
    first, second = (each[both].mean() if isinstance(each, pd.Series) else each for each in (one, two))
    return float(first), float(second)


def _incomparable(arms: Mapping[str, Arm]) -> str:
    """Why accuracies of these rows, by their labels, say nothing about their arms; empty where they do."""
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


def _collapsed(sides: Sequence[Sequence[Point]], less: float) -> list[str]:
    """How many runs collapsed, and the medians of both sides."""
    runs = {(arm.name, rate): arm.collapsed(rate, budget) for side in sides for arm, rate, budget in side}
    count = sum(int(each.sum()) for each in runs.values())
    medians = [f"{100 * np.nanmedian(values):.1f}" for values in (total(sides[0]), total(sides[1], less)) if count]
    return [f"{count} collapsed runs, medians {' and '.join(medians)}"] if count else []


def of_test(test: Estimate) -> str:
    """What the note of a comparison says of its test, if anything."""
    if test.n < MINIMUM_PAIRS:
        return "too few pairs" if test.n else ""
    return "p by sign flips" if test.flips else ""


# --- where a rule is read


def cases_of(rule: Rule, study: StudyCells) -> list[Case]:
    """A rule on every task on which the study has results of each of its rows."""
    found = []
    for task, cells in study.by_task(table(rule.table)).items():
        if rows := _rows_read(rule, task, cells):
            found.append(Case(rule, {row: cells[row] for row in rows}))
    return found


def pairs_not_run(rule: Rule, study: StudyCells) -> list[str]:
    """The pairs on which the study file has a sweep for each row of a rule, and some of them were not run."""
    found = []
    for task, planned in study.not_run(table(rule.table)).items():
        specs = [planned[row].spec for row in _rows_read(rule, task, planned)]
        if any(spec.folder_name not in study.results for spec in specs):
            found.append(pairs().name(backbone_of([spec.backbone for spec in specs]), task))
    return found


def backbone_of(backbones: Sequence[str]) -> str:
    """Of those of a rule the one that names its pair, the first that is a model: "none" has no backbone."""
    return next((name for name in backbones if name != "none"), backbones[0])


def _rows_read(rule: Rule, task: str, served: Mapping[str, RowOnTask]) -> list[str]:
    """The rows that a rule reads on a task of a study; none where it does not read that task, or lacks one of them.

    No sweep is compared with itself: two rows of a paper may be one model in a study that sets its layers. What stands
    for other tasks too cannot tell apart what the claim does. And what is printed of the paper's own models is tested
    on these alone.
    """
    until = table(rule.table).until
    needed = {*rule.rows, *([until] if rule.kind == "faster" and until != "threshold" else [])}
    rows = {row: served[row] for row in (*rule.rows, until) if row in served and row in needed}
    if len({each.sweep for each in rows.values()}) < len(needed):
        return []
    stands_for = {*rows[rule.rows[0]].stands_for}
    if rule.tasks and task not in rule.tasks and not stands_for <= {*rule.tasks}:
        return []
    own_scale = all(each.scale == PAPER_SCALE for each in rows.values())
    return [] if rule.of_own_scale and not own_scale else list(rows)
