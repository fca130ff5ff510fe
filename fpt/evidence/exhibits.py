"""What a page shows of an experiment of Lu et al. 2021: its table beside the paper's, its figure, verdicts, words."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fpt.evidence.experiments import FIXED, NOT_AT_THIS_SCALE, NOT_RUN, READINGS, TUNED, Cell, Experiment, Results, Row
from fpt.evidence.rulings import Ruling, difference
from fpt.evidence.show.figures import COLOURS, NAMES, _nothing
from fpt.evidence.show.html import Table
from fpt.evidence.show.tables import percent
from fpt.evidence.stats import mean_interval
from fpt.tasks import TASKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUANTITY = {
    "accuracy": "test accuracy (%)",
    "steps": "steps to the threshold",
    "gap": "training minus test accuracy (points)",
}
GAP_COLUMNS = {  # both accuracies are those of the last step, as the train-mode one is
    "training": "train_accuracy_last",
    "training, as released": "train_accuracy_train_mode",
    "test": "test_accuracy_last",
}
EDGE_MARK, DIVERGED_MARK = "†", "‡"
ABSENT = "–"
Panels = dict[str, dict[str, Cell]]  # task -> label of the row -> what was run


def cells(experiment: Experiment, results: Results) -> Panels:
    """Every row on every task of the study on which the table can be read."""
    found = {
        task: {row.label: results.cell(experiment, row, task) for row in experiment.rows}
        for task in results.tasks_for(experiment.tasks)
    }
    compared = {task: rows for task, rows in found.items() if sum(c.sweep is not None for c in rows.values()) > 1}
    return compared or found  # one row alone compares with nothing


def experiment_table(experiment: Experiment, results: Results) -> Table:
    """Rows x tasks that were run, "own rate / paper's rate", each task beside what the paper prints for it."""
    found = cells(experiment, results)
    columns: dict[str, list[str]] = {"": [_named(row, found) for row in experiment.rows]}
    for task in found:
        columns |= {f"{title(task)}{name}": column for name, column in _ours(experiment, found[task]).items()}
        if task in experiment.tasks:
            columns[f"{title(task)} (paper)"] = [_printed(row, task) for row in experiment.rows]
    return Table(pd.DataFrame(columns), _caption(experiment, found, columns))


def printed_table(experiment: Experiment, results: Results) -> Table:
    """The paper's numbers for the tasks that the study has not, which `experiment_table` leaves out."""
    columns = {
        title(task): [_printed(row, task) for row in experiment.rows]
        for task in experiment.tasks
        if task not in cells(experiment, results)
    }
    frame = pd.DataFrame(columns, index=[row.label for row in experiment.rows])
    frame = frame[(frame != "").any(axis=1)].rename_axis("").reset_index()
    return Table(frame, f"{experiment.number} as the paper prints it, for tasks that were not run here.")


def _named(row: Row, found: Panels) -> str:
    """The row's label; a row without any sweep says so once, and not in every cell."""
    absent = all(rows[row.label].sweep is None for rows in found.values())
    return f"{row.label}: {NOT_AT_THIS_SCALE}" if absent else row.label


def _ours(experiment: Experiment, rows: dict[str, Cell]) -> dict[str, list[str]]:
    parts = {f": {part}": name for part, name in GAP_COLUMNS.items()} if experiment.kind == "gap" else {"": ""}
    steps = [int(cell.sweep["steps"]) for cell in rows.values() if cell.sweep]
    usual = max(steps, key=steps.count, default=0)
    return {part: [_text(cell, column, usual) for cell in rows.values()] for part, column in parts.items()}


def _text(cell: Cell, column: str, usual: int) -> str:
    """Both readings; with its number of steps, where that is not the `usual` one of its column."""
    if cell.problem or cell.sweep is None:
        return ABSENT if cell.sweep is None else NOT_RUN
    steps = int(cell.sweep["steps"])
    text = " / ".join(_reading(cell, reading, column) for reading in READINGS)
    return text if steps == usual else f"{text} ({steps:,} steps)"


def _reading(cell: Cell, reading: str, column: str) -> str:
    """One number of a cell, marked where its rate ends the grid or a run diverged."""
    marks = EDGE_MARK if reading == TUNED and cell.at_edge else ""
    marks += DIVERGED_MARK if cell.diverged(reading) else ""
    if reading == TUNED and cell.runs["selected_rate"].isna().all():
        return "diverged"
    if cell.kind == "gap":
        return percent(mean_interval(cell.at(reading)[column].astype(float))[0]) + marks
    middle = _middle(cell, reading)
    return _number(cell, middle) + (marks if math.isfinite(middle) else "")


