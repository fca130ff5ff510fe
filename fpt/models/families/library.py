"""The default family: a model of the transformers library with its own forward pass, groups by classes of modules.

A backbone of this family names its architecture by the config field `model_type`. A family that differs from the
default is a module beside this one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from inspect import signature
from itertools import cycle, islice
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, AutoModel

from fpt.errors import SpecError, check_known
from fpt.models.catalogue import WIDTHS, Backbone
from fpt.models.layers import replace_layers

# The library's defaults name ids of each model's own vocabulary; a model that reads no ids has none.
NO_SPECIAL_TOKENS = dict.fromkeys([f"{kind}_token_id" for kind in ("bos", "eos", "pad", "sep", "cls")])

# A class around a parameter, or the name of a module -> the parameter's group; the first that fits. Lu et al. 2021,
# section 2.2, say what an FPT trains; their released code matched substrings of parameter names, and overlaps decided
# the result.
CLASSES = (
    ("Norm", "layer_norm"),
    ("Embedding", "positions"),  # the table of tokens is taken out
    ("Attention", "attention"),
    (
        "MLP|Mlp|FF|FeedForward|Intermediate|Output|M[oO][eE](Block|Layer)?$|Experts$|Router$|^ffn$|^fc[12]$",
        "feed_forward",
    ),
)
HOLDERS = "(DecoderLayer|EncoderLayer|Model)$"  # classes that hold more than one group, whatever else they are called

FEW_TOKENS, TINY_WIDTH = 11, 16

# Config fields that limit how far a token attends -> how many such widths make one side.
WINDOWS = {
    "sliding_window": 1,
    "sliding_window_size": 1,
    "local_attention": 2,  # ModernBERT's, both sides together
    "window_size": 1,
    "attention_window_size": 1,
    "attention_chunk_size": 1,
    "keep_window_size": 1,
}

# Config fields of how long a sequence can be, and of heads, which a width is divided among.
LENGTHS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_key_value_heads", "head_dim")

# What the library raises for configs and calls that it cannot take.
BROKEN = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError,
    ValueError, StrictDataclassError,
)  # fmt: skip

Rows = Callable[[Tensor], Tensor]  # (batch, tokens, ...) -> (batch, read-out positions, ...)


def forward(model: Any, embedded: Tensor, lengths: Tensor | None, rows: Rows) -> Tensor:
    """The library's forward pass of (batch, tokens, width): (batch, read-out positions, width).

    lengths (batch,) hide padding; None where nothing is padded.
    """
    shown = None if lengths is None else torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
    return rows(model(inputs_embeds=embedded, attention_mask=shown).last_hidden_state)


def any_layer(name: str) -> str:
    """A parameter's name with N in the place of the number of its layer: layers.N.input_layernorm.weight."""
    return re.sub(r"(?<=\.)\d+(?=\.)", "N", name)


