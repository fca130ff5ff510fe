"""What a page shows of an experiment of Lu et al. 2021: its table beside the paper's, its figure, verdicts, words."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fpt.evidence.experiments import FIXED, NOT_AT_THIS_SCALE, NOT_RUN, READINGS, TUNED, Cell, Experiment, Results, Row
from fpt.evidence.figures import COLOURS, GREY, _nothing
from fpt.evidence.page import Table
from fpt.evidence.results import rate_text
from fpt.evidence.rulings import Ruling, difference
from fpt.evidence.stats import mean_interval
from fpt.evidence.tables import percent
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
EDGE_MARK, DIVERGED_MARK = "*", "†"


def cells(experiment: Experiment, results: Results) -> dict[tuple[str, str], Cell]:
    """{(row, task)} for every task of the study on which the table can be read."""
    found = {
        (row.label, task): results.cell(experiment, row, task)
        for task in results.tasks_for(experiment.tasks)
        for row in experiment.rows
    }
    tasks = {task for _, task in found}
    empty = {task for task in tasks if sum(found[row.label, task].sweep is not None for row in experiment.rows) < 2}
    if len(empty) < len(tasks):  # one row alone compares with nothing
        found = {key: cell for key, cell in found.items() if key[1] not in empty}
    return found


def experiment_table(experiment: Experiment, results: Results) -> Table:
    """Rows x tasks, "own rate / paper's rate", with the paper's own numbers in columns of their own."""
    found = cells(experiment, results)
    tasks = list(dict.fromkeys(task for _, task in found))
    columns: dict[str, list[str]] = {"": [_named(row, found) for row in experiment.rows]}
    for task in tasks:
        for name, column in _ours(experiment, found, task).items():
            columns[f"{_title(task)}{name}"] = column
        if task in experiment.tasks:
            columns[f"{_title(task)} (paper)"] = [_printed(row, task) for row in experiment.rows]
    for task in experiment.tasks:
        if task not in tasks:
            columns[f"{_title(task)} (paper)"] = [_printed(row, task) for row in experiment.rows]
    return Table(pd.DataFrame(columns), _caption(experiment, list(found.values())))


def _named(row: Row, found: dict[tuple[str, str], Cell]) -> str:
    """The row's label; a row without any sweep says so once, and not in every cell."""
    absent = all(cell.sweep is None for (label, _), cell in found.items() if label == row.label)
    return f"{row.label}: {NOT_AT_THIS_SCALE}" if absent else row.label


def _ours(experiment: Experiment, found: dict[tuple[str, str], Cell], task: str) -> dict[str, list[str]]:
    parts = GAP_COLUMNS if experiment.kind == "gap" else {"": ""}
    texts: dict[str, list[str]] = {}
    steps = {label: int(cell.sweep["steps"]) for (label, at), cell in found.items() if at == task and cell.sweep}
    usual = max(steps.values(), key=list(steps.values()).count, default=0)
    for part, column in parts.items():
        key = f": {part}" if part else ""
        texts[key] = []
        for row in experiment.rows:
            cell = found[row.label, task]
            text = "–" if cell.sweep is None else NOT_RUN
            text = text if cell.problem else " / ".join(_reading(cell, r, column) for r in READINGS)
            own = steps.get(row.label, usual)
            texts[key].append(text if own == usual else f"{text} ({own:,} steps)")
    return texts


def _reading(cell: Cell, reading: str, column: str) -> str:
    """One number of a cell, marked where its rate ends the grid or a run diverged."""
    marks = EDGE_MARK if reading == TUNED and cell.at_edge else ""
    marks += DIVERGED_MARK if cell.diverged(reading) else ""
    if reading == TUNED and cell.runs["selected_rate"].isna().all():
        return "diverged"
    if cell.kind == "gap":
        runs = cell.at(reading)
        values = runs[column].astype(float)
    else:
        values = cell.values(reading)
    if cell.kind != "steps":
        return percent(mean_interval(values)[0]) + marks
    if not len(values):
        return "-"
    middle = float(np.median(values))
    return f"{middle:,.0f}{marks}" if np.isfinite(values).mean() >= 0.5 and math.isfinite(middle) else "not reached"


