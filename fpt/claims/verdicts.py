"""The file of verdicts, `runs/verdicts.csv`: its columns, how it is written and read, and from which runs it is."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fpt.claims import words
from fpt.errors import DataError
from fpt.files import write_atomically
from fpt.sweeps.ledger import PUBLISHED, RESULT, workspace
from fpt.sweeps.study_file import FILE as STUDY_FILE

FILE = "verdicts.csv"
COLUMNS = (
    "claim", "finding", "pair", "role", "study", "backbone", "layers", "task", "steps", "seeds", "at", "budget",
    "contrast", "unit", "estimate", "low", "high", "least", "most", "p", "word", "scale", "planned", "note",
)  # fmt: skip
NUMBERS = ("layers", "steps", "seeds", "budget", "estimate", "low", "high", "least", "most", "p")
DIGEST = "digest"  # the last column, filled in the first row alone: of the runs from which all was computed
DIGITS = 12  # significant: more than is ever printed, fewer than processors may differ in
SPEAKS, ROBUSTNESS, FLOORED = "speaks", "robustness", "floor"


def write(table: pd.DataFrame, path: Path, digest: str) -> None:
    """As CSV with twelve digits, whole numbers whole; the digest is in the last column of the first row."""
    shown = table.map(as_text)
    shown[DIGEST] = [digest, *[""] * (len(table) - 1)][: len(table)]
    write_atomically(path, shown.to_csv(index=False, lineterminator="\n").encode())


def as_text(value: Any) -> str:
    """A value as the file has it: nan is empty."""
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return ""
        return f"{value + 0.0:{'.0f' if value.is_integer() else f'.{DIGITS}g'}}"  # no -0
    return str(value)


def read(path: Path) -> pd.DataFrame:
    """A table of verdicts as it was written: text is never nan, and numbers that are not there are.

    Raises DataError where there is none, or one with other columns or with text for a number.
    """
    text = [name for name in (*COLUMNS, DIGEST) if name not in NUMBERS]
    try:
        types = dict.fromkeys(text, str) | dict.fromkeys(NUMBERS, float)
        table = pd.read_csv(path, dtype=types, keep_default_na=False, na_values={name: [""] for name in NUMBERS})
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}; `fpt judge` writes it") from None
    if lacking := [name for name in (*COLUMNS, DIGEST) if name not in table]:
        raise DataError(f"{path} has no column {', '.join(lacking)}; `fpt judge` writes it anew")
    if table.empty:
        raise DataError(f"{path} has no rows; `fpt judge` writes it anew")
    return table.assign(**{name: table[name].fillna("") for name in text})


def tally(table: pd.DataFrame) -> list[tuple[str, int, int]]:
    """Word, and of how many claims and findings it is; words in the order of `words.WORDS`."""
    ends = table[table["pair"] == ""]
    of_claims, of_findings = (
        ends[chosen]["word"].value_counts() for chosen in (ends["claim"] != "", ends["claim"] == "")
    )
    found = [(word, int(of_claims.get(word, 0)), int(of_findings.get(word, 0))) for word in words.WORDS]
    return [each for each in found if any(each[1:])]


def digest_of_runs(root: Path | None = None, study: str = "") -> str:
    """Sixteen hex digits over every record and table of published results, and the files of their studies; over the
    reader's own results of a study, where one is named."""
    runs, hashed = workspace(root) / "runs", hashlib.sha256()
    where = f"{study}/*" if study else f"*/{PUBLISHED}/*"
    results = [*runs.glob(f"{where}/{RESULT}"), *runs.glob(f"{where}/*.parquet")]
    folders = [runs / study] if study else {path.parents[2] for path in results}
    files = [*results, *(folder / STUDY_FILE for folder in folders)]
    for path in sorted(files):
        hashed.update(f"{path.relative_to(runs).as_posix()}\n".encode())
        hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()[:16]


def check_digest(root: Path | None = None) -> None:
    """Raises DataError where runs/verdicts.csv was computed from other results than those that are published here."""
    path = workspace(root) / "runs" / FILE
    given, found = str(read(path)[DIGEST].iloc[0]), digest_of_runs(root)
    if given != found:
        raise DataError(f"{path}: computed from other results (digest {given}, here {found}); run `fpt judge`")
