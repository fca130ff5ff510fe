"""Text: the next byte of Python programs, by the model's own table of bytes and no new layer.

The programs are modules of the standard library of CPython 3.11.7, in an archive beside this file with their licence
and in three folders: no module is in two of the parts. Read, never unpacked.
"""

import tarfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fpt.files import check_sha256
from fpt.tasks.arrays import Examples, Finite, last_rows
from fpt.tasks.catalogue import BYTES
from fpt.tasks.task import Task

ARCHIVE = Path(__file__).with_name("python_3_11_7.tar.xz")
SHA256 = "82be899c061811e4f8dc592a01439f7f19a7f29764c5a61cef81b66b57aca950"
PARTS = ("train", "validation", "test")
WINDOW = 64  # bytes that are read, and bytes that are predicted


def read(archive: Path = ARCHIVE) -> dict[str, bytes]:
    """The modules of each part, one after the other by name. Raises DataError for another archive than ships."""
    check_sha256(archive, SHA256, "it ships with the package: install it again")
    parts = dict.fromkeys(PARTS, b"")
    with tarfile.open(archive) as opened:
        for member in opened:
            part, _, name = member.name.partition("/")
            content = opened.extractfile(member)
            if name and content:
                parts[part] += content.read()
    return parts


def windows(text: bytes) -> Examples:
    """Windows of 64 bytes that follow each other: inputs (n, 64) uint8, and as targets the byte after each of theirs.

    What is left at the end of the text, under a window and the byte after it, is dropped.
    """
    codes = torch.from_numpy(np.frombuffer(text, np.uint8).copy())
    count = (len(codes) - 1) // WINDOW

    def cut(first: int) -> Tensor:
        return codes[first : first + count * WINDOW].view(count, WINDOW)

    return Examples(cut(0), cut(1).long())


def programs(data_dir: Path, variant: str) -> Task:
    """Next byte at each of 64 places. Validation and test windows are the same for every seed."""
    train, validation, test = (windows(part) for part in read().values())
    both = Examples(torch.cat([train.inputs, validation.inputs]), torch.cat([train.targets, validation.targets]))
    return Task(
        data=Finite(both, test, partial(last_rows, count=len(validation))),
        vocabulary=BYTES,
        readout=WINDOW,
        classes=BYTES,
        source="63 modules of the standard library of CPython 3.11.7, 15 to 62 kB each, divided by module",
        licence="Python Software Foundation License 2; its text is in the archive",
        scaling="none: a symbol is a byte",
    )
