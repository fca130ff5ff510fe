"""Your own tables of numbers or of texts, one row an example."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Generator, Tensor

from fpt.errors import DataError, SpecError, naming, unknown
from fpt.files import sha256
from fpt.tasks.arrays import Examples, sixths
from fpt.tasks.catalogue import Pooling, refuse_unused
from fpt.tasks.tables import FEW, MISSING, check_classes, counted, few, read_table, shown
from fpt.tasks.task import Task
from fpt.tasks.texts import Tokenizer, tokenized

TARGETS = ("target", "label", "class", "y")  # columns that are taken for the target
LEAST = 3  # examples of a class; a seed may still draw none of them for one of its three parts
MOST_CLASSES = 1000  # a target with more values, most of them once, is a number to predict, not a class
MOST_NUMBERS = 30  # different numbers of a target that are classes, unless they count classes: 0, 1, 2 and so on
TINY = float(np.finfo(float).tiny)  # smaller numbers have fewer digits
IDENTITY = {"id", "ids", "idx", "index", "uid", "rowid", "unnamed", "key"}  # first or last word of a column's name
RISING = 10  # rows that are in the order of a measurement by chance once in a million tables
SURELY = 20.0  # whole numbers drawn by chance would be without a repeat with a probability of exp(-20) or less
# A number as pandas does not read it: with a currency, separators of thousands, a decimal comma, or in percent
WRITTEN = r"[^\w\s]?\s?[+-]?(?:\d{1,3}(?:[,.'\u2019\s]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?)\s?[^\w\s]?"
# Names of columns of texts
TEXTS = {"text", "sentence", "review", "comment", "content", "body", "message", "tweet", "document", "question"}
LOOKED_AT = 1000  # rows, to see whether they are text
CATEGORIES = 10  # a column of no more different texts is a category


def table(
    path: Path,
    variant: str,
    target: str,
    patch: int,
    bytes: int,
    tokenizer: str,
    tokens: int,
    pooling: Pooling,
    reader: Tokenizer | None = None,
) -> Task:
    """A table, one row an example: CSV, TSV or parquet. `target` names the column of classes ("": one that is called
    target, label, class or y).

    The numeric columns, each standardised over all rows, become a sequence of tokens of `patch` columns. Constant
    columns and columns of text are left out, and `Task.read` says so. A table whose only other column is text is a
    task of texts: at most so many of their `bytes`, cut at the end. With `tokenizer` own, at most so many `tokens` of
    the tokenizer of the model, which is the `reader`, and the model's own table of embeddings is the input layer.
    Texts pass in batches of like length; `pooling` of a model's last layer is as of a Task.

    Raises DataError naming the column for missing values, a target that is no class, a class with too few rows, columns
    of one name, one that numbers the rows, one that is the target under another name, one of numbers with cells that
    are none, texts beside numbers, and a table without rows or usable columns; SpecError for an option that
    would change nothing.
    """
    frame = _read(path)
    name, how = _target(frame, target)
    labels, classes = _labels(frame[name])
    numeric, text = _inputs(frame, name)
    _check_copies(numeric, labels, name)
    counts = torch.bincount(labels[:, 0], minlength=len(classes)).tolist()
    what = f"{len(frame):,} rows, {counted(classes, counts)} of column {shown(name)}{how}"
    card: dict[str, Any] = {"classes": len(classes), "checksum": sha256(path), "source": f"your own: {path.name}"}
    if not _is_texts(numeric, text):
        of_texts = {"tokenizer": tokenizer, "tokens": tokens, "bytes": bytes, "pooling": pooling}
        refuse_unused("csv:PATH", of_texts, "it is no table of texts")
        return _of_numbers(*_numbers(numeric, text), text, labels, what, patch, card)
    refuse_unused("csv:PATH", {"patch": patch}, "that is an option of columns of numbers, and it holds texts")
    column = frame[text[0]]
    card["read"] = f"{what}; input: the texts of column {shown(column.name)}"
    _check_cells(column)
    texts = [str(text) for text in column]
    read = tokenized("csv:PATH", texts, f"column {column.name}", tokens=tokens, bytes=bytes, reader=reader)
    return Task(sixths(read.examples(labels)), **read.card, **card, pooling=pooling, texts=tuple(texts))


def holds_texts(path: Path, target: str) -> bool:
    """Whether a table is a task of texts. Raises DataError and SpecError as `table` does."""
    with naming(path):
        frame = _read(path)
        return _is_texts(*_inputs(frame, _target(frame, target)[0]))


class ColumnPatches:
    """Stored numbers (n, columns) float32 -> tokens (n, columns / patch, patch)."""

    def __init__(self, patch: int) -> None:
        self.patch = patch

    def __call__(self, inputs: Tensor, generator: Generator | None = None) -> Tensor:
        return inputs.reshape(len(inputs), -1, self.patch)


def _read(path: Path) -> pd.DataFrame:
    """The table. Raises DataError where a column has no name: it is often the number of the row, which tells the class
    in sorted data."""
    frame = read_table(path)
    for place, name in enumerate(frame, 1):
        if str(name).startswith("Unnamed: "):
            raise DataError(f"column {place} has no name; name it, or take it out.")
    return frame


def _target(frame: pd.DataFrame, target: str) -> tuple[str, str]:
    """The column of classes; and how it was found, where nobody named it."""
    names = [str(name) for name in frame.columns]
    if target and target not in names:
        raise unknown("column", target, names, "target")
    usual = [target] if target else [name for name in names if name.lower() in TARGETS]
    if len(usual) != 1:
        may = usual or names
        last = f" (the last: {may[-1]})" if len(may) > FEW else ""
        raise SpecError(f"name the column of classes as `target` (--target); it may be {few(may)}{last}.")
    return usual[0], "" if target else ", guessed by its name"


def _labels(column: "pd.Series[Any]") -> tuple[Tensor, list[Any]]:
    """Labels (n, 1) from 0 on, in the order of their sorted names, and the classes."""
    _check_cells(column)
    counts = column.value_counts()
    counts = counts[counts > 0]  # parquet may list classes that no row has
    many = len(counts) > min(MOST_CLASSES, len(column) // 2)
    if many and not pd.api.types.is_numeric_dtype(column):
        raise DataError(
            f"column {column.name} has {len(counts):,} different values in {len(column):,} rows: a class needs two "
            f"rows or more in the mean, and at most {MOST_CLASSES:,} classes are read. Name another target."
        )
    if many or _is_measured(column, len(counts)):
        raise DataError(
            f"column {column.name} has {len(counts):,} different values in {len(column):,} rows: numbers to "
            "predict, not classes. Cut them into classes first, as pandas.qcut(column, 4) does into four of equal "
            "size; if they are codes of classes, put a letter before each."
        )
    check_classes(list(counts.index), counts.tolist(), LEAST, f"column {column.name}", "rows")
    classes = sorted(counts.index, key=str)
    codes = pd.Categorical(column, categories=classes).codes.astype(np.int64)
    return torch.from_numpy(codes)[:, None], classes


def _check_cells(column: "pd.Series[Any]") -> None:
    """DataError for a row of the target, or of texts, that has no value, or one that is neither text nor number."""
    missing = column.isna().to_numpy()
    if missing.any():
        row = int(missing.argmax()) + 1
        raise DataError(f"column {column.name} has no value in row {row}, of {missing.sum()} such rows {MISSING}.")
    odd = next((cell for cell in column.astype(object) if not isinstance(cell, str | int | float)), None)
    if odd is not None:
        raise DataError(
            f"column {column.name} holds {type(odd).__name__}; needed is a text or a number in every row. Save images "
            "as files in folders by class, and arrays as npz."
        )


def _is_measured(column: "pd.Series[Any]", values: int) -> bool:
    """Whether a target is a number to predict: not whole, or of many values that do not count classes."""
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    counts_classes = column.min() in (0, 1) and column.max() - column.min() + 1 == values
    return bool((column % 1 != 0).any()) or (values > MOST_NUMBERS and not counts_classes)


def _check_copies(numeric: pd.DataFrame, labels: Tensor, target: str) -> None:
    """DataError for a column of numbers whose values go one to one with the classes: the target under another name."""
    classes = labels[:, 0].numpy()
    for name in numeric:
        values = pd.factorize(numeric[name])[0]
        pairs = len(np.unique(np.stack([values, classes]), axis=1).T)
        if pairs == len(np.unique(values)) == len(np.unique(classes)):
            raise DataError(
                f"column {shown(name)} goes one to one with the classes of column {shown(target)} in every "
                "row, so that it gives the answer away; take it out."
            )


def _numbers(numeric: pd.DataFrame, text: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Standardised columns, and the names of those that are constant.

    Raises DataError for missing values, and for a column whose values are so large, or so close together, that their
    variance is beyond the range of numbers.
    """
    lacking = [str(name) for name in numeric if not np.isfinite(numeric[name].astype(float)).all()]
    if lacking:
        raise DataError(f"column {few(lacking)} has missing or infinite values; fill them, or take it out.")
    values = numeric.astype(float)
    constant = [str(name) for name in values if values[name].nunique() == 1]
    kept = values.drop(columns=constant)
    if kept.empty:
        others = few([*constant, *text]) or "none"
        raise DataError(f"it has no column of numbers that differ, to predict the classes from; others: {others}.")
    with np.errstate(over="ignore", invalid="ignore"):  # such a column is refused
        variance = kept.var()
    if extreme := [str(name) for name, value in variance.items() if not TINY <= value < np.inf]:
        raise DataError(
            f"column {few(extreme)} has values that are too large, or too close together, to be standardised: "
            f"their variance must lie between {TINY:.0e} and {np.finfo(float).max:.0e}. Give it in another unit."
        )
    return (kept - kept.mean()) / kept.std(), constant


