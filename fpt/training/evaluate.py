"""Training with evaluations: early stopping by validation accuracy, then the test set, for every run of a fleet."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fpt.tasks.arrays import Examples

if TYPE_CHECKING:
    from fpt.training.fleet import Fleet, Progress

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
def score(fleet: "Fleet", parameters: Tensor, examples: Examples) -> Score:
    """Evaluate `parameters` (runs, parameters) on examples of every seed (seeds, n, ...), without augmentation."""
    fleet.module.eval()
    count = examples.targets.shape[1]
    chunk = max(1, TOKENS_AT_ONCE // (fleet.task.tokens * len(parameters)))
    totals = torch.zeros(3, len(parameters), dtype=torch.float64, device=fleet.device)
    for start in range(0, count, chunk):
        inputs, targets = (
            examples.inputs[:, start : start + chunk],
            examples.targets[:, start : start + chunk],
        )
        lengths = None if examples.lengths is None else examples.lengths[:, start : start + chunk]
        logits = fleet.logits(parameters, fleet.encode(inputs), lengths)
        spread = targets[:, None].expand(logits.shape[:-1])
        right = logits.argmax(-1) == spread
        losses = cross_entropy(logits.flatten(0, 3), spread.flatten(), reduction="none").view(spread.shape)
        for row, values in enumerate((losses.mean(3), right.double().mean(3), right.all(3))):
            totals[row] += values.double().sum(2).flatten()
    loss, accuracy, exact = (totals / count).unbind()
    # The argmax of NaN is a class like any other: what is not finite has no accuracy.
    finite = loss.isfinite()
    return Score(loss, accuracy.where(finite, torch.nan), exact.where(finite, torch.nan))


class Best:
    """Each run's parameters at its best finite validation accuracy; ties keep the earlier step.

    A run that was never finite at an evaluation keeps step 0 and has no accuracy (NaN).
    """

    def __init__(self, fleet: "Fleet") -> None:
        runs = len(fleet.parameters)
        self.parameters = fleet.parameters.clone()
        self.step = torch.zeros(runs, dtype=torch.int64, device=fleet.device)
        self.validation = torch.full((runs,), -1.0, dtype=torch.float64, device=fleet.device)
        self.train = torch.zeros(runs, dtype=torch.float64, device=fleet.device)

    def update(self, step: int, parameters: Tensor, validation: Tensor, train: Tensor) -> None:
        better = validation > self.validation
        self.parameters[better] = parameters[better]
        self.step[better] = step
        self.validation[better] = validation[better]
        self.train[better] = train[better]


def trained(fleet: "Fleet", test_examples: int | None, progress: "Progress") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Train the fleet to its end; tables of runs and curves (columns as in the results folder)."""
    from fpt.training.fleet import dropout_seed, stack

    recipe = fleet.recipe
    held = [split.validation_sample(recipe.evaluation_examples) for split in fleet.splits]
    validation, test = stack(held), stack([split.test_sample(test_examples) for split in fleet.splits])
    seen = stack([split.train_sample(len(part)) for split, part in zip(fleet.splits, held, strict=True)])
    best, curves, told = Best(fleet), [], time.monotonic()
    stops = set(recipe.evaluation_steps())
    cuda = [fleet.device] if fleet.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(dropout_seed(fleet))
        for step in range(1, recipe.steps + 1):
            fleet.step(step)
            if step in stops:
                on_validation, on_train = (score(fleet, fleet.parameters, part) for part in (validation, seen))
                fleet.mark_diverged(step, on_validation.loss.isfinite())
                best.update(step, fleet.parameters, on_validation.accuracy, on_train.accuracy)
                curves.append(curve_rows(fleet, step, on_train, on_validation))
            if step in stops or time.monotonic() - told > 1:
                progress(step, recipe.steps)
                told = time.monotonic()
    at_best, at_last = score(fleet, best.parameters, test), score(fleet, fleet.parameters, test)
    runs = run_rows(fleet, best, at_best, at_last, on_train.accuracy)
    never = runs["best_step"] == 0
    runs.loc[never, ["validation_accuracy", "train_accuracy", "test_accuracy", "test_accuracy_exact"]] = float("nan")
    return runs, pd.concat(curves)


def identity(fleet: "Fleet") -> dict[str, list[float] | list[int]]:
    """Columns that name the runs, in the order of the parameter rows."""
    rates = [rate for _ in fleet.seeds for rate in fleet.rates]
    return {"learning_rate": rates, "seed": [seed for seed in fleet.seeds for _ in fleet.rates]}


def curve_rows(fleet: "Fleet", step: int, train: Score, validation: Score) -> pd.DataFrame:
    columns = {"train_loss": train.loss, "train_accuracy": train.accuracy}
    columns |= {"validation_loss": validation.loss, "validation_accuracy": validation.accuracy}
    return pd.DataFrame(identity(fleet) | {"step": step} | {name: value.cpu() for name, value in columns.items()})


def run_rows(fleet: "Fleet", best: Best, at_best: Score, at_last: Score, train_last: Tensor) -> pd.DataFrame:
    columns = {
        "best_step": best.step,
        "validation_accuracy": best.validation,
        "train_accuracy": best.train,
        "test_accuracy": at_best.accuracy,
        "test_accuracy_exact": at_best.exact,
        "test_accuracy_last": at_last.accuracy,
        "train_accuracy_last": train_last,
    }
    table = pd.DataFrame(identity(fleet) | {name: value.cpu().numpy() for name, value in columns.items()})
    diverged = pd.Series(fleet.diverged_at.cpu().numpy(), dtype="Int64")
    table["diverged_at"] = diverged.mask(diverged == 0)
    return table
