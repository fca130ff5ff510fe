"""Figures of tables and verdicts: a strip a row or comparison, and maps of attention."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fpt.evidence.cells import AT_PAPERS_RATE, TUNED, Cell
from fpt.evidence.show.figures import GREY, nothing, panels_of, shared_legend
from fpt.evidence.show.numbers import title

if TYPE_CHECKING:
    from fpt.evidence.verdicts import Verdict

READINGS = {TUNED: "tuned", AT_PAPERS_RATE: "at the paper's rate"}
PALETTE = {"tuned": "#009E73", "at the paper's rate": "#CC79A7"}  # Okabe-Ito, no arm's colours


def seeds_of(cell: Cell) -> pd.DataFrame:
    """A cell's seeds at both readings, a row each: what `strip_figure` draws. Steps end with the run's."""
    frames = []
    for at, reading in READINGS.items():
        values = cell.values(at).dropna()
        shown = values.clip(upper=cell.spec.steps) if cell.spec and cell.table.kind == "steps" else 100 * values
        frames.append(pd.DataFrame({"value": shown, "reached": np.isfinite(values), "reading": reading}))
    return pd.concat(frames).assign(task=title(cell.task), row=cell.label)


def strip_figure(shown: pd.DataFrame, quantity: str, steps: bool = False) -> Figure:
    """A paper's table: a panel a task, a line a row, a dot a seed, above where tuned, below at the paper's rate.

    `shown`: a row a seed with `task`, `row`, `reading`, `value`, `reached`; values that were not reached are crosses.
    The bar is their mean (of `steps` the median).
    """
    average = "median" if steps else "mean"
    rows = {task: list(part["row"].unique()) for task, part in shown.groupby("task", sort=False)}
    shared = len({tuple(each) for each in rows.values()}) == 1  # else every panel names its own rows
    height = 0.34 * max(map(len, rows.values())) + 0.7
    figure, panels = panels_of(len(rows), height, shared, "x")
    for axes, (task, part) in zip(panels, shown.groupby("task", sort=False), strict=False):
        look: dict[str, Any] = {"x": "value", "y": "row", "order": rows[task], "hue": "reading", "hue_order": PALETTE}
        look |= {"palette": PALETTE, "ax": axes}
        sns.stripplot(part[part["reached"]], **look, dodge=True, jitter=False, size=4, alpha=0.7)
        sns.stripplot(part[~part["reached"]], **look, dodge=True, jitter=False, marker="x", linewidth=1.2, legend=False)
        middle = {"estimator": average, "errorbar": None, "linestyle": "none", "legend": False}
        sns.pointplot(part, **look | middle, dodge=0.4, marker="|", markersize=9, markeredgewidth=2)
        axes.set(xlabel=quantity, ylabel="", title=task)
    shared_legend(figure, panels)
    words = [
        f"{task}, {row}, {reading}: {seeds['value'].agg(average):,.1f}"
        + (f" ({late} never reached)" if (late := (~seeds["reached"]).sum()) else "")
        for (task, row, reading), seeds in shown.groupby(["task", "row", "reading"], sort=False)
    ]
    figure.set_label(f"{quantity}, {average} over seeds. {'; '.join(words)}.")
    return figure


def attention_figure(maps: Mapping[str, pd.DataFrame], words: str) -> Figure:
    """Mean attention, query x key, a panel a row, on one scale; dots mark what every query needs.

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


def difference_figure(verdicts: "Sequence[Verdict]") -> Figure:
    """The comparisons behind verdicts, in points: a dot a seed, the mean, its 95% interval, and the word."""
    shown = [(f"{v.claim} {p.task}: {p.comparison}", p) for v in verdicts for p in v.parts if p.test.differences]
    shown = list(dict(shown).items())  # a comparison that two claims share stands once a claim
    if not shown:
        return nothing()
    figure = Figure(figsize=(7.4, 0.9 + 0.36 * len(shown)), layout="constrained")
    axes = figure.subplots()
    dots = pd.DataFrame([(name, 100 * each) for name, part in shown for each in part.test.differences])
    sns.stripplot(dots, x=1, y=0, color=GREY, alpha=0.5, size=3.5, jitter=False, ax=axes)
    for place, (_, part) in enumerate(shown):
        mean, low, high = (100 * value for value in (part.test.mean, part.test.low, part.test.high))
        axes.errorbar(mean, place, xerr=[[mean - low], [high - mean]], fmt="kD", markersize=6, linewidth=2)
        axes.annotate(part.word, (1.02, place), xycoords=("axes fraction", "data"), va="center", annotation_clip=False)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set(xlabel="difference in test accuracy (points)", ylabel="")
    axes.spines[["top", "right", "left"]].set_visible(False)
    words = [f"{name}: {100 * part.test.mean:+.1f} points, {part.word}" for name, part in shown]
    figure.set_label(f"Paired differences in test accuracy, one dot per seed. {'; '.join(words)}.")
    return figure
