"""Loss over the learning rate, with the lowest point of each arm: where best rates lie, and how far apart."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fpt.errors import SpecError
from fpt.results.cells import Cell
from fpt.results.rate_ratio import RateRatio, Valley, last_losses, rate_ratio
from fpt.results.runs import rate_text
from fpt.results.stats import mean_interval
from fpt.show import plot
from fpt.show.charts import arm_words, cells_of
from fpt.show.html import Picture

BETWEEN = 50  # points at which a parabola is drawn
DODGE = 1.03  # by which the marks of two arms stand apart


def valleys(study: str, arms: Sequence[str], caption: str, *, task: str = "") -> Picture:
    """Validation loss of the last step over the learning rate, a line an arm through the means of its seeds.

    Dashed: the parabola near the lowest point; a diamond: that point, the best rate. The legend gives the best rate of
    the first arm over that of each other one, with its 95% interval (`fpt.results.rate_ratio`). Arms and `task` as
    `fpt.results.contrast` reads them, with its errors. Raises SpecError for fewer than two arms.
    """
    return Picture(valleys_figure(cells_of(study, arms, task)), caption)


@plot.drawn
def valleys_figure(cells: Mapping[str, Cell]) -> plot.Plot:
    """The figure of `valleys`: two arms or more that have results, by name."""
    planes = {name: last_losses(cell.tables) for name, cell in cells.items() if cell.tables}
    if len(planes) < 2:
        raise SpecError(f"a figure of valleys needs two arms with results; given: {', '.join(planes) or 'none'}")
    first, *others = planes
    ratios = {name: rate_ratio(planes[first], planes[name]) for name in others}
    lowest = {first: ratios[others[0]].first} | {name: found.second for name, found in ratios.items()}
    figure, (axes,) = plot.panels_of(1)
    lines = {name: _line(plane) for name, plane in planes.items()}
    looks = plot.looks_of(lines)
    for number, (name, line) in enumerate(lines.items()):
        around = [line["loss"] - line["low"], line["high"] - line["loss"]]
        words = _named(name, ratios, first)
        axes.errorbar(DODGE**number * line["rate"], line["loss"], yerr=around, label=words, **looks[name])
        _draw(axes, lowest[name], plot.colour_of(name))
    plot.rate_axis(axes, pd.concat(lines.values())["rate"], "validation loss (nats)")
    plot.shared_legend(figure, [axes])
    best = [f"{arm_words(name)} {each.open or rate_text(each.rate)}" for name, each in lowest.items()]
    over = [f"{arm_words(first)} over {arm_words(name)} {found.cell}" for name, found in ratios.items()]
    return figure.describe(
        f"Validation loss by learning rate. Best rates: {'; '.join(best)}. Ratios: {'; '.join(over)}.",
        pd.concat(lines, names=["arm"]).reset_index("arm"),
        plot.runs_of(cells.values()),
    )


def _named(name: str, ratios: Mapping[str, RateRatio], first: str) -> str:
    """An arm in the legend; of all but the first with the ratio."""
    if name == first:
        return arm_words(name)
    return f"{arm_words(name)}: best rate of {arm_words(first)} is {ratios[name].cell} times"


def _line(plane: pd.DataFrame) -> pd.DataFrame:
    """By rate: the geometric mean `loss` over seeds and its 95% interval `low` to `high`; none where a run diverged."""
    rows = []
    for rate in sorted(plane.columns):
        if plane[rate].notna().all():
            rows.append([float(rate), *(math.exp(each) for each in mean_interval(np.log(plane[rate])))])
    return pd.DataFrame(rows, columns=["rate", "loss", "low", "high"])


def _draw(axes: Any, valley: Valley, colour: str) -> None:
    """The parabola over the rates that it was fitted to, and its lowest point."""
    if valley.open:
        return
    places = np.linspace(math.log10(valley.window[0]), math.log10(valley.window[-1]), BETWEEN)
    axes.plot(10**places, np.exp(np.polyval(valley.coefficients, places)), "--", color=colour, linewidth=1.2)
    lowest = math.exp(float(np.polyval(valley.coefficients, math.log10(valley.rate))))
    look: dict[str, Any] = {"marker": "D", "markersize": 9, "markeredgecolor": plot.INK, "linestyle": "none"}
    axes.plot([valley.rate], [lowest], color=colour, **look)
