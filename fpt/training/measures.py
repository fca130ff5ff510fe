"""What else a fleet can be asked after its training: kept weights, first-layer attention, the loss of every example
that it is evaluated on, and the class that is predicted for it."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors.torch import save_file
from torch import Tensor

from fpt.errors import SpecError
from fpt.files import replaced
from fpt.models.arms import name_of
from fpt.models.template import Template
from fpt.tasks.arrays import Examples
from fpt.tasks.task import FiniteSplit, Split
from fpt.training.evaluate import Best, answered, losses, observed
from fpt.training.fleet import Fleet, stack
from fpt.training.recipe import ANSWERS, ATTENTION, KEEP_ADAPTER, weights_file

ATTENTION_EXAMPLES = 500


def check(template: Template, asked: Sequence[str]) -> None:
    """Refuse (SpecError) what is `asked` for, of fpt.training.recipe.MEASURES, that this task or model does not have:
    adapters, first-layer attention that the task says something of, one answer an example."""
    task = template.task
    if KEEP_ADAPTER in asked and template.adapters is None:
        arm = name_of(template.init, template.policy)
        raise SpecError(f"measure adapter: it keeps what lora-pretrained and its like train; arm {arm} has none")
    if ATTENTION in asked and task.relevant is None:
        raise SpecError(f"measure attention: task {task.name!r} does not say which tokens its read-out positions need")
    if ATTENTION in asked and (template.module.family.first_attention is None or template.layers == 1):
        raise SpecError(
            "measure attention: it needs two layers or more, and a family that names its first attention module as "
            f"gpt2 and bert do; backbone {template.backbone.name!r}, of layers: {template.layers}, is of the family "
            f"{template.backbone.family!r}"
        )
    if ANSWERS in asked and task.predictions > 1:
        raise SpecError(
            f"measure answers: task {task.name!r} has {task.predictions} predictions an example; it is for tasks with "
            "one class an example"
        )


def run_weights(
    fleet: Fleet, row: int, parameters: Tensor, start: dict[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """{parameter name: float32 tensor} of one run: its trained values in `parameters` (runs, numbers), else those of
    its seed's `start`, which are drawn anew where they are not given."""
    values = start or fleet.template.initialise(fleet.runs[row][0])
    pieces = parameters[row].split([shape.numel() for shape in fleet.shapes])
    named = zip(fleet.names, pieces, fleet.shapes, strict=True)
    return values | {name: piece.view(shape) for name, piece, shape in named}


def keep_weights(fleet: Fleet, parameters: Tensor, seed: int, folder: Path) -> None:
    """Write every weight of the runs of `seed` that are in this fleet as safetensors, one file for each rate."""
    for row, (of_run, rate) in enumerate(fleet.runs):
        if of_run != seed:
            continue
        weights = {name: tensor.cpu().contiguous() for name, tensor in run_weights(fleet, row, parameters).items()}
        with replaced(weights_file(folder, rate)) as partial:
            save_file(weights, partial)


def windows(fleet: Fleet, examples: dict[str, list[Examples]]) -> pd.DataFrame:
    """Mean loss in nats a prediction, of every example, with the last parameters: on text, of a window in nats a byte.

    `examples`: for each part, validation and test, those of every seed. A row for each run x part x window, numbered in
    the order of the part; nan for a run that diverged.
    """
    frames = []
    for part, of_seeds in examples.items():
        found = losses(fleet, fleet.parameters, stack(of_seeds)).masked_fill(~fleet.alive[:, None], torch.nan)
        for (seed, rate), values in zip(fleet.runs, found.cpu().numpy(), strict=True):
            run = {"learning_rate": rate, "seed": seed, "part": part}
            frames.append(pd.DataFrame(run | {"window": range(len(values)), "loss": values}))
    return pd.concat(frames, ignore_index=True)


