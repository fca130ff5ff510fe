"""Figures of tables and verdicts: a strip a row or comparison, and maps of attention."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fpt.evidence.show.figures import COLOURS, GREY, NAMES, nothing, panels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fpt.evidence.verdicts import Verdict


def strip_figure(shown: pd.DataFrame, quantity: str, words: str, log: bool = False) -> Figure:
    """A paper's table: a panel a task, a line a row, a dot a seed, filled where tuned, open at the paper's rate.

    `shown`: a row a seed with `task`, `row`, `arm` (FP, ...), `tuned`, `value`, `reached`; values that were not reached
    are crosses. The bar is their mean (of steps the median). `words` is the alt text.
    """
    if shown.empty:
        return nothing()
    tasks = list(dict.fromkeys(shown["task"]))
    rows = {task: list(dict.fromkeys(shown.loc[shown["task"] == task, "row"])) for task in tasks}
    shared = len({tuple(each) for each in rows.values()}) == 1  # else every panel names its own rows
    figure, panels = panels_of(
        len(tasks), 3 if shared and len(tasks) != 4 else 2, 0.34 * max(map(len, rows.values())) + 0.7, shared, "x"
    )
    for axes, (task, part) in zip(panels, shown.groupby("task", sort=False), strict=False):
        for (row, tuned), seeds in part.groupby(["row", "tuned"], sort=False):
            place = rows[str(task)].index(str(row)) + (-0.16 if tuned else 0.16)
            _strip(axes, seeds, place, COLOURS[seeds["arm"].iloc[0]], bool(tuned), np.median if log else np.mean)
        axes.set_yticks(range(len(rows[str(task)])), rows[str(task)])
        axes.set_ylim(len(rows[str(task)]) - 0.4, -0.6)
        axes.set_title(str(task), fontsize=10)
        axes.set_xlabel(quantity, fontsize=9)
        if log and axes.get_xlim()[1] > 10 * max(axes.get_xlim()[0], 1):
            axes.set_xscale("log")
    arms = [arm for arm in COLOURS if arm in set(shown["arm"])]
    handles = [Line2D([], [], marker="o", linestyle="", color=COLOURS[arm]) for arm in arms]
    names = [NAMES[arm].replace("unfrozen", "trained in full,") for arm in arms]
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.set_label(words)
    return figure


def _strip(axes: "Axes", seeds: pd.DataFrame, place: float, colour: str, tuned: bool, middle: Any) -> None:
    """One row's seeds at one reading, and the bar of their middle."""
    reached = seeds.loc[seeds["reached"], "value"]
    face = colour if tuned else "none"
    axes.scatter(reached, [place] * len(reached), s=16, alpha=0.7, linewidths=0.9, edgecolors=colour, facecolors=face)
    late = seeds.loc[~seeds["reached"], "value"]
    axes.scatter(late, [place] * len(late), s=26, marker="x", color=colour, linewidths=1.2)
    if len(reached) > len(late):
        axes.vlines(middle(seeds["value"]), place - 0.13, place + 0.13, color="black", linewidth=1.6)


def attention_figure(maps: Mapping[str, pd.DataFrame], words: str) -> Figure:
    """Mean attention, query x key, a panel a row, on one scale; dots mark what every query needs.

    `maps`: row -> weights and `needed` by query and key (`attention.aligned`); `words` is the alt text.
    """
    if not maps:
        return nothing()
    top = max(float(each["weight"].max()) for each in maps.values())
    figure = Figure(figsize=(3.7 * len(maps), 3.3), layout="constrained")
    grid = figure.subplots(1, len(maps), squeeze=False, sharey=True)[0]
    for axes, (row, each) in zip(grid, maps.items(), strict=True):
        last = row == list(maps)[-1]
        bar = {"cbar": last, "cbar_kws": {"label": "part of the attention"}} if last else {"cbar": False}
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