@dataclass(frozen=True, kw_only=True)
class Family:
    """What differs between architectures. Paths are those of modules and parameters in the library's model."""

    config: Callable[..., Any] | None = None  # the library's config class, or one like it; None: by `model_type`
    model: Callable[[Any], nn.Module] = AutoModel.from_config  # config -> the part of the library's model that is used
    attention: str = "fpt"  # ours, or the library's `eager` where its attention takes no other
    forward: Callable[[Any, Tensor, Tensor | None, Rows], Tensor] = forward
    classes: tuple[tuple[str, str], ...] = CLASSES
    tiny: Mapping[str, Any]  # the config of a model that is built and trained in a moment
    fixed: Mapping[str, Any] = field(default_factory=dict)  # config fields set here
    positions: str | None = None  # the table of positions; None: has none
    rows_before: int = 0  # rows of that table before the first token's
    # Whether the table is built whole and then cut to the task's tokens: its rows before the first token's stay
    cut_in_build: bool = False
    new_positions: bool = False  # a table of ours, which starts from zeros where the rest is pretrained
    # model, tokens: other changes than taking out the table of tokens, before our layers go in
    prepare: Callable[[Any, int], None] | None = None
    zero_norms: Sequence[str] = ()  # weights of norms that multiply by one more than them, as `any_layer` names them
    initial_value: Callable[..., Tensor] | None = None  # random values, where the rules are not GPT-2's
    symbol_table: str | None = None  # which alone says what the layers read of a symbol; None: there is none
    first_attention: str | None = None  # the module that returns attention weights second, below a last layer
    load: Callable[..., Any] = AutoModel.from_pretrained  # a folder -> the pretrained model, `output_loading_info`
    recurrent: bool = False  # one token after the other, in a loop that no compiler is given
    needs_fpt: bool = False  # whether the library's model alone makes something else of the same embeddings

    @property
    def config_sets_positions(self) -> bool:
        """Whether a field of the library's config sets the length of the table of positions."""
        return self.positions is not None and not self.new_positions and not self.cut_in_build

    @property
    def first_row(self) -> int:
        """The row of the library's table of positions with which that of a built model begins."""
        return 0 if self.cut_in_build else self.rows_before

    def configuration(self, backbone: Backbone, **fields: Any) -> Any:
        """The library's config of `backbone`. Raises SpecError for a `model_type` that the library does not have."""
        given = deepcopy(dict(backbone.config))  # the library fills in mappings that it is given
        kind = self.config or _config_class(given.pop("model_type", ""))
        if backbone.is_foreign:  # config.json of whichever version of the library
            return _as_read(kind, given, backbone.layers, fields)
        known = {*signature(kind).parameters, *getattr(kind, "attribute_map", {})}
        assert given.keys() <= known, f"row {backbone.name}: {kind.__name__} would ignore {given.keys() - known}"
        return kind(**{**given, "num_hidden_layers": backbone.layers, **NO_SPECIAL_TOKENS, **fields})

    def reduced(self, backbone: Backbone) -> dict[str, Any]:
        """The config of a tiny model of the architecture of `backbone`: what is as wide as the model stays so."""
        if self.config is not None:
            return {**backbone.config, **self.tiny}
        whole = self.configuration(backbone)
        names, sizes = getattr(whole, "attribute_map", {}), vars(whole)
        tiny = {names.get(name, name): size for name, size in self.tiny.items()}
        if sizes.get("num_key_value_heads") == sizes.get("num_attention_heads"):  # else one key serves two heads
            tiny["num_key_value_heads"] = tiny.get("num_attention_heads", 1)
        same = [name for name, size in sizes.items() if size == whole.hidden_size and re.search("_(dim|size)$", name)]
        tiny = {
            **dict.fromkeys(same, TINY_WIDTH),
            **{name: tiny[name] for name in tiny if type(sizes.get(name)) is int},
        }
        return {**backbone.config, **tiny, **(few_tokens(backbone.config) if backbone.is_foreign else {})}

    def build(self, backbone: Backbone, tokens: int, layers: int = 0, own_table: bool = False, **options: Any) -> Any:
        """The library's model with `tokens` rows of positions and the first `layers` layers (0: all), untrained values.

        Our layers are inside, and what the input layer replaces is not, unless the model's `own_table` of symbols reads
        in its place. Other options are fields of the config.
        """
        sizes = {"num_hidden_layers": layers or backbone.layers, "use_cache": False}
        if not own_table:
            sizes |= few_tokens(backbone.config) if backbone.is_foreign else {"vocab_size": 1}
        sizes |= {"max_position_embeddings": tokens} if self.config_sets_positions else {}
        config = self.configuration(backbone, **{**self.fixed, **sizes, **options})
        config._attn_implementation = self.attention
        config._experts_implementation = "batched_mm"  # of mixtures: the other ones look at the data
        if self.config is None:
            check_window(backbone, config, tokens)
        model: Any = self.model(config)
        for path in () if own_table else token_tables(model):
            parent, _, name = path.rpartition(".")
            delattr(model.get_submodule(parent), name)
        if getattr(model, "pooler", None) is not None:
            model.pooler = None  # nothing reads it
        if self.prepare:
            self.prepare(model, tokens)
        if self.cut_in_build:
            table = model.get_submodule(str(self.positions).removesuffix(".weight"))
            cut_positions(backbone, table, self.rows_before, tokens)
        replace_layers(model)
        return model.eval()  # what the library drops out by itself, it does in training alone

    def group_of(self, model: nn.Module, name: str) -> str:
        """The group of parameter `name` of `model`; SpecError where no class around it is in `classes`."""
        modules = name.split(".")[:-1]
        around = [type(model.get_submodule(".".join(modules[: n + 1]))).__name__ for n in range(len(modules))]
        inside = [*modules, *(kind for kind in around if not re.search(HOLDERS, kind))]
        for pattern, group in self.classes:
            if any(re.search(pattern, kind) for kind in inside):
                return group
        raise SpecError(
            f"parameter {name!r} of {type(model).__name__} is in no group: none of the classes around it "
            f"({', '.join(around)}) fits {', '.join(pattern for pattern, _ in self.classes)}; "
            "give its family a module in fpt/models/families with `classes` that name it"
        )


def token_tables(model: Any) -> list[str]:
    """Where the model's table of token embeddings is, under each of its names; nowhere in a model of ours."""
    if not hasattr(model, "get_input_embeddings"):
        return []
    table = model.get_input_embeddings()
    weight = getattr(table, "weight", table)  # T5's encoder has a module of its own for the same table
    return [path for path, module in model.named_modules() if module is table or getattr(module, "weight", 0) is weight]


