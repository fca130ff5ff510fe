"""What all figures share: colours, style, panels and legend; and what a page tells of a figure beside the picture."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fpt.models import Treatment
from fpt.models.arms import GREY as GREY
from fpt.results.arm import Arm
from fpt.results.baselines import LINEAR, floor, known_scores
from fpt.results.estimate import PERCENT, Estimate, number_text
from fpt.results.runs import rate_text
from fpt.sweeps.words import Fields, arm_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What is no arm has no arm's colour; 3:1 or nearly so on white and on black.
OTHERS = ("#7A6FBE", "#8A8A2E", "#2F8F9D", "#A8506E", "#808080", "#B07A4A")
HATCHES = ("", "//", "..", "xx")  # of areas, which have no marker to tell them apart in grey
MARKERS = ("P", "*", "p", "h")
RANDOM = (0, (6, 2))  # the line of what starts from random weights; short dashes are parabolas
VARIANTS = (":", "-.")  # lines of further variants of one arm
TRIVIAL = "trivial baseline"  # the best of the strategies that look at little of an example
INK = "black"  # what is black takes the colour of the page's text (`svg`)
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GREY,
    "grid.alpha": 0.3,
}
# Inches: a panel alone on a wide page and on a phone, one of two. A phone shows the two last at nine tenths of this,
# text of 10 points at 9. A longer name in a legend goes on in the next line.
WIDE, PANEL_WIDTH, BESIDE, LEGEND_LINE = 8.2, 3.9, 3.7, 38
HANDLE, LETTER, MOST_COLUMNS = 0.5, 0.065, 4  # inches of a legend's column
P = ParamSpec("P")


class Plot(Figure):
    """A figure and what a page tells of it: its label is the alt text, computed from the same numbers."""

    function = ""  # that drew it
    data: pd.DataFrame | None = None  # what it draws
    runs: pd.DataFrame | None = None  # that it comes from, a row a run: `study`, `sweep`, `seed`, `commit`
    narrow = 0.0  # inches in which a phone shows it; 0: its panels, which stand below each other there, are as narrow
    named: Mapping[str, Any] = MappingProxyType({})  # what its legend names, by name

    def describe(self, words: str, data: pd.DataFrame, runs: pd.DataFrame | None = None) -> "Plot":
        """The figure with its alt text, what it draws, and the runs that this comes from (None: from no runs)."""
        self.set_label(words)
        self.data, self.runs = data, runs
        return self

    @contextmanager
    def on_a_phone(self) -> Iterator["Plot"]:
        """The figure as narrow as a phone shows it, in the style of all."""
        width = self.get_figwidth()
        with mpl.rc_context(STYLE):
            self._resize(self.narrow)
            yield self
            self._resize(width)

    def _resize(self, width: float) -> None:
        self.set_figwidth(width)
        self.set_layout_engine("constrained")
        self.name_below(self.named)

    def name_below(self, named: Mapping[str, Any]) -> None:
        """One legend below the panels, of what is drawn by name: in so many columns as the figure has room for."""
        self.named = named
        for legend in list(self.legends):
            legend.remove()
        names = [fill(name, LEGEND_LINE) for name in named]
        longest = max((len(line) for name in names for line in name.splitlines()), default=0)
        width = self.get_figwidth() if self.narrow else PANEL_WIDTH
        columns = max(1, min(MOST_COLUMNS, int(width / (HANDLE + LETTER * longest))))
        if names:
            self.legend(list(named.values()), names, loc="outside lower center", ncols=columns)


def drawn(make: Callable[P, Plot]) -> Callable[P, Plot]:
    """A function that draws a figure: it does so in the style of all, and is named by it."""

    @wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> Plot:
        with mpl.rc_context(STYLE):
            figure = make(*args, **options)
        figure.function = make.__name__.lstrip("_")
        return figure

    return made


def panels_of(
    count: int, height: float = 2.9, grid: str = "y", width: float = PANEL_WIDTH
) -> tuple[Plot, "list[Axes]"]:
    """A figure of so many panels, two in a row, and the panels; inches: `height` of each, and the `width` that a single
    one has on a phone: elsewhere it is as wide as the page."""
    columns = min(count, 2)
    rows = math.ceil(count / columns)
    size = (max(WIDE, width) if columns == 1 else BESIDE * columns, height * rows + 0.8)
    figure = Plot(figsize=size, layout="constrained")
    figure.narrow = width if columns == 1 else 0.0
    with mpl.rc_context({"axes.grid": bool(grid), "axes.grid.axis": grid or "both"}):
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in panels[count:]:
        spare.set_visible(False)
    return figure, panels


def shared_legend(figure: Plot, panels: "Iterable[Axes]") -> None:
    """One legend below the panels, of everything that they label, in the place of theirs."""
    found: dict[str, Any] = {}
    for axes in panels:
        lines, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, lines, strict=True))
        if own := axes.get_legend():
            own.remove()
    figure.name_below(found)


def nothing() -> Plot:
    """An empty figure that says so."""
    figure = Plot(figsize=(PANEL_WIDTH, 0.6), label="An empty figure: there are no results of this kind yet.")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.text(0.5, 0.5, "no results yet", ha="center", va="center")
    return figure


def runs_of(arms: Iterable[Arm]) -> pd.DataFrame:
    """The runs behind some arms, a row a run, each once: `study`, `sweep`, `seed`, `commit`."""
    once = {arm.folder: arm for arm in arms}.values()
    frames = [arm.runs[["sweep", "seed"]].assign(study=arm.study, commit=arm.commit) for arm in once]
    return pd.concat(frames) if frames else pd.DataFrame(columns=["sweep", "seed", "study", "commit"])


def looks_of(sweeps: Sequence[Fields]) -> list[dict[str, Any]]:
    """Colour, marker and line of each sweep of a figure. What starts from random weights is dashed, so that no two arms
    look alike in grey.

    Further variants of one arm, such as LoRA of rank 1 after LoRA, are hollow, with lines of their own. Of several arms
    that have no colour of their own each gets one of `OTHERS`.
    """
    arms = list(map(arm_of, sweeps))
    lent = dict(zip(_nameless(arms), zip(itertools.cycle(OTHERS), itertools.cycle(MARKERS)), strict=False))
    met, looks = Counter[str](), list[dict[str, Any]]()
    for arm in arms:
        colour, marker = lent.get(arm.letters, (arm.colour, arm.marker))
        line = "-" if arm.init != "random" else RANDOM
        look = {"color": colour, "marker": marker, "linewidth": 1.8, "linestyle": line}
        if met[arm.letters]:
            look |= {"linestyle": VARIANTS[(met[arm.letters] - 1) % len(VARIANTS)], "markerfacecolor": "none"}
        looks.append(look)
        met[arm.letters] += 1
    return looks


def _nameless(arms: Iterable[Treatment]) -> list[str]:
    """The letters of the arms without a colour of their own, each once."""
    return list(dict.fromkeys(arm.letters for arm in arms if arm.colour == GREY))


def frame_of(found: Mapping[Any, Estimate], over: str, what: str) -> pd.DataFrame:
    """What a line shows: where it is (`over`), its value (`what`) and the 95% interval, `low` to `high`."""
    rows = [(at, each.value, *each.interval) for at, each in found.items()]
    return pd.DataFrame(rows, columns=[over, what, "low", "high"])


def over_rates(arm: Arm) -> pd.DataFrame:
    """What a line of an arm over its learning rates shows: `rate`, and in percent `accuracy`, `low` and `high`."""
    found = {rate: arm.estimate(rate).in_percent.within(0, 100) for rate in arm.rates}
    return frame_of(found, "rate", "accuracy")


def intervals(
    axes: "Axes", at: Any, value: Any, low: Any, high: Any, *, across: bool = False, most: float = math.inf, **look: Any
) -> None:
    """Values with their 95% intervals, numbers or columns of them, over the places `at`; `across`: along the axis of x.

    No end is further from its value than `most`: to there an interval without an end is drawn.
    """
    ends = np.minimum([np.atleast_1d(value - low), np.atleast_1d(high - value)], most)
    if across:
        axes.errorbar(value, at, xerr=ends, **look)
    else:
        axes.errorbar(at, value, yerr=ends, **look)


def budget_axis(axes: "Axes", budgets: Sequence[int]) -> None:
    """Budgets at equal distances: each is twice the one before."""
    axes.set_xticks(range(len(budgets)), [f"{budget:,}" for budget in budgets])
    axes.set(xlabel="budget (steps)", xlim=(-0.5, len(budgets) - 0.5))


def rate_axis(axes: "Axes", rates: Iterable[float], of: str, what: str = "learning rate") -> None:
    """Learning rates, or `what` stands in their place, on a logarithmic axis; `of` is what is drawn over them."""
    rates = sorted(set(rates))
    axes.set_xscale("log", subs=[])
    axes.set_xticks(rates, [rate_text(rate) for rate in rates], rotation=45 if len(rates) > 6 else 0)
    axes.set(xlabel=what, ylabel=of, xlim=(rates[0] / 1.5, rates[-1] * 1.5))


def lines_to_beat(axes: "Axes", sweep: Fields) -> list[str]:
    """What an accuracy on the task of a sweep, by its fields, must be read against, where it is known: the best trivial
    strategy, dotted, and a linear classifier, dashed, which is more. Returns both in words, for those who do not see
    the figure."""
    task, variant = sweep["task"], sweep["variant"]
    known = {TRIVIAL: floor(task, variant)}
    if linear := known_scores(task, variant, sweep["task_options"].get("labels", 0)).get(LINEAR):
        known[LINEAR] = linear.share
    words = []
    for (name, share), line in zip(known.items(), (":", "--"), strict=False):
        if not math.isnan(share):
            axes.axhline(100 * share, color=GREY, linestyle=line, label=name)
            words.append(f"{name} {number_text(100 * share, PERCENT)}%")
    return words