def _middle(cell: Cell, reading: str) -> float:
    """The mean over seeds in percent, of steps the median; infinite where half the seeds never arrived."""
    values = cell.values(reading).dropna().to_numpy(float)
    if not len(values):
        return math.nan
    return float(np.median(values)) if cell.kind == "steps" else 100 * float(values.mean())


def _number(cell: Cell, value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.1f}" if cell.kind != "steps" else f"{value:,.0f}" if math.isfinite(value) else "not reached"


def _printed(row: Row, task: str) -> str:
    value = row.paper.get(task)
    if value is None:
        return ""
    if isinstance(value, list):
        return " / ".join(f"{each:g}" for each in value)
    return f"{value:,.0f}" if value >= 500 else f"{value:g}"


def _caption(experiment: Experiment, found: Panels, columns: dict[str, list[str]]) -> str:
    what = {
        "accuracy": "test accuracy in percent",
        "steps": "median over seeds of the first evaluated step at which validation accuracy reached the threshold",
        "gap": "accuracy in percent after the last step, on training data without dropout, on training batches as the "
        "released code measures it, and on test data (the paper: training / test)",
    }[experiment.kind]
    tried = [cell for rows in found.values() for cell in rows.values() if not cell.problem]
    rates = ", ".join(dict.fromkeys(cell.fixed_words for cell in tried))
    words = [f"{experiment.number}: {what}; at the own learning rate / at the paper's ({rates or 'none yet'})."]
    if experiment.kind == "steps":
        limits = {title(c.task): f"{100 * float(c.sweep['threshold']):g}%" for c in tried if c.sweep}
        words.append(f"Thresholds: {', '.join(f'{task} {limit}' for task, limit in limits.items())}.")
    shown = {text for column in columns.values() for text in column}
    words += [f"{ABSENT}: not run."] if ABSENT in shown else []
    words += ["Blank: the paper has no number."] if "" in shown else []
    if any(cell.at_edge for cell in tried):
        words.append(f"{EDGE_MARK} the own rate ends the grid.")
    if any(cell.diverged(reading) for cell in tried for reading in READINGS):
        words.append(f"{DIVERGED_MARK} runs diverged there; their last finite accuracy counts.")
    return " ".join(words)


