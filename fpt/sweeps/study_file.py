"""The file study.yaml: its shape, and every name in it checked before anything is made of it."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from fpt import models, tasks
from fpt.documents import read_model
from fpt.errors import SpecError, check_known
from fpt.files import NAME as NAME
from fpt.files import STUDY_FILE
from fpt.papers import claim, paper_of
from fpt.papers.schema import Paper
from fpt.sweeps.spec import FIELDS

FILE = STUDY_FILE
Fields = dict[str, Any]
EXIST: dict[str, Callable[[str, str], Any]] = {"task": tasks.entry, "backbone": models.backbone}
NAMES = ("task", "variant", "backbone", "arm", "init", "keep_as", "pretrained_by")  # fields that hold text


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
    about: str = ""  # what it is, in half a sentence
    paper: str | None = None
    tables: list[str] | None = None  # of the paper; None: all
    replace: list[Replacement] = []
    defaults: Fields = {}
    tasks: dict[str, Fields] = {}
    cells: dict[str, Fields] = {}  # ROW/TASK of the paper -> fields
    sweeps: list[Fields] = []
    asks: list[str] = []  # the claims for which the study is run, written before it runs
    plan: list[str] = []  # the same in words: contrast, direction, budget and pair; every result records them


def study_label(folder: Path) -> str:
    """The study file as its users know it: runs/<study>/study.yaml."""
    return "/".join([*folder.parts[-2:], FILE])


def read_study(folder: Path, label: str) -> StudyFile:
    """The document, with every name in it checked. Raises SpecError."""
    file, _ = read_model(StudyFile, folder / FILE, label)
    for name in file.asks:
        claim(name, f"asks of {label}")
    if file.paper is None and (file.tables or file.cells):
        raise SpecError(f"tables and cells are of a paper: name it under paper ({label})")
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
    places |= _of_paper(paper_of(file.paper, label)) if file.paper else {}
    for place, fields in places.items():
        for name, value in fields.items():
            check_known("study field", name, known, place)
            _check_text(name, value, place)
    _check_replacements(file, label)
    for cell in file.cells:
        _check_cell(cell, file, label)
    return file


def _of_paper(paper: Paper) -> dict[str, Fields]:
    """Everything in a paper that becomes fields of a sweep, those of rows that the study leaves out as well."""
    source = f"fpt/papers/{paper.name}.yaml"
    places = {f"defaults of {source}": paper.defaults}
    places |= {f"{source}, task {task}": fields for task, fields in paper.tasks.items()}
    places |= {f"{source}, row {name}": row.fields for name, row in paper.rows.items()}
    cells = [(table, *row) for table in paper.tables.values() for row in table.rows.items()]
    return places | {
        f"{source}, {table.id}/{row}/{task}": printed.fields
        for table, row, entry in cells
        for task, printed in entry.printed.items()
    }


def _check_text(name: str, value: Any, place: str) -> None:
    """SpecError where a name, or a list of names, is something else."""
    items = value if isinstance(value, list) else [value]
    if name in NAMES and not all(item is None or isinstance(item, str) for item in items):
        raise SpecError(f"{name} = {value!r}: must be text ({place})")
    named = isinstance(value, list) and all(isinstance(item, str) for item in items)
    if name == "measures" and value is not None and not named:
        raise SpecError(f"measures = {value!r}: must be a list of names ({place})")


def _check_replacements(file: StudyFile, label: str) -> None:
    """SpecError where `where` names what does not exist, and so would leave nothing out; and for lists in `with`."""
    known: dict[str, Collection[str]] = {}
    if file.paper:
        paper, ours = paper_of(file.paper, label), paper_of("ours")  # every study is read on ours as well
        known = {"table": {**paper.tables, **ours.tables}, "row": paper.rows, "task": {**tasks.TASKS, **paper.tasks}}
        known["arm"] = {row.fields["arm"] for row in [*paper.rows.values(), *ours.rows.values()] if "arm" in row.fields}
    for number, replacement in enumerate(file.replace, 1):
        for name in {"backbone", *known} & replacement.where.keys():
            values, place = replacement.where[name], f"{label}, replace {number}, where"
            for value in values if isinstance(values, list) else [values]:
                models.backbone(value, place) if name == "backbone" else check_known(name, value, known[name], place)
        for name, value in (replacement.by or {}).items():
            place = f"{label}, replace {number}, with"
            if isinstance(value, list) and name in NAMES:
                raise SpecError(f"{name} = {value!r}: one value stands in for others ({place})")
            if name in EXIST:  # refused here, or it would only seem not to fit the rows of other papers
                EXIST[name](value, place)


def _check_cell(cell: str, file: StudyFile, label: str) -> None:
    """SpecError for a cell (ROW/TASK) that the study's paper does not have."""
    paper = paper_of(file.paper or "", f"cells of {label}")
    row, _, task = cell.rpartition("/")
    check_known("row", row, paper.rows, f"cells of {label}")
    check_known("task", task, paper.tasks, f"cells of {label}")
