"""A study: tables of a paper at a stated scale, and further sweeps; expanded, merged and checked before anything runs.

The sweeps follow from the tables: fpt/sweeps/scale.py says how the fields of a cell come about.
"""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from fpt import models
from fpt.errors import SpecError, check_known, unknown
from fpt.papers import paper_of, papers
from fpt.papers.schema import Paper, Table
from fpt.sweeps.fields import canonical
from fpt.sweeps.scale import (
    GRIDLESS,
    alternatives,
    cell_fields,
    effective,
    is_papers,
    layered,
    placed,
    replaced,
    task_as_run,
)  # fmt: skip
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.sweeps.study_file import Fields, StudyFile, read_study, study_label
from fpt.training.recipe import KEEP_WEIGHTS

Scale = Literal["paper", "reduced"]
Place = tuple[str, str, str]  # table, row and task of the study's paper


@dataclass(frozen=True)
class Planned:
    """A row of a table on one task: the sweep that measures it (None: the study has none), and what it stands for."""

    row: str
    task: str
    stands_for: tuple[str, ...]
    spec: SweepSpec | None
    scale: Scale = "reduced"


@dataclass(frozen=True)
class Request:
    """The fields of one sweep that is wanted, where they were written, under which names others start from it, and the
    cell for which it is made."""

    fields: Fields
    source: str
    names: tuple[str, ...] = ()
    cell: Place | None = None

    @cached_property
    def key(self) -> str:
        """Equal for requests that differ in nothing but what is measured."""
        plain = {name: value for name, value in self.fields.items() if name not in ("measures", "pretrained_by")}
        return f"{resolve(plain, self.source).hash} {self.fields.get('pretrained_by')}"


@dataclass(frozen=True)
class Study:
    """A title, the folder that is the study's identity, and its sweeps: distinct, in the order written."""

    name: str
    folder: Path
    sweeps: tuple[SweepSpec, ...]
    file: StudyFile = field(default_factory=StudyFile, repr=False)
    keepers: Mapping[str, str] = field(default_factory=dict, repr=False)  # name of kept weights -> folder of the sweep
    cells: Mapping[Place, SweepSpec] = field(default_factory=dict, repr=False)  # of its own tables

    @property
    def tables(self) -> list[Table]:
        """The tables of its paper that the study is to show."""
        return _tables(self.file, study_label(self.folder))

    def serving(self, only: str | None) -> tuple[SweepSpec, ...]:
        """The sweeps of the table or figure `only`, or those with such a name (`*`: any characters), or all of them if
        None; and those whose weights these start from.

        Raises SpecError for what is neither a table that the study has nor the name of a sweep.
        """
        if only is None:
            return self.sweeps
        wanted = set(fnmatch.filter([spec.folder_name for spec in self.sweeps], only))
        if not wanted:
            known = {table.id: table for table in self.tables}
            names = (spec.folder_name for spec in self.sweeps)
            check_known("table, or name of sweeps,", only, [*known, *names], study_label(self.folder))
            wanted = {planned.spec.folder_name for planned in self.planned(known[only]) if planned.spec}
        wanted |= {spec.pretrained_by for spec in self.sweeps if spec.folder_name in wanted and spec.pretrained_by}
        return tuple(spec for spec in self.sweeps if spec.folder_name in wanted)

    @cached_property
    def _by_identity(self) -> dict[str, list[SweepSpec]]:
        found: dict[str, list[SweepSpec]] = {}
        for spec in self.sweeps:
            found.setdefault(spec.identity, []).append(spec)
        return found

    def planned(self, table: Table) -> list[Planned]:
        """Every row of any paper's table on the tasks that the study runs. A sweep knows for which cells of the study's
        own tables it was made; for other tables it is found by what a row means.

        Raises SpecError where tasks of the paper that are one task here would be two sweeps of a row.
        """
        return [planned for row in table.rows for planned in self._of_row(table, row)]

    def _of_row(self, table: Table, row: str) -> Iterator[Planned]:
        paper = paper_of(table.paper)
        own = dict.fromkeys(spec.task for spec in self.sweeps)
        found: dict[str, list[tuple[str, SweepSpec | None]]] = {}  # task as run -> the paper's tasks and their sweeps
        for task in own if table.any_task else table.on(row, paper):
            spec = self.cells.get((table.id, row, task)) or self._alike(paper, table, row, task)
            run = spec.task if spec else task_as_run(self.file, paper, table, task)
            found.setdefault(run, []).append((task, spec))
        for run, cells in found.items():
            specs = list({spec.hash: spec for _, spec in cells if spec}.values())
            if len(specs) > 1 and table.paper == self.file.paper:
                raise SpecError(
                    f"{table.id}: row {row!r} would be two sweeps on {run}, {specs[0].title} and {specs[1].title}; "
                    f"leave one out: replace where table, row and task, with null ({study_label(self.folder)})"
                )
            stands_for = tuple(task for task, spec in cells if spec or not specs)
            whole = not table.any_task and all(
                spec and is_papers(spec, paper, table, row, task) for task, spec in cells
            )
            yield Planned(row, run, stands_for, specs[0] if specs else None, "paper" if whole else "reduced")

    def _alike(self, paper: Paper, table: Table, row: str, task: str) -> SweepSpec | None:
        """The study's sweep that trains what a row means here: the very one, else the only one of its identity.

        None where there is none, and where the row does not fit the model or task of the study: eight layers of a model
        that has four.
        """
        label = study_label(self.folder)
        try:
            fields = cell_fields(self.file, paper, table, row, task, label)
            if fields is None:
                return None
            if (wanted := fields.get("pretrained_by")) is not None:
                if wanted not in self.keepers:
                    return None
                fields["pretrained_by"] = self.keepers[wanted]
            spec = resolve({**GRIDLESS, **fields, "measures": []}, label)
        except SpecError:
            return None
        alike = self._by_identity.get(spec.identity, [])
        same = [each for each in alike if each.changed(measures=[]).hash == spec.hash]
        return next(iter(same or (alike if len(alike) == 1 else [])), None)


