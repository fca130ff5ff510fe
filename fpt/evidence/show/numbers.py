"""Numbers and names as text: percent, points, intervals, values of a cell, titles of tasks."""

import math
from collections.abc import Mapping

import pandas as pd

from fpt.evidence.baselines import COPYING, LINEAR, MAJORITY, OPERATOR, known_scores
from fpt.evidence.cells import TUNED, Cell
from fpt.evidence.reading import Part
from fpt.evidence.runs import SHORT, rate_text
from fpt.evidence.stats import Paired
from fpt.papers.schema import LEVELS
from fpt.tasks import TASKS

NONE = "(no result)"
SHOWN = ("chance", MAJORITY, COPYING, LINEAR, OPERATOR, LEVELS[1])  # of the baselines, in tables
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


def known_in_words(task: str, variant: str = "paper") -> str:
    """What can be had on a task without training the model, in percent; the ladder of ListOps up to its first level."""
    known = known_scores(task, variant)
    return ", ".join(f"{name} {percent(known[name].share)}" for name in SHOWN if name in known)


def title(task: str) -> str:
    """The task's name in tables and figures."""
    return TITLES.get(task) or (TASKS[task].title if task in TASKS else task)


def difference(part: Part) -> str:
    """The tested difference with its interval, in points."""
    test = part.test
    return "" if math.isnan(test.mean) else f"{points(test.mean)} ({interval(test)})"


def facts(cells: Mapping[str, Cell]) -> dict[str, str]:
    """Text by key for the four arms (FP, ...) on one task. The keys are always the same; what is not there reads
    "(no result)".

    `fp-tuned`, `fp-rate`, `fp-1e-3`, `fp-1e-2` for each arm; `steps`, `backbone`, `grid`, `seeds`, `runs`, `diverged`.
    """
    done = {arm: cell for arm, cell in cells.items() if not cell.problem}
    found = {}
    for arm in SHORT.values():
        cell = done.get(arm)
        found[f"{arm}-rate".lower()] = rate_text(cell.best_rate) if cell and cell.best_rate else NONE
        for name, at in READINGS.items():
            values = cell.values(at) if cell else pd.Series(dtype=float)
            found[f"{arm}-{name}".lower()] = f"{percent(values.mean())}%" if len(values) else NONE
    spec = next((cell.spec for cell in cells.values() if cell.spec), None)
    found |= {
        "steps": f"{spec.steps:,}" if spec else NONE,
        "backbone": spec.backbone if spec else NONE,
        "grid": ", ".join(map(rate_text, spec.learning_rates)) if spec else NONE,
        "seeds": str(len(spec.seeds)) if spec else NONE,
        "runs": f"{sum(len(cell.runs) for cell in done.values()):,}",
        "diverged": str(sum(int(cell.runs["diverged_at"].notna().sum()) for cell in done.values())),
    }
    return found
