"""The figures of one study that a page asks for by the names of its arms. Captions are the author's."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from textwrap import fill
from typing import Any

import pandas as pd

from fpt.results.arm import TUNED, Arm
from fpt.results.baselines import LINEAR
from fpt.results.contrasts import (
    COMMON,
    Contrast,
    Level,
    baseline,
    contrast,
    find_arm,
    level,
    rate_of,
)
from fpt.results.estimate import MINUS, PERCENT, number_text
from fpt.results.runs import rate_text
from fpt.show import plot
from fpt.show.figures import budget_axis
from fpt.show.html import CaptionedFigure
from fpt.show.planes import MOST_POINTS, beside_linear, plane_figure

WIDEST = 20  # characters of a row's name in one line: a longer one would leave a phone no room for the panel
HIGHEST = 34  # characters of a line that stands upright beside a panel
LINES = ("--", ":", "-.")  # of baselines
BAR: dict[str, Any] = {"markersize": 6, "linewidth": 2, "linestyle": "none"}  # a mean with its interval


def dots(
    study: str,
    arms: Sequence[str],
    caption: str,
    *,
    task: str = "",
    at: str | float = TUNED,
    budget: int | None = None,
    baselines: Sequence[str] = (LINEAR,),
) -> CaptionedFigure:
    """Test accuracy of some arms of a study, a row an arm: a dot a seed, the mean with its 95% interval.

    Arms, `task`, `at` and `budget` as `fpt.results.contrast` reads them, with its errors. `baselines`: names that
    `fpt.results.baseline` knows on this task, each a line.
    """
    cells = cells_of(study, arms, task)
    levels = {name: level(study, name, task=task, at=at, budget=budget) for name in arms}
    known = {name: baseline(_task(cells), name) for name in baselines}
    return CaptionedFigure(_dots(cells, levels, known, at, budget), caption)


def by_rate(
    study: str, arms: Sequence[str], caption: str, *, task: str = "", budget: int | None = None
) -> CaptionedFigure:
    """Test accuracy over the learning rate, a line an arm through the means of its seeds, with 95% intervals.

    Arguments and errors as those of `dots`.
    """
    return CaptionedFigure(_by_rate(cells_of(study, arms, task), budget), caption)


def by_budget(study: str, first: str, second: str, caption: str, *, task: str = "") -> CaptionedFigure:
    """The first arm minus the second, each at its own rate, over the budgets that both have: points with 95% intervals.

    Arguments and errors as those of `dots`.
    """
    cells = cells_of(study, (first, second), task)
    shared = [budget for budget in cells[first].budgets if budget in cells[second].budgets]
    found = {budget: contrast(study, first, second, task=task, budget=budget) for budget in shared}
    return CaptionedFigure(_by_budget(cells, found), caption)


def plane(study: str, first: str, second: str, caption: str, *, task: str = "") -> CaptionedFigure:
    """The map of learning rate and budget: the first arm minus the second in points, at one rate for both.

    A cell has the colour of the arm that leads. Star: significant after Holm's correction over the map. Hatched: the
    95% interval holds 0. Heavy line: the leader changes between two budgets. The caption ends with the levels of both
    arms beside that of a linear classifier, where one is known. Arguments and errors as those of `dots`.
    """
    cells = cells_of(study, (first, second), task)
    beside = beside_linear(cells[first], cells[second])
    return CaptionedFigure(plane_figure(cells[first], cells[second]), f"{caption} {beside}".strip())


def cells_of(study: str, arms: Iterable[str], task: str = "") -> dict[str, Arm]:
    """Arms of a study by name, in this order. SpecError for one that is not there."""
    found = {name: find_arm(study, name, task=task) for name in arms}
    assert found, f"a figure of the study {study} needs at least one arm"
    return found


def _task(cells: Mapping[str, Arm]) -> str:
    return next(iter(cells.values())).task


def _where(at: str | float) -> str:
    if at == TUNED:
        return "each at its own rate"
    return "one rate for all seeds" if at == COMMON else f"all at {rate_text(float(at))}"


@plot.drawn
def _dots(
    cells: Mapping[str, Arm],
    levels: Mapping[str, Level],
    known: Mapping[str, float],
    at: str | float,
    budget: int | None,
) -> plot.Plot:
    sweeps = plot.fields_of(cells.values())
    named = dict(zip(cells, plot.words_of(sweeps), strict=True))
    wrapped = [fill(name, WIDEST) for name in named.values()]
    lines = 1 + max(name.count("\n") for name in wrapped)
    figure, (axes,) = plot.panels_of(1, 0.4 + (0.13 + 0.16 * max(2, lines)) * len(cells), "x")
    rows: list[dict[str, Any]] = []
    looks = plot.looks_of(sweeps)
    for y, (name, cell) in enumerate(cells.items()):
        seeds, shown = 100 * cell.values(rate_of(cell, at, budget), budget).dropna(), levels[name]
        axes.plot(seeds, [y - 0.18] * len(seeds), ".", color=looks[y]["color"], alpha=0.7, markersize=7)
        look = BAR | {"color": looks[y]["color"], "marker": looks[y]["marker"]}
        axes.errorbar(shown.value, y + 0.12, xerr=plot.bar(shown.value, shown.low, shown.high, MOST_POINTS), **look)
        rows += [{"arm": name, "seed": seed, "accuracy": each} for seed, each in seeds.items()]
        rows.append({"arm": name, "accuracy": shown.value, "low": shown.low, "high": shown.high})
    for (name, share), line in zip(known.items(), cycle(LINES), strict=False):
        axes.axvline(share, color=plot.GREY, linestyle=line, label=f"{name}, {number_text(share, PERCENT)}%")
    axes.set_yticks(range(len(cells)), wrapped)
    axes.set(xlabel=f"test accuracy (%), {_where(at)}", ylim=(len(cells) - 0.5, -0.5))
    if known:
        plot.shared_legend(figure, [axes])
    words = [f"{named[name]} {shown}" for name, shown in levels.items()]
    words += [f"{name} {number_text(share, PERCENT)}%" for name, share in known.items()]
    return figure.describe(
        f"Test accuracy, {_where(at)}, mean and 95% interval: {'; '.join(words)}.",
        pd.DataFrame(rows),
        plot.runs_of(cells.values()),
    )


@plot.drawn
def _by_rate(cells: Mapping[str, Arm], budget: int | None) -> plot.Plot:
    figure, (axes,) = plot.panels_of(1)
    lines = {name: _line(cell, budget) for name, cell in cells.items()}
    sweeps = plot.fields_of(cells.values())
    named, looks = plot.words_of(sweeps), plot.looks_of(sweeps)
    for number, line in enumerate(lines.values()):
        dodge = 1.04 ** (number - (len(lines) - 1) / 2)
        around = plot.bar(line["accuracy"], line["low"], line["high"])
        axes.errorbar(dodge * line["rate"], line["accuracy"], yerr=around, label=named[number], **looks[number])
    beside = plot.lines_below(axes, sweeps[0])
    plot.rate_axis(axes, pd.concat(lines.values())["rate"], "test accuracy (%)")
    plot.shared_legend(figure, [axes])
    each = list(zip(named, lines.values(), strict=True))
    best = [f"{name} at {rate_text(line.set_index('rate')['accuracy'].idxmax())}" for name, line in each]
    words = [f"{name}: {_line_words(line)}" for name, line in each] + beside
    return figure.describe(
        f"Test accuracy by learning rate, means over seeds. Best: {', '.join(best)}. {'. '.join(words)}.",
        pd.concat(lines, names=["arm"]).reset_index("arm"),
        plot.runs_of(cells.values()),
    )


def _line(cell: Arm, budget: int | None) -> pd.DataFrame:
    """By rate, in percent: `accuracy` and its 95% interval `low` to `high`."""
    rows = []
    for rate in cell.rates:
        found = cell.estimate(rate, budget).in_percent
        rows.append([rate, found.value, *found.interval])
    return pd.DataFrame(rows, columns=["rate", "accuracy", "low", "high"]).sort_values("rate", ignore_index=True)


def _line_words(line: pd.DataFrame) -> str:
    means = zip(line["rate"], line["accuracy"], strict=True)
    return ", ".join(f"{number_text(mean, PERCENT)}% at {rate_text(rate)}" for rate, mean in means)


@plot.drawn
def _by_budget(cells: Mapping[str, Arm], found: Mapping[int, Contrast]) -> plot.Plot:
    figure, (axes,) = plot.panels_of(1)
    for x, each in enumerate(found.values()):
        bar = BAR | {"color": plot.INK, "marker": "D"}
        axes.errorbar(x, each.value, yerr=plot.bar(each.value, each.low, each.high, MOST_POINTS), **bar)
    axes.axhline(0, color=plot.GREY, linewidth=1)
    axes.margins(y=0.3)
    sweeps = plot.fields_of(cells.values())
    named = plot.words_of(sweeps)
    ends = zip(named, plot.looks_of(sweeps), (0.98, 0.02), ("top", "bottom"), strict=True)
    for name, look, height, side in ends:
        style: dict[str, Any] = {"va": side, "color": look["color"], "weight": "bold"}
        axes.text(0.02, height, f"{name} leads", transform=axes.transAxes, **style)
    budget_axis(axes, list(found))
    axes.set_ylabel(fill(f"{f' {MINUS} '.join(named)} (points)", HIGHEST))
    leads = {"first": [], "second": [], "open": list[str]()}
    for budget, each in found.items():
        leads["open" if each.open else "first" if each.value > 0 else "second"].append(f"{budget:,}")
    said = zip(leads.values(), (f"{named[0]} leads", f"{named[1]} leads", "too close to call"), strict=True)
    finding = "; ".join(f"{words} after {', '.join(budgets)} steps" for budgets, words in said if budgets)
    words = [f"{each} after {budget:,} steps" for budget, each in found.items()]
    rows = [
        {"budget": budget, "points": each.value, "low": each.low, "high": each.high} for budget, each in found.items()
    ]
    return figure.describe(
        f"Each at its own rate: {finding}. {' minus '.join(named)}, with 95% intervals: {', '.join(words)}.",
        pd.DataFrame(rows),
        plot.runs_of(cells.values()),
    )
