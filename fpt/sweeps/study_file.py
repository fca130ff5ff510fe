"""The file study.yaml: its shape, and every name in it checked before anything is made of it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from fpt import models, tasks
from fpt.documents import read_model
from fpt.errors import check_known
from fpt.papers import paper_of
from fpt.sweeps.spec import FIELDS

FILE = "study.yaml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
Fields = dict[str, Any]


class Replacement(BaseModel, frozen=True, extra="forbid"):
    """`with` in the place of what `where` describes: fields, options, `table`, `row`; None: left out."""

    where: Fields
    by: Fields | None = Field(alias="with")

    def applies(self, fields: Mapping[str, Any]) -> bool:
        """Whether every field that `where` names has its value, or one of its values."""
        return all(
            fields.get(name) in (values if isinstance(values, list) else [values])
            for name, values in self.where.items()
        )


class StudyFile(BaseModel, frozen=True, extra="forbid"):
    """The shape of study.yaml."""

    name: str | None = None
    paper: str | None = None
    tables: list[str] | None = None  # of the paper; None: all
    replace: list[Replacement] = []
    defaults: Fields = {}
    tasks: dict[str, Fields] = {}
    cells: dict[str, Fields] = {}  # ROW/TASK of the paper -> fields
    sweeps: list[Fields] = []


def study_label(folder: Path) -> str:
    """The study file as its users know it: runs/<study>/study.yaml."""
    return "/".join([*folder.parts[-2:], FILE])


def read_study(folder: Path, label: str) -> StudyFile:
    """The document, with every name in it checked. Raises SpecError."""
    file, _ = read_model(StudyFile, folder / FILE, label)
    for task in file.tasks:
        tasks.entry(task, f"tasks of {label}")
    options = [name for table in (tasks.TASKS, models.BACKBONES) for entry in table.values() for name in entry.options]
    known = [*FIELDS, "keep_as", *dict.fromkeys(options)]
    places: dict[str, Mapping[str, Any]] = {f"defaults of {label}": file.defaults}
    places |= {f"tasks of {label}, {task}": fields for task, fields in file.tasks.items()}
    places |= {f"cells of {label}, {cell}": fields for cell, fields in file.cells.items()}
    places |= {f"{label}, sweep {number}": entry for number, entry in enumerate(file.sweeps, 1)}
    for number, replacement in enumerate(file.replace, 1):
        where = {name: value for name, value in replacement.where.items() if name not in ("table", "row")}
        places |= {f"{label}, replace {number}, where": where}
        places |= {f"{label}, replace {number}, with": replacement.by or {}}
    for place, fields in places.items():
        for name in fields:
            check_known("study field", name, known, place)
    for cell in file.cells:
        _check_cell(cell, file, label)
    return file


def _check_cell(cell: str, file: StudyFile, label: str) -> None:
    """SpecError for a cell (ROW/TASK) that the study's paper does not have."""
    paper = paper_of(file.paper or "", f"cells of {label}")
    row, _, task = cell.rpartition("/")
    check_known("row", row, paper.rows, f"cells of {label}")
    check_known("task", task, paper.tasks, f"cells of {label}")
