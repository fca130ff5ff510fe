"""Claims of Lu et al. 2021 that need no training: parameter counts, shapes of models and tokens, spread of weights."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fpt.errors import FptError
from fpt.evidence.claims import CONTRADICTED, SUPPORTED, claim
from fpt.evidence.show.figures import GREY, _nothing
from fpt.models import BACKBONES
from fpt.models.families import layer_of
from fpt.models.weights import cached, local_folder

SIZES = {"small": "gpt2", "medium": "gpt2-medium", "large": "gpt2-large", "XL": "gpt2-xl"}
SPREAD_OF = ("tiny-lm", "minilm", "gpt2")
DEFAULT_STD, REFERENCE_WIDTH = 0.02, 768
LSTM = {"layers": 12, "residual": True, "positions": True}
FROZEN = "by the groups that train; what is attended to still moves with input, positions and layer-norm gains"
CLOSE = 1.2  # "about the same number": within this factor


@cache
def counts(backbone: str, **options: Any) -> pd.DataFrame:
    """Parameters by group of a frozen model on 64 tokens of 16 numbers and 10 classes (the paper's CIFAR-10); the
    tensors have shapes and no memory."""
    import torch

    from fpt.models import build
    from fpt.tasks import load

    task = replace(load("digits"), tokens=64, width=16, classes=10)
    with torch.device("meta"):
        return build(task, backbone=backbone, init="random", **options).report()


def trained_as_printed(backbone: str) -> int:
    """By the paper's formula: no final layer norm, no bias of the output layer."""
    report, width = counts(backbone)["trainable"], _shape(backbone)[1]
    return int(report.sum()) - 2 * width - 10


def library_total(backbone: str) -> int:
    """All parameters of the library's model: without our input and output layers, with what these replace."""
    return int(counts(backbone).drop(index=["input", "output"]).to_numpy().sum())


def parameter_table() -> pd.DataFrame:
    """GPT-2 base on CIFAR-10, group by group: printed in section 2.2, and counted on the live model."""
    printed, live, width = claim("L-30")["reported"], counts("gpt2")["trainable"], _shape("gpt2")[1]
    notes = {
        "output": "printed without the bias",
        "input": "printed with the bias: 17 times the width",
        "layer_norm": f"two digits transposed; {int(live['layer_norm']) - 2 * width:,} without the final layer norm",
        "positions": "two digits transposed",
    }
    rows = [
        {
            "group": group.replace("_", " "),
            "printed": f"{printed[group]:,}",
            "counted": f"{live[group]:,}",
            "note": note,
        }
        for group, note in notes.items()
    ]
    formula, total = trained_as_printed("gpt2"), library_total("gpt2")
    printed_sum = sum(printed[group] for group in notes)
    share = {"printed": f"{printed_sum:,}", "counted": f"{int(live.sum()):,}", "note": f"{formula:,} by the formula"}
    percent = {"printed": f"{printed['percent_base']}%", "counted": f"{formula / total:.3%}", "note": "by the formula"}
    xl = trained_as_printed("gpt2-xl") / library_total("gpt2-xl")
    large = {"printed": f"{printed['percent_xl']}%", "counted": f"{xl:.3%}", "note": "by the formula"}
    rows += [{"group": "all", **share}, {"group": "share of the model", **percent}, {"group": "share of XL", **large}]
    return pd.DataFrame(rows)


def size_table() -> pd.DataFrame:
    """Tables 8 and 22: layers, width, heads and parameters, printed and of the live models."""
    shapes, sizes = claim("L-50")["reported"], claim("L-29")["reported"]
    rows = []
    for place, (size, printed) in enumerate(shapes.items()):
        backbone = SIZES[size]
        rows.append(
            {
                "model": size,
                "layers, width, heads (paper)": ", ".join(map(str, printed)),
                "layers, width, heads": ", ".join(map(str, _shape(backbone))),
                "parameters (paper)": f"{sizes['total_M'][place]}M",
                "parameters": f"{library_total(backbone) / 1e6:.1f}M",
                "trained (paper)": f"{sizes['trained_K'][place]}K",
                "trained by the formula": f"{trained_as_printed(backbone):,}",
                "trained": f"{int(counts(backbone)['trainable'].sum()):,}",
            }
        )
    return pd.DataFrame(rows)


def lstm_table() -> pd.DataFrame:
    """L-19: parameters that train in the frozen transformer and in the frozen 12-layer LSTMs."""
    base = int(counts("gpt2")["trainable"].sum())
    rows = [{"model": "GPT-2, 12 layers", "trained": f"{base:,}", "ratio": ""}]
    for backbone in ("lstm", "lstm-released"):
        trained = int(counts(backbone, **LSTM)["trainable"].sum())
        rows.append({"model": f"{backbone}, 12 layers", "trained": f"{trained:,}", "ratio": f"{trained / base:.2f}"})
    return pd.DataFrame(rows)


def arithmetic_verdicts() -> dict[str, tuple[str, str]]:
    """{claim id: (verdict, note)}, of what can be counted."""
    from fpt.models import POLICIES

    base, names = int(counts("gpt2")["trainable"].sum()), list(SIZES.values())[:3]
    ratios = [int(counts(name, **LSTM)["trainable"].sum()) / base for name in ("lstm", "lstm-released")]
    sizes, printed, shapes = (claim(name)["reported"] for name in ("L-29", "L-30", "L-50"))
    kilo, totals = ([f(name) for name in names] for f in (trained_as_printed, library_total))
    near = [abs(k / 1000 - said) < 2 for k, said in zip(kilo, sizes["trained_K"], strict=True)]
    wrong = [
        f"{said}M is {n / 1e6:.1f}M" for said, n in zip(sizes["total_M"], totals, strict=True) if n > 1.01e6 * said
    ]
    share, xl = (100 * trained_as_printed(name) / library_total(name) for name in ("gpt2", "gpt2-xl"))
    shares = abs(share - printed["percent_base"]) < 0.0005 and abs(xl - printed["percent_xl"]) < 0.0005
    live = counts("gpt2")["trainable"] - pd.Series({"layer_norm": 2 * _shape("gpt2")[1], "positions": 0})
    misprints = [f"{printed[g]:,} is {int(live[g]):,}" for g in ("layer_norm", "positions")]
    right = {
        "L-19": (all(1 / CLOSE < r < CLOSE for r in ratios), f"ratio {' and '.join(f'{r:.2f}' for r in ratios)}"),
        "L-29": (all(near), f"the trained ones hold by the paper's formula; not so the totals: {', '.join(wrong)}"),
        "L-30": (shares, f"the shares hold; not so the counts: {', '.join(misprints)}"),
        "L-50": (all([*_shape(SIZES[size])] == shape for size, shape in shapes.items()), "the library's models"),
        "L-52": (not {"attention", "feed_forward", "recurrent"} & set(POLICIES["fpt"]), FROZEN),
    }
    return {name: (SUPPORTED if holds else CONTRADICTED, note) for name, (holds, note) in right.items()}


def spread(backbone: str) -> pd.DataFrame:
    """Standard deviation of the pretrained attention and feed-forward weights and biases by layer; no rows where the
    weights are not on this machine. Nothing is downloaded."""
    from safetensors import SafetensorError, safe_open

    try:
        folder = local_folder(backbone)
        if folder is None and cached(backbone):
            from fpt.models.weights import fetch

            folder = fetch(backbone)
        if folder is None:
            return pd.DataFrame()
        values: dict[tuple[int, str, str], list[Any]] = {}
        with safe_open(str(folder / "model.safetensors"), framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                short = name.removeprefix("transformer.").removeprefix("bert.")
                if (place := _part(backbone, short)) is not None:
                    values.setdefault(place, []).append(file.get_tensor(name).astype(np.float64).ravel())
    except (OSError, SafetensorError, FptError):
        return pd.DataFrame()
    rows = [(*place, float(np.concatenate(parts).std())) for place, parts in sorted(values.items())]
    return pd.DataFrame(rows, columns=["layer", "group", "kind", "std"])


def spread_figure(backbones: tuple[str, ...] = SPREAD_OF) -> Figure:
    """Figure 6: a panel a model; weights solid, biases dashed; the default initialisation grey."""
    found = {name: frame for name in backbones if len(frame := spread(name))}
    if not found:
        return _nothing()
    figure = Figure(figsize=(3.7 * max(2, len(found)), 3.4), layout="constrained")
    words = []
    colours = {"attention": "#0072B2", "feed_forward": "#D55E00"}
    panels = figure.subplots(1, len(found), squeeze=False).flat
    for axes, (name, frame) in zip(panels, found.items(), strict=True):
        for (group, kind), part in frame.groupby(["group", "kind"]):
            style = "-" if kind == "weight" else "--"
            label = f"{str(group).replace('_', '-')} {'weights' if kind == 'weight' else 'biases'}"
            axes.plot(part["layer"] + 1, part["std"], style, color=colours[str(group)], marker="o", ms=3, label=label)
            words.append(f"{name}, {label}: {part['std'].min():.3f} to {part['std'].max():.3f}")
        matched = DEFAULT_STD * (REFERENCE_WIDTH / _shape(name)[1]) ** 0.5
        for level, style in dict.fromkeys([(DEFAULT_STD, ":"), (round(matched, 6), "-.")]):
            axes.axhline(level, color=GREY, linestyle=style, linewidth=1)
        words.append(f"{name}, default {DEFAULT_STD}, matched to its width {matched:.3f}")
        axes.set(title=name, xlabel="layer", ylabel="standard deviation", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.get_major_locator().set_params(integer=True)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.set_label(f"Standard deviation of pretrained weights and biases by layer. {'; '.join(words)}.")
    return figure


def _part(backbone: str, name: str) -> tuple[int, str, str] | None:
    """(layer, group, weight or bias) of a tensor of the attention and feed-forward parts."""
    group, layer = _groups(backbone).get(f"backbone.{name}"), layer_of(name)
    return None if layer is None or group not in ("attention", "feed_forward") else (layer, group, name.rsplit(".")[-1])


@cache
def _groups(backbone: str) -> dict[str, str]:
    """The group of every parameter; not of masks, poolers and the tables that the input layer replaces."""
    import torch

    from fpt.models import build
    from fpt.tasks import load

    with torch.device("meta"):
        return build(load("digits"), backbone=backbone, init="random").groups


def _shape(backbone: str) -> tuple[int, int, int]:
    """(layers, width, heads), the library's defaults filled in."""
    from transformers import AutoConfig

    entry = BACKBONES[backbone]
    config = AutoConfig.for_model(entry.family, **{k: v for k, v in entry.config.items() if k != "vocab_size"})
    return int(entry.layers), int(config.hidden_size), int(config.num_attention_heads)
