"""Named random streams: one seed fixes everything, and no two uses share a stream (book/method.md, Training)."""

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def stream(seed: int, *path: str | int) -> int:
    """A 63-bit seed for the use named by `path`, e.g. stream(3, "order", epoch); equal on every machine."""
    text = "/".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, *path: str | int) -> "torch.Generator":
    """A CPU torch generator for the use named by `path`; two uses never disturb each other."""
    import torch

    return torch.Generator().manual_seed(stream(seed, *path))
