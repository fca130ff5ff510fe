"""Examples in memory, which of them a seed takes for what, and how they are stored."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from fpt.errors import SpecError
from fpt.seeds import generator

EIGHT = 8  # lengths to which sequences are cut are multiples of it
BLOCK = 50  # batches among which rows are sorted by length


@dataclass(frozen=True)
class Examples:
    """Inputs (n, ...) as stored, integers or, of a table, float32; targets (n, predictions) int64; lengths (n,) int64:
    real tokens, or None."""

    inputs: Tensor
    targets: Tensor
    lengths: Tensor | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def each(self, change: Callable[[Tensor], Tensor]) -> "Examples":
        lengths = None if self.lengths is None else change(self.lengths)
        return Examples(change(self.inputs), change(self.targets), lengths)

    def __getitem__(self, index: Any) -> "Examples":
        return self.each(lambda part: part[index])

    def to(self, device: torch.device | str) -> "Examples":
        return self.each(lambda part: part.to(device))

    def cut(self) -> "Examples":
        """Sequences (..., tokens) without the padding that all of them have: as long as the longest, in whole eights,
        so that there are few different lengths."""
        if self.lengths is None:
            return self
        longest = -(-int(self.lengths.max()) // EIGHT) * EIGHT
        return replace(self, inputs=self.inputs[..., :longest])


class Encoder(Protocol):
    """Stored inputs (n, ...) -> tokens; a generator means training and draws the augmentation, if there
    is one: then a true attribute `augmented` says so."""

    def __call__(self, inputs: Tensor, generator: Generator | None = None) -> Tensor: ...


Draw = Callable[[int, Generator], Examples]
Divide = Callable[[Tensor, int], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Finite:
    """Data in memory, of which every seed takes its own part.

    test: the official test set; or a number, where there is none: the seed sets aside so many of `train`, stratified.
    `divide(labels, seed)` gives the training and the validation rows of what is left; None, as released code without a
    validation set: all of it trains, and half of the test examples, drawn by the seed, is validation. Of the training
    rows so many `per_class` are used, drawn by the seed (0: all; of a class with fewer, all), and of these a stratified
    `fraction`. No example is in two of the three parts.
    """

    train: Examples
    test: Examples | int
    divide: Divide | None
    fraction: float = 1.0
    per_class: int = 0
    copies: dict[torch.device, Examples] = field(default_factory=dict, init=False)

    @property
    def classes(self) -> int:
        """Of the labels of the training examples, which run from 0."""
        return int(self.train.targets.max()) + 1

    def train_on(self, device: torch.device) -> Examples:
        """The training data on a device: one copy there, whatever the number of seeds."""
        if device not in self.copies:
            self.copies[device] = self.train.to(device)
        return self.copies[device]

    def each(self, change: Callable[[Examples], Examples]) -> "Finite":
        """The same rows for every seed, of changed examples."""
        test = self.test if isinstance(self.test, int) else change(self.test)
        return replace(self, train=change(self.train), test=test)

    def parts(self, seed: int) -> tuple[Tensor, Examples, Examples]:
        """The training rows of a seed, its validation and its test examples. Raises SpecError for too few to halve."""
        labels, test = self.train.targets[:, 0].cpu(), self.test
        rows = torch.arange(len(labels))
        if isinstance(test, int):
            rows, drawn = set_aside(labels, test, generator(seed, "test"))
            test = self.train[drawn]
        if self.divide:
            kept, held = self.divide(labels[rows], seed)
            validation, rows = self.train[rows[held]], rows[kept]
        elif len(test) > 1:
            kept, held = set_aside(test.targets[:, 0].cpu(), len(test) // 2, generator(seed, "split"))
            validation, test = test[held], test[kept]
        else:
            raise SpecError("half of the test examples is validation here, and there is only 1 of them")
        if self.per_class:
            rows = rows[equally(labels[rows], self.per_class, generator(seed, "per class"))]
        if self.fraction < 1:
            some = stratified(labels[rows], max(1, round(self.fraction * len(rows))), generator(seed, "fraction"))
            rows = rows[some]
        return rows, validation, test


def repeated(train: Examples, test: Examples | int) -> int:
    """How many test examples have the inputs of a training example; where every seed draws the test examples, how many
    examples have the inputs of an earlier one."""
    rows = [row.numpy().tobytes() for row in train.inputs]
    seen = set(rows)
    return len(rows) - len(seen) if isinstance(test, int) else sum(r.numpy().tobytes() in seen for r in test.inputs)


def stratified(labels: Tensor, count: int, source: Generator) -> Tensor:
    """Sorted rows of a random sample of `count`: each class by its share of `labels` (n,), by largest
    remainder, and by chance where remainders are equal."""
    sizes = labels.bincount()
    shares = sizes * count  # over len(labels): kept in integers, so that ties do not depend on rounding
    quotas = shares // len(labels)
    rest = count - int(quotas.sum())
    order = torch.randperm(len(sizes), generator=source)
    quotas[order[(shares % len(labels))[order].sort(descending=True, stable=True).indices[:rest]]] += 1
    rows = [_draw(labels == c, int(q), source) for c, q in enumerate(quotas)]
    return torch.cat(rows).sort().values


def of_like_length(order: Tensor, lengths: Tensor, size: int, source: Generator) -> Tensor:
    """An epoch's `order` (n,) of rows with these lengths, rearranged so that batches of `size` are of like length.

    Blocks of the order are sorted by length and cut into batches, which come in a random order: which rows meet stays
    nearly random, and no length has its time. Rows that fill no batch are left out.
    """
    batches = []
    for block in order[: len(order) // size * size].split(BLOCK * size):
        alike = block[lengths[block].argsort(stable=True)].view(-1, size)
        batches.append(alike[torch.randperm(len(alike), generator=source)])
    return torch.cat(batches).flatten()


def set_aside(labels: Tensor, count: int, source: Generator) -> tuple[Tensor, Tensor]:
    """The rows that are not in a stratified sample of `count`, and those that are."""
    rows = stratified(labels, count, source)
    return complement(rows, len(labels)), rows


def equally(labels: Tensor, count: int, source: Generator) -> Tensor:
    """Sorted rows of a random sample of `count` of every class. A larger one from an equal source contains it."""
    return torch.cat([_draw(labels == c, count, source) for c in range(int(labels.max()) + 1)]).sort().values


def _draw(chosen: Tensor, count: int, source: Generator) -> Tensor:
    rows = chosen.nonzero()[:, 0]
    return rows[torch.randperm(len(rows), generator=source)[:count]]


def hold_out(labels: Tensor, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """Training rows and `count` validation rows, a stratified sample that the seed draws."""
    return set_aside(labels, count, generator(seed, "split"))


def sixths(train: Examples, official: Sequence[Examples] = ()) -> Finite:
    """Data of which a sixth of the training examples is validation. The test set is the `official` one; where there is
    none, the seed draws another sixth. Both samples are stratified."""
    sixth = max(1, len(train) // 6)
    return Finite(train, official[0] if official else sixth, partial(hold_out, count=sixth))


def hold_out_equally(labels: Tensor, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """The same with `count` validation rows of every class."""
    validation = equally(labels, count, generator(seed, "split"))
    return complement(validation, len(labels)), validation


def last_rows(labels: Tensor, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """The last `count` rows are validation, whatever the seed."""
    rows = torch.arange(len(labels))
    return rows[:-count], rows[-count:]


def complement(rows: Tensor, size: int) -> Tensor:
    """The rows below `size` that are not in `rows`."""
    keep = torch.ones(size, dtype=torch.bool)
    keep[rows] = False
    return keep.nonzero()[:, 0]


def in_rows(tokens: NDArray[np.integer[Any]], lengths: NDArray[np.int64], width: int) -> Tensor:
    """Sequences that follow each other, as rows: padded on the right with 0, cut to `width`: (n, width) of their
    type."""
    rows = np.zeros((len(lengths), max(width, lengths.max())), tokens.dtype)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = tokens
    return torch.from_numpy(np.ascontiguousarray(rows[:, :width]))


def symbols(inputs: Tensor, generator: Generator | None = None) -> Tensor:
    """(n, tokens) integers -> (n, tokens) int64."""
    return inputs.long()


def digest(*parts: Tensor | str) -> str:
    """SHA-256 (hex) over the shapes, types and bytes of tensors, and over strings."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Tensor):
            total.update(f"{tuple(part.shape)} {part.dtype} ".encode())
            total.update(part.contiguous().numpy().data)
        else:
            total.update(part.encode())
    return total.hexdigest()
