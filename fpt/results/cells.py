"""Cells: a row of a paper's table on one task of one study, and what its runs measured.

How runs become values by seed: what "tuned" means, at which budget, which runs collapsed, and what a fixed test set
adds to the noise.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from fpt.papers import paper_of
from fpt.papers.schema import Paper, Printed, Table
from fpt.results.runs import (
    Origin,
    SweepTables,
    TableName,
    find_study,
    left_out,
    load_sweeps,
    same_rate,
    study_names,
)
from fpt.results.stats import MINIMUM_PAIRS, Paired, example_noise, mean_interval, paired, sampling_noise
from fpt.sweeps import selection
from fpt.sweeps.ledger import RESULT
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study, load_study

NOT_AT_THIS_SCALE, NOT_RUN_YET = "not tested at this scale", "not run yet"
TUNED, AT_PAPERS_RATE = "tuned", "paper"  # each seed at its left-out choice; all at the rate that the paper prints
PAPER_SCALE, REDUCED = "paper", "reduced"
FEW_SEEDS = 8  # with fewer a number is exploratory
COLLAPSE = 0.3  # a run so far below the median of its own rate, at the same budget, has collapsed
T = TypeVar("T")
Reader = Callable[["TableCell", str | float, int | None], T]


def _once(read: Reader[T]) -> Callable[..., T]:
    """A method that reads a sweep at a rate and a budget, made once for each: verdicts ask for the same many times."""

    @wraps(read)
    def remembered(cell: "TableCell", at: str | float = TUNED, budget: int | None = None) -> T:
        if cell.tables is None:
            return read(cell, at, budget)
        key = (read.__name__, cell.table.kind, cell.papers_rate if at == AT_PAPERS_RATE else at, budget)
        return cell.tables.once(key, lambda: read(cell, at, budget))

    return remembered


@dataclass(frozen=True)
class TableCell:
    """A row on one task: without a sweep in the study (`spec` None), with one that was not run, or with results.

    `task` is what was run, `stands_for` the paper's tasks in whose place it stands (itself, if it is the paper's).
    Budgets are gradient steps, one of `budgets`; None is the last one. `at` is TUNED, AT_PAPERS_RATE or a rate.
    """

    table: Table
    row: str
    task: str
    stands_for: tuple[str, ...] = ()
    spec: SweepSpec | None = None
    tables: SweepTables | None = None
    scale: str = REDUCED
    study: str = ""
    goal: "TableCell | None" = None  # of a table of steps: the row whose last accuracy is to be reached

    @property
    def paper(self) -> Paper:
        return paper_of(self.table.paper)

    @property
    def label(self) -> str:
        """The row as its paper prints it; an arm of a study, which no paper prints, by its name."""
        return self.paper.label(self.row) if self.table.paper else self.row

    @property
    def printed(self) -> dict[str, Printed]:
        """What the paper prints for this row, by the task for which this one stands."""
        entry = self.table.rows[self.row]
        return {task: entry.printed[task] for task in self.stands_for if task in entry.printed}

    @property
    def problem(self) -> str:
        """Why there is nothing to show; empty if there is something."""
        if self.spec is None:
            return NOT_AT_THIS_SCALE
        return NOT_RUN_YET if self.tables is None else ""

    @property
    def seeds(self) -> int:
        return 0 if self.tables is None else self.tables.runs["seed"].nunique()

    @property
    def at_edge(self) -> bool:
        """Whether a tuned rate of the last budget is an end of the grid: the accuracy is a lower bound."""
        return bool(self.ends())

    @property
    def rates(self) -> list[float]:
        """The grid as it was trained, else as it is planned."""
        if self.tables:
            return self.tables.rates
        return list(self.spec.learning_rates) if self.spec else []

    @property
    def budgets(self) -> list[int]:
        """The budgets that are reported, in steps, ascending."""
        return [] if self.spec is None else self.spec.budgets()

    @property
    def variant(self) -> str:
        """Of the task, as it was run; the paper's, where there is no sweep."""
        return self.spec.variant if self.spec else "paper"

    @property
    def papers_rate(self) -> float | None:
        """The rate that the paper prints for this model and task."""
        backbone = self.spec.backbone if self.spec else ""
        return self.paper.rate(self.stands_for[0] if self.stands_for else self.task, backbone)

    def choices(self, budget: int | None = None) -> "pd.Series[float]":
        """By seed: the rate with the best mean validation accuracy over the other seeds; nan where there is none."""
        return pd.Series(dtype=float) if self.tables is None else self.tables.choices(budget)

    def best_rate(self, budget: int | None = None) -> float | None:
        """The rate with the best mean validation accuracy over all seeds; None where nothing ran, and where some run
        diverged at every rate."""
        return None if self.tables is None else selection.best_rate(self.tables.validation(budget))

    def ends(self, budget: int | None = None) -> set[str]:
        """The ends of the grid, "low" and "high", that some seed's choice at this budget is. A single rate is both: a
        better one may lie on either side."""
        if self.tables is None:
            return set()
        both = {"low", "high"} if len(self.rates) == 1 else set[str]()
        return both | selection.ends(self.choices(budget), self.tables.validation(budget))

    def plane(self, budget: int | None = None) -> pd.DataFrame:
        """Test accuracy (fractions), seeds x rates; for a table of gaps, training minus test accuracy.

        A run that was never finite counts as chance. Gaps are those of the last step; before the last budget those of
        the parameters that are best by then.
        """
        if (tables := self.tables) is None:
            return pd.DataFrame()
        if self.table.kind != "gap":
            return tables.once(("tested", budget), lambda: tables.plane(budget).fillna(tables.guessing))
        return _accuracy(tables, "train", budget) - _accuracy(tables, "test", budget)

    def at(self, at: str | float = TUNED, table: TableName = "runs") -> pd.DataFrame:
        """`SweepTables.at` each seed's rate: the rows of a table of the runs to which `values` belong."""
        return pd.DataFrame() if self.tables is None else self.tables.at(table, self._rates(at, None))

    @_once
    def values(self, at: str | float = TUNED, budget: int | None = None) -> "pd.Series[float]":
        """By seed: test accuracy, or training minus test.

        Seeds without a run at this rate are left out. Raises SpecError for a budget that is not reported.
        """
        return pd.Series(dtype=float) if self.problem else self._picked(self.plane(budget), at, budget)

    @_once
    def without(self, at: str | float = TUNED, budget: int | None = None) -> pd.DataFrame:
        """What `values` would be without one seed, whose runs then take part in no choice: the seed that is left out x
        the seeds, nan for itself."""
        if self.tables is None:
            return pd.DataFrame()
        if at == TUNED:
            return selection.tuned_without(self.tables.validation(budget), self.plane(budget))
        values = self.values(at, budget)
        return pd.DataFrame({seed: values.drop(seed) for seed in values.index}, index=values.index).T

    def validated(self, at: str | float = TUNED) -> pd.DataFrame:
        """The best validation accuracy so far, evaluation steps x seeds, each step at its own rates."""
        if self.tables is None or self.spec is None:
            return pd.DataFrame()
        by_step = self.tables.validation
        found = {step: self._picked(by_step(step), at, step) for step in self.spec.evaluation_steps()}
        return pd.DataFrame(found).T.rename_axis("step")

    def diverged(self, at: str | float = TUNED) -> int:
        """How many of the runs at this rate diverged."""
        return 0 if self.problem else int(self.at(at)["diverged_at"].notna().sum())

    @_once
    def collapsed(self, at: str | float = TUNED, budget: int | None = None) -> "pd.Series[bool]":
        """By seed: whether the run to which its value belongs lies 30 points below the median of its own rate; a gap
        does not collapse."""
        plane, least = self.plane(budget), math.inf if self.table.kind == "gap" else COLLAPSE
        return self._picked(plane < plane.median() - least, at, budget).astype(bool)

    def test_noise(self, at: str | float = TUNED, budget: int | None = None) -> float:
        """`sampling_noise` in the mean of `values`: of a test set that seeds share, or a collection that they split."""
        if self.tables is None:
            return 0.0
        values = self.values(at, budget)
        if self.table.kind == "gap":
            values = self._picked(_accuracy(self.tables, "test", budget), at, budget)
        return sampling_noise(float(values.mean()), self.tables.sampled_from)

    @_once
    def right(self, at: str | float = TUNED, budget: int | None = None) -> pd.DataFrame:
        """Seeds x examples (number and class) of a test set that seeds share: 1 where the run that `values` are of is
        right, else 0; nan where it has no answer. No rows without answers, and before the last budget."""
        tables = self.tables
        if tables is None or tables.result["test"]["drawn_by_seed"] or tables.answers.empty:
            return pd.DataFrame()
        if self.table.kind == "gap" or budget not in (None, tables.spec.steps):
            return pd.DataFrame()
        test = self.at(at, "answers").query("part == 'test'")
        right = test["predicted"].eq(test["target"]).astype(float).where(test["predicted"] >= 0)
        return test.assign(right=right).pivot(index="seed", columns=["example", "target"], values="right")

    def interval(
        self, at: str | float = TUNED, budget: int | None = None, noise: float = 0.0
    ) -> tuple[float, float, float]:
        """The mean of `values` and its 95% interval, fractions; nan as in `mean_interval`.

        `noise`: a variance of the mean beside that of the seeds and of the test set.
        """
        without = self.without(at, budget) if at == TUNED else None
        return mean_interval(self.values(at, budget), self.test_noise(at, budget) + noise, without)

    def _rates(self, at: str | float, budget: int | None) -> "pd.Series[float]":
        """The rate by seed."""
        if at == TUNED:
            return self.choices(budget)
        rate = self.papers_rate if at == AT_PAPERS_RATE else float(at)
        return pd.Series(math.nan if rate is None else rate, index=self.choices(budget).index, dtype=float)

    def _picked(self, plane: pd.DataFrame, at: str | float, budget: int | None) -> "pd.Series[float]":
        """By seed: the entry of the plane (seeds x rates) at the seed's rate."""
        rates = self._rates(at, budget).reindex(plane.index).to_numpy(float)
        hits = same_rate(plane.columns.to_numpy(float)[None, :], rates[:, None])
        seeds = np.flatnonzero(hits.any(axis=1))
        picked = plane.to_numpy()[seeds, hits.argmax(axis=1)[seeds]]
        return pd.Series(picked, plane.index.to_numpy()[seeds], dtype=float)


