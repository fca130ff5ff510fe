"""How the blocks of each family run: the library's own forward pass, from embeddings on and to what is read out.

Everywhere the last block computes only what is read out. Parity with the library's forward is tested for each family.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

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


def run_t5(model: Any, embedded: Tensor, mask: Tensor | None, rows: Rows) -> Tensor:
    """T5Stack.forward of the encoder, whose last block computes only what is read out."""
    *blocks, last = model.encoder.block
    hidden, tokens = model.encoder.dropout(embedded), embedded.shape[1]
    bias = model.encoder.block[0].layer[0].SelfAttention.compute_bias(tokens, tokens)  # the first block's serves all
    for block in blocks:
        hidden, *_ = block(hidden, mask, bias)
    attending, feed_forward = last.layer
    inner, normed = attending.SelfAttention, attending.layer_norm(hidden)
    bias = rows(bias.transpose(1, 2).expand(len(hidden), -1, -1, -1)).transpose(1, 2)
    query, key, value = inner.q(rows(normed)), inner.k(normed), inner.v(normed)
    attended = attend(inner, query, key, value, mask, inner.n_heads, position_bias=bias)
    read = feed_forward(rows(hidden) + attending.dropout(inner.o(attended)))
    result: Tensor = model.encoder.dropout(model.encoder.final_layer_norm(read))
    return result


def hide_outside(queries: Tensor, keys: Tensor, window: int, mask: Tensor | None, hidden: Tensor) -> Tensor:
    """`mask`, and the most negative float where a key is more than `window` positions from a query.

    queries (..., rows) and keys (..., tokens), positions -> (..., rows, tokens). The least of both, not their sum:
    that could be minus infinity, and a row of it NaN.
    """
    outside = (queries[..., :, None] - keys[..., None, :]).abs() > window
    band = outside * torch.finfo(hidden.dtype).min
    return band if mask is None else torch.minimum(band, mask)


def window_attend(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Longformer's attention, of every token over those at most half a window away: (batch, tokens, width).

    mask as padding_mask gives it. Three half windows of tokens, or fewer, are one product as in other models; more
    are blocks of half a window that each attend to themselves and the two beside them, the last one padded.
    """
    (batch, tokens, _), window = query.shape, module.one_sided_attn_window_size
    places = torch.arange(tokens, device=query.device)
    if tokens <= 3 * window:
        hidden = hide_outside(places, places, window, mask, query)
        hidden = hidden if hidden.dim() == 4 else hidden[None, None]
        return attend(module, query, key, value, hidden, module.num_heads)
    blocks = -(-tokens // window)
    missing = blocks * window - tokens

    def around(part: Tensor, fill: float = 0.0) -> Tensor:
        """(n, tokens, width) -> (n * blocks, 3 * window, width): each block with its neighbours."""
        some = pad(part, (0, 0, window, missing + window), value=fill).unflatten(1, (blocks + 2, window))
        return torch.cat([some[:, :-2], some[:, 1:-1], some[:, 2:]], dim=2).flatten(0, 1)

    query = pad(query, (0, 0, 0, missing)).unflatten(1, (blocks, window)).flatten(0, 1)
    lowest = torch.finfo(query.dtype).min
    shown = query.new_zeros(1, tokens, 1) if mask is None else mask[:, 0, 0, :, None]
    shown = around(shown, fill=lowest).view(-1, blocks, 1, 3 * window)
    within = torch.arange(3 * window, device=query.device)
    hidden = hide_outside(within[window : 2 * window], within, window, shown, query)
    hidden = hidden.expand(batch, -1, -1, -1).flatten(0, 1)[:, None]
    attended: Any = attend(module, query, around(key), around(value), hidden, module.num_heads)
    result: Tensor = attended.unflatten(0, (batch, blocks)).flatten(1, 2)[:, :tokens]
    return result


def run_longformer(model: Any, embedded: Tensor, mask: Tensor | None, rows: Rows) -> Tensor:
    """LongformerModel.forward without pooler and without global attention, whose last layer computes only what is
    read out. No token attends globally, so the global projections are never used."""
    tables, (*layers, last) = model.embeddings, model.encoder.layer
    embedded = embedded + tables.position_embeddings.weight + tables.token_type_embeddings.weight[0]
    hidden = tables.dropout(tables.LayerNorm(embedded))
    for layer in layers:
        inner = layer.attention.self
        attended = window_attend(inner, inner.query(hidden), inner.key(hidden), inner.value(hidden), mask)
        hidden = finish_bert(layer, attended, hidden)
    read, inner = rows(hidden), last.attention.self
    places = torch.arange(hidden.shape[1], device=hidden.device).expand(len(hidden), 1, -1)
    queries = rows(places.transpose(1, 2)).transpose(1, 2)  # (batch, 1, read-out positions)
    mask = hide_outside(queries, places, inner.one_sided_attn_window_size, mask, hidden)
    attended = attend(inner, inner.query(read), inner.key(hidden), inner.value(hidden), mask, inner.num_heads)
    return finish_bert(last, attended, read)


def run_vit(model: Any, embedded: Tensor, mask: Tensor | None, rows: Rows) -> Tensor:
    """ViTModel.forward without patches, CLS token and pooler, whose last layer computes only what is read out."""
    *layers, last = model.layers
    hidden = model.embeddings.dropout(embedded + model.embeddings.position_embeddings)
    for layer in layers:
        hidden = layer(hidden, mask)
    inner, normed = last.attention, last.layernorm_before(hidden)
    query, key, value = inner.q_proj(rows(normed)), inner.k_proj(normed), inner.v_proj(normed)
    attended = attend(inner, query, key, value, mask, inner.num_attention_heads)
    read = rows(hidden) + last.dropout(inner.o_proj(attended))
    result: Tensor = model.layernorm(read + last.dropout(last.mlp(last.layernorm_after(read))))
    return result
