"""The figures of two arms over rate and budget: the plane, and the tuned curves with the budgets where they cross."""

from typing import TYPE_CHECKING, Any

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure

from fpt.evidence.cells import Cell
from fpt.evidence.planes import Crossing, crossing_of, plane_table, plane_tests
from fpt.evidence.runs import rate_text
from fpt.evidence.show.figures import COLOURS, GREY, arm_of, budget_axis, long_name, nothing, panels_of, tuned_lines
from fpt.evidence.show.numbers import interval, points, title
from fpt.evidence.stats import SIGNIFICANCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = np.ndarray[Any, Any]
PALE = "#999999"
PALETTE: Any = sns.blend_palette([COLOURS["UP"], "white", COLOURS["FP"]], as_cmap=True)


def plane_figure(first: Cell, second: Cell) -> Figure:
    """The first arm minus the second at each rate and budget, in points, at one rate for both.

    Blue: the first leads. Bold with a star: the sign is sure after Holm's correction over the plane. Hatched: the 95%
    interval holds 0; where the winner changes without such a place, a heavy line. Rates rise upwards.
    """
    tests = {} if first.problem or second.problem else plane_tests(first, second)
    if not tests:
        return nothing()
    table = plane_table(tests).set_index(["rate", "budget"])
    columns = (100 * table["mean"], table["corrected"] < SIGNIFICANCE, table["band"])
    mean, sure, band = (values.unstack()[::-1] for values in columns)
    words = mean.map("{:+.1f}".format) + sure.map({True: "*", False: ""}.get)
    names = [long_name(arm_of(cell)) for cell in (first, second)]
    figure = Figure(figsize=(1.9 + 0.8 * len(mean.columns), 1.5 + 0.42 * len(mean)), layout="constrained")
    axes, most = figure.subplots(), float(np.nanmax([1.0, *mean.abs().to_numpy().flat]))
    look: dict[str, Any] = {"cmap": PALETTE, "vmin": -most, "vmax": most, "linewidths": 0.5, "linecolor": "white"}
    bar = {"label": f"{names[0]} -\n{names[1]} (points)"}
    sns.heatmap(mean, annot=words, fmt="", annot_kws={"color": "black"}, cbar_kws=bar, ax=axes, **look)
    _mark(axes, mean.to_numpy(), sure.to_numpy(), band.to_numpy())
    axes.set(xlabel="budget (steps)", ylabel="learning rate", title=title(first.task))
    axes.set_xticklabels([f"{budget:,}" for budget in mean])
    axes.set_yticklabels([rate_text(rate) for rate in mean.index], rotation=0)
    lines = [f"at rate {rate_text(rate)}: {', '.join(words.loc[rate])}" for rate in mean.index]
    figure.set_label(
        f"{title(first.task)}: test accuracy of {names[0]} minus {names[1]} in points, by learning rate, after "
        f"{', '.join(f'{budget:,}' for budget in mean)} steps; a star where the sign is sure. {'; '.join(lines)}."
    )
    return figure


def _mark(axes: "Axes", mean: Numbers, sure: Numbers, band: Numbers) -> None:
    """What is sure in bold, the band hatched, and a line between neighbours of one rate with different winners."""
    there = ~np.isnan(mean)
    for text, bold in zip(axes.texts, sure[there], strict=True):
        text.set_fontweight("bold" if bold else "normal")
    for row, column in np.argwhere(there):
        if band[row, column]:
            axes.fill_between([column, column + 1], row, row + 1, facecolor="none", edgecolor=PALE, hatch="//", lw=0)
        elif column and not band[row, column - 1] and mean[row, column] * mean[row, column - 1] < 0:
            axes.plot([column, column], [row, row + 1], color="black", linewidth=3)


def crossing_figure(first: Cell, second: Cell) -> Figure:
    """Two tuned arms over the budget, and the first minus the second with 95% intervals and the sign of each budget.

    Signs: + and - are sure for all budgets together, 0 is open, ? has the arm that trails at an edge of its grid.
    Shaded: the budgets at which the arms may cross (those whose 95% interval holds 0).
    """
    found = None if first.problem or second.problem else crossing_of(first, second)
    if found is None or not found.tests:
        return nothing()
    figure, (left, right) = panels_of(2)
    tuned_lines(left, {arm_of(cell): cell for cell in (first, second)})
    left.set(title=title(first.task), ylabel="test accuracy, tuned (%)")
    left.legend(frameon=False)
    names = [long_name(arm_of(cell)) for cell in (first, second)]
    _differences(right, found)
    right.set(title=f"{names[0]} -\n{names[1]}", ylabel="difference (points)")
    words = [
        f"{points(test.mean)} ({interval(test)}) {found.signs[budget]} after {budget:,} steps"
        for budget, test in found.tests.items()
    ]
    figure.set_label(
        f"{title(first.task)}: test accuracy of {names[0]} minus {names[1]}, each at its own learning rate, in points "
        f"with 95% intervals: {', '.join(words)}. {names[0].capitalize()}: {found.answer[1]}."
    )
    return figure


def _differences(axes: "Axes", found: Crossing) -> None:
    """A dot per seed, the mean, its interval and sign; budgets of the band are shaded."""
    for place, (budget, test) in enumerate(found.tests.items()):
        if not test.differences:  # too few seeds
            continue
        mean, low, high = (100 * value for value in (test.mean, test.low, test.high))
        axes.plot([place] * test.n, [100 * each for each in test.differences], ".", color=GREY, alpha=0.5)
        axes.errorbar(place, mean, yerr=[[mean - low], [high - mean]], fmt="kD", markersize=5, linewidth=2)
        at: Any = {"xy": (place, 0.95), "xycoords": ("data", "axes fraction")}
        axes.annotate(found.signs[budget], **at, ha="center", weight="bold")
        if budget in found.band:
            axes.axvspan(place - 0.5, place + 0.5, color=COLOURS["UR"], alpha=0.2, zorder=0, lw=0)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.margins(y=0.15)
    budget_axis(axes, list(found.tests))