def load_study(folder: Path | str) -> Study:
    """Read `folder/study.yaml`. Raises SpecError for everything that is not allowed in it."""
    if not isinstance(folder, str | Path) or "\0" in str(folder):
        raise SpecError(f"folder of a study = {folder!r}: must be a path, such as runs/mine")
    folder = Path(folder)
    label = study_label(folder)
    file = read_study(folder, label)
    requests = [*_of_tables(file, label), *_of_sweeps(file, label)]
    if not requests:
        raise SpecError(f"no sweeps: {label} needs a paper with tables, or an entry under sweeps")
    sweeps, keepers = _merged(requests)
    cells = {request.cell: sweeps[request.key] for request in requests if request.cell}
    for task in file.tasks:
        check_known("task of the study", task, {spec.task for spec in sweeps.values()}, f"tasks of {label}")
    _refuse_mixed_number_types(sweeps.values(), label)
    _refuse_new_heads(sweeps.values(), label)
    study = Study(file.name or folder.name, folder, tuple(sweeps.values()), file, keepers=keepers, cells=cells)
    _refuse_mistaken_rows(study)
    _refuse_dead_cells(study, label)
    _refuse_dead_replacements(study, label)
    _refuse_unequal_budgets(study, label)
    return study


# --- what the study wants


def _of_tables(file: StudyFile, label: str) -> Iterator[Request]:
    """A request for every cell of the study's tables that is not left out."""
    if file.paper is None:
        return
    paper = paper_of(file.paper)
    for table, row, task in _chosen_cells(file, paper, label):
        fields = cell_fields(file, paper, table, row, task, label)
        if fields is not None:
            names = (f"{row}/{task}",) if table.keeps(row, task) else ()
            yield Request(fields, f"{label}, {table.id}/{row}/{task}", names, (table.id, row, task))


def _chosen_cells(file: StudyFile, paper: Paper, label: str) -> Iterator[tuple[Table, str, str]]:
    """Table, row and task of every cell of the study's tables, and of those from whose weights they start."""
    chosen = [table.id for table in _tables(file, label)]
    cells = [
        (table, row, task) for table in paper.tables.values() for row in table.rows for task in table.on(row, paper)
    ]
    wanted = {paper.rows[row].fields.get("pretrained_by") for table, row, _ in cells if table.id in chosen}
    for table, row, task in cells:
        if table.id in chosen or (table.keeps(row, task) and f"{row}/{task}" in wanted):
            yield table, row, task