def _of_numbers(
    kept: pd.DataFrame,
    constant: list[str],
    text: list[str],
    labels: Tensor,
    what: str,
    patch: int,
    card: dict[str, Any],
) -> Task:
    """Standardised columns, filled with zeros to whole patches, and what was left out."""
    left = {"left out as constant": constant, "left out as text": text}
    said = [what, f"inputs: {few(kept)}", *(f"{why}: {few(names)}" for why, names in left.items() if names)]
    fill = -kept.shape[1] % patch
    values = np.pad(kept.to_numpy(np.float32), ((0, 0), (0, fill)))
    return Task(
        data=sixths(Examples(torch.from_numpy(values), labels)),
        encode=ColumnPatches(patch),
        scaling="columns standardised over all rows" + (f"; {fill} of zeros to fill the last patch" if fill else ""),
        read="; ".join(said),
        **card,
    )


def _counts_rows(column: "pd.Series[Any]") -> bool:
    """Whether whole numbers without a repeat tell which row it is: by the name of the column, or because they are so
    close together that nobody measures them. In any order, and with gaps."""
    if column.hasnans or not column.is_unique or (column % 1 != 0).any():
        return False
    words = re.findall("[a-z]+", re.sub("([a-z])([A-Z])", r"\1 \2", str(column.name)).lower())
    named = bool(IDENTITY & {*words[:1], *words[-1:]})
    rows, span = len(column), float(column.max()) - float(column.min()) + 1
    return named or span == rows or rows * (rows - 1) > 2 * SURELY * span


