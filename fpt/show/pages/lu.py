"""The page on Lu et al. 2021: where the first layer of an arm looks, and how far pretrained weights spread by layer."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns

from fpt.results.arm import Arm
from fpt.results.attention import attended, attention_maps
from fpt.results.sizes import DEFAULT_STD, shape, spread
from fpt.show import plot
from fpt.show.figures import cells_of
from fpt.show.html import CaptionedFigure
from fpt.sweeps.words import legends, model_name

NEEDED = "#F0E442"  # on blue


def attention_of(study: str, arms: Iterable[str], caption: str, *, task: str) -> CaptionedFigure:
    """Where the first layer of some arms of a study looks, a panel an arm; arguments and errors as those of
    `fpt.results.attention.attended`."""
    found = cells_of(study, arms, task)
    shares = [attended(study, name, task=task) for name in found]
    named = legends([arm.fields for arm in found.values()])
    words = "; ".join(f"{name} {share}" for name, share in zip(named, shares, strict=True))
    alt = f"Attention of the first layer, with the part on the tokens that an answer needs: {words}."
    return CaptionedFigure(attention_figure(list(found.values()), alt), caption)


@plot.drawn
def attention_figure(arms: Sequence[Arm], words: str) -> plot.Plot:
    """Mean attention, query x key, one panel per arm, on one scale; dots mark what every query needs.

    The attention of the arms was measured; `words` is the alt text.
    """
    maps = attention_maps(arms)
    top = max(float(each["weight"].max()) for each in maps.values())
    figure, panels = plot.panels_of(len(maps), 2.9, "")
    for axes, name, each in zip(panels, legends([arm.fields for arm in arms]), maps.values(), strict=False):
        look: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": top, "rasterized": True, "cbar": False}
        sns.heatmap(each["weight"].unstack(), ax=axes, **look)
        places = np.argwhere(each["needed"].unstack(fill_value=False).to_numpy())
        axes.scatter(places[:, 1] + 0.5, places[:, 0] + 0.5, s=16, color=NEEDED, edgecolor="#262626", linewidths=0.5)
        axes.set(xlabel="token attended to", ylabel="token that reads", title=name)
        axes.tick_params(axis="x", labelsize=10, rotation=90)
        axes.tick_params(axis="y", labelsize=10, rotation=0)
    bar: dict[str, Any] = {"location": "bottom", "label": "part of the attention", "aspect": 30, "shrink": 0.5}
    figure.colorbar(panels[0].collections[0], ax=panels, **bar)
    shown = pd.concat(maps, names=["row"]).reset_index()
    return figure.describe(words, shown, plot.runs_of(arms))


def spread_of(backbones: Sequence[str], caption: str) -> CaptionedFigure:
    """Standard deviation of pretrained weights and biases by layer, a panel a model.

    Models whose weights are not on this machine are left out. Grey: the library's default at any width (dotted), and
    matched to the width (dashed).
    """
    return CaptionedFigure(spread_figure(backbones), caption)


@plot.drawn
def spread_figure(backbones: Sequence[str]) -> plot.Plot:
    """The figure of `spread_of`; an empty one that says so where no weights are here."""
    spreads = {name: frame for name in backbones if len(frame := spread(name))}
    if not spreads:
        return plot.nothing()
    figure, panels = plot.panels_of(len(spreads))
    words = []
    for axes, (name, frame) in zip(panels, spreads.items(), strict=False):
        shown = frame.assign(layer=frame["layer"] + 1, part=frame["group"].str.replace("_", "-") + " " + frame["kind"])
        colours = plot.OTHERS[: shown["part"].nunique()]
        look = {"hue": "part", "palette": colours, "style": "part", "markers": True}
        sns.lineplot(shown, x="layer", y="std", **look, errorbar=None, ax=axes)
        ranges = shown.groupby("part")["std"].agg(["min", "max"])
        words += [f"{model_name(name)}, {part}: {low:.3f} to {high:.3f}" for part, (low, high) in ranges.iterrows()]
        matched = DEFAULT_STD * (shape("gpt2")[1] / shape(name)[1]) ** 0.5
        for value, style in ((DEFAULT_STD, ":"), (matched, "--")):
            axes.axhline(value, color=plot.GREY, linestyle=style, linewidth=1)
        axes.set(title=model_name(name), ylabel="standard deviation", ylim=(0, None))
        axes.set_xticks(sorted(shown["layer"].unique()))
    plot.shared_legend(figure, panels)
    return figure.describe(
        f"Standard deviation of pretrained weights and biases by layer. {'; '.join(words)}.",
        pd.concat(spreads, names=["model"]).reset_index("model"),
    )
