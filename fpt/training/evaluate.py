"""Scores of a fleet's runs, and the parameters that each run reports: its best so far, or its last."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import Module

from fpt.tasks.arrays import Examples
from fpt.training.fleet import Fleet, Subset, each_loss

TOKENS_AT_ONCE = 16_384  # tokens x runs in one forward pass without gradients


@dataclass(frozen=True)
class Scores:
    """Of each run (runs,): mean loss in nats, and share of right predictions, NaN where the loss is not finite."""

    loss: Tensor
    accuracy: Tensor


@torch.no_grad()
def score(fleet: Fleet, parameters: Tensor, examples: Examples, subset: Subset | None = None) -> Scores:
    """Evaluate `parameters` (runs, parameters) on examples of every seed (seeds, n, ...), without augmentation.

    With a subset, its runs only, in its order.
    """
    subset = subset or fleet.all_runs
    totals = torch.zeros(2, len(subset.row_numbers), dtype=torch.float64, device=fleet.device)
    for part, logits in passes(fleet, parameters, examples, subset):
        right = logits.argmax(-1) == part.targets[:, None]
        found = (each_loss(logits, part.targets).mean(3), right.double().mean(3))
        totals += torch.stack([values.double().sum(2).flatten() for values in found])
    loss, accuracy = (totals / examples.targets.shape[1]).unbind()
    # The argmax of NaN is a class like any other: what is not finite has no accuracy.
    return Scores(loss, accuracy.where(loss.isfinite(), torch.nan))


@torch.no_grad()
def by_example(fleet: Fleet, parameters: Tensor, examples: Examples) -> tuple[Tensor, Tensor]:
    """Of every example of every seed (seeds, n, ...), as `score` sees them, in their own order: the mean loss in nats
    (runs, n), and the classes that are predicted (runs, n, predictions)."""
    losses, classes = [], []
    for part, logits in passes(fleet, parameters, examples, fleet.all_runs):
        losses.append(each_loss(logits, part.targets).mean(3).flatten(0, 1))
        classes.append(logits.argmax(-1).flatten(0, 1))
    order = order_of(fleet, examples).argsort()
    return torch.cat(losses, dim=1)[:, order], torch.cat(classes, dim=1)[:, order]


def passes(fleet: Fleet, parameters: Tensor, examples: Examples, subset: Subset) -> Iterator[tuple[Examples, Tensor]]:
    """The examples of the subset's seeds, as many at a time as a forward pass takes, and their logits. Sequences that
    differ in length pass in `order_of`, cut to the longest of those that pass together."""
    pieces = fleet.layout.cast(fleet.of(subset, parameters))
    if subset is not fleet.all_runs:
        examples = examples[torch.tensor(subset.seed_numbers, device=fleet.device)]
    if fleet.task.by_length:
        examples = examples[:, order_of(fleet, examples)]
    count = examples.targets.shape[1]
    chunk = even(count, max(1, TOKENS_AT_ONCE // (fleet.task.tokens * len(subset.row_numbers))))
    noise = fleet.noise(subset, count, "evaluation")  # all at once: in parts it would depend on their size
    for start in range(0, count, chunk):
        part = examples[:, start : start + chunk]
        part = part.cut() if fleet.task.by_length else part
        drawn = None if noise is None else noise[:, start : start + chunk]
        yield part, fleet.logits(pieces, fleet.encode(part.inputs), part.lengths, subset, noise=drawn)


def order_of(fleet: Fleet, examples: Examples) -> Tensor:
    """In which order examples (seeds, n, ...) pass: as they stand, or by length, of one seed."""
    if fleet.task.by_length and examples.lengths is not None:
        return examples.lengths[0].argsort(stable=True)
    return torch.arange(examples.targets.shape[1], device=examples.targets.device)


def even(count: int, most: int) -> int:
    """The size of parts of at most `most`: one that divides `count` if there is a large one, since a compiled fleet
    compiles every size of a part anew."""
    return next((size for size in range(most, most // 2, -1) if count % size == 0), most)


@torch.no_grad()
def observed(
    fleet: Fleet, weights: dict[str, Tensor], examples: Examples, size: int, layer: Module
) -> Iterator[tuple[Any, Any]]:
    """The inputs and the output of a layer in a model with these weights, of `size` examples at a time."""
    seen: list[tuple[Any, Any]] = []
    handle = layer.register_forward_hook(lambda _, inputs, output: seen.append((inputs, output)))
    fleet.module.drop_with([])
    try:
        for start in range(0, len(examples), size):
            part = examples[start : start + size].to(fleet.device)
            part = part.cut() if fleet.task.by_length else part
            functional_call(fleet.module, weights, (fleet.task.encode(part.inputs), part.lengths))
            yield seen.pop()
    finally:
        handle.remove()


class Best:
    """The parameters that each run reports, their step, and their validation accuracy: those at its best finite
    accuracy, where ties keep the earlier step, or, of a recipe that reports the last, those of its last finite step.

    A run that was never finite at an evaluation keeps step 0 and has no accuracy (NaN).
    """

    def __init__(self, fleet: Fleet) -> None:
        runs = len(fleet.parameters)
        self.parameters = fleet.parameters.clone()
        self.step = torch.zeros(runs, dtype=torch.int64, device=fleet.device)
        self.validation = torch.full((runs,), -1.0, dtype=torch.float64, device=fleet.device)

    def update(self, step: int, fleet: Fleet, validation: Tensor) -> None:
        """After an evaluation that marked the runs which diverged."""
        at, taken = torch.full_like(self.step, step), validation > self.validation
        if fleet.recipe.report == "last":  # a run that diverged still has the parameters of the step before
            at, taken = at.where(fleet.alive, fleet.diverged_at - 1), validation.isfinite()
        torch.where(taken[:, None], fleet.parameters, self.parameters, out=self.parameters)
        torch.where(taken, at, self.step, out=self.step)
        torch.where(taken, validation, self.validation, out=self.validation)

    def state(self) -> dict[str, Tensor]:
        return {f"best.{name}": tensor for name, tensor in vars(self).items()}
