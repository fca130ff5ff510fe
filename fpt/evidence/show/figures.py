"""The figures. Colour and shape both name the arm; every figure carries computed alt text (`alt_text`)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from fpt.evidence.runs import SHORT, rate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fpt.evidence.claims import Verdict

# Okabe-Ito: blues are frozen, oranges unfrozen; dark is pretrained, light is random.
COLOURS = {"FP": "#0072B2", "FR": "#56B4E9", "UP": "#D55E00", "UR": "#E69F00"}
MARKERS = {"FP": "o", "FR": "s", "UP": "^", "UR": "D"}
NAMES = {short: arm.replace("-", " ") for arm, short in SHORT.items()}
BUDGETS = (0.25, 0.5, 1.0)
GREY = "#555555"


def alt_text(figure: Figure) -> str:
    """What the figure shows, in words, computed from the same numbers."""
    return str(figure.get_label() or "")


def learning_rate_figure(runs: pd.DataFrame, baseline: Mapping[str, float] | None = None) -> Figure:
    """Test accuracy against learning rate: a panel per setup, every run a mark, a line through the means.

    Filled marks and the line are selection seeds, rings are confirmation seeds; x marks runs that diverged
    (at their last finite value); dashed lines are reference rates, large outlined marks the selected ones.
    `baseline` (task -> fraction) is drawn dotted. As in Rothermel et al. 2021, figures 1 to 3.
    """
    if runs.empty:
        return _nothing()
    figure, panels = _panels(runs["setup"].nunique())
    words = []
    for axes, (_, shown) in zip(panels, runs.groupby("setup", sort=False), strict=False):
        task, labels = str(shown["task"].iloc[0]), _ordered(shown["label"])
        for number, name in enumerate(labels):
            arm = shown[shown["label"] == name]
            _rate_line(axes, arm, name, 1.05 ** (number - (len(labels) - 1) / 2))
            words.append(f"{task}, {_long(name)}: {_best(arm)}")
        for rate in sorted(shown.loc[shown["reference"].astype(bool), "learning_rate"].unique()):
            axes.axvline(rate, color=GREY, linestyle="--", linewidth=1, zorder=0)
        if baseline and task in baseline:
            axes.axhline(100 * baseline[task], color=GREY, linestyle=":", label="trivial baseline")
        axes.set_xlim(shown["learning_rate"].min() / 1.5, shown["learning_rate"].max() * 1.5)  # one rate has no range
        axes.set(xscale="log", xlabel="learning rate", ylabel="test accuracy (%)", title=task)
        axes.set_xticks(sorted(shown["learning_rate"].unique()))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: rate_text(value)))
        axes.xaxis.set_minor_locator(NullLocator())
    diverged = int(runs["diverged_at"].notna().sum())
    _legend(figure, panels)
    figure.set_label(
        f"Test accuracy against learning rate. {'. '.join(words)}. {diverged} of {len(runs)} runs diverged."
    )
    return figure


def curves_figure(curves: pd.DataFrame) -> Figure:
    """Validation accuracy and training loss against steps, each arm at its selected rate, all seeds."""
    chosen = curves[curves["selected"].astype(bool)]
    if chosen.empty:
        return _nothing()
    figure, (left, right) = _panels(2)
    words = []
    for name in _ordered(chosen["label"]):
        arm = chosen[chosen["label"] == name]
        for axes, column, scale in ((left, "validation_accuracy", 100), (right, "train_loss", 1)):
            for _, run in arm.groupby(["stage", "seed"]):
                axes.plot(run["step"], scale * run[column], color=_colour(name), alpha=0.25, linewidth=0.7)
            mean = arm.groupby("step")[column].mean()
            axes.plot(mean.index, scale * mean, label=_long(name), **_style(name), markevery=4)
        last = arm[arm["step"] == arm["step"].max()]["validation_accuracy"]
        words.append(f"{_long(name)} ends at {100 * last.mean():.1f}%")
    left.set(xlabel="step", ylabel="validation accuracy (%)")
    right.set(xlabel="step", ylabel="training loss")
    _legend(figure, [left])
    figure.set_label(f"Validation accuracy and training loss at the selected rates. {'; '.join(words)}.")
    return figure


def budget_figure(curves: pd.DataFrame) -> Figure:
    """Best validation accuracy so far at 25, 50 and 100% of the steps, the rate chosen anew at each budget.

    Selection runs only: they cover the whole grid. There is no schedule, so a run cut short is a short run.
    """
    runs = curves[curves["stage"] == "selection"]
    if runs.empty:
        return _nothing()
    figure, panels = _panels(runs["setup"].nunique())
    words = []
    for axes, (_, shown) in zip(panels, runs.groupby("setup", sort=False), strict=False):
        task, labels = shown["task"].iloc[0], _ordered(shown["label"])
        for number, name in enumerate(labels):
            arm = shown[shown["label"] == name]
            shift = 0.06 * (number - (len(labels) - 1) / 2)
            points = [_at_budget(arm, share) for share in BUDGETS]
            for place, (_, values) in enumerate(points):
                axes.scatter(
                    np.full(len(values), place + shift), 100 * values, s=14, alpha=0.5,
                    color=_colour(name), marker=_marker(name), linewidths=0,
                )  # fmt: skip
            means = [100 * float(values.mean()) for _, values in points]
            axes.plot(np.arange(len(BUDGETS)) + shift, means, label=_long(name), **_style(name))
            steps = [f"{mean:.1f}% at rate {rate_text(p[0])}" for mean, p in zip(means, points, strict=True)]
            words.append(f"{task}, {_long(name)}: {', '.join(steps)}")
        axes.set_xticks(range(len(BUDGETS)), [f"{share:.0%}" for share in BUDGETS])
        axes.set(xlabel="share of the steps", ylabel="validation accuracy (%)", title=task)
    _legend(figure, panels)
    figure.set_label(f"Best validation accuracy after 25, 50 and 100% of the steps. {'. '.join(words)}.")
    return figure


def gain_figure(runs: pd.DataFrame) -> Figure:
    """Test accuracy of the random arms against the gain of their initialisation, each at its own rate.

    Marks are confirmation runs (`matched`); the dashed line and band are FP's mean and range, if it was run.
    """
    confirmed = runs[(runs["stage"] == "confirmation") & runs["selected"].astype(bool)]
    swept = confirmed[(confirmed["init"] == "random") & (confirmed["random_init"] == "matched")]
    if swept.empty:
        return _nothing()
    figure, (axes,) = _panels(1)
    words = []
    for arm, group in swept.groupby("arm"):
        name, dots = SHORT.get(str(arm), str(arm)), 100 * group["test_accuracy"]
        axes.scatter(group["random_gain"], dots, color=_colour(name), marker=_marker(name), s=16, alpha=0.5)
        means = 100 * group.groupby("random_gain")["test_accuracy"].mean()
        axes.plot(means.index, means, label=_long(name), **_style(name))
        words.append(f"{_long(name)}: " + ", ".join(f"{m:.1f}% at gain {g:g}" for g, m in means.items()))
    pretrained = 100 * confirmed.loc[confirmed["label"] == "FP", "test_accuracy"]
    if not pretrained.empty:
        axes.axhline(pretrained.mean(), color=COLOURS["FP"], linestyle="--", label=_long("FP"))
        axes.axhspan(pretrained.min(), pretrained.max(), color=COLOURS["FP"], alpha=0.12, linewidth=0)
        words.append(f"frozen pretrained: {pretrained.mean():.1f}%")
    axes.set(xscale="log", xlabel="gain of the random initialisation", ylabel="test accuracy (%)")
    axes.set_xticks(sorted(swept["random_gain"].unique()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    _legend(figure, [axes])
    figure.set_label(f"Test accuracy against the gain of the random initialisation. {'. '.join(words)}.")
    return figure


def difference_figure(verdicts: "Sequence[Verdict]") -> Figure:
    """The headline differences in points: a dot per seed, the mean, its 95% interval, and the verdict."""
    shown = [v for v in verdicts if v.test.n]
    if not shown:
        return _nothing()
    figure = Figure(figsize=(7.4, 0.9 + 0.36 * len(shown)), layout="constrained")
    axes = figure.subplots()
    for place, v in enumerate(reversed(shown)):
        dots = 100 * np.asarray(v.test.differences)
        axes.scatter(dots, np.full(len(dots), place), s=12, color=GREY, alpha=0.5, linewidths=0)
        if math.isfinite(v.test.mean):
            axes.plot([100 * v.test.low, 100 * v.test.high], [place, place], color="black", linewidth=2)
            axes.plot(100 * v.test.mean, place, marker="D", color="black", markersize=6)
        axes.annotate(v.verdict, (1.02, place), xycoords=("axes fraction", "data"), va="center", annotation_clip=False)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(shown)), [f"{v.task}: {v.comparison}" for v in reversed(shown)])
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.set_xlabel("difference in test accuracy (points)")
    axes.spines[["top", "right", "left"]].set_visible(False)
    words = [f"{v.task}, {v.comparison}: {100 * v.test.mean:+.1f} points, {v.verdict}" for v in shown]
    figure.set_label(f"Paired differences in test accuracy, one dot per seed. {'; '.join(words)}.")
    return figure


def _rate_line(axes: "Axes", arm: pd.DataFrame, name: str, dodge: float) -> None:
    selection, confirmation = (arm[arm["stage"] == stage] for stage in ("selection", "confirmation"))
    colour, marker = _colour(name), _marker(name)
    for runs, face in ((selection, colour), (confirmation, "none")):
        alive = runs[runs["diverged_at"].isna()]
        axes.scatter(
            alive["learning_rate"] * dodge, 100 * alive["test_accuracy"], s=18, alpha=0.6, marker=marker,
            facecolors=face, edgecolors=colour, linewidths=0.8,
        )  # fmt: skip
        dead = runs[runs["diverged_at"].notna()]
        last = 100 * dead["test_accuracy"].astype(float).fillna(0.0)  # diverged before its first evaluation
        axes.scatter(dead["learning_rate"] * dodge, last, s=34, marker="x", color=colour, linewidths=1.5)
    means = 100 * (arm if selection.empty else selection).groupby("learning_rate")["test_accuracy"].mean()
    axes.plot(means.index * dodge, means, label=_long(name), **{**_style(name), "markersize": 4})
    chosen = means[means.index.isin(arm.loc[arm["selected"].astype(bool), "learning_rate"])]
    axes.plot(
        chosen.index * dodge, chosen, linestyle="", marker=marker, markersize=10,
        markerfacecolor=colour, markeredgecolor="black", markeredgewidth=1.2, zorder=4,
    )  # fmt: skip


def _best(arm: pd.DataFrame) -> str:
    """The selected rate and what it gives, and the values at the reference rates."""
    rates = arm["selected_rate"].dropna().unique()
    if not len(rates):
        return "no learning rate was eligible"
    fresh = arm[arm["stage"] == "confirmation"]
    reported = arm if fresh.empty else fresh
    accuracy = {rate_text(rate): runs["test_accuracy"] for rate, runs in reported.groupby("learning_rate")}
    references = sorted(reported.loc[reported["reference"].astype(bool), "learning_rate"].unique())
    wanted = dict.fromkeys(rate_text(rate) for rate in (rates[0], *references))
    means = {rate: 100 * accuracy[rate].mean() for rate in wanted}
    first, *others = [f"{mean:.1f}% at {rate}" for rate, mean in means.items()]
    return ", ".join([f"selected rate gives {first}", *others])


def _at_budget(arm: pd.DataFrame, share: float) -> tuple[float, "np.ndarray[Any, Any]"]:
    """The rate with the best mean validation accuracy within `share` of the steps, and its seeds' values."""
    within = arm[arm["step"] <= share * arm["step"].max()]
    best = within.groupby(["learning_rate", "seed"])["validation_accuracy"].max().unstack("seed")
    best = best.fillna(0.0)  # diverged before its first evaluation
    rate = float(best.mean(axis=1).idxmax())
    return rate, best.loc[rate].to_numpy(float)