@dataclass(frozen=True)
class ArmCell(TableCell):
    """A cell that has results: a finished sweep as an arm of its study."""

    spec: SweepSpec = field(kw_only=True)
    tables: SweepTables = field(kw_only=True)


def _accuracy(tables: SweepTables, part: Literal["train", "test"], budget: int | None) -> pd.DataFrame:
    """That of which a gap is made, seeds x rates: of the parameters of the last step, where the budget is the last."""
    last = "_last" if budget in (None, tables.spec.steps) else ""
    return tables.plane(budget, f"{part}_accuracy{last}")


@dataclass(frozen=True)
class StudyCells:
    """The cells that one study gives to any table of any paper, read when they are first asked for; origins as in
    `load_runs`."""

    folder: Path
    origin: Origin | None = None
    _known: dict[str, list[TableCell]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def study(self) -> Study:
        return load_study(self.folder)

    @cached_property
    def results(self) -> dict[str, SweepTables]:
        """Finished sweeps by folder name. A study without any is not read: the paper's scale takes half a second."""
        return load_sweeps(self.study, self.origin) if any(self.folder.rglob(RESULT)) else {}

    def cells(self, table: Table) -> list[TableCell]:
        """Every row of the table on every task on which this study can show it: rows in the table's order."""
        if table.id not in self._known:
            cells = list(self._cells(table))
            goals = {cell.task: cell for cell in cells if table.kind == "steps" and cell.row == table.until}
            self._known[table.id] = [replace(cell, goal=goals.get(cell.task)) for cell in cells]
        return self._known[table.id]

    def _cells(self, table: Table) -> Iterable[TableCell]:
        for planned in self.study.planned(table):
            results = self.results.get(planned.spec.folder_name) if planned.spec else None
            yield TableCell(
                table,
                planned.row,
                planned.task,
                stands_for=planned.stands_for,
                spec=planned.spec,
                tables=results,
                scale=planned.scale,
                study=self.name,
            )

    def by_task(self, table: Table) -> dict[str, dict[str, TableCell]]:
        """Task -> row -> cell, for the tasks on which at least one row has a sweep."""
        found: dict[str, dict[str, TableCell]] = {}
        for cell in self.cells(table):
            found.setdefault(cell.task, {})[cell.row] = cell
        planned = {cell.task for cell in self.cells(table) if cell.spec}
        return {task: cells for task, cells in found.items() if task in planned}


def every_study(root: Path | None = None, origin: Origin | None = None, planned: bool = False) -> list[StudyCells]:
    """The studies of the workspace that have results; `planned`: those without any as well, whose claims are then not
    run yet, and not untested. A study that cannot be read is left out: a warning names it. Origins as in `load_runs`.
    """
    found = []
    for name in study_names(root):
        with left_out(name):
            cells = StudyCells(find_study(name, root), origin)
            if cells.results or (planned and cells.study.sweeps):  # this reads the study, or raises
                found.append(cells)
    return found


Point = tuple[TableCell, str | float, int | None]  # a cell, and the rate and the budget at which it is read


def paired_difference(
    plus: Sequence[Point], minus: Sequence[Point] = (), less: float = 0.0, noise: float = 0.0
) -> Paired:
    """The sum of the values of some cells minus that of others and the number `less` (of variance `noise`), by seed.

    By sign flips where a run collapsed. What is read twice on one side brings the noise of its test set twice. Where
    each cell has the answers of its runs to the same examples, that noise is paired over these (`example_noise`). Where
    one is read tuned, the seeds hang together by their choices, and a jackknife chooses anew without each of them.
    """
    first, second = total(plus), total(minus, less)
    read: dict[tuple[str, str | float, int | None], tuple[TableCell, int]] = {}  # each once, with how often it counts
    for sign, points in ((1, plus), (-1, minus)):
        for cell, at, budget in points:
            _, times = read.get((cell.row, at, budget), (cell, 0))
            read[cell.row, at, budget] = cell, times + sign
    collapsed = any(cell.collapsed(at, budget).any() for (_, at, budget), (cell, _) in read.items())
    counted = [((cell, at, budget), times) for (_, at, budget), (cell, times) in read.items() if times]
    without: Any = None
    if any(at == TUNED for (_, at, _), _ in counted):
        without = sum((times * cell.without(at, budget) for (cell, at, budget), times in counted), -less)
    apart = _apart(counted, (first - second).dropna().index)
    if apart is not None:
        return paired(first, second, collapsed, noise + example_noise(apart), without)
    noise += sum(times**2 * cell.test_noise(at, budget) for (cell, at, budget), times in counted)
    return paired(first, second, collapsed, noise, without)


def _apart(counted: Sequence[tuple[Point, int]], seeds: Any) -> pd.DataFrame | None:
    """How far cells are apart on each test example, seeds x examples; None where one lacks the answer of a seed, and
    where they do not have the same examples."""
    right = [times * cell.right(at, budget) for (cell, at, budget), times in counted]
    if len(seeds) < MINIMUM_PAIRS or not right or any(each.empty for each in right):
        return None
    apart = sum(right[1:], right[0]).reindex(seeds)
    return None if apart.shape[1] < 2 or apart.isna().to_numpy().any() else apart


def total(points: Sequence[Point], start: float = 0.0) -> Any:
    """The sum of a number and of what cells have at these places, by seed; nan where one has no run."""
    return sum((cell.values(at, budget) for cell, at, budget in points), start)


def shared_rates(*cells: TableCell) -> list[float]:
    """The rates of the first cell's grid that all of them have, ascending."""
    shared, *others = (sorted(each.rates) for each in cells)
    for grid in others:
        shared = [rate for rate in shared if same_rate(grid, rate).any()]
    return shared
