"""The one Task class, for finite data and for streams, and the splits that it gives every seed."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Self

import torch
from torch import Generator, Tensor

from fpt.errors import SpecError
from fpt.seeds import generator
from fpt.tasks.arrays import Draw, Encoder, Examples, Finite, digest, of_like_length, stratified, symbols
from fpt.tasks.catalogue import OwnTable, Pooling

STREAM_EXAMPLES = 2_000  # evaluation examples of a stream, each for validation and test


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """Data and how they become tokens. A loader gives `data`, `classes`, and `vocabulary` or `encode`, and the rest
    where it differs from what stands here. What stands below `texts` is filled in by `fpt.tasks.load`.

    data: Finite, or a function that draws examples (a stream). encode: what makes features of an example (linear input
    layer); with a vocabulary, the inputs are symbols below it (embedding). classes: of each prediction. readout: last
    positions read; per_token: predictions at each. pooling: what is read, the last positions, or the mean over all real
    ones, which makes one. mask_padding: padding is masked in bidirectional backbones and the read-out is at the last
    real token; otherwise at the last position. by_length: a batch holds sequences of like length, and is cut to the
    longest of them, so that little is computed for padding; the batches of two seeds have different lengths then.
    relevant: which tokens each read-out position needs, (n, readout, tokens), where that is known. checksum: SHA-256 of
    the files; empty: of the examples. read: of your own data in one line: how many examples, which classes, what is an
    input and what is left out. texts: of a task of texts, as they were read: those of the training examples, then those
    of an official test set. own_table: '' for new input and output layers; 'reads': the model's own table of symbols in
    the place of the new input layer; 'predicts': in the place of both.
    """

    data: Finite | Draw
    encode: Encoder = symbols  # (n, ...) integers -> (n, tokens, width) float32 or (n, tokens) int64
    _: KW_ONLY
    classes: int
    vocabulary: int | None = None
    readout: int = 1
    per_token: int = 1
    mask_padding: bool = False
    pooling: Pooling = "last"
    by_length: bool = False
    relevant: Callable[[Examples], Tensor] | None = None
    checksum: str = ""
    source: str = "your own"
    licence: str = "your own"
    scaling: str = "none"
    read: str = ""
    texts: tuple[str, ...] = ()
    name: str = ""
    variant: str = "paper"
    options: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    own_table: OwnTable = ""
    # Features of its examples by what made them (fpt.training.features): another task begins without any.
    features: dict[Any, Finite] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        what = f"{self.vocabulary} symbols" if self.vocabulary else f"{self.width} features"
        return f"Task({self.name or self.source}: {self.tokens} tokens of {what}, {self.classes} classes)"

    @cached_property
    def _encoded(self) -> torch.Size:
        """The shape of one example's tokens: (1, tokens, width), or of symbols (1, tokens)."""
        with torch.device("cpu"):  # whoever asks may be building a model without memory
            one = self.data.train[:1] if isinstance(self.data, Finite) else self.data(1, generator(0, "shape"))
            return self.encode(one.inputs).shape

    @property
    def tokens(self) -> int:
        """Of the longest sequence."""
        return self._encoded[1]

    @property
    def width(self) -> int | None:
        """Features of a token; None for symbols."""
        return None if len(self._encoded) == 2 else self._encoded[2]

    @property
    def content(self) -> str:
        """SHA-256 (hex) of the examples; of a stream, of its name and options, which decide what is drawn."""
        if not isinstance(self.data, Finite):
            return digest(" ".join(map(str, [self.name, *self.options.values()])))
        parts = [self.data.train] if isinstance(self.data.test, int) else [self.data.train, self.data.test]
        return digest(*(tensor for part in parts for tensor in (part.inputs, part.targets)))

    @property
    def predictions(self) -> int:
        return self.readout * self.per_token

    @property
    def output_width(self) -> int:
        return self.per_token * self.classes

    @property
    def test_drawn_by_seed(self) -> bool:
        """Whether there is no official test set, so that every seed draws its own."""
        return not isinstance(self.data, Finite) or isinstance(self.data.test, int)

    @property
    def test_size(self) -> int:
        """Examples in the whole test set of a seed."""
        if not isinstance(self.data, Finite):
            return STREAM_EXAMPLES
        size = self.data.test if isinstance(self.data.test, int) else len(self.data.test)
        return size if self.data.divide else size - size // 2

    @property
    def collection(self) -> int | None:
        """Examples of which every seed tests another part; None where there is a test set, or a stream."""
        return len(self.data.train) if isinstance(self.data, Finite) and self.test_drawn_by_seed else None

    @property
    def changes(self) -> dict[str, Any]:
        """What `reduced` and `shuffled` made of the task: with its name, variant and options it identifies examples."""
        fraction = self.data.fraction if isinstance(self.data, Finite) else 1.0
        return {"data_fraction": fraction, "shuffle_tokens": isinstance(self.encode, Shuffled)}

    def split(self, seed: int) -> "FiniteSplit | StreamSplit":
        """Training, validation and test examples: the seed's own, but for official test sets and validation files."""
        if isinstance(self.data, Finite):
            return FiniteSplit(self.data, seed, self.by_length)
        return StreamSplit(self.data, seed)

    def reduced(self, fraction: float) -> "Task":
        """The task with a part of every seed's training examples, stratified and drawn by the seed; validation and test
        examples stay.

        `fraction` is above 0 and at most 1. Raises SpecError for a stream, and where fewer training examples than
        classes would be left. With more of them a class that is rare may still be left without one.
        """
        if fraction == 1:
            return self
        given = f"data_fraction = {fraction}"
        if not isinstance(self.data, Finite):
            raise SpecError(f"{given}: task {self.name!r} has no fixed training set, it is drawn afresh at every step")
        part = replace(self, data=replace(self.data, fraction=fraction * self.data.fraction))
        left, classes = part.split(0).train_size or 0, len(self.data.train.targets[:, 0].unique())
        if left < classes:
            raise SpecError(
                f"{given} leaves {left} of the {self.split(0).train_size:,} training examples of task {self.name!r}, "
                f"fewer than its {classes:,} classes"
            )
        return part

    def shuffled(self) -> "Task":
        """The task with its tokens in another order: one permutation for all seeds, arms, splits and augmented images.

        Raises SpecError for a task whose tokens have a part in the answer that depends on their place.
        """
        why = ""
        if self.vocabulary is not None or self.mask_padding:
            why = "its examples are sequences of symbols that end at different places, or have a meaning in their order"
        elif self.readout > 1:
            why = f"its last {self.readout} tokens are read out, each for its own part of the answer"
        if why:
            raise SpecError(f"shuffle_tokens: the tokens of task {self.name!r} cannot be shuffled, since {why}")
        if isinstance(self.encode, Shuffled):
            return self
        scaling = f"{self.scaling}; the tokens in one random order"
        return replace(self, encode=Shuffled(self.encode), relevant=None, scaling=scaling)

    @property
    def card(self) -> dict[str, Any]:
        """The data card: where the data come from, how many, what a token is."""
        split = self.split(0)
        drawn = "drawn by the seed" if self.test_drawn_by_seed else "official"
        if isinstance(self.data, Finite) and not self.data.divide:
            drawn += "; half of it, drawn by the seed, is validation, and all training examples train"
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
            "test set": drawn,
            "tokens": shape if self.width else f"{shape}, {self.vocabulary} symbols",
            "predictions": self.predictions,
            "classes": self.classes,
            **({"read": self.read} if self.read else {}),
            "normalisation": self.scaling,
            "checksum": self.checksum,
        }


