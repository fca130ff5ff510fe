"""Cells: a row of a paper's table on one task of one study, with the arm that serves it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fpt.results.arm import ROWS, Arm, TableName, served
from fpt.results.arm import TUNED as TUNED
from fpt.results.estimate import Estimate
from fpt.results.pairs import pairs
from fpt.results.runs import BEFORE, Origin, arms_in, find_study, left_out, study_names

if TYPE_CHECKING:
    from fpt.papers.schema import Paper, PaperTable, Printed
    from fpt.sweeps.spec import SweepSpec
    from fpt.sweeps.study import Study

NOT_RUN_YET = "not run yet"
AT_PAPERS_RATE = "paper"  # the rate that the paper prints for the row, for all seeds
PAPER_SCALE, REDUCED = "paper", "reduced"
FEW_SEEDS = 8  # with fewer a number is exploratory


@dataclass(frozen=True)
class TableCell:
    """A row of a paper's table on one task, and the arm that serves it; or, where that was not run, what is planned.

    `task` is what was run, `stands_for` the paper's tasks in whose place it stands (itself, if it is the paper's).
    Numbers are those of the arm, whose methods these are: `at` may be AT_PAPERS_RATE as well. Without an arm there are
    none.
    """

    table: "PaperTable"
    row: str
    task: str
    stands_for: tuple[str, ...] = ()
    arm: Arm | None = None
    planned: "SweepSpec | None" = None
    scale: str = REDUCED
    study: str = ""
    goal: "TableCell | None" = None  # of a table of steps: the row whose last accuracy is to be reached

    @property
    def name(self) -> str:
        """What tells it apart in its table."""
        return self.row

    @property
    def paper(self) -> "Paper":
        from fpt.papers import paper_of

        return paper_of(self.table.paper)

    @property
    def label(self) -> str:
        """The row as its paper prints it."""
        return self.paper.label(self.row)

    @property
    def printed(self) -> dict[str, "Printed"]:
        """What the paper prints for this row, by the task for which this one stands."""
        entry = self.table.rows[self.row]
        return {task: entry.printed[task] for task in self.stands_for if task in entry.printed}

    @property
    def spec(self) -> "SweepSpec | None":
        """The sweep that serves it, or is to serve it."""
        return self.planned or (self.arm.spec if self.arm else None)

    @property
    def sweep(self) -> str:
        """The name of the sweep that serves it, or is to serve it."""
        return self.arm.sweep if self.arm else self.planned.folder_name if self.planned else ""

    @property
    def fields(self) -> dict[str, Any]:
        """Of that sweep; one that is not in an older record had the value that was the only one then."""
        return BEFORE | (self.arm.fields if self.arm else self.planned.resolved() if self.planned else {})

    @property
    def pair(self) -> str:
        """The pair of a backbone and a task in which it counts."""
        return self.arm.pair if self.arm else pairs().name(self.fields["backbone"], self.task)

    @property
    def problem(self) -> str:
        """Why there is nothing to show; empty if there is something."""
        return "" if self.arm else NOT_RUN_YET

    @property
    def seeds(self) -> int:
        return self.arm.seeds if self.arm else 0

    @property
    def at_edge(self) -> bool:
        return self.arm.at_edge if self.arm else False

    @property
    def rates(self) -> list[float]:
        """The grid as it was trained, else as it is planned."""
        if self.arm:
            return self.arm.rates
        return list(self.planned.learning_rates) if self.planned else []

    @property
    def budgets(self) -> list[int]:
        if self.arm:
            return self.arm.budgets
        return self.planned.budgets() if self.planned else []

    @property
    def variant(self) -> str:
        """Of the task, as it was run; the paper's, where there is no sweep."""
        if self.arm:
            return self.arm.variant
        return self.planned.variant if self.planned else "paper"

    @property
    def papers_rate(self) -> float | None:
        """The rate that the paper prints for this model and task."""
        backbone = self.arm.fields["backbone"] if self.arm else self.planned.backbone if self.planned else ""
        return self.paper.rate(self.stands_for[0] if self.stands_for else self.task, backbone)

    def _at(self, at: str | float) -> str | float:
        """Where its arm is read; nan where the paper prints no rate."""
        if at != AT_PAPERS_RATE:
            return at
        return math.nan if self.papers_rate is None else self.papers_rate

    def choices(self, budget: int | None = None) -> "pd.Series[float]":
        return self.arm.choices(budget) if self.arm else pd.Series(dtype=float)

    def best_rate(self, budget: int | None = None) -> float | None:
        return self.arm.best_rate(budget) if self.arm else None

    def ends(self, budget: int | None = None) -> set[str]:
        return self.arm.ends(budget) if self.arm else set()

    def plane(self, budget: int | None = None) -> pd.DataFrame:
        return self.arm.plane(budget) if self.arm else pd.DataFrame()

    def at(self, at: str | float = TUNED, table: TableName = "runs") -> pd.DataFrame:
        return self.arm.at(self._at(at), table) if self.arm else pd.DataFrame()

    def values(self, at: str | float = TUNED, budget: int | None = None) -> "pd.Series[float]":
        return self.arm.values(self._at(at), budget) if self.arm else pd.Series(dtype=float)

    def without(self, at: str | float = TUNED, budget: int | None = None) -> pd.DataFrame:
        return self.arm.without(self._at(at), budget) if self.arm else pd.DataFrame()

    def chooses(self, at: str | float) -> bool:
        return self.arm.chooses(at) if self.arm else False

    def validated(self, at: str | float = TUNED) -> pd.DataFrame:
        return self.arm.validated(self._at(at)) if self.arm else pd.DataFrame()

    def diverged(self, at: str | float = TUNED) -> int:
        return self.arm.diverged(self._at(at)) if self.arm else 0

    def collapsed(self, at: str | float = TUNED, budget: int | None = None) -> "pd.Series[bool]":
        return self.arm.collapsed(self._at(at), budget) if self.arm else pd.Series(dtype=bool)

    def test_noise(self, at: str | float = TUNED, budget: int | None = None) -> float:
        return self.arm.test_noise(self._at(at), budget) if self.arm else 0.0

    def right(self, at: str | float = TUNED, budget: int | None = None) -> pd.DataFrame:
        return self.arm.right(self._at(at), budget) if self.arm else pd.DataFrame()

    def estimate(self, at: str | float = TUNED, budget: int | None = None, noise: float = 0.0) -> Estimate:
        return self.arm.estimate(self._at(at), budget, noise) if self.arm else Estimate()


