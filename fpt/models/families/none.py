"""No backbone: the mean over the tokens of an example goes to the output layer, the same at every read-out position."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from fpt.models.families.library import Family, Rows


class MeanConfig(PretrainedConfig):
    """The width of the input layer, under the names of the library's models."""

    model_type = "mean"
    num_attention_heads = 0

    def __init__(self, width: int = 128, num_hidden_layers: int = 1, **library: Any) -> None:
        super().__init__(**library)
        self.hidden_size, self.num_hidden_layers = width, num_hidden_layers


class Mean(nn.Module):
    """Without parameters."""

    def __init__(self, config: MeanConfig) -> None:
        super().__init__()
        self.config = config


def forward(model: Mean, embedded: Tensor, lengths: Tensor | None, rows: Rows) -> Tensor:
    """The mean over the real tokens of (batch, tokens, width): (batch, read-out positions, width).

    A sum over products, where layers.mean_over multiplies matrices: its last bits differ, and so would published runs.
    """
    if lengths is None:
        mean = embedded.mean(1, keepdim=True)
    else:
        real = torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
        mean = (embedded * real[:, :, None]).sum(1, keepdim=True) / lengths[:, None, None]
    return rows(mean.expand_as(embedded))


FAMILY = Family(config=MeanConfig, model=Mean, forward=forward, needs_fpt=True, tiny={"width": 16})
