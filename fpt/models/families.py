"""Families of backbones: the library's classes, what transfer takes out of them, and how their blocks run.

A run function is the library's own forward pass from embeddings on, whose last block computes only what is read out.
Parity with the library's forward is tested for each of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, BertConfig, BertModel, GPT2Config, GPT2Model

from fpt.models.layers import attention


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


def split_heads(part: Tensor, heads: int) -> Tensor:
    """(batch, rows, width) -> (batch, heads, rows, width of a head)."""
    parts: Tensor = part.unflatten(-1, (heads, -1))
    return parts.transpose(1, 2)


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, heads: int, **more: Any
) -> Tensor:
    """Attention of (batch, rows, width) over (batch, tokens, width): (batch, rows, width)."""
    query, key, value = (split_heads(part, heads) for part in (query, key, value))
    return attention(module, query, key, value, mask, module.scaling, **more)[0].flatten(2)


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


def finish_bert(layer: Any, attended: Tensor, hidden: Tensor) -> Tensor:
    """What follows attention in a layer of BERT's kind, for the rows that are given."""
    hidden = layer.attention.output(attended, hidden)
    result: Tensor = layer.output(layer.intermediate(hidden), hidden)
    return result


def run_bert(model: Any, embedded: Tensor, mask: Tensor | None, rows: Rows) -> Tensor:
    """BertModel.forward without pooler, whose last layer computes only what is read out."""
    *layers, last = model.encoder.layer
    hidden = model.embeddings(inputs_embeds=embedded)
    for layer in layers:
        hidden = layer(hidden, mask)
    read, inner = rows(hidden), last.attention.self
    attended = attend(inner, inner.query(read), inner.key(hidden), inner.value(hidden), mask, inner.num_attention_heads)
    return finish_bert(last, attended, read)


@dataclass(frozen=True, kw_only=True)
class Family:
    """What differs between architectures; one row of FAMILIES each.

    A family may have no position table, and its config no attention heads.
    """

    config: Callable[..., Any]  # the library's config class, or one like it: `hidden_size`, maybe heads
    model: Callable[[Any], nn.Module]  # config -> the part of the library's model that is used
    depth: str  # config field: number of layers
    mask: Callable[[Tensor, Tensor | None], Tensor | None]  # embedded, lengths -> what `run` takes
    run: Callable[[Any, Tensor, Any, Rows], Tensor]  # model, embedded, mask, rows -> hidden at the read-out positions
    replaced: tuple[str, ...]  # modules and parameters that `model` has and the input layer replaces
    unused: tuple[str, ...]  # the same of `whole`, and everything else that is not in `model`
    fixed: dict[str, Any] = field(default_factory=dict)  # config fields set here
    context: str | None = None  # config field: rows of the position table
    positions: str | None = None  # parameter name of the position table, inside the library model; None: has none
    first_position: int = 0  # row of the first token's position
    new_positions: bool = False  # a table of ours, which starts from zeros where the rest is pretrained
    prepare: Callable[[Any, int], None] | None = None  # model, tokens: other changes, before our layers go in
    reach: Callable[[Any, int], int] = lambda config, tokens: tokens  # how many tokens one attends to
    whole: Callable[[Any], nn.Module] = AutoModel.from_config  # config -> the model that its authors published
    load: Callable[..., Any] = AutoModel.from_pretrained  # a folder -> the pretrained model, `output_loading_info`


BERT_REPLACED = ("embeddings.word_embeddings",)

FAMILIES = {
    "gpt2": Family(
        config=GPT2Config,
        model=GPT2Model,
        depth="n_layer",
        mask=causal_mask,
        run=run_gpt2,
        replaced=("wte",),
        unused=("wte",),
        # gelu_pytorch_tanh is gelu_new in one kernel
        fixed={"activation_function": "gelu_pytorch_tanh", "use_cache": False, "vocab_size": 1},
        context="n_positions",
        positions="wpe.weight",
    ),
    "bert": Family(
        config=BertConfig,
        model=lambda config: BertModel(config, add_pooling_layer=False),
        depth="num_hidden_layers",
        mask=padding_mask,
        run=run_bert,
        replaced=BERT_REPLACED,
        unused=(*BERT_REPLACED, "pooler"),
        fixed={"use_cache": False, "vocab_size": 1},
        context="max_position_embeddings",
        positions="embeddings.position_embeddings.weight",
    ),
}
