"""How far the pretrained weights spread, layer by layer (Lu et al. 2021, figure 6)."""

from collections.abc import Sequence

import pandas as pd
import seaborn as sns

from fpt.results.sizes import DEFAULT_STD, shape, spread
from fpt.show import plot
from fpt.show.html import CaptionedFigure
from fpt.show.names import model


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
        words += [f"{model(name)}, {part}: {low:.3f} to {high:.3f}" for part, (low, high) in ranges.iterrows()]
        matched = DEFAULT_STD * (shape("gpt2")[1] / shape(name)[1]) ** 0.5
        for value, style in ((DEFAULT_STD, ":"), (matched, "--")):
            axes.axhline(value, color=plot.GREY, linestyle=style, linewidth=1)
        axes.set(title=model(name), ylabel="standard deviation", ylim=(0, None), xticks=sorted(shown["layer"].unique()))
    plot.shared_legend(figure, panels)
    return figure.describe(
        f"Standard deviation of pretrained weights and biases by layer. {'; '.join(words)}.",
        pd.concat(spreads, names=["model"]).reset_index("model"),
    )
