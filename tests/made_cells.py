"""Cells of a toy paper whose numbers are chosen, for the engine of verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fpt.evidence.cells import CONFIRMATION, PAPER_SCALE, SELECTION, Cell
from fpt.evidence.runs import SweepTables
from fpt.papers.schema import Claim, Paper, Table
from fpt.sweeps import SweepSpec

RATES = (1e-4, 1e-3, 1e-2)
STEPS = 400
SEEDS = {SELECTION: range(3), CONFIRMATION: range(10, 18)}
ARMS = ("frozen-pretrained", "frozen-random", "unfrozen-pretrained", "unfrozen-random")


@dataclass(frozen=True)
class Made:
    """What the runs of one row are to be: means by rate (percent), their spread, and what differs from the plain."""

    means: Mapping[float, float | Sequence[float]] | float = 80.0
    sd: float = 0.4
    best: float | None = 1e-3
    edge: bool = False
    train: float = 80.0  # training accuracy, for gaps
    arrives: Sequence[float] = ()  # by seed: step at which the curve comes to 90 percent
    top: float = 90.0  # where the curve ends
    attention: tuple[float, float, float] | None = None  # on the needed tokens: after, before, even spread
    diverged: Mapping[float, int] = field(default_factory=dict)  # rate -> how many runs of each stage
    fields: Mapping[str, Any] = field(default_factory=dict)
    stages: tuple[str, ...] = (SELECTION, CONFIRMATION)
    missing: bool = False  # planned, not run


def paper(rows: Sequence[str], kind: str = "accuracy", printed: Any = None, until: str = "threshold") -> Paper:
    """A paper `toy` with one table, `toy-table`: `printed` is row -> task -> number."""
    entries = {row: {"ours": "a toy", **(printed or {}).get(row, {})} for row in rows}
    table = {"id": "toy-table", "paper": "toy", "title": "Toy", "kind": kind, "until": until, "rows": entries}
    return Paper.model_validate(
        {
            "name": "toy", "title": "Toy", "rates": {"default": 1e-3}, "tables": {"toy-table": table},
            "tasks": {task: {} for task in ("digits", "digits-lra", "listops-short", "bit-xor", "mnist")},
            "rows": {row: {"arm": arm} for row, arm in zip(rows, ARMS * 2, strict=False)},
        }
    )  # fmt: skip


def cell(table: Table, row: str, made: Made, task: str = "digits", scale: str = "reduced") -> Cell:
    place = list(table.rows).index(row)
    rates = made.means if isinstance(made.means, Mapping) else dict.fromkeys(RATES, made.means)
    fields: dict[str, Any] = {"task": task, "arm": ARMS[place % 4], "steps": STEPS, "threshold": 0.9,
                              "learning_rates": list(rates), "selection_seeds": [0, 1, 2]}  # fmt: skip
    spec = SweepSpec(**fields | dict(made.fields))
    if made.missing:
        return Cell(table, row, task, (task,), spec, None, scale)
    rng = np.random.default_rng(place)
    runs, curves, maps = [], [], []
    for stage in made.stages:
        for rate, mean in rates.items():
            for n, seed in enumerate(SEEDS[stage]):
                level = mean[n % len(mean)] if isinstance(mean, Sequence) else mean
                noise = rng.normal(0, made.sd) / 100
                lost = n < made.diverged.get(rate, 0)
                key = {"stage": stage, "learning_rate": rate, "seed": seed}
                accuracy = np.nan if lost else level / 100 + noise
                runs.append(key | {"test_accuracy": accuracy, "test_accuracy_last": accuracy,
                                   "train_accuracy_last": made.train / 100 + noise / 2,
                                   "diverged_at": 5 if lost else None})  # fmt: skip
                arrives = made.arrives[n % len(made.arrives)] if made.arrives else np.inf
                for step in range(20, STEPS + 1, 20):
                    value = 0.9 if step >= arrives else (made.top / 100 + noise) * step / STEPS
                    curves.append(key | {"step": step, "validation_accuracy": value})
                if made.attention:
                    maps += _maps(key, made.attention, noise)
    tables = SweepTables(spec, Path(), {"selected_rate": made.best, "at_edge": made.edge}, "own")
    vars(tables).update(  # what is otherwise read from its folder
        runs=pd.DataFrame(runs).astype({"diverged_at": "Int64"}),
        curves=pd.DataFrame(curves),
        attention=pd.DataFrame(maps),
    )
    return Cell(table, row, task, (task,), spec, tables, scale)


def _maps(key: dict[str, Any], shares: tuple[float, float, float], noise: float) -> list[dict[str, Any]]:
    """Two strings of one token, and a query that needs the first."""
    after, before, chance = shares
    rows = []
    for trained, share in ((True, after / 100 + noise), (False, before / 100 - noise)):
        for place, weight in enumerate((share, 1 - share, 0.0)):
            needed = place == 0
            rows.append(key | {"trained": trained, "query": 2, "key": place, "weight": weight,
                               "relevant": weight * needed, "chance": chance / 100 * needed})  # fmt: skip
    return rows


@dataclass
class MadeStudy:
    """What the engine reads of a StudyCells."""

    tasks: dict[str, dict[str, Cell]]
    name: str = "made"

    def by_task(self, table: Table, rows: Sequence[str] | None = None) -> dict[str, dict[str, Cell]]:
        return self.tasks


def study(
    monkeypatch: pytest.MonkeyPatch, toy: Paper, *tasks: Mapping[str, Made] | tuple[str, Mapping[str, Made]],
    scale: str = "reduced",
) -> MadeStudy:  # fmt: skip
    """One study of the toy paper: a mapping of rows for each task, of digits where no task is named."""
    monkeypatch.setattr("fpt.papers.papers", lambda: {"toy": toy})
    table = toy.tables["toy-table"]
    named = dict(entry if isinstance(entry, tuple) else ("digits", entry) for entry in tasks)
    return MadeStudy(
        {task: {row: cell(table, row, made, task, scale) for row, made in rows.items()} for task, rows in named.items()}
    )


def claim(*rules: Mapping[str, Any]) -> Claim:
    return Claim.model_validate(
        {"id": "T-01", "paper": "toy", "says": "so", "where": "there",
         "rule": [{"table": "toy-table", **rule} for rule in rules]}
    )  # fmt: skip


PAPER = PAPER_SCALE
