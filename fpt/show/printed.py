"""A paper's table beside ours: the cells of studies, and the numbers as they are printed."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import pandas as pd

from fpt.claims.steps import goal_of, steps_of
from fpt.errors import check_known
from fpt.papers import paper_of, table
from fpt.papers.schema import Printed
from fpt.papers.schema import Table as PaperTable
from fpt.results.cells import AT_PAPERS_RATE, NOT_AT_THIS_SCALE, NOT_RUN, THREE_SEEDS, TUNED, Cell, StudyCells
from fpt.results.contrasts import MINUS
from fpt.results.runs import find_study, study_names
from fpt.results.stats import mean_interval, sem
from fpt.show.html import Table
from fpt.show.numbers import known_in_words, layers_in_words, papers_rates, percent, points, row_label, title
from fpt.sweeps.spec import SweepSpec

UNITS = {"accuracy": ", %", "gap": ", points", "steps": ", steps"}  # of what a table of this kind shows
BOTH = (TUNED, AT_PAPERS_RATE)
EDGE_MARK, DIVERGED_MARK, ABSENT = "†", "‡", "–"
MARKS = (
    f"{ABSENT} the study has no such sweep; {EDGE_MARK} the tuned rate is an end of the grid; {DIVERGED_MARK} runs "
    "diverged there, and their last finite accuracy counts."
)
AS_RELEASED = ": training batches with dropout, as released"
GAP_COLUMNS = {  # both accuracies are those of the last step, as the train-mode one is
    ": training": "train_accuracy_last",
    AS_RELEASED: "train_accuracy_train_mode",
    ": test": "test_accuracy_last",
    ": training - test (95% interval)": "",
}
WHAT = {
    "accuracy": "test accuracy in percent, mean ± standard error over seeds",
    "steps": "the first budget of steps at which the mean test accuracy reaches the goal, with its 95% interval (from "
    "0: no budget is excluded as too short; >: no budget suffices), and the first evaluation at which the mean "
    "validation accuracy does",
    "gap": "accuracy in percent after the last step, on training data without dropout and on test data, and their "
    "difference in points with its 95% interval (the paper: training / test / difference)",
}


def beside_paper(table: PaperTable, study: StudyCells) -> Table:
    """A paper's table: rows x tasks as the study has them, tuned / at the paper's rate, then as it is printed."""
    panels = study.by_task(table)
    columns, known = {}, {}  # by column: text by row, and the baselines
    for task, cells in panels.items():
        for part, shown in _columns(table, cells, BOTH).items():
            columns[f"{title(task)}{part}"], known[f"{title(task)}{part}"] = shown, _known(task, cells)
    columns |= {f"{title(task)} (paper)": _printed(table, task) for task in panels}
    every = [cell for cells in panels.values() for cell in cells.values()]
    tried = {cell.row for cell in every if cell.spec}
    frame = _by_row(table, columns)
    frame["row"] = [
        row_label(cell for cell in every if cell.row == row) if row in tried else f"{name}: {NOT_AT_THIS_SCALE}"
        for row, name in zip(table.rows, frame["row"], strict=True)
    ]
    return Table(_with_baselines(frame, table, known), _caption(table, every, BOTH))


def across_studies(table: PaperTable, found: Iterable[StudyCells], readings: Sequence[str] = BOTH) -> Table:
    """The same of all tasks of the paper and of several studies, a line each: nothing is averaged over studies.

    Gaps as the paper has them, training / test / difference.
    """
    of_paper = paper_of(table.paper).tasks
    columns = {f"{title(task)} (paper)": _printed(table, task) for task in of_paper}
    known = {f"{title(task)} (paper)": _known_of_paper(table, task) for task in of_paper}
    every: list[Cell] = []
    for study in found:
        for task, cells in study.by_task(table).items():
            every += cells.values()
            shown = _columns(table, cells, readings)
            parts = {row: [shown[part][row] for part in shown if part != AS_RELEASED] for row in cells}
            joined = {row: " / ".join(each if len(set(each)) > 1 else each[:1]) for row, each in parts.items()}
            name = f"{title(task)} ({study.name})"
            columns[name], known[name] = joined, _known(task, cells)
    filled = {name: shown for name, shown in columns.items() if any(shown.values())}
    frame = _with_baselines(_by_row(table, filled), table, {name: known[name] for name in filled})
    frame = frame.set_index("row").T.rename_axis("task and study").reset_index()
    return Table(frame, _caption(table, every, readings))


def _columns(table: PaperTable, cells: Mapping[str, Cell], readings: Sequence[str]) -> dict[str, dict[str, str]]:
    """What is shown of the rows of a table on one task: name -> row -> text."""
    steps = [cell.spec.steps for cell in cells.values() if cell.spec]
    usual = max(steps, key=steps.count)
    parts = GAP_COLUMNS if table.kind == "gap" else {"": ""}
    return {
        part: {row: _cell(cell, name, usual, readings) for row, cell in cells.items()} for part, name in parts.items()
    }


def printed_table(table: PaperTable, without: Sequence[str] = ()) -> Table:
    """The paper's numbers, but for the tasks `without`."""
    tasks = dict.fromkeys(task for row in table.rows.values() for task in row.printed if task not in without)
    frame = _by_row(table, {title(task): _printed(table, task) for task in tasks})
    shown = frame[(frame.drop(columns="row") != "").any(axis=1)]
    frame = _with_baselines(shown, table, {title(task): _known_of_paper(table, task) for task in tasks})
    quoted = [
        f"{row} on {title(task)}: {printed.literature}"
        for row, entry in table.rows.items()
        for task, printed in entry.printed.items()
        if printed.literature and task in tasks
    ]
    from_others = f" Quoted from others: {'; '.join(quoted)}." if quoted else ""
    words = frame.to_string()
    signs = "; ± is a standard error of the mean" * ("±" in words)
    signs += "; † training diverged, and the number is from before that" * ("†" in words)
    return Table(frame, f"{table.where or table.title}, as printed{signs}.{from_others}")


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


