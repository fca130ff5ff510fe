"""GPT-2, causal. A forward pass of ours: a last block that computes only what is read out is measured to pay."""

from typing import Any

import torch
from torch import Tensor
from transformers import GPT2Config

from fpt.models.families.library import Family, Rows
from fpt.models.layers import attend


def causal_mask(hidden: Tensor) -> Tensor:
    """(1, 1, tokens, tokens), 0 or the most negative float: right padding cannot reach a causal model's real tokens."""
    tokens = hidden.shape[1]
    lowest = torch.finfo(hidden.dtype).min
    return torch.full((tokens, tokens), lowest, dtype=hidden.dtype, device=hidden.device).triu(1)[None, None]


def forward(model: Any, embedded: Tensor, lengths: Tensor | None, rows: Rows) -> Tensor:
    """The library's forward pass, whose last block computes only what is read out."""
    *blocks, last = model.h
    mask, hidden = causal_mask(embedded), model.drop(embedded + model.wpe.weight[: embedded.shape[1]])
    for block in blocks:
        hidden = block(hidden, attention_mask=mask)
    query, key, value = last.attn.c_attn(last.ln_1(hidden)).chunk(3, dim=-1)
    mask = rows(mask[:, 0].expand(len(hidden), -1, -1))[:, None]
    attended = attend(last.attn, rows(query), key, value, mask, last.attn.num_heads)
    hidden = rows(hidden) + last.attn.resid_dropout(last.attn.c_proj(attended))
    result: Tensor = model.ln_f(hidden + last.mlp(last.ln_2(hidden)))
    return result


FAMILY = Family(
    config=GPT2Config,
    forward=forward,
    fixed={"activation_function": "gelu_pytorch_tanh"},  # gelu_new in one kernel
    positions="wpe.weight",
    symbol_table="wte.weight",
    first_attention="h.0.attn",
    tiny={"n_embd": 16, "n_head": 2, "n_positions": 24, "vocab_size": 11},
)
