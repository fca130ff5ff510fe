"""Parameter counts and shapes of models, and the spread of pretrained weights (Lu et al. 2021, section 3.8)."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from fpt.models import backbone as lookup
from fpt.models.families import layer_of
from fpt.models.weights import local_folder, pretrained_state
from fpt.papers import claim

SIZES = {"small": "gpt2", "medium": "gpt2-medium", "large": "gpt2-large", "XL": "gpt2-xl"}
DEFAULT_STD, REFERENCE_WIDTH = 0.02, 768
LSTM = {"layers": 12, "residual": True, "positions": True}


@cache
def _template(backbone: str, **options: Any) -> Any:
    """A frozen model on 64 tokens of 16 numbers and 10 classes (the paper's CIFAR-10); its tensors have shapes and no
    memory. Its groups leave out masks, poolers and the tables that the input layer replaces."""
    import torch

    from fpt.models import build
    from fpt.tasks import load

    task = replace(load("digits"), tokens=64, width=16, classes=10)
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


def trained_as_printed(backbone: str) -> int:
    return sum(by_formula(backbone).values())


def library_total(backbone: str) -> int:
    """All parameters of the library's model: without our input and output layers, with what these replace."""
    return int(counts(backbone).drop(index=["input", "output"]).to_numpy().sum())


def parameter_table() -> pd.DataFrame:
    """GPT-2 base on CIFAR-10, group by group: printed in section 2.2, and counted on the live model."""
    printed, live, formula = claim("L-30").numbers, counts("gpt2")["trainable"], by_formula("gpt2")
    notes = {
        "output": "printed without the bias",
        "input": "printed with the bias: 17 times the width",
        "layer_norm": f"two digits transposed; {formula['layer_norm']:,} without the final layer norm",
        "positions": "two digits transposed",
    }
    rows = [(group.replace("_", " "), f"{printed[group]:,}", f"{live[group]:,}", note) for group, note in notes.items()]
    total = sum(printed[group] for group in notes)
    rows.append(("all", f"{total:,}", f"{int(live.sum()):,}", f"{sum(formula.values()):,} by the formula"))
    for name, backbone, key in (("the model", "gpt2", "percent_base"), ("XL", "gpt2-xl", "percent_xl")):
        share = trained_as_printed(backbone) / library_total(backbone)
        rows.append((f"share of {name}", f"{printed[key]}%", f"{share:.3%}", "by the formula"))
    return pd.DataFrame(rows, columns=["group", "printed", "counted", "note"])


def size_table() -> pd.DataFrame:
    """Tables 8 and 22: layers, width, heads and parameters, printed and of the live models."""
    shapes, sizes = claim("L-50").numbers, claim("L-29").numbers
    table = pd.DataFrame({"model": list(shapes)})
    backbones = [SIZES[size] for size in shapes]
    table["layers, width, heads (paper)"] = [", ".join(map(str, printed)) for printed in shapes.values()]
    table["layers, width, heads"] = [", ".join(map(str, shape(backbone))) for backbone in backbones]
    table["parameters (paper)"] = [f"{millions}M" for millions in sizes["total_M"]]
    table["parameters"] = [f"{library_total(backbone) / 1e6:.1f}M" for backbone in backbones]
    table["trained (paper)"] = [f"{thousands}K" for thousands in sizes["trained_K"]]
    table["trained by the formula"] = [f"{trained_as_printed(backbone):,}" for backbone in backbones]
    table["trained"] = [f"{int(counts(backbone)['trainable'].sum()):,}" for backbone in backbones]
    return table


def lstm_parameters() -> dict[str, int]:
    """How many parameters train in a frozen 12-layer LSTM with residual connections and positions."""
    return {name: int(counts(name, **LSTM)["trainable"].sum()) for name in ("lstm", "lstm-released")}


def matched_std(backbone: str) -> float:
    """The default standard deviation of GPT-2's weights, matched to the width of the backbone."""
    return float(DEFAULT_STD * (REFERENCE_WIDTH / shape(backbone)[1]) ** 0.5)


def lstm_table() -> pd.DataFrame:
    """L-19: parameters that train in the frozen transformer and in the frozen 12-layer LSTMs."""
    base = int(counts("gpt2")["trainable"].sum())
    rows = [{"model": "GPT-2, 12 layers", "trained": f"{base:,}", "ratio": ""}]
    for backbone, trained in lstm_parameters().items():
        rows.append({"model": f"{backbone}, 12 layers", "trained": f"{trained:,}", "ratio": f"{trained / base:.2f}"})
    return pd.DataFrame(rows)


def spread(backbone: str) -> pd.DataFrame:
    """Standard deviation of the pretrained attention and feed-forward weights and biases by layer; no rows where the
    weights are not on this machine. Nothing is downloaded."""
    if local_folder(backbone) is None:
        return pd.DataFrame()
    groups = _template(backbone).groups
    values: dict[tuple[int | None, str, str], list[Any]] = {}
    for name, tensor in pretrained_state(backbone).items():
        if (group := groups.get(f"backbone.{name}")) in ("attention", "feed_forward"):
            values.setdefault((layer_of(name), group, name.rpartition(".")[2]), []).append(tensor.double().ravel())
    rows = [(*place, float(np.concatenate(parts).std())) for place, parts in values.items()]
    return pd.DataFrame(rows, columns=["layer", "group", "kind", "std"]).sort_values(
        ["layer", "group", "kind"], ignore_index=True
    )


def shape(backbone: str) -> tuple[int, int, int]:
    """(layers, width, heads), the library's defaults filled in."""
    from transformers import AutoConfig

    entry = lookup(backbone)
    config = AutoConfig.for_model(entry.family, **{k: v for k, v in entry.config.items() if k != "vocab_size"})
    return int(entry.layers), int(config.hidden_size), int(config.num_attention_heads)
