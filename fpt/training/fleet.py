"""A fleet: runs that differ only in learning rate and seed, trained as one batched computation.

The trainable parameters of the whole fleet are one matrix, a row a run. A step differentiates around a
torch.func.vmap (outer over seeds, inner over rates) of functional_call, so library models work unchanged and the
backward pass needs no batching rules. With dropout 0 a run in a fleet equals the run alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn.functional import cross_entropy

from fpt.errors import SpecError
from fpt.models.transfer import Template
from fpt.seeds import generator, stream
from fpt.tasks.arrays import Examples, Split, Task
from fpt.training import evaluate, memory, precision
from fpt.training.recipe import Recipe

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class FleetResult:
    """Tables of a fleet: `runs`, a row a run, and `curves`, a row an evaluation; accuracies are fractions."""

    runs: pd.DataFrame
    curves: pd.DataFrame
    compute_type: str
    threads: int
    device: str
    parts: list[tuple[int, int]]  # (rates, seeds) of each fleet that was trained: more than one where memory was short


def stack(examples: Sequence[Examples]) -> Examples:
    """Examples of several seeds along a new first dimension."""
    lengths = [part.lengths for part in examples if part.lengths is not None]
    return Examples(
        torch.stack([part.inputs for part in examples]),
        torch.stack([part.targets for part in examples]),
        torch.stack(lengths) if lengths else None,
    )


class Fleet:
    """State and step of a fleet of seeds x rates; row s * rates + r is seed s at rate r."""

    def __init__(
        self,
        task: Task,
        template: Template,
        recipe: Recipe,
        rates: Sequence[float],
        seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        self.task, self.template, self.recipe, self.device = task, template, recipe, device
        self.rates, self.seeds = list(rates), list(seeds)
        self.compute_type = precision.resolve(recipe.compute_type, device)
        self.module = template.module.to(device)
        self.module.set_dropout(recipe.dropout)
        self.module.set_compute_type(self.compute_type)
        self.splits: list[Split] = [task.split(seed).to(device) for seed in self.seeds]
        self._load_weights()
        runs = len(self.seeds) * len(self.rates)
        self.alive = torch.ones(runs, dtype=torch.bool, device=device)
        self.diverged_at = torch.zeros(runs, dtype=torch.int64, device=device)  # 0: never
        # A tensor a run, so that a diverged run is stopped without asking the device.
        self.learning_rates = torch.tensor(self.rates * len(self.seeds), device=device)
        self.rows = list(self.parameters.unbind())
        groups = [
            {"params": [row], "lr": rate} for row, rate in zip(self.rows, self.learning_rates.unbind(), strict=True)
        ]
        self.optimizer = torch.optim.Adam(groups, fused=True)

    def _load_weights(self) -> None:
        """Trainable tensors become a matrix (runs, parameters); frozen ones are held once, or once a seed."""
        weights = [self.template.initialise(seed) for seed in self.seeds]
        names = self.template.trainable
        self.shapes = [self.template.shapes[name] for name in names]
        flat = torch.stack([torch.cat([values[name].flatten() for name in names]) for values in weights])
        self.parameters = flat.repeat_interleave(len(self.rates), dim=0).to(self.device)
        self.shared: dict[str, Tensor] = {}
        self.per_seed: dict[str, Tensor] = {}
        for name in self.template.shapes.keys() - set(names):
            values = [self._frozen(name, seed_weights[name]) for seed_weights in weights]
            if all(seed_weights[name] is weights[0][name] for seed_weights in weights):
                self.shared[name] = values[0]
            else:
                self.per_seed[name] = torch.stack(values)

    def _frozen(self, name: str, value: Tensor) -> Tensor:
        """Only frozen matrices are held in the compute type: freezing must not be confounded with precision."""
        matrix = value.dim() > 1 and self.template.groups[name] in ("attention", "feed_forward")
        return value.to(self.device, self.compute_type if matrix else torch.float32)

    def logits(self, parameters: Tensor, tokens: Tensor, lengths: Tensor | None) -> Tensor:
        """Of all runs: (seeds, rates, batch, predictions, classes).

        parameters (runs, parameters), tokens (seeds, batch, tokens, ...), lengths (seeds, batch).
        """

        def one(row: Tensor, frozen: dict[str, Tensor], tokens: Tensor, lengths: Tensor | None) -> Tensor:
            pieces = row.split([shape.numel() for shape in self.shapes])
            named = {
                name: piece.view(shape)
                for name, piece, shape in zip(self.template.trainable, pieces, self.shapes, strict=True)
            }
            output: Tensor = functional_call(self.module, {**self.shared, **frozen, **named}, (tokens, lengths))
            return output

        of_rates = vmap(one, in_dims=(0, None, None, None), randomness="different")
        of_seeds = vmap(of_rates, in_dims=(0, 0, 0, None if lengths is None else 0), randomness="different")
        matrix = parameters.view(len(self.seeds), len(self.rates), -1)
        output: Tensor = of_seeds(matrix, self.per_seed, tokens, lengths)
        return output

    def batch(self, step: int) -> Examples:
        """The batch of every seed at `step` (from 0): all rates and all arms of a seed see the same one."""
        return stack([split.batch(step, self.recipe.batch_size) for split in self.splits])

    def encode(self, inputs: Tensor, step: int | None = None) -> Tensor:
        """Integers (seeds, batch, ...) -> tokens; a step means training, whose augmentation the seed and step fix."""
        if step is None:
            tokens = self.task.encode(inputs.flatten(0, 1))
            return tokens.view(*inputs.shape[:2], *tokens.shape[1:])
        streams = [generator(seed, "augment", step) for seed in self.seeds]
        return torch.stack([self.task.encode(part, source) for part, source in zip(inputs, streams, strict=True)])

    def mark_diverged(self, step: int, finite: Tensor) -> None:
        """Record `step` for the runs that are not `finite` (runs,) for the first time; they stop learning."""
        self.diverged_at[self.alive & ~finite] = step
        self.alive &= finite

    def step(self, step: int, batch: Examples | None = None) -> Tensor:
        """Gradient step number `step` (from 1); returns each run's loss (runs,), detached. No host synchronisation."""
        batch = batch or self.batch(step - 1)
        self.module.train()
        leaf = self.parameters.detach().requires_grad_()
        losses = run_losses(self.logits(leaf, self.encode(batch.inputs, step), batch.lengths), batch.targets)
        (gradient,) = torch.autograd.grad(losses.sum(), leaf)
        norm = torch.linalg.vector_norm(gradient, dim=1)
        self.mark_diverged(step, losses.isfinite() & norm.isfinite())
        if self.recipe.clip is not None:
            gradient *= (self.recipe.clip / (norm + 1e-6)).clamp(max=1)[:, None]
        # A diverged run keeps its last finite parameters: no gradient, no learning rate.
        gradient.masked_fill_(~self.alive[:, None], 0)
        self.learning_rates *= self.alive
        for row, part in zip(self.rows, gradient.unbind(), strict=True):
            row.grad = part
        self.optimizer.step()
        return losses.detach()


