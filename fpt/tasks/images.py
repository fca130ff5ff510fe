"""Images: digits, MNIST, CIFAR-10, and arrays of your own."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from fpt.errors import DataError, SpecError
from fpt.files import sha256
from fpt.tasks import NPZ, refuse_unused
from fpt.tasks.arrays import Examples, Finite, digest, hold_out, hold_out_equally, last_rows, sixths, symbols
from fpt.tasks.files import PARTS, Array, cifar10_arrays, mnist_arrays, own_card, read_npz, tensors
from fpt.tasks.pixels import Pixels
from fpt.tasks.tables import counted
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
    return image_task(
        Finite(data, 400, partial(hold_out, count=300)),
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
    """MNIST in patches of 4x4.

    `paper`: zero padded to 32x32; a sixth of the training images, equally from every class, is validation: 1,000 a
    class of the whole data set. `released`: 28x28, and all training images train. The released code stops nowhere and
    reports what it sees of the test images on the way; here the seed draws half of them, which stops and selects, and
    the other half is the test.
    """
    train, test, checksum = downloaded("mnist", data_dir, mnist_arrays, (28, 28))
    count = max(1, len(train) // 6 // (int(train.targets.max()) + 1))
    return image_task(
        Finite(train, test, None if variant == "released" else partial(hold_out_equally, count=count)),
        Pixels(4, pad=2 if variant == "paper" else 0),
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
    train, test, checksum = downloaded("cifar10", data_dir, cifar10_arrays, (32, 32, 3))
    scaling = "luma gray in [-1, 1]" if pixels.gray else "RGB in [0, 1], less the channel means, over their deviations"
    return image_task(
        Finite(train, test, None if variant in RELEASED else partial(last_rows, count=max(1, len(train) // 5))),
        pixels,
        checksum=checksum,
        source="CIFAR-10, Krizhevsky 2009, as torchvision downloads it",
        licence="none stated by its authors",
        scaling=scaling + ("; training images cropped, flipped, rotated" if pixels.augmented else ""),
    )


def npz(path: Path, variant: str, patch: int, padded: bool, white: int) -> Task:
    """Images (tokens of patch x patch pixels, divided by `white`) or integer sequences (`padded`: 0 fills them on the
    right and is masked). A sixth of the training examples, stratified, is validation; where there are neither x_test
    nor y_test, the seed draws another sixth as test set. Raises DataError naming the array that is wrong, SpecError
    naming an option that changes nothing."""
    train, *official = read_npz(path, tested=False, white=white)
    if len(train) < (least := 2 if official else 3):
        parts = "validation" if official else "validation and test"
        raise DataError(f"{path}: x_train has {len(train)} examples; needed: {least} or more, for training, {parts}.")
    if not train.targets.any():
        raise DataError(f"{path}: y_train has the class 0 alone; needed are two or more.")
    data, card = sixths(train, official), own_card(path, sha256(path))
    if train.inputs.ndim > 2:
        refuse_unused(NPZ, {"padded": padded}, f"{path} holds images, and it is an option of sequences")
        if any(side % patch for side in train.inputs.shape[1:3]):
            shape = "x".join(map(str, train.inputs.shape[1:3]))
            raise SpecError(f"npz: option patch {patch} does not divide images of {shape} pixels.")
        sides = "x".join(map(str, train.inputs.shape[1:3]))
        card["read"] = _read(f"images of {sides} pixels", train, official)
        return image_task(data, Pixels(patch, white), scaling=f"pixels divided by {white}", **card)
    refuse_unused(NPZ, {"patch": patch, "white": white}, f"{path} holds sequences, and it is an option of images")
    if padded:
        _check_padding(dict(zip(PARTS, (train, *official), strict=False)), path)
    return Task(
        data=data.each(with_lengths) if padded else data,
        encode=symbols,
        tokens=train.inputs.shape[1],
        vocabulary=int(max(part.inputs.max() for part in (train, *official))) + 1,
        classes=int(train.targets.max()) + 1,
        mask_padding=padded,
        scaling="none: symbols",
        read=_read(f"sequences of {train.inputs.shape[1]:,} symbols", train, official),
        **card,
    )


def _read(what: str, train: Examples, official: Sequence[Examples]) -> str:
    """What arrays of your own hold, in words."""
    tested = f", {len(official[0]):,} test" if official else ""
    counts = train.targets[:, 0].bincount().tolist()
    return f"{len(train):,} training{tested} {what}, {counted(range(len(counts)), counts)}"


def _check_padding(parts: dict[str, Examples], path: Path) -> None:
    """DataError for padding that is not at the right end alone, and for sequences of nothing else; SpecError where
    nothing is padded."""
    for name, part in parts.items():
        real = part.inputs != 0
        wrong = (real != (torch.arange(real.shape[1]) < real.sum(1, keepdim=True))).any(1) | ~real.any(1)
        if wrong.any():
            row = int(wrong.nonzero()[0])
            shown = ", ".join(map(str, part.inputs[row, :10].tolist()))
            raise DataError(
                f"{path}: row {row} of x_{name} begins {shown}. With padded: true, 0 is no symbol and only fills on "
                "the right, and a sequence has at least one symbol."
            )
    if all(bool((part.inputs != 0).all()) for part in parts.values()):
        raise SpecError(f"npz: option padded is True, but {path} has no 0 that fills a sequence; leave it out.")


def with_lengths(data: Examples) -> Examples:
    """Symbol 0 is padding, at the right end."""
    return Examples(data.inputs, data.targets, (data.inputs != 0).sum(1))


def image_task(data: Finite, pixels: Pixels, **card: Any) -> Task:
    """A classification task on images (n, height, width) or (n, height, width, channels), read at the last
    token."""
    _, tokens, width = pixels(data.train.inputs[:1]).shape
    return Task(data, pixels, tokens=tokens, width=width, classes=int(data.train.targets.max()) + 1, **card)


def downloaded(
    name: str, data_dir: Path, read: Callable[[Path, str], dict[str, Array]], shape: tuple[int, ...]
) -> tuple[Examples, Examples, str]:
    """Training and test examples and their checksum: from `data_dir/name.npz` where present (SHA-256 of
    the file), else from torchvision's files (over the arrays), whose content their MD5 sums fix."""
    path = data_dir / f"{name}.npz"
    advice = (
        f"With a network, fpt.tasks.load({name!r}) downloads it; without one, copy that file to this place, "
        f"or put x_train, y_train, x_test, y_test into {path}; FPT_DATA names another folder."
    )
    if path.is_file():
        train, test = read_npz(path)
        if train.inputs.shape[1:] != shape:
            found = tuple(train.inputs.shape[1:])
            raise DataError(f"{path}: images have the shape {found}, but must have {shape}.")
        return train, test, sha256(path)
    arrays = read(data_dir, advice)
    train, test = (tensors(arrays[f"x_{part}"], arrays[f"y_{part}"]) for part in PARTS)
    return train, test, digest(train.inputs, train.targets, test.inputs, test.targets)
