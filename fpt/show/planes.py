"""Two arms over rate and budget: the map of who leads, and the tuned curves with the budgets where they cross."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import SymLogNorm
from seaborn.utils import relative_luminance

from fpt.claims.planes import Crossing, crossing_of, plane_table, plane_tests
from fpt.results.arm import Arm
from fpt.results.baselines import LINEAR, known_scores
from fpt.results.estimate import MINUS, PERCENT, number_text
from fpt.results.runs import rate_text
from fpt.results.stats import SIGNIFICANCE
from fpt.show import plot
from fpt.show.figures import MOST_POINTS, cells_of, tuned_lines
from fpt.show.html import CaptionedFigure
from fpt.sweeps.words import legends, model_name, task_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLANE = (
    "Test accuracy of the {} arm minus that of the {} arm, in points, by learning rate and budget, at one rate for "
    "both. A cell has the colour of the arm that leads. A star marks a lead that chance would give to any cell of "
    "such a map less than once in twenty times. Hatched: the 95% interval of the cell holds 0."
)
HEAVY = " Heavy line: the leader changes between two budgets."
CROSSING = (
    "The same two arms, each seed at the rate that the other seeds choose. First: both arms. Second: their difference, "
    "a dot a seed, with 95% intervals. +, -: significant after correction for all budgets; 0: not so; ?: the arm that "
    "trails is at an end of its grid. Shaded: the arms may cross here."
)
BESIDE = "A linear classifier reaches {}; tuned, after the last step, {} reaches {} and {} {}."
Numbers = np.ndarray[Any, Any]
# One scale for all maps, so that a colour means the same on each: even up to a point, logarithmic from there on.
SCALE = SymLogNorm(linthresh=1, vmin=-MOST_POINTS, vmax=MOST_POINTS)
TICKS = {"ticks": [-100, -10, -1, 0, 1, 10, 100], "format": lambda value, _: f"{value:g}".replace("-", MINUS)}
PALE, DARK = "#999999", "#010101"  # on colours, which are the same on white and on black pages; #000000 is not
AS_FAR = 0.18  # the relative luminance of a colour on which dark and white text are read as well


def plane(study: str, first: str, second: str, caption: str, *, task: str = "") -> CaptionedFigure:
    """The map of learning rate and budget: the first arm minus the second in points, at one rate for both.

    The caption ends with the levels of both arms beside that of a linear classifier, where one is known. Arms and
    `task` as `fpt.results.contrast` reads them, with its errors.
    """
    arms = cells_of(study, (first, second), task).values()
    return CaptionedFigure(plane_figure(*arms), f"{caption} {beside_linear(*arms)}".strip())


def captioned_plane(first: Arm, second: Arm) -> CaptionedFigure:
    """The map of two arms with a caption that says what to see."""
    figure = plane_figure(first, second)
    said = PLANE.format(*legends([first.fields, second.fields])) + (HEAVY if figure.axes[0].lines else "")
    return CaptionedFigure(figure, f"{said} {beside_linear(first, second)}".strip())


def beside_linear(first: Arm, second: Arm) -> str:
    """The levels of both arms beside that of a linear classifier, as a caption says it; empty where none is known."""
    known = known_scores(first.task, first.variant, first.fields["task_options"].get("labels", 0))
    if LINEAR not in known:
        return ""
    shares = (known[LINEAR].share, first.estimate().value, second.estimate().value)
    linear, *levels = (f"{number_text(100 * share, PERCENT)}%" for share in shares)
    one, other = legends([first.fields, second.fields])
    return BESIDE.format(linear, one, levels[0], other, levels[1])


@plot.drawn
def plane_figure(first: Arm, second: Arm) -> plot.Plot:
    """The first arm minus the second at each rate and budget, in points, at one rate for both.

    A cell has the colour of the arm that leads. Bold with a star: significant after Holm's correction over the plane.
    Hatched: the 95% interval holds 0; where the winner changes without such a place, a heavy line. Rates rise upwards.
    """
    tests = plane_tests(first, second)
    if not tests:
        return plot.nothing()
    rows = plane_table(tests)
    table = rows.set_index(["rate", "budget"])
    columns = (table["mean"], table["corrected"] < SIGNIFICANCE, table["band"])
    mean, sure, band = (values.unstack()[::-1] for values in columns)
    shown = pd.Series({place: test.in_points.texts(signed=True)[0] for place, test in tests.items()})
    words = shown.unstack()[::-1].fillna("-") + sure.map({True: "*"}.get).fillna("")
    sweeps = [first.fields, second.fields]
    names = legends(sweeps)
    figure, (axes,) = plot.panels_of(1, 0.9 + 0.34 * len(mean), "", 0.9 + 0.52 * len(mean.columns))
    more, less = (look["color"] for look in plot.looks_of(sweeps))
    less = plot.OTHERS[0] if less == more else less  # two variants of one arm
    palette: Any = sns.blend_palette([less, "white", more], as_cmap=True)
    look: dict[str, Any] = {"cmap": palette, "norm": SCALE, "linewidths": 0.5, "linecolor": "white"}
    bar = {"label": f"{f' {MINUS} '.join(names)} (points)", "location": "bottom", "aspect": 30, **TICKS}
    sns.heatmap(100 * mean, annot=words, fmt="", annot_kws={"size": 10}, cbar_kws=bar, ax=axes, **look)
    _mark(axes, mean.to_numpy(), sure.to_numpy(), band.to_numpy())
    pair = f"{task_name(first.task)}, {model_name(first.fields['backbone'])}"
    axes.set(xlabel="budget (steps)", ylabel="learning rate", title=pair)
    axes.set_xticklabels([f"{budget:,}" for budget in mean])
    axes.set_yticklabels([rate_text(rate) for rate in mean.index], rotation=0)
    lines = [f"at rate {rate_text(rate)}: {', '.join(words.loc[rate])}" for rate in mean.index]
    last = mean.iloc[:, -1].where(~band.iloc[:, -1].astype(bool)).dropna()
    ends = zip(names, (last[last > 0], last[last < 0]), strict=True)
    leads = [f"{name} leads at {', '.join(map(rate_text, sorted(led.index))) or 'no rate'}" for name, led in ends]
    return figure.describe(
        f"{pair}, after the last step: {'; '.join(leads)}. Test accuracy of {names[0]} minus {names[1]} "
        f"in points, by learning rate, after {', '.join(f'{budget:,}' for budget in mean)} steps; a star where it is "
        f"significant, corrected for all cells. {'; '.join(lines)}.",
        rows.assign(**100 * rows[["mean", "low", "high"]]),
        plot.runs_of([first, second]),
    )


def _mark(axes: "Axes", mean: Numbers, sure: Numbers, band: Numbers) -> None:
    """Significant in bold, the band hatched, and a line between neighbours of one rate with different winners."""
    there, colours = ~np.isnan(mean), np.asarray(axes.collections[0].get_facecolor())
    for text, bold, colour in zip(axes.texts, sure[there], colours[there.flat], strict=True):
        text.set(
            fontweight="bold" if bold else "normal", color=DARK if relative_luminance(colour) > AS_FAR else "white"
        )
    for row, column in np.argwhere(there):
        if band[row, column]:
            axes.fill_between([column, column + 1], row, row + 1, facecolor="none", edgecolor=PALE, hatch="//", lw=0)
        elif column and not band[row, column - 1] and mean[row, column] * mean[row, column - 1] < 0:
            axes.plot([column, column], [row, row + 1], color=DARK, linewidth=3)


@plot.drawn
def crossing_figure(first: Arm, second: Arm) -> plot.Plot:
    """Two tuned arms over the budget, and the first minus the second with 95% intervals and the sign of each budget.

    Signs: + and - are significant for all budgets together, 0 is not, ? has the arm that trails at an edge of its grid.
    Shaded: the budgets at which the arms may cross (those whose 95% interval holds 0).
    """
    found = crossing_of(first, second)
    if not found.tests:
        return plot.nothing()
    figure, (left, right) = plot.panels_of(2)
    names = legends([first.fields, second.fields])
    curves = tuned_lines(left, (first, second), names)
    left.set(title=task_name(first.task), ylabel="test accuracy, tuned (%)")
    differences = _differences(right, found)
    right.set(title=f" {MINUS} ".join(names), ylabel="difference (points)")
    plot.shared_legend(figure, [left])
    words = [
        "{} ({}) {} after {:,} steps".format(*test.in_points.texts(signed=True), found.signs[budget], budget)
        for budget, test in found.tests.items()
    ]
    return figure.describe(
        f"{task_name(first.task)}: test accuracy of {names[0]} minus {names[1]}, each at its own learning rate, in "
        f"points with 95% intervals: {', '.join(words)}. {names[0].capitalize()}: {found.answer}.",
        pd.concat([curves, differences.assign(arm=" - ".join(names))], ignore_index=True),
        plot.runs_of([first, second]),
    )


def _differences(axes: "Axes", found: Crossing) -> pd.DataFrame:
    """A dot per pair of runs, the mean, its interval and sign; budgets of the band are shaded. Returns what is drawn:
    one row per pair, and one per mean with its interval, in points."""
    rows: list[dict[str, Any]] = []
    for x, (budget, test) in enumerate(found.tests.items()):
        shown, sign = test.in_points, found.signs[budget]
        if not shown.by_seed:  # too few seeds
            continue
        axes.plot([x] * shown.n, shown.by_seed, ".", color=plot.GREY, alpha=0.6)
        look: dict[str, Any] = {"color": plot.INK, "marker": "D", "markersize": 5, "linewidth": 2}
        plot.intervals(axes, x, shown.value, *shown.interval, most=MOST_POINTS, **look)
        at: Any = {"xy": (x, 0.95), "xycoords": ("data", "axes fraction")}
        axes.annotate(sign, **at, ha="center", weight="bold")
        if budget in found.band:
            axes.axvspan(x - 0.5, x + 0.5, color=plot.GREY, alpha=0.3, zorder=0, lw=0)
        rows += [{"budget": budget, "pair": number, "points": each} for number, each in enumerate(shown.by_seed, 1)]
        rows.append({"budget": budget, "points": shown.value, "low": shown.low, "high": shown.high, "sign": sign})
    axes.axhline(0, color=plot.GREY, linewidth=1)
    axes.margins(y=0.15)
    plot.budget_axis(axes, list(found.tests))
    return pd.DataFrame(rows)