def _follows_rows(column: "pd.Series[Any]") -> bool:
    """Whether it rises, or falls, from row to row, but for some repeats."""
    ordered = column.is_monotonic_increasing or column.is_monotonic_decreasing
    return len(column) >= RISING and ordered and 2 * column.nunique() > len(column)


def _inputs(frame: pd.DataFrame, target: str) -> tuple[pd.DataFrame, list[str]]:
    """The columns of numbers, and the names of all others but the target.

    Raises DataError for a column that tells which row it is: in sorted data it tells the class, of a new example
    nothing; for one of numbers with cells that are none; and for texts beside numbers.
    """
    inputs = frame.drop(columns=target)
    numeric = inputs.select_dtypes(["number", "bool"], exclude=["timedelta"])
    others = [str(column) for column in inputs if column not in numeric]
    numbers = numeric.select_dtypes("number")
    if telling := [str(name) for name in numbers if _counts_rows(numbers[name]) or _follows_rows(numbers[name])]:
        raise DataError(
            f"column {few(telling)} numbers the rows, or rises or falls from row to row as such a number does; take it "
            "out. If the rows are sorted by a measurement, shuffle them."
        )
    for name in others:
        _check_written(inputs[name])
    texts = [name for name in others if _is_running(inputs[name])]
    if texts and (beside := [name for name in inputs if name != texts[0]]):
        raise DataError(
            f"column {shown(texts[0])} holds texts, and a task of texts has no other input: take it out, or "
            f"{few(beside)}."
        )
    return numeric, others


def _check_written(column: "pd.Series[Any]") -> None:
    """DataError for a column of numbers that is read as text because of some of its cells."""
    known = column.reset_index(drop=True).dropna().astype(object)
    if known.empty or not known.map(lambda cell: isinstance(cell, str)).all():
        return
    cells = known.str.strip()
    number = pd.to_numeric(cells, errors="coerce").notna()
    near = number | cells.str.fullmatch(WRITTEN)
    if max(near.mean(), near[~cells.duplicated()].mean()) <= 1 / 2:
        return
    odd, why = (cells, "a text") if number.all() else (cells[~number], "no number")
    raise DataError(
        f"column {shown(column.name)} holds numbers, but {shown(odd.iloc[0])!r} in row {int(odd.index[0]) + 1} "
        f"is {why} (such cells: {len(odd):,}). Write numbers as 1234.5, or take the column out."
    )


def _is_running(column: "pd.Series[Any]") -> bool:
    """Whether a column holds running text, and not names of categories."""
    cells = column.head(LOOKED_AT).dropna().astype(object)
    if cells.empty or not cells.map(lambda cell: isinstance(cell, str)).all():
        return False
    words = cells.map(lambda cell: len(re.findall(r"[^\W\d_]{2,}", cell)))
    long = cells.map(lambda cell: len(re.findall(r"\w+", cell)) > 2 or len(cell) > 20)
    sentences = cells.nunique() > CATEGORIES and ((words > 1) & long).mean() > 1 / 2
    names = 2 * cells.nunique() > len(cells) and (words > 1).mean() > 1 / 2
    return str(column.name).lower() in TEXTS or bool(sentences or names)


def _is_texts(numeric: pd.DataFrame, others: list[str]) -> bool:
    return numeric.empty and len(others) == 1
