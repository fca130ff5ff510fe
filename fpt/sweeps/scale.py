"""A cell of a paper's table at the scale of a study: the fields of its sweep, and whether it is still the paper's own.

What decides, first to last: the row and its printed cell; `cells` of the study; `tasks` of the study; `defaults` of the
study; the paper. `replace` puts other models and tasks in the place of the paper's, or nothing.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fpt import models, tasks
from fpt.errors import SpecError, check_known
from fpt.papers.schema import Paper, Table
from fpt.sweeps.spec import FIELDS, SweepSpec, resolve
from fpt.sweeps.study_file import Fields, StudyFile
from fpt.training.recipe import head_and_more

LISTS = {"trainable", "measures", "learning_rates", "seeds"}
GRIDLESS = {"learning_rates": [1e-3], "seeds": [0]}  # where only what is trained matters


def cell_fields(file: StudyFile, paper: Paper, table: Table, row: str, task: str, label: str) -> Fields | None:
    """The fields of one cell at the study's scale; None where `replace` leaves it out, or where the row is no sweep."""
    source = f"{label}, {table.id}/{row}/{task}"
    identity, _ = replaced(file, paper, table, row, task)
    if identity is None:
        return None
    of_task = paper.tasks.get(task, {}) if identity["task"] == task else {}
    layers = [
        (f"fpt/papers/{paper.name}.yaml", {**paper.defaults, **of_task}),
        (f"defaults of {label}", file.defaults),
        (f"tasks of {label}", file.tasks.get(identity["task"], {})),
        (f"cells of {label}", file.cells.get(f"{row}/{task}", {})),
        (f"row {row}", {**identity, "measures": table.measures}),
    ]
    written = {**file.cells.get(f"{row}/{task}", {}), **identity}
    return placed(effective(layered(layers, source), written), source)


def replaced(file: StudyFile, paper: Paper, table: Table, row: str, task: str) -> tuple[Fields | None, list[int]]:
    """What the row fixes on a task once `replace` is done (None: left out, or no sweep), and which of `replace` did.

    What the row names stays, unless `where` names it too: "the first layer" is never the first two, though a study puts
    two layers of another model in the place of the paper's.
    """
    if "arm" not in paper.rows[row].fields:
        return None, []  # a model of the literature that nobody trains here
    applied, named = [], table.named(row, task, paper)
    identity: Fields = {"task": task, **named}
    base = {**paper.defaults, **file.defaults}
    seen = {**base, **paper.tasks.get(task, {}), **identity, "table": table.id, "row": row}
    for number, replacement in enumerate(file.replace, 1):
        if replacement.applies(seen):
            applied.append(number)
            if replacement.by is None:
                return None, applied
            kept = named.keys() - replacement.where.keys()
            by = {name: value for name, value in replacement.by.items() if name not in kept}
            identity |= by
            seen |= by
    return identity, applied


def layered(layers: Sequence[tuple[str, Mapping[str, Any]]], source: str) -> Fields:
    """All layers (place, fields) in one, the later deciding; what is measured adds up.

    Raises SpecError where one layer names an arm and another its initialisation or groups: no silent mixture.
    """
    named = [
        (name, f"{place}: {name} {layer[name]}")
        for name in ("arm", "init", "trainable")
        for place, layer in layers
        if layer.get(name) is not None
    ]
    if {"arm"} < {name for name, _ in named}:
        listed = "; ".join(text for _, text in named)
        raise SpecError(f"an arm is initialisation and groups, give one or the other: {listed} ({source})")
    measures = [name for _, layer in layers for name in layer.get("measures") or ()]
    fields = {name: value for _, layer in layers for name, value in layer.items()}
    return fields | ({"measures": measures} if measures else {})


def placed(fields: Fields, source: str) -> Fields:
    """Options of task and backbone that are named like fields go where they belong.

    Raises SpecError for a name that nothing has, and for a sweep without a task.
    """
    backbone, task = fields.get("backbone", "tiny-lm"), fields.get("task")
    if not task:
        raise SpecError(f"a sweep without a task: name one, in the sweep or under defaults ({source})")
    homes = {
        "backbone_options": models.backbone(backbone, source).options,
        "task_options": tasks.entry(task, source).options,
    }
    known = [*FIELDS, *(option for options in homes.values() for option in options)]
    found = {name: value for name, value in fields.items() if name in FIELDS}
    for name in [name for name in fields if name not in FIELDS]:
        check_known("study field", name, known, source)
        home = next(home for home, options in homes.items() if name in options)
        if not isinstance(given := found.get(home) or {}, Mapping):
            raise SpecError(f"{home} = {given!r}: must be a mapping ({source})")
        found[home] = {**given, name: fields[name]}
    return found


def effective(fields: Fields, written: Mapping[str, Any]) -> Fields:
    """Without the fields that come from defaults and cannot matter for this arm; `resolve` refuses written ones."""
    try:
        trainable = models.arm(fields["arm"]).trainable if fields.get("arm") else fields.get("trainable") or "fpt"
        options = fields.get("task_options")  # of any type yet
        own_table = tasks.own_table(fields.get("task", ""), options if isinstance(options, Mapping) else {})
        groups = models.trainable_groups(trainable, fields.get("backbone", "tiny-lm"), own_table=own_table)
    except SpecError:
        return fields  # an unknown name, which is refused with its place
    idle = [] if models.ADAPTER in groups else [*models.ADAPTERS]
    idle += [] if head_and_more(groups) else ["head_rate"]
    return {name: value for name, value in fields.items() if name not in idle or name in written}


def alternatives(fields: Fields, source: str) -> Iterator[Fields]:
    """One set of fields for every combination of the values in lists of fields that hold one value."""
    crossed = {name: value for name, value in fields.items() if isinstance(value, list) and name not in LISTS}
    for name, values in crossed.items():
        if not values or None in values:
            raise SpecError(f"{name} = {values!r}: the list, or a value in it, is empty ({source})")
    for chosen in itertools.product(*crossed.values()):
        yield {**fields, **dict(zip(crossed, chosen, strict=True))}


def task_as_run(file: StudyFile, paper: Paper, table: Table, task: str) -> str:
    """What the study runs in the place of a paper's task, whatever the row."""
    seen: Fields = {**paper.defaults, **file.defaults, **paper.tasks.get(task, {}), "task": task, "table": table.id}
    for replacement in file.replace:
        if replacement.applies(seen) and replacement.by and "task" in replacement.by:
            seen |= replacement.by
    return str(seen["task"])


def is_papers(spec: SweepSpec, paper: Paper, table: Table, row: str, task: str) -> bool:
    """Whether this is the paper's own model on its own task with at least its budget."""
    if not paper.own_scale:
        return False
    fields = cell_fields(StudyFile(), paper, table, row, task, paper.name)
    if fields is None or spec.steps < int(fields.get("steps", 0)):
        return False
    plain = {name: value for name, value in fields.items() if name not in ("pretrained_by", "measures")}
    return resolve({**plain, **GRIDLESS}).identity == spec.changed(pretrained_by=None, measures=[]).identity
