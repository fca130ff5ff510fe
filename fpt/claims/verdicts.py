"""The files of verdicts: `runs/contrasts.csv`, each contrast once, and `runs/claims.csv`, what claims make of them.

How they are written and read, and from which runs they are. In memory both are one table, a row a claim and contrast,
in which every contrast is turned as its claim reads it; a row without `id` is the summary of a claim, or (without a
claim) of a finding.
"""

import hashlib
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fpt.claims import words
from fpt.claims.asked import HOW_PLANNED
from fpt.errors import DataError
from fpt.files import STUDY_FILE, State, state_of, workspace, write_atomically
from fpt.results.arm import ARMS, ROWS
from fpt.sweeps.record import PUBLISHED, RESULT

CONTRASTS, CLAIMS = "contrasts.csv", "claims.csv"
DECADES = "decades"  # the unit of a ratio, which is in log10 there
NUMBERS_OF_RUNS = (
    "level_first",
    "level_second",
    "estimate",
    "low",
    "high",
    "p",
    "seed_variance",
    "test_variance",
    "df",
)
OF_CONTRASTS = (
    "id", "study", "pair", "backbone", "layers", "task", "of", "first", "second", "at", "budget", "steps", "seeds",
    "unit", *NUMBERS_OF_RUNS, "planned",
)  # fmt: skip
OF_CLAIMS = (
    "claim", "finding", "id", "contrast", "sign", "least", "most", "quantifier", "sided", "p_for", "p_against", "role",
    "word", "pair_word", "other_steps", "lacking", "scale", "planned", "note",
)  # fmt: skip
COLUMNS = tuple(dict.fromkeys((*OF_CLAIMS, *OF_CONTRASTS)))
NUMBERS = ("layers", "budget", "steps", "seeds", *NUMBERS_OF_RUNS, "sign", "least", "most", "p_for", "p_against")
# The last column, filled in the first row alone: of the runs from which all was computed.
DIGEST = "digest"
DIGITS = 12  # significant: more than is ever printed, fewer than processors may differ in
SPEAKS, ROBUSTNESS, FLOORED = "speaks", "robustness", "floor"


def write(table: pd.DataFrame, folder: Path, digest: str) -> None:
    """Both files, as CSV with twelve digits, whole numbers whole; the digest is in the last column of the first row."""
    _write(contrast_rows(table), folder / CONTRASTS, digest)
    _write(table[list(OF_CLAIMS)], folder / CLAIMS, digest)


