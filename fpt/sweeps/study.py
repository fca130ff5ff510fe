"""A study: the sweeps that its file lists, or those of a paper's tables as they stand there; checked before anything
runs.
"""

import fnmatch
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fpt import models
from fpt.errors import SpecError, check_known, unknown
from fpt.papers import paper_of
from fpt.papers.schema import PaperTable
from fpt.sweeps.fields import canonical
from fpt.sweeps.rows import Planned, Served, meant
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.sweeps.study_file import Fields, StudyFile, read_study, study_label
from fpt.sweeps.words import title
from fpt.training.recipe import KEEP_WEIGHTS

MOST_SWEEPS = 10_000  # of a study: a few lists make billions, and each is resolved
LISTS = {"trainable", "measures", "learning_rates", "seeds"}  # fields that hold several values
Wanted = tuple[Fields, str]  # the fields of one sweep, keep_as among them, and where they were written


@dataclass(frozen=True)
class Study:
    """A title, the folder that is the study's identity, and its sweeps: distinct, in the order written."""

    name: str
    folder: Path
    sweeps: tuple[SweepSpec, ...]
    file: StudyFile = field(default_factory=StudyFile, repr=False)

    @cached_property
    def rows(self) -> tuple[Planned, ...]:
        """The rows of any paper's tables that its sweeps serve, on every task on which they do: what is planned, and,
        for what is published, what runs/rows.csv lists."""
        return tuple(Served(self.file, self.sweeps).rows())

    def planned(self, table: PaperTable) -> list[Planned]:
        """Its rows of one table."""
        return [row for row in self.rows if row.table.id == table.id]

    def serving(self, only: str | None) -> tuple[SweepSpec, ...]:
        """The sweeps that serve the table or figure `only`, or those with such a name (`*`: any characters), or all of
        them if None; and those whose weights these start from.

        Raises SpecError for what is neither a table that they serve nor the name of a sweep.
        """
        if only is None:
            return self.sweeps
        wanted = set(fnmatch.filter([spec.folder_name for spec in self.sweeps], only))
        if not wanted:
            tables = dict.fromkeys(row.table.id for row in self.rows)
            names = (spec.folder_name for spec in self.sweeps)
            check_known("table, or name of sweeps,", only, [*tables, *names], study_label(self.folder))
            wanted = {row.sweep for row in self.rows if row.table.id == only}
        wanted |= {spec.pretrained_by for spec in self.sweeps if spec.folder_name in wanted and spec.pretrained_by}
        return tuple(spec for spec in self.sweeps if spec.folder_name in wanted)


def load_study(folder: Path | str) -> Study:
    """Read `folder/study.yaml`. Raises SpecError for everything that is not allowed in it."""
    folder = Path(folder)
    label = study_label(folder)
    file = read_study(folder, label)
    wanted = [*_of_tables(file, label), *_of_sweeps(file, label)]
    if not wanted:
        raise SpecError(f"no sweeps: {label} needs an entry under sweeps, or a paper whose tables are trained")
    sweeps = _made(wanted)
    _refuse_idle_entries(file, sweeps, label)
    _refuse_mixed_number_types(sweeps, label)
    _refuse_new_heads(sweeps, label)
    study = Study(file.name or folder.name, folder, sweeps, file)
    _refuse_unequal_budgets(study, label)
    return study


# --- what the study wants


def _of_tables(file: StudyFile, label: str) -> Iterator[Wanted]:
    """What every cell of the study's tables wants, and of those from whose weights they start."""
    if file.paper is None:
        return
    paper, chosen = paper_of(file.paper), _tables(file, label)
    starts = {paper.rows[row].fields.get("pretrained_by") for table in chosen for row in table.rows}
    for table in paper.tables.values():
        for row, task in [(name, task) for name in table.rows for task in table.on(name, paper)]:
            keep_as = f"{row}/{task}" if table.keeps(row, task) and f"{row}/{task}" in starts else None
            fields = meant(file, paper, table, row, task)
            if fields is None or (table not in chosen and keep_as is None):
                continue
            measures = _measures(file.defaults, file.tasks.get(task, {}), {"measures": table.measures})
            yield fields | {"measures": measures, "keep_as": keep_as}, f"{label}, {table.id}/{row}/{task}"


def _of_sweeps(file: StudyFile, label: str) -> Iterator[Wanted]:
    """What every combination of the lists in the entries under `sweeps` wants. SpecError for more than can be."""
    wanted = 0
    for number, entry in enumerate(file.sweeps, start=1):
        source = f"{label}, sweep {number}"
        for task in _each(entry.get("task", file.defaults.get("task")), "task", source):
            if not task:
                raise SpecError(f"a sweep without a task: name one, in the sweep or under defaults ({source})")
            of_task = file.tasks.get(task, {})
            fields = {**file.defaults, **of_task, **entry, "task": task}
            _check_keeps(fields, source)
            measures = {"measures": _measures(file.defaults, of_task, entry)}
            crossed = {name: _each(value, name, source) for name, value in fields.items() if name not in LISTS}
            wanted += math.prod(map(len, crossed.values()))
            if wanted > MOST_SWEEPS:
                raise SpecError(
                    f"the lists of fields are multiplied out, to {wanted:,} sweeps: at most {MOST_SWEEPS:,} ({source})"
                )
            for values in itertools.product(*crossed.values()):
                yield {**fields, **dict(zip(crossed, values, strict=True)), **measures}, source


def _check_keeps(fields: Fields, source: str) -> None:
    """SpecError for what is no name of kept weights, and for a sweep that would start from such and keep its own."""
    if (keep_as := fields.get("keep_as")) is None:
        return
    if fields.get("pretrained_by") is not None:
        raise SpecError(f"keep_as = {keep_as!r}: a sweep that starts from kept weights keeps none ({source})")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", str(keep_as)):
        raise SpecError(f"keep_as = {keep_as!r}: must be a name of letters, digits, - and _ ({source})")


