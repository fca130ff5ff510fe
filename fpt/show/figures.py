"""Accuracy over the learning rate and over the budget, and levels of arms: figures of any study. Colour and shape both
name the arm; captions are the author's.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from textwrap import fill
from typing import TYPE_CHECKING, Any

import pandas as pd

from fpt.results.arm import Arm, at_own
from fpt.results.baselines import LINEAR
from fpt.results.contrasts import Level, baseline, find_arm, level
from fpt.results.estimate import PERCENT, number_text
from fpt.results.runs import SPEC, rate_text
from fpt.show import plot
from fpt.show.html import CaptionedFigure
from fpt.sweeps.selection import by_seed, choices
from fpt.sweeps.words import in_brackets, legend_parts, legends, model_name, of_panel, task_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATA = ("study", "task", "backbone", "steps", "arm", "learning_rate", "seed", "accuracy", "selected", "diverged_at")
ALONE = ("runs", list[str]())  # runs of one sweep, whose arm nobody named
PLAIN: Mapping[str, Any] = {"color": plot.OTHERS[0], "marker": "o", "linewidth": 1.8}
WIDEST = 20  # characters of a row's name in one line: a longer one would leave a phone no room for the panel
LINES = ("--", ":", "-.")  # of baselines
MOST_POINTS = 100.0  # no accuracy and no difference is further; an interval without an end is drawn to here


def dots(
    study: str, arms: Sequence[str], caption: str, *, task: str = "", baselines: Sequence[str] = (LINEAR,)
) -> CaptionedFigure:
    """Test accuracy of some arms of a study, tuned, a row an arm: a dot a seed, the mean with its 95% interval.

    Arms and `task` as `fpt.results.contrast` reads them, with its errors. `baselines`: names that
    `fpt.results.baseline` knows on this task, each a line.
    """
    found = cells_of(study, arms, task)
    levels = {name: level(study, name, task=task) for name in arms}
    known = {name: baseline(next(iter(found.values())).task, name) for name in baselines}
    return CaptionedFigure(_dots(found, levels, known), caption)


def by_rate(study: str, arms: Sequence[str], caption: str, *, task: str = "") -> CaptionedFigure:
    """Test accuracy over the learning rate, a line an arm through the means of its seeds, with 95% intervals.

    Arguments and errors as those of `dots`.
    """
    return CaptionedFigure(_by_rate(cells_of(study, arms, task)), caption)


def cells_of(study: str, arms: Iterable[str], task: str = "") -> dict[str, Arm]:
    """Arms of a study by name, in this order. SpecError for one that is not there."""
    found = {name: find_arm(study, name, task=task) for name in arms}
    assert found, f"a figure of the study {study} needs at least one arm"
    return found


@plot.drawn
def _dots(arms: Mapping[str, Arm], levels: Mapping[str, Level], known: Mapping[str, float]) -> plot.Plot:
    sweeps = [arm.fields for arm in arms.values()]
    named = dict(zip(arms, legends(sweeps), strict=True))
    wrapped = [fill(name, WIDEST) for name in named.values()]
    lines = 1 + max(name.count("\n") for name in wrapped)
    figure, (axes,) = plot.panels_of(1, 0.4 + (0.13 + 0.16 * max(2, lines)) * len(arms), "x")
    rows: list[dict[str, Any]] = []
    for y, ((name, arm), own) in enumerate(zip(arms.items(), plot.looks_of(sweeps), strict=True)):
        seeds, shown = 100 * arm.values().dropna(), levels[name]
        axes.plot(seeds, [y - 0.18] * len(seeds), ".", color=own["color"], alpha=0.7, markersize=7)
        look = own | {"markersize": 6, "linewidth": 2, "linestyle": "none"}
        plot.intervals(axes, y + 0.12, shown.value, shown.low, shown.high, across=True, most=MOST_POINTS, **look)
        rows += [{"arm": name, "seed": seed, "accuracy": each} for seed, each in seeds.items()]
        rows.append({"arm": name, "accuracy": shown.value, "low": shown.low, "high": shown.high})
    for (name, share), line in zip(known.items(), cycle(LINES), strict=False):
        axes.axvline(share, color=plot.GREY, linestyle=line, label=f"{name}, {number_text(share, PERCENT)}%")
    axes.set_yticks(range(len(arms)), wrapped)
    axes.set(xlabel="test accuracy (%), each at its own rate", ylim=(len(arms) - 0.5, -0.5))
    if known:
        plot.shared_legend(figure, [axes])
    words = [f"{named[name]} {shown}" for name, shown in levels.items()]
    words += [f"{name} {number_text(share, PERCENT)}%" for name, share in known.items()]
    return figure.describe(
        f"Test accuracy, each at its own rate, mean and 95% interval: {'; '.join(words)}.",
        pd.DataFrame(rows),
        plot.runs_of(arms.values()),
    )


@plot.drawn
def _by_rate(arms: Mapping[str, Arm]) -> plot.Plot:
    figure, (axes,) = plot.panels_of(1)
    lines = {name: plot.over_rates(arm) for name, arm in arms.items()}
    sweeps = [arm.fields for arm in arms.values()]
    named = legends(sweeps)
    each = list(zip(named, lines.values(), strict=True))
    for number, ((name, line), look) in enumerate(zip(each, plot.looks_of(sweeps), strict=True)):
        at = 1.04 ** (number - (len(lines) - 1) / 2) * line["rate"]
        plot.intervals(axes, at, line["accuracy"], line["low"], line["high"], label=name, **look)
    beside = plot.lines_to_beat(axes, sweeps[0])
    plot.rate_axis(axes, pd.concat(lines.values())["rate"], "test accuracy (%)")
    plot.shared_legend(figure, [axes])
    best = [f"{name} at {rate_text(line.set_index('rate')['accuracy'].idxmax())}" for name, line in each]
    words = [f"{name}: {_by_rate_in_words(line['rate'], line['accuracy'])}" for name, line in each] + beside
    return figure.describe(
        f"Test accuracy by learning rate, means over seeds. Best: {', '.join(best)}. {'. '.join(words)}.",
        pd.concat(lines, names=["arm"]).reset_index("arm"),
        plot.runs_of(arms.values()),
    )


def _by_rate_in_words(rates: Iterable[float], means: Iterable[float]) -> str:
    """Means in percent, each at its rate."""
    return ", ".join(
        f"{number_text(mean, PERCENT)}% at {rate_text(rate)}" for rate, mean in zip(rates, means, strict=True)
    )


@plot.drawn
def learning_rate_figure(runs: pd.DataFrame) -> plot.Plot:
    """Test accuracy after the last step against learning rate: a panel per setup, a mark per run, and a line an arm
    through the means.

    `runs` as `load_runs` gives them, or those of one sweep as `run_sweep` and `train_fleet` do. Outlined marks are the
    runs at the rate that the other seeds chose: their mean is the tuned accuracy; x marks runs that diverged (at their
    last finite value). The best trivial strategy, where one is known, is dotted. As in Rothermel et al. 2021, figures 1
    to 3.
    """
    if runs.empty:
        return plot.nothing()
    runs = _of_one_sweep(runs) if "setup" not in runs else runs
    figure, panels = plot.panels_of(runs["setup"].nunique())
    words, differing = [], [column for column in ("backbone", "study") if column in runs and runs[column].nunique() > 1]
    accuracy = runs["test_accuracy"].astype(float).fillna(runs["guessing"])  # a run that was never finite
    sweeps = {str(sweep): _fields(rows.iloc[0]) for sweep, rows in runs.groupby("sweep", sort=False)}
    told = dict(zip(sweeps, legend_parts(list(sweeps.values())) if all(sweeps) else [ALONE], strict=True))
    runs = runs.assign(arm=runs["name" if "name" in runs else "label"], accuracy=100 * accuracy)
    for axes, (_, shown) in zip(panels, runs.groupby("setup", sort=False), strict=False):
        here = sorted(shown["sweep"].unique(), key=lambda sweep: shown["label"][shown["sweep"] == sweep].iloc[0])
        shared, names = of_panel([told[sweep] for sweep in here])
        name = _panel_name(shown, shared, differing)
        looks = plot.looks_of([sweeps[sweep] for sweep in here]) if all(sweeps) else [PLAIN]
        for number, (sweep, arm, look) in enumerate(zip(here, names, looks, strict=True)):
            of_arm = shown[shown["sweep"] == sweep]
            _rate_line(axes, of_arm, arm, 1.05 ** (number - (len(here) - 1) / 2), look)
            words.append(f"{name}, {arm}: {_tuned(of_arm)}")
        if fields := sweeps[here[0]]:
            plot.lines_to_beat(axes, fields)
        probe = "solver" in shown and (shown["solver"] == "logistic").all()
        what = "strength" if probe else "learning rate"
        plot.rate_axis(axes, shown["learning_rate"], "test accuracy (%)", what)
        axes.set_title(name)
    diverged = int(runs["diverged_at"].notna().sum())
    plot.shared_legend(figure, panels)
    return figure.describe(
        f"Test accuracy by learning rate. {'. '.join(words)}. {diverged} of {len(runs)} runs diverged.",
        runs[[name for name in DATA if name in runs]].rename(columns={"selected": "tuned"}),
        runs,
    )


def _of_one_sweep(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs without the columns that `load_runs` adds: one arm, whose task nobody named."""
    selected = at_own(runs, choices(by_seed(runs)))
    return runs.assign(
        setup="", label="runs", sweep="", name="runs", task="", variant="", guessing=math.nan, selected=selected
    )


