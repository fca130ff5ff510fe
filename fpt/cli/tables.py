"""What commands print: tables of whole names and numbers, lines, and JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from unicodedata import category

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

LETTERS = 16  # of a name, which are not broken

Cell = str | int | None

console = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)


def printable(text: str) -> str:
    """Text of which a terminal obeys nothing: names of files and in data may hold control characters."""
    shown = (each.isprintable() or each == "\n" or category(each) == "Zs" for each in text)
    return "".join(each if kept else repr(each)[1:-1] for each, kept in zip(text, shown, strict=True))


def literal(text: str) -> str:
    """The same, of which rich takes nothing for markup."""
    return escape(printable(text))


def log(line: str) -> None:
    """Print a line about the work, without markup."""
    console.print(printable(line), markup=False)


def nothing(line: str) -> None:
    """In the place of `log` where a program reads what is printed: nothing else is."""


def show_json(content: Any) -> None:
    """Print what a program reads."""
    typer.echo(json.dumps(content, indent=1, allow_nan=False))


def show_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]], as_json: bool = False) -> None:
    """Print a table of values, or its rows as JSON for programs. Whole numbers have columns of their own."""
    values = [dict(zip(heads, row, strict=True)) for row in rows]
    if as_json:
        show_json(values)
        return
    numbers = {head for row in values for head, value in row.items() if isinstance(value, int)}
    columns = [numbers_of(head) if head in numbers else head for head in heads]
    console.print(table_of(title, columns, [list(map(_text, row.values())) for row in values]))


def _text(value: Cell) -> str:
    return f"{value:,}" if isinstance(value, int) else value or ""


def table_of(title: str, columns: Sequence[str | Column], rows: Iterable[Iterable[str]]) -> Table:
    """A table whose title and cells are shown as they are: nothing in them is markup, and nothing is cut. Numbers are
    columns on the right. Where the screen is too narrow for them in one line, a row becomes a block of lines."""
    shown = [replace(column, header=printable(str(column.header))) for column in map(_column, columns)]
    cells = [tuple(map(printable, row)) for row in rows]
    room = console.width - 3 * len(shown) - 1  # beside the lines and blanks around cells
    widths = _widths(shown, [[row[place] for row in cells] for place in range(len(shown))], room)
    if not widths:
        return _stacked(title, [str(column.header) for column in shown], cells)
    for column, width in zip(shown, widths, strict=True):
        column.width, column.overflow, column.header = width, "fold", escape(str(column.header))
    table = Table(*shown, title=literal(title))
    for row in cells:
        table.add_row(*map(escape, row))
    return table


def _column(column: str | Column) -> Column:
    return Column(column) if isinstance(column, str) else replace(column)


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """Of columns, which share the room; empty where it is less than their numbers, and some letters of names, need."""
    least, most = [], []
    for column, texts in zip(columns, cells, strict=True):
        head = str(column.header)
        words = [word for text in (head, *texts) for word in text.split()]
        text = min(max(map(cell_len, words), default=1), LETTERS)
        numbers = max(map(cell_len, [*texts, *head.split()]), default=1)
        least.append(numbers if column.justify == "right" else text)
        most.append(max(map(cell_len, [head, *texts])))
    spare = room - sum(least)
    if spare < 0:
        return []
    for place in sorted(range(len(least)), key=lambda place: most[place] - least[place]):
        more = min(max(most[place] - least[place], 0), spare)
        least[place], spare = least[place] + more, spare - more
    return least


def _stacked(title: str, heads: Sequence[str], rows: Iterable[Iterable[str]]) -> Table:
    """A table of two columns, in which a row is a block of lines with the names of its cells."""
    names = min(max(map(cell_len, heads)), console.width // 3)
    table = Table(
        Column(width=names, overflow="fold"), Column(overflow="fold"), title=literal(title), show_header=False
    )
    for row in rows:
        for head, cell in zip(heads, row, strict=True):
            if cell:
                table.add_row(escape(head), escape(cell))
        table.add_section()
    return table


def before_numbers(first: str, *others: str) -> list[Column]:
    """Columns of which all but the first hold numbers."""
    return [Column(first), *map(numbers_of, others)]


def numbers_of(head: str) -> Column:
    """A column of numbers, which are never broken."""
    return Column(head, justify="right")


def time_text(seconds: float) -> str:
    """Minutes, or hours where they are many."""
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"
