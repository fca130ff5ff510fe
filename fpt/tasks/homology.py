"""Remote homology: the fold of a protein from its residues (Rao et al. 2019; Lu et al. 2021, section 2.1).

Read from TAPE's raw data, JSON; its LMDB values are pickles and are never read.
"""

import json
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Self

import numpy as np
import torch
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from fpt.documents import explained
from fpt.errors import DataError
from fpt.tasks.arrays import Examples, Finite, digest, in_rows, last_rows
from fpt.tasks.catalogue import TASKS
from fpt.tasks.task import Task

RESIDUES = "ABCDEFGHIKLMNOPQRSTUVWXYZ"  # IUPAC's 20 common and 5 rarer letters; J is none
((TRAIN, VALIDATION, FOLD_HOLDOUT),) = TASKS["homology"].files
FOLDS = 1_195
LONGEST = 1_024  # tokens
CLS, SEP, FIRST = 2, 3, 5  # TAPE's vocabulary: 0 pads, 1 (mask) and 4 (unknown) do not occur, FIRST is A


class Protein(BaseModel, strict=True):
    """A record of TAPE's: what is read of it."""

    primary: str = Field(pattern=f"^[{RESIDUES}]+$")  # the residues
    fold_label: int = Field(ge=0, lt=FOLDS)
    protein_length: int | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.protein_length not in (None, len(self.primary)):
            raise ValueError(f"protein_length is {self.protein_length}, but primary has {len(self.primary)} residues")
        return self


PROTEINS = TypeAdapter(Annotated[list[Protein], Field(min_length=1)])


def read(path: Path) -> list[Protein]:
    """The records of one of TAPE's files, in its order. All other fields are dropped while it is read, since the whole
    file (profiles of every residue) is some hundred times larger than what is needed of it.

    Raises DataError for a file that is missing or not whole, and naming the record and the rule for one that is none of
    TAPE's: no checksum of its files is known.
    """
    try:
        with open(path, encoding="utf-8") as file:
            records = json.load(file, object_hook=lambda each: {key: each.get(key) for key in Protein.model_fields})
        return PROTEINS.validate_python(records)
    except ValidationError as error:
        wrong = "; ".join(map(explained, error.errors(include_url=False)[:1]))
        raise DataError(f"{path}, records counted from 0: {wrong}") from None
    except (OSError, ValueError, RecursionError) as error:
        why = f"is missing, truncated, altered or no JSON ({error})"
        raise DataError(f"{path} {why}. {TASKS['homology'].advice}") from None


def examples(proteins: list[Protein], encode: Callable[[str], list[int]], padded: bool) -> Examples:
    """Symbols (n, LONGEST) uint8 with 0 on the right, folds (n, 1), lengths (n,) or, if not `padded`, None."""
    tokens = [encode(protein.primary) for protein in proteins]
    lengths, folds = np.array([*map(len, tokens)]), torch.tensor([[protein.fold_label] for protein in proteins])
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
        kept.append([protein for protein in every if len(protein.primary) <= limit])
        if not kept[-1]:
            raise DataError(f"{data_dir / name}: none of its sequences has at most {limit:,} residues.")
        notes.append(f"{len(every) - len(kept[-1])} of {len(every):,}")
    # In `paper` padding is the number of A, too: 25 symbols leave it none of its own, and what is masked is never read.
    tokens = partial(examples, encode=plain if paper else wrapped, padded=paper)
    return Task(
        data=Finite(tokens(kept[0] + kept[1]), tokens(kept[2]), partial(last_rows, count=len(kept[1])))
        if paper
        else Finite(tokens(kept[0]), tokens(kept[1]), None),
        vocabulary=len(RESIDUES) if paper else FIRST + len(RESIDUES),
        classes=FOLDS if paper else 1_200,
        mask_padding=paper,
        checksum=digest(variant, json.dumps([[(each.primary, each.fold_label) for each in part] for part in kept])),
        source="TAPE (Rao et al. 2019): folds of SCOP 1.75, split as DeepSF (Hou et al. 2018) did",
        licence="none stated by TAPE, which asks that it and SCOPe (Fox et al. 2013) be cited",
        scaling=f"none: symbols; dropped as longer than {limit:,} residues: {', '.join(notes)} (file by file)"
        + ("" if paper else "; cls and sep around them; padding is attended to; the test set is the validation file"),
    )
