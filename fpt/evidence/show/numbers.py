"""Numbers and names as text: percent, points, intervals, values of a cell, titles of tasks."""

import math
from collections.abc import Mapping

import numpy as np

from fpt.evidence.cells import CONFIRMATION, SELECTION, TUNED, Cell
from fpt.evidence.runs import SHORT, rate_text
from fpt.evidence.stats import Paired, mean_interval
from fpt.evidence.verdicts import Part
from fpt.tasks import TASKS

NONE = "(no result)"
RATES = (1e-3, 1e-2)  # that chapters name
TITLES = {"homology": "Homology", "digits": "Digits", "listops-short": "ListOps, short"}  # where there is little room


def percent(value: float, digits: int = 1) -> str:
    """A fraction as percent text; "-" for nan."""
    return "-" if math.isnan(value) else f"{100 * value:.{digits}f}"


def points(value: float) -> str:
    """A difference of fractions in percentage points, as text with its sign; empty for nan."""
    return "" if math.isnan(value) else f"{100 * value:+.1f}"


def interval(test: Paired) -> str:
    """-1.2 to 3.4, in points; "-" where there are too few pairs."""
    return "-" if math.isnan(test.low) else f"{points(test.low)} to {points(test.high)}"


def title(task: str) -> str:
    """The task's name in tables and figures."""
    return TITLES.get(task) or (TASKS[task].title if task in TASKS else task)


def arm_of(cell: Cell) -> str:
    """FP, FR, UP or UR: by what is random and what trains."""
    if cell.spec is None:
        return ""
    return ("U" if cell.spec.trainable == "all" else "F") + ("P" if cell.spec.init == "pretrained" else "R")


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

    `fp-tuned`, `fp-rate`, `fp-1e-3`, `fp-1e-2` for each arm; `steps`, `backbone`, `selection-seeds`,
    `confirmation-seeds`, `runs`, `diverged`, `grid`.
    """
    found = {}
    for arm in SHORT.values():
        cell, key = cells.get(arm), arm.lower()
        done = cell is not None and not cell.problem
        rate = cell.best_rate if cell is not None else None
        found[f"{key}-rate"] = NONE if rate is None else rate_text(rate)
        readings: dict[str, str | float] = {"tuned": TUNED} | {rate_text(rate): rate for rate in RATES}
        for name, at in readings.items():
            found[f"{key}-{name}"] = _accuracy(cell, at) if cell is not None and done else NONE
    specs = [cell.spec for cell in cells.values() if cell.spec is not None]
    found["steps"] = f"{specs[0].steps:,}" if specs else NONE
    found["backbone"] = specs[0].backbone if specs else NONE
    found["grid"] = ", ".join(map(rate_text, specs[0].learning_rates)) if specs else NONE
    runs = [cell.runs for cell in cells.values() if not cell.problem]
    for stage in (SELECTION, CONFIRMATION):
        seeds = {seed for each in runs for seed in each.loc[each["stage"] == stage, "seed"]}
        found[f"{stage}-seeds"] = str(len(seeds) or NONE)
    found["runs"] = f"{sum(map(len, runs)):,}"
    found["diverged"] = str(sum(int(each["diverged_at"].notna().sum()) for each in runs))
    return found


def _accuracy(cell: Cell, at: str | float) -> str:
    """From fresh seeds alone."""
    values = cell.values(at, CONFIRMATION)
    return f"{percent(mean_interval(values)[0])}%" if len(values) else NONE
