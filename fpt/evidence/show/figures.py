"""The figures. Colour and shape both name the arm; a figure's label is its alt text, computed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fpt.evidence.runs import SHORT, rate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe-Ito: blues are frozen, oranges unfrozen; dark is pretrained, light is random.
COLOURS = {"FP": "#0072B2", "FR": "#56B4E9", "UP": "#D55E00", "UR": "#E69F00"}
MARKERS = {"FP": "o", "FR": "s", "UP": "^", "UR": "D"}
NAMES = {short: arm.replace("-", " ") for arm, short in SHORT.items()}
BUDGETS = {"25%": 0.25, "50%": 0.5, "100%": 1.0}  # of the steps
GREY, GRID = "#555555", "#e5e5e5"


def learning_rate_figure(runs: pd.DataFrame, baseline: Mapping[str, float] | None = None) -> Figure:
    """Test accuracy against learning rate: a panel per setup, every run a mark, a line through the means.

    `runs` as `load_runs` gives them. Filled marks and the line are selection seeds, rings are confirmation seeds; x
    marks runs that diverged (at their last finite value); dashed lines are reference rates, large outlined marks the
    selected ones. `baseline` (task -> fraction) is drawn dotted. As in Rothermel et al. 2021, figures 1 to 3.
    """
    if runs.empty:
        return nothing()
    figure, panels = panels_of(runs["setup"].nunique())
    words = []
    runs = runs.assign(accuracy=100 * runs["test_accuracy"].astype(float).fillna(0.0))  # no finite value: at nought
    for axes, (_, shown) in zip(panels, runs.groupby("setup", sort=False), strict=False):
        task, labels = str(shown["task"].iloc[0]), sorted(shown["label"].unique())
        for number, name in enumerate(labels):
            arm = shown[shown["label"] == name]
            _rate_line(axes, arm, name, 1.05 ** (number - (len(labels) - 1) / 2))
            words.append(f"{task}, {_long(name)}: {_best(arm)}")
        for rate in sorted(shown.loc[shown["reference"].astype(bool), "learning_rate"].unique()):
            axes.axvline(rate, color=GREY, linestyle="--", linewidth=1, zorder=0)
        if baseline and task in baseline:
            axes.axhline(100 * baseline[task], color=GREY, linestyle=":", label="trivial baseline")
        axes.set_xlim(shown["learning_rate"].min() / 1.5, shown["learning_rate"].max() * 1.5)  # one rate has no range
        axes.set_xscale("log", subs=[])
        rates = sorted(shown["learning_rate"].unique())
        axes.set_xticks(rates, [rate_text(rate) for rate in rates])
        axes.set(xlabel="learning rate", ylabel="test accuracy (%)", title=task)
    diverged = int(runs["diverged_at"].notna().sum())
    shared_legend(figure, panels)
    figure.set_label(f"Test accuracy by learning rate. {'. '.join(words)}. {diverged} of {len(runs)} runs diverged.")
    return figure


def budget_figure(curves: pd.DataFrame) -> Figure:
    """Best validation accuracy so far at 25, 50 and 100% of the steps, the rate chosen anew at each budget.

    Means and ranges of the selection runs: they cover the whole grid. There is no schedule, so a run cut short is a
    short run. A budget before the first evaluation has no point.
    """
    runs = curves[curves["stage"] == "selection"]
    if runs.empty:
        return nothing()
    figure, panels = panels_of(runs["setup"].nunique())
    words = []
    for axes, (_, shown) in zip(panels, runs.groupby("setup", sort=False), strict=False):
        task, labels = shown["task"].iloc[0], sorted(shown["label"].unique())
        best = pd.concat(_at_budgets(shown[shown["label"] == label]).assign(arm=_long(label)) for label in labels)
        sns.pointplot(
            best, x="budget", y="accuracy", order=list(BUDGETS), hue="arm", palette=[_colour(name) for name in labels],
            markers=[_marker(name) for name in labels], errorbar=("pi", 100), dodge=0.2, linewidth=1.8, ax=axes,
        )  # fmt: skip
        axes.set(xlabel="share of the steps", ylabel="validation accuracy (%)", title=task)
        for arm, each in best.groupby("arm", sort=False):
            at = [
                f"{seeds['accuracy'].mean():.1f}% at rate {rate_text(rate)} after {budget}"
                for (budget, rate), seeds in each.groupby(["budget", "rate"], sort=False)
            ]
            words.append(f"{task}, {arm}: {', '.join(at)}")
    shared_legend(figure, panels)
    figure.set_label(f"Best validation accuracy after 25, 50 and 100% of the steps. {'. '.join(words)}.")
    return figure


def spread_figure(backbones: Sequence[str] = ("tiny-lm", "minilm", "gpt2")) -> Figure:
    """Standard deviation of pretrained weights and biases by layer, a panel a model whose weights are on this machine.

    Grey: the library's default at any width (dotted), and matched to the width (dashed). As Lu et al. 2021, figure 6.
    """
    from fpt.evidence.sizes import DEFAULT_STD, matched_std, spread

    spreads = {name: frame for name in backbones if len(frame := spread(name))}
    if not spreads:
        return nothing()
    figure, panels = panels_of(len(spreads))
    words = []
    for axes, (name, frame) in zip(panels, spreads.items(), strict=False):
        shown = frame.assign(layer=frame["layer"] + 1, part=frame["group"].str.replace("_", "-") + " " + frame["kind"])
        sns.lineplot(shown, x="layer", y="std", hue="part", style="part", markers=True, errorbar=None, ax=axes)
        ranges = shown.groupby("part")["std"].agg(["min", "max"])
        words += [f"{name}, {part}: {low:.3f} to {high:.3f}" for part, (low, high) in ranges.iterrows()]
        for value, style in ((DEFAULT_STD, ":"), (matched_std(name), "--")):
            axes.axhline(value, color=GREY, linestyle=style, linewidth=1)
        axes.set(title=name, ylabel="standard deviation", ylim=(0, None), xticks=sorted(shown["layer"].unique()))
        axes.get_legend().remove()  # type: ignore[union-attr]
    shared_legend(figure, panels)
    figure.set_label(f"Standard deviation of pretrained weights and biases by layer. {'; '.join(words)}.")
    return figure


def nothing() -> Figure:
    """An empty figure that says so."""
    figure = Figure(figsize=(6.2, 1.2), label="An empty figure: there are no results of this kind yet.")
    figure.text(0.5, 0.5, "no results yet", ha="center", va="center", color=GREY)
    return figure


def _rate_line(axes: "Axes", arm: pd.DataFrame, name: str, dodge: float) -> None:
    """One arm of a panel: its runs, the line through the means of its selection seeds, its selected rate."""
    arm = arm.assign(rate=arm["learning_rate"].astype(float) * dodge)
    selection, alive = arm["stage"] == "selection", arm["diverged_at"].isna()
    colour, marker = _colour(name), _marker(name)
    for runs, mark, face in (
        (arm[alive & selection], marker, colour),
        (arm[alive & ~selection], marker, "none"),
        (arm[~alive], "X", colour),
    ):
        axes.scatter(runs["rate"], runs["accuracy"], s=20, marker=mark, alpha=0.6, facecolor=face, edgecolor=colour)
    means = (arm[selection] if selection.any() else arm).groupby("rate")["accuracy"].mean()
    line = "-" if name in COLOURS else "--" if "fixed" in name else ":"
    axes.plot(means, color=colour, marker=marker, markersize=4, linewidth=1.8, linestyle=line, label=_long(name))
    chosen = means[means.index.isin(arm.loc[arm["selected"].astype(bool), "rate"])]
    axes.plot(chosen, linestyle="", marker=marker, markersize=10, color=colour, mec="black", mew=1.2)


def _best(arm: pd.DataFrame) -> str:
    """The selected rate, and mean accuracies of fresh seeds (where there are none, of all) by rate."""
    rates, fresh = arm["selected_rate"].dropna().unique(), arm[arm["stage"] == "confirmation"]
    means = (arm if fresh.empty else fresh).groupby("learning_rate")["accuracy"].mean()
    selected = f"selected rate {rate_text(rates[0])}" if len(rates) else "no learning rate was eligible"
    return ", ".join([selected, *(f"{mean:.1f}% at {rate_text(rate)}" for rate, mean in means.items())])


def _at_budgets(arm: pd.DataFrame) -> pd.DataFrame:
    """At each budget with an evaluation: the rate with the best mean validation accuracy, and its seeds' values."""
    found = []
    for budget, share in BUDGETS.items():
        within = arm[arm["step"] <= share * arm["step"].max()]
        best = within.groupby(["learning_rate", "seed"])["validation_accuracy"].max().unstack("seed")
        best = 100 * best.fillna(0.0)  # diverged before its first evaluation
        if len(best):
            rate = best.mean(axis=1).idxmax()
            found.append(pd.DataFrame({"budget": budget, "rate": rate, "accuracy": best.loc[rate]}))
    return pd.concat(found)


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


def _long(label: str) -> str:
    """FR fixed -> frozen random, fixed."""
    short, *rest = label.split(" ")
    words = [word.replace("x", "gain ", 1) if word.startswith("x") else word for word in rest]
    return ", ".join([NAMES.get(short, short), *words])


def _colour(label: str) -> str:
    return COLOURS.get(label[:2], "#999999")


def _marker(label: str) -> str:
    return MARKERS.get(label[:2], "P")
