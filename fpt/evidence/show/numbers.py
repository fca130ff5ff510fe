"""Numbers and names as text: percent, points, intervals, values of a cell, titles of tasks."""

import math
from collections.abc import Mapping

from fpt.evidence.baselines import COPYING, LINEAR, MAJORITY, OPERATOR, known_scores
from fpt.evidence.cells import Cell
from fpt.evidence.reading import Part
from fpt.evidence.runs import rate_text
from fpt.evidence.stats import Paired
from fpt.papers.schema import LEVELS
from fpt.tasks import TASKS

NONE = "(no result)"
SHOWN = ("chance", MAJORITY, COPYING, LINEAR, OPERATOR, LEVELS[1])  # of the baselines, in tables
TITLES = {  # where there is little room
    "homology": "Homology", "digits": "Digits", "digits-lra": "Digits, by pixel", "listops-short": "ListOps, short",
}  # fmt: skip


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
    """How the arms on one task are trained, as text: `steps`, `backbone`, `grid`, `seeds`; "(no result)" where there is
    no sweep."""
    spec = next((cell.spec for cell in cells.values() if cell.spec), None)
    return {
        "steps": f"{spec.steps:,}" if spec else NONE,
        "backbone": spec.backbone if spec else NONE,
        "grid": ", ".join(map(rate_text, spec.learning_rates)) if spec else NONE,
        "seeds": str(len(spec.seeds)) if spec else NONE,
    }
