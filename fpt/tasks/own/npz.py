"""Arrays of images or of sequences in an npz file: your own, and those that stand for MNIST and CIFAR-10."""

import zipfile
import zlib
from collections.abc import Sequence
from lzma import LZMAError
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
import torch
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from fpt.errors import DataError, SpecError
from fpt.files import check_fits, sha256
from fpt.tasks.arrays import Examples, sixths
from fpt.tasks.catalogue import BRIGHTEST, refuse_unused
from fpt.tasks.pixels import Pixels
from fpt.tasks.tables import check_classes, counted
from fpt.tasks.task import Task

PARTS = ("train", "test")
NAMES = ("x_train", "y_train", "x_test", "y_test")
DARK = 4  # images no brighter than a fourth of white have another white: 16, 1, or that of 12 or 14 bits
DEFECTS = 1000  # of so many pixels one, and one of fewer, may be bright whatever white is
MOST_LOOKED_AT = 1000  # images of an array
CHANNELS = 4  # at most
LARGEST = 1_000_000  # symbol or label: every one has a row in the input or the output layer
RAGGED = "(Fill sequences of different lengths with 0 on the right, and give the option padded: true.)"
# What NumPy and zipfile raise for a file that is not whole, is encrypted, or is compressed in a way they do not know
DAMAGED = (
    OSError, EOFError, MemoryError, RuntimeError, TypeError, ValueError, SyntaxError, TokenError, LZMAError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip

Array = NDArray[Any]


def npz(path: Path, variant: str, patch: int, padded: bool, white: int) -> Task:
    """Images (tokens of patch x patch pixels, divided by `white`) or integer sequences (`padded`: 0 fills them on the
    right and is masked). A sixth of the training examples, stratified, is validation; where there are neither x_test
    nor y_test, the seed draws another sixth as test set. Raises DataError naming the array that is wrong, SpecError
    naming an option that changes nothing."""
    train, *official = read_npz(path, tested=False, white=white)
    if len(train) < 3 and not official:
        raise DataError(f"x_train has {len(train)} examples; needed: 3 or more, for training, validation and test.")
    data = sixths(train, official)
    card: dict[str, Any] = {"classes": data.classes, "checksum": sha256(path), "source": f"your own: {path.name}"}
    if train.inputs.ndim > 2:
        refuse_unused("npz:PATH", {"padded": padded}, "that is an option of sequences, and it holds images")
        sides = "x".join(map(str, train.inputs.shape[1:3]))
        if any(side % patch for side in train.inputs.shape[1:3]):
            raise SpecError(f"option patch {patch} does not divide images of {sides} pixels.")
        said = _read(f"images of {sides} pixels", train, official)
        return Task(data, Pixels(patch, white), scaling=f"pixels divided by {white}", read=said, **card)
    refuse_unused("npz:PATH", {"patch": patch, "white": white}, "that is an option of images, and it holds sequences")
    if padded:
        _check_padding(dict(zip(PARTS, (train, *official), strict=False)))
    return Task(
        data.each(with_lengths) if padded else data,
        vocabulary=int(max(part.inputs.max() for part in (train, *official))) + 1,
        mask_padding=padded,
        scaling="none: symbols",
        read=_read(f"sequences of {train.inputs.shape[1]:,} symbols", train, official),
        **card,
    )


def read_npz(path: Path, tested: bool = True, white: int = BRIGHTEST) -> list[Examples]:
    """Training and test examples from x_train, y_train, x_test, y_test. Nothing is unpickled.

    Images are uint8 (n, h, w) or (n, h, w, channels), from 0, black, to `white`; sequences integers (n, tokens), 0 or
    more; labels integers (n,), each class from 0 on in y_train. Not `tested`: a file of one's own, which may lack the
    last two, and holds nothing else, since a name that is mistyped would be passed over. Raises DataError naming the
    array.
    """
    try:
        # the stream is ours to close: NumPy leaves it open when the file is damaged
        with open(path, "rb") as stream, NpzFile(stream, allow_pickle=False) as file:
            needed = NAMES if tested or not file.keys().isdisjoint(NAMES[2:]) else NAMES[:2]
            if not {*needed} <= {*file} or (not tested and {*file} > {*needed}):
                alone = "" if tested else ", and nothing else; the last two may be left out together"
                raise DataError(f"it has {', '.join(file) or 'nothing'}; needed are {', '.join(NAMES)}{alone}.")
            arrays = {name: _array(file, name) for name in needed}
    except DAMAGED as error:
        found = f" (SHA-256 {sha256(path)})" if path.is_file() else ""
        raise DataError(f"the file{found} is truncated, altered or no .npz file of numbers: {error}") from error
    for name, array in arrays.items():
        _check_array(array, name.startswith("x"), name, white)
    parts = [(arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in PARTS if f"x_{part}" in arrays]
    for part, (x, y) in zip(PARTS, parts, strict=False):
        if len(x) != len(y):
            raise DataError(f"x_{part} has {len(x)} rows, but y_{part} has {len(y)}.")
    (first, labels), (last, _) = parts[0], parts[-1]
    if first.shape[1:] != last.shape[1:]:
        shapes = f"{first.shape} and {last.shape}"
        raise DataError(f"x_train and x_test have the shapes {shapes}; their examples must have one shape.")
    classes = range(max(int(y.max()) for _, y in parts) + 1)
    check_classes(classes, np.bincount(labels, minlength=len(classes)).tolist(), 1, "y_train", "examples")
    return [tensors(x, y) for x, y in parts]


def _array(file: NpzFile, name: str) -> Array:
    """An array of the file. Raises ValueError naming it where it holds no numbers, since its rows may differ in length,
    and DataError where it is larger than the memory: a few compressed kilobytes can stand for terabytes of zeros."""
    assert file.zip is not None  # it is open
    try:
        stored = name if name in file.zip.namelist() else f"{name}.npy"  # as NumPy looks for it
        check_fits(file.zip.getinfo(stored).file_size, name)
        if isinstance(found := file[name], np.ndarray):
            return found
        raise ValueError("it is no array")
    except ValueError as error:
        raise ValueError(f"{name}: {error}. {RAGGED if name.startswith('x') else ''}".rstrip()) from error


def _check_array(array: Array, inputs: bool, place: str, white: int) -> None:
    """DataError for an array of another shape, type or range than inputs, or labels, may have."""
    if array.ndim not in ((2, 3, 4) if inputs else (1,)) or 0 in array.shape:
        allowed = "2 (sequences), 3 or 4 (images)" if inputs else "1"
        raise DataError(f"{place} has shape {array.shape}; needed: {allowed} dimensions, no 0.")
    if array.dtype.kind not in "iu" or (array.ndim > 2 and array.dtype != np.uint8):
        kind = "uint8" if array.ndim > 2 else "an integer type"
        raise DataError(f"{place} is {array.dtype}, but must be {kind}.")
    lowest, highest = array.min(), array.max()
    most, why = (white, " (white)") if array.ndim > 2 else (LARGEST, "")
    if lowest < 0 or highest > most:
        raise DataError(f"{place} has values from {lowest} to {highest}; allowed are 0 to {most:,}{why}.")
    if array.ndim > 2:
        _check_images(array, place, white)


def _check_images(images: Array, place: str, white: int) -> None:
    """DataError where the order of the axes, or the range of the pixels, cannot be what it is taken for."""
    height, width, channels = (*images.shape[1:], 1)[:3]
    if channels > min(CHANNELS, height, width):
        raise DataError(
            f"{place} has shape {images.shape}, read as {height}x{width} pixels of {channels} channels. The order is "
            f"(images, height, width, channels), with at most {CHANNELS} channels."
        )
    seen = images[:: max(1, len(images) // MOST_LOOKED_AT)]
    check_bright([brightness(image) for image in seen], white, f"{place}: most of its images")


def brightness(image: Array) -> int:
    """The value of a pixel, the largest of its channels, that all pixels but a few damaged ones do not exceed."""
    values = (image if image.ndim == 2 else image.max(-1)).ravel()
    few = min(max(1, len(values) // DEFECTS), len(values) // 2)
    return int(np.partition(values, len(values) - 1 - few)[len(values) - 1 - few])


def check_bright(found: Sequence[int], white: int, which: str) -> None:
    """DataError where most of these images, by their brightness, would be all but black."""
    if 2 * sum(DARK * each <= white for each in found) > len(found):
        raise DataError(
            f"{which} have no value above {int(np.median(found)):,}, but white is {white:,}: they would be all but "
            "black. If white is another value, name it: task_options: {white: 16}, or --white 16; of 12 bits 4095."
        )


def tensors(inputs: Array, labels: Array) -> Examples:
    """Inputs (n, ...) and labels (n,) as examples."""
    stored = torch.from_numpy(inputs if inputs.dtype == np.uint8 else inputs.astype(np.int64))
    return Examples(stored, torch.from_numpy(labels.astype(np.int64))[:, None])


def _read(what: str, train: Examples, official: Sequence[Examples]) -> str:
    """What arrays of your own hold, in words."""
    tested = f", {len(official[0]):,} test" if official else ""
    counts = train.targets[:, 0].bincount().tolist()
    return f"{len(train):,} training{tested} {what}, {counted(range(len(counts)), counts)}"


def _check_padding(parts: dict[str, Examples]) -> None:
    """DataError for padding that is not at the right end alone, and for sequences of nothing else; SpecError where
    nothing is padded."""
    for name, part in parts.items():
        real = part.inputs != 0
        wrong = (real != (torch.arange(real.shape[1]) < real.sum(1, keepdim=True))).any(1) | ~real.any(1)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            shown = ", ".join(map(str, part.inputs[row, :10].tolist()))
            raise DataError(
                f"row {row} of x_{name} begins {shown}. With padded: true, 0 is no symbol and only fills on "
                "the right, and a sequence has at least one symbol."
            )
    if all(bool((part.inputs != 0).all()) for part in parts.values()):
        raise SpecError("option padded is True, but there is no 0 that fills a sequence; leave it out.")


def with_lengths(data: Examples) -> Examples:
    """Symbol 0 is padding, at the right end."""
    return Examples(data.inputs, data.targets, (data.inputs != 0).sum(1))