def _known(task: str, cells: Mapping[str, Cell]) -> str:
    """The baselines of a task in the variant that the cells have."""
    return known_in_words(task, next(cell.spec.variant for cell in cells.values() if cell.spec))


def _known_of_paper(table: PaperTable, task: str) -> str:
    return known_in_words(task, paper_of(table.paper).tasks[task].get("variant", "paper"))


def _printed(table: PaperTable, task: str) -> dict[str, str]:
    return {name: printed_text(row.printed.get(task)) for name, row in table.rows.items()}


def _cell(cell: Cell, column: str, usual: int, readings: Sequence[str]) -> str:
    """All readings, once where they are the same; with the steps, where they are not the `usual` ones."""
    if cell.problem or cell.spec is None:
        return NOT_RUN if cell.problem == NOT_RUN else ABSENT
    shown = [reading(cell, at, column) for at in readings if at != AT_PAPERS_RATE or len(cell.values(at))]
    words = " / ".join(dict.fromkeys(shown))
    return words if cell.spec.steps == usual else f"{words} ({cell.spec.steps:,} steps)"


def reading(cell: Cell, at: str, column: str = "") -> str:
    """One number of a cell with its standard error, marked where its rate ends the grid or a run diverged."""
    if at == TUNED and cell.best_rate is None:
        return "diverged"
    marks = EDGE_MARK * (at != AT_PAPERS_RATE and bool(cell.ends(at=at))) + DIVERGED_MARK * bool(cell.diverged(at))
    if column:
        return percent(cell.at(at).reindex(columns=[column])[column].astype(float).mean()) + marks
    if cell.table.kind == "steps":
        return _steps(cell, at) + marks
    values = cell.values(at)
    if cell.table.kind == "gap":
        mean, *around = map(points, mean_interval(values, cell.test_noise(at)))
        return f"{mean} ({' to '.join(around)}){marks}"
    return percent(values.mean()) + (f" ± {percent(sem(values))}" if values.count() > 1 else "") + marks