def _fields(row: "pd.Series[Any]") -> dict[str, Any]:
    """The fields of a sweep by a row of `load_runs`, which holds options as text; none where the runs name no arm."""
    if "arm" not in row:
        return {}
    found = {name: row[name] for name in SPEC if name in row}
    plain = {name: None if pd.isna(value) or value == "" else value for name, value in found.items()}
    return plain | {name: json.loads(found[name]) for name in ("task_options", "backbone_options")}


def _panel_name(shown: pd.DataFrame, shared: Sequence[str], differing: Sequence[str]) -> str:
    """The task, and in brackets what all sweeps of a panel share, with the columns in which panels differ."""
    here = [model_name(str(each)) for each in shown[list(differing)].iloc[0] if each != "none"]
    more = [*shared, *(each for each in here if each not in shared)]
    return in_brackets(task_name(str(shown["task"].iloc[0])), more)


@plot.drawn
def budget_figure(*setups: Mapping[str, Arm]) -> plot.Plot:
    """Test accuracy over the budget, each seed at the rate that the others choose there: a panel per mapping of names
    to arms; means with 95% intervals.

    The rate is constant, so a run of fewer steps is the beginning of a longer one.
    """
    if not setups:
        return plot.nothing()
    figure, panels = plot.panels_of(len(setups))
    frames, told = [], iter(legend_parts([arm.fields for arms in setups for arm in arms.values()]))
    for axes, arms in zip(panels, (list(each.values()) for each in setups), strict=False):
        shared, names = of_panel([next(told) for _ in arms])
        task = in_brackets(task_name(arms[0].task), shared)
        frames.append(tuned_lines(axes, arms, names).assign(task=task))
        plot.lines_to_beat(axes, arms[0].fields)
        axes.set(title=task, ylabel="test accuracy, tuned (%)")
    plot.shared_legend(figure, panels)
    words = [line for frame in frames for line in _lines_in_words(frame)]
    return figure.describe(
        f"Test accuracy by budget, each seed at the rate that the others choose. {'. '.join(words)}.",
        pd.concat(frames, ignore_index=True),
        plot.runs_of(arm for arms in setups for arm in arms.values()),
    )