def _each(value: Any, name: str, source: str) -> list[Any]:
    """The values of a field that holds one value, of which a study may list several."""
    if not isinstance(value, list):
        return [value]
    if not value or None in value:
        raise SpecError(f"{name} = {value!r}: the list, or a value in it, is empty ({source})")
    return value


def _measures(*places: Mapping[str, Sequence[str]]) -> list[str]:
    """What is measured adds up over the places that name it."""
    return sorted({name for place in places for name in place.get("measures") or ()})


# --- what becomes of it


def _made(wanted: Sequence[Wanted]) -> tuple[SweepSpec, ...]:
    """The sweeps in the order written, each once with everything that is measured of it; those that start from the
    weights of others after these are known."""
    keepers: dict[str, str] = {}
    specs: dict[int, SweepSpec] = {}
    for starting in (False, True):
        numbers = [at for at, (fields, _) in enumerate(wanted) if (fields.get("pretrained_by") is not None) == starting]
        specs |= _united({at: _spec(*wanted[at], keepers) for at in numbers}, wanted)
        for at in numbers:
            fields, source = wanted[at]
            name, folder = fields.get("keep_as"), specs[at].folder_name
            if name is not None and keepers.setdefault(name, folder) != folder:
                raise SpecError(f"keep_as = {name!r}: more than one sweep has this name ({source})")
    return tuple({specs[at].hash: specs[at] for at in range(len(wanted))}.values())


def _spec(fields: Fields, source: str, keepers: Mapping[str, str]) -> SweepSpec:
    fields = dict(fields)
    if fields.pop("keep_as", None) is not None:
        fields["measures"] = [*fields["measures"], KEEP_WEIGHTS]
    name = fields.get("pretrained_by")
    if name is not None and name not in keepers and "." not in name:  # a folder name has a point
        raise unknown("sweep that keeps its weights (keep_as)", name, keepers, source)
    return resolve(fields | ({"pretrained_by": keepers.get(name, name)} if name else {}), source)


def _united(specs: Mapping[int, SweepSpec], wanted: Sequence[Wanted]) -> dict[int, SweepSpec]:
    """Sweeps that differ in nothing but what is measured are one, which measures all of it."""
    alike: dict[str, list[int]] = {}
    for at, spec in specs.items():
        alike.setdefault(spec.without("measures"), []).append(at)
    found: dict[int, SweepSpec] = {}
    for numbers in alike.values():
        first = specs[numbers[0]]
        for at in numbers:
            if specs[at].threshold != first.threshold:
                raise SpecError(
                    f"threshold: {title(first)} stands there twice, with {first.threshold} and {specs[at].threshold}; "
                    f"a sweep has one ({wanted[at][1]})"
                )
        measures = tuple(sorted({name for at in numbers for name in specs[at].measures}))
        found |= dict.fromkeys(numbers, first if measures == first.measures else first.changed(measures=measures))
    return found


def _refuse_idle_entries(file: StudyFile, sweeps: Sequence[SweepSpec], label: str) -> None:
    """SpecError for fields of a task, and for a stand-in, that no sweep of the study has."""
    run = {spec.task for spec in sweeps}
    for task in file.tasks:
        check_known("task of the study", task, run, f"tasks of {label}")
    trained = [{**dict(spec), **spec.task_options, **spec.backbone_options} for spec in sweeps]
    for name, given in file.stands_for.items():
        if isinstance(given, str):
            known = run | {spec.backbone for spec in sweeps}
            check_known("task or backbone of the study", given, known, f"stands_for of {label}")
        elif not any(given.items() <= fields.items() for fields in trained):
            raise SpecError(f"{name} = {given!r}: no sweep of the study has these fields (stands_for of {label})")


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
        before = {*keeper.means.groups} - {models.ADAPTER}  # which is merged into what is kept
        if before <= {*spec.means.groups}:
            raise SpecError(
                f"pretrained_by: {title(spec)} would go on from {keeper.folder_name}, on the same data, with new input "
                "and output layers: kept weights are those of the backbone alone, of the first seed. A probe followed "
                f"by full training cannot be had so; name a sweep on another task, or leave it out ({label})"
            )


def _refuse_unequal_budgets(study: Study, label: str) -> None:
    """SpecError where rows of a table would be compared on one task after different numbers of steps."""
    data: dict[tuple[str, ...], set[int]] = {}
    for spec in study.sweeps:
        data.setdefault(_data_of(spec), set()).add(spec.steps)
    if all(len(steps) == 1 for steps in data.values()):  # then no table need be looked at
        return
    first: dict[tuple[str, ...], SweepSpec] = {}
    for row in study.rows:
        spec, other = row.spec, first.setdefault((row.table.id, *_data_of(row.spec)), row.spec)
        if other.steps != spec.steps:
            raise SpecError(
                f"steps: {row.table.id} compares {title(other)} after {other.steps:,} steps with {title(spec)} after "
                f"{spec.steps:,}; give both the same steps, or put them into two studies ({label})"
            )


def _data_of(spec: SweepSpec) -> tuple[str, ...]:
    """The data of a sweep: other options of a task, such as its length, are another task."""
    options = canonical(spec.task_options, spec.option_defaults["task_options"])
    return spec.task, spec.variant, repr(sorted(options.items()))


def _tables(file: StudyFile, label: str) -> list[PaperTable]:
    if file.paper is None:
        return []
    paper = paper_of(file.paper, label)
    for name in file.tables or ():
        check_known(f"table of {paper.name}", name, paper.tables, label)
    return [table for name, table in paper.tables.items() if file.tables is None or name in file.tables]
