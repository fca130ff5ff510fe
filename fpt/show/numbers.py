"""Numbers and names as text: percent, points, intervals, values of a cell, titles of tasks."""

import math
from collections.abc import Iterable

from fpt.models import backbone
from fpt.results.cells import TableCell
from fpt.results.contrasts import MINUS
from fpt.results.stats import Paired
from fpt.tasks import TASKS

TITLES = {  # where there is little room
    "homology": "Homology", "digits": "Digits", "digits-lra": "Digits, by pixel", "listops-short": "ListOps, short",
}  # fmt: skip
MODELS = {"minilm": "MiniLM", "smollm2": "SmolLM2"}  # as their authors write them


def percent(value: float) -> str:
    """A fraction as percent text; "-" for nan."""
    return "-" if math.isnan(value) else f"{round(100 * value, 9):.1f}"  # equal means print alike, however summed


def points(value: float) -> str:
    """A difference of fractions in percentage points, as text with its sign, a true minus; empty for nan."""
    return "" if math.isnan(value) else f"{round(100 * value, 9):+.1f}".replace("-", MINUS)


def interval(test: Paired) -> str:
    """-1.2 to +3.4, in points; "-" where there are too few pairs."""
    return "-" if math.isnan(test.low) else f"{points(test.low)} to {points(test.high)}"


def title(task: str) -> str:
    """The task's name in tables and figures."""
    return TITLES.get(task) or (TASKS[task].title if task in TASKS else task)


def model(backbone: str) -> str:
    """A backbone's name in tables and figures."""
    return MODELS.get(backbone, backbone)


def layers(cell: TableCell) -> int:
    """Of the cell's model as it was trained; 0 where there is no sweep."""
    return int(cell.spec.backbone_options.get("layers") or backbone(cell.spec.backbone).layers) if cell.spec else 0


def papers_layers(cell: TableCell) -> int:
    """Of the model that the paper's row is about; those trained, in tables of this study and where a paper names no
    model."""
    fields = {**cell.paper.defaults, **cell.paper.rows[cell.row].fields}
    for printed in cell.printed.values():
        fields |= printed.fields
    if cell.table.any_task or "backbone" not in fields:
        return layers(cell)
    return int(fields.get("layers") or backbone(fields["backbone"]).layers)


def row_label(cells: Iterable[TableCell]) -> str:
    """One row of a table, as "24 layers, random (here 8 layers)": with the layers that were trained, where rows of this
    table name theirs and these are others."""
    cells = list(cells)
    named = any("layers" in cells[0].paper.rows[row].fields for row in cells[0].table.rows)
    others = sorted({layers(cell) for cell in cells if cell.spec and layers(cell) != papers_layers(cell)})
    return cells[0].label + (f" (here {' or '.join(map(str, others))} layers)" if named and others else "")