def answers(fleet: Fleet, reported: Best, samples: Mapping[str, Callable[[Split], Examples]]) -> pd.DataFrame:
    """The class that each run predicts for every example, with the parameters that it reports; -1 for a run that has
    none, and where the loss is not finite.

    `samples`: for each part, validation and test, what draws it from a seed's split. A row for each run x part x
    example; `numbered` says which number an example has. Classes are of the smallest type that holds them all.
    """
    frames, kind = [], np.min_scalar_type(-fleet.task.classes)
    for part, draw in samples.items():
        examples = stack([draw(split) for split in fleet.splits])
        numbers = np.stack([draw(numbered(split)).inputs.cpu().numpy() for split in fleet.splits])
        targets = examples.targets[..., 0].cpu().numpy().astype(kind)
        found = answered(fleet, reported.parameters, examples).masked_fill(reported.step[:, None] == 0, -1)
        for (seed, rate), classes in zip(fleet.runs, found.cpu().numpy().astype(kind), strict=True):
            place = fleet.seeds.index(seed)
            of_run = {"learning_rate": rate, "seed": seed, "part": part, "example": numbers[place]}
            frames.append(pd.DataFrame(of_run | {"target": targets[place], "predicted": classes}))
    return pd.concat(frames, ignore_index=True)


def numbered(split: Split) -> Split:
    """A seed's split with the numbers of the examples in the place of their inputs: in the official test set, or in the
    collection from which the seed draws them, so that arms and seeds can be joined by them; of a stream in the seed's
    own examples."""

    def number(examples: Examples) -> Examples:
        targets = examples.targets
        return replace(examples, inputs=torch.arange(len(targets), dtype=torch.int32, device=targets.device))

    if isinstance(split, FiniteSplit):
        return FiniteSplit(split.data.each(number), split.seed)
    found = copy(split)
    found.validation, found.test = number(split.validation), number(split.test)
    return found


def attention(fleet: Fleet, parameters: Tensor) -> pd.DataFrame:
    """First-layer attention of every run, averaged over heads and test examples, before and after training.

    A row for each run x trained x query (read-out position) x key: `weight` (a query's add up to 1), `relevant` (the
    part of it in examples where the task says that the query needs this key), `chance` (the same if the query spread
    its attention evenly over the keys that it may see). Lu et al. 2021, section 3.5 and figures 3 to 5.
    """
    task, frames = fleet.task, []
    assert task.relevant is not None
    for index, seed in enumerate(fleet.seeds):
        examples, start = fleet.splits[index].test_sample(ATTENTION_EXAMPLES), fleet.template.initialise(seed)
        needed, untrained = task.relevant(examples), first_layer(fleet, start, examples)
        visible = (untrained[:, -task.readout :] > 0).double().mean(0)  # trained attention may round to 0
        for number, rate in enumerate(fleet.rates):
            row = index * len(fleet.rates) + number
            after = first_layer(fleet, run_weights(fleet, row, parameters, start), examples)
            for trained, maps in ((False, untrained), (True, after)):
                run = {"learning_rate": rate, "seed": seed, "trained": trained}
                frames.append(pd.DataFrame(run | _scores(maps[:, -task.readout :], needed, visible)))
    return pd.concat(frames, ignore_index=True)


def _scores(maps: Tensor, needed: Tensor, visible: Tensor) -> dict[str, Any]:
    """Columns, a row for each query and key, means over examples of (n, queries, keys); queries are the last tokens."""
    chance = needed.double() / visible.sum(1, keepdim=True)
    columns = {"weight": maps.mean(0), "relevant": (maps * needed).mean(0), "chance": chance.mean(0)}
    queries, keys = torch.meshgrid(*map(torch.arange, maps.shape[1:]), indexing="ij")
    places = {"query": queries.flatten() + maps.shape[2] - maps.shape[1], "key": keys.flatten()}
    values = places | {name: column.float().flatten() for name, column in columns.items()}
    return {name: value.cpu().numpy() for name, value in values.items()}


def first_layer(fleet: Fleet, weights: dict[str, Tensor], examples: Examples) -> Tensor:
    """(n, tokens, tokens) attention of the first layer, averaged over its heads."""
    layer = fleet.module.backbone.get_submodule(fleet.module.family.first_attention)
    on_device = {name: tensor.to(fleet.device) for name, tensor in weights.items()}
    return observed(fleet, on_device, examples, 50, layer, lambda _, inputs, output: output[1].mean(1))