def run_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of each run (runs,) over its batch and predictions, from float32 logits."""
    rates = logits.shape[1]
    spread = targets[:, None].expand(-1, rates, -1, -1)
    losses = cross_entropy(logits.flatten(0, 3), spread.flatten(), reduction="none")
    return losses.view(len(logits) * rates, -1).mean(1)


def train(
    task: Task,
    template: Template,
    recipe: Recipe,
    learning_rates: Sequence[float],
    seeds: Sequence[int],
    *,
    test_examples: int | None = None,
    progress: Progress | None = None,
    device: torch.device | str | None = None,
) -> FleetResult:
    """Train learning_rates x seeds, evaluate, keep each run's best parameters, test both best and last ones.

    test_examples caps the test set (a fixed stratified sample). progress(step, steps) is called at every evaluation
    and about every second. Fleets that do not fit in memory are split; the split is recorded in `parts`.
    Raises SpecError for an empty or repeated list, and for a batch larger than the training set.
    """
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    check_lists(learning_rates, seeds)
    parts = memory.split(template, recipe, list(learning_rates), list(seeds), place)
    results = []
    number = 0
    while number < len(parts):
        try:
            fleet = partial(Fleet, task, template, recipe, *parts[number], place)  # no name keeps a fleet alive
            results.append(evaluate.trained(fleet(), test_examples, within(progress, number, len(parts))))
            number += 1
        except torch.OutOfMemoryError:  # the prediction was too low: halve, and go on
            parts[number : number + 1] = memory.halve(parts[number])
    return FleetResult(
        runs=in_order([runs for runs, _ in results], ["learning_rate", "seed"]),
        curves=in_order([curves for _, curves in results], ["learning_rate", "seed", "step"]),
        compute_type=str(precision.resolve(recipe.compute_type, place)).removeprefix("torch."),
        threads=torch.get_num_threads(),
        device=place.type,
        parts=[(len(rates), len(some_seeds)) for rates, some_seeds in parts],
    )


def in_order(tables: list[pd.DataFrame], keys: list[str]) -> pd.DataFrame:
    return pd.concat(tables).sort_values(keys, ignore_index=True)


def within(progress: Progress | None, number: int, parts: int) -> Progress:
    """Progress of one part, told as progress of the whole."""
    return lambda step, steps: progress(number * steps + step, parts * steps) if progress else None


def check_lists(learning_rates: Sequence[float], seeds: Sequence[int]) -> None:
    """SpecError for what no fleet can be made of."""
    for name, values in {"learning_rates": learning_rates, "seeds": seeds}.items():
        if not values:
            raise SpecError(f"{name} is empty; give at least one")
        if len(set(values)) != len(values):
            raise SpecError(f"{name} holds a value twice: {list(values)}")
    for rate in learning_rates:
        if not 0 < rate < float("inf"):
            raise SpecError(f"learning rate {rate!r} is not a finite number above 0")


def dropout_seed(fleet: Fleet) -> int:
    """Library dropout draws from torch's global generator: it is seeded from what identifies the fleet."""
    identity: list[Any] = [*fleet.rates, "seeds", *fleet.seeds]
    return stream(fleet.seeds[0], "dropout", *identity)