def contrast_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Each contrast once, by its id, with the strongest label that one of its claims gives it."""
    shown = table[table["id"] != ""].sort_values("planned", key=lambda each: each.map(HOW_PLANNED.index), kind="stable")
    once = (
        turned(shown).drop_duplicates("id", keep="last").sort_values(["study", "task", "first", "second", "at", "id"])
    )
    return once[list(OF_CONTRASTS)]


def turned(table: pd.DataFrame) -> pd.DataFrame:
    """Contrasts as claims read them, where they are as in the file; and the other way round. `sign` -1: the claim reads
    the second minus the first."""
    found, turn = table.copy(), table["sign"] == -1
    found.loc[turn, "estimate"] *= -1
    for one, other, sign in (("low", "high", -1), ("level_first", "level_second", 1), ("first", "second", 1)):
        swapped = table.loc[turn, [other, one]].to_numpy()
        found.loc[turn, [one, other]] = sign * swapped if sign < 0 else swapped
    return found


def _write(table: pd.DataFrame, path: Path, digest: str) -> None:
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


def read(folder: Path) -> pd.DataFrame:
    """The table of both files in a folder: text is never nan, and numbers that are not there are. It is read once for
    as long as the files stay as they are.

    Raises DataError where one is missing, has other columns or text for a number, or was written at another time.
    """
    states = (state_of(folder / CONTRASTS), state_of(folder / CLAIMS))
    return _joined(folder, states).copy(deep=False)  # pandas copies what is written to


@cache
def _joined(folder: Path, states: tuple[State, State]) -> pd.DataFrame:
    contrasts, claims = _read(folder / CONTRASTS, OF_CONTRASTS), _read(folder / CLAIMS, OF_CLAIMS)
    given, other = (table[DIGEST].iloc[0] for table in (claims, contrasts))
    lost = sorted({*claims["id"]} - {*contrasts["id"], ""})
    if given != other or lost:
        raise DataError(f"{folder}: {CONTRASTS} and {CLAIMS} were not written together; `fpt judge` writes both anew")
    table = claims.merge(contrasts.drop(columns=[DIGEST, "planned"]), how="left", on="id")
    text = [name for name in OF_CONTRASTS if name not in NUMBERS]
    return turned(table.assign(**{name: table[name].fillna("") for name in text}))


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    names = (*columns, DIGEST)
    numbers = [name for name in names if name in NUMBERS]
    try:
        types = {name: float if name in numbers else str for name in names}
        table = pd.read_csv(path, dtype=types, keep_default_na=False, na_values={name: [""] for name in numbers})
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}; `fpt judge` writes it") from None
    if lacking := [name for name in names if name not in table]:
        raise DataError(f"{path} has no column {', '.join(lacking)}; `fpt judge` writes it anew")
    if table.empty:
        raise DataError(f"{path} has no rows; `fpt judge` writes it anew")
    text = [name for name in names if name not in numbers]
    return table[list(names)].assign(**{name: table[name].fillna("") for name in text})


def tally(table: pd.DataFrame) -> list[tuple[str, int, int]]:
    """Word, and of how many claims and findings it is; words in the order of `words.WORDS`."""
    ends = table[table["id"] == ""]
    of_claims, of_findings = (
        ends[chosen]["word"].value_counts() for chosen in (ends["claim"] != "", ends["claim"] == "")
    )
    found = [(word, int(of_claims.get(word, 0)), int(of_findings.get(word, 0))) for word in words.WORDS]
    return [each for each in found if any(each[1:])]


def tested(table: pd.DataFrame) -> list[tuple[str, str, str, str]]:
    """Claim, word, whether it was planned, and what its contrasts note; of those alone of which a contrast was run."""
    run = table[(table["claim"] != "") & (table["id"] != "")]
    notes = {name: "; ".join(filter(None, dict.fromkeys(rows["note"]))) for name, rows in run.groupby("claim")}
    ends = table[table["claim"].isin(notes) & (table["id"] == "")]
    return [(*said, notes[said[0]]) for said in zip(ends["claim"], ends["word"], ends["planned"], strict=True)]


def digest_of_runs(root: Path | None = None, study: str = "") -> str:
    """Sixteen hex digits over every record and table of published results, the files of their studies, and the two
    tables by which they are read; over the reader's own results of a study, where one is named."""
    runs, hashed = workspace(root) / "runs", hashlib.sha256()
    where = f"{study}/*" if study else f"*/{PUBLISHED}/*"
    results = [*runs.glob(f"{where}/{RESULT}"), *runs.glob(f"{where}/*.parquet")]
    folders = [runs / study] if study else {path.parents[2] for path in results}
    files = [*results, *(folder / STUDY_FILE for folder in folders)]
    files += [] if study else [path for name in (ARMS, ROWS) if (path := runs / name).is_file()]
    for path in sorted(files):
        hashed.update(f"{path.relative_to(runs).as_posix()}\n".encode())
        hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()[:16]


def check_digest(root: Path | None = None) -> None:
    """Raises DataError where the files were computed from other results than those that are published here."""
    folder = workspace(root) / "runs"
    given, found = str(read(folder)[DIGEST].iloc[0]), digest_of_runs(root)
    if given != found:
        raise DataError(
            f"{folder}/{CLAIMS}: computed from other results (digest {given}, here {found}); run `fpt judge`"
        )
