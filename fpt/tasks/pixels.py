"""From stored pixels to tokens, on whatever device the pixels are: padding, gray, augmentation, scaling,
patches."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

LUMA = (0.2989, 0.587, 0.114)


@dataclass(frozen=True)
class Pixels:
    """Images (n, height, width), gray, or (n, height, width, channels), integers -> tokens (n, patches,
    patch * patch * channels), float32.

    The order is the released code's: scale to [0, 1], gray, crop, flip, rotation, normalisation; so what
    cropping and rotation fill in is black before it is normalised. Augmentation is drawn only when a
    generator is given.
    """

    patch: int
    white: float = 255.0
    pad: int = 0
    gray: bool = False
    augmented: bool = False
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def __call__(self, inputs: Tensor, generator: Generator | None = None) -> Tensor:
        images = (inputs.unsqueeze(1) if inputs.ndim == 3 else inputs.permute(0, 3, 1, 2)).float() / self.white
        if self.gray:
            images = (images * constant(LUMA, images.device)).sum(1, keepdim=True)
        if self.pad:
            images = F.pad(images, (self.pad,) * 4)
        if self.augmented and generator is not None:
            images = augment(images, generator)
        if self.mean:
            images = (images - constant(self.mean, images.device)) / constant(self.std, images.device)
        return patchify(images, self.patch)


@cache
def constant(values: Sequence[float], device: torch.device) -> Tensor:
    """Per-channel numbers (channels, 1, 1), kept on the device: no copy inside a training step."""
    return torch.tensor(values, device=device)[:, None, None]


def patchify(images: Tensor, patch: int) -> Tensor:
    """(n, channels, h, w) -> (n, tokens, features): patches row by row; in one, row, column, channel
    (fastest)."""
    n, channels, height, width = images.shape
    grid = images.reshape(n, channels, height // patch, patch, width // patch, patch)
    return grid.permute(0, 2, 4, 3, 5, 1).reshape(n, -1, patch * patch * channels)


def augment(images: Tensor, generator: Generator) -> Tensor:
    """Lu et al.'s unprinted augmentation of (n, channels, h, w): crop with zero padding 4, flip, rotation
    by +-20."""
    n = len(images)
    corners = torch.randint(0, 9, (2, n), generator=generator).to(images.device)
    flips = (torch.rand(n, generator=generator) < 0.5).to(images.device)
    degrees = ((torch.rand(n, generator=generator) * 2 - 1) * 20).to(images.device)
    images = crop(images, corners[0], corners[1], padding=4)
    images = torch.where(flips[:, None, None, None], images.flip(-1), images)
    return rotate(images, degrees)


def crop(images: Tensor, top: Tensor, left: Tensor, padding: int) -> Tensor:
    """Cut each image, after zero padding, to its own size at its own corner; top, left: (n,) in 0 .. 2 *
    padding."""
    n, channels, height, width = images.shape
    padded = F.pad(images, (padding,) * 4)
    rows = (top[:, None] + torch.arange(height, device=images.device))[:, None, :, None]
    columns = (left[:, None] + torch.arange(width, device=images.device))[:, None, None, :]
    image = torch.arange(n, device=images.device)[:, None, None, None]
    channel = torch.arange(channels, device=images.device)[:, None, None]
    return padded[image, channel, rows, columns]


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Rotate each image counter-clockwise about its centre by its own angle (n,): nearest neighbour, black
    outside."""
    height, width = images.shape[-2:]
    turn = torch.deg2rad(degrees)
    cos, sin = turn.cos()[:, None, None], turn.sin()[:, None, None]
    x = (torch.arange(width, device=images.device) - (width - 1) / 2)[None, None, :]
    y = (torch.arange(height, device=images.device) - (height - 1) / 2)[None, :, None]
    grid = torch.stack([(cos * x - sin * y) / (width / 2), (sin * x + cos * y) / (height / 2)], -1)
    return F.grid_sample(images, grid, mode="nearest", padding_mode="zeros", align_corners=False)
