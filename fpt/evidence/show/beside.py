"""A paper's table beside ours: the cells of studies, and the numbers as they are printed."""

from collections.abc import Mapping, Sequence

import pandas as pd

from fpt.evidence.cells import AT_PAPERS_RATE, NOT_AT_THIS_SCALE, NOT_RUN, TUNED, Cell, StudyCells
from fpt.evidence.show import text
from fpt.evidence.show.html import Table
from fpt.evidence.show.numbers import known_in_words, percent, title
from fpt.evidence.stats import sem
from fpt.evidence.steps import goal_of, reach
from fpt.papers import paper_of
from fpt.papers.schema import Printed
from fpt.papers.schema import Table as PaperTable

EDGE_MARK, DIVERGED_MARK, ABSENT = "†", "‡", "–"
MARKS = (
    f"{ABSENT} no sweep of the study; {EDGE_MARK} the tuned rate ends the grid; {DIVERGED_MARK} runs diverged there, "
    "their last finite accuracy counts."
)
GAP_COLUMNS = {  # both accuracies are those of the last step, as the train-mode one is
    ": training": "train_accuracy_last",
    ": training, as released": "train_accuracy_train_mode",
    ": test": "test_accuracy_last",
}
WHAT = {
    "accuracy": "test accuracy in percent, mean ± standard error over seeds",
    "steps": "the first budget of steps at which the mean test accuracy is at the goal, with its 95% interval (> where "
    "no budget is enough), and the first evaluation at which the mean validation accuracy is",
    "gap": "accuracy in percent after the last step, on training data without dropout, on training batches as the "
    "released code measures it, and on test data (the paper: training / test)",
}


def beside_paper(table: PaperTable, found: Sequence[StudyCells]) -> Table:
    """A paper's table: rows x tasks as the studies have them, tuned / at the paper's rate, then as it is printed.

    Every study, and every setup of it, has columns of its own: nothing is averaged over setups.
    """
    columns: dict[str, dict[str, str]] = {}
    known: dict[str, str] = {}  # baselines by column
    panels = [(study.name, task, cells) for study in found for task, cells in study.by_task(table).items()]
    for study, task, cells in panels:
        head = title(task) if len(found) == 1 else f"{title(task)} ({study})"
        steps = [cell.spec.steps for cell in cells.values() if cell.spec]
        usual = max(steps, key=steps.count)
        for part, name in GAP_COLUMNS.items() if table.kind == "gap" else [("", "")]:
            columns[f"{head}{part}"] = {row: _cell(cell, name, usual) for row, cell in cells.items()}
            known[f"{head}{part}"] = known_in_words(
                task, next(cell.spec.variant for cell in cells.values() if cell.spec)
            )
    columns |= {f"{title(task)} (paper)": _printed(table, task) for _, task, _ in panels}
    every = [cell for _, _, cells in panels for cell in cells.values()]
    tried = {cell.row for cell in every if cell.spec}
    frame = _by_row(table, columns)
    frame["row"] += ["" if row in tried else f": {NOT_AT_THIS_SCALE}" for row in table.rows]
    return Table(_with_baselines(frame, table, known), _caption(table, every))


def printed_table(table: PaperTable, without: Sequence[str] = ()) -> Table:
    """The paper's numbers, but for the tasks `without`."""
    tasks = dict.fromkeys(task for row in table.rows.values() for task in row.printed if task not in without)
    frame = _by_row(table, {title(task): _printed(table, task) for task in tasks})
    shown = frame[(frame.drop(columns="row") != "").any(axis=1)]
    variants = {task: paper_of(table.paper).tasks[task].get("variant", "paper") for task in tasks}
    known = {title(task): known_in_words(task, variant) for task, variant in variants.items()}
    frame = _with_baselines(shown, table, known)
    quoted = [
        f"{row} on {title(task)}: {printed.literature}"
        for row, entry in table.rows.items()
        for task, printed in entry.printed.items()
        if printed.literature and task in tasks
    ]
    from_others = f" Quoted from others: {'; '.join(quoted)}." if quoted else ""
    return Table(frame, f"{table.where or table.title}, as printed; ± is a standard error of the mean.{from_others}")


