"""ViT, without patches and CLS token: a token is whatever the task's input layer makes of it."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import ViTConfig

from fpt.models.families.library import Family, Rows
from fpt.models.layers import padding_mask


def prepare(model: Any, tokens: int) -> None:
    """A position table of our own: the library's is for a grid of patches and a CLS token, and no token is one."""
    del model.embeddings.cls_token
    model.embeddings.position_embeddings = nn.Parameter(torch.zeros(tokens, model.config.hidden_size))


def forward(model: Any, embedded: Tensor, lengths: Tensor | None, rows: Rows) -> Tensor:
    """The library's forward pass from its embeddings on: it takes pixels, and no embeddings."""
    mask = padding_mask(embedded, lengths)
    hidden = model.embeddings.dropout(embedded + model.embeddings.position_embeddings)
    for layer in model.layers:
        hidden = layer(hidden, mask)
    return rows(model.layernorm(hidden))


FAMILY = Family(
    config=ViTConfig,
    forward=forward,
    positions="embeddings.position_embeddings",
    new_positions=True,
    prepare=prepare,
    needs_fpt=True,
    tiny={"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "image_size": 8, "patch_size": 4},
)