def _steps(cell: Cell, at: str) -> str:
    """To the goal of the table, at the budgets and on validation."""
    by_test, by_validation = (steps_of(cell, at, fine) for fine in (False, True))
    if by_test is None or by_validation is None:
        return "no goal"
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


def _caption(table: PaperTable, cells: Sequence[Cell], readings: Sequence[str]) -> str:
    tried = [cell for cell in cells if not cell.problem]
    words = [f"{table.where or table.title}: {WHAT.get(table.kind, '')}."]
    if AT_PAPERS_RATE in readings and any(cell.papers_rate is not None for cell in tried):
        words.append(f"Tuned / at the paper's rate ({papers_rates(tried)}); one number: equal, or not run at it.")
    if THREE_SEEDS in readings:
        words.append("The first three seeds of a study choose their rate together and are reported.")
    specs = [cell.spec for cell in tried if cell.spec]
    if table.kind == "steps" and specs:
        goals = dict.fromkeys(f"{title(spec.task)} {100 * spec.threshold:g}%" for spec in specs if spec.threshold)
        whose = f"{paper_of(table.paper).label(table.until)} after its last step" if table.until in table.rows else ""
        words.append(f"Goals: {whose or ', '.join(goals) or 'none'}. {_resolution(specs)}")
    return " ".join(filter(None, [*words, layers_in_words(tried), MARKS]))


def _resolution(specs: Iterable[SweepSpec]) -> str:
    """How far apart the steps are at which accuracy is known."""
    steps = [(spec.steps, pair) for spec in specs for pair in pairwise(spec.evaluation_steps())]
    gaps = [later / step - 1 for last, (step, later) in steps if 10 * step >= last]
    return f"Budgets are a factor of two apart; after a tenth, validations at most {max(gaps, default=0):.0%}."


def beside(table_id: str, caption: str, *, studies: Sequence[str] = (), tasks: Sequence[str] = ()) -> Table:
    """A table of a paper beside ours: a line a row of it on a task that we ran: what is printed, what we measured with
    each seed at the rate that the others choose (accuracies with 95% intervals), and where.

    `studies`: which published ones, all of them if none is named. `tasks`: which of the tasks that we ran, likewise.
    Raises SpecError for an unknown table, study or task.
    """
    shown = table(table_id)
    found = [StudyCells(find_study(name), "published") for name in studies or study_names()]
    cells = [cell for study in found if study.results for cell in study.cells(shown) if not cell.problem]
    cells = [cell for cell in cells if shown.kind != "steps" or goal_of(cell)]  # to no goal no number of steps leads
    ran = list(dict.fromkeys(cell.task for cell in cells))
    for task in tasks:
        check_known(f"task of {table_id} with results", task, ran)
    order = {task: place for place, task in enumerate(tasks or ran)}
    kept = sorted((cell for cell in cells if cell.task in order), key=lambda cell: order[cell.task])
    lines = [
        {
            "task": title(cell.task),
            "row": row_label([cell]),
            "printed": "; ".join(_printed_for(cell)),
            f"ours{UNITS.get(shown.kind, '')}": _ours(cell).replace("-", MINUS),
            "where": f"{cell.study}: {cell.spec.steps:,} steps, {cell.seeds} seeds" if cell.spec else "",
        }
        for cell in kept
    ]
    return Table(pd.DataFrame(lines), caption)


def _printed_for(cell: Cell) -> Iterable[str]:
    """What is printed for the row, with the paper's task where ours stands in its place."""
    for task, printed in cell.printed.items():
        if text := printed_text(printed):
            yield text if task == cell.task else f"{text} ({title(task)})"


def _ours(cell: Cell) -> str:
    if cell.table.kind != "accuracy" or cell.best_rate is None:
        return reading(cell, TUNED)
    mean, low, high = mean_interval(cell.values(), cell.test_noise())
    marks = EDGE_MARK * bool(cell.ends()) + DIVERGED_MARK * bool(cell.diverged())
    return f"{percent(mean)} ({percent(low)} to {percent(high)}){marks}"
