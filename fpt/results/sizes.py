"""Parameter counts and shapes of models, and the spread of pretrained weights (Lu et al. 2021, section 3.8)."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from fpt.models import backbone as lookup
from fpt.models import build
from fpt.models.families import layer_of
from fpt.models.weights import local_folder, pretrained_state
from fpt.tasks import load

SIZES = {"small": "gpt2", "medium": "gpt2-medium", "large": "gpt2-large", "XL": "gpt2-xl"}
DEFAULT_STD = 0.02
LSTM = {"layers": 12, "residual": True, "positions": True}


@cache
def _template(backbone: str, **options: Any) -> Any:
    """A frozen model on 64 tokens of 16 numbers and 10 classes (the paper's CIFAR-10); its tensors have shapes and no
    memory. Its groups leave out masks, poolers and the tables that the input layer replaces."""
    import torch

    task = replace(load("digits"), encode=lambda inputs, generator=None: torch.zeros(len(inputs), 64, 16))
    with torch.device("meta"):
        return build(task, backbone=backbone, init="random", **options)


@cache
def counts(backbone: str, **options: Any) -> pd.DataFrame:
    """Parameters by group, and how many of them train."""
    report: pd.DataFrame = _template(backbone, **options).report()
    return report


def by_formula(backbone: str) -> dict[str, int]:
    """What trains, by the paper's formula: no final layer norm, no bias of the output layer."""
    live, width = counts(backbone)["trainable"], shape(backbone)[1]
    counted = {"output": 10 * width, "input": live["input"], "layer_norm": live["layer_norm"] - 2 * width}
    return {group: int(count) for group, count in {**counted, "positions": live["positions"]}.items()}


def library_total(backbone: str) -> int:
    """All parameters of the library's model: without our input and output layers, with what these replace."""
    return int(counts(backbone).drop(index=["input", "output"]).to_numpy().sum())


def lstm_parameters() -> dict[str, int]:
    """How many parameters train in a frozen 12-layer LSTM with residual connections and positions."""
    return {name: int(counts(name, **LSTM)["trainable"].sum()) for name in ("lstm", "lstm-released")}


def spread(backbone: str) -> pd.DataFrame:
    """Standard deviation of the pretrained attention and feed-forward weights and biases by layer; no rows where the
    weights are not on this machine. Nothing is downloaded."""
    model = lookup(backbone)
    if local_folder(model) is None:
        return pd.DataFrame()
    groups = _template(backbone).groups
    values: dict[tuple[int | None, str, str], list[Any]] = {}
    for name, tensor in pretrained_state(model).items():
        if (group := groups.get(f"backbone.{name}")) in ("attention", "feed_forward"):
            values.setdefault((layer_of(name), group, name.rpartition(".")[2]), []).append(tensor.double().ravel())
    rows = [(*place, float(np.concatenate(parts).std())) for place, parts in values.items()]
    found = pd.DataFrame(rows, columns=["layer", "group", "kind", "std"])
    return found.sort_values(["layer", "group", "kind"], ignore_index=True)


def shape(backbone: str) -> tuple[int, int, int]:
    """(layers, width, heads), the library's defaults filled in."""
    from transformers import AutoConfig

    entry = lookup(backbone)
    config = AutoConfig.for_model(entry.family, **{k: v for k, v in entry.config.items() if k != "vocab_size"})
    return int(entry.layers), int(config.hidden_size), int(config.num_attention_heads)
