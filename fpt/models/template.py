"""The model of both papers: a new input layer, a backbone, a new output layer (Lu et al. 2021, section 2.2)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import AutoModel

from fpt.errors import SpecError
from fpt.files import known_sha256
from fpt.models import initialise as draw
from fpt.models import lora
from fpt.models.arms import ADAPTER, EMBEDDING, GROUPS, POLICIES, Adapters, name_of, part
from fpt.models.catalogue import Backbone
from fpt.models.choices import groups_of, trainable_groups
from fpt.models.families import family, layer_of
from fpt.models.families.library import BROKEN, any_layer, broken
from fpt.models.foreign import check_length
from fpt.models.layers import Dropout, Noise, Projection, mean_over, read_out
from fpt.models.tensors import check_values
from fpt.models.weights import PREFIX, check_shapes, checksum, fetch, kept_state, pretrained_state
from fpt.tasks import MEAN, PREDICTS
from fpt.tasks.task import Task


class TransferModel(nn.Module):
    """Input layer, backbone, output layer; on a task with `own_table` the backbone's own table of symbols is the first,
    or both.

    tokens (batch, tokens, features) or symbols (batch, tokens), lengths (batch,)
    -> logits (batch, predictions, classes).
    """

    backbone: Any  # a library model: its class is the family's

    def __init__(self, task: Task, backbone: Backbone, layers: int = 0, **options: Any) -> None:
        super().__init__()
        self.family = family(backbone)
        self.own_table = task.own_table
        self.backbone = self.family.build(backbone, task.tokens, layers, bool(task.own_table), **options)
        self.width: int = self.backbone.config.hidden_size
        self.heads: int = getattr(self.backbone.config, "num_attention_heads", 0)  # 0: no attention
        if task.own_table != PREDICTS:
            self._add_layers(task, backbone)
        self.readout, self.classes, self.mask_padding = task.readout, task.classes, task.mask_padding
        self.pooling = task.pooling

    def _add_layers(self, task: Task, backbone: Backbone) -> None:
        width = self.width
        if task.own_table:
            check_table(task, backbone, self.backbone.get_input_embeddings().weight)
        elif task.vocabulary:
            self.input_layer: nn.Module = nn.Embedding(task.vocabulary, width)
        else:
            self.input_layer = nn.Linear(task.width or 1, width)
        # The released code drops out after a linear input layer, and not after an embedding table.
        self.input_dropout = nn.Identity() if task.vocabulary else Dropout()
        self.output_layer = nn.Linear(width, task.output_width)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        lengths = lengths if self.mask_padding else None
        rows = partial(read_out, count=self.readout, lengths=lengths)
        if self.pooling == MEAN:  # of all positions, so that the last layer computes them all
            rows = partial(read_out, count=tokens.shape[1], lengths=None)
        table: Any = self.backbone.get_input_embeddings() if self.own_table else None
        embedded = table(tokens) if self.own_table else self.input_dropout(self.input_layer(tokens))
        hidden = self.family.forward(self.backbone, embedded, lengths, rows)
        hidden = mean_over(hidden, lengths) if self.pooling == MEAN else hidden
        logits: Tensor = linear(hidden, table.weight) if self.own_table == PREDICTS else self.output_layer(hidden)
        return logits.reshape(len(logits), -1, self.classes)

    @property
    def noise(self) -> Noise | None:
        """What the backbone draws anew at every forward pass, if anything."""
        return next((module for module in self.modules() if isinstance(module, Noise)), None)

    def drop_with(self, masks: Sequence[Tensor], noise: Tensor | None = None) -> None:
        """Use these dropout masks in the next forward pass, in the order of `dropout_shapes`; none: no dropout.

        One rate everywhere: input, embeddings, attention, residuals, frozen blocks included. noise (batch, ...) are the
        numbers of `noise`, where the backbone has it.
        """
        queue = iter(masks) if masks else None
        for module in self.modules():
            if isinstance(module, Dropout):
                module.masks = queue
            elif isinstance(module, Noise):
                module.numbers = noise

    def dropout_shapes(self, tokens: Tensor, lengths: Tensor | None) -> list[torch.Size]:
        """Shapes of what a forward pass on such input drops out, in order."""
        return [shape for _, shape in self.dropped(tokens, lengths)]

    @torch.no_grad()
    def dropped(self, tokens: Tensor, lengths: Tensor | None) -> list[tuple[str, torch.Size]]:
        """(name of the dropout layer, shape) of everything that a forward pass on such input drops out, in order."""
        seen: list[tuple[str, torch.Size]] = []
        layers = [(name, module) for name, module in self.named_modules() if isinstance(module, Dropout)]
        handles = [
            layer.register_forward_hook(lambda *call, name=name: seen.append((name, call[2].shape)))
            for name, layer in layers
        ]
        self.drop_with([])
        try:
            self(tokens, lengths)
        finally:
            for handle in handles:
                handle.remove()
        return seen

    def set_compute_type(self, compute_type: torch.dtype) -> None:
        """The type of the products with attention and feed-forward matrices; everything else stays float32."""
        for module in self.modules():
            if isinstance(module, Projection):
                module.compute_type = compute_type


@dataclass(eq=False, repr=False)
class Template:
    """A model without values: which parameters there are, which train, and how a seed fills them.

    `module` is used through torch.func.functional_call; its own values mean nothing.
    """

    task: Task
    backbone: Backbone
    init: str
    policy: str | Sequence[str]  # a policy by name, or groups
    random_init: str
    random_gain: float
    input_init: str
    weights: Path | None  # file that a sweep kept, in the place of the backbone's own
    options: dict[str, Any]  # of the backbone, its layers among them
    adapters: Adapters | None  # None: the arm has none

    def __post_init__(self) -> None:
        try:
            if self.init != "random" and self.weights is None:
                check_shapes(self.backbone)
            # Libraries initialise from the global generator; values are replaced.
            with torch.random.fork_rng(devices=[]):
                self.module = TransferModel(self.task, self.backbone, **self.options)
        except BROKEN as error:
            raise broken(self.backbone, self.task.tokens, error) from error
        if self.backbone.is_foreign:
            check_length(self.backbone, self.task.tokens)
        if self.adapters:
            lora.attach(self.module.backbone, self.module.family, self.backbone.name, self.adapters)
        self.module.requires_grad_(False)
        self.shapes = {name: parameter.shape for name, parameter in self.module.named_parameters()}
        self.groups = {name: self._group(name) for name in self.shapes}
        declared = set(groups_of(self.backbone, self.options, self.task.own_table))
        found = set(self.groups.values()) - {ADAPTER}
        assert found == declared, f"{self.backbone.name}: its row declares {declared}, its model has {found}"
        self.width = self.module.width
        self.layers: int = self.options.get("layers") or self.backbone.layers
        held = self._held()
        self.trainable_groups = tuple(group for group, names in held.items() if names)
        self.trainable = [name for name in self.shapes if any(name in names for names in held.values())]
        self._check_positions()

    def __repr__(self) -> str:
        trained, every = self.sizes
        kind = f"{self.backbone.name} on {self.task.name or 'a task'}, {name_of(self.init, self.policy)}"
        return f"Template({kind}: {self.layers} layers, width {self.width}, trains {trained:,} of {every:,} parameters)"

    def _group(self, name: str) -> str:
        part, _, inside = name.partition(".")
        if lora.is_adapter(name):
            return ADAPTER
        if part == "backbone":
            if inside == self.module.family.symbol_table:
                return EMBEDDING
            return self.module.family.group_of(self.module.backbone, inside)
        return part.removesuffix("_layer")  # input or output

    @property
    def sizes(self) -> tuple[int, int]:
        """How many numbers train, and how many there are."""
        every = {name: shape.numel() for name, shape in self.shapes.items()}
        return sum(every[name] for name in self.trainable), sum(every.values())

    @property
    def weights_checksum(self) -> str | None:
        """SHA-256 of what it starts from, whoever pretrained it; None where its values are drawn at random."""
        if self.init == "random":
            return None
        return known_sha256(self.weights) if self.weights else checksum(self.backbone)

    @cached_property
    def residual(self) -> set[str]:
        """Matrices that write into the residual stream: in every layer the last of attention and of feed-forward."""
        last = {}
        for name, group in self.groups.items():
            if group in ("attention", "feed_forward") and self._is_matrix(name):
                last[group, layer_of(name)] = name  # later ones take the place of earlier ones
        return set(last.values())

    def _is_matrix(self, name: str) -> bool:
        """Whether `random_gain` multiplies it: biases (of experts they have two dimensions), layer norms and tables
        stay."""
        multiplies = len(self.shapes[name]) > 1 and not name.endswith("bias")
        return multiplies and self.groups[name] in ("attention", "feed_forward", "recurrent")

    def _held(self) -> dict[str, set[str]]:
        """The parameters of each group and part that is to train. Raises SpecError for one by hand that holds none, as
        the biases of a model without biases, and for a policy of which none holds any."""
        asked = trainable_groups(self.policy, self.backbone, self.options, self.task.own_table)
        held = {group: {name for name in self.shapes if self._belongs(name, group)} for group in asked}
        empty = [group for group, names in held.items() if not names]
        if empty and (not isinstance(self.policy, str) or len(empty) == len(held)):
            raise SpecError(f"backbone {self.backbone.name!r} has no parameters in {', '.join(empty)}: leave that out")
        return held

    def _belongs(self, name: str, group: str) -> bool:
        return part(group).holds(name, self.groups[name], layer_of(name), self.layers)

    def _check_positions(self) -> None:
        """Refuse positions that are neither pretrained nor trained. Where there is no table, there is no limit."""
        if self.init == "random":
            return
        state, family = self.pretrained_cut, self.module.family  # weights that are missing or damaged show here
        if family.positions is None or "positions" in self.trainable_groups:
            return
        rows = 0 if family.new_positions and not self.weights else len(state[family.positions])
        if self.task.tokens > rows:
            stay, shorter = ("zero", "") if family.new_positions else ("random", ", or take a shorter task or variant")
            raise SpecError(
                f"task {self.task.name!r} has {self.task.tokens} tokens, backbone {self.backbone.name!r} has {rows} "
                f"pretrained positions for them, and the new ones would stay {stay}: train the group 'positions' "
                f"(policy 'fpt'), use init 'random'{shorter}"
            )

    @cached_property
    def pretrained(self) -> dict[str, Tensor]:
        """Pretrained tensors by the library's names, for all seeds: matrices times `random_gain`, our positions 0."""
        family = self.module.family
        wanted = {
            name.removeprefix(PREFIX): shape
            for name, shape in self.shapes.items()
            if name.startswith(PREFIX) and not lora.is_adapter(name)
        }
        if self.weights:
            state = kept_state(self.weights, wanted, family.positions)
            check_values(self.weights, state, wanted)
        else:
            state = pretrained_state(self.backbone)
            if family.new_positions:  # whatever the file has
                state[str(family.positions)] = torch.zeros(wanted[str(family.positions)])
            if self.backbone.sha256 is None:
                check_values(fetch(self.backbone), state, wanted)
        if self.random_gain != 1:
            state |= {name: self.random_gain * state[name] for name in wanted if self._is_matrix(f"backbone.{name}")}
        return state

    @cached_property
    def pretrained_cut(self) -> dict[str, Tensor]:
        """The same with the position table from the first token's row on, cut to the task's tokens."""
        family = self.module.family
        if family.positions is None:
            return self.pretrained
        first = 0 if self.weights else family.first_row  # what was kept is ours
        rows = self.shapes[f"backbone.{family.positions}"][0]
        return {**self.pretrained, family.positions: self.pretrained[family.positions][first:][:rows]}

    def initialise(self, seed: int) -> dict[str, Tensor]:
        """{parameter name: float32 tensor}; the same tensor object for every seed where it is pretrained."""
        return {name: self._value(name, shape, seed) for name, shape in self.shapes.items()}

    def _value(self, name: str, shape: torch.Size, seed: int) -> Tensor:
        group = self.groups[name]
        if group == "input":
            if name.endswith("bias"):
                return draw.input_bias(shape, self.input_init, seed, name)
            kind = "embedding" if self.task.vocabulary is not None else self.input_init
            return draw.input_layer(shape, kind, seed, name)
        if group == "output":
            return draw.linear(shape, self.width, seed, name)
        if self.adapters and group == ADAPTER:
            return lora.initial(self.adapters, name, shape, seed)
        if self.init != "random":
            return self._pretrained(name.removeprefix("backbone."), shape, seed)
        return self._random(name, group, shape, seed)

    def _pretrained(self, name: str, shape: torch.Size, seed: int) -> Tensor:
        if self.init == "statistics":
            return draw.with_statistics(self.pretrained[name], shape, seed, name)
        table = self.pretrained_cut[name]
        if len(shape) and shape[0] > len(table):  # only the position table can be longer than the pretrained one
            # The positions that a sweep did not train are what they were at the start; the hub's are of its size.
            std = draw.STANDARD_DEVIATION if self.weights else table.std().item()
            return draw.extended_positions(table, shape[0], std, seed, name)
        return table

    def _random(self, name: str, group: str, shape: torch.Size, seed: int) -> Tensor:
        if rule := self.module.family.initial_value:
            config = self.module.backbone.config
            return rule(config, name, group, shape, seed, self.random_init, self.random_gain)
        if group == "positions":
            return draw.normal(shape, draw.STANDARD_DEVIATION, seed, name)
        if group == EMBEDDING:
            return draw.normal(
                shape, draw.matrix_std(self.width, self.layers, self.random_init, 1.0, False), seed, name
            )
        if name.endswith("bias"):
            return torch.zeros(shape)
        if group == "layer_norm":
            multiplies_by_more = any_layer(name.removeprefix("backbone.")) in self.module.family.zero_norms
            return torch.zeros(shape) if multiplies_by_more else torch.ones(shape)
        residual = name in self.residual
        std = draw.matrix_std(self.width, self.layers, self.random_init, self.random_gain, residual)
        return draw.normal(shape, std, seed, name)

    def report(self) -> pd.DataFrame:
        """Parameter counts: one row per group, columns trainable, frozen, unused; unused tables have their own rows."""
        sizes = [
            (group, "trainable" if name in self.trainable else "frozen", self.shapes[name].numel())
            for name, group in self.groups.items()
        ]
        unused = self._unused()
        sizes += [(what, "unused", count) for what, count in unused.items()]
        table = pd.DataFrame(sizes, columns=["group", "state", "parameters"])
        counts = table.pivot_table(values="parameters", index="group", columns="state", aggfunc="sum", fill_value=0)
        rows = [group for group in (*GROUPS, ADAPTER, *unused) if group in counts.index]
        return counts.reindex(index=rows, columns=["trainable", "frozen", "unused"], fill_value=0).astype(int)

    @property
    def absent(self) -> tuple[str, ...]:
        """The groups that the policy names and the model does not have: `positions` where they are rotary."""
        named = POLICIES[self.policy] if isinstance(self.policy, str) else tuple(self.policy)
        return tuple(group for group in named if group not in self.trainable_groups)

    @cached_property
    def dropouts(self) -> tuple[str, ...]:
        """The groups in which the model drops out. Where they are few, as in Llama, the recipe's rate means less."""
        batch = self.task.split(0).batch(0, 1).to(next(self.module.parameters()).device)
        seen = self.module.dropped(self.task.encode(batch.inputs), batch.lengths)
        return tuple(dict.fromkeys(self._dropped_in(name) for name, _ in seen))

    def _dropped_in(self, name: str) -> str:
        """The group of a dropout layer; of one that lies in no group, `residual` in a layer and `embeddings` before."""
        try:
            return self._group(f"{name}.p").removesuffix("_dropout")
        except SpecError:
            return "embeddings" if layer_of(f"{name}.p") is None else "residual"

    def _unused(self) -> dict[str, int]:
        """Parameters of the whole pretrained model that transfer never uses: {what: count}."""
        family = self.module.family
        if not self.backbone.pretrained:
            return {}
        with torch.device("meta"):
            whole = AutoModel.from_config(family.configuration(self.backbone))
        used = {name.removeprefix("backbone.") for name in self.shapes}
        if family.new_positions:
            used.remove(f"{family.positions}")
        counts: Counter[str] = Counter()
        for name, parameter in whole.named_parameters():
            if name not in used:
                counts[_outermost(name, used)] += parameter.numel()
        if family.positions and not family.new_positions:
            (rows, width), before = whole.get_parameter(family.positions).shape, family.first_row
            used_rows = self.shapes[f"backbone.{family.positions}"][0]
            counts["positions before the first token's"] = before * width
            counts["positions beyond the task's tokens"] = max(0, rows - before - used_rows) * width
        return {what: count for what, count in counts.items() if count}


def check_table(task: Task, backbone: Backbone, table: Tensor) -> None:
    """Refuse (SpecError) a tokenizer that has more ids than the backbone's table of embeddings (rows, width)."""
    if (task.vocabulary or 0) > len(table):
        raise SpecError(
            f"the tokenizer of {backbone.title!r} has {task.vocabulary:,} tokens, and its table of embeddings "
            f"{len(table):,} rows: take the tokenizer that belongs to it, or read bytes (tokenizer bytes)"
        )


def _outermost(name: str, used: set[str]) -> str:
    """The largest part of a model that holds parameter `name` and none that is `used`; whole layers go together."""
    parts = accumulate(name.split("."), "{}.{}".format)
    holding_used = {part for other in used for part in accumulate(other.split("."), "{}.{}".format)}
    part = next(part for part in parts if part not in holding_used)
    return "layers beyond the first" if part.rpartition(".")[2].isdigit() else part
