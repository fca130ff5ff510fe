"""Figures of tables: a strip for each row, and maps of attention."""

from collections.abc import Iterable
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns

from fpt.results.attention import attended, attention_maps
from fpt.results.cells import AT_PAPERS_RATE, TUNED, Cell
from fpt.results.contrasts import cell_of
from fpt.show import plot
from fpt.show.html import Picture
from fpt.show.numbers import row_label, title

READINGS = {TUNED: "tuned", AT_PAPERS_RATE: "at the paper's rate"}
PALETTE = dict(zip(READINGS.values(), plot.OTHERS, strict=False))
NEEDED = "#F0E442"  # on blue


def seeds_of(cell: Cell) -> pd.DataFrame:
    """A cell's seeds at both readings, a row each: what `strip_figure` draws."""
    both = [pd.DataFrame({"value": 100 * cell.values(at).dropna(), "reading": name}) for at, name in READINGS.items()]
    return pd.concat(both).assign(task=title(cell.task), row=row_label([cell]))


@plot.drawn
def strip_figure(cells: Iterable[Cell], quantity: str) -> plot.Plot:
    """A paper's table: a panel per task, a line per row, a dot per seed (above: tuned; below: at the paper's
    rate).

    The bar is their mean. `cells` have results.
    """
    cells = list(cells)
    shown = pd.concat(map(seeds_of, cells), ignore_index=True)
    rows = {task: list(part["row"].unique()) for task, part in shown.groupby("task", sort=False)}
    figure, panels = plot.panels_of(len(rows), 0.34 * max(map(len, rows.values())) + 0.7, "x")
    for axes, (task, part) in zip(panels, shown.groupby("task", sort=False), strict=False):
        look: dict[str, Any] = {"x": "value", "y": "row", "order": rows[task], "hue": "reading", "hue_order": PALETTE}
        look |= {"palette": PALETTE, "ax": axes}
        sns.stripplot(part, **look, dodge=True, jitter=False, size=4, alpha=0.7)
        middle = {"errorbar": None, "linestyle": "none", "legend": False}
        sns.pointplot(part, **look | middle, dodge=0.4, marker="|", markersize=9, markeredgewidth=2)
        axes.set(xlabel=quantity, ylabel="", title=task)
        # In lines of 28 characters: a long name in one line would leave the panel no room on a phone.
        axes.set_yticks(range(len(rows[task])), [fill(row, 28) for row in rows[task]])
    plot.shared_legend(figure, panels)
    parts = shown.groupby(["task", "row", "reading"], sort=False)["value"]
    words = [f"{task}, {row}, {reading}: {seeds.mean():,.1f}" for (task, row, reading), seeds in parts]
    return figure.describe(f"{quantity}, mean over seeds. {'; '.join(words)}.", shown, plot.runs_of(cells))


@plot.drawn
def attention_figure(cells: Iterable[Cell], words: str) -> plot.Plot:
    """Mean attention, query x key, one panel per row, on one scale; dots mark what every query needs.

    `cells` were measured (`attention.attention_maps`); `words` is the alt text.
    """
    cells = list(cells)
    maps = attention_maps(cells)
    top = max(float(each["weight"].max()) for each in maps.values())
    figure, panels = plot.panels_of(len(maps), 2.9, "")
    for axes, (row, each) in zip(panels, maps.items(), strict=False):
        look: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": top, "rasterized": True, "cbar": False}
        sns.heatmap(each["weight"].unstack(), ax=axes, **look)
        places = np.argwhere(each["needed"].unstack(fill_value=False).to_numpy())
        axes.scatter(places[:, 1] + 0.5, places[:, 0] + 0.5, s=16, color=NEEDED, edgecolor="#262626", linewidths=0.5)
        axes.set(xlabel="token attended to", ylabel="token that reads", title=row)
        axes.tick_params(axis="x", labelsize=10, rotation=90)
        axes.tick_params(axis="y", labelsize=10, rotation=0)
    bar: dict[str, Any] = {"location": "bottom", "label": "part of the attention", "aspect": 30, "shrink": 0.5}
    figure.colorbar(panels[0].collections[0], ax=panels, **bar)
    shown = pd.concat(maps, names=["row"]).reset_index()
    return figure.describe(words, shown, plot.runs_of(cells))


def attention_of(study: str, arms: Iterable[str], caption: str, *, task: str) -> Picture:
    """Where the first layer of some arms of a study looks, a panel an arm; arguments and errors as those of
    `fpt.results.attention.attended`."""
    shown = {arm: attended(study, arm, task=task) for arm in arms}
    words = "; ".join(f"{arm} {share}" for arm, share in shown.items())
    alt = f"Attention of the first layer, with the part on the tokens that an answer needs: {words}."
    return Picture(attention_figure([cell_of(study, arm, task) for arm in shown], alt), caption)
