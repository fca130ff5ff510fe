"""Backbones as models of a task, for `fpt models`: sizes, what is trained, and where pretrained weights come from; and
what one arm trains of one backbone, and what a step of it takes."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fpt import models, tasks
from fpt.bench import sweep_cost
from fpt.cli.doctor import ALTERED, MISSING, NONE, on_hub, weights
from fpt.cli.listed import Row
from fpt.errors import SpecError
from fpt.models.catalogue import Backbone
from fpt.sweeps.spec import resolve

if TYPE_CHECKING:
    from fpt.tasks.task import Task

COLUMNS = ("backbone", "layers", "width", "parameters", "trains frozen", "trains unfrozen", "weights", "here")
OF_ARM = ("group", "trains", "stays frozen")


def rows(task: str, backbone: str | None = None) -> Iterator[Row]:
    """COLUMNS of one backbone, or of each that can read the task: the parameters of its model of the task, and those
    that the policies `fpt` and `all` train.

    Raises SpecError for names that do not exist or do not fit together, and DataError where the task's data cannot be
    had.
    """
    loaded = tasks.load(task)
    for name in [backbone] if backbone else models.BACKBONES:
        try:
            yield _row(loaded, models.backbone(name))
        except SpecError:
            if backbone:
                raise


def _row(task: "Task", backbone: Backbone) -> Row:
    import torch

    with torch.device("meta"):  # counted without being allocated
        template = models.build(task, backbone, "random", "fpt")
    counts = template.report()[["trainable", "frozen"]]
    unfrozen = counts[counts.index.isin(models.trainable_groups("all", backbone, own_table=task.own_table))]
    sizes = [int(each.to_numpy().sum()) for each in (counts, counts["trainable"], unfrozen)]
    found, _ = weights(backbone)
    here = {MISSING: "no", NONE: "", ALTERED: ALTERED}.get(found, "yes")
    return backbone.name, template.layers, template.width, *sizes, source(backbone), here


def source(entry: Backbone) -> str:
    """Every place that the pretrained weights of a backbone come from, in the order in which they are looked for."""
    if not entry.pretrained:
        return NONE
    places = []
    if package := (entry.package or "").partition(":")[0]:
        places.append(f"package {package} (GGUF)" if entry.gguf else f"package {package}")
    if entry.hub:
        places.append(f"hub {on_hub(entry)}")
    return "; ".join(places)


def of_arm(fields: Mapping[str, Any]) -> tuple[list[Row], list[str]]:
    """What an arm trains of one backbone, for `fpt models --arm`: the parameters of each group that train and that do
    not, and sentences about the memory and the FLOP of a step. `fields` are those of a sweep.

    Raises SpecError for what does not fit together, and DataError where the task's data cannot be had.
    """
    spec = resolve({**fields, "learning_rates": [1e-3], "seeds": [0]}, "fpt models")  # which change no cost
    cost = sweep_cost(spec)
    groups = [group for group in (*models.GROUPS, models.ADAPTER) if group in cost.trainable or group in cost.frozen]
    counts: list[Row] = [(group, cost.trainable.get(group, 0), cost.frozen.get(group, 0)) for group in groups]
    counts.append(("all", sum(cost.trainable.values()), sum(cost.frozen.values())))
    shared = f"{size(cost.seed_bytes)} for each seed, {size(cost.once_bytes)} once"
    lines = [
        f"Memory: {size(cost.run_bytes)} for each run; shared by runs: {shared}.",
        f"A step of {spec.batch_size} examples: {cost.flop / 1e9:,.3g} GFLOP a run, {cost.forward / 1e9:,.3g} forward "
        f"and {cost.backward / 1e9:,.3g} backward. Counted, not timed.",
    ]
    return counts, lines


def size(count: int) -> str:
    """Bytes in MiB, or in GiB where they are many."""
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"
