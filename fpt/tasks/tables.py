"""Tables as people have them: CSV, TSV and parquet files. This module stays free of torch."""

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from fpt.errors import DataError

MOST_COLUMNS = 10_000  # tokens beyond that fill the memory of every model here
FEW = 5  # names that an error lists
ENDINGS = (".csv", ".tsv", ".parquet")
MISSING = "(NA, None, null and the like count as missing)"


def read_table(path: Path) -> pd.DataFrame:
    """A table, by the ending of its name.

    Raises DataError for a file of another kind, and for one that cannot be read, has no rows, two columns of one name,
    a semicolon or a tab where a comma is expected, or rows with more fields than the header.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise DataError(f"{path}: the name of a table ends in {', '.join(ENDINGS)}.")
    try:
        if ending == ".parquet":
            frame = pd.read_parquet(path)
            if any(frame.index.names):  # columns that were made the index
                frame = frame.reset_index()
        else:
            separator = "\t" if ending == ".tsv" else ","
            heads, first = _first_rows(path, separator)
            _check_heads(heads, path)  # before the whole is read: of very many columns that takes minutes
            _check_separator(heads, separator, path)
            _check_fields(heads, first, path)
            frame = pd.read_csv(path, sep=separator, low_memory=False)  # in chunks, 1 and "1" would be two classes
    except (ValueError, OSError, csv.Error) as error:  # pandas' own errors are ValueErrors
        raise DataError(f"{path} is no table that can be read: {error}") from error
    if frame.empty:
        raise DataError(f"{path} has no rows.")
    frame.columns = frame.columns.map(str)  # parquet may number them
    _check_heads(list(frame.columns), path)
    return frame


def _first_rows(path: Path, separator: str) -> tuple[list[str], list[str]]:
    """The fields of the header and of the row after it, lines without any left out; empty where there is none."""
    limit = csv.field_size_limit(sys.maxsize)  # of characters in a field, for the whole process: pandas has none
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = (fields for fields in csv.reader(file, delimiter=separator) if fields)
            return next(lines, []), next(lines, [])
    finally:
        csv.field_size_limit(limit)


def _check_heads(heads: list[str], path: Path) -> None:
    """DataError for too many columns, and for two of one name."""
    if len(heads) > MOST_COLUMNS:
        raise DataError(f"{path} has {len(heads):,} columns; at most {MOST_COLUMNS:,} are a sequence here.")
    if len(set(heads)) < len(heads):
        twice = sorted({head for head in heads if heads.count(head) > 1})
        raise DataError(f"{path}: several columns are named {few(twice)}; give each a name of its own.")


def _check_separator(heads: list[str], separator: str, path: Path) -> None:
    """DataError for a header that is one field, and would be several with another separator."""
    for other, name in {";": "semicolons", "\t": "tabs", ",": "commas"}.items():
        if len(heads) == 1 and other != separator and other in heads[0]:
            kind = ".tsv, with tabs" if separator == "\t" else ".csv, with commas"
            raise DataError(f"{path}: its columns seem to be separated by {name}; save it as {kind}.")


def _check_fields(heads: list[str], first: list[str], path: Path) -> None:
    """DataError for a first row with more fields than the header: pandas takes the first ones for names of rows, and
    every column is another one. A later row with more fields it refuses itself."""
    if len(first) > len(heads):
        raise DataError(
            f"{path}: its rows have more fields than the header. A decimal comma, or a comma in a text, needs quotes; "
            "a column of names needs a name."
        )


def few(names: Iterable[str]) -> str:
    """The first names of a list, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - FEW:,} more" if len(every) > FEW else ""
    return ", ".join(every[:FEW]) + more
