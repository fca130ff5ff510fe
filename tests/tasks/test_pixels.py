"""Tokens from pixels, against plain loops and torchvision's functions."""

from pathlib import Path

import pytest
import torch
import torchvision.transforms.functional as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from torchvision.transforms import InterpolationMode

from fpt.seeds import generator
from fpt.tasks import load
from fpt.tasks.images import MEAN, STD
from fpt.tasks.pixels import Pixels, augment, patchify


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 3),
    columns=st.integers(1, 3),
    patch=st.integers(1, 4),
    channels=st.sampled_from([1, 3]),
)
def test_patches_are_row_major_with_channels_fastest(rows: int, columns: int, patch: int, channels: int) -> None:
    images = torch.arange(2 * channels * rows * columns * patch**2).reshape(2, channels, rows * patch, columns * patch)
    tokens = patchify(images, patch)
    assert tokens.shape == (2, rows * columns, patch * patch * channels)
    back = torch.zeros_like(images)
    for n in range(2):
        for row in range(rows):
            for column in range(columns):
                values = iter(tokens[n, row * columns + column].tolist())
                for y in range(patch):
                    for x in range(patch):
                        for channel in range(channels):
                            back[n, channel, row * patch + y, column * patch + x] = next(values)
    assert torch.equal(back, images)


@pytest.mark.parametrize("channels", [1, 3])
def test_augmentation_is_torchvisions_crop_then_flip_then_rotation(channels: int) -> None:
    images = torch.rand(64, channels, 32, 32, generator=generator(0, "images"))
    ours, source = augment(images, generator(5)), generator(5)
    corners = torch.randint(0, 9, (2, 64), generator=source)
    flips = torch.rand(64, generator=source) < 0.5
    degrees = (torch.rand(64, generator=source) * 2 - 1) * 20
    assert (corners.min(), corners.max()) == (0, 8)
    assert 20 < flips.sum() < 44
    assert degrees.min() < -18
    assert degrees.max() > 18
    for n, image in enumerate(images):
        cut = reference.crop(reference.pad(image, [4]), int(corners[0, n]), int(corners[1, n]), 32, 32)
        flipped = reference.hflip(cut) if flips[n] else cut
        theirs = reference.rotate(flipped, float(degrees[n]), InterpolationMode.NEAREST)
        # a pixel whose centre falls between two others may go to either, by rounding
        assert (ours[n] != theirs).float().mean() < 0.005


def test_only_released_training_batches_are_augmented_and_the_fill_is_black_before_normalisation() -> None:
    white = torch.full((40, 32, 32, 3), 255, dtype=torch.uint8)
    pixels = Pixels(4, mean=MEAN, std=STD, augmented=True)
    evaluated, trained = pixels(white), pixels(white, generator(0))
    assert torch.equal(evaluated, pixels(white))
    assert torch.equal(trained, pixels(white, generator(0)))
    black = -torch.tensor(MEAN) / torch.tensor(STD)
    light = (1 - torch.tensor(MEAN)) / torch.tensor(STD)
    colours = trained.reshape(-1, 3).unique(dim=0)
    assert torch.allclose(colours, torch.stack([black, light]), atol=1e-6)
    assert len(evaluated.reshape(-1, 3).unique(dim=0)) == 1
    plain = Pixels(4, mean=MEAN, std=STD)
    assert torch.equal(plain(white), plain(white, generator(0)))


def test_values_of_each_task(fixtures: Path) -> None:
    digits = load("digits")
    inputs = digits.split(0).test.inputs
    assert inputs.max() == 16
    assert torch.equal(digits.encode(inputs)[:, 0, 1], inputs[:, 0, 1] / 16)
    padded, native = load("mnist", fixtures), load("mnist", fixtures, "released")
    inputs = padded.split(0).test.inputs
    frame = padded.encode(inputs).reshape(-1, 8, 8, 4, 4).permute(0, 1, 3, 2, 4).reshape(-1, 32, 32)
    assert torch.equal(frame[:, 2:30, 2:30], inputs / 255)
    assert torch.equal(torch.nn.functional.pad(frame[:, 2:30, 2:30], (2, 2, 2, 2)), frame)
    assert torch.equal(native.encode(inputs)[:, 0, :4], inputs[:, 0, :4] / 255)
    colour, gray = load("cifar10", fixtures), load("cifar10-lra", fixtures)
    inputs = colour.split(0).test.inputs
    first = reference.normalize(inputs[0].permute(2, 0, 1) / 255, list(MEAN), list(STD))
    assert torch.allclose(colour.encode(inputs)[0, 0, :3], first[:, 0, 0])
    luma = reference.rgb_to_grayscale(inputs.permute(0, 3, 1, 2) / 255)
    assert torch.allclose(gray.encode(inputs)[..., 0], (luma.flatten(1) - 0.5) / 0.5, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "variant", "shape"),
    [
        ("digits", "paper", (16, 4)),
        ("digits-lra", "paper", (64, 1)),
        ("mnist", "paper", (64, 16)),
        ("mnist", "released", (49, 16)),
        ("cifar10", "paper", (64, 48)),
        ("cifar10", "released", (64, 48)),
        ("cifar10", "augmented", (64, 48)),
        ("cifar10", "gray16", (64, 16)),
        ("cifar10", "gray16-released", (64, 16)),
        ("cifar10-lra", "paper", (1024, 1)),
        ("cifar10-lra", "augmented", (1024, 1)),
        ("cifar10-lra", "released", (1024, 1)),
    ],
)
def test_variants_differ_in_their_shape_augmentation_and_who_trains(
    name: str, variant: str, shape: tuple[int, int], fixtures: Path
) -> None:
    task, plain = load(name, fixtures, variant), load(name, fixtures, "gray16" if "gray" in variant else "paper")
    assert (task.tokens, task.width) == shape
    split, held_out = task.split(0), plain.split(0)
    inputs = split.batch(0, 8).inputs
    augmented = name.startswith("cifar10") and variant.endswith(("released", "augmented"))
    assert torch.equal(task.encode(inputs), task.encode(inputs, generator(0))) != augmented
    assert ("cropped, flipped, rotated" in task.card["normalisation"]) == augmented
    single = torch.cat([task.encode(inputs[n : n + 1]) for n in range(8)])
    assert torch.equal(single, task.encode(inputs))  # a row alone is the row in a batch
    assert name == "mnist" or torch.equal(plain.encode(inputs), task.encode(inputs))  # at evaluation
    held = 0 if variant.endswith("released") else len(held_out.validation)
    assert split.train_size == (held_out.train_size or 0) + len(held_out.validation) - held
    assert len(split.validation) == (held or len(held_out.test) // 2)
