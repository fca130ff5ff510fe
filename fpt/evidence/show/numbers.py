"""Numbers and names as text: percent, points, intervals, values of a cell, titles of tasks."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from fpt.evidence.cells import CONFIRMATION, TUNED, Cell
from fpt.evidence.runs import SHORT, rate_text
from fpt.evidence.stats import Paired
from fpt.evidence.verdicts import Part
from fpt.tasks import TASKS

NONE = "(no result)"
READINGS: dict[str, str | float] = {"tuned": TUNED, "1e-3": 1e-3, "1e-2": 1e-2}  # that chapters name
TITLES = {"homology": "Homology", "digits": "Digits", "listops-short": "ListOps, short"}  # where there is little room


def percent(value: float) -> str:
    """A fraction as percent text; "-" for nan."""
    return "-" if math.isnan(value) else f"{100 * value:.1f}"


def points(value: float) -> str:
    """A difference of fractions in percentage points, as text with its sign; empty for nan."""
    return "" if math.isnan(value) else f"{100 * value:+.1f}"


def interval(test: Paired) -> str:
    """-1.2 to 3.4, in points; "-" where there are too few pairs."""
    return "-" if math.isnan(test.low) else f"{points(test.low)} to {points(test.high)}"


def title(task: str) -> str:
    """The task's name in tables and figures."""
    return TITLES.get(task) or (TASKS[task].title if task in TASKS else task)


def middle(cell: Cell, at: str) -> float:
    """The mean over seeds in percent, of steps the median; infinite where half the seeds never arrived."""
    values = cell.values(at).dropna().to_numpy(float)
    if not len(values):
        return math.nan
    return float(np.median(values)) if cell.table.kind == "steps" else 100 * float(values.mean())


def number(cell: Cell, value: float) -> str:
    """A value of the cell's table as text."""
    if math.isnan(value):
        return "-"
    return f"{value:.1f}" if cell.table.kind != "steps" else f"{value:,.0f}" if math.isfinite(value) else "not reached"


def difference(part: Part) -> str:
    """The tested difference with its interval: points, or a ratio of steps (whose logarithm was tested)."""
    test = part.test
    if math.isnan(test.mean):
        return ""
    if part.comparison.startswith("steps of"):
        mean, low, high = (f"{math.exp(value):.2f}" for value in (test.mean, test.low, test.high))
        return f"x {mean} ({low} to {high})"
    return f"{points(test.mean)} ({interval(test)})"


def facts(cells: Mapping[str, Cell]) -> dict[str, str]:
    """Text by key for the four arms (FP, ...) on one task. The keys are always the same; what is not there reads
    "(no result)".

    `fp-tuned`, `fp-rate`, `fp-1e-3`, `fp-1e-2` for each arm, of fresh seeds alone; `steps`, `backbone`, `grid`,
    `selection-seeds`, `confirmation-seeds`, `runs`, `diverged`.
    """
    done = {arm: cell for arm, cell in cells.items() if not cell.problem}
    found = {}
    for arm in SHORT.values():
        cell = done.get(arm)
        found[f"{arm}-rate".lower()] = rate_text(cell.best_rate) if cell and cell.best_rate else NONE
        for name, at in READINGS.items():
            values = cell.values(at, CONFIRMATION) if cell else pd.Series(dtype=float)
            found[f"{arm}-{name}".lower()] = f"{percent(values.mean())}%" if len(values) else NONE
    spec = next((cell.spec for cell in cells.values() if cell.spec), None)
    found |= {
        "steps": f"{spec.steps:,}" if spec else NONE,
        "backbone": spec.backbone if spec else NONE,
        "grid": ", ".join(map(rate_text, spec.learning_rates)) if spec else NONE,
        "selection-seeds": str(len(spec.selection_seeds)) if spec else NONE,
        "confirmation-seeds": str(len(spec.confirmation_seeds)) if spec else NONE,
        "runs": f"{sum(len(cell.runs) for cell in done.values()):,}",
        "diverged": str(sum(int(cell.runs["diverged_at"].notna().sum()) for cell in done.values())),
    }
    return found