def _of_sweeps(file: StudyFile, label: str) -> Iterator[Request]:
    """A request for every combination of the lists in the entries under `sweeps`."""
    for number, entry in enumerate(file.sweeps, start=1):
        source = f"{label}, sweep {number}"
        keep_as = entry.get("keep_as")
        if keep_as is not None and "pretrained_by" in entry:
            raise SpecError(f"keep_as = {keep_as!r}: a sweep that starts from kept weights keeps none ({source})")
        if keep_as is not None and not re.fullmatch(r"[A-Za-z0-9_-]+", str(keep_as)):
            raise SpecError(f"keep_as = {keep_as!r}: must be a name of letters, digits, - and _ ({source})")
        written = {name: value for name, value in entry.items() if name != "keep_as"}
        for task in alternatives({"task": written.get("task", file.defaults.get("task"))}, source):
            layers = [
                (f"defaults of {label}", file.defaults),
                (f"tasks of {label}", file.tasks.get(task["task"] or "", {})),
                (source, written | ({"task": task["task"]} if task["task"] else {})),
            ]
            own = layered(layers, source)
            for fields in alternatives(own, source):
                yield Request(placed(effective(fields, written), source), source, (str(keep_as),) if keep_as else ())


# --- what becomes of it


def _merged(requests: list[Request]) -> tuple[dict[str, SweepSpec], dict[str, str]]:
    """The sweeps by key, each once with everything that is measured of it; folders of those that keep weights, by
    name."""
    named: dict[str, str] = {}
    for request in requests:
        for name in request.names:
            if named.setdefault(name, request.key) != request.key:
                raise SpecError(f"keep_as = {name!r}: more than one sweep has this name ({request.source})")
    used = {request.fields.get("pretrained_by") for request in requests} - {None}
    measures: dict[str, set[str]] = {}
    for request in requests:
        measures.setdefault(request.key, set()).update(request.fields.get("measures") or ())
    for name in {name for name in named if name in used or "/" not in name}:
        measures[named[name]].add(KEEP_WEIGHTS)
    sweeps: dict[str, SweepSpec] = {}
    keepers: dict[str, str] = {}
    for request in sorted(requests, key=lambda request: request.fields.get("pretrained_by") is not None):
        fields = request.fields | {"measures": sorted(measures[request.key])}
        wanted = fields.get("pretrained_by")
        if wanted is not None and wanted in named:
            fields["pretrained_by"] = keepers[wanted]
        elif wanted is not None and "." not in wanted:  # a folder name has a point
            raise unknown("sweep that keeps its weights (keep_as)", wanted, named, request.source)
        spec = resolve(fields, request.source)
        first = sweeps.setdefault(request.key, spec)
        if first.threshold != spec.threshold:
            raise SpecError(
                f"threshold: {spec.title} stands there twice, with {first.threshold} and {spec.threshold}; a sweep has "
                f"one ({request.source})"
            )
        keepers |= dict.fromkeys(request.names, spec.folder_name)
    order = dict.fromkeys(request.key for request in requests)
    return {key: sweeps[key] for key in order}, keepers


def _refuse_mixed_number_types(sweeps: Iterable[SweepSpec], label: str) -> None:
    """SpecError unless the study names its number type; it may compare two, with the same sweeps in each."""
    by_type: dict[str, set[str]] = {}
    for spec in sweeps:
        by_type.setdefault(spec.compute_type, set()).add(spec.identity)
    if "auto" in by_type:
        raise SpecError(
            "compute_type: a study names its number type, float32 or bfloat16, so that all its arms are trained in it "
            f"on every machine; write one under defaults ({label})"
        )
    if len({frozenset(identities) for identities in by_type.values()}) > 1:
        raise SpecError(
            f"compute_type: {' and '.join(sorted(by_type))} are mixed: arms of different number types cannot be "
            f"compared; name one under defaults, or run every sweep in each of them ({label})"
        )


def _refuse_new_heads(sweeps: Iterable[SweepSpec], label: str) -> None:
    """SpecError where a sweep would go on with the training of another, on the same data, and so with new layers in the
    place of those that are trained: what is kept is the backbone alone."""
    by_folder = {spec.folder_name: spec for spec in sweeps}
    for spec in by_folder.values():
        keeper = by_folder.get(spec.pretrained_by or "")
        if keeper is None or _data_of(keeper) != _data_of(spec):
            continue
        before = {*keeper.trained_groups()} - {models.ADAPTER}  # which is merged into what is kept
        if before <= {*spec.trained_groups()}:
            raise SpecError(
                f"pretrained_by: {spec.title} would go on from {keeper.folder_name}, on the same data, with new input "
                "and output layers: kept weights are those of the backbone alone, of the first seed. A probe followed "
                f"by full training cannot be had so; name a sweep on another task, or leave it out ({label})"
            )


