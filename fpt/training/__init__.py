"""How it learns: the recipe, and fleets of runs that differ only in learning rate and seed.

Importing it needs no torch.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt.training.recipe import Recipe

if TYPE_CHECKING:
    from fpt.models.template import Template
    from fpt.training.loop import train_fleet

__all__ = ["Recipe", "check_recipe", "check_room", "train_fleet"]


def check_recipe(template: "Template", recipe: Recipe, asked: Sequence[str] = ()) -> None:
    """Refuse (SpecError) a probe, and what is `asked` for besides accuracies, of a task or a model that has none."""
    from fpt.training import features, measures

    if recipe.solver == "logistic" or recipe.probe is not None:
        features.check_probe(template.task)
    measures.check_measures(template, asked)


def check_room(model: "Template", recipe: Recipe, runs: int, folder: Path | None, kept: int = 0) -> None:
    """Refuse (FptError) a model of which not even one run fits in the memory that is free now, and a disk on which
    checkpoints of `runs` runs, and all weights of `kept` runs, do not fit; without a folder there are none."""
    from fpt.training import checkpoint, memory
    from fpt.training.loop import find_device

    memory.split(model, recipe, [1.0], [0], find_device())
    if folder:
        checkpoint.check_disk(model, runs, folder, kept)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name != "train_fleet":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fpt.training import loop

    return loop.train_fleet
