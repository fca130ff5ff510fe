"""The page on LoRA: loss over the learning rate, where the best rates lie, and how far apart they are."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fpt.results.arm import Arm
from fpt.results.rate_ratio import (
    TENFOLD,
    RateRatio,
    Valley,
    last_losses,
    of_arms,
    rate_ratio,
    ratio_in_theory,
)
from fpt.results.stats import mean_of
from fpt.show import plot
from fpt.show.figures import cells_of
from fpt.show.html import CaptionedFigure
from fpt.sweeps.words import arm_of, legends

LORA_TEXT = "lora-text"
LORA_WIDTHS = {  # LoRA and full training there, by the width of the model
    64: ("LP (tiny-lm-64)", "UP (tiny-lm-64)"),
    128: ("LP", "UP"),
    256: ("LP (tiny-lm-256)", "UP (tiny-lm-256)"),
}
BETWEEN = 50  # points at which a parabola is drawn
TICKS = (0.5, 1, 2, 5, 10, 20)  # ratios
DODGE = 1.03  # by which the marks of two arms stand apart


def lora_ratios(step: int | None = None) -> dict[int, RateRatio]:
    """By the width of tiny-lm: how many times the best rate of full training LoRA's is, in the study lora-text, after
    the last step or an earlier one."""
    return {width: of_arms(LORA_TEXT, *arms, step=step) for width, arms in LORA_WIDTHS.items()}


def valleys(study: str, arms: Sequence[str], caption: str) -> CaptionedFigure:
    """Validation loss of the last step over the learning rate, a line an arm through the means of its seeds.

    Dashed: the parabola near the lowest point; a diamond: that point, the best rate. The legend gives the best rate of
    the first arm over that of each other one, with its 95% interval (`fpt.results.rate_ratio`). Arms as
    `fpt.results.contrast` reads them, with its errors. There are two arms or more.
    """
    return CaptionedFigure(valleys_figure(cells_of(study, arms)), caption)


@plot.drawn
def valleys_figure(arms: Mapping[str, Arm]) -> plot.Plot:
    """The figure of `valleys`: two arms or more, by name."""
    planes = {name: last_losses(arm) for name, arm in arms.items()}
    assert len(planes) > 1, f"a figure of valleys needs two arms; given: {', '.join(planes)}"
    first, *others = planes
    ratios = {name: rate_ratio(planes[first], planes[name]) for name in others}
    lowest = {first: ratios[others[0]].first} | {name: found.second for name, found in ratios.items()}
    lines = {name: _line(plane) for name, plane in planes.items()}
    if all(line.empty for line in lines.values()):  # at every rate some run diverged
        return plot.nothing()
    figure, (axes,) = plot.panels_of(1)
    sweeps = [arm.fields for arm in arms.values()]
    words = dict(zip(arms, legends(sweeps), strict=True))
    for number, ((name, line), look) in enumerate(zip(lines.items(), plot.looks_of(sweeps), strict=True)):
        legend = _named(words[name], ratios.get(name), words[first])
        at = DODGE**number * line["rate"]
        plot.intervals(axes, at, line["loss"], line["low"], line["high"], label=legend, **look)
        _draw(axes, lowest[name], look["color"])
    plot.rate_axis(axes, pd.concat(lines.values())["rate"], "validation loss (nats)")
    plot.shared_legend(figure, [axes])
    best = [f"{words[name]} {each.words}" for name, each in lowest.items()]
    over = [f"{words[first]} over {words[name]} {found.cell}" for name, found in ratios.items()]
    return figure.describe(
        f"Validation loss by learning rate. Best rates: {'; '.join(best)}. Ratios: {'; '.join(over)}.",
        pd.concat(lines, names=["arm"]).reset_index("arm"),
        plot.runs_of(arms.values()),
    )


def _named(name: str, ratio: RateRatio | None, first: str) -> str:
    """An arm in the legend, and how far its best rate is from that of the first; of the first alone nothing."""
    if ratio is None:
        return name
    if ratio.reason:
        return f"{name} (how far its best rate is from that of {first} is open: {ratio.reason})"
    return f"{name} ({first} does best at {ratio.cell} times its best rate)"


def _line(plane: pd.DataFrame) -> pd.DataFrame:
    """By rate: the geometric mean `loss` over seeds and its 95% interval `low` to `high`; none where a run diverged."""
    rows = []
    for rate in sorted(plane.columns):
        if plane[rate].notna().all():
            found = mean_of(np.log(plane[rate]))
            rows.append([float(rate), *(math.exp(each) for each in (found.value, *found.interval))])
    return pd.DataFrame(rows, columns=["rate", "loss", "low", "high"])


def _draw(axes: Any, valley: Valley, colour: str) -> None:
    """The parabola over the rates that it was fitted to, and its lowest point."""
    if valley.open:
        return
    log_rates = np.linspace(math.log10(valley.window[0]), math.log10(valley.window[-1]), BETWEEN)
    axes.plot(10**log_rates, np.exp(np.polyval(valley.coefficients, log_rates)), "--", color=colour, linewidth=1.2)
    lowest = math.exp(float(np.polyval(valley.coefficients, math.log10(valley.rate))))
    look: dict[str, Any] = {"marker": "D", "markersize": 9, "markeredgecolor": plot.INK, "linestyle": "none"}
    axes.plot([valley.rate], [lowest], color=colour, **look)


def rate_ratios(study: str, pairs: Mapping[str, tuple[str, str]], caption: str) -> CaptionedFigure:
    """How many times the best rate of one arm is that of another, a row a pair, with 95% intervals.

    `pairs`: name of a row -> first and second arm, named as `fpt.results.contrast` reads them, with its errors. A line
    stands at ten, a cross at width / (2 alpha). A row whose ratio is open has no dot, and its reason in the alt text.
    """
    return CaptionedFigure(rate_ratios_figure({name: cells_of(study, arms) for name, arms in pairs.items()}), caption)


@plot.drawn
def rate_ratios_figure(rows: Mapping[str, Mapping[str, Arm]]) -> plot.Plot:
    """The figure of `rate_ratios`: for each row its two arms."""
    found = {name: _ratio(*arms.values()) for name, arms in rows.items()}
    theory = {name: _theory(*arms.values()) for name, arms in rows.items()}
    figure, (axes,) = plot.panels_of(1, 0.6 + 0.42 * len(rows), "x")
    for y, (name, each) in enumerate(found.items()):
        first = next(iter(rows[name].values()))
        look: dict[str, Any] = {"color": arm_of(first.fields).colour, "marker": "o", "linewidth": 1.8}
        plot.intervals(axes, y, each.value, each.low, each.high, across=True, **look)
        axes.plot(theory[name], y, "x", color=plot.INK, markersize=8)
    axes.axvline(TENFOLD, color=plot.GREY, linestyle="--", label="ten times")
    axes.plot([], [], "x", color=plot.INK, label="width / (2 alpha)")
    axes.set_xscale("log", subs=[])
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.set_yticks(range(len(rows)), list(rows))
    table = pd.DataFrame(
        {"row": name, "ratio": each.value, "low": each.low, "high": each.high, "width / (2 alpha)": theory[name]}
        for name, each in found.items()
    )
    drawn = np.ravel(table.drop(columns="row"))
    drawn = drawn[np.isfinite(drawn)]
    around = min([TICKS[0], *(drawn / DODGE)]), max([TICKS[-1], *(drawn * DODGE)])
    axes.set(xlabel="ratio of best rates", xlim=around, ylim=(len(rows) - 0.5, -0.5))
    plot.shared_legend(figure, [axes])
    words = [f"{name}: {each.cell}" for name, each in found.items()]
    tenfold = sum(each.low <= TENFOLD <= each.high for each in found.values())
    arms = [arm for of_row in rows.values() for arm in of_row.values()]
    return figure.describe(
        f"{tenfold} of {len(found)} intervals hold ten. Ratio of best learning rates, {'; '.join(words)}.",
        table,
        plot.runs_of(arms),
    )


def _ratio(first: Arm, second: Arm) -> RateRatio:
    return rate_ratio(last_losses(first), last_losses(second))


def _theory(first: Arm, second: Arm) -> float:
    """Nan where the theory says nothing."""
    known = ratio_in_theory(first.spec, second.spec)
    return math.nan if known is None else known
