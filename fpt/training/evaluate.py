"""Scores of a fleet's runs, and each run's best parameters so far (early stopping by validation accuracy)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import Module
from torch.nn.functional import cross_entropy

from fpt.tasks.arrays import Examples

if TYPE_CHECKING:
    from fpt.training.fleet import Fleet, Subset

TOKENS_AT_ONCE = 16_384  # tokens x runs in one forward pass without gradients


@dataclass(frozen=True)
class Score:
    """Of each run (runs,): mean loss in nats, share of right predictions, share of examples with all of them right.

    The shares are NaN where the loss is not finite.
    """

    loss: Tensor
    accuracy: Tensor
    exact: Tensor


@torch.no_grad()
def score(fleet: "Fleet", parameters: Tensor, examples: Examples, subset: "Subset | None" = None) -> Score:
    """Evaluate `parameters` (runs, parameters) on examples of every seed (seeds, n, ...), without augmentation.

    With a subset, its runs only, in its order.
    """
    subset = subset or fleet.all_runs
    pieces = fleet.cut(fleet.of(subset, parameters))
    runs = len(subset.places)
    if subset is not fleet.all_runs:
        examples = examples[torch.tensor(subset.seeds, device=fleet.device)]
    count = examples.targets.shape[1]
    chunk = even(count, max(1, TOKENS_AT_ONCE // (fleet.task.tokens * runs)))
    noise = fleet.noise(subset, "evaluation")
    totals = torch.zeros(3, runs, dtype=torch.float64, device=fleet.device)
    for start in range(0, count, chunk):
        part = examples[:, start : start + chunk]
        drawn = noise(part.inputs.shape[1])
        logits = fleet.logits(pieces, fleet.encode(part.inputs), part.lengths, subset, noise=drawn)
        right = logits.argmax(-1) == part.targets[:, None]
        for row, values in enumerate((each_loss(logits, part.targets).mean(3), right.double().mean(3), right.all(3))):
            totals[row] += values.double().sum(2).flatten()
    loss, accuracy, exact = (totals / count).unbind()
    # The argmax of NaN is a class like any other: what is not finite has no accuracy.
    finite = loss.isfinite()
    return Score(loss, accuracy.where(finite, torch.nan), exact.where(finite, torch.nan))


@torch.no_grad()
def losses(fleet: "Fleet", parameters: Tensor, examples: Examples) -> Tensor:
    """Mean loss in nats of every example (runs, n): of examples of every seed (seeds, n, ...), without augmentation."""
    pieces, runs = fleet.cut(parameters), fleet.all_runs
    count = examples.targets.shape[1]
    chunk = even(count, max(1, TOKENS_AT_ONCE // (fleet.task.tokens * len(runs.places))))
    noise = fleet.noise(runs, "evaluation")
    found = []
    for start in range(0, count, chunk):
        part = examples[:, start : start + chunk]
        drawn = noise(part.inputs.shape[1])
        logits = fleet.logits(pieces, fleet.encode(part.inputs), part.lengths, runs, noise=drawn)
        found.append(each_loss(logits, part.targets).mean(3).flatten(0, 1))
    return torch.cat(found, dim=1)


def each_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy (seeds, rates, n, predictions) of logits (seeds, rates, n, predictions, classes)."""
    spread = targets[:, None].expand(logits.shape[:-1])
    return cross_entropy(logits.flatten(0, 3), spread.flatten(), reduction="none").view(spread.shape)


def even(count: int, most: int) -> int:
    """The size of parts of at most `most`: one that divides `count` if there is a large one, since a compiled fleet
    compiles every size of a part anew."""
    return next((size for size in range(most, most // 2, -1) if count % size == 0), most)


@torch.no_grad()
def observed(
    fleet: "Fleet", weights: dict[str, Tensor], examples: Examples, size: int, layer: Module, see: Callable[..., Tensor]
) -> Tensor:
    """What `see` (layer, inputs, output) finds at a layer in a model with these weights, `size` examples at a time."""
    found: list[Tensor] = []
    handle = layer.register_forward_hook(lambda *call: found.append(see(*call)))
    fleet.module.drop_with([])
    try:
        for start in range(0, len(examples), size):
            part = examples[start : start + size].to(fleet.device)
            functional_call(fleet.module, weights, (fleet.task.encode(part.inputs), part.lengths))
    finally:
        handle.remove()
    return torch.cat(found)


class Best:
    """Each run's parameters at its best finite validation accuracy; ties keep the earlier step.

    A run that was never finite at an evaluation keeps step 0 and has no accuracy (NaN).
    """

    def __init__(self, fleet: "Fleet") -> None:
        runs = len(fleet.parameters)
        self.parameters = fleet.parameters.clone()
        self.step = torch.zeros(runs, dtype=torch.int64, device=fleet.device)
        self.validation = torch.full((runs,), -1.0, dtype=torch.float64, device=fleet.device)

    def update(self, step: int, parameters: Tensor, validation: Tensor) -> None:
        better = validation > self.validation
        torch.where(better[:, None], parameters, self.parameters, out=self.parameters)
        self.step.masked_fill_(better, step)
        torch.where(better, validation, self.validation, out=self.validation)

    def state(self) -> dict[str, Tensor]:
        return {f"best.{name}": tensor for name, tensor in vars(self).items()}
