"""Longformer: BERT's layers, whose tokens attend to a window around them."""

from typing import Any

import torch
from torch import Tensor
from transformers import LongformerConfig

from fpt.models.families import bert
from fpt.models.families.library import Family, Rows
from fpt.models.layers import attend, padding_mask


def band_mask(hidden: Tensor, window: int, lengths: Tensor | None) -> Tensor:
    """(batch or 1, 1, tokens, tokens), the most negative float for padding and beyond `window` tokens on either side.

    The least of both masks, not their sum: that could be minus infinity, and a row of it NaN.
    """
    places, padding = torch.arange(hidden.shape[1], device=hidden.device), padding_mask(hidden, lengths)
    outside = (places[:, None] - places).abs() > window
    band = (outside * torch.finfo(hidden.dtype).min)[None, None]
    return band if padding is None else torch.minimum(band, padding)


# The library's forward asks whether any token attends globally (vmap allows no such question), pads every sequence to
# whole windows, and drops attention out from the global generator.
def forward(model: Any, embedded: Tensor, lengths: Tensor | None, rows: Rows) -> Tensor:
    """The library's forward pass without global attention, whose projections are never used."""
    tables = model.embeddings
    embedded = embedded + tables.position_embeddings.weight + tables.token_type_embeddings.weight[0]
    hidden = tables.dropout(tables.LayerNorm(embedded))
    for layer in model.encoder.layer:
        inner = layer.attention.self
        mask = band_mask(embedded, inner.one_sided_attn_window_size, lengths)
        attended = attend(inner, inner.query(hidden), inner.key(hidden), inner.value(hidden), mask, inner.num_heads)
        hidden = bert.finish(layer, attended, hidden)
    return rows(hidden)


FAMILY = Family(
    config=LongformerConfig,
    forward=forward,
    positions=bert.FAMILY.positions,
    rows_before=2,  # as in RoBERTa: the padding token has id 1, and positions count from the next one
    tiny={**bert.FAMILY.tiny, "max_position_embeddings": 26, "attention_window": 8, "vocab_size": 11},
    needs_fpt=True,
)