def _printed(row: Row, task: str) -> str:
    value = row.paper.get(task)
    if value is None:
        return ""
    if isinstance(value, list):
        return " / ".join(f"{each:g}" for each in value)
    return f"{value:,.0f}" if value >= 500 else f"{value:g}"


def _caption(experiment: Experiment, shown: list[Cell]) -> str:
    what = {
        "accuracy": "test accuracy in percent",
        "steps": "median over seeds of the first evaluated step at which validation accuracy reached the threshold",
        "gap": "accuracy in percent after the last step, on training data without dropout, on training batches as the "
        "released code measures it, and on test data (the paper: training / test)",
    }[experiment.kind]
    rates = ", ".join(dict.fromkeys(cell.fixed_words for cell in shown if not cell.problem))
    words = [f"{experiment.number}: {what}; each at its own learning rate / at the paper's ({rates or 'none yet'})."]
    tried = [cell for cell in shown if not cell.problem]
    if any(cell.is_exploratory for cell in shown):
        words.append("Exploratory: the seeds shown also chose the rate.")
    if any(cell.at_edge for cell in tried):
        words.append(f"{EDGE_MARK} the own rate ends the grid.")
    if any(cell.diverged(reading) for cell in tried for reading in READINGS):
        words.append(f"{DIVERGED_MARK} runs diverged there; their last finite accuracy counts.")
    return " ".join(words)


def experiment_figure(experiment: Experiment, results: Results) -> Figure:
    """A panel a task, a line a row: every seed a dot and their mean a bar, own rate filled, the paper's rate open."""
    found = {key: cell for key, cell in cells(experiment, results).items() if not cell.problem}
    tasks = list(dict.fromkeys(task for _, task in found))
    rows = [row.label for row in experiment.rows if any(label == row.label for label, _ in found)]
    if not found:
        return _nothing()
    across = 2 if len(tasks) == 4 else min(len(tasks), 3)
    down = math.ceil(len(tasks) / across)
    figure = Figure(figsize=(7.4, (0.34 * len(rows) + 0.7) * down + 0.4), layout="constrained")
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    words = []
    for axes, task in zip(grid.flat, tasks, strict=False):
        for place, label in enumerate(reversed(rows)):
            if (label, task) not in found:
                continue
            said = []
            for reading, shift in ((TUNED, 0.16), (FIXED, -0.16)):
                mean = _strip(axes, found[label, task], reading, place + shift)
                said.append(f"{mean} {'at its own rate' if reading == TUNED else 'at the rate of the paper'}")
            words.append(f"{_title(task)}, {label}: {', '.join(said)}")
        axes.set_title(_title(task), fontsize=10)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_yticks(range(len(rows)), list(reversed(rows)))
        axes.set_xlabel(QUANTITY[experiment.kind], fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#e5e5e5")
        axes.set_axisbelow(True)
        if experiment.kind == "steps" and axes.get_xlim()[1] > 10 * max(axes.get_xlim()[0], 1):
            axes.set_xscale("log")
    for spare in list(grid.flat)[len(tasks) :]:
        spare.set_visible(False)
    figure.set_label(f"{experiment.title}: {QUANTITY[experiment.kind]}, one dot per seed. {'. '.join(words)}.")
    return figure


def _strip(axes: "Axes", cell: Cell, reading: str, place: float) -> str:
    """Draw one row's seeds at one reading; their mean (or median of steps) in words."""
    values = cell.values(reading).dropna()
    if not len(values):
        return "nothing"
    steps = cell.kind == "steps"
    scale, colour = 1 if steps else 100, _colour(cell)
    finite = values[np.isfinite(values)]
    lost = cell.at(reading)["diverged_at"].notna().to_numpy().sum() if not steps else len(values) - len(finite)
    axes.scatter(
        scale * finite, np.full(len(finite), place), s=16, alpha=0.7, linewidths=0.9, edgecolors=colour,
        facecolors=colour if reading == TUNED else "none",
    )  # fmt: skip
    if steps and lost:
        last = np.full(lost, float(cell.curves["step"].max()))
        axes.scatter(last, np.full(lost, place), s=26, marker="x", color=colour, linewidths=1.2)
    middle = float(np.median(values)) if steps else float(values.mean())
    if not math.isfinite(middle):
        return "not reached"
    axes.vlines(scale * middle, place - 0.13, place + 0.13, color="black", linewidth=1.6)
    return f"{middle:,.0f}" if steps else f"{100 * middle:.1f}" + (f" ({lost} diverged)" if lost else "")


def _colour(cell: Cell) -> str:
    """Blue is frozen, orange trained in full; dark is pretrained, light is random."""
    if cell.sweep is None:
        return GREY
    short = "U" if cell.sweep["trainable"] == "all" else "F"
    return COLOURS[short + ("R" if cell.sweep["init"] == "random" else "P")]


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
                "task": _title(ruling.task) if ruling.task else "",
                "tested": ruling.statement,
                "rate": "own" if ruling.reading == TUNED else ruling.rates or "the paper's",
                "difference (95% interval)": "; ".join(filter(None, (difference(ruling, t) for t in ruling.tests))),
                "seeds": str(min((test.n for test in ruling.tests), default="")),
                "verdict": ruling.verdict,
                "note": ruling.note,
            }
        )
    rows += [{"claim": ", ".join(dict.fromkeys(names)), "verdict": said} for said, names in untried.items()]
    if any(ruling.exploratory for ruling in rulings):
        caption = f"{caption} Exploratory: the seeds shown also chose the rate.".strip()
    return Table(pd.DataFrame(rows).fillna(""), caption)