def _lines_in_words(shown: pd.DataFrame) -> Iterator[str]:
    """The lines of one panel, one per arm."""
    for (task, arm), line in shown.groupby(["task", "arm"], sort=False):
        means = zip(line["budget"], line["accuracy"], strict=True)
        told = [f"{number_text(mean, PERCENT)}% after {budget:,}" for budget, mean in means]
        yield f"{task}, {arm}: {', '.join(told)} steps"


def tuned_lines(axes: "Axes", arms: Sequence[Arm], names: Sequence[str]) -> pd.DataFrame:
    """One line per arm over the budgets, on a common axis, under its name. Returns what is drawn: `arm`, `budget`,
    `accuracy` (percent) and its 95% interval `low` to `high`."""
    frames, budgets = [], sorted({budget for arm in arms for budget in arm.budgets})
    looks = plot.looks_of([arm.fields for arm in arms])
    for number, (name, arm, look) in enumerate(zip(names, arms, looks, strict=True)):
        shift = 0.06 * (number - (len(arms) - 1) / 2)
        found = {budget: arm.estimate(budget=budget).in_percent for budget in arm.budgets}
        shown = plot.frame_of(found, "budget", "accuracy")
        at = [budgets.index(budget) + shift for budget in shown["budget"]]
        plot.intervals(axes, at, shown["accuracy"], shown["low"], shown["high"], label=name, **look)
        frames.append(shown.assign(arm=name))
    plot.budget_axis(axes, budgets)
    return pd.concat(frames, ignore_index=True)


def _rate_line(axes: "Axes", arm: pd.DataFrame, name: str, dodge: float, look: Mapping[str, Any]) -> None:
    """One arm of a panel: its runs, the line through their means, and those at the rates that the other seeds chose."""
    arm = arm.assign(rate=arm["learning_rate"].astype(float) * dodge)
    alive, tuned, colour = arm["diverged_at"].isna(), arm["selected"].astype(bool), look["color"]
    fill = look.get("markerfacecolor", colour)
    dot: dict[str, Any] = {"facecolor": fill, "edgecolor": colour, "s": 20, "alpha": 0.6}
    chosen = {"edgecolor": plot.INK, "s": 34, "alpha": 1.0, "zorder": 3}
    for runs, differs in (
        (arm[alive & ~tuned], {"marker": look["marker"]}),
        (arm[alive & tuned], {"marker": look["marker"], **chosen}),
        (arm[~alive], {"marker": "X", "facecolor": colour}),
    ):
        axes.scatter(runs["rate"], runs["accuracy"], **dot | differs)
    axes.plot(arm.groupby("rate")["accuracy"].mean(), label=name, markersize=4, **look)


def _tuned(arm: pd.DataFrame) -> str:
    """The tuned accuracy with the rates chosen, and the means by rate."""
    tuned, means = arm[arm["selected"].astype(bool)], arm.groupby("learning_rate")["accuracy"].mean()
    rates = " or ".join(map(rate_text, sorted(tuned["learning_rate"].unique())))
    level = number_text(tuned["accuracy"].mean(), PERCENT)
    words = f"tuned {level}% at {rates}" if len(tuned) else "no rate was eligible"
    return f"{words}, {_by_rate_in_words(means.index, means)}"