@dataclass(frozen=True)
class Shuffled:
    """An encoder whose tokens come in the order that `token_order` gives."""

    encode: Encoder

    @property
    def augmented(self) -> bool:
        return bool(getattr(self.encode, "augmented", False))

    def __call__(self, inputs: Tensor, generator: Generator | None = None) -> Tensor:
        tokens = self.encode(inputs, generator)
        return tokens[:, token_order(tokens.shape[1], tokens.device)]


@cache
def token_order(tokens: int, device: torch.device) -> Tensor:
    """A fixed random permutation (tokens,), kept on the device: no copy inside a training step."""
    return torch.randperm(tokens, generator=generator(0, "shuffle", tokens)).to(device)


class _Split:
    """One seed's examples, and what both kinds of data share. Samples are pure functions of the seed and `count`; with
    None, or a count of all or more, they are the whole."""

    seed: int
    validation: Examples
    test: Examples

    def validation_sample(self, count: int | None = None) -> Examples:
        """A stratified sample of the validation set."""
        return self.validation[self._sample("validation", self.validation.targets, count)]

    def test_sample(self, count: int | None = None) -> Examples:
        """A stratified sample of the test set."""
        return self.test[self._sample("test", self.test.targets, count)]

    def to(self, device: torch.device | str) -> Self:
        """Hold everything on `device` from here on; batches are then made there."""
        self.validation, self.test = self.validation.to(device), self.test.to(device)
        return self

    def _sample(self, part: str, targets: Tensor, count: int | None) -> Tensor | slice:
        """Rows of `targets` (n, predictions) that are a stratified sample of `count`."""
        if count is None or count >= len(targets):
            return slice(None)
        labels = targets[:, 0].cpu()
        if targets.shape[1] > 1:
            labels = torch.zeros_like(labels)  # many predictions an example: no classes to balance
        return stratified(labels, count, generator(self.seed, "sample", part)).to(targets.device)


