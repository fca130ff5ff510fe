"""Double entry: every printed number as first transcribed, against what `fpt/papers` states now.

`tests/data/printed.yaml` has the numbers of the tables by table, row and task, differences and ratios of rows, rates
and steps of the recipes, and what is printed outside tables, by claim.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fpt.documents import read_document
from fpt.papers.schema import Paper, Printed, Table

DATA = Path(__file__).parent / "data" / "printed.yaml"
GAP = ("train", "test")


def transcribed() -> dict[str, Any]:
    """The file, as it is."""
    content: dict[str, Any] = read_document(DATA, DATA.name)[0]
    return content


def all_differences(first: Mapping[str, Any], papers: Mapping[str, Paper]) -> list[str]:
    """One line for each number that is not the same in both places; `papers` hold all tables."""
    tables = {name: table for paper in papers.values() for name, table in paper.tables.items()}
    claims = {name: claim for paper in papers.values() for name, claim in paper.claims.items()}
    lines = [line for name, rows in first["tables"].items() for line in _of_table(tables[name], rows)]
    lines += [line for entry in first["differences"] for line in _of_difference(tables[entry["table"]], entry)]
    for entry in first["recipes"]:
        paper = papers[claims[entry["claim"]].paper]
        stated = paper.rates[entry["rate"]] if "rate" in entry else paper.tasks[entry["task"]][entry["field"]]
        lines += [] if stated == entry["is"] else [f"{entry}: {stated!r} is stated"]
    for name, numbers in first["numbers"].items():
        stated = claims[name].numbers
        lines += [] if stated == numbers else [f"{name}: {stated!r} was transcribed as {numbers!r}"]
    return lines


def _of_table(table: Table, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for row, cells in rows.items():
        for place, value in cells.items():
            task, _, of = place.partition(" ")  # "mnist", or of a gap "mnist train"
            stated = _number(table, table.rows[row].printed[task], of, value)
            if stated != value:
                yield f"{table.id}, {row}, {place}: {stated!r} was transcribed as {value!r}"


def _number(table: Table, printed: Printed, of: str, wanted: Any) -> Any:
    """A printed number; with its standard error where that was transcribed too."""
    if isinstance(printed.value, tuple):
        return printed.value[GAP.index(of)] if of else list(printed.value)
    if table.kind == "accuracy" and isinstance(wanted, list):
        return [printed.value, printed.sem]
    return printed.value


def _of_difference(table: Table, entry: Mapping[str, Any]) -> Iterator[str]:
    """Of the best of some rows, less (or over) the best of others."""

    def best(rows: str | list[str]) -> Any:
        names = [rows] if isinstance(rows, str) else rows
        return max(table.rows[name].printed[entry["task"]].value for name in names)

    value = best(entry["row"])
    stated = value - best(entry["minus"]) if "minus" in entry else value / best(entry["over"])
    if round(stated, 6) != entry["is"]:
        yield f"{table.id}: {dict(entry)} is {stated:g}"
