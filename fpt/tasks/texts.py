"""Texts as symbols: their bytes, or the tokens of a model's own tokenizer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fpt.errors import DataError
from fpt.tasks.arrays import Examples, Finite, in_rows
from fpt.tasks.catalogue import BY_BYTES, BY_MODEL, BYTES, refuse_unused
from fpt.tasks.tables import shown
from fpt.tasks.task import Task

PADDED_BYTES = BYTES + 1  # 0 fills, a byte b is the symbol b + 1


@dataclass(frozen=True)
class Read:
    """Texts as symbols below `vocabulary`: a row a text, cut at the end; how many symbols each has in all; and in words
    what symbols are, and their plural."""

    rows: Sequence[Any]
    lengths: Sequence[int]
    vocabulary: int
    what: str
    unit: str


Reader = Callable[[Sequence[str], int], Read]  # texts, and the most symbols that are kept of one


def read_texts(
    task: str, texts: Sequence[str], source: str, *, tokens: int, bytes: int, reader: Reader | None = None
) -> Read:
    """At most so many `tokens` of each text, of the tokenizer that is the `reader`; without one, so many `bytes`.

    `task` is the key of its entry. Raises SpecError for an option of the other way to read, and DataError for a text
    that has no symbol.
    """
    idle, tokenizer = ({"bytes": bytes}, BY_MODEL) if reader else ({"tokens": tokens}, BY_BYTES)
    refuse_unused(task, idle, f"the texts of {source} are read by tokenizer {tokenizer}")
    read = reader(texts, tokens) if reader else read_bytes(texts, bytes)
    for number, (text, row) in enumerate(zip(texts, read.rows, strict=True), 1):
        if not len(row):
            raise DataError(f"{source}: the tokenizer finds no token in row {number}, {shown(text)!r}.")
    return read


def read_bytes(texts: Sequence[str], most: int) -> Read:
    """Texts as their bytes in UTF-8: 0 fills, a byte b is the symbol b + 1."""
    encoded = [text.encode() for text in texts]
    rows = [np.frombuffer(each[:most], np.uint8).astype(np.int64) + 1 for each in encoded]
    return Read(rows, [len(each) for each in encoded], PADDED_BYTES, "bytes of UTF-8", "bytes")


def text_task(read: Read, labels: Tensor, divide: Callable[[Examples], Finite], card: Mapping[str, Any]) -> Task:
    """Texts as symbols, filled with 0 to the longest that is kept; `divide` says which examples are for what."""
    kept = np.array([len(row) for row in read.rows])
    longest = int(kept.max())
    rows = in_rows(np.concatenate(read.rows), kept, longest)
    cut = int((np.array(read.lengths) > kept).sum())
    said = f"{cut:,} of {len(rows):,} texts are cut at" if cut else "no text is cut: the longest has"
    return Task(
        data=divide(Examples(rows, labels, torch.from_numpy(kept))),
        vocabulary=read.vocabulary,
        mask_padding=True,
        scaling=f"none: {read.what}; {said} {longest:,} {read.unit}; shorter ones are padded",
        **card,
    )
