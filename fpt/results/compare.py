"""Paired contrasts for anybody's table of results: arms, seeds and scores, as `fpt compare` prints them."""

import math
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from fpt.errors import DataError, SpecError, unknown
from fpt.results.stats import MINIMUM_PAIRS, holm, paired, seeds_needed
from fpt.tasks.tables import FEW, MISSING, read_table

GUESSED = {  # role -> names of columns, the likeliest first
    "by": ("arm", "method", "model", "algorithm", "condition", "config", "variant", "group"),
    "pair": ("seed", "run", "fold", "split", "replicate", "repeat", "trial"),
    "score": ("score", "test_accuracy", "accuracy", "acc", "test_acc", "f1", "auc", "metric", "value"),
}
MOST_ARMS = 20  # 190 pairs; more are a grid, not arms


def read_results(path: Path) -> pd.DataFrame:
    """A table of results: CSV, TSV or parquet, by its ending.

    Raises DataError for a file that is missing, empty, or no such table.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    return read_table(path)


def columns(frame: pd.DataFrame, given: Mapping[str, str | None]) -> dict[str, str]:
    """The columns of arms (`by`), of seeds (`pair`) and of scores (`score`): as given, else guessed by their names.

    Raises SpecError for one that is not there, or that cannot be guessed.
    """
    found = {}
    for role, names in GUESSED.items():
        name = given.get(role)
        if name is not None and name not in frame:
            raise unknown("column", name, map(str, frame.columns), f"--{role}")
        if name is None:
            lower = {str(column).lower(): str(column) for column in frame.columns}
            lower |= {str(column): str(column) for column in frame.columns}  # a name that is the very same comes first
            name = next((lower[each] for each in names if each in lower), None)
        if name is None:
            raise SpecError(
                f"no column is named {', '.join(names)}: name one of {', '.join(map(str, frame.columns))} by --{role}"
            )
        found[role] = name
    if len(set(found.values())) < len(found):
        raise SpecError(f"arms, seeds and scores need three different columns; given: {', '.join(found.values())}")
    return found


def scores_of(frame: pd.DataFrame, by: str, pair: str, score: str, unpaired: bool = False) -> pd.DataFrame:
    """Scores, seeds x arms. `unpaired`: seeds may be missing for an arm; nan then.

    Raises SpecError where a seed stands twice for an arm, or is missing for one; DataError for scores that are no
    numbers.
    """
    for name in (by, pair):
        if frame[name].map(lambda value: isinstance(value, list | dict | np.ndarray)).any():
            raise DataError(f"column {name} holds lists or mappings; needed is one name or number in each row")
    if not pd.api.types.is_numeric_dtype(frame[score]):
        others = frame[score][frame[score].notna() & pd.to_numeric(frame[score].astype(str), errors="coerce").isna()]
        raise DataError(f"column {score}: its scores must be numbers; one is {[*others, *frame[score]][0]!r}")
    if frame[[by, pair, score]].isna().any(axis=None):
        row = int(frame[[by, pair, score]].isna().any(axis=1).to_numpy().argmax())
        raise DataError(f"row {row + 1} has no {by}, {pair} or {score} {MISSING}; fill it, or take the row out")
    frame = frame.astype({score: float})
    if pd.api.types.is_bool_dtype(frame[by]):
        frame = frame.astype({by: str})
    if (endless := np.isinf(frame[score].to_numpy())).any():
        raise DataError(f"row {int(endless.argmax()) + 1}: {score} must be finite; take the row out")
    arms = frame[by].nunique()
    if not 2 <= arms <= MOST_ARMS:
        raise SpecError(f"column {by} has {arms} different values; arms to compare are 2 to {MOST_ARMS}")
    twice = frame[frame.duplicated([by, pair], keep=False)]
    if len(twice):
        arm, seed = twice[[by, pair]].iloc[0]
        alike = twice[(twice[by] == arm) & (twice[pair] == seed)].drop(columns=[by, pair, score])
        differ = [str(name) for name, values in alike.items() if values.nunique(dropna=False) > 1]
        why = f"; these rows differ in {', '.join(differ[:FEW])}: compare one value at a time" if differ else ""
        raise SpecError(f"{by} {arm} has several rows for {pair} {seed}{why}")
    table = frame.pivot(index=pair, columns=by, values=score)
    lacking = table[table.isna().any(axis=1)]
    if len(lacking) and not unpaired:
        seed, arm = lacking.index[0], lacking.columns[lacking.iloc[0].isna()][0]
        raise SpecError(
            f"{len(lacking)} of {len(table)} seeds are not in every arm; {pair} {seed} is missing for {arm}. "
            "--unpaired compares two arms by the seeds that both have"
        )
    return table


def compare(table: pd.DataFrame, point: float | None = None) -> pd.DataFrame:
    """One row for each two arms: `first`, `second`, `n` (pairs of seeds), both means, the `mean` difference with its
    95% t-interval `low` to `high`, `p` (two-sided), `p_holm` (corrected over all rows), and `seeds`, with which a
    paired t-test at 5% finds a difference of one `point` with 80% power (nan: more than 1,000). Where all differences
    are equal, `p` is that of sign flips, and `low`, `high` and `seeds` are nan. Two arms with fewer than three seeds in
    common have nan in all of these but `n`, and no part in the correction.

    `point` is a percentage point where None: 0.01 if every score lies between 0 and 1, else 1.
    Raises SpecError where no two arms have three seeds in common.
    """
    scores = table.to_numpy(float)
    fractions = bool(np.nanmin(scores) >= 0 and np.nanmax(scores) <= 1)
    step = point or (0.01 if fractions else 1.0)
    rows = []
    for first, second in combinations(table.columns, 2):
        both = table[[first, second]].dropna()
        test = paired(both[first], both[second])
        if test.n < MINIMUM_PAIRS:
            rows.append((first, second, test.n, *[math.nan] * 7))
            continue
        needed = seeds_needed(step, test.sd) if test.sd > 0 else math.nan  # without spread there is nothing to plan by
        levels = both.mean()
        rows.append(
            (first, second, test.n, levels[first], levels[second], test.mean, test.low, test.high, test.p, needed)
        )
    names = ["first", "second", "n", "level_first", "level_second", "mean", "low", "high", "p", "seeds"]
    found = pd.DataFrame(rows, columns=names).astype({"seeds": float})
    tested = found["p"].notna()
    if not tested.any():
        raise SpecError(
            f"no two arms have {MINIMUM_PAIRS} seeds in common, but {found['n'].max()} at most: fewer give no interval"
        )
    corrected = pd.Series(holm(list(found["p"][tested])), found.index[tested])
    return found.assign(p_holm=corrected, point=step)
