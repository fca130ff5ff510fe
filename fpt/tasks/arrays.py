"""The one Task class, for finite data and for streams, and its splits."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from fpt.errors import SpecError
from fpt.seeds import generator

STREAM_EXAMPLES = 2_000  # evaluation examples of a stream, each for validation and test


@dataclass(frozen=True)
class Examples:
    """Integer inputs (n, ...) as stored, targets (n, predictions) int64, lengths (n,) int64: real tokens,
    or None."""

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


class Encoder(Protocol):
    """Stored integers (n, ...) -> tokens; a generator means training and draws the augmentation, if there
    is one: then a true attribute `augmented` says so."""

    def __call__(self, inputs: Tensor, generator: Generator | None = None) -> Tensor: ...


Draw = Callable[[int, Generator], Examples]
Divide = Callable[[Tensor, int], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Finite:
    """Data in memory. `divide(labels, seed)` gives the training and the validation rows of `train`."""

    train: Examples
    test: Examples
    divide: Divide
    copies: dict[torch.device, Examples] = field(default_factory=dict)

    def train_on(self, device: torch.device) -> Examples:
        """The training data on a device: one copy there, whatever the number of seeds."""
        if device not in self.copies:
            self.copies[device] = self.train.to(device)
        return self.copies[device]


@dataclass(frozen=True, eq=False)
class Task:
    """Data and how they become tokens; name, variant, options and title are filled in by `fpt.tasks.load`.

    tokens: longest sequence. Either width (features of a token; linear input layer) or vocabulary
    (symbols; embedding) is set. readout: last positions read; per_token: predictions at each; classes: of
    each prediction. mask_padding: padding is masked in bidirectional backbones and the read-out is at the
    last real token; otherwise at the last position. data: Finite, or a function that draws examples (a
    stream). relevant: which tokens each read-out position needs, (n, readout, tokens), where that is known.
    """

    data: Finite | Draw
    encode: Encoder  # (n, ...) integers -> (n, tokens, width) float32 or (n, tokens) int64
    tokens: int
    classes: int
    checksum: str
    source: str
    licence: str
    scaling: str
    width: int | None = None
    vocabulary: int | None = None
    readout: int = 1
    per_token: int = 1
    mask_padding: bool = False
    relevant: Callable[[Examples], Tensor] | None = None
    name: str = ""
    variant: str = "paper"
    options: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""

    @property
    def predictions(self) -> int:
        return self.readout * self.per_token

    @property
    def output_width(self) -> int:
        return self.per_token * self.classes

    def split(self, seed: int) -> "FiniteSplit | StreamSplit":
        """Training, validation and test examples; the test set is the same for every seed."""
        return FiniteSplit(self.data, seed) if isinstance(self.data, Finite) else StreamSplit(self, self.data, seed)

    @property
    def card(self) -> dict[str, Any]:
        """The data card: where the data come from, how many, what a token is."""
        split = self.split(0)
        shape = f"{self.tokens} x {self.width}" if self.width else f"up to {self.tokens}"
        return {
            "task": self.name,
            "title": self.title,
            "variant": self.variant,
            "source": self.source,
            "licence": self.licence,
            "train": split.train_size,  # None: a stream, drawn afresh at every step
            "validation": len(split.validation),
            "test": len(split.test),
            "tokens": shape if self.width else f"{shape}, {self.vocabulary} symbols",
            "predictions": self.predictions,
            "classes": self.classes,
            "normalisation": self.scaling,
            "checksum": self.checksum,
        }


def stratified(labels: Tensor, count: int, source: Generator) -> Tensor:
    """Sorted rows of a random sample of `count`: each class by its share of `labels` (n,), by largest
    remainder."""
    sizes = labels.bincount()
    shares = sizes * count  # over len(labels): kept in integers, so that ties do not depend on rounding
    quotas = shares // len(labels)
    rest = count - int(quotas.sum())
    quotas[(shares % len(labels)).sort(descending=True, stable=True).indices[:rest]] += 1
    rows = [_draw(labels == c, int(q), source) for c, q in enumerate(quotas)]
    return torch.cat(rows).sort().values


def set_aside(labels: Tensor, count: int, source: Generator) -> tuple[Tensor, Tensor]:
    """The rows that are not in a stratified sample of `count`, and those that are."""
    rows = stratified(labels, count, source)
    return complement(rows, len(labels)), rows


def _draw(chosen: Tensor, count: int, source: Generator) -> Tensor:
    rows = chosen.nonzero()[:, 0]
    return rows[torch.randperm(len(rows), generator=source)[:count]]


def hold_out(labels: Tensor, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """Training rows and `count` validation rows, a stratified sample that the seed draws."""
    return set_aside(labels, count, generator(seed, "split"))


def hold_out_equally(labels: Tensor, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """The same with `count` validation rows of every class."""
    source = generator(seed, "split")
    validation = torch.cat([_draw(labels == c, count, source) for c in range(int(labels.max()) + 1)]).sort().values
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


def in_rows(tokens: NDArray[np.uint8], lengths: NDArray[np.int64], width: int) -> Tensor:
    """Sequences that follow each other, as rows: padded on the right with 0, cut to `width`: (n, width) uint8."""
    rows = np.zeros((len(lengths), max(width, lengths.max())), np.uint8)
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


class _Split:
    """One seed's examples, and what both kinds of data share."""

    validation: Examples
    test: Examples

    def validation_sample(self, count: int | None = None) -> Examples:
        """A fixed stratified sample of the validation set (all of it by default)."""
        return self.validation[_sample(self.validation.targets, count)]

    def test_sample(self, count: int | None = None) -> Examples:
        """A fixed stratified sample of the test set (all of it by default)."""
        return self.test[_sample(self.test.targets, count)]

    def to(self, device: torch.device | str) -> Self:
        """Hold everything on `device` from here on; batches are then made there."""
        self.validation, self.test = self.validation.to(device), self.test.to(device)
        return self