def what_was_run(experiment: Experiment, results: Results) -> str:
    """One sentence: the model, tasks, steps, rates, seeds, how much of it is there, and whether it is exploratory."""
    found = [cell for cell in cells(experiment, results).values() if cell.sweep is not None]
    sweeps = {cell.sweep["sweep"]: cell for cell in found if cell.sweep is not None}
    study = str(results.plan[0]["study"])
    if not sweeps:
        return f"The study {study} has no sweep of this table: it needs other weights."
    steps = dict.fromkeys(f"{_title(c.task)}, {int(c.sweep['steps']):,} steps" for c in sweeps.values() if c.sweep)
    done = [cell for cell in sweeps.values() if not cell.problem]
    tail = f"{len(done)} of its {len(sweeps)} sweeps are there."
    if not done:
        return f"Planned with {results.backbone} on {'; '.join(steps)}: not run yet."
    runs = pd.concat([cell.runs for cell in done])
    grid = ", ".join(rate_text(rate) for rate in sorted(runs["learning_rate"].unique()))
    seeds = {stage: runs.loc[runs["stage"] == stage, "seed"].nunique() for stage in ("selection", "confirmation")}
    how = f"rates {grid}; seeds that select the rate: {seeds['selection']}, fresh ones: {seeds['confirmation']}"
    mark = (
        " Exploratory: the seeds that chose a rate are the ones reported."
        if any(cell.is_exploratory for cell in done)
        else ""
    )
    return f"With {results.backbone} on {'; '.join(steps)}; {how}. {tail}{mark}"


def _title(task: str) -> str:
    return SHORT.get(task, TASKS[task].title) if task in PLAIN_TITLES else task


SHORT = {"homology": "Homology"}  # columns are narrow
PLAIN_TITLES = ("bit-memory", "bit-xor", "listops", "mnist", "cifar10", "cifar10-lra", "homology")