def few_tokens(config: Mapping[str, Any]) -> dict[str, Any]:
    """Config fields of a small vocabulary. A small id of the padding token stays: RoBERTa counts positions from it."""
    pad = config.get("pad_token_id")
    kept = min(pad, FEW_TOKENS - 1) if isinstance(pad, int) and pad >= 0 else None
    return {**dict.fromkeys(NO_SPECIAL_TOKENS, 1), "pad_token_id": kept, "vocab_size": FEW_TOKENS}


def _as_read(kind: Any, given: Mapping[str, Any], layers: int, fields: Mapping[str, Any]) -> Any:
    """The config of a config.json with other `fields`, in float32; lists with one entry per layer follow the layers."""
    names = getattr(kind, "attribute_map", {})
    layers = fields.get("num_hidden_layers", layers)
    fields = {names.get(name, name): value for name, value in fields.items() if name != "num_hidden_layers"}
    # Number type and attention are ours, whatever the file asks for, and nothing reads a head of so many labels.
    ours = "^(torch_)?dtype$|attn_implementation|^num_labels$"
    kept = {name: value for name, value in given.items() if not re.search(ours, name)}
    config = kind.from_dict({**kept, **fields})
    for name, value in vars(config).items():
        if isinstance(value, list) and len(value) == config.num_hidden_layers:
            setattr(config, name, list(islice(cycle(value), layers)))
    config.num_hidden_layers = layers
    return config


def check_window(backbone: Backbone, config: Any, tokens: int) -> None:
    """Refuse (SpecError) attention in a window that a sequence of `tokens` does not fit into: what is read last would
    not see the first tokens, and that the library's models work so is no reason to compare them with others."""
    kinds = [kind for name in ("layer_types", "attention_layers") for kind in getattr(config, name, None) or ()]
    if kinds and not any(re.search("sliding|chunked|local", kind) for kind in kinds):
        return
    given = {name: getattr(config, name, None) for name in WINDOWS}
    reach = {name: size // WINDOWS[name] for name, size in given.items() if type(size) is int and size > 0}
    if reach and tokens > (least := min(reach.values())):
        raise SpecError(
            f"a token of {backbone.title or backbone.family!r} attends to {least} tokens on one side at most "
            f"({' and '.join(f'{name} {given[name]}' for name in reach)}), and the task has {tokens}: take a shorter "
            "task or variant, or a model whose attention reaches all tokens"
        )


def broken(backbone: Backbone, tokens: int, error: Exception) -> SpecError:
    """The error for a model that the library does not build or compute at this length, with its sizes."""
    why = next(iter(str(error).strip().splitlines()), type(error).__name__)
    names = (*WIDTHS, *HEADS, *LENGTHS, *WINDOWS)
    sizes = [f"{name} {backbone.config[name]}" for name in names if backbone.config.get(name) is not None]
    return SpecError(
        f"{backbone.title or backbone.family!r} cannot be built for a task of {tokens} tokens: {why} "
        f"(its configuration has {', '.join(sizes) or 'the default sizes'})"
    )


def cut_positions(backbone: Backbone, table: nn.Module, rows_before: int, tokens: int) -> None:
    """Leave the rows of a position table that a task uses; SpecError where it is too short."""
    weight: Any = table.weight
    if rows_before + tokens > len(weight):
        raise SpecError(
            f"{backbone.title or backbone.family!r} has {len(weight) - rows_before} positions, and the task has "
            f"{tokens} tokens: take a shorter task or variant, or a model that takes longer sequences"
        )
    table.weight = nn.Parameter(weight[: rows_before + tokens].detach().clone())


def _config_class(model_type: str) -> Callable[..., Any]:
    check_known("model_type", model_type, CONFIG_MAPPING, "config of a backbone of the family 'library'")
    kind: Callable[..., Any] = CONFIG_MAPPING[model_type]
    return kind


# `tiny` holds for those of these fields that a config has.
FAMILY = Family(
    tiny={
        "vocab_size": FEW_TOKENS,
        "hidden_size": TINY_WIDTH,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "decoder_attention_heads": 2,
        "head_dim": 8,
        "rotary_dim": 4,
        "intermediate_size": 32,
        "ffn_dim": 32,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
        "num_experts": 4,
        "num_local_experts": 4,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "q_lora_rank": 8,
        "kv_lora_rank": 8,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "qk_head_dim": 16,
        "v_head_dim": 8,
        "vocab_size_per_layer_input": FEW_TOKENS,
        "hidden_size_per_layer_input": 8,
    }
)
