"""Tables as people have them: CSV, TSV and parquet files. This module stays free of torch."""

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from numbers import Number
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from fpt.errors import DataError
from fpt.files import check_fits

MOST_COLUMNS = 10_000  # tokens beyond that fill the memory of every model here
FEW = 5  # names that an error lists
LONG = 40  # letters of a name that are shown
LONGEST = 10_000  # letters of a name: more are no name
# Of pandas and csv; and of pyarrow, for what somebody wrote about the columns of a parquet file
UNREADABLE = (ValueError, OSError, csv.Error, AttributeError, LookupError, RecursionError, TypeError)
ENDINGS = (".csv", ".tsv", ".parquet")
MISSING = "(NA, None, null and the like count as missing)"
QUOTES = 'Put such a text between quotes, and write every quote in it twice: "he said ""hi""".'
SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas", "|": "bars", " ": "spaces"}


def read_table(path: Path) -> pd.DataFrame:
    """A table, by the ending of its name; decimals of parquet become numbers, as do truth values with gaps.

    Raises DataError for a file of another kind, and for one that cannot be read, has no rows, no header, two columns of
    one name, another separator, rows with more fields than the header, or quotes that join rows. It does not name the
    file: whoever asks does, by fpt.errors.naming.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"the name of a table ends in {', '.join(ENDINGS)}.")
    try:
        frame = _parquet(path) if ending == ".parquet" else _text(path, "\t" if ending == ".tsv" else ",")
    except UNREADABLE as error:
        raise DataError(f"it is no table that can be read: {error}") from error
    if frame.empty:
        raise DataError("it has no rows.")
    frame.columns = frame.columns.map(str)  # parquet may number them
    _check_heads(list(frame.columns))
    for name, column in frame.items():
        known = column.dropna()
        if column.dtype == object and len(known) and known.map(lambda cell: isinstance(cell, Number)).all():
            frame[name] = column.astype(float)
    return frame


def _parquet(path: Path) -> pd.DataFrame:
    from pyarrow.parquet import read_metadata

    head = read_metadata(path)
    check_fits(head.num_rows * head.num_columns * 8, "it")  # bytes of a number, or of a place in memory
    frame = pd.read_parquet(path)
    if any(frame.index.names):  # columns that were made the index
        frame = frame.reset_index()
    return frame


def _text(path: Path, separator: str) -> pd.DataFrame:
    limit = csv.field_size_limit(sys.maxsize)  # of characters in a field, for the whole process: pandas has none
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            heads, first = _first_rows(file, separator)
            _check_heads(heads)  # before the whole is read: of very many columns that takes minutes
            _check_separator(heads, first, separator)
            _check_fields(heads, first)
            file.seek(0)
            _check_quotes(file, separator, len(heads))
    finally:
        csv.field_size_limit(limit)
    frame = pd.read_csv(path, sep=separator, low_memory=False)  # in chunks, 1 and "1" would be two classes
    _check_named(heads, frame)
    return frame


def _first_rows(file: TextIO, separator: str) -> tuple[list[str], list[str]]:
    """The fields of the header and of the row after it, lines without any left out; empty where there is none."""
    lines = (fields for fields in csv.reader(file, delimiter=separator) if fields)
    return next(lines, []), next(lines, [])


def _check_quotes(file: TextIO, separator: str, columns: int) -> None:
    """DataError for a quote that does not open and close a field, and for one that does with rows in between: a text
    that begins with a quote takes all rows up to the next quote for its own, and pandas says nothing.

    A row of several lines is such a one where its first and its last line are rows by themselves, and what they have in
    one of the columns is there in other rows as well, as the names of classes are. A text of several lines is none.
    """
    if not any('"' in line for line in file):
        return
    file.seek(0)
    taken: list[str] = []  # lines of the row that is read
    parsed = csv.reader(_kept(file, taken), delimiter=separator, strict=True)
    doubtful = []
    try:
        for _ in parsed:
            if len(taken) > 1 and (pair := _alone(taken, separator, columns)):
                doubtful.append((parsed.line_num, pair))
            taken.clear()
    except csv.Error as error:
        begin = parsed.line_num - len(taken) + 1
        raise DataError(f"line {begin}: a quote is inside a field ({error}). {QUOTES}") from None
    if doubtful:
        file.seek(0)
        repeating = _repeating([row for row in csv.reader(file, delimiter=separator) if len(row) == columns][1:])
        for number, pair in doubtful:
            if any(all(row[place] in known for row in pair) for place, known in repeating.items()):
                raise DataError(f"a quote joins several rows into one that ends in line {number}. {QUOTES}")


def _kept(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


def _alone(lines: Sequence[str], separator: str, columns: int) -> list[list[str]]:
    """The first and the last of these lines as rows, if no quote meant anything; empty where one of them is no row."""
    rows = [line.rstrip("\r\n").split(separator) for line in (lines[0], lines[-1])]
    return rows if all(len(row) == columns for row in rows) else []


def _repeating(rows: Sequence[Sequence[str]]) -> dict[int, set[str]]:
    """The columns in which values repeat, as classes do, and their values."""
    values = {place: set(column) for place, column in enumerate(zip(*rows, strict=True))}
    return {place: found for place, found in values.items() if 2 * len(found) <= len(rows)}


def _check_named(heads: list[str], frame: pd.DataFrame) -> None:
    """DataError where the first line holds data: half of it or more are numbers, most of them such as their columns
    have. Columns that are numbered, or measured at equal steps, as spectra are, have numbers for names."""
    numbers = pd.to_numeric(pd.Series(heads, dtype=object), errors="coerce").to_numpy(float)
    places = np.flatnonzero(np.isfinite(numbers))
    steps = np.diff(numbers[places])
    if 2 * len(places) < len(heads) or (len(steps) and steps[0] and np.allclose(steps, steps[0])):
        return
    columns = [pd.to_numeric(frame[heads[place]], errors="coerce") for place in places]
    within = [each.min() <= numbers[place] <= each.max() for each, place in zip(columns, places, strict=True)]
    if 2 * sum(within) > len(within):
        raise DataError(f"its first line, {few(heads)}, holds data; put a line with a name for every column before it.")


def _check_heads(heads: list[str]) -> None:
    """DataError for too many columns, and for two of one name."""
    if len(heads) > MOST_COLUMNS:
        raise DataError(f"it has {len(heads):,} columns; at most {MOST_COLUMNS:,} are a sequence here.")
    if long := [head for head in heads if len(head) > LONGEST]:
        raise DataError(f"its first line, {few(long)}, is no header: a name has at most {LONGEST:,} letters.")
    if len(set(heads)) < len(heads):
        twice = sorted({head for head in heads if heads.count(head) > 1})
        raise DataError(f"several columns are named {few(twice)}; needed is a first line with a name for each.")


def _check_separator(heads: list[str], first: list[str], separator: str) -> None:
    """DataError for a first line that is no header, and for one that is one field, and would be several with another
    separator."""
    if heads and (heads[0].startswith("sep=") or (heads[0].startswith(("#", "%", "//")) and len(heads) < len(first))):
        raise DataError(f"its first line, {few(heads)}, is no header; take it out.")
    for other, name in SEPARATORS.items():
        alone = len(heads) == 1 and (other != " " or len(first) < 2)  # a title has spaces, too
        if alone and other != separator and other in heads[0].strip():
            kind = ".tsv, with tabs" if separator == "\t" else ".csv, with commas"
            raise DataError(f"its columns seem to be separated by {name}; save it as {kind}.")


def _check_fields(heads: list[str], first: list[str]) -> None:
    """DataError for a first row with more fields than the header: pandas takes the first ones for names of rows, and
    every column is another one. A later row with more fields it refuses itself."""
    if len(first) > len(heads):
        raise DataError(
            "its rows have more fields than the header. A decimal comma, or a comma in a text, needs quotes; "
            "a column of names needs a name."
        )


def few(names: Iterable[object]) -> str:
    """The first names of a list, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - FEW:,} more" if len(every) > FEW else ""
    return ", ".join(map(shown, every[:FEW])) + more


