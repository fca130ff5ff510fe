"""The default family: a model of the transformers library with its own forward pass, groups by classes of modules.

A backbone of this family names its architecture by the config field `model_type`. A family that differs from the
default is a module beside this one.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, AutoModel

from fpt.errors import SpecError, check_known
from fpt.models.catalogue import Backbone
from fpt.models.layers import replace_layers

# The library's defaults name ids of each model's own vocabulary; a model that reads no ids has none.
NO_SPECIAL_TOKENS = dict.fromkeys([f"{kind}_token_id" for kind in ("bos", "eos", "pad", "sep", "cls")])

# A class around a parameter -> the parameter's group; the first that fits. Lu et al. 2021, section 2.2, say what an FPT
# trains; their released code matched substrings of parameter names, and overlaps decided the result.
CLASSES = (
    ("Norm", "layer_norm"),
    ("Embedding", "positions"),  # the table of tokens is taken out
    ("Attention", "attention"),
    ("MLP|FF|FeedForward|Intermediate|Output", "feed_forward"),
)

Rows = Callable[[Tensor], Tensor]  # (batch, tokens, ...) -> (batch, read-out positions, ...)


def forward(model: Any, embedded: Tensor, lengths: Tensor | None, rows: Rows) -> Tensor:
    """The library's forward pass of (batch, tokens, width): (batch, read-out positions, width).

    lengths (batch,) hide padding; None where nothing is padded.
    """
    shown = None if lengths is None else torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
    return rows(model(inputs_embeds=embedded, attention_mask=shown).last_hidden_state)


@dataclass(frozen=True, kw_only=True)
class Family:
    """What differs between architectures. Paths are those of modules and parameters in the library's model."""

    config: Callable[..., Any] | None = None  # the library's config class, or one like it; None: by `model_type`
    model: Callable[[Any], nn.Module] = AutoModel.from_config  # config -> the part of the library's model that is used
    forward: Callable[[Any, Tensor, Tensor | None, Rows], Tensor] = forward
    classes: tuple[tuple[str, str], ...] = CLASSES
    tiny: Mapping[str, Any]  # the config of a model that is built and trained in a moment
    fixed: Mapping[str, Any] = field(default_factory=dict)  # config fields set here
    replaced: tuple[str, ...] | None = None  # what the input layer replaces; None: the table of tokens
    positions: str | None = None  # the table of positions; None: has none
    first_position: int = 0  # row of the first token's position
    new_positions: bool = False  # a table of ours, which starts from zeros where the rest is pretrained
    prepare: Callable[[Any, int], None] | None = None  # model, tokens: other changes, before our layers go in
    initial_value: Callable[..., Tensor] | None = None  # random values, where the rules are not GPT-2's
    first_attention: str | None = None  # the module that returns attention weights second, below a last layer
    whole: Callable[[Any], nn.Module] = AutoModel.from_config  # config -> the model that its authors published
    load: Callable[..., Any] = AutoModel.from_pretrained  # a folder -> the pretrained model, `output_loading_info`

    @property
    def has_table(self) -> bool:
        """Whether the library's model has a table of positions, of a length that its config sets."""
        return self.positions is not None and not self.new_positions

    def configuration(self, entry: Backbone, **fields: Any) -> Any:
        """The library's config of `entry`; SpecError for a field of its row that the config does not have."""
        given = dict(entry.config)
        kind = self.config or _config_class(given.pop("model_type", ""))
        known = {*signature(kind).parameters, *getattr(kind, "attribute_map", {})}
        for name in given:
            check_known("config field", name, known, f"of {entry.title or entry.family!r}")
        return kind(**{**given, "num_hidden_layers": entry.layers, **NO_SPECIAL_TOKENS, **fields})

    def build(self, entry: Backbone, tokens: int, layers: int = 0, **options: Any) -> Any:
        """The library's model with `tokens` rows of positions and the first `layers` layers (0: all), untrained values.

        Our layers are inside, and what the input layer replaces is not. Other options are fields of the config.
        """
        sizes = {"num_hidden_layers": layers or entry.layers, "vocab_size": 1, "use_cache": False}
        sizes |= {"max_position_embeddings": tokens} if self.has_table else {}
        config = self.configuration(entry, **{**self.fixed, **sizes, **options})
        config._attn_implementation = "fpt"
        model = self.model(config)
        for path in token_tables(model) if self.replaced is None else self.replaced:
            parent, _, name = path.rpartition(".")
            delattr(model.get_submodule(parent), name)
        if self.prepare:
            self.prepare(model, tokens)
        replace_layers(model)
        return model

    def group_of(self, model: nn.Module, name: str) -> str:
        """The group of parameter `name` of `model`; SpecError where no class around it is in `classes`."""
        modules = name.split(".")[:-1]
        around = [type(model.get_submodule(".".join(modules[: n + 1]))).__name__ for n in range(len(modules))]
        for pattern, group in self.classes:
            if any(re.search(pattern, kind) for kind in around):
                return group
        raise SpecError(
            f"parameter {name!r} of {type(model).__name__} is in no group: none of the classes around it "
            f"({', '.join(around)}) fits {', '.join(pattern for pattern, _ in self.classes)}; "
            "give its family a module in fpt/models/families with `classes` that name it"
        )


def token_tables(model: Any) -> list[str]:
    """Where the model's table of token embeddings is."""
    table = model.get_input_embeddings()
    return [path for path, module in model.named_modules() if module is table]


def _config_class(model_type: str) -> Callable[..., Any]:
    check_known("model_type", model_type, CONFIG_MAPPING, "config of a backbone of the family 'library'")
    kind: Callable[..., Any] = CONFIG_MAPPING[model_type]
    return kind


FAMILY = Family(
    tiny={
        "hidden_size": 16,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "intermediate_size": 32,
        "vocab_size": 11,
    }
)