def _nothing() -> Figure:
    figure = Figure(figsize=(6.2, 1.2), label="An empty figure: there are no results of this kind yet.")
    figure.text(0.5, 0.5, "no results yet", ha="center", va="center", color=GREY)
    return figure


def _panels(count: int) -> tuple[Figure, "list[Axes]"]:
    columns = min(count, 2)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(7.4 if columns == 2 else 6.2, 3.2 * rows + 0.8), layout="constrained")
    grid = list(np.atleast_1d(figure.subplots(rows, columns)).flat)
    for axes in grid:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e5e5e5")
        axes.set_axisbelow(True)
    for spare in grid[count:]:
        spare.set_visible(False)
    return figure, grid


def _legend(figure: Figure, panels: "Iterable[Axes]") -> None:
    found: dict[str, Any] = {}
    for axes in panels:
        lines, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, lines, strict=True))
    if found:
        figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=3, frameon=False)


def _ordered(labels: "pd.Series[str]") -> list[str]:
    present = list(dict.fromkeys(labels))
    order = list(COLOURS)
    return sorted(present, key=lambda name: (order.index(name[:2]) if name[:2] in order else 9, name))


def _long(label: str) -> str:
    """FR fixed -> frozen random, fixed."""
    short, *rest = label.split(" ")
    words = [word.replace("x", "gain ", 1) if word.startswith("x") else word for word in rest]
    return ", ".join([NAMES.get(short, short), *words])


def _colour(label: str) -> str:
    return COLOURS.get(label[:2], "#999999")


def _marker(label: str) -> str:
    return MARKERS.get(label[:2], "P")


def _style(label: str) -> dict[str, Any]:
    line = "-" if label in COLOURS else (0, (4, 2)) if "fixed" in label else (0, (1, 1.5))
    colour, marker = _colour(label), _marker(label)
    return {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.8, "linestyle": line}
