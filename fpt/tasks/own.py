"""Your own data as people have them: a folder of images by class, and a table of numbers or of texts.

`npz:PATH` (arrays) is in fpt.tasks.images. Nothing here is downloaded, and nothing is unpickled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Generator, Tensor

from fpt.errors import DataError, SpecError, unknown
from fpt.files import sha256
from fpt.tasks import BYTES, CSV, images_below, own_checksum, refuse_unused
from fpt.tasks.arrays import Examples, in_rows, sixths, symbols
from fpt.tasks.files import PARTS, Array, examples, own_card
from fpt.tasks.images import image_task
from fpt.tasks.pixels import Pixels
from fpt.tasks.tables import FEW, MISSING, few, read_table
from fpt.tasks.task import Task

TARGETS = ("target", "label", "class", "y")  # columns that are taken for the target, the likeliest first
LEAST = 3  # examples of a class; a seed may still draw none of them for one of its three parts
MOST_CLASSES = 1000  # a target with more values, most of them once, is a number to predict, not a class
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev"}  # parts of data, no classes
TINY = float(np.finfo(float).tiny)  # smaller numbers have fewer digits
PADDED_BYTES = BYTES + 1  # 0 fills, a byte b is the symbol b + 1


@dataclass(frozen=True)
class Read:
    """Texts as symbols below `vocabulary`: a row a text, cut at the end; how many symbols each has in all; and in words
    what symbols are, and their plural."""

    rows: Sequence[Any]
    lengths: Sequence[int]
    vocabulary: int
    what: str
    unit: str


Reader = Callable[[Sequence[str], int], Read]  # texts, and the most symbols that are kept of one


def folder(path: Path, variant: str, size: int, patch: int) -> Task:
    """A folder of images: CLASS/*.png, or train/CLASS/*.png and test/CLASS/*.png, as torchvision's ImageFolder reads.

    Images are resized to `size` x `size` pixels and become tokens of `patch` x `patch`; they stay gray where all of
    them are, else they become RGB. A sixth of the training images, stratified, is validation; without test/ the seed
    draws another sixth as test set.

    Raises DataError for a folder without classes, a class with too few images, and an image that cannot be read;
    SpecError for a patch that does not divide the size.
    """
    if size % patch:
        raise SpecError(f"folder: option patch {patch} does not divide size {size}.")
    parts = PARTS if all((path / part).is_dir() for part in PARTS) else ("",)
    classes = _classes(path / parts[0])
    if {name.lower() for name in classes} <= SPLITS:
        raise DataError(f"{path}: {few(classes)} are parts of data, no classes; name the two parts train/ and test/.")
    for part in parts[1:]:
        if (others := _classes(path / part)) != classes:
            differ = sorted({*others} ^ {*classes})
            raise DataError(f"{path}: train/ and test/ have other classes; in one of them alone: {few(differ)}.")
    files = [_files(path / part, classes) for part in parts]
    _check_classes(path, classes, files, official=len(parts) > 1)
    gray = all(_open(file).mode in ("1", "L") for part in files for file, _ in part)
    arrays: dict[str, Array] = {}
    sides = set[tuple[int, int]]()
    for name, found in zip(PARTS, files, strict=False):
        pixels, before = zip(*(_pixels(file, size, gray) for file, _ in found), strict=True)
        sides.update(before)
        arrays[f"x_{name}"] = np.stack(pixels)
        arrays[f"y_{name}"] = np.array([label for _, label in found])
    train, *official = examples(arrays, str(path))
    return image_task(
        sixths(train, official),
        Pixels(patch),
        scaling=f"{_resized(sides, size)}{'gray' if gray else 'RGB'}, pixels divided by 255{_unread(path, parts)}",
        **own_card(path, own_checksum(f"folder:{path}")),
    )


def table(
    path: Path,
    variant: str,
    target: str,
    patch: int,
    bytes: int,
    tokenizer: str,
    tokens: int,
    reader: Reader | None = None,
) -> Task:
    """A table, one row an example: CSV, TSV or parquet. `target` names the column of classes ("": one that is called
    target, label, class or y).

    The numeric columns, each standardised over all rows, become a sequence of tokens of `patch` columns. Constant
    columns and columns of text are left out, and the data card says so. A table whose only other column is text is a
    task of texts: at most so many of their `bytes`, cut at the end. With `tokenizer` own, at most so many `tokens` of
    the tokenizer of the model, which is the `reader`, and the model's own table of embeddings is the input layer.

    Raises DataError naming the column for missing values, a target that is no class, a class with too few rows, columns
    of one name, and a table without rows or usable columns; SpecError for an option that would change nothing.
    """
    frame = _read(path)
    name = _target(frame, target, path)
    labels, classes = _labels(frame[name], path)
    numeric, text = _inputs(frame, name)
    card = own_card(path, sha256(path))
    if _is_texts(numeric, text):
        idle = {"bytes": bytes} if reader else {"tokens": tokens}
        refuse_unused(CSV, idle, f"the texts of {path} are read by tokenizer {tokenizer}")
        refuse_unused(CSV, {"patch": patch}, f"{path} holds texts, and it is an option of columns of numbers")
        column = frame[text[0]]
        texts = _strings(column, path)
        read = reader(texts, tokens) if reader else read_bytes(texts, bytes)
        return _of_symbols(read, labels, classes, f"column {column.name} of {path}", card)
    refuse_unused(CSV, {"tokenizer": tokenizer, "tokens": tokens, "bytes": bytes}, f"{path} is no table of texts")
    values, said = _numbers(numeric, text, patch, path)
    data = sixths(Examples(torch.from_numpy(values), labels))
    tokens = values.shape[1] // patch
    scaling = f"columns standardised over all rows{said}"
    return Task(data, Columns(patch), tokens=tokens, width=patch, classes=classes, scaling=scaling, **card)


def holds_texts(path: Path, target: str) -> bool:
    """Whether a table is a task of texts. Raises DataError and SpecError as `table` does."""
    frame = _read(path)
    return _is_texts(*_inputs(frame, _target(frame, target, path)))


def read_bytes(texts: Sequence[str], most: int) -> Read:
    """Texts as their bytes in UTF-8: 0 fills, a byte b is the symbol b + 1."""
    encoded = [text.encode() for text in texts]
    rows = [np.frombuffer(each[:most], np.uint8).astype(np.int64) + 1 for each in encoded]
    return Read(rows, [len(each) for each in encoded], PADDED_BYTES, "bytes of UTF-8", "bytes")


class Columns:
    """Stored numbers (n, columns) float32 -> tokens (n, columns / patch, patch)."""

    def __init__(self, patch: int) -> None:
        self.patch = patch

    def __call__(self, inputs: Tensor, generator: Generator | None = None) -> Tensor:
        return inputs.reshape(len(inputs), -1, self.patch)


def _classes(path: Path) -> list[str]:
    """The classes of a folder, sorted: its folders that do not start with a dot."""
    found = sorted(entry.name for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if len(found) < 2:
        here = f"it has {found[0]!r} alone" if found else "it has none"
        raise DataError(f"{path}: needed are two folders of images or more, one a class; {here}.")
    return found


def _files(path: Path, classes: list[str]) -> list[tuple[Path, int]]:
    """Every image below the folders of the classes, and its label."""
    found = []
    for label, name in enumerate(classes):
        found += [(file, label) for file in images_below(path / name)]
    return found


def _unread(path: Path, parts: Sequence[str]) -> str:
    """The folders beside train/ and test/, in words."""
    others = [name for name in _classes(path) if name not in parts] if len(parts) > 1 else []
    return f"; not read: {few(others)}" if others else ""


def _check_classes(path: Path, classes: list[str], files: list[list[tuple[Path, int]]], official: bool) -> None:
    """DataError for a class with too few images to be in every part."""
    needed = (2, 1) if official else (LEAST,)  # of train/, from which validation is taken, and of test/
    for name, part, least in zip(PARTS, files, needed, strict=False):
        counts = np.bincount([label for _, label in part], minlength=len(classes))
        if (counts < least).any():
            rarest = int(counts.argmin())
            where = f"{path}/{name}" if official else str(path)
            raise DataError(
                f"{where}: class {classes[rarest]!r} has {counts[rarest]} images; needed are {least} or more."
            )


def _open(file: Path) -> Any:
    """A decoded image, upright, of at most 8 bits a channel. Raises DataError naming the file."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with open(file, "rb") as stream:  # ours to close: the library leaves it open when the image is damaged
            stored = Image.open(stream)
            stored.load()
            image = ImageOps.exif_transpose(stored)
    except (OSError, UnidentifiedImageError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{file} is no image that can be read: {error}") from error
    if image.mode in ("I", "F"):
        raise DataError(f"{file} has pixels of 32 bits, and which value is white is not known; save it with 8 or 16.")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:  # what lies under it may be any colour
        seen = image.convert("RGBA")
        over = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
        return over.convert("L" if image.mode in ("1", "L", "LA") else "RGB")
    if image.mode.startswith("I;16"):  # converted by the library, all above 255 would be white
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image


def _pixels(file: Path, size: int, gray: bool) -> tuple[Array, tuple[int, int]]:
    """uint8 (size, size), or (size, size, 3); and the width and height that the image had."""
    image = _open(file)
    resized = image.convert("L" if gray else "RGB").resize((size, size))
    return np.asarray(resized, dtype=np.uint8), image.size


def _resized(sides: set[tuple[int, int]], size: int) -> str:
    if sides == {(size, size)}:
        return ""
    shown = [f"{width}x{height}" for width, height in sorted(sides)]
    was = shown[0] if len(shown) == 1 else f"{len(shown)} sizes from {shown[0]} to {shown[-1]}"
    return f"resized to {size}x{size} from {was}; "


def _read(path: Path) -> pd.DataFrame:
    """The table. Raises DataError where a column has no name: it is often the number of the row, which tells the class
    in sorted data."""
    frame = read_table(path)
    for place, name in enumerate(frame, 1):
        if str(name).startswith("Unnamed: "):
            raise DataError(f"{path}: column {place} has no name; name it, or take it out.")
    return frame


def _target(frame: pd.DataFrame, target: str, path: Path) -> str:
    names = [str(name) for name in frame.columns]
    if target and target not in names:
        raise unknown("column", target, names, f"target of {path}")
    usual = [name for wanted in TARGETS for name in names if name.lower() == wanted]
    if not (target or usual):
        last = f" (the last: {names[-1]})" if len(names) > FEW else ""
        raise SpecError(f"{path}: name the column of classes as `target`; it has {few(names)}{last}.")
    found = target or usual[0]
    if len(names) < 2:
        raise DataError(f"{path} has the column {found} alone; needed are columns to predict it from.")
    return found


def _labels(column: "pd.Series[Any]", path: Path) -> tuple[Tensor, int]:
    """Labels (n, 1) from 0 on, in the order of their sorted names, and how many classes there are."""
    if column.isna().any():
        row = int(column.isna().to_numpy().argmax()) + 1
        raise DataError(
            f"{path}: column {column.name} has no value in row {row}, of {int(column.isna().sum())} such rows "
            f"{MISSING}."
        )
    if not column.map(pd.api.types.is_hashable).all():
        raise DataError(f"{path}: column {column.name} holds lists; needed is one class a row.")
    counts = column.value_counts()
    counts = counts[counts > 0]  # parquet may list classes that no row has
    continuous = pd.api.types.is_float_dtype(column) and bool((column % 1 != 0).any())
    if continuous or len(counts) > min(MOST_CLASSES, len(column) // 2):
        raise DataError(
            f"{path}: column {column.name} has {len(counts):,} different values in {len(column):,} rows: a number to "
            "predict, not a class. Cut it into classes first."
        )
    if len(counts) < 2:
        raise DataError(f"{path}: column {column.name} has the class {counts.index[0]} alone; needed are two or more.")
    if counts.min() < LEAST:
        raise DataError(
            f"{path}: class {counts.idxmin()} of column {column.name} has {counts.min()} rows; needed are {LEAST} or "
            "more."
        )
    classes = sorted(counts.index, key=str)
    codes = pd.Categorical(column, categories=classes).codes.astype(np.int64)
    return torch.from_numpy(codes)[:, None], len(classes)


def _numbers(numeric: pd.DataFrame, text: list[str], patch: int, path: Path) -> tuple[Array, str]:
    """Standardised columns (n, columns) float32, filled with zeros to whole patches; and what was left out.

    Raises DataError for a column that numbers the rows: in sorted data it tells the class, of a new example nothing;
    and for one whose values are so large, or so close together, that their variance is beyond the range of numbers.
    """
    counting = [str(name) for name in numeric if _counts_rows(numeric[name])]
    if counting:
        raise DataError(f"{path}: column {few(counting)} numbers the rows; take it out.")
    lacking = [str(name) for name in numeric if not np.isfinite(numeric[name].astype(float)).all()]
    if lacking:
        raise DataError(f"{path}: column {few(lacking)} has missing or infinite values; fill them, or take it out.")
    values = numeric.astype(float)
    constant = [str(name) for name in values if values[name].nunique() == 1]
    kept = values.drop(columns=constant)
    if kept.empty:
        raise DataError(f"{path} has no column of numbers that differ; it has {few([*constant, *text])}.")
    with np.errstate(over="ignore", invalid="ignore"):  # such a column is refused
        variance = kept.var()
    if extreme := [str(name) for name, value in variance.items() if not TINY <= value < np.inf]:
        raise DataError(
            f"{path}: column {few(extreme)} has values that are too large, or too close together, to be standardised: "
            f"their variance must lie between {TINY:.0e} and {np.finfo(float).max:.0e}. Give it in another unit."
        )
    scaled = ((kept - kept.mean()) / kept.std()).to_numpy(np.float32)
    fill = -scaled.shape[1] % patch
    said = [f"{fill} of zeros to fill the last patch"] if fill else []
    said += [f"left out as constant: {few(constant)}"] if constant else []
    said += [f"left out as text: {few(text)}"] if text else []
    return np.pad(scaled, ((0, 0), (0, fill))), "".join(f"; {each}" for each in said)


def _counts_rows(column: "pd.Series[Any]") -> bool:
    """Whether it holds 0 to n - 1, or 1 to n, in any order."""
    whole = pd.api.types.is_integer_dtype(column) and column.is_unique
    return whole and (column.min(), column.max()) in ((0, len(column) - 1), (1, len(column)))


def _strings(column: "pd.Series[Any]", path: Path) -> list[str]:
    """The texts of a column. Raises DataError for what is no text, and for a row that has none."""
    odd = column[~column.isna() & ~column.map(lambda value: isinstance(value, str | int | float))]
    if len(odd):
        raise DataError(
            f"{path}: column {column.name} holds {type(odd.iloc[0]).__name__}, and not text. Save images as files in "
            "folders by class, and arrays as npz."
        )
    empty = column.isna() | (column.astype(str).str.len() == 0)
    if empty.any():
        raise DataError(
            f"{path}: column {column.name} has no text in row {int(empty.to_numpy().argmax()) + 1} {MISSING}."
        )
    return [str(text) for text in column]


def _of_symbols(read: Read, labels: Tensor, classes: int, source: str, card: dict[str, Any]) -> Task:
    """Texts as symbols, filled with 0 to the longest that is kept. Raises DataError for a text without any."""
    kept = np.array([len(row) for row in read.rows])
    if not kept.all():
        raise DataError(f"{source}: the tokenizer finds no token in the text of row {int(kept.argmin()) + 1}.")
    longest = int(kept.max())
    rows = in_rows(np.concatenate(read.rows), kept, longest)
    cut = int((np.array(read.lengths) > kept).sum())
    said = f"{cut:,} of {len(rows):,} texts are cut at" if cut else "no text is cut: the longest has"
    return Task(
        data=sixths(Examples(rows, labels, torch.from_numpy(kept))),
        encode=symbols,
        tokens=longest,
        vocabulary=read.vocabulary,
        classes=classes,
        mask_padding=True,
        scaling=f"none: {read.what}; {said} {longest:,} {read.unit}; shorter ones are padded",
        **card,
    )


def _inputs(frame: pd.DataFrame, target: str) -> tuple[pd.DataFrame, list[str]]:
    """The columns of numbers, and the names of all others but the target."""
    inputs = frame.drop(columns=target)
    numeric = inputs.select_dtypes(["number", "bool"], exclude=["timedelta"])
    return numeric, [str(column) for column in inputs if column not in numeric]


def _is_texts(numeric: pd.DataFrame, others: list[str]) -> bool:
    return numeric.empty and len(others) == 1