Cell = TableCell | Arm  # what can be read at a rate and a budget


def arm_of(cell: Cell) -> Arm | None:
    """The arm of a cell, which it may be itself."""
    return cell if isinstance(cell, Arm) else cell.arm


@dataclass(frozen=True)
class StudyCells:
    """The cells that one study gives to any table of any paper, read when they are first asked for; origins as in
    `load_runs`.

    `planned`: also those of sweeps that were not run. For these the study file is read, and where nothing is published.
    """

    folder: Path
    origin: Origin | None = None
    planned: bool = False
    _known: dict[str, list[TableCell]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def study(self) -> "Study":
        from fpt.sweeps.study import load_study

        return load_study(self.folder)

    @cached_property
    def results(self) -> dict[str, Arm]:
        """Its arms by the name of their sweep."""
        return arms_in(self.folder, self.origin)

    @cached_property
    def _is_served(self) -> bool:
        """Whether runs/rows.csv has all of its cells: everything is published, or the rest is not asked for."""
        if not any(arm.origin == "published" for arm in self.results.values()):
            return False
        return not self.planned or all(spec.folder_name in self.results for spec in self.study.sweeps)

    def cells(self, table: "PaperTable") -> list[TableCell]:
        """The rows of the table, in its order, on every task on which the study has a sweep for them."""
        if table.id not in self._known:
            found = {(cell.row, cell.task): cell for cell in self._served(table)}
            if not self._is_served:
                found = {(cell.row, cell.task): cell for cell in self._planned(table)} | found
            order = list(table.rows)
            cells = sorted(found.values(), key=lambda cell: order.index(cell.row))
            goals = {cell.task: cell for cell in cells if table.kind == "steps" and cell.row == table.until}
            self._known[table.id] = [replace(cell, goal=goals.get(cell.task)) for cell in cells]
        return self._known[table.id]

    def _served(self, table: "PaperTable") -> Iterable[TableCell]:
        """By runs/rows.csv, what published arms serve."""
        for line in served(self.folder.parent / ROWS, self.name, table.id):
            arm = self.results.get(line["sweep"])
            if arm and arm.origin == "published" and line["row"] in table.rows:
                stands_for = tuple(line["stands_for"].split(";"))
                of = replace(arm, of="gap") if table.kind == "gap" else arm
                yield TableCell(table, line["row"], arm.task, stands_for, of, scale=line["scale"], study=self.name)

    def _planned(self, table: "PaperTable") -> Iterable[TableCell]:
        """By the study file, what its sweeps serve or are to serve."""
        for each in self.study.planned(table):
            arm = self.results.get(each.spec.folder_name)
            of = replace(arm, of="gap") if arm and table.kind == "gap" else arm
            yield TableCell(table, each.row, each.task, each.stands_for, of, each.spec, each.scale, self.name)

    def by_task(self, table: "PaperTable") -> dict[str, dict[str, TableCell]]:
        """Task -> row -> cell, for the tasks on which at least one row has a sweep."""
        found: dict[str, dict[str, TableCell]] = {}
        for cell in self.cells(table):
            found.setdefault(cell.task, {})[cell.row] = cell
        return found


def every_study(root: Path | None = None, origin: Origin | None = None, planned: bool = False) -> list[StudyCells]:
    """The studies of the workspace that have results; `planned`: those without any as well, whose claims are then not
    run yet, and not untested. A study that cannot be read is left out: a warning names it. Origins as in `load_runs`.
    """
    found = []
    for name in study_names(root):
        with left_out(name):
            cells = StudyCells(find_study(name, root), origin, planned)
            is_planned = bool(planned and cells.study.sweeps)  # this reads the study, or raises
            if is_planned or cells.results:
                found.append(cells)
    return found
