"""The figures. Colour and shape both name the arm; a figure's label is its alt text, computed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from fpt.evidence.baselines import chance, floor
from fpt.evidence.cells import Cell
from fpt.evidence.runs import SHORT, label, rate_text
from fpt.evidence.show.numbers import title
from fpt.evidence.stats import mean_interval
from fpt.evidence.steps import goal_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe-Ito: blues are frozen, oranges unfrozen; dark is pretrained, light is random.
COLOURS = {"FP": "#0072B2", "FR": "#56B4E9", "UP": "#D55E00", "UR": "#E69F00"}
MARKERS = {"FP": "o", "FR": "s", "UP": "^", "UR": "D"}
NAMES = {short: arm.replace("-", " ") for arm, short in SHORT.items()}
HUES, SHAPES = ({NAMES[short]: look for short, look in by.items()} for by in (COLOURS, MARKERS))  # by the long name
GREY, GRID = "#555555", "#e5e5e5"


def learning_rate_figure(runs: pd.DataFrame) -> Figure:
    """Test accuracy after the last step against learning rate: a panel per setup, a mark per run, and a line through
    the means.

    `runs` as `load_runs` gives them, or `SweepTables.tidy` those of one sweep. Outlined marks are the runs at the rate
    that the other seeds chose: their mean is the tuned accuracy; x marks runs that diverged (at their last finite
    value). The best trivial strategy is drawn dotted. As in Rothermel et al. 2021, figures 1 to 3.
    """
    if runs.empty:
        return nothing()
    figure, panels = panels_of(runs["setup"].nunique())
    words, several = [], "study" in runs and runs["study"].nunique() > 1
    never = runs["task"].map(chance)  # a run that was never finite counts as chance
    runs = runs.assign(accuracy=100 * runs["test_accuracy"].astype(float).fillna(never))
    for axes, (_, shown) in zip(panels, runs.groupby("setup", sort=False), strict=False):
        task, labels = str(shown["task"].iloc[0]), sorted(shown["label"].unique())
        name = title(task) + (f" ({shown['study'].iloc[0]})" if several else "")
        for number, short in enumerate(labels):
            arm = shown[shown["label"] == short]
            _rate_line(axes, arm, short, 1.05 ** (number - (len(labels) - 1) / 2))
            words.append(f"{name}, {long_name(short)}: {_tuned(arm)}")
        axes.axhline(100 * floor(task), color=GREY, linestyle=":", label="trivial baseline")
        axes.set_xlim(shown["learning_rate"].min() / 1.5, shown["learning_rate"].max() * 1.5)  # one rate has no range
        axes.set_xscale("log", subs=[])
        rates = sorted(shown["learning_rate"].unique())
        axes.set_xticks(rates, [rate_text(rate) for rate in rates])
        axes.set(xlabel="learning rate", ylabel="test accuracy (%)", title=name)
    diverged = int(runs["diverged_at"].notna().sum())
    shared_legend(figure, panels)
    figure.set_label(f"Test accuracy by learning rate. {'. '.join(words)}. {diverged} of {len(runs)} runs diverged.")
    return figure


def budget_figure(*setups: Mapping[str, Cell]) -> Figure:
    """Test accuracy over the budget, each seed at the rate that the others choose there: a panel per mapping of rows to
    cells, e.g. `text.arms(study, task)`; means with 95% intervals.

    The rate is constant, so a run of fewer steps is the beginning of a longer one.
    """
    done = [{row: cell for row, cell in cells.items() if not cell.problem} for cells in setups]
    done = [cells for cells in done if cells]
    if not done:
        return nothing()
    figure, panels = panels_of(len(done))
    words = []
    for axes, cells in zip(panels, done, strict=False):
        task = title(next(iter(cells.values())).task)
        words += [f"{task}, {line}" for line in tuned_lines(axes, cells)]
        axes.set(title=task, ylabel="test accuracy, tuned (%)")
        _goal_line(axes, next(iter(cells.values())))
    shared_legend(figure, panels)
    figure.set_label(f"Test accuracy by budget, each seed at the rate that the others choose. {'. '.join(words)}.")
    return figure


def tuned_lines(axes: "Axes", cells: Mapping[str, Cell]) -> list[str]:
    """One line per arm over the budgets, on a common axis; returns each line in words."""
    words, budgets = [], sorted({budget for cell in cells.values() for budget in cell.budgets})
    for number, (row, cell) in enumerate(cells.items()):
        name, shift = arm_of(cell) or row, 0.06 * (number - (len(cells) - 1) / 2)
        tested = cell.tested().T
        found = {step: mean_interval(tested[step], cell.test_noise(budget=step)) for step in cell.budgets}
        shown = 100 * pd.DataFrame(found, index=["mean", "low", "high"]).T
        around = [shown["mean"] - shown["low"], shown["high"] - shown["mean"]]
        places = [budgets.index(budget) + shift for budget in shown.index]
        look: dict[str, Any] = {"color": colour_of(name), "marker": _marker(name), "linewidth": 1.8}
        axes.errorbar(places, shown["mean"], yerr=around, label=long_name(name), **look)
        line = [f"{mean:.1f}% after {budget:,}" for budget, mean in shown["mean"].items()]
        words.append(f"{long_name(name)}: {', '.join(line)} steps")
    budget_axis(axes, budgets)
    return words


def _goal_line(axes: "Axes", cell: Cell) -> None:
    """What is to be reached in a table of steps."""
    if cell.table.kind == "steps" and (goal := goal_of(cell)):
        level = goal if isinstance(goal, float) else goal.values().mean()
        axes.axhline(100 * level, color=GREY, linestyle=":", label="goal")


def budget_axis(axes: "Axes", budgets: Sequence[int]) -> None:
    """Budgets at equal distances: each is twice the one before."""
    axes.set_xticks(range(len(budgets)), [f"{budget:,}" for budget in budgets])
    axes.set(xlabel="budget (steps)", xlim=(-0.5, len(budgets) - 0.5))


def nothing() -> Figure:
    """An empty figure that says so."""
    figure = Figure(figsize=(6.2, 1.2), label="An empty figure: there are no results of this kind yet.")
    figure.text(0.5, 0.5, "no results yet", ha="center", va="center", color=GREY)
    return figure


def _rate_line(axes: "Axes", arm: pd.DataFrame, name: str, dodge: float) -> None:
    """One arm of a panel: its runs, the line through their means, and those at the rates that the other seeds chose."""
    arm = arm.assign(rate=arm["learning_rate"].astype(float) * dodge)
    alive, tuned, colour = arm["diverged_at"].isna(), arm["selected"].astype(bool), colour_of(name)
    look: dict[str, Any] = {"facecolor": colour, "edgecolor": colour, "s": 20, "alpha": 0.6}
    chosen = {"edgecolor": "black", "s": 34, "alpha": 1.0, "zorder": 3}
    for runs, mark, differs in (
        (arm[alive & ~tuned], _marker(name), {}),
        (arm[alive & tuned], _marker(name), chosen),
        (arm[~alive], "X", {}),
    ):
        axes.scatter(runs["rate"], runs["accuracy"], marker=mark, **look | differs)
    line = "-" if name in COLOURS else "--" if "fixed" in name else ":"
    drawn: dict[str, Any] = {"marker": _marker(name), "markersize": 4, "linewidth": 1.8, "linestyle": line}
    axes.plot(arm.groupby("rate")["accuracy"].mean(), color=colour, label=long_name(name), **drawn)


def _tuned(arm: pd.DataFrame) -> str:
    """The tuned accuracy with the rates chosen, and the means by rate."""
    tuned, means = arm[arm["selected"].astype(bool)], arm.groupby("learning_rate")["accuracy"].mean()
    rates = " or ".join(map(rate_text, sorted(tuned["learning_rate"].unique())))
    words = f"tuned {tuned['accuracy'].mean():.1f}% at {rates}" if len(tuned) else "no learning rate was eligible"
    return ", ".join([words, *(f"{mean:.1f}% at {rate_text(rate)}" for rate, mean in means.items())])


def panels_of(count: int, height: float = 3.2, sharey: bool = False, grid: str = "y") -> tuple[Figure, "list[Axes]"]:
    """A figure of so many panels, two in a row, and the panels; `height` of each in inches."""
    columns = min(count, 2)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(6.2 if columns == 1 else 7.4, height * rows + 0.8), layout="constrained")
    style: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True}
    with mpl.rc_context(style | {"axes.axisbelow": True, "axes.grid.axis": grid, "grid.color": GRID}):
        panels = list(figure.subplots(rows, columns, sharey=sharey, squeeze=False).flat)
    for spare in panels[count:]:
        spare.set_visible(False)
    return figure, panels


def shared_legend(figure: Figure, panels: "Iterable[Axes]") -> None:
    """One legend below the panels, of everything that they label, in the place of theirs."""
    found: dict[str, Any] = {}
    for axes in panels:
        lines, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, lines, strict=True))
        if own := axes.get_legend():
            own.remove()
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=3, frameon=False)


def long_name(name: str) -> str:
    """FR fixed -> frozen random, fixed."""
    short, *rest = name.split(" ")
    words = [word.replace("x", "gain ", 1) if word.startswith("x") else word for word in rest]
    return ", ".join([NAMES.get(short, short), *words])


def colour_of(name: str) -> str:
    return COLOURS.get(name[:2], "#999999")


def _marker(name: str) -> str:
    return MARKERS.get(name[:2], "P")


def arm_of(cell: Cell) -> str:
    """The short name of a cell's arm, which has the colour; empty where there is no sweep."""
    return label(cell.spec) if cell.spec else ""
