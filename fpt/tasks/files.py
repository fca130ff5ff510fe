"""Files of arrays: reading, downloading and checking them, so that only whole data ever become a task."""

import gzip
import os
import pickle
import socket
import tempfile
import zipfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fpt.errors import DataError
from fpt.tasks import npz_checksum
from fpt.tasks.arrays import Examples

NAMES = ("x_train", "y_train", "x_test", "y_test")
PATIENCE = 20.0  # seconds without an answer from a server before we give up

Array = NDArray[Any]


def read_npz(path: Path) -> tuple[Examples, Examples]:
    """Training and test examples from x_train, y_train, x_test, y_test: see `examples`. Nothing is
    unpickled."""
    try:
        with open(path, "rb") as stream:  # ours to close: NumPy leaves it open when the file is damaged
            file = np.load(stream, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise DataError(f"{path} is a single array; an .npz file with {', '.join(NAMES)} is needed.")
            missing = [name for name in NAMES if name not in file.files]
            if missing:
                raise DataError(f"{path} has no {', '.join(missing)}; it has {', '.join(file.files) or 'nothing'}.")
            arrays = {name: file[name] for name in NAMES}
    except (OSError, EOFError, ValueError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        found = f" (SHA-256 {npz_checksum(path)})" if path.is_file() else ""
        raise DataError(f"{path}{found} is truncated, altered or no .npz file of numbers: {error}") from error
    return examples(arrays, str(path))


LARGEST = 1_000_000  # symbol or label: every one has a row in the input or the output layer


def examples(arrays: dict[str, Array], source: str) -> tuple[Examples, Examples]:
    """Checked examples from the four arrays. Images are uint8 (n, h, w) or (n, h, w, channels); sequences
    integers (n, tokens), 0 or more; labels integers (n,), each class from 0 on in y_train. Raises
    DataError naming the array."""
    for name, array in arrays.items():
        inputs = name.startswith("x")
        if array.ndim not in ((2, 3, 4) if inputs else (1,)) or 0 in array.shape:
            allowed = "2 (sequences), 3 or 4 (images)" if inputs else "1"
            raise DataError(f"{source}: {name} has shape {array.shape}; needed: {allowed} dimensions, no 0.")
        if array.dtype.kind not in "iu" or (array.ndim > 2 and array.dtype != np.uint8):
            kind = "uint8" if array.ndim > 2 else "an integer type"
            raise DataError(f"{source}: {name} is {array.dtype}, but must be {kind}.")
        if array.min() < 0:
            raise DataError(f"{source}: {name} has the negative value {array.min()}; values start at 0.")
        if array.max() > LARGEST:
            raise DataError(f"{source}: {name} has the value {array.max()}; the largest allowed is {LARGEST:,}.")
    for x, y in (("x_train", "y_train"), ("x_test", "y_test")):
        if len(arrays[x]) != len(arrays[y]):
            raise DataError(f"{source}: {x} has {len(arrays[x])} rows, but {y} has {len(arrays[y])}.")
    if arrays["x_train"].shape[1:] != arrays["x_test"].shape[1:]:
        shapes = f"{arrays['x_train'].shape} and {arrays['x_test'].shape}"
        raise DataError(f"{source}: x_train and x_test have the shapes {shapes}; their examples must be alike.")
    classes = np.unique(arrays["y_train"])
    if len(classes) != classes[-1] + 1 or arrays["y_test"].max() > classes[-1]:
        absent = set(range(int(max(classes[-1], arrays["y_test"].max())) + 1)) - set(classes.tolist())
        listed = ", ".join(map(str, sorted(absent)[:10]))
        raise DataError(f"{source}: y_train has no label {listed}; labels are 0 to the number of classes less 1.")
    train, test = (_tensors(arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in ("train", "test"))
    return train, test


def _tensors(inputs: Array, labels: Array) -> Examples:
    stored = torch.from_numpy(inputs if inputs.dtype == np.uint8 else inputs.astype(np.int64))
    return Examples(stored, torch.from_numpy(labels.astype(np.int64))[:, None])


def verify(path: Path, md5: str) -> Path:
    """The path, if the file has this MD5 sum; else DataError, and the file stays as it is."""
    from torchvision.datasets.utils import calculate_md5

    found = calculate_md5(path)
    if found != md5:
        raise DataError(
            f"{path} is truncated or altered: expected MD5 {md5}, found {found}. Delete it to fetch it anew."
        )
    return path


def fetch(folder: Path, name: str, md5: str, urls: Iterable[str], advice: str) -> Path:
    """The checked file `folder/name`, downloaded by torchvision if it is not there; never half of it.

    Raises DataError, within seconds when there is no network, saying what is missing and `advice`.
    """
    from torchvision.datasets.utils import download_url

    if (folder / name).is_file():
        return verify(folder / name, md5)
    patience, reasons = socket.getdefaulttimeout(), []
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    socket.setdefaulttimeout(PATIENCE)
    try:
        for url in urls:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    download_url(url, scratch, name, md5)
                    os.replace(Path(scratch) / name, folder / name)
                return folder / name
            except (OSError, RuntimeError, HTTPException) as error:
                reasons.append(f"{url}: {error}")
    finally:
        socket.setdefaulttimeout(patience)
        with suppress(OSError):  # from the first one on that holds something, or was never made
            for path in missing:
                path.rmdir()
    raise DataError(f"{folder / name} is missing and could not be downloaded ({'; '.join(reasons)}). {advice}")


def read_idx(path: Path) -> Array:
    """The array in a gzipped idx file (MNIST's format), unsigned bytes. Raises DataError if it is cut
    short."""
    try:
        content = gzip.decompress(path.read_bytes())
        shape = np.frombuffer(content, ">i4", count=content[3], offset=4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape).copy()
    except (OSError, EOFError, ValueError, IndexError, zlib.error) as error:
        raise DataError(f"{path} is truncated or altered: {error}") from error


def mnist_arrays(data_dir: Path, advice: str) -> dict[str, Array]:
    """MNIST's four files, in torchvision's place, from torchvision's mirrors, by torchvision's MD5 sums."""
    from torchvision.datasets import MNIST

    raw = data_dir / "MNIST" / "raw"
    return {
        array: read_idx(fetch(raw, name, md5, [mirror + name for mirror in MNIST.mirrors], advice))
        for array, (name, md5) in zip(NAMES, MNIST.resources, strict=True)
    }


def cifar10_arrays(data_dir: Path, advice: str) -> dict[str, Array]:
    """CIFAR-10 by torchvision's own reader, which unpickles: it runs only after every MD5 sum was found
    right."""
    from torchvision.datasets import CIFAR10
    from torchvision.datasets.utils import extract_archive

    folder = data_dir / CIFAR10.base_folder
    if not folder.is_dir():
        archive = fetch(data_dir, CIFAR10.filename, CIFAR10.tgz_md5, [CIFAR10.url], advice)
        try:
            with tempfile.TemporaryDirectory(dir=data_dir) as scratch:
                extract_archive(str(archive), scratch)
                os.replace(Path(scratch) / CIFAR10.base_folder, folder)
        except OSError as error:
            if not folder.is_dir():  # it is there when another process was faster
                raise DataError(f"{archive} cannot be unpacked into {data_dir}: {error}") from error
    sums = [*CIFAR10.train_list, *CIFAR10.test_list, [CIFAR10.meta["filename"], CIFAR10.meta["md5"]]]
    for name, md5 in sums:
        if not (folder / name).is_file():
            raise DataError(f"{folder / name} is missing. Delete {folder} to unpack it again. {advice}")
        verify(folder / name, md5)
    try:
        train, test = CIFAR10(data_dir, train=True), CIFAR10(data_dir, train=False)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise DataError(f"{folder} cannot be read: {error}") from error
    return {
        "x_train": np.ascontiguousarray(train.data),
        "y_train": np.array(train.targets),
        "x_test": np.ascontiguousarray(test.data),
        "y_test": np.array(test.targets),
    }