def _refuse_mistaken_rows(study: Study) -> None:
    """SpecError where `replace` makes two rows of a table one sweep, or one row two sweeps on one task."""
    for table in study.tables:
        rows: dict[str, str] = {}
        for planned in study.planned(table):
            if planned.spec is None:
                continue
            other = rows.setdefault(planned.spec.folder_name, planned.row)
            if other != planned.row:
                raise SpecError(
                    f"{table.id}: rows {other!r} and {planned.row!r} mean different things and are one sweep here, "
                    f"{planned.spec.title}; leave one out: replace where table and row, with null "
                    f"({study_label(study.folder)})"
                )


def _refuse_dead_cells(study: Study, label: str) -> None:
    """SpecError where an entry under `cells` changes no sweep."""
    file = study.file
    for name in file.cells:
        paper, (row, _, task) = paper_of(file.paper or ""), name.rpartition("/")
        tables = [table for table, *cell in _chosen_cells(file, paper, label) if cell == [row, task]]
        found = [replaced(file, paper, table, row, task) for table in tables]
        if any(identity is not None for identity, _ in found):
            continue
        left_out = sorted({applied[-1] for _, applied in found if applied})
        why = "no table of the study has this cell"
        if left_out:
            why = f"replace {' and '.join(map(str, left_out))} leaves it out (with: null)"
        raise SpecError(f"cells: {name} changes no sweep, because {why}; remove one of them ({label})")


def _refuse_dead_replacements(study: Study, label: str) -> None:
    """SpecError where a `replace` describes no row of any table on any task that this study could show."""
    file, run = study.file, dict.fromkeys(spec.task for spec in study.sweeps)
    used: set[int] = set()
    for paper in papers().values():
        for table in paper.tables.values():
            if paper.name == file.paper and table not in study.tables:
                continue
            for row in table.rows:
                for task in run if table.any_task else table.on(row, paper):
                    used |= {*replaced(file, paper, table, row, task)[1]}
    if file.paper:
        for cell in _chosen_cells(file, paper_of(file.paper), label):
            used |= {*replaced(file, paper_of(file.paper), *cell)[1]}
    for number, replacement in enumerate(file.replace, 1):
        if number not in used:
            raise SpecError(
                f"replace {number}: no row of a table that is left has what its where says, {replacement.where!r}; "
                f"remove it or correct it ({label})"
            )


def _refuse_unequal_budgets(study: Study, label: str) -> None:
    """SpecError where rows of a table would be compared on one task after different numbers of steps."""
    data: dict[tuple[str, ...], set[int]] = {}
    for spec in study.sweeps:
        data.setdefault(_data_of(spec), set()).add(spec.steps)
    if all(len(steps) == 1 for steps in data.values()):
        return
    for table in [*study.tables, *paper_of("ours").tables.values()]:
        first: dict[tuple[str, ...], SweepSpec] = {}
        for spec in [planned.spec for planned in study.planned(table) if planned.spec]:
            other = first.setdefault(_data_of(spec), spec)
            if other.steps != spec.steps:
                raise SpecError(
                    f"steps: {table.id} compares {other.title} after {other.steps:,} steps with {spec.title} after "
                    f"{spec.steps:,}; give both the same steps, or put them into two studies ({label})"
                )


def _data_of(spec: SweepSpec) -> tuple[str, ...]:
    """The data of a sweep: other options of a task, such as its length, are another task."""
    options = canonical(spec.task_options, spec.option_defaults["task_options"])
    return spec.task, spec.variant, repr(sorted(options.items()))


def _tables(file: StudyFile, label: str) -> list[Table]:
    if file.paper is None:
        return []
    paper = paper_of(file.paper, label)
    for name in file.tables or ():
        check_known(f"table of {paper.name}", name, paper.tables, label)
    return [table for name, table in paper.tables.items() if file.tables is None or name in file.tables]
