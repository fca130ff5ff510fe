"""Remote homology: the fold of a protein from its residues (Rao et al. 2019; Lu et al. 2021, section 2.1).

Read from TAPE's raw data, JSON; its LMDB values are pickles and are never read.
"""

import json
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fpt.errors import DataError
from fpt.tasks import HOMOLOGY, HOMOLOGY_ADVICE
from fpt.tasks.arrays import Examples, Finite, digest, in_rows, last_rows, symbols
from fpt.tasks.task import Task

RESIDUES = "ABCDEFGHIKLMNOPQRSTUVWXYZ"  # IUPAC's 20 common and 5 rarer letters; J is none
TRAIN, VALIDATION, FOLD_HOLDOUT = HOMOLOGY
FOLDS = 1_195
LONGEST = 1_024  # tokens
CLS, SEP, FIRST = 2, 3, 5  # TAPE's vocabulary: 0 pads, 1 (mask) and 4 (unknown) do not occur, FIRST is A
FIELDS = ("primary", "fold_label", "protein_length")


class Protein(NamedTuple):
    """A checked record of TAPE's."""

    residues: str
    fold: int


def read(path: Path) -> list[Protein]:
    """The records of one of TAPE's files, in its order. Fields other than FIELDS are dropped while it is read, since
    the whole file (profiles of every residue) is some hundred times larger than what is needed of it.

    Raises DataError, naming the file, the record and the rule, for a file that is missing or not whole, a record
    without its fields, a letter that is no residue, or a label outside 0 .. FOLDS - 1.
    """
    try:
        with open(path, encoding="utf-8") as file:
            records = json.load(file, object_hook=lambda record: {key: record.get(key) for key in FIELDS})
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing. {HOMOLOGY_ADVICE}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is truncated, altered or no JSON: {error}. {HOMOLOGY_ADVICE}") from error
    if not isinstance(records, list) or not records:
        raise DataError(f"{path} holds no list of records. {HOMOLOGY_ADVICE}")
    return [_checked(record, f"{path}: record {number} (from 0)") for number, record in enumerate(records)]


def _checked(record: Any, source: str) -> Protein:
    if not isinstance(record, dict):
        raise DataError(f"{source} is {str(record)[:40]!r}, but must be an object with {' and '.join(FIELDS[:2])}.")
    residues, fold, length = (record[field] for field in FIELDS)
    if not isinstance(residues, str) or not residues:
        raise DataError(f"{source}: primary is {residues!r:.40}, but must be a string of residues, one letter each.")
    if foreign := sorted(set(residues) - set(RESIDUES)):
        place = residues.index(foreign[0])
        raise DataError(f"{source}: primary has {foreign[0]!r} at {place}, which is no residue; these are {RESIDUES}.")
    if type(fold) is not int or not 0 <= fold < FOLDS:
        raise DataError(f"{source}: fold_label is {fold!r}, but must be a whole number from 0 to {FOLDS - 1}.")
    if length is not None and length != len(residues):
        raise DataError(f"{source}: protein_length is {length!r}, but primary has {len(residues)} residues.")
    return Protein(residues, fold)


def examples(proteins: list[Protein], encode: Callable[[str], list[int]], padded: bool) -> Examples:
    """Symbols (n, LONGEST) uint8 with 0 on the right, folds (n, 1), lengths (n,) or, if not `padded`, None."""
    tokens = [encode(protein.residues) for protein in proteins]
    lengths, folds = np.array([*map(len, tokens)]), torch.tensor([[protein.fold] for protein in proteins])
    rows = in_rows(np.fromiter(chain(*tokens), np.uint8), lengths, LONGEST)
    return Examples(rows, folds, torch.from_numpy(lengths) if padded else None)


def plain(residues: str) -> list[int]:
    """A residue is its place in RESIDUES."""
    return [RESIDUES.index(letter) for letter in residues]


def wrapped(residues: str) -> list[int]:
    """TAPE's vocabulary and its cls and sep around the residues."""
    return [CLS, *(FIRST + symbol for symbol in plain(residues)), SEP]


def homology(data_dir: Path, variant: str) -> Task:
    """TAPE's training and validation files, and its fold hold-out as test set; too long sequences are dropped.

    `paper`: one symbol a residue, 1,195 folds, read at the last residue. `released`: cls and sep around the
    residues, 30 symbols and 1,200 outputs (more than occur), read at position 1,024, and tested, as the released code
    does, on the validation file: on half of it, drawn by the seed, while the other half stops and selects, for which
    that code has nothing. It skips every *batch*
    with a sequence that is too long and pads only to the longest of a batch; here each sequence is dropped by itself
    and all are padded to 1,024. It reports accuracies times 0.9739; here they stay what they are.

    Raises DataError as `read` does.
    """
    paper = variant == "paper"
    limit = LONGEST if paper else LONGEST - 2
    notes: list[str] = []
    kept: list[list[Protein]] = []
    for name in (TRAIN, VALIDATION, FOLD_HOLDOUT) if paper else (TRAIN, VALIDATION):
        every = read(data_dir / name)
        kept.append([protein for protein in every if len(protein.residues) <= limit])
        if not kept[-1]:
            raise DataError(f"{data_dir / name}: none of its sequences has at most {limit:,} residues.")
        notes.append(f"{len(every) - len(kept[-1])} of {len(every):,}")
    # In `paper` padding is the number of A, too: 25 symbols leave it none of its own, and what is masked is never read.
    tokens = partial(examples, encode=plain if paper else wrapped, padded=paper)
    return Task(
        data=Finite(tokens(kept[0] + kept[1]), tokens(kept[2]), partial(last_rows, count=len(kept[1])))
        if paper
        else Finite(tokens(kept[0]), tokens(kept[1]), None),
        encode=symbols,
        tokens=LONGEST,
        vocabulary=len(RESIDUES) if paper else FIRST + len(RESIDUES),
        classes=FOLDS if paper else 1_200,
        mask_padding=paper,
        checksum=digest(variant, json.dumps(kept)),
        source="TAPE (Rao et al. 2019): folds of SCOP 1.75, split as DeepSF (Hou et al. 2018) did",
        licence="none stated by TAPE, which asks that it and SCOPe (Fox et al. 2013) be cited",
        scaling=f"none: symbols; dropped as longer than {limit:,} residues: {', '.join(notes)} (file by file)"
        + ("" if paper else "; cls and sep around them; padding is attended to; the test set is the validation file"),
    )
