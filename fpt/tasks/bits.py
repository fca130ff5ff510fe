"""Bit Memory and Bit XOR: endless streams of random bits (Lu et al. 2021, section 3.1)."""

from functools import partial
from pathlib import Path

import torch
from torch import Generator, Tensor

from fpt.tasks.arrays import Examples
from fpt.tasks.task import Task


def draw_memory(count: int, source: Generator, strings: int, length: int) -> Examples:
    """Strings of -1 and 1, then one of them again with each bit masked (0) with probability 1/2; target:
    all of it."""
    bits = torch.randint(0, 2, (count, strings, length), generator=source, dtype=torch.int8)
    chosen = bits[torch.arange(count), torch.randint(0, strings, (count,), generator=source)]
    visible = torch.randint(0, 2, (count, length), generator=source, dtype=torch.int8)
    rows = torch.cat([2 * bits - 1, (visible * (2 * chosen - 1))[:, None]], dim=1)
    return Examples(rows, chosen.long())


def draw_xor(count: int, source: Generator, strings: int, length: int) -> Examples:
    """Strings of 0 and 1, one bit a token; the target at each token of the last string is the XOR over all
    strings."""
    bits = torch.randint(0, 2, (count, strings, length), generator=source, dtype=torch.int8)
    return Examples(bits, bits.sum(1) % 2)


def tokens(inputs: Tensor, generator: Generator | None = None, *, patch: int) -> Tensor:
    """(n, strings, length) integers -> (n, strings * length / patch, patch) float32."""
    return inputs.reshape(len(inputs), -1, patch).float()


def matching_string(examples: Examples, patch: int) -> Tensor:
    """Every query token needs the tokens of the string that it is a part of: (n, readout, tokens) booleans."""
    strings = examples.inputs[:, :-1] > 0
    agree = (strings == examples.targets[:, None].bool()).all(2)  # (n, strings)
    agree = torch.cat([agree, torch.zeros_like(agree[:, :1])], dim=1)
    each = examples.inputs.shape[2] // patch
    return agree.repeat_interleave(each, dim=1)[:, None].expand(-1, each, -1)


def same_place(examples: Examples) -> Tensor:
    """Every token of the last string needs the bits at its own place in all strings: (n, readout, tokens)."""
    strings, length = examples.inputs.shape[1:]
    needed = torch.eye(length, dtype=torch.bool, device=examples.inputs.device).repeat(1, strings)
    return needed.expand(len(examples), -1, -1)


def bit_memory(data_dir: Path, variant: str, strings: int, length: int, patch: int) -> Task:
    """Read at the last length / patch tokens, the query: two logits per bit."""
    return Task(
        data=partial(draw_memory, strings=strings, length=length),
        encode=partial(tokens, patch=patch),
        readout=length // patch,
        per_token=patch,
        classes=2,
        relevant=partial(matching_string, patch=patch),
        source="drawn at random at every step; validation and test examples from streams of the seed's own",
        licence="none needed: generated",
        scaling="bits are -1 and 1, masked bits 0",
    )


def _inputs(bits: int) -> str:
    """How many inputs so many bits make: written out where that is a number to read, and that Python writes."""
    return f"{2**bits:,}" if bits <= 40 else f"2^{bits}"


def bit_xor(data_dir: Path, variant: str, strings: int, length: int) -> Task:
    """Read at the tokens of the last string: two logits each. Two strings of 5 bits make only 1,024
    inputs, so the test examples were seen in training: their accuracy is no generalisation."""
    return Task(
        data=partial(draw_xor, strings=strings, length=length),
        encode=partial(tokens, patch=1),
        readout=length,
        classes=2,
        relevant=same_place,
        source=f"drawn at random at every step out of {_inputs(strings * length)} possible inputs",
        licence="none needed: generated",
        scaling="bits are 0 and 1",
    )
