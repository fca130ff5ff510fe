"""A paper's table beside ours: the cells of studies, and the numbers as they are printed."""

from collections.abc import Iterable, Sequence

import pandas as pd

from fpt.claims.steps import goal_of, steps_of
from fpt.errors import check_known
from fpt.papers import table
from fpt.papers.schema import Printed
from fpt.results.cells import TUNED, StudyCells, TableCell
from fpt.results.contrasts import MINUS
from fpt.results.runs import find_study, study_names
from fpt.results.stats import mean_interval
from fpt.show.html import Table
from fpt.show.numbers import percent, points, row_label, title

UNITS = {"accuracy": ", %", "gap": ", points", "steps": ", steps"}  # of what a table of this kind shows
EDGE_MARK, DIVERGED_MARK = "†", "‡"


def printed_text(printed: Printed | None) -> str:
    """A number as the paper prints it, with its mark and its standard error."""
    if printed is None or printed.value is None:
        return ""
    values = printed.value if isinstance(printed.value, tuple) else (printed.value,)
    digits = "g" if printed.sem is None else ".1f"
    shown = [each if isinstance(each, str) else _number(each, digits) for each in values]
    error = "" if printed.sem is None else f" ± {printed.sem:.1f}"
    return " / ".join(shown) + printed.mark + error


def _number(value: float, digits: str) -> str:
    return format(value, ",.0f" if value >= 500 else digits)


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


def _printed_for(cell: TableCell) -> Iterable[str]:
    """What is printed for the row, with the paper's task where ours stands in its place."""
    for task, printed in cell.printed.items():
        if text := printed_text(printed):
            yield text if task == cell.task else f"{text} ({title(task)})"


def _ours(cell: TableCell) -> str:
    """One number with its 95% interval, marked where its rate ends the grid or a run diverged."""
    if cell.best_rate is None:
        return "diverged"
    marks = EDGE_MARK * bool(cell.ends()) + DIVERGED_MARK * bool(cell.diverged())
    if cell.table.kind == "steps":
        return _steps(cell) + marks
    shown = points if cell.table.kind == "gap" else percent
    mean, low, high = map(shown, mean_interval(cell.values(), cell.test_noise()))
    return f"{mean} ({low} to {high}){marks}"


def _steps(cell: TableCell) -> str:
    """To the goal of the table, at the budgets and on validation."""
    by_test, by_validation = (steps_of(cell, TUNED, fine) for fine in (False, True))
    if by_test is None or by_validation is None:
        return "no goal"
    return f"{by_test.words}, validation {by_validation.words.partition(' (')[0]}"