def counted(classes: Sequence[object], counts: Sequence[int]) -> str:
    """How many classes, and how many examples each of the first has; of the rest, between which numbers all lie."""
    first = ", ".join(f"{shown(name)}: {count:,}" for name, count in list(zip(classes, counts, strict=True))[:FEW])
    more = f" and {len(classes) - FEW:,} more, of {min(counts):,} to {max(counts):,}" if len(classes) > FEW else ""
    return f"{len(classes):,} classes ({first}{more})"


def check_classes(classes: Sequence[object], counts: Sequence[int], least: int, where: str, unit: str) -> None:
    """DataError for fewer than two classes, and for one with fewer than `least` examples."""
    if len(classes) < 2:
        raise DataError(f"{where} has the class {shown(classes[0])} alone; needed are two or more.")
    if min(counts) < least:
        rarest = shown(classes[counts.index(min(counts))])
        raise DataError(f"class {rarest} of {where} has {min(counts)} {unit}; needed are {least} or more.")


def shown(name: object) -> str:
    """A name as it is printed: long ones cut, and what is no letter of a line, or no UTF-8, as its escape."""
    text = str(name)
    text = text if len(text) <= LONG else f"{text[: LONG - 1]}…"
    return text if text.isprintable() else repr(text)[1:-1]
