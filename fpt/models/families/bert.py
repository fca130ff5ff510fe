"""BERT, bidirectional. A forward pass of ours: a last layer that computes only what is read out is measured to pay."""

from typing import Any

from torch import Tensor
from transformers import BertConfig

from fpt.models.families.library import Family, Rows
from fpt.models.layers import attend, padding_mask


def finish(layer: Any, attended: Tensor, hidden: Tensor) -> Tensor:
    """What follows attention in a layer of BERT's kind, for the rows that are given."""
    hidden = layer.attention.output(attended, hidden)
    result: Tensor = layer.output(layer.intermediate(hidden), hidden)
    return result


def forward(model: Any, embedded: Tensor, lengths: Tensor | None, rows: Rows) -> Tensor:
    """The library's forward pass, whose last layer computes only what is read out."""
    *layers, last = model.encoder.layer
    mask, hidden = padding_mask(embedded, lengths), model.embeddings(inputs_embeds=embedded)
    for layer in layers:
        hidden = layer(hidden, mask)
    read, inner = rows(hidden), last.attention.self
    attended = attend(inner, inner.query(read), inner.key(hidden), inner.value(hidden), mask, inner.num_attention_heads)
    return finish(last, attended, read)


FAMILY = Family(
    config=BertConfig,
    forward=forward,
    positions="embeddings.position_embeddings.weight",
    symbol_table="embeddings.word_embeddings.weight",
    first_attention="encoder.layer.0.attention.self",
    tiny={"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 24},
)
