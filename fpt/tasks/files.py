"""Files of arrays: reading, downloading and checking them, so that only whole data ever become a task."""

import gzip
import hashlib
import os
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from http.client import HTTPException
from lzma import LZMAError
from pathlib import Path
from tokenize import TokenError
from typing import Any
from urllib.request import urlopen

import numpy as np
import torch
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray
from tqdm import tqdm

from fpt.errors import DataError
from fpt.files import check_fits, sha256, write_atomically
from fpt.tasks import BRIGHTEST
from fpt.tasks.arrays import Examples

PARTS = ("train", "test")
NAMES = ("x_train", "y_train", "x_test", "y_test")
PATIENCE = 20.0  # seconds without an answer from a server before we give up
SLOWEST = 5_000  # bytes a second in the mean, after so many seconds: CIFAR-10 would take nine hours

DARK = 4  # images no brighter than a fourth of white have another white: 16, 1, or that of 12 or 14 bits
DEFECTS = 1000  # of so many pixels one, and one of fewer, may be bright whatever white is
MOST_LOOKED_AT = 1000  # images of an array
CHANNELS = 4  # at most
LARGEST = 1_000_000  # symbol or label: every one has a row in the input or the output layer
CHECKSUMS = {32: "MD5", 64: "SHA-256"}  # by their hex digits
RAGGED = "(Fill sequences of different lengths with 0 on the right, and give the option padded: true.)"
# What NumPy and zipfile raise for a file that is not whole, is encrypted, or is compressed in a way they do not know
DAMAGED = (
    OSError, EOFError, MemoryError, RuntimeError, TypeError, ValueError, SyntaxError, TokenError, LZMAError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip

Array = NDArray[Any]


def read_npz(path: Path, tested: bool = True, white: int = BRIGHTEST) -> list[Examples]:
    """Training and test examples from x_train, y_train, x_test, y_test: see `examples`. Nothing is unpickled.

    Not `tested`: a file of one's own, which may lack the last two, and holds nothing else, since a name that is
    mistyped would be passed over.
    """
    try:
        # the stream is ours to close: NumPy leaves it open when the file is damaged
        with open(path, "rb") as stream, _archive(np.load(stream, allow_pickle=False)) as file:
            needed = NAMES if tested or not file.keys().isdisjoint(NAMES[2:]) else NAMES[:2]
            if missing := [name for name in needed if name not in file]:
                raise DataError(f"{path} has no {', '.join(missing)}; it has {', '.join(file) or 'nothing'}.")
            if (unused := [name for name in file if name not in NAMES]) and not tested:
                raise DataError(f"{path}: {', '.join(unused)} would not be used; leave only {', '.join(NAMES)}.")
            arrays = {name: _numbers(file, name) for name in needed}
    except DAMAGED as error:
        found = f" (SHA-256 {sha256(path)})" if path.is_file() else ""
        raise DataError(f"{path}{found} is truncated, altered or no .npz file of numbers: {error}") from error
    return examples(arrays, str(path), white)


def own_card(path: Path, checksum: str) -> dict[str, Any]:
    """Where a task of your own data comes from: these fields of its Task."""
    return {"checksum": checksum, "source": f"your own: {path.name}", "licence": "your own"}


def _archive(loaded: Any) -> NpzFile:
    """What NumPy loaded. Raises ValueError for a single array, which names nothing."""
    if not isinstance(loaded, NpzFile):
        raise ValueError("it is a single array (.npy); save x_train and y_train by name with np.savez")
    return loaded


def _numbers(file: NpzFile, name: str) -> Array:
    """An array of the file. Raises ValueError naming it where it holds no numbers, since its rows may differ in length,
    and DataError where it is larger than the memory: a few compressed kilobytes can stand for terabytes of zeros."""
    assert file.zip is not None  # it is open
    try:
        stored = name if name in file.zip.namelist() else f"{name}.npy"  # as NumPy looks for it
        check_fits(file.zip.getinfo(stored).file_size, f"{file.zip.filename}: {name}")
        if isinstance(found := file[name], np.ndarray):
            return found
        raise ValueError("it is no array")
    except ValueError as error:
        raise ValueError(f"{name}: {error}. {RAGGED if name.startswith('x') else ''}".rstrip()) from error


def examples(arrays: dict[str, Array], source: str, white: int | None = BRIGHTEST) -> list[Examples]:
    """Checked training and test examples from the four arrays; of training alone from the first two.

    Images are uint8 (n, h, w) or (n, h, w, channels), from 0, black, to `white` (None: not checked); sequences
    integers (n, tokens), 0 or more; labels integers (n,), each class from 0 on in y_train. Raises DataError naming the
    array.
    """
    for name, array in arrays.items():
        _check_array(array, name.startswith("x"), f"{source}: {name}", white)
    parts = [(arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in PARTS if f"x_{part}" in arrays]
    for part, (x, y) in zip(PARTS, parts, strict=False):
        if len(x) != len(y):
            raise DataError(f"{source}: x_{part} has {len(x)} rows, but y_{part} has {len(y)}.")
    (first, labels), (last, _) = parts[0], parts[-1]
    if first.shape[1:] != last.shape[1:]:
        shapes = f"{first.shape} and {last.shape}"
        raise DataError(f"{source}: x_train and x_test have the shapes {shapes}; their examples must have one shape.")
    if absent := sorted(set(range(max(int(y.max()) for _, y in parts) + 1)) - set(labels.tolist())):
        listed = ", ".join(map(str, absent[:10]))
        raise DataError(f"{source}: y_train has no label {listed}; labels run from 0 to the number of classes minus 1.")
    return [tensors(x, y) for x, y in parts]


def _check_array(array: Array, inputs: bool, place: str, white: int | None) -> None:
    """DataError for an array of another shape, type or range than inputs, or labels, may have."""
    if array.ndim not in ((2, 3, 4) if inputs else (1,)) or 0 in array.shape:
        allowed = "2 (sequences), 3 or 4 (images)" if inputs else "1"
        raise DataError(f"{place} has shape {array.shape}; needed: {allowed} dimensions, no 0.")
    if array.dtype.kind not in "iu" or (array.ndim > 2 and array.dtype != np.uint8):
        kind = "uint8" if array.ndim > 2 else "an integer type"
        raise DataError(f"{place} is {array.dtype}, but must be {kind}.")
    if array.min() < 0:
        raise DataError(f"{place} has the negative value {array.min()}; values start at 0.")
    if array.max() > LARGEST:
        raise DataError(f"{place} has the value {array.max()}; the largest allowed is {LARGEST:,}.")
    if array.ndim > 2:
        _check_images(array, place, white)


def _check_images(images: Array, place: str, white: int | None) -> None:
    """DataError where the order of the axes, or the range of the pixels, cannot be what it is taken for."""
    height, width, channels = (*images.shape[1:], 1)[:3]
    if channels > min(CHANNELS, height, width):
        raise DataError(
            f"{place} has shape {images.shape}, read as {height}x{width} pixels of {channels} channels. The order is "
            f"(images, height, width, channels), with at most {CHANNELS} channels."
        )
    if white is None:
        return
    if images.max() > white:
        raise DataError(f"{place} has the value {images.max()}, but white is {white}.")
    seen = images[:: max(1, len(images) // MOST_LOOKED_AT)]
    check_bright([brightness(image) for image in seen], white, f"{place}: most of its images")


def brightness(image: Array) -> int:
    """The value of a pixel, the largest of its channels, that all pixels but a few damaged ones do not exceed."""
    values = (image if image.ndim == 2 else image.max(-1)).ravel()
    few = min(max(1, len(values) // DEFECTS), len(values) // 2)
    reached = np.bincount(values)[::-1].cumsum()  # by how many pixels, from the largest value down
    return len(reached) - 1 - int((reached > few).argmax())


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


def fetch(path: Path, checksum: str, urls: Iterable[str], advice: str) -> Path:
    """The path, its file downloaded if it is not there and checked by its MD5 or SHA-256 (hex). Nothing is written
    before the whole is right.

    Raises DataError: for a file with another checksum, which stays as it is; within seconds when there is no network,
    saying what is missing and `advice`.
    """
    kind, reasons = CHECKSUMS[len(checksum)], []

    def differs(content: bytes) -> str:
        found = hashlib.new(kind.replace("-", ""), content).hexdigest()
        return "" if found == checksum else f"expected {kind} {checksum}, found {found}"

    for url in () if path.is_file() else urls:
        try:
            content = download(url, path.name)
            if other := differs(content):
                raise OSError(other)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
            return path
        except (OSError, HTTPException) as error:
            reasons.append(f"{url}: {error}")
    if not path.is_file():
        tried = f" and could not be downloaded ({'; '.join(reasons)})" if reasons else ""
        raise DataError(f"{path} is missing{tried}; expected {kind} {checksum}. {advice}")
    if other := differs(path.read_bytes()):
        raise DataError(f"{path} is truncated or altered: {other}. Delete it to fetch it anew. {advice}")
    return path


def download(url: str, name: str) -> bytes:
    """What the address answers; a terminal sees a bar. OSError for a server that is silent, or all but silent."""
    began, parts, received = time.monotonic(), [], 0
    with (
        urlopen(url, timeout=PATIENCE) as answer,
        tqdm(desc=f"downloading {name}", unit="B", unit_scale=True, disable=None, leave=False) as bar,
    ):
        while part := answer.read1(2**16):  # what has come, not so many bytes
            parts.append(part)
            received += len(part)
            bar.update(len(part))
            if (waited := time.monotonic() - began) > PATIENCE and received < SLOWEST * waited:
                raise OSError(f"it sent fewer than {SLOWEST:,} bytes a second for {waited:.0f} s")
    return b"".join(parts)


def read_idx(path: Path) -> Array:
    """The array in a gzipped idx file (MNIST's format), unsigned bytes."""
    content = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(content, ">i4", count=content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape).copy()


def mnist_arrays(data_dir: Path, advice: str) -> dict[str, Array]:
    """MNIST's four files, in torchvision's place, from torchvision's mirrors, by torchvision's MD5 sums."""
    from torchvision.datasets import MNIST

    raw = data_dir / "MNIST" / "raw"
    found = {}
    for array, (name, md5) in zip(NAMES, MNIST.resources, strict=True):
        urls = [mirror + name for mirror in MNIST.mirrors]
        found[array] = read_idx(fetch(raw / name, md5, urls, advice))
    return found


def cifar10_arrays(data_dir: Path, advice: str) -> dict[str, Array]:
    """CIFAR-10 by torchvision's own reader, which unpickles: it runs only after every MD5 sum was found
    right."""
    from torchvision.datasets import CIFAR10
    from torchvision.datasets.utils import extract_archive

    folder = data_dir / CIFAR10.base_folder
    if not folder.is_dir():
        archive = fetch(data_dir / CIFAR10.filename, CIFAR10.tgz_md5, [CIFAR10.url], advice)
        try:
            with tempfile.TemporaryDirectory(dir=data_dir) as scratch:
                extract_archive(str(archive), scratch)
                os.replace(Path(scratch) / CIFAR10.base_folder, folder)
        except OSError as error:
            if not folder.is_dir():  # it is there when another process was faster
                raise DataError(f"{archive} cannot be unpacked into {data_dir}: {error}") from error
    for name, md5 in [*CIFAR10.train_list, *CIFAR10.test_list, (CIFAR10.meta["filename"], CIFAR10.meta["md5"])]:
        fetch(folder / name, md5, (), f"Delete {folder} to unpack it again. {advice}")
    train, test = CIFAR10(data_dir, train=True), CIFAR10(data_dir, train=False)
    arrays = (train.data, train.targets, test.data, test.targets)
    return dict(zip(NAMES, map(np.ascontiguousarray, arrays), strict=True))
