"""Library models, prepared for transfer: no token table, a position table of the task's length, our layers inside.

The architectures are the transformers library's own; this file only removes what the input layer replaces, and runs
the last block for the read-out positions alone. Parity with the library's forward is tested.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoModel, BertConfig, BertModel, GPT2Config, GPT2Model, PretrainedConfig
from transformers.utils import logging as library_logging

from fpt.errors import WeightsError
from fpt.models import BACKBONES, lstm
from fpt.models.layers import attention, replace_layers
from fpt.models.weights import fetch


def causal_mask(hidden: Tensor, lengths: Tensor | None) -> Tensor:
    """(1, 1, tokens, tokens), 0 or the most negative float: right padding cannot reach a causal model's real tokens."""
    tokens = hidden.shape[1]
    lowest = torch.finfo(hidden.dtype).min
    return torch.full((tokens, tokens), lowest, dtype=hidden.dtype, device=hidden.device).triu(1)[None, None]


def padding_mask(hidden: Tensor, lengths: Tensor | None) -> Tensor | None:
    """(batch, 1, 1, tokens) hiding what lies at or beyond each length; None where nothing is padded."""
    if lengths is None:
        return None
    padded = torch.arange(hidden.shape[1], device=hidden.device) >= lengths[:, None]
    return (padded * torch.finfo(hidden.dtype).min)[:, None, None]


Rows = Callable[[Tensor], Tensor]  # (batch, tokens, ...) -> (batch, read-out positions, ...)


def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, heads: int) -> Tensor:
    """Attention of (batch, rows, width) over (batch, tokens, width): (batch, rows, width)."""
    query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value))
    return attention(module, query, key, value, mask, module.scaling)[0].flatten(2)


def run_gpt2(model: Any, embedded: Tensor, mask: Tensor, rows: Rows) -> Tensor:
    """GPT2Model.forward, whose last block computes only what is read out."""
    *blocks, last = model.h
    hidden = model.drop(embedded + model.wpe.weight)
    for block in blocks:
        hidden = block(hidden, attention_mask=mask)
    query, key, value = last.attn.c_attn(last.ln_1(hidden)).chunk(3, dim=-1)
    mask = rows(mask[:, 0].expand(len(hidden), -1, -1))[:, None]
    attended = attend(last.attn, rows(query), key, value, mask, last.attn.num_heads)
    hidden = rows(hidden) + last.attn.resid_dropout(last.attn.c_proj(attended))
    result: Tensor = model.ln_f(hidden + last.mlp(last.ln_2(hidden)))
    return result


def run_bert(model: Any, embedded: Tensor, mask: Tensor | None, rows: Rows) -> Tensor:
    """BertModel.forward without pooler, whose last layer computes only what is read out."""
    *layers, last = model.encoder.layer
    hidden = model.embeddings(inputs_embeds=embedded)
    for layer in layers:
        hidden = layer(hidden, mask)
    read, inner = rows(hidden), last.attention.self
    attended = attend(inner, inner.query(read), inner.key(hidden), inner.value(hidden), mask, inner.num_attention_heads)
    read = last.attention.output(attended, read)
    result: Tensor = last.output(last.intermediate(read), read)
    return result


@dataclass(frozen=True)
class Family:
    """What differs between architectures; one row of FAMILIES each."""

    config: type[PretrainedConfig]
    model: Callable[[Any], nn.Module]
    depth: str  # config field: number of layers
    context: str  # config field: rows of the position table
    positions: str  # parameter name of the position table, inside the library model
    tokens: str  # module of the token table that the input layer replaces; empty: there is none
    mask: Callable[[Tensor, Tensor | None], Tensor | None]
    run: Callable[[Any, Tensor, Any, Rows], Tensor]  # model, embedded, mask, rows -> hidden at the read-out positions
    fixed: dict[str, Any]  # config fields set here
    initial_value: Callable[..., Tensor] | None = None  # random values, where the rules are not GPT-2's


FAMILIES = {
    "gpt2": Family(
        GPT2Config,
        GPT2Model,
        "n_layer",
        "n_positions",
        "wpe.weight",
        "wte",
        causal_mask,
        run_gpt2,
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
        run_bert,
        {"use_cache": False},
    ),
    "lstm": Family(
        lstm.LSTMConfig,
        lstm.LSTM,
        "layers",
        "tokens",
        "positions.weight",
        "",
        lstm.no_mask,
        lstm.run_lstm,
        {},
        lstm.initial_value,
    ),
}


# The library's defaults name ids of GPT-2's own vocabulary; a model that reads no ids has none.
NO_SPECIAL_TOKENS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


def library_model(backbone: str, tokens: int, layers: int = 0, **options: Any) -> nn.Module:
    """The library's model with `tokens` rows of positions and the first `layers` layers (0: all), untrained values.

    Other options of the backbone are fields of its config.
    """
    entry = BACKBONES[backbone]
    family = FAMILIES[entry.family]
    sizes = {family.depth: layers or entry.layers, family.context: tokens, "vocab_size": 1, **options}
    config = family.config(**{**entry.config, **family.fixed, **NO_SPECIAL_TOKENS, **sizes})
    config._attn_implementation = "fpt"
    model = family.model(config)
    parent, _, name = family.tokens.rpartition(".")
    if name:
        delattr(model.get_submodule(parent), name)
    replace_layers(model)
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
    if not family.tokens:
        return {}
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
