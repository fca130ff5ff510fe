"""Images: digits, MNIST and CIFAR-10."""

import gzip
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fpt.errors import DataError, naming
from fpt.files import sha256
from fpt.tasks.arrays import Examples, Finite, hold_out, hold_out_equally, last_rows
from fpt.tasks.catalogue import TASKS
from fpt.tasks.downloads import fetch
from fpt.tasks.own.npz import Array, read_npz, tensors
from fpt.tasks.pixels import Pixels
from fpt.tasks.task import Task

# CIFAR-10's channels, as the released code has them
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
COLOUR: dict[str, Any] = {"mean": MEAN, "std": STD}
GRAY: dict[str, Any] = {"gray": True, "mean": (0.5,), "std": (0.5,)}
RELEASED = ("released", "gray16-released")  # variants of CIFAR-10 whose training images all train
AUGMENTED = ("augmented", *RELEASED)


def digits(data_dir: Path, variant: str, patch: int = 2) -> Task:
    """scikit-learn's digits: 16 tokens of 2x2 pixels. There is no official test set: the seed draws 1,097 training,
    300 validation and 400 test images."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.uint8)
    data = Examples(images, torch.tensor(bunch.target, dtype=torch.int64)[:, None])
    return Task(
        Finite(data, 400, partial(hold_out, count=300)),
        Pixels(patch, white=16.0),
        classes=10,
        source="scikit-learn's load_digits: the test set of UCI's Optical Recognition of Handwritten Digits",
        licence="CC BY 4.0 (UCI)",
        scaling="pixels 0..16 divided by 16",
    )


def digits_lra(data_dir: Path, variant: str) -> Task:
    """The same images as 64 tokens of one pixel, in raster order."""
    return digits(data_dir, variant, patch=1)


def mnist(data_dir: Path, variant: str) -> Task:
    """MNIST in patches of 4x4.

    `paper`: zero padded to 32x32; a sixth of the training images, equally from every class, is validation: 1,000 a
    class of the whole data set. `released`: 28x28, and all training images train. The released code stops nowhere and
    reports what it sees of the test images on the way; here the seed draws half of them, which stops and selects, and
    the other half is the test.
    """
    train, test, checksum = read("mnist", data_dir, mnist_arrays, (28, 28))
    data = Finite(train, test, None)
    if variant == "paper":
        data = replace(data, divide=partial(hold_out_equally, count=max(1, len(train) // 6 // data.classes)))
    return Task(
        data,
        Pixels(4, pad=2 if variant == "paper" else 0),
        classes=data.classes,
        checksum=checksum,
        source="MNIST, LeCun, Cortes and Burges, as torchvision downloads it",
        licence="CC BY-SA 3.0",
        scaling="pixels divided by 255" + ("; zero padding to 32x32" if variant == "paper" else ""),
    )


def cifar10(data_dir: Path, variant: str) -> Task:
    """CIFAR-10 in patches of 4x4: RGB, 48 numbers a token; `gray16`: luma, 16 numbers, the shape that the papers print.

    `augmented`: training images are cropped, flipped and rotated, as the released code does. `released` and
    `gray16-released`: that, and all training images train, as in MNIST.
    """
    channels = GRAY if variant.startswith("gray16") else COLOUR
    return cifar_task(data_dir, variant, Pixels(4, **channels, augmented=variant in AUGMENTED))


def cifar10_lra(data_dir: Path, variant: str) -> Task:
    """CIFAR-10 in gray as 1,024 tokens of one pixel; `augmented` and `released` as in CIFAR-10."""
    return cifar_task(data_dir, variant, Pixels(1, **GRAY, augmented=variant in AUGMENTED))


def cifar_task(data_dir: Path, variant: str, pixels: Pixels) -> Task:
    """The last fifth of the training images, `data_batch_5`, is validation, but in the released variants."""
    train, test, checksum = read("cifar10", data_dir, cifar10_arrays, (32, 32, 3))
    divide = None if variant in RELEASED else partial(last_rows, count=max(1, len(train) // 5))
    data = Finite(train, test, divide)
    scaling = "luma gray in [-1, 1]" if pixels.gray else "RGB in [0, 1], less the channel means, over their deviations"
    return Task(
        data,
        pixels,
        classes=data.classes,
        checksum=checksum,
        source="CIFAR-10, Krizhevsky 2009, as torchvision downloads it",
        licence="none stated by its authors",
        scaling=scaling + ("; training images cropped, flipped, rotated" if pixels.augmented else ""),
    )


def read(
    name: str, data_dir: Path, original: Callable[[Path, str], Sequence[Array]], shape: tuple[int, ...]
) -> tuple[Examples, Examples, str]:
    """Training and test examples from `data_dir/name.npz`, and its SHA-256; where there is no such file, from the
    `original` files that torchvision knows, whose content their MD5 sums fix."""
    path = data_dir / f"{name}.npz"
    if not path.is_file():
        x_train, y_train, x_test, y_test = original(data_dir, TASKS[name].advice)
        return tensors(x_train, y_train), tensors(x_test, y_test), ""
    with naming(path):
        train, test = read_npz(path)
        if (found := tuple(train.inputs.shape[1:])) != shape:
            raise DataError(f"images have the shape {found}, but must have {shape}.")
    return train, test, sha256(path)


def read_idx(path: Path) -> Array:
    """The array in a gzipped idx file (MNIST's format), unsigned bytes."""
    content = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(content, ">i4", count=content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(shape).copy()


def mnist_arrays(data_dir: Path, advice: str) -> list[Array]:
    """MNIST's four files, in torchvision's place, from torchvision's mirrors, by torchvision's MD5 sums."""
    from torchvision.datasets import MNIST

    raw = data_dir / "MNIST" / "raw"
    files = [
        fetch(raw / name, md5, [mirror + name for mirror in MNIST.mirrors], advice) for name, md5 in MNIST.resources
    ]
    return [read_idx(file) for file in files]


def cifar10_arrays(data_dir: Path, advice: str) -> list[Array]:
    """CIFAR-10 by torchvision's own reader, which unpickles: it runs only where every MD5 sum is right."""
    from torchvision.datasets import CIFAR10
    from torchvision.datasets.utils import extract_archive

    folder = data_dir / CIFAR10.base_folder
    if not folder.is_dir():
        archive = fetch(data_dir / CIFAR10.filename, CIFAR10.tgz_md5, [CIFAR10.url], advice)
        with tempfile.TemporaryDirectory(dir=data_dir) as scratch:
            extract_archive(str(archive), scratch)
            with suppress(OSError):  # it is there when another process was faster
                os.rename(Path(scratch) / CIFAR10.base_folder, folder)
    try:
        train, test = CIFAR10(data_dir, train=True), CIFAR10(data_dir, train=False)
    except RuntimeError as error:
        raise DataError(f"{folder} is altered or incomplete: delete it, and it is unpacked anew. {advice}") from error
    return [np.ascontiguousarray(part) for part in (train.data, train.targets, test.data, test.targets)]