def _by_row(table: PaperTable, columns: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """Columns (row -> text) in the table's order of rows, after a column of the rows as the paper names them."""
    frame = pd.DataFrame(columns, index=list(table.rows), dtype=object).fillna("")
    frame.insert(0, "row", [paper_of(table.paper).label(row) for row in table.rows])
    return frame


def _with_baselines(frame: pd.DataFrame, table: PaperTable, known: Mapping[str, str]) -> pd.DataFrame:
    """A last row: what each column's task takes without training the model; tables of steps have none."""
    if table.kind not in ("accuracy", "gap") or frame.empty:
        return frame
    return pd.concat([frame, pd.DataFrame([{"row": "Baselines", **known}])], ignore_index=True).fillna("")


def _printed(table: PaperTable, task: str) -> dict[str, str]:
    return {name: printed_text(row.printed.get(task)) for name, row in table.rows.items()}


def _cell(cell: Cell, column: str, usual: int) -> str:
    """Both readings, once where they are the same; with the steps, where they are not the `usual` ones."""
    if cell.problem or cell.spec is None:
        return NOT_RUN if cell.problem == NOT_RUN else ABSENT
    readings = [_reading(cell, at, column) for at in (TUNED, AT_PAPERS_RATE) if at == TUNED or len(cell.values(at))]
    words = " / ".join(dict.fromkeys(readings))
    return words if cell.spec.steps == usual else f"{words} ({cell.spec.steps:,} steps)"


def _reading(cell: Cell, at: str, column: str) -> str:
    """One number of a cell with its standard error, marked where its rate ends the grid or a run diverged."""
    if at == TUNED and cell.best_rate is None:
        return "diverged"
    marks = EDGE_MARK * (at == TUNED and cell.at_edge) + DIVERGED_MARK * bool(cell.diverged(at))
    if column:
        return percent(cell.at(at).reindex(columns=[column])[column].astype(float).mean()) + marks
    if cell.table.kind == "steps":
        return _steps(cell, at) + marks
    values = cell.values(at)
    around = f" ± {100 * sem(values):.1f}" if cell.table.kind == "accuracy" and values.count() > 1 else ""
    return percent(values.mean()) + around + marks


def _steps(cell: Cell, at: str) -> str:
    """To the goal of the table, at the budgets and on validation."""
    goal = goal_of(cell, at)
    if goal is None:
        return "no goal"
    by_test, by_validation = (reach(cell, goal, at, fine) for fine in (False, True))
    return f"{by_test.words}, validation {by_validation.words.partition(' (')[0]}"


def printed_text(printed: Printed | None) -> str:
    """A number as the paper prints it, with its mark and its standard error."""
    if printed is None or printed.value is None:
        return ""
    values = printed.value if isinstance(printed.value, tuple) else (printed.value,)
    digits = "g" if printed.sem is None else ".1f"
    shown = [each if isinstance(each, str) else format(each, ",.0f" if each >= 500 else digits) for each in values]
    error = "" if printed.sem is None else f" ± {printed.sem:.1f}"
    return " / ".join(shown) + printed.mark + error


def _caption(table: PaperTable, cells: Sequence[Cell]) -> str:
    tried = [cell for cell in cells if not cell.problem]
    words = [f"{table.where or table.title}: {WHAT.get(table.kind, '')}."]
    if any(cell.papers_rate is not None for cell in tried):
        words.append(f"Tuned / at the paper's rate ({text.papers_rates(tried)}); one: the same, or not run at it.")
    if table.kind == "steps":
        specs = [cell.spec for cell in tried if cell.spec and cell.spec.threshold]
        goals = dict.fromkeys(f"{title(spec.task)} {100 * (spec.threshold or 0):g}%" for spec in specs)
        words.append(f"Thresholds: {', '.join(goals) or 'none'}.")
    return " ".join([*words, MARKS])
