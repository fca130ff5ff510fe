"""Which rows of the papers' tables the sweeps of a study serve: a row names a model and a task, and a study may say
what stands for them (`stands_for`). The sweep that trains just this serves the row.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property

from fpt.errors import MisfitError
from fpt.papers import papers
from fpt.papers.schema import Paper, PaperTable
from fpt.sweeps.row_on_task import PAPER_SCALE, REDUCED, RowOnTask
from fpt.sweeps.spec import NOT_TRAINED, SweepSpec, resolve
from fpt.sweeps.study_file import OF_A_ROW, Fields, StudyFile

GRIDLESS = {"learning_rates": [1e-3], "seeds": [0], "measures": []}  # where only what is trained matters
DEFAULT_BACKBONE = SweepSpec.model_fields["backbone"].default
AS_PRINTED = StudyFile()  # a study that changes nothing


@dataclass(frozen=True)
class Planned(RowOnTask):
    """A row on a task with the sweep that serves it."""

    spec: SweepSpec

    @property
    def task(self) -> str:
        return self.spec.task

    @property
    def sweep(self) -> str:
        return self.spec.folder_name


def meant(file: StudyFile, paper: Paper, table: PaperTable, row: str, task: str) -> Fields | None:
    """The fields of the sweep that a row means on a task in a study; None for a model of the literature, which nobody
    trains here.

    What decides, first to last: what the study says by the row's own name; the row and its cell; what stands for its
    model; `tasks` of the study; `defaults` of the study; the paper.
    """
    if not {"arm", "trainable"} & paper.rows[row].fields.keys():
        return None
    named = table.named(row, task, paper)
    run = task if table.any_task else file.in_place_of(task, "task").get("task", task)
    model = file.in_place_of({**paper.defaults, **named}.get("backbone", ""), "backbone")
    return {
        **paper.defaults,
        **({**paper.tasks.get(task, {}), **paper.rows[row].scale} if run == task else {}),
        **_recipe(file.defaults),
        **_recipe(file.tasks.get(run, {})),
        **model,
        **{name: value for name, value in named.items() if name != "backbone" or not model},
        **file.in_place_of(row, "row"),
        "task": run,
    }


def _recipe(fields: Fields) -> Fields:
    """Without what a row says itself, and what is measured."""
    return {name: value for name, value in fields.items() if name not in {*OF_A_ROW, "measures"}}


def _place(paper: Paper, table: PaperTable, row: str, task: str) -> str:
    return f"{paper.source}, {table.id}/{row}/{task}"


@dataclass(frozen=True)
class Served:
    """What the sweeps of a study serve."""

    file: StudyFile
    sweeps: tuple[SweepSpec, ...]
    _identities: dict[str, str] = field(default_factory=dict, repr=False)  # by the fields of a row

    @cached_property
    def _trained(self) -> dict[str, SweepSpec | None]:
        """The sweeps by what is trained; None where several differ in steps or grid alone: none of them is the row."""
        found: dict[str, SweepSpec | None] = {}
        for spec in self.sweeps:
            found[spec.identity] = None if spec.identity in found else spec
        return found

    @cached_property
    def _models(self) -> set[tuple[str, str]]:
        return {(spec.task, spec.backbone) for spec in self.sweeps}

    def rows(self) -> Iterator[Planned]:
        """The rows of every paper's tables, in their order, on every task on which a sweep serves them."""
        for paper in papers().values():
            for table in paper.tables.values():
                for row in table.rows:
                    yield from self._row(paper, table, row)

    def _row(self, paper: Paper, table: PaperTable, row: str) -> Iterator[Planned]:
        """Where tasks of the paper would be two sweeps of a row on one task, it is the first that counts."""
        found: dict[str, tuple[SweepSpec, list[str]]] = {}
        for task in dict.fromkeys(spec.task for spec in self.sweeps) if table.any_task else table.on(row, paper):
            if spec := self._of_cell(paper, table, row, task):
                first, tasks = found.setdefault(spec.task, (spec, []))
                tasks += [task] if first is spec else []
        for spec, tasks in found.values():
            is_papers = all(self._is_papers(spec, paper, table, row, each) for each in tasks)
            yield Planned(table, row, tuple(tasks), PAPER_SCALE if is_papers else REDUCED, spec)

    def _of_cell(self, paper: Paper, table: PaperTable, row: str, task: str) -> SweepSpec | None:
        """None where there is none, and where the study leaves the cell out."""
        fields = meant(self.file, paper, table, row, task)
        if fields is None or (fields["task"], fields.get("backbone", DEFAULT_BACKBONE)) not in self._models:
            return None
        if any(fnmatchcase(f"{table.id}/{row}/{task}", pattern) for pattern in self.file.leaves_out):
            return None
        if name := fields.get("pretrained_by"):
            keeper = self._keeper(paper, name)
            if keeper is None:
                return None
            fields["pretrained_by"] = keeper.folder_name
        return self._trained.get(self._identity(fields, _place(paper, table, row, task)))

    def _keeper(self, paper: Paper, name: str) -> SweepSpec | None:
        """The sweep whose weights a paper calls ROW/TASK."""
        row, _, task = name.rpartition("/")
        table = next((table for table in paper.tables.values() if row in table.rows and table.keeps(row, task)), None)
        return self._of_cell(paper, table, row, task) if table else None

    def _is_papers(self, spec: SweepSpec, paper: Paper, table: PaperTable, row: str, task: str) -> bool:
        """Whether this is the paper's own model on its own task with at least its budget."""
        if not paper.own_scale or table.any_task:
            return False
        fields = meant(AS_PRINTED, paper, table, row, task) or {}
        if spec.steps < int(fields.pop("steps", 0)):
            return False
        fields.pop("pretrained_by", None)
        trained = spec.without(*NOT_TRAINED, "pretrained_by")
        return self._identity(fields, _place(paper, table, row, task)) == trained

    def _identity(self, fields: Fields, source: str) -> str:
        """What is trained by these fields; empty where they do not fit the model or the task: eight layers of a model
        that has four. Raises SpecError for what fits none."""
        key = json.dumps(fields, sort_keys=True)
        if key not in self._identities:
            try:
                self._identities[key] = resolve({**fields, **GRIDLESS}, source).identity
            except MisfitError:
                self._identities[key] = ""
        return self._identities[key]
