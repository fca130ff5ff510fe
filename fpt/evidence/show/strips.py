"""Figures of tables: a strip for each row, a bar for each row, and maps of attention."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fpt.evidence.cells import AT_PAPERS_RATE, TUNED, Cell
from fpt.evidence.show.figures import panels_of, shared_legend
from fpt.evidence.show.numbers import title

READINGS = {TUNED: "tuned", AT_PAPERS_RATE: "at the paper's rate"}
PALETTE = {"tuned": "#009E73", "at the paper's rate": "#CC79A7"}  # Okabe-Ito, no arm's colours


def seeds_of(cell: Cell) -> pd.DataFrame:
    """A cell's seeds at both readings, a row each: what `strip_figure` draws."""
    both = [pd.DataFrame({"value": 100 * cell.values(at).dropna(), "reading": name}) for at, name in READINGS.items()]
    return pd.concat(both).assign(task=title(cell.task), row=cell.label)


def strip_figure(shown: pd.DataFrame, quantity: str) -> Figure:
    """A paper's table: a panel per task, a line per row, a dot per seed (above: tuned; below: at the paper's rate).

    `shown`: one row per seed with `task`, `row`, `reading`, `value`. The bar is their mean.
    """
    rows = {task: list(part["row"].unique()) for task, part in shown.groupby("task", sort=False)}
    shared = len({tuple(each) for each in rows.values()}) == 1  # otherwise every panel would name its own rows
    height = 0.34 * max(map(len, rows.values())) + 0.7
    figure, panels = panels_of(len(rows), height, shared, "x")
    for axes, (task, part) in zip(panels, shown.groupby("task", sort=False), strict=False):
        look: dict[str, Any] = {"x": "value", "y": "row", "order": rows[task], "hue": "reading", "hue_order": PALETTE}
        look |= {"palette": PALETTE, "ax": axes}
        sns.stripplot(part, **look, dodge=True, jitter=False, size=4, alpha=0.7)
        middle = {"errorbar": None, "linestyle": "none", "legend": False}
        sns.pointplot(part, **look | middle, dodge=0.4, marker="|", markersize=9, markeredgewidth=2)
        axes.set(xlabel=quantity, ylabel="", title=task)
    shared_legend(figure, panels)
    parts = shown.groupby(["task", "row", "reading"], sort=False)["value"]
    words = [f"{task}, {row}, {reading}: {seeds.mean():,.1f}" for (task, row, reading), seeds in parts]
    figure.set_label(f"{quantity}, mean over seeds. {'; '.join(words)}.")
    return figure


def attention_figure(maps: Mapping[str, pd.DataFrame], words: str) -> Figure:
    """Mean attention, query x key, one panel per row, on one scale; dots mark what every query needs.

    `maps`: row -> weights and `needed` by query and key (`attention.aligned`); `words` is the alt text.
    """
    top = max(float(each["weight"].max()) for each in maps.values())
    figure = Figure(figsize=(3.7 * len(maps), 3.3), layout="constrained")
    grid = figure.subplots(1, len(maps), squeeze=False, sharey=True)[0]
    for axes, (row, each) in zip(grid, maps.items(), strict=True):
        bar = {"cbar": row == list(maps)[-1], "cbar_kws": {"label": "part of the attention"}}
        sns.heatmap(each["weight"].unstack(), cmap="Blues", vmin=0, vmax=top, rasterized=True, ax=axes, **bar)
        places = np.argwhere(each["needed"].unstack(fill_value=False).to_numpy())
        axes.scatter(places[:, 1] + 0.5, places[:, 0] + 0.5, s=14, color="#D55E00", linewidths=0)
        axes.set(xlabel="token attended to", ylabel="", title=row)
        axes.tick_params(axis="x", labelsize=8, rotation=90)
        axes.tick_params(axis="y", rotation=0)
    grid[0].set_ylabel("token that reads")
    figure.set_label(words)
    return figure
