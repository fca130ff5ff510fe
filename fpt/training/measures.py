"""What a sweep can be asked for beside its accuracies, a `Measure` each: first-layer attention, the loss of every
example that is scored, the class that is predicted for it; and kept weights, which are files and no table."""

from collections.abc import Callable, Collection
from copy import copy
from dataclasses import dataclass, replace
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
from fpt.training.evaluate import Best, by_example, observed
from fpt.training.fleet import Fleet, stack
from fpt.training.recipe import ANSWERS, ATTENTION, KEEP_ADAPTER, WINDOWS, Recipe, weights_file

ATTENTION_EXAMPLES = 500


def run_weights(
    fleet: Fleet, row: int, parameters: Tensor, start: dict[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """{parameter name: float32 tensor} of one run: its trained values in `parameters` (runs, numbers), else those of
    its seed's `start`, which are drawn anew where they are not given."""
    values = start or fleet.template.initialise(fleet.runs[row][0])
    return values | fleet.layout.named(fleet.layout.cut(parameters[row]))


def keep_weights(fleet: Fleet, parameters: Tensor, seed: int, folder: Path) -> None:
    """Write every weight of the runs of `seed` that are in this fleet as safetensors, one file for each rate."""
    for row, (of_run, rate) in enumerate(fleet.runs):
        if of_run != seed:
            continue
        weights = {name: tensor.cpu().contiguous() for name, tensor in run_weights(fleet, row, parameters).items()}
        with replaced(weights_file(folder, rate)) as partial:
            save_file(weights, partial)


def scored(split: Split, recipe: Recipe) -> dict[str, Examples]:
    """The examples of a seed on which its runs are scored at the end, by part."""
    return {
        "validation": split.validation_sample(recipe.evaluation_examples),
        "test": split.test_sample(recipe.test_examples),
    }


def windows(fleet: Fleet, best: Best) -> pd.DataFrame:
    """Mean loss in nats a prediction, of every example, with the last parameters: on text, of a window in nats a byte.

    A row for each run x part (validation, test) x window, numbered in the order of the part; nan for a run that
    diverged.
    """
    frames, of_seeds = [], [scored(split, fleet.recipe) for split in fleet.splits]
    for part in of_seeds[0]:
        losses, _ = by_example(fleet, fleet.parameters, stack([parts[part] for parts in of_seeds]))
        losses = losses.masked_fill(~fleet.alive[:, None], torch.nan)
        for (seed, rate), values in zip(fleet.runs, losses.cpu().numpy(), strict=True):
            run = {"learning_rate": rate, "seed": seed, "part": part}
            frames.append(pd.DataFrame(run | {"window": range(len(values)), "loss": values}))
    return pd.concat(frames, ignore_index=True)


def answers(fleet: Fleet, best: Best) -> pd.DataFrame:
    """The class that each run predicts for every example, with the parameters that it reports; -1 for a run that has
    none, and where the loss is not finite. Of a task with one prediction an example.

    A row for each run x part (validation, test) x example; `numbered` says which number an example has. Classes are of
    the smallest type that holds them all.
    """
    frames, kind = [], np.min_scalar_type(-fleet.task.classes)
    of_seeds = [scored(split, fleet.recipe) for split in fleet.splits]
    numbers = [scored(numbered(split), fleet.recipe) for split in fleet.splits]
    for part in of_seeds[0]:
        examples = stack([parts[part] for parts in of_seeds])
        losses, classes = by_example(fleet, best.parameters, examples)
        known = losses.isfinite() & (best.step > 0)[:, None]
        predicted = classes[..., 0].where(known, -1).cpu().numpy().astype(kind)
        targets = examples.targets[..., 0].cpu().numpy().astype(kind)
        for (seed, rate), of_run in zip(fleet.runs, predicted, strict=True):
            place = fleet.seeds.index(seed)
            columns = {"learning_rate": rate, "seed": seed, "part": part}
            columns |= {"example": numbers[place][part].inputs.cpu().numpy(), "target": targets[place]}
            frames.append(pd.DataFrame(columns | {"predicted": of_run}))
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


def attention(fleet: Fleet, best: Best) -> pd.DataFrame:
    """First-layer attention of every run, averaged over heads and test examples, before training and with the
    parameters that it reports.

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
            after = first_layer(fleet, run_weights(fleet, row, best.parameters, start), examples)
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
    return torch.cat([output[1].mean(1) for _, output in observed(fleet, on_device, examples, 50, layer)])


def attention_lacks(template: Template) -> str:
    """What first-layer attention needs, that this task or model has not."""
    task = template.task
    if task.relevant is None:
        return f"task {task.name!r} does not say which tokens its read-out positions need"
    if template.module.family.first_attention is None or template.layers == 1:
        return (
            "it needs two layers or more, and a family that names its first attention module as gpt2 and bert do; "
            f"backbone {template.backbone.name!r}, of layers: {template.layers}, is of the family "
            f"{template.backbone.family!r}"
        )
    return ""


def answers_lack(template: Template) -> str:
    """What answers need, that this task has not."""
    task = template.task
    several = f"task {task.name!r} has {task.predictions} predictions an example; it is for tasks with one class each"
    return several if task.predictions > 1 else ""


def adapter_lacks(template: Template) -> str:
    """What a kept adapter needs, that this model has not."""
    arm = name_of(template.init, template.policy)
    return "" if template.adapters else f"it keeps what lora-pretrained and its like train; arm {arm} has none"


@dataclass(frozen=True)
class Measure:
    """What a sweep can be asked for: a table of the trained fleet and the parameters that its runs report."""

    table: Callable[[Fleet, Best], pd.DataFrame] | None = None  # none of what fpt.sweeps.run keeps as files
    lacks: Callable[[Template], str] = lambda template: ""  # why this task or model has no such thing
    inside: bool = False  # it looks below the output layer, and so not at features that are computed once


MEASURES = {
    ATTENTION: Measure(attention, attention_lacks, inside=True),
    WINDOWS: Measure(windows),
    ANSWERS: Measure(answers, answers_lack),
    KEEP_ADAPTER: Measure(lacks=adapter_lacks),
}


def asked_for(names: Collection[str]) -> dict[str, Measure]:
    """The measures of these names; a name of fpt.training.recipe.MEASURES that has none here asks for nothing."""
    return {name: measure for name, measure in MEASURES.items() if name in names}


def check_measures(template: Template, asked: Collection[str]) -> None:
    """Refuse (SpecError) what is `asked` for, and this task or model does not have."""
    for name, measure in asked_for(asked).items():
        if lacking := measure.lacks(template):
            raise SpecError(f"measure {name}: {lacking}")
