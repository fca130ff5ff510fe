"""Library models, prepared for transfer: no token table, a position table of the task's length, explicit matmuls.

The architectures are the transformers library's own; this file only removes what the input layer replaces and makes
precision explicit. Parity with the library's forward is tested.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import AutoModel, BertConfig, BertModel, GPT2Config, GPT2Model, PretrainedConfig
from transformers.pytorch_utils import Conv1D
from transformers.utils import logging as library_logging

from fpt.errors import WeightsError
from fpt.models import BACKBONES
from fpt.models.weights import fetch


class Projection(nn.Module):
    """`x @ weight + bias` with the product in `compute_type`, its bias and result in the type of `x` (float32).

    Replaces the library's Linear (weight (out, in)) and Conv1D (weight (in, out)); parameter names stay the same.
    """

    def __init__(self, weight: Tensor, bias: Tensor, transposed: bool) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias
        self.transposed = transposed  # Conv1D keeps (in, out)
        self.compute_type = torch.float32

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.t() if self.transposed else self.weight
        product = linear(x.to(self.compute_type), weight.to(self.compute_type))
        return product.to(x.dtype) + self.bias


def explicit_projections(module: nn.Module) -> None:
    """Replace every Linear and Conv1D below `module` by a Projection with the same parameters."""
    for name, child in module.named_children():
        if isinstance(child, Conv1D | nn.Linear):
            setattr(module, name, Projection(child.weight, child.bias, transposed=isinstance(child, Conv1D)))
        else:
            explicit_projections(child)


def causal_mask(hidden: Tensor, lengths: Tensor | None) -> Tensor:
    """(1, 1, tokens, tokens), 0 or the most negative float: right padding cannot reach a causal model's real tokens."""
    tokens = hidden.shape[1]
    return torch.full((tokens, tokens), torch.finfo(hidden.dtype).min, device=hidden.device).triu(1)[None, None]


def padding_mask(hidden: Tensor, lengths: Tensor | None) -> Tensor | None:
    """(batch, 1, 1, tokens) hiding what lies at or beyond each length; None where nothing is padded."""
    if lengths is None:
        return None
    padded = torch.arange(hidden.shape[1], device=hidden.device) >= lengths[:, None]
    return (padded * torch.finfo(hidden.dtype).min)[:, None, None]


@dataclass(frozen=True)
class Family:
    """What differs between architectures; one row of FAMILIES each."""

    config: type[PretrainedConfig]
    model: Callable[[Any], nn.Module]
    depth: str  # config field: number of layers
    context: str  # config field: rows of the position table
    positions: str  # parameter name of the position table, inside the library model
    tokens: str  # module of the token table that the input layer replaces
    mask: Callable[[Tensor, Tensor | None], Tensor | None]
    fixed: dict[str, Any]  # config fields set here


FAMILIES = {
    "gpt2": Family(
        GPT2Config,
        GPT2Model,
        "n_layer",
        "n_positions",
        "wpe.weight",
        "wte",
        causal_mask,
        # gelu_pytorch_tanh is gelu_new in one kernel
        {"activation_function": "gelu_pytorch_tanh", "use_cache": False},
    ),
    "bert": Family(
        BertConfig,
        lambda config: BertModel(config, add_pooling_layer=False),
        "num_hidden_layers",
        "max_position_embeddings",
        "embeddings.position_embeddings.weight",
        "embeddings.word_embeddings",
        padding_mask,
        {"use_cache": False},
    ),
}


# The library's defaults name ids of GPT-2's own vocabulary; a model that reads no ids has none.
NO_SPECIAL_TOKENS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def library_model(backbone: str, tokens: int, layers: int = 0) -> nn.Module:
    """The library's model with `tokens` rows of positions and the first `layers` layers (0: all), untrained values.

    Attention is eager: the fused kernel has no batching rule for vmap in eval mode on the CPU.
    """
    entry = BACKBONES[backbone]
    family = FAMILIES[entry.family]
    sizes = {family.depth: layers or entry.layers, family.context: tokens, "vocab_size": 1}
    config = family.config(**{**entry.config, **family.fixed, **NO_SPECIAL_TOKENS, **sizes})
    config._attn_implementation = "eager"
    model = family.model(config)
    parent, _, name = family.tokens.rpartition(".")
    delattr(model.get_submodule(parent), name)
    explicit_projections(model)
    return model


def pretrained_state(backbone: str) -> dict[str, Tensor]:
    """The pretrained weights as float32, under the library's names; raises WeightsError where there are none."""
    folder = fetch(backbone)
    try:
        with quiet_library():
            model = AutoModel.from_pretrained(folder, dtype=torch.float32, use_safetensors=True)
    except (OSError, ValueError, LookupError, RuntimeError, SafetensorError) as error:
        raise WeightsError(f"the weights of backbone {backbone!r} in {folder} cannot be read: {error}") from error
    return dict(model.state_dict())


@contextmanager
def quiet_library() -> Iterator[None]:
    """No progress bar or advice on the library's part while a model loads; errors still show."""
    level, bars = library_logging.get_verbosity(), library_logging.is_progress_bar_enabled()
    library_logging.set_verbosity_error()
    library_logging.disable_progress_bar()
    try:
        yield
    finally:
        library_logging.set_verbosity(level)
        if bars:
            library_logging.enable_progress_bar()


def unused_parameters(backbone: str, tokens: int, layers: int) -> dict[str, int]:
    """Parameters of the full library model that transfer never uses: {what: count}, counted on the meta device."""
    entry = BACKBONES[backbone]
    family = FAMILIES[entry.family]
    with torch.device("meta"):
        model: Any = AutoModel.from_config(family.config(**{**entry.config, **NO_SPECIAL_TOKENS}))
    counts = {family.tokens: model.get_submodule(family.tokens).weight.numel()}
    if hasattr(model, "pooler"):
        counts["pooler"] = sum([parameter.numel() for parameter in model.pooler.parameters()])
    rows, width = model.get_parameter(family.positions).shape
    counts["positions beyond the task's tokens"] = max(0, rows - tokens) * width
    if layers < entry.layers:
        blocks = next(child for child in model.modules() if isinstance(child, nn.ModuleList))
        counts["layers beyond the first"] = sum([p.numel() for block in blocks[layers:] for p in block.parameters()])
    return counts
