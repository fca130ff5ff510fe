"""A fleet: runs that differ only in learning rate and seed, trained as one batched computation.

The trainable parameters of the whole fleet are one matrix, with one row per run. A step differentiates around a
torch.func.vmap (outer over seeds, inner over rates) of functional_call, so library models work unchanged and the
backward pass needs no batching rules. A run in a fleet equals the run alone, dropout included: notebooks/plain_loop.py
is the same experiment without fleets, one run after the other in plain PyTorch, and the place to begin reading.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, product
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn.functional import cross_entropy

from fpt.models.layers import Masks
from fpt.models.template import Template
from fpt.seeds import generator
from fpt.tasks.arrays import Examples
from fpt.tasks.task import Split, Task
from fpt.training import compute
from fpt.training.layout import Layout
from fpt.training.recipe import Recipe

CHANGED = ("parameters", "moments", "adam_steps", "alive", "diverged_at")  # tensors of a fleet, by every step

Tensors = list[Tensor]
Named = dict[str, Tensor]


@dataclass(frozen=True)
class Subset:
    """The runs that a computation is about, as a rectangle: in each row the runs of one seed."""

    rows: Tensor  # (seeds, rates): rows of the parameter matrix
    row_numbers: list[int]  # the same, flat and on the host
    seed_numbers: list[int]  # where the seeds stand in the fleet's list of them
    per_seed: dict[str, Tensor]  # frozen tensors of these seeds


def stack(examples: Sequence[Examples]) -> Examples:
    """Examples of several seeds along a new first dimension, of one shape: batches that are cut to their length are
    those of one seed."""
    lengths = [part.lengths for part in examples if part.lengths is not None]
    return Examples(
        torch.stack([part.inputs for part in examples]),
        torch.stack([part.targets for part in examples]),
        torch.stack(lengths) if lengths else None,
    )


class Fleet:
    """State and step of a fleet of seeds x rates; a row of its matrices is one of `runs`, (seed, rate)."""

    def __init__(
        self,
        task: Task,
        template: Template,
        recipe: Recipe,
        rates: Sequence[float],
        seeds: Sequence[int],
        device: torch.device,
        compiled: bool = False,
    ) -> None:
        self.task, self.template, self.recipe, self.device = task, template, recipe, device
        self.rates, self.seeds, self.compiled = list(rates), list(seeds), compiled
        self.runs = list(product(self.seeds, self.rates))  # in the order of the rows
        self.compute_type = compute.dtype(recipe.compute_type, device)
        self.module = template.module.to(device)
        self.module.set_compute_type(self.compute_type)
        self.splits: list[Split] = [task.split(seed).to(device) for seed in self.seeds]
        self.layout = Layout(template, recipe, self.compute_type)
        self._load_weights()
        runs = len(self.runs)
        self.alive = torch.ones(runs, dtype=torch.bool, device=device)
        self.diverged_at = torch.zeros(runs, dtype=torch.int64, device=device)  # 0: never
        self.all_runs = self.active = self.subset(torch.arange(runs, device=device).view(len(self.seeds), -1))
        self._make_optimizers()
        self.masks = Masks(recipe.dropout, device)
        self._dropped: dict[int, list[torch.Size]] = {}  # by tokens: shapes of what one forward pass drops out
        self._compiled: Callable[..., Tensor] | None = None
        if compiled:
            torch.compiler.reset()  # it keeps few shapes, and those of another fleet would count too
            self._compiled = torch.compile(self._forward, dynamic=False)

    def step(self, step: int) -> Tensor:
        """Gradient step number `step` (from 1) of the active runs: their losses, detached. The host waits
        for the device only where a batch, its augmentation or noise is drawn on the host."""
        batch, subset = self.batch(step - 1), self.active
        pieces = [piece.requires_grad_() for piece in self.layout.cast(self.of(subset, self.parameters).detach())]
        tokens = self.encode(batch.inputs, step)
        masks = self._masks(tokens, batch.lengths, step)
        noise = self.noise(subset, batch.inputs.shape[1], step)
        logits = self.logits(pieces, tokens, batch.lengths, subset, masks, noise)
        losses = each_loss(logits, batch.targets).flatten(2).mean(2).flatten()
        # Longformer's global projections take no part: theirs are zero.
        found = torch.autograd.grad(losses.sum(), pieces, materialize_grads=True)
        gradients = [gradient.to(self.parameters.dtype) for gradient in found]
        norms = torch.stack([torch.linalg.vector_norm(gradient, dim=1) for gradient in gradients]).norm(dim=0)
        self.mark_diverged(step, losses.isfinite() & norms.isfinite())
        self._update(gradients, norms, step)
        return losses.detach()

    def batch(self, step: int) -> Examples:
        """The batch of every active seed at `step` (from 0): all rates and all arms of a seed see the same one."""
        return stack([self.splits[number].batch(step, self.recipe.batch_size) for number in self.active.seed_numbers])

    def encode(self, inputs: Tensor, step: int | None = None) -> Tensor:
        """Integers (seeds, batch, ...) -> tokens; a step means training, whose augmentation the seed and step fix."""
        if step is None:
            tokens = self.task.encode(inputs.flatten(0, 1))
            return tokens.view(*inputs.shape[:2], *tokens.shape[1:])
        streams = [generator(self.seeds[number], "augment", step) for number in self.active.seed_numbers]
        return torch.stack([self.task.encode(part, source) for part, source in zip(inputs, streams, strict=True)])

    def _masks(self, tokens: Tensor, lengths: Tensor | None, step: int) -> Tensors:
        """Dropout masks of the active seeds: all rates of a seed, and all arms with the same shapes, drop out the
        same."""
        if not self.recipe.dropout:
            return []
        if (long := tokens.shape[2]) not in self._dropped:
            of_one = None if lengths is None else lengths[0]
            self._dropped[long] = self.module.dropout_shapes(tokens[0], of_one)
        return self.masks.draw(self._dropped[long], [self.seeds[number] for number in self.active.seed_numbers], step)

    def noise(self, subset: Subset, examples: int, *use: str | int) -> Tensor | None:
        """What the model's forward pass starts from, (seeds, examples, ...): drawn for every seed and `use`, the same
        for all its rates. None where the model starts from nothing."""
        model = self.module.noise
        if model is None:
            return None
        sources = [generator(self.seeds[number], "noise", *use) for number in subset.seed_numbers]
        return torch.stack([model.draw(examples, source) for source in sources]).to(self.device)

    def logits(
        self,
        pieces: Sequence[Tensor],
        tokens: Tensor,
        lengths: Tensor | None,
        subset: Subset,
        masks: Sequence[Tensor] = (),
        noise: Tensor | None = None,
    ) -> Tensor:
        """(seeds, rates, batch, predictions, classes) of the runs of `subset`.

        pieces [(runs of the subset, numbers of a piece)], tokens (seeds, batch, tokens, ...), lengths (seeds, batch),
        masks [(seeds, ...)], noise (seeds, batch, ...).
        """
        # Compiled for all runs alone: every other number of runs would be compiled anew.
        forward = self._compiled if self._compiled and subset is self.all_runs else self._forward
        optional = {name: part for name, part in (("lengths", lengths), ("noise", noise)) if part is not None}
        return forward(list(pieces), list(masks), subset.per_seed, {"tokens": tokens, **optional})

    def _forward(self, pieces: Tensors, masks: Tensors, per_seed: Named, inputs: Named) -> Tensor:
        """`logits` of runs that are a rectangle of as many seeds as `inputs` are for."""

        def one(pieces: Tensors, masks: Tensors, frozen: Named, inputs: Named) -> Tensor:
            self.module.drop_with(masks, inputs.get("noise"))
            tensors = {**self.shared, **frozen, **self.layout.named(pieces)}
            output: Tensor = functional_call(self.module, tensors, (inputs["tokens"], inputs.get("lengths")))
            return output

        rectangle = [piece.unflatten(0, (len(inputs["tokens"]), -1)) for piece in pieces]
        output: Tensor = vmap(vmap(one, in_dims=(0, None, None, None)))(rectangle, masks, per_seed, inputs)
        return output

    def mark_diverged(self, step: int, finite: Tensor) -> None:
        """Record `step` for the active runs that are not `finite` for the first time; they stop learning."""
        everywhere = torch.ones_like(self.alive).index_copy(0, self.active.rows.flatten(), finite)
        self.diverged_at.masked_fill_(self.alive & ~everywhere, step)
        self.alive &= everywhere

    def _update(self, gradients: Sequence[Tensor], norms: Tensor, step: int) -> None:
        """AdamW, on gradients clipped to norm `clip`; a diverged run keeps its last finite parameters."""
        share = self.recipe.share_of_rate(step)
        dead = (~self.alive).float()
        # Adam divides gradients by grad_scale and does nothing where found_inf is 1: no pass over them of our own.
        excess = torch.ones_like(norms) if self.recipe.clip is None else (norms + 1e-6) / self.recipe.clip
        for row, scale, *parts in zip(self.active.row_numbers, excess.clamp(min=1).float(), *gradients, strict=True):
            optimizer: Any = self.optimizers[row]
            optimizer.grad_scale, optimizer.found_inf = scale, dead[row]
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * share
            pieces = chain.from_iterable(group["params"] for group in optimizer.param_groups)
            for piece, part in zip(pieces, parts, strict=True):
                piece.grad = part
            optimizer.step()

    def of(self, subset: Subset, parameters: Tensor) -> Tensor:
        """The rows of `parameters` that belong to `subset`; no copy where those are all."""
        return parameters if subset is self.all_runs else parameters[subset.rows.flatten()]

    def subset(self, rows: Tensor) -> Subset:
        """The runs `rows` (seeds, rates), in each row those of one seed; a seed may have several rows."""
        numbers = (rows[:, 0] // len(self.rates)).tolist()
        some = numbers != list(range(len(self.seeds)))
        per_seed = {name: value[numbers] if some else value for name, value in self.per_seed.items()}
        return Subset(rows, rows.flatten().tolist(), numbers, per_seed)

    def release(self) -> None:
        """Diverged runs leave the computation, as far as seeds x rates stays a rectangle: at least as many rates as
        the seed with most living runs has. They keep their last finite parameters. From a compiled fleet they leave
        once they are half of it: what remains is not compiled, and a run then takes about twice as long."""
        living = self.alive[self.all_runs.rows]
        counts = living.sum(1)
        first = (~living).int().argsort(dim=1, stable=True)[:, : max(1, int(counts.max()))]
        rows = self.all_runs.rows.gather(1, first)[counts > 0]
        active = len(self.active.row_numbers)
        if rows.numel() <= (active // 2 if self.compiled else active - 1):
            self.active = self.subset(rows)

    def _load_weights(self) -> None:
        """Trainable tensors become a matrix (runs, parameters); frozen ones are held once, or once a seed."""
        weights = [self.template.initialise(seed) for seed in self.seeds]
        flat = torch.stack([self.layout.row(values) for values in weights]).to(self.device)
        self.parameters = flat.repeat_interleave(len(self.rates), dim=0)
        self.shared: dict[str, Tensor] = {}
        self.per_seed: dict[str, Tensor] = {}
        trained = set(self.layout.names)
        for name in (name for name in self.template.shapes if name not in trained):
            values = [of_seed.pop(name) for of_seed in weights]  # no second copy is kept
            dtype = self.layout.dtype(name)
            if all(value is values[0] for value in values):
                self.shared[name] = values[0].to(self.device, dtype)
            else:
                self.per_seed[name] = torch.stack(values).to(self.device, dtype)

    def _make_optimizers(self) -> None:
        """One AdamW a run, on views of its row; moments and steps are matrices too (for checkpoints). Without weight
        decay it is Adam."""
        self.moments = self.parameters.new_zeros(2, *self.parameters.shape)
        self.adam_steps = torch.zeros(len(self.runs), len(self.layout.pieces), device=self.device)
        self.optimizers = []
        for number, (_, rate) in enumerate(self.runs):
            row, first, second = map(self.layout.cut, (self.parameters[number], *self.moments[:, number]))
            optimizer = torch.optim.AdamW(self._groups(row, rate), fused=True)
            for piece, *state in zip(row, self.adam_steps[number], first, second, strict=True):
                optimizer.state[piece] = dict(zip(("step", "exp_avg", "exp_avg_sq"), state, strict=True))
            self.optimizers.append(optimizer)

    def _groups(self, row: Sequence[Tensor], rate: float) -> list[dict[str, Any]]:
        """The optimizer's groups of a run: pieces that lie together and train alike."""
        groups = []
        pairs = zip(self.layout.pieces, row, strict=True)
        for (head, decays), alike in groupby(pairs, lambda pair: (pair[0].head, pair[0].decays)):
            groups.append(
                {
                    "params": [part for _, part in alike],
                    "initial_lr": self.recipe.head_rate if head else rate,
                    "weight_decay": self.recipe.weight_decay if decays else 0.0,
                }
            )
        return groups

    def state(self) -> dict[str, Tensor]:
        """All that a step changes, as the tensors themselves; the position in the data is the number of steps."""
        return {"active": self.active.rows} | {name: getattr(self, name) for name in CHANGED}

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state()` gave."""
        for name in CHANGED:
            getattr(self, name).copy_(state[name])
        rows = state["active"].to(self.device)
        all_runs = torch.equal(rows, self.all_runs.rows)  # the compiled step is theirs
        self.active = self.all_runs if all_runs else self.subset(rows)


def each_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy (seeds, rates, n, predictions) of float32 logits (seeds, rates, n, predictions, classes)."""
    spread = targets[:, None].expand(logits.shape[:-1])
    return cross_entropy(logits.flatten(0, 3), spread.flatten(), reduction="none").view(spread.shape)
