"""Images: digits, MNIST, CIFAR-10, and arrays of your own."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from fpt.errors import DataError, SpecError
from fpt.seeds import generator
from fpt.tasks import npz_checksum
from fpt.tasks.arrays import Examples, Finite, Task, digest, hold_out, hold_out_equally, last_rows, set_aside, symbols
from fpt.tasks.files import Array, cifar10_arrays, examples, mnist_arrays, read_npz
from fpt.tasks.pixels import Pixels

# CIFAR-10's channels, as the released code has them
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def digits(data_dir: Path, variant: str, patch: int = 2) -> Task:
    """scikit-learn's digits: 16 tokens of 2x2 pixels. A fixed stratified test set of 400; the seed draws
    1,097/300."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.uint8)
    data = Examples(images, torch.tensor(bunch.target, dtype=torch.int64)[:, None])
    train, test = set_aside(data.targets[:, 0], 400, generator(0, "digits", "test"))
    return image_task(
        Finite(data[train], data[test], partial(hold_out, count=300)),
        Pixels(patch, white=16.0),
        checksum=digest(data.inputs, data.targets),
        source="scikit-learn's load_digits: the test set of UCI's Optical Recognition of Handwritten Digits",
        licence="CC BY 4.0 (UCI)",
        scaling="pixels 0..16 divided by 16",
    )


def digits_lra(data_dir: Path, variant: str) -> Task:
    """The same images as 64 tokens of one pixel, in raster order."""
    return digits(data_dir, variant, patch=1)


def mnist(data_dir: Path, variant: str) -> Task:
    """MNIST in patches of 4x4: zero padded to 32x32 (`paper`) or 28x28 (`released`). A sixth of the
    training images, equally from every class, is validation: 1,000 a class of the whole data set."""
    train, test, checksum = downloaded("mnist", data_dir, mnist_arrays, (28, 28))
    count = max(1, len(train) // 6 // (int(train.targets.max()) + 1))
    return image_task(
        Finite(train, test, partial(hold_out_equally, count=count)),
        Pixels(4, pad=2 if variant == "paper" else 0),
        checksum=checksum,
        source="MNIST, LeCun, Cortes and Burges, as torchvision downloads it",
        licence="CC BY-SA 3.0",
        scaling="pixels divided by 255" + ("; zero padding to 32x32" if variant == "paper" else ""),
    )


def cifar10(data_dir: Path, variant: str) -> Task:
    """CIFAR-10 in patches of 4x4: RGB, 48 numbers a token; `released`: with augmentation; `gray16`: luma,
    16 numbers, the shape that the papers print."""
    if variant == "gray16":
        return cifar_task(data_dir, Pixels(4, gray=True, mean=(0.5,), std=(0.5,)))
    return cifar_task(data_dir, Pixels(4, mean=MEAN, std=STD, augmented=variant == "released"))


def cifar10_lra(data_dir: Path, variant: str) -> Task:
    """CIFAR-10 in gray as 1,024 tokens of one pixel; `released`: with augmentation."""
    return cifar_task(data_dir, Pixels(1, gray=True, mean=(0.5,), std=(0.5,), augmented=variant == "released"))


def cifar_task(data_dir: Path, pixels: Pixels) -> Task:
    """The last fifth of the training images, `data_batch_5`, is validation."""
    train, test, checksum = downloaded("cifar10", data_dir, cifar10_arrays, (32, 32, 3))
    scaling = "luma gray in [-1, 1]" if pixels.gray else "RGB in [0, 1], less the channel means, over their deviations"
    return image_task(
        Finite(train, test, partial(last_rows, count=max(1, len(train) // 5))),
        pixels,
        checksum=checksum,
        source="CIFAR-10, Krizhevsky 2009, as torchvision downloads it",
        licence="none stated by its authors",
        scaling=scaling + ("; training images cropped, flipped, rotated" if pixels.augmented else ""),
    )


def npz(path: Path, variant: str, patch: int, padded: bool) -> Task:
    """Images (tokens of patch x patch pixels) or integer sequences (`padded`: 0 fills them on the right
    and is masked). A sixth of the training examples, stratified, is validation. Raises DataError naming
    the array that is wrong."""
    train, test = read_npz(path)
    finite = partial(Finite, divide=partial(hold_out, count=max(1, len(train) // 6)))
    card: dict[str, Any] = {"checksum": npz_checksum(path), "source": f"your own: {path.name}", "licence": "your own"}
    if train.inputs.ndim > 2:
        if any(side % patch for side in train.inputs.shape[1:3]):
            shape = "x".join(map(str, train.inputs.shape[1:3]))
            raise SpecError(f"npz: option patch {patch} does not divide images of {shape} pixels.")
        return image_task(finite(train, test), Pixels(patch), scaling="pixels divided by 255", **card)
    return Task(
        data=finite(with_lengths(train), with_lengths(test)) if padded else finite(train, test),
        encode=symbols,
        tokens=train.inputs.shape[1],
        vocabulary=int(max(train.inputs.max(), test.inputs.max())) + 1,
        classes=int(train.targets.max()) + 1,
        mask_padding=padded,
        scaling="none: symbols",
        **card,
    )


def with_lengths(data: Examples) -> Examples:
    """Symbol 0 at the right end is padding; a sequence keeps at least one token."""
    place = torch.arange(1, data.inputs.shape[1] + 1)
    return Examples(data.inputs, data.targets, ((data.inputs != 0) * place).amax(1).clamp(min=1))


def image_task(data: Finite, pixels: Pixels, **card: Any) -> Task:
    """A classification task on images (n, height, width) or (n, height, width, channels), read at the last
    token."""
    _, tokens, width = pixels(data.train.inputs[:1]).shape
    return Task(data, pixels, tokens=tokens, width=width, classes=int(data.train.targets.max()) + 1, **card)


def downloaded(
    name: str, data_dir: Path, read: Callable[[Path, str], dict[str, Array]], shape: tuple[int, ...]
) -> tuple[Examples, Examples, str]:
    """Training and test examples and their checksum: from `data_dir/name.npz` where present (SHA-256 of
    the file), else from torchvision's files (over the arrays)."""
    path = data_dir / f"{name}.npz"
    advice = (
        f"With a network, fpt.tasks.load({name!r}) downloads it; without one, copy that file to this place, "
        f"or put x_train, y_train, x_test, y_test into {path}; FPT_DATA names another folder."
    )
    if path.is_file():
        (train, test), checksum = read_npz(path), npz_checksum(path)
    else:
        train, test = examples(read(data_dir, advice), str(data_dir))
        checksum = digest(train.inputs, train.targets, test.inputs, test.targets)
    if train.inputs.shape[1:] != shape:
        found = tuple(train.inputs.shape[1:])
        raise DataError(f"{name} in {data_dir}: images have the shape {found}, but must have {shape}.")
    return train, test, checksum
