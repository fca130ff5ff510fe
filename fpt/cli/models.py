"""Backbones as models of a task, for `fpt models`: sizes, what trains, and where pretrained weights come from."""

from collections.abc import Iterator

from fpt import models, tasks
from fpt.cli.doctor import ALTERED, MISSING, NONE, on_hub, weights
from fpt.models.catalogue import Backbone

COLUMNS = ("backbone", "layers", "width", "parameters", "trains frozen", "trains unfrozen", "weights", "here")


def rows(task: str, backbone: str | None = None) -> Iterator[tuple[str, ...]]:
    """COLUMNS of one backbone, or of each: parameters of its model of the task, and those that `fpt` and `all` train.

    Raises SpecError for names that do not exist, and DataError where the task's data cannot be had.
    """
    import torch

    loaded = tasks.load(task)
    for name in [backbone] if backbone else models.BACKBONES:
        with torch.device("meta"):  # counted, not made
            frozen, unfrozen = (models.build(loaded, name, "random", policy) for policy in ("fpt", "all"))
        used = frozen.report()[["trainable", "frozen"]]
        sizes = (used.to_numpy().sum(), used["trainable"].sum(), unfrozen.report()["trainable"].sum())
        found, _ = weights(name)
        here = {MISSING: "no", NONE: "", ALTERED: ALTERED}.get(found, "yes")
        yield name, str(frozen.layers), *(f"{size:,}" for size in (frozen.width, *sizes)), source(frozen.entry), here


def source(entry: Backbone) -> str:
    """Every place that the pretrained weights of a backbone come from, in the order in which they are looked for."""
    package = (entry.package or "").partition(":")[0]
    places = [f"package {package}" + " (GGUF)" * bool(entry.gguf)] if package else []
    return "; ".join(places + ([f"hub {on_hub(entry)}"] if entry.hub else [])) if entry.pretrained else NONE
