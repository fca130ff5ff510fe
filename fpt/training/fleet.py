"""A fleet: runs that differ only in learning rate and seed, trained as one batched computation.

The trainable parameters of the whole fleet are one matrix, with one row per run. A step differentiates around a
torch.func.vmap (outer over seeds, inner over rates) of functional_call, so library models work unchanged and the
backward pass needs no batching rules. A run in a fleet equals the run alone, dropout included.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, product
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn.functional import cross_entropy

from fpt.models.layers import Masks, Projection
from fpt.models.template import Template
from fpt.seeds import generator
from fpt.tasks.arrays import Examples
from fpt.tasks.task import Split, Task
from fpt.training import compute
from fpt.training.recipe import HEAD, Recipe

LARGE = 16_384  # numbers of a tensor that is a piece of its own
CHANGED = ("parameters", "moments", "adam_steps", "alive", "diverged_at")  # tensors of a fleet, by every step

Tensors = list[Tensor]
Named = dict[str, Tensor]


@dataclass(frozen=True)
class Piece:
    """Columns of the parameter matrix that lie together: of tensors that train alike."""

    sizes: list[int]  # of its tensors
    kind: torch.dtype  # that it is computed with in
    head: bool  # it trains at the rate of the head
    decays: bool

    @property
    def size(self) -> int:
        return sum(self.sizes)


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

    def _load_weights(self) -> None:
        """Trainable tensors become a matrix (runs, parameters); frozen ones are held once, or once a seed."""
        weights = [self.template.initialise(seed) for seed in self.seeds]
        self._lay_out(self.template.trainable)
        flat = torch.stack([self._row(values) for values in weights]).to(self.device)
        self.parameters = flat.repeat_interleave(len(self.rates), dim=0)
        self.shared: dict[str, Tensor] = {}
        self.per_seed: dict[str, Tensor] = {}
        trained = set(self.names)
        for name in (name for name in self.template.shapes if name not in trained):
            values, kind = [of_seed.pop(name) for of_seed in weights], self._kind(name)  # a seed's copy is not kept
            if all(value is values[0] for value in values):
                self.shared[name] = values[0].to(self.device, kind)
            else:
                self.per_seed[name] = torch.stack(values).to(self.device, kind)

    def _row(self, values: Mapping[str, Tensor]) -> Tensor:
        """The trainable tensors of one run, one after the other."""
        return torch.cat([values[name].flatten() for name in self.names])

    def _lay_out(self, names: Sequence[str]) -> None:
        """Columns of the matrix: small tensors first and together, then the large ones, each a piece of its own; so for
        the tensors of each of the optimizer's groups.

        Gradients are taken piece by piece: one for all columns would copy every gradient once more (Adam's time
        again, for an unfrozen GPT-2), and one for each small tensor would cost 20 µs each and step.
        """
        shapes = self.template.shapes

        def order(name: str) -> tuple[bool, bool, bool]:
            return (*self._update_of(name), shapes[name].numel() >= LARGE)

        self.names = sorted(names, key=order)
        self.shapes = [shapes[name] for name in self.names]
        self.pieces: list[Piece] = []
        for (head, decays, large), group in groupby(self.names, order):
            alike = list(group)
            pieces = [[name] for name in alike] if large else [alike]
            for piece in pieces:
                kind = self._kind(piece[0]) if large else torch.float32
                self.pieces.append(Piece([shapes[name].numel() for name in piece], kind, head, decays))

    def _update_of(self, name: str) -> tuple[bool, bool]:
        """Whether a tensor trains at the rate of the head, and whether it decays: the optimizer's groups."""
        group, matrix = self.template.groups[name], len(self.template.shapes[name]) > 1
        # The biases of all experts of a mixture are one tensor of two dimensions.
        decays = matrix and group != "layer_norm" and not name.endswith("bias")
        return self.recipe.head_rate is not None and group in HEAD, self.recipe.weight_decay > 0 and decays

    def _kind(self, name: str) -> torch.dtype:
        """The type in which a tensor is computed with: matrices of ours in the compute type, frozen or not. What the
        library multiplies by itself (experts of a mixture) stays float32."""
        matrix = len(self.template.shapes[name]) > 1 and isinstance(
            self.module.get_submodule(name.rpartition(".")[0]), Projection
        )
        inside = matrix and self.template.groups[name] in ("attention", "feed_forward", "recurrent")
        return self.compute_type if inside else torch.float32

    def cut(self, parameters: Tensor) -> Tensors:
        """Rows of the parameter matrix in pieces, each in its type: cast here once, not at every use."""
        rows = parameters.split([piece.size for piece in self.pieces], dim=1)
        if self.compute_type == torch.float32:
            return list(rows)
        return [row.to(piece.kind) for row, piece in zip(rows, self.pieces, strict=True)]

    def _make_optimizers(self) -> None:
        """One AdamW a run, on views of its row; moments and steps are matrices too (for checkpoints). Without weight
        decay it is Adam."""
        sizes = [piece.size for piece in self.pieces]
        self.moments = self.parameters.new_zeros(2, *self.parameters.shape)
        self.adam_steps = torch.zeros(len(self.runs), len(self.pieces), device=self.device)
        self.optimizers = []
        for number, (_, rate) in enumerate(self.runs):
            row, first, second = (part.split(sizes) for part in (self.parameters[number], *self.moments[:, number]))
            optimizer = torch.optim.AdamW(self._groups(row, rate), fused=True)
            for piece, *state in zip(row, self.adam_steps[number], first, second, strict=True):
                optimizer.state[piece] = dict(zip(("step", "exp_avg", "exp_avg_sq"), state, strict=True))
            self.optimizers.append(optimizer)

    def _groups(self, row: Sequence[Tensor], rate: float) -> list[dict[str, Any]]:
        """The optimizer's groups of a run: pieces that lie together and train alike."""
        groups = []
        pairs = zip(self.pieces, row, strict=True)
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

    def noise(self, subset: Subset, *use: str | int) -> Callable[[int], Tensor | None]:
        """Draws what the model's forward pass starts from, (seeds, examples, ...) for so many examples: a stream for
        every seed and `use`, the same for all its rates. None where the model starts from nothing."""
        model = self.module.noise
        if model is None:
            return lambda examples: None
        sources = [generator(self.seeds[number], "noise", *use) for number in subset.seed_numbers]
        return lambda examples: torch.stack([model.draw(examples, source) for source in sources]).to(self.device)

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
            tensors = [
                tensor
                for part, piece in zip(pieces, self.pieces, strict=True)
                for tensor in (part.split(piece.sizes) if len(piece.sizes) > 1 else [part])  # else a gradient is copied
            ]
            named = {
                name: piece.view(shape) for name, piece, shape in zip(self.names, tensors, self.shapes, strict=True)
            }
            self.module.drop_with(masks, inputs.get("noise"))
            arguments = (inputs["tokens"], inputs.get("lengths"))
            output: Tensor = functional_call(self.module, {**self.shared, **frozen, **named}, arguments)
            return output

        rectangle = [piece.unflatten(0, (len(inputs["tokens"]), -1)) for piece in pieces]
        output: Tensor = vmap(vmap(one, in_dims=(0, None, None, None)))(rectangle, masks, per_seed, inputs)
        return output

    def of(self, subset: Subset, parameters: Tensor) -> Tensor:
        """The rows of `parameters` that belong to `subset`; no copy where those are all."""
        return parameters if subset is self.all_runs else parameters[subset.rows.flatten()]

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

    def mark_diverged(self, step: int, finite: Tensor) -> None:
        """Record `step` for the active runs that are not `finite` for the first time; they stop learning."""
        everywhere = torch.ones_like(self.alive).index_copy(0, self.active.rows.flatten(), finite)
        self.diverged_at.masked_fill_(self.alive & ~everywhere, step)
        self.alive &= everywhere

    def in_training(self, pieces: Sequence[Tensor], batch: Examples, step: int) -> Tensor:
        """`logits` of the active runs as at gradient step `step`: with dropout, augmentation and noise."""
        subset = self.active
        noise = self.noise(subset, step)(batch.inputs.shape[1])
        tokens = self.encode(batch.inputs, step)
        return self.logits(pieces, tokens, batch.lengths, subset, self._masks(tokens, batch.lengths, step), noise)

    def _masks(self, tokens: Tensor, lengths: Tensor | None, step: int) -> Tensors:
        """Dropout masks of the active seeds: all rates of a seed, and all arms with the same shapes, drop out the
        same."""
        if not self.recipe.dropout:
            return []
        if (long := tokens.shape[2]) not in self._dropped:
            of_one = None if lengths is None else lengths[0]
            self._dropped[long] = self.module.dropout_shapes(tokens[0], of_one)
        return self.masks.draw(self._dropped[long], [self.seeds[number] for number in self.active.seed_numbers], step)

    def step(self, step: int) -> Tensor:
        """Gradient step number `step` (from 1) of the active runs: their losses, detached. The host waits
        for the device only where a batch, its augmentation or noise is drawn on the host."""
        batch, subset = self.batch(step - 1), self.active
        leaves = [piece.requires_grad_() for piece in self.cut(self.of(subset, self.parameters).detach())]
        losses = each_loss(self.in_training(leaves, batch, step), batch.targets).flatten(2).mean(2).flatten()
        # Longformer's global projections take no part: theirs are zero.
        found = torch.autograd.grad(losses.sum(), leaves, materialize_grads=True)
        gradients = [gradient.to(self.parameters.dtype) for gradient in found]
        norms = torch.stack([torch.linalg.vector_norm(gradient, dim=1) for gradient in gradients]).norm(dim=0)
        self.mark_diverged(step, losses.isfinite() & norms.isfinite())
        self._update(gradients, norms, step)
        return losses.detach()

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


def each_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy (seeds, rates, n, predictions) of float32 logits (seeds, rates, n, predictions, classes)."""
    spread = targets[:, None].expand(logits.shape[:-1])
    return cross_entropy(logits.flatten(0, 3), spread.flatten(), reduction="none").view(spread.shape)
