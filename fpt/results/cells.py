"""Cells: a row of a paper's table on one task of one study, with the arm that serves it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fpt.results.arm import ROWS, Arm, served
from fpt.results.runs import Origin, arms_in, find_study, left_out, study_names
from fpt.sweeps.row_on_task import PAPER_SCALE, REDUCED, RowOnTask

if TYPE_CHECKING:
    from fpt.papers.schema import Paper, PaperTable, Printed
    from fpt.sweeps.rows import Planned
    from fpt.sweeps.study import Study

AT_PAPERS_RATE = "paper"  # the rate that the paper prints for the row, for all seeds
FEW_SEEDS = 8  # with fewer a number is exploratory


@dataclass(frozen=True)
class TableCell(RowOnTask):
    """A row on a task with the finished arm that serves it."""

    arm: Arm

    @property
    def task(self) -> str:
        return self.arm.task

    @property
    def sweep(self) -> str:
        return self.arm.sweep

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
    def papers_rate(self) -> float:
        """The rate that the paper prints for this model and task; nan where it prints none."""
        rate = self.paper.rate((*self.stands_for, self.task)[0], self.arm.fields["backbone"])
        return math.nan if rate is None else rate

    def rate(self, at: str | float) -> str | float:
        """Where its arm is read: AT_PAPERS_RATE as a number, anything else as it is."""
        return self.papers_rate if at == AT_PAPERS_RATE else at


@dataclass(frozen=True)
class StudyCells:
    """The arms of one study, and the cells that they give to any table of any paper, read when they are first asked
    for; origins as in `load_runs`."""

    folder: Path
    origin: Origin | None = None
    _cells: dict[str, list[TableCell]] = field(default_factory=dict, repr=False, compare=False)  # by table
    _not_run: dict[str, "dict[str, dict[str, Planned]]"] = field(default_factory=dict, repr=False, compare=False)

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

    def cells(self, table: "PaperTable") -> list[TableCell]:
        """The rows of the table, in its order, on every task on which an arm serves them."""
        if table.id not in self._cells:
            order = list(table.rows)
            self._cells[table.id] = sorted(self._served(table), key=lambda cell: order.index(cell.row))
        return self._cells[table.id]

    def _served(self, table: "PaperTable") -> Iterator[TableCell]:
        """By runs/rows.csv, where they are published; else by the study file."""
        if any(arm.origin == "published" for arm in self.results.values()):
            lines = [
                (
                    line["sweep"],
                    line["row"],
                    tuple(line["stands_for"].split(";")),
                    PAPER_SCALE if line["scale"] == PAPER_SCALE else REDUCED,
                )
                for line in served(self.folder.parent / ROWS, self.name, table.id)
                if line["row"] in table.rows
            ]
        else:
            planned = self.study.planned(table) if self.results else []
            lines = [(each.sweep, each.row, each.stands_for, each.scale) for each in planned]
        for sweep, row, stands_for, scale in lines:
            if arm := self.results.get(sweep):
                of = replace(arm, of="gap") if table.kind == "gap" else arm
                yield TableCell(table, row, stands_for, scale, of)

    def by_task(self, table: "PaperTable") -> dict[str, dict[str, TableCell]]:
        """Task -> row -> cell, for the tasks on which an arm serves at least one row."""
        found: dict[str, dict[str, TableCell]] = {}
        for cell in self.cells(table):
            found.setdefault(cell.task, {})[cell.row] = cell
        return found

    def not_run(self, table: "PaperTable") -> "dict[str, dict[str, Planned]]":
        """Task -> row -> what the study file plans there, for the tasks on which some row was not run yet."""
        if all(spec.folder_name in self.results for spec in self.study.sweeps):
            return {}
        if table.id not in self._not_run:
            found: dict[str, dict[str, Planned]] = {}
            for each in self.study.planned(table):
                found.setdefault(each.task, {})[each.row] = each
            self._not_run[table.id] = {
                task: rows
                for task, rows in found.items()
                if any(each.sweep not in self.results for each in rows.values())
            }
        return self._not_run[table.id]


def every_study(root: Path | None = None, origin: Origin | None = None, planned: bool = False) -> list[StudyCells]:
    """The studies of the workspace that have results; `planned`: those without any as well, whose claims are then not
    run yet, and not untested. A study that cannot be read is left out: a warning names it. Origins as in `load_runs`.
    """
    found = []
    for name in study_names(root):
        with left_out(name):
            cells = StudyCells(find_study(name, root), origin)
            is_planned = bool(planned and cells.study.sweeps)  # this reads the study, or raises
            if is_planned or cells.results:
                found.append(cells)
    return found