def _sample(targets: Tensor, count: int | None) -> Tensor | slice:
    """Rows of `targets` (n, predictions) that are a fixed stratified sample of `count`; None: all."""
    if count is None or count >= len(targets):
        return slice(None)
    labels = targets[:, 0].cpu()
    if targets.shape[1] > 1:
        labels = torch.zeros_like(labels)  # many predictions an example: no classes to balance
    return stratified(labels, count, generator(0, "sample")).to(targets.device)


class FiniteSplit(_Split):
    """Of data in memory. `batch` is a pure function of (task, seed, step, size)."""

    def __init__(self, data: Finite, seed: int) -> None:
        rows, held = data.divide(data.train.targets[:, 0], seed)
        self.seed, self.data, self.source, self.rows = seed, data, data.train, rows
        self.validation, self.test, self.train_size = data.train[held], data.test, len(rows)
        self._epoch, self._order = -1, rows

    def batch(self, step: int, size: int) -> Examples:
        """Batch `step`: each epoch has its own order of the training rows; an incomplete last batch is
        dropped.

        Raises SpecError if the batch is larger than the training set.
        """
        if size > len(self.rows):
            raise SpecError(f"batch_size {size} is over the split: it has {len(self.rows)} training examples.")
        epoch, place = divmod(step, len(self.rows) // size)
        if epoch != self._epoch:
            order = torch.randperm(len(self.rows), generator=generator(self.seed, "order", epoch))
            self._epoch, self._order = epoch, self.rows[order.to(self.rows.device)]
        return self.source[self._order[place * size : (place + 1) * size]]

    def train_sample(self, count: int | None = None) -> Examples:
        """A fixed stratified sample of the training set (all of it by default), to measure training accuracy on."""
        return self.source[self.rows[_sample(self.source.targets[self.rows], count)]]

    def to(self, device: torch.device | str) -> Self:
        self.source, self.rows = self.data.train_on(torch.device(device)), self.rows.to(device)
        self._epoch = -1
        return super().to(device)


class StreamSplit(_Split):
    """Of a stream; `batch` is as pure a function, which draws anew."""

    train_size = None

    def __init__(self, task: Task, draw: Draw, seed: int) -> None:
        self.draw, self.seed, self.device = draw, seed, torch.device("cpu")
        self.validation = draw(STREAM_EXAMPLES, generator(seed, "validation"))
        self.test = draw(STREAM_EXAMPLES, generator(0, task.name, "test"))  # the same for every seed

    def batch(self, step: int, size: int) -> Examples:
        return self.draw(size, generator(self.seed, "train", step)).to(self.device)

    def train_sample(self, count: int | None = None) -> Examples:
        """Examples from a stream of their own: they are distributed as the training batches are."""
        return self.draw(count or STREAM_EXAMPLES, generator(self.seed, "train-sample")).to(self.device)

    def to(self, device: torch.device | str) -> Self:
        self.device = torch.device(device)
        return super().to(device)


Split = FiniteSplit | StreamSplit
