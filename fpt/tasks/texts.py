"""Texts as symbols: their bytes, or the tokens of a model's own tokenizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fpt.errors import DataError
from fpt.tasks.arrays import Examples, in_rows
from fpt.tasks.catalogue import BY_BYTES, BY_MODEL, BYTES, refuse_unused
from fpt.tasks.tables import shown

PADDED_BYTES = BYTES + 1  # 0 fills, a byte b is the symbol b + 1


@dataclass(frozen=True)
class Tokenized:
    """Texts as symbols below `vocabulary`: a row a text, cut at the end; how many symbols each has in all; and in words
    what symbols are, and their plural."""

    rows: Sequence[Any]
    lengths: Sequence[int]
    vocabulary: int
    what: str
    unit: str

    def examples(self, labels: Tensor) -> Examples:
        """The texts, filled with 0 to the longest that is kept, and their labels (n, 1)."""
        kept = np.array([len(row) for row in self.rows])
        return Examples(in_rows(np.concatenate(self.rows), kept, int(kept.max())), labels, torch.from_numpy(kept))

    @property
    def card(self) -> dict[str, Any]:
        """What a Task says of symbols of texts."""
        kept = [len(row) for row in self.rows]
        cut = sum(length > most for length, most in zip(self.lengths, kept, strict=True))
        said = f"{cut:,} of {len(kept):,} texts are cut at" if cut else "no text is cut: the longest has"
        scaling = f"none: {self.what}; {said} {max(kept):,} {self.unit}; shorter ones are padded"
        return {"vocabulary": self.vocabulary, "mask_padding": True, "by_length": True, "scaling": scaling}


Tokenizer = Callable[[Sequence[str], int], Tokenized]  # texts, and the most symbols that are kept of one


def tokenized(
    task: str, texts: Sequence[str], source: str, *, tokens: int, bytes: int, reader: Tokenizer | None = None
) -> Tokenized:
    """At most so many `tokens` of each text, of the tokenizer that is the `reader`; without one, so many `bytes`.

    `task` is the key of its entry. Raises SpecError for an option of the other way to read, and DataError for a text
    that has no symbol.
    """
    idle, tokenizer = ({"bytes": bytes}, BY_MODEL) if reader else ({"tokens": tokens}, BY_BYTES)
    refuse_unused(task, idle, f"the texts of {source} are read by tokenizer {tokenizer}")
    found = reader(texts, tokens) if reader else in_bytes(texts, bytes)
    for number, (text, row) in enumerate(zip(texts, found.rows, strict=True), 1):
        if not len(row):
            raise DataError(f"{source}: the tokenizer finds no token in row {number}, {shown(text)!r}.")
    return found


def in_bytes(texts: Sequence[str], most: int) -> Tokenized:
    """Texts as their bytes in UTF-8: 0 fills, a byte b is the symbol b + 1."""
    encoded = [text.encode() for text in texts]
    rows = [np.frombuffer(each[:most], np.uint8).astype(np.int64) + 1 for each in encoded]
    return Tokenized(rows, [len(each) for each in encoded], PADDED_BYTES, "bytes of UTF-8", "bytes")