def experiment_figure(experiment: Experiment, results: Results) -> Figure:
    """A panel a task, a line a row that was run there: a dot a seed, a bar their mean (of steps the median), own rate
    filled, the paper's rate open; seeds that never reached the threshold are crosses at the last step."""
    panels = _panels(experiment, results)
    if not panels:
        return _nothing()
    shared = len({tuple(rows) for rows in panels.values()}) == 1  # else every panel names its own rows
    across = min(len(panels), 3 if shared and len(panels) != 4 else 2)
    down, most = math.ceil(len(panels) / across), max(map(len, panels.values()))
    figure = Figure(figsize=(7.4, (0.34 * most + 0.7) * down + 0.6), layout="constrained")
    grid = figure.subplots(down, across, sharey=shared, squeeze=False)
    words, colours = [], dict[str, str]()
    for axes, (task, rows) in zip(grid.flat, panels.items(), strict=False):
        for place, (label, cell) in enumerate(reversed(rows.items())):
            name, colour = _colour(cell)
            colours[name] = colour
            own, fixed = (_strip(axes, cell, r, place + s, colour) for r, s in ((TUNED, 0.16), (FIXED, -0.16)))
            words.append(f"{title(task)}, {label}: {own} at its own rate, {fixed} at the rate of the paper")
        axes.set_title(title(task), fontsize=10)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_yticks(range(len(rows)), list(reversed(rows)))
        axes.set_xlabel(QUANTITY[experiment.kind], fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#e5e5e5")
        axes.set_axisbelow(True)
        if experiment.kind == "steps" and axes.get_xlim()[1] > 10 * max(axes.get_xlim()[0], 1):
            axes.set_xscale("log")
    for spare in list(grid.flat)[len(panels) :]:
        spare.set_visible(False)
    handles = [Line2D([], [], marker="o", linestyle="", color=colour) for colour in colours.values()]
    figure.legend(handles, list(colours), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.set_label(f"{experiment.title}: {QUANTITY[experiment.kind]}, one dot per seed. {'. '.join(words)}.")
    return figure


def what_to_see(experiment: Experiment, results: Results) -> str:
    """The figure in a sentence a panel: its two ends, and the row that loses most at the rate of the paper."""
    return " ".join(f"{title(task)}: {_ends(rows)}." for task, rows in _panels(experiment, results).items())


def _ends(rows: dict[str, Cell]) -> str:
    cell = next(iter(rows.values()))
    middles = {label: _middle(each, TUNED) for label, each in rows.items()}
    named: dict[str, list[str]] = {}  # rows that print the same number
    for label, value in sorted(middles.items(), key=lambda item: np.nan_to_num(item[1], nan=-1)):
        named.setdefault(_number(cell, value), []).append(label)
    ends = [f"{value} ({' and '.join(labels)})" for value, labels in named.items()]
    said = f"from {ends[0]} to {ends[-1]}" if len(ends) > 1 else f"all at {ends[0]}"
    losses = {label: middles[label] - _middle(each, FIXED) for label, each in rows.items()}
    most = max(losses, key=lambda label: losses[label])
    if cell.kind != "accuracy" or not losses[most] >= 1:
        return said
    return f"{said}; at the paper's rate {most} loses most, {losses[most]:.1f} points"


def _panels(experiment: Experiment, results: Results) -> Panels:
    """What was run, without the rest."""
    found = cells(experiment, results)
    done = {task: {label: cell for label, cell in rows.items() if not cell.problem} for task, rows in found.items()}
    return {task: rows for task, rows in done.items() if rows}


def _strip(axes: "Axes", cell: Cell, reading: str, place: float, colour: str) -> str:
    """Draw one row's seeds at one reading; their mean (or median of steps) in words."""
    values = cell.values(reading).dropna()
    if not len(values):
        return "nothing"
    steps = cell.kind == "steps"
    finite = (1 if steps else 100) * values[np.isfinite(values)]
    axes.scatter(
        finite, np.full(len(finite), place), s=16, alpha=0.7, linewidths=0.9, edgecolors=colour,
        facecolors=colour if reading == TUNED else "none",
    )  # fmt: skip
    if steps and (late := len(values) - len(finite)):
        last = np.full(late, float(cell.curves["step"].max()))
        axes.scatter(last, np.full(late, place), s=26, marker="x", color=colour, linewidths=1.2)
    middle = _middle(cell, reading)
    if math.isfinite(middle):
        axes.vlines(middle, place - 0.13, place + 0.13, color="black", linewidth=1.6)
    lost = 0 if steps else int(cell.at(reading)["diverged_at"].notna().sum())
    return _number(cell, middle) + (f" ({lost} diverged)" if lost else "")


def _colour(cell: Cell) -> tuple[str, str]:
    """Blue is frozen, orange trained in full; dark is pretrained, light is random."""
    trained, init = str((cell.sweep or {})["trainable"]), str((cell.sweep or {})["init"])
    short = ("U" if trained == "all" else "F") + ("P" if init == "pretrained" else "R")
    return NAMES[short].replace("unfrozen", "trained in full,"), COLOURS[short]


def ruling_table(rulings: Sequence[Ruling], caption: str = "") -> Table:
    """Verdicts as a table: a row a claim, task and reading; claims that were not tried share the last rows."""
    rows, untried = [], dict[str, list[str]]()  # why not, or the verdict -> claims
    for ruling in rulings:
        if not (ruling.tests or ruling.exploratory):
            untried.setdefault(ruling.note or ruling.verdict, []).append(ruling.claim)
            continue
        rows.append(
            {
                "claim": ruling.claim,
                "verdict": ruling.verdict,
                "task": title(ruling.task) if ruling.task else "",
                "rate": "own" if ruling.reading == TUNED else ruling.rates or "the paper's",
                "tested": ruling.statement,
                "difference (95% interval)": "; ".join(filter(None, (difference(ruling, t) for t in ruling.tests))),
                "seeds": str(min((test.n for test in ruling.tests), default="")),
                "note": ruling.note,
            }
        )
    rows += [{"claim": ", ".join(dict.fromkeys(names)), "verdict": said} for said, names in untried.items()]
    return Table(pd.DataFrame(rows).fillna(""), caption)


def what_was_run(experiment: Experiment, results: Results) -> str:
    """One sentence: the tasks, their steps, and how much of it is there."""
    sweeps = {c.sweep["sweep"]: c for rows in cells(experiment, results).values() for c in rows.values() if c.sweep}
    if not sweeps:
        return f"The study {results.plan[0]['study']} has no sweep of this table: it needs other weights."
    steps: dict[str, set[int]] = {}
    for cell in sweeps.values():
        steps.setdefault(title(cell.task), set()).add(int((cell.sweep or {})["steps"]))
    words = [f"{task} ({' and '.join(f'{n:,}' for n in sorted(each))} steps)" for task, each in steps.items()]
    done = sum(not cell.problem for cell in sweeps.values())
    there = (
        NOT_RUN if not done else f"{'all' if done == len(sweeps) else f'{done} of the'} {len(sweeps)} sweeps are there"
    )
    return f"{', '.join(words)}: {there}."


def title(task: str) -> str:
    """The task's name in tables and figures, where there is little room."""
    return SHORT.get(task, TASKS[task].title)


SHORT = {"homology": "Homology", "digits": "Digits", "listops-short": "ListOps, short"}
