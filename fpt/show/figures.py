"""Arms over the learning rate and over the budget. Colour and shape both name the arm."""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from fpt.results.arm import Arm, at_own
from fpt.results.estimate import percent
from fpt.results.runs import SPEC, rate_text
from fpt.show import plot
from fpt.show.names import title
from fpt.sweeps.selection import by_seed, choices
from fpt.sweeps.words import legends

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATA = ("study", "task", "backbone", "steps", "arm", "learning_rate", "seed", "accuracy", "selected", "diverged_at")
ALONE = ("runs", list[str]())  # runs of one sweep, whose arm nobody named
PLAIN: Mapping[str, Any] = {"color": plot.OTHERS[0], "marker": "o", "linewidth": 1.8}


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
    told = dict(zip(sweeps, legends(list(sweeps.values())) if all(sweeps) else [ALONE], strict=True))
    runs = runs.assign(arm=runs["name" if "name" in runs else "label"], accuracy=100 * accuracy)
    for axes, (_, shown) in zip(panels, runs.groupby("setup", sort=False), strict=False):
        here = sorted(shown["sweep"].unique(), key=lambda sweep: shown["label"][shown["sweep"] == sweep].iloc[0])
        shared = _shared([told[sweep][1] for sweep in here])
        name = _panel_name(shown, shared, differing)
        looks = plot.looks_of([sweeps[sweep] for sweep in here]) if all(sweeps) else [PLAIN]
        for number, (sweep, look) in enumerate(zip(here, looks, strict=True)):
            of_arm, arm = shown[shown["sweep"] == sweep], _in_panel(*told[sweep], shared)
            _rate_line(axes, of_arm, arm, 1.05 ** (number - (len(here) - 1) / 2), look)
            words.append(f"{name}, {arm}: {_tuned(of_arm)}")
        if task := str(shown["task"].iloc[0]):
            labels = sweeps[here[0]].get("task_options", {}).get("labels", 0)
            plot.lines_to_beat(axes, task, str(shown["variant"].iloc[0]), labels)
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


def _shared(more: Sequence[Sequence[str]]) -> list[str]:
    """What is said of all of some sweeps: it stands in the title of their panel."""
    first, *others = more
    return [word for word in first if all(word in each for each in others)]


def _in_panel(arm: str, more: Sequence[str], shared: Sequence[str]) -> str:
    """An arm in the legend of a panel, without what its title says."""
    return plot.in_brackets(arm, [word for word in more if word not in shared])


def _panel_name(shown: pd.DataFrame, shared: Sequence[str], differing: Sequence[str]) -> str:
    """The task, and in brackets what all sweeps of a panel share, with the columns in which panels differ."""
    more = [*shared, *(str(each) for each in shown[list(differing)].iloc[0] if each not in (*shared, "none"))]
    return plot.in_brackets(title(str(shown["task"].iloc[0])), more)


@plot.drawn
def budget_figure(*setups: Mapping[str, Arm]) -> plot.Plot:
    """Test accuracy over the budget, each seed at the rate that the others choose there: a panel per mapping of
    names to arms; means with 95% intervals.

    The rate is constant, so a run of fewer steps is the beginning of a longer one.
    """
    done = [cells for cells in setups if cells]
    if not done:
        return plot.nothing()
    figure, panels = plot.panels_of(len(done))
    frames, told = [], iter(legends(plot.fields_of(cell for cells in done for cell in cells.values())))
    for axes, cells in zip(panels, done, strict=False):
        here = [next(told) for _ in cells]
        shared = _shared([more for _, more in here])
        task = plot.in_brackets(title(next(iter(cells.values())).task), shared)
        names = [_in_panel(*each, shared) for each in here]
        frames.append(tuned_lines(axes, cells.values(), names).assign(task=task))
        plot.lines_below(axes, plot.fields_of(cells.values())[0])
        axes.set(title=task, ylabel="test accuracy, tuned (%)")
    plot.shared_legend(figure, panels)
    words = [line for frame in frames for line in _lines_in_words(frame)]
    return figure.describe(
        f"Test accuracy by budget, each seed at the rate that the others choose. {'. '.join(words)}.",
        pd.concat(frames, ignore_index=True),
        plot.runs_of(cell for cells in done for cell in cells.values()),
    )


def _lines_in_words(shown: pd.DataFrame) -> Iterator[str]:
    """The lines of one panel, one per arm."""
    for (task, arm), line in shown.groupby(["task", "arm"], sort=False):
        means = [f"{percent(mean / 100)}% after {at:,}" for at, mean in line.set_index("budget")["accuracy"].items()]
        yield f"{task}, {arm}: {', '.join(means)} steps"


def tuned_lines(axes: "Axes", cells: Collection[Arm], names: Sequence[str]) -> pd.DataFrame:
    """One line per arm over the budgets, on a common axis, under its name. Returns what is drawn: `arm`, `budget`,
    `accuracy` (percent) and its 95% interval `low` to `high`."""
    frames, budgets = [], sorted({budget for cell in cells for budget in cell.budgets})
    looks = plot.looks_of(plot.fields_of(cells))
    for number, (name, cell) in enumerate(zip(names, cells, strict=True)):
        shift = 0.06 * (number - (len(cells) - 1) / 2)
        found = {step: cell.estimate(budget=step).in_percent for step in cell.budgets}
        means = {step: (each.value, *each.interval) for step, each in found.items()}
        shown = pd.DataFrame(means, index=["accuracy", "low", "high"]).T.rename_axis("budget")
        around = plot.bar(shown["accuracy"], shown["low"], shown["high"])
        places = [budgets.index(budget) + shift for budget in shown.index]
        axes.errorbar(places, shown["accuracy"], yerr=around, label=name, **looks[number])
        frames.append(shown.reset_index().assign(arm=name))
    budget_axis(axes, budgets)
    return pd.concat(frames, ignore_index=True)


def budget_axis(axes: "Axes", budgets: Sequence[int]) -> None:
    """Budgets at equal distances: each is twice the one before."""
    axes.set_xticks(range(len(budgets)), [f"{budget:,}" for budget in budgets])
    axes.set(xlabel="budget (steps)", xlim=(-0.5, len(budgets) - 0.5))


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
    words = f"tuned {percent(tuned['accuracy'].mean() / 100)}% at {rates}" if len(tuned) else "no rate was eligible"
    return ", ".join([words, *(f"{percent(mean / 100)}% at {rate_text(rate)}" for rate, mean in means.items())])