class FiniteSplit(_Split):
    """Of data in memory. `batch` is a pure function of (task, seed, step, size)."""

    def __init__(self, data: Finite, seed: int, by_length: bool = False) -> None:
        self.seed, self.data, self.source, self.by_length = seed, data, data.train, by_length
        self.rows, self.validation, self.test = data.parts(seed)
        self.train_size = len(self.rows)
        self._epoch, self._order = (-1, 0), self.rows

    def batch(self, step: int, size: int) -> Examples:
        """Batch `step`: each epoch has its own order of the training rows; an incomplete last batch is dropped. By
        length, it is cut to its longest sequence.

        Raises SpecError if the batch is larger than the training set.
        """
        if size > len(self.rows):
            few = f"{len(self.rows)} of the {len(self.data.train)} examples"
            raise SpecError(f"batch_size {size} is over the split: {few} are for training. More examples are needed.")
        epoch, place = divmod(step, len(self.rows) // size)
        if (epoch, size) != self._epoch:
            source = generator(self.seed, "order", epoch)
            self._epoch, self._order = (epoch, size), self.rows[self._ordered(source, size).to(self.rows.device)]
        batch = self.source[self._order[place * size : (place + 1) * size]]
        return batch.cut() if self.by_length else batch

    def _ordered(self, source: Generator, size: int) -> Tensor:
        """Places of an epoch's rows among the training rows."""
        order = torch.randperm(len(self.rows), generator=source)
        lengths = self.source.lengths
        if not self.by_length or lengths is None:
            return order
        return of_like_length(order, lengths[self.rows].cpu(), size, source)

    def train_sample(self, count: int | None = None) -> Examples:
        """A stratified sample of the training set, to measure training accuracy on."""
        return self.source[self.rows[self._sample("train", self.source.targets[self.rows], count)]]

    def to(self, device: torch.device | str) -> Self:
        self.source, self.rows = self.data.train_on(torch.device(device)), self.rows.to(device)
        self._epoch = (-1, 0)
        return super().to(device)


class StreamSplit(_Split):
    """Of a stream; `batch` is as pure a function, which draws anew."""

    train_size = None

    def __init__(self, draw: Draw, seed: int) -> None:
        self.draw, self.seed, self.device = draw, seed, torch.device("cpu")
        self.validation, self.test = (draw(STREAM_EXAMPLES, generator(seed, part)) for part in ("validation", "test"))

    def batch(self, step: int, size: int) -> Examples:
        return self.draw(size, generator(self.seed, "train", step)).to(self.device)

    def train_sample(self, count: int | None = None) -> Examples:
        """Examples from a stream of their own: they are distributed as the training batches are."""
        return self.draw(count or STREAM_EXAMPLES, generator(self.seed, "train-sample")).to(self.device)

    def to(self, device: torch.device | str) -> Self:
        self.device = torch.device(device)
        return super().to(device)


Split = FiniteSplit | StreamSplit
