"""Training of the output layer alone on features that are computed once (Lu et al. 2021, section 3.9).

Where nothing below the output layer trains, nothing is dropped out and nothing augmented, an example has the same
features at every step. The rest is the same fleet, on another task and with another template.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fpt.models.template import Template
from fpt.tasks.arrays import Examples, Finite
from fpt.tasks.task import FiniteSplit, Task
from fpt.training.compute import FLOAT
from fpt.training.evaluate import TOKENS_AT_ONCE, observed
from fpt.training.fleet import Fleet
from fpt.training.recipe import Recipe


def constant(task: Task, template: Template, recipe: Recipe) -> bool:
    """Whether the features of an example are the same at every step of every learning rate."""
    augmented = getattr(task.encode, "augmented", False)
    return (
        template.trainable_groups == ("output",)
        and recipe.dropout == 0
        and isinstance(task.data, Finite)
        and not augmented
        and template.module.noise is None
    )


def kept_bytes(template: Template, recipe: Recipe) -> int:
    """Bytes of the features that a fleet keeps of each seed: of every example, in float32. 0 where it keeps none."""
    task = template.task
    if not constant(task, template, recipe):
        return 0
    data: Any = task.data
    examples = len(data.train) + (0 if isinstance(data.test, int) else len(data.test))  # a number: a part of `train`
    return int(FLOAT * examples * task.readout * template.width)


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureTask(Task):
    """A task whose inputs are features (n, read-out positions, width), other ones for every seed."""

    of_seeds: dict[int, Finite]

    def split(self, seed: int) -> FiniteSplit:
        return FiniteSplit(self.of_seeds[seed], seed)


class OutputLayer(nn.Module):
    """The output layer of a transfer model by itself: features (batch, read-out positions, width) -> logits."""

    noise = None

    def __init__(self, template: Template) -> None:
        super().__init__()
        self.output_layer = nn.Linear(template.width, template.task.output_width)
        self.classes = template.task.classes

    def forward(self, features: Tensor, lengths: Tensor | None = None) -> Tensor:
        logits: Tensor = self.output_layer(features)
        return logits.reshape(len(logits), -1, self.classes)

    def drop_with(self, masks: Sequence[Tensor], noise: Tensor | None = None) -> None:
        """Nothing is dropped out here."""

    def set_compute_type(self, compute_type: torch.dtype) -> None:
        """The output layer is float32 in every arm."""


def fleet(
    task: Task,
    template: Template,
    recipe: Recipe,
    rates: Sequence[float],
    seeds: Sequence[int],
    device: torch.device,
    compiled: bool = False,
) -> Fleet:
    """The fleet that trains on cached features where `constant` holds, else the ordinary one: equal up to rounding."""
    if not constant(task, template, recipe):
        return Fleet(task, template, recipe, rates, seeds, device, compiled)
    of_seeds = {seed: cached(Fleet(task, template, recipe, [1.0], [seed], device)) for seed in seeds}
    changed = {"encode": lambda features, generator=None: features, "width": template.width, "vocabulary": None}
    features = FeatureTask(**{**vars(task), **changed, "tokens": task.readout}, of_seeds=of_seeds)
    head: Any = copy(template)
    head.task, head.module, head.initialise = features, OutputLayer(template), template.initialise
    head.shapes = {name: template.shapes[name] for name in template.trainable}
    return Fleet(features, head, recipe, rates, seeds, device)


def cached(fleet: Fleet) -> Finite:
    """The data of a fleet of one run, features in the place of inputs."""
    data: Any = fleet.task.data
    # The output layer keeps the module's own values: what it computes is not looked at.
    weights = {**fleet.shared, **{name: value[0] for name, value in fleet.per_seed.items()}}
    size, layer = max(1, TOKENS_AT_ONCE // fleet.task.tokens), fleet.module.output_layer

    def of(examples: Examples) -> Examples:
        features = observed(fleet, weights, examples, size, layer, lambda _, inputs, output: inputs[0])
        return Examples(features, examples.targets.to(fleet.device))

    return Finite.each(data, of)
