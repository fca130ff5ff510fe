"""Numbers and names as text: percent, points, intervals, titles of tasks."""

import math

from fpt.results.contrasts import interval_of, points_text, rounded
from fpt.results.stats import MINIMUM_PAIRS, Paired
from fpt.tasks import TASKS

TITLES = {  # where there is little room
    "homology": "Homology", "digits": "Digits", "digits-lra": "Digits, by pixel", "listops-short": "ListOps, short",
}  # fmt: skip
MODELS = {"minilm": "MiniLM", "smollm2": "SmolLM2"}  # as their authors write them


def percent(value: float) -> str:
    """A fraction as percent text; "-" for nan."""
    return "-" if math.isnan(value) else rounded(100 * value, 1)


def points(value: float) -> str:
    """A difference of fractions in percentage points, as text with its sign, a true minus; empty for nan."""
    return "" if math.isnan(value) else points_text(100 * value, True)


def interval(test: Paired) -> str:
    """-1.2 to +3.4, in points; "-" where there are too few pairs."""
    return "-" if test.n < MINIMUM_PAIRS else " to ".join(map(points, interval_of(test)))


def title(task: str) -> str:
    """The task's name in tables and figures."""
    return TITLES.get(task) or (TASKS[task].title if task in TASKS else task)


def model(backbone: str) -> str:
    """A backbone's name in tables and figures."""
    return MODELS.get(backbone, backbone)
