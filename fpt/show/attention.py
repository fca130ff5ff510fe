"""Maps of attention: where the first layer of an arm looks."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns

from fpt.results.arm import Arm
from fpt.results.attention import attended, attention_maps
from fpt.results.contrasts import find_arm
from fpt.show import plot
from fpt.show.html import CaptionedFigure

NEEDED = "#F0E442"  # on blue


@plot.drawn
def attention_figure(cells: Iterable[Arm], words: str) -> plot.Plot:
    """Mean attention, query x key, one panel per row, on one scale; dots mark what every query needs.

    `cells` were measured (`attention.attention_maps`); `words` is the alt text.
    """
    cells = list(cells)
    maps = attention_maps(cells)
    top = max(float(each["weight"].max()) for each in maps.values())
    figure, panels = plot.panels_of(len(maps), 2.9, "")
    measured = plot.fields_of(cell for cell in cells if cell.name in maps)
    for axes, name, each in zip(panels, plot.words_of(measured), maps.values(), strict=False):
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
    return figure.describe(words, shown, plot.runs_of(cells))


def attention_of(study: str, arms: Iterable[str], caption: str, *, task: str) -> CaptionedFigure:
    """Where the first layer of some arms of a study looks, a panel an arm; arguments and errors as those of
    `fpt.results.attention.attended`."""
    shown = {arm: attended(study, arm, task=task) for arm in arms}
    cells = [find_arm(study, arm, task=task) for arm in shown]
    named = plot.words_of(plot.fields_of(cells))
    words = "; ".join(f"{name} {share}" for name, share in zip(named, shown.values(), strict=True))
    alt = f"Attention of the first layer, with the part on the tokens that an answer needs: {words}."
    return CaptionedFigure(attention_figure(cells, alt), caption)
