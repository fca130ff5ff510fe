"""Backbones as models of a task, for `fpt models`: sizes, what is trained, and where pretrained weights come from."""

from collections.abc import Iterator

from fpt import models, tasks
from fpt.cli.doctor import ALTERED, MISSING, NONE, on_hub, weights
from fpt.models.catalogue import Backbone

COLUMNS = ("backbone", "layers", "width", "parameters", "trains frozen", "trains unfrozen", "weights", "here")


def rows(task: str, backbone: str | None = None) -> Iterator[tuple[str, ...]]:
    """COLUMNS of one backbone, or of each: the parameters of its model of the task, and those that the policies
    `fpt` and `all` train.

    Raises SpecError for names that do not exist, and DataError where the task's data cannot be had.
    """
    import torch

    loaded = tasks.load(task)
    for name in [backbone] if backbone else models.BACKBONES:
        models.check(name, init="random")  # a model that is named by its folder is tried with real numbers
        with torch.device("meta"):  # counted without being allocated
            template = models.build(loaded, name, "random", "fpt")
        counts = template.report()[["trainable", "frozen"]]
        unfrozen = counts[counts.index.isin(models.trainable_groups("all", name))]
        sizes = (template.width, counts.sum(axis=None), counts["trainable"].sum(), unfrozen.sum(axis=None))
        found, _ = weights(name)
        here = {MISSING: "no", NONE: "", ALTERED: ALTERED}.get(found, "yes")
        yield name, str(template.layers), *(f"{size:,}" for size in sizes), source(template.entry), here


def source(entry: Backbone) -> str:
    """Every place that the pretrained weights of a backbone come from, in the order in which they are looked for."""
    package = (entry.package or "").partition(":")[0]
    places = [f"package {package}" + " (GGUF)" * bool(entry.gguf)] if package else []
    return "; ".join(places + ([f"hub {on_hub(entry)}"] if entry.hub else [])) if entry.pretrained else NONE
