"""The file study.yaml: its shape, and every name in it checked before anything is made of it."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator

from fpt import models, tasks
from fpt.documents import read_model
from fpt.errors import SpecError, check_known, naming
from fpt.files import STUDY_FILE
from fpt.papers import claim, paper_of, papers
from fpt.papers.schema import Paper
from fpt.sweeps.spec import FIELDS, SweepSpec, every_option

Fields = dict[str, Any]
TEXTS = {name for name, field in SweepSpec.model_fields.items() if field.annotation is str}
TEXTS |= {"arm", "keep_as", "pretrained_by"}
OF_A_ROW = {"task", "backbone", "arm", "init", "trainable"}  # fields that say what a row of a table is


def name_or_fields(given: Any) -> Any:
    """Refused here: pydantic would name both types that the value is not."""
    if not isinstance(given, str | dict):
        raise ValueError("must be the name of a task or a backbone, or fields")
    return given


class StudyFile(BaseModel, frozen=True, extra="forbid"):
    """The shape of study.yaml."""

    name: str | None = None
    about: str = ""  # what it is, in half a sentence
    paper: str | None = None  # whose tables are trained as they stand there
    tables: list[str] | None = None  # of the paper; None: all
    defaults: Fields = {}
    tasks: dict[str, Fields] = {}
    sweeps: list[Fields] = []
    # task, model or row of a paper -> the task, the model (with options, as fields) or the fields in its place
    stands_for: dict[str, Annotated[str | Fields, BeforeValidator(name_or_fields)]] = {}
    leaves_out: list[str] = []  # TABLE/ROW/TASK, with * for anything: what the sweeps are not to serve
    asks: list[str] = []  # the claims for which the study is run, written before it runs
    plan: list[str] = []  # the same in words: contrast, direction, budget and pair; every result records them

    def in_place_of(self, name: str, kind: str) -> Fields:
        """The fields that stand for a task, a backbone or a row of a paper; none where it stands for itself."""
        given = self.stands_for.get(name, {})
        return {kind: given} if isinstance(given, str) else given


def study_label(folder: Path) -> str:
    """The study file as its users know it: runs/<study>/study.yaml."""
    return "/".join([*folder.parts[-2:], STUDY_FILE])


def read_study(folder: Path, label: str) -> StudyFile:
    """The document, with every name in it checked. Raises SpecError."""
    file, _ = read_model(StudyFile, folder / STUDY_FILE, label)
    for name in file.asks:
        claim(name, f"asks of {label}")
    _check_verbatim(file, label)
    for task, fields in file.tasks.items():
        if "task" in fields:
            raise SpecError(f"task = {fields['task']!r}: these are fields of task {task} (tasks of {label}, {task})")
    _check_fields(_of_study(file, label) | (_of_paper(paper_of(file.paper, label)) if file.paper else {}))
    _check_stand_ins(file, label)
    _check_left_out(file, label)
    return file


def _of_study(file: StudyFile, label: str) -> dict[str, Fields]:
    """Everything in a study that becomes fields of a sweep, by where it stands."""
    places = {f"defaults of {label}": file.defaults}
    places |= {f"tasks of {label}, {task}": fields for task, fields in file.tasks.items()}
    places |= {f"{label}, sweep {number}": entry for number, entry in enumerate(file.sweeps, 1)}
    stand_ins = {name: given for name, given in file.stands_for.items() if isinstance(given, dict)}
    return places | {f"stands_for of {label}, {name}": given for name, given in stand_ins.items()}


def _of_paper(paper: Paper) -> dict[str, Fields]:
    """The same of a paper."""
    source = paper.source
    places = {f"defaults of {source}": paper.defaults}
    places |= {f"{source}, task {task}": fields for task, fields in paper.tasks.items()}
    places |= {f"{source}, row {name}": {**row.fields, **row.scale} for name, row in paper.rows.items()}
    cells = [(table, *row) for table in paper.tables.values() for row in table.rows.items()]
    return places | {
        f"{source}, {table.id}/{row}/{task}": printed.fields
        for table, row, entry in cells
        for task, printed in entry.printed.items()
    }


def check_papers() -> None:
    """SpecError for a field in any paper that no sweep, task or backbone has, and for a row of an arm that is none:
    studies check the paper that they train, and nobody may train one."""
    for paper in papers().values():
        _check_fields(_of_paper(paper))
        for name, row in paper.rows.items():
            if "arm" in row.fields:
                with naming(f"{paper.source}, row {name}"):
                    models.arm(row.fields["arm"])


def _check_fields(places: Mapping[str, Fields]) -> None:
    """SpecError for a field that no sweep, task or backbone has, and for a name that is no text."""
    known = {*FIELDS, "keep_as", *every_option()}
    for place, fields in places.items():
        for name, value in fields.items():
            check_known("study field", name, known, place)
            _check_text(name, value, place)


def _check_text(name: str, value: Any, place: str) -> None:
    """SpecError where a name, or a list of names, is something else."""
    items = value if isinstance(value, list) else [value]
    if name in TEXTS and not all(item is None or isinstance(item, str) for item in items):
        raise SpecError(f"{name} = {value!r}: must be text ({place})")
    named = isinstance(value, list) and all(isinstance(item, str) for item in items)
    if name == "measures" and value is not None and not named:
        raise SpecError(f"measures = {value!r}: must be a list of names ({place})")


def _check_verbatim(file: StudyFile, label: str) -> None:
    """SpecError for what would change the tables of a paper, which are trained as they stand there."""
    if file.paper is None and file.tables is not None:
        raise SpecError(f"tables are of a paper: name it under paper ({label})")
    if file.paper is None:
        return
    verbatim = f"the tables of {file.paper} are trained as they stand there"
    instead = "list your sweeps under sweeps in the place of paper"
    for place, fields in {
        "defaults": file.defaults,
        **{f"tasks, {name}": of for name, of in file.tasks.items()},
    }.items():
        for name in sorted(OF_A_ROW & fields.keys()):
            raise SpecError(
                f"{name} = {fields[name]!r}: {verbatim}, and each row says its own; leave it out, or {instead} "
                f"({place} of {label})"
            )
    if file.stands_for or file.leaves_out:
        raise SpecError(
            f"paper = {file.paper!r}: {verbatim}, so that nothing stands for its models and tasks, and nothing is left "
            f"out; {instead} ({label})"
        )


def _check_stand_ins(file: StudyFile, label: str) -> None:
    """SpecError for a name that no paper has, and for a stand-in that does not exist."""
    place = f"stands_for of {label}"
    known = papers().values()
    rows = {name: row.fields for paper in known for name, row in paper.rows.items()}
    models_of = {
        fields["backbone"] for fields in (*(paper.defaults for paper in known), *rows.values()) if "backbone" in fields
    }
    tasks_of = {task for paper in known for task in paper.tasks}
    for name, given in file.stands_for.items():
        check_known("task, backbone or row of a paper", name, sorted({*tasks_of, *models_of, *rows}), place)
        fields = {} if isinstance(given, str) else given
        if name in tasks_of:
            if fields:
                raise SpecError(f"{name} = {given!r}: the name of a task stands for a task ({place})")
            tasks.entry(str(given), place)
            continue
        for other in ("task", "arm", "init", "trainable"):
            if other in fields:
                raise SpecError(
                    f"{name}: {other} = {fields[other]!r}: what stands for a row keeps its {other} ({place})"
                )
        if name in models_of:
            backbone = file.in_place_of(name, "backbone").get("backbone")
            if backbone is None:
                raise SpecError(f"{name} = {given!r}: a model stands for a model; name its backbone ({place})")
            models.backbone(backbone, place)
        elif not fields:
            raise SpecError(f"{name} = {given!r}: fields stand for a row, such as {{layers: 3}} ({place})")


def _check_left_out(file: StudyFile, label: str) -> None:
    """SpecError for what is no cell of any table, and so would leave nothing out."""
    cells = [
        f"{table.id}/{row}/{task}"
        for paper in papers().values()
        for table in paper.tables.values()
        for row in table.rows
        for task in (tasks.known() if table.any_task else table.on(row, paper))
    ]
    for pattern in file.leaves_out:
        if not any(fnmatchcase(cell, pattern) for cell in cells):
            raise SpecError(f"leaves_out = {pattern!r}: no table of a paper has such a TABLE/ROW/TASK ({label})")
