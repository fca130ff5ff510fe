"""Cells: a row of a paper's table on one task of one study, and what its runs measured.

The only place that knows how runs become values by seed: which stage is reported, what "tuned" means, what counts as
converged.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from fpt.evidence.runs import Origin, SweepTables, find_study, load_sweeps, studies
from fpt.papers import paper_of
from fpt.papers.schema import Paper, Printed, Table
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study, load_study

NOT_AT_THIS_SCALE, NOT_RUN = "not tested at this scale", "not run yet"
TUNED, AT_PAPERS_RATE = "tuned", "paper"  # each sweep at its own best rate; all at the rate that the paper prints
PAPER_SCALE, REDUCED = "paper", "reduced"
SELECTION, CONFIRMATION = "selection", "confirmation"


@dataclass(frozen=True)
class Cell:
    """A row on one task: without a sweep in the study (`spec` None), with one that was not run, or with results.

    `task` is what was run, `stands_for` the paper's tasks in whose place it stands (itself, if it is the paper's).
    """

    table: Table
    row: str
    task: str
    stands_for: tuple[str, ...] = ()
    spec: SweepSpec | None = None
    tables: SweepTables | None = None
    scale: str = REDUCED

    @property
    def paper(self) -> Paper:
        return paper_of(self.table.paper)

    @property
    def label(self) -> str:
        return self.paper.label(self.row)

    @property
    def printed(self) -> dict[str, Printed]:
        """What the paper prints for this row, by the task for which this one stands."""
        entry = self.table.rows[self.row]
        return {task: entry.printed[task] for task in self.stands_for if task in entry.printed}

    @property
    def problem(self) -> str:
        """Why there is nothing to show, or nothing."""
        return NOT_AT_THIS_SCALE if self.spec is None else NOT_RUN if self.tables is None else ""

    @property
    def runs(self) -> pd.DataFrame:
        return pd.DataFrame() if self.tables is None else self.tables.runs

    @property
    def stage(self) -> str:
        """Fresh seeds where there are any; else those that also chose the rate: an exploratory number."""
        return CONFIRMATION if (self.runs["stage"] == CONFIRMATION).any() else SELECTION

    @property
    def is_exploratory(self) -> bool:
        """Whether what is reported comes from seeds that also chose the rate."""
        return not self.problem and self.stage == SELECTION

    @property
    def at_edge(self) -> bool:
        """Whether the tuned rate is an end of the grid: its accuracy is a lower bound."""
        return self.tables is not None and self.tables.at_edge

    @property
    def best_rate(self) -> float | None:
        """The tuned rate; None where every rate diverged, or nothing was run."""
        return None if self.tables is None else self.tables.selected_rate

    @property
    def rates(self) -> list[float]:
        """The grid."""
        return [] if self.spec is None else list(self.spec.learning_rates)

    @property
    def papers_rate(self) -> float | None:
        """The rate that the paper prints for this model and task."""
        backbone = self.spec.backbone if self.spec else ""
        return self.paper.rate(self.stands_for[0] if self.stands_for else self.task, backbone)

    def at(
        self, at: str | float, stage: str | None = None, table: Literal["runs", "curves", "attention"] = "runs"
    ) -> pd.DataFrame:
        """`SweepTables.at` of a stage [the reported one] at a rate: tuned, the paper's, a number."""
        if self.tables is None:
            return pd.DataFrame()
        rate = {TUNED: self.best_rate, AT_PAPERS_RATE: self.papers_rate}.get(at, at) if isinstance(at, str) else at
        return self.tables.at(table, stage or self.stage, math.nan if rate is None else float(rate))

    def values(self, at: str | float = TUNED, stage: str | None = None) -> "pd.Series[float]":
        """By seed: test accuracy, steps to the table's goal (infinite: not reached), or training minus test."""
        if self.problem:
            return pd.Series(dtype=float)
        if self.table.kind == "steps":
            goal = self.spec.threshold if self.spec and self.spec.threshold else math.nan
            return steps_to(self.curve(at, stage), goal)
        runs = self.at(at, stage)
        if self.table.kind == "gap":
            return (runs["train_accuracy_last"] - runs["test_accuracy_last"]).astype(float)
        return runs["test_accuracy"].astype(float)

    def curve(self, at: str | float = TUNED, stage: str | None = None) -> pd.DataFrame:
        """Validation accuracy, a row an evaluation step, a column a seed."""
        return self.at(at, stage, "curves")

    def diverged(self, at: str | float) -> int:
        """How many runs of any stage diverged at this rate."""
        if self.problem:
            return 0
        return sum(int(self.at(at, stage)["diverged_at"].notna().sum()) for stage in (SELECTION, CONFIRMATION))


def steps_to(curve: pd.DataFrame, goal: float) -> "pd.Series[float]":
    """First step (index) at which each seed (column) is at or above `goal`, a fraction; infinite where it never is."""
    reached = curve >= goal
    first = reached.idxmax().astype(float)
    return first.where(reached.any(), np.inf)


@dataclass(frozen=True)
class StudyCells:
    """The cells that one study gives to any table of any paper, read when they are first asked for."""

    folder: Path
    origin: Origin = "auto"
    _known: dict[str, list[Cell]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.folder.name

    @cached_property
    def study(self) -> Study:
        return load_study(self.folder)

    @cached_property
    def results(self) -> dict[str, SweepTables]:
        """Finished sweeps by folder name."""
        return load_sweeps(self.study, self.origin)

    def cells(self, table: Table) -> list[Cell]:
        """Every row of the table on every task on which this study can show it: rows in the table's order."""
        if table.id not in self._known:
            self._known[table.id] = list(self._cells(table))
        return self._known[table.id]

    def _cells(self, table: Table) -> Iterable[Cell]:
        for planned in self.study.planned(table):
            results = self.results.get(planned.spec.folder_name) if planned.spec else None
            yield Cell(table, planned.row, planned.task, planned.stands_for, planned.spec, results, planned.scale)

    def by_task(self, table: Table, rows: Sequence[str] | None = None) -> dict[str, dict[str, Cell]]:
        """Task -> row -> cell, for the tasks on which at least one row has a sweep."""
        found: dict[str, dict[str, Cell]] = {}
        for cell in self.cells(table):
            if rows is None or cell.row in rows:
                found.setdefault(cell.task, {})[cell.row] = cell
        return {task: cells for task, cells in found.items() if any(cell.spec for cell in cells.values())}


def study_cells(name: str, root: Path | None = None) -> StudyCells:
    """The cells of the study `name` in the workspace around the working directory (or `root`)."""
    return StudyCells(find_study(name, root))


def every_study(root: Path | None = None) -> list[StudyCells]:
    """The studies of the workspace that have results."""
    found = [study_cells(name, root) for name in studies(root)]
    return [each for each in found if each.results]
