"""Numbers and names as text: percent, points, intervals, values of a cell, titles of tasks."""

import math
from collections.abc import Iterable

from fpt.claims.reading import Part
from fpt.models import backbone
from fpt.papers.schema import LEVELS
from fpt.results.baselines import COPYING, LINEAR, MAJORITY, OPERATOR, known_scores
from fpt.results.cells import Cell
from fpt.results.runs import rate_text
from fpt.results.stats import Paired
from fpt.tasks import TASKS

SHOWN = ("chance", MAJORITY, COPYING, LINEAR, OPERATOR, LEVELS[1])  # of the baselines, in tables
TITLES = {  # where there is little room
    "homology": "Homology", "digits": "Digits", "digits-lra": "Digits, by pixel", "listops-short": "ListOps, short",
}  # fmt: skip


def percent(value: float) -> str:
    """A fraction as percent text; "-" for nan."""
    return "-" if math.isnan(value) else f"{round(100 * value, 9):.1f}"  # equal means print alike, however summed


def points(value: float) -> str:
    """A difference of fractions in percentage points, as text with its sign; empty for nan."""
    return "" if math.isnan(value) else f"{round(100 * value, 9):+.1f}"


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


def layers(cell: Cell) -> int:
    """Of the cell's model as it was trained; 0 where there is no sweep."""
    return int(cell.spec.backbone_options.get("layers") or backbone(cell.spec.backbone).layers) if cell.spec else 0


def papers_layers(cell: Cell) -> int:
    """Of the model that the paper's row is about; those trained, in tables of this study and where a paper names no
    model."""
    fields = {**cell.paper.defaults, **cell.paper.rows[cell.row].fields}
    for printed in cell.printed.values():
        fields |= printed.fields
    if cell.table.any_task or "backbone" not in fields:
        return layers(cell)
    return int(fields.get("layers") or backbone(fields["backbone"]).layers)


def row_label(cells: Iterable[Cell]) -> str:
    """One row of a table, as "24 layers, random (here 8 layers)": with the layers that were trained, where rows of this
    table name theirs and these are others."""
    cells = list(cells)
    named = any("layers" in cells[0].paper.rows[row].fields for row in cells[0].table.rows)
    others = sorted({layers(cell) for cell in cells if cell.spec and layers(cell) != papers_layers(cell)})
    return cells[0].label + (f" (here {' or '.join(map(str, others))} layers)" if named and others else "")


def layers_in_words(cells: Iterable[Cell]) -> str:
    """One sentence: how many layers were trained in the place of how many of the paper's, by study; nothing where all
    are the paper's."""
    found: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.spec and layers(cell) != papers_layers(cell):
            words = f"{layers(cell)} in the place of the paper's {papers_layers(cell)}"
            found.setdefault(words, {})[cell.study] = None
    replaced = ", ".join(f"{words} ({', '.join(studies)})" for words, studies in found.items())
    return f"Layers: {replaced}." if replaced else ""


def papers_rates(cells: Iterable[Cell]) -> str:
    """The rates that the paper prints for these cells."""
    rates = {cell.papers_rate for cell in cells if cell.papers_rate is not None}
    return " or ".join(rate_text(rate) for rate in sorted(rates, reverse=True)) or "none"


def difference(part: Part) -> str:
    """The tested difference with its interval, in points."""
    test = part.test
    return "" if math.isnan(test.mean) else f"{points(test.mean)} ({interval(test)})"


def ratio_words(ratio: float, low: float, high: float) -> str:
    """A ratio of rates in half decades with its interval, as 0.3 (0.1 to 1), so that 1/3 and 3/10 read alike; 0 and
    infinity bound nothing: 0.1 (0.1 or less)."""
    ratio, low, high = (float(f"{each:.1g}") for each in (ratio, low, high))
    bounds = {(1, 1): f"{low:g} to {high:g}", (1, 0): f"{low:g} or more", (0, 1): f"{high:g} or less"}
    return "-" if math.isnan(ratio) else f"{ratio:g} ({bounds.get((low > 0, math.isfinite(high)), 'no bound')})"
