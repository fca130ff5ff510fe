"""Contrasts for anybody's table of results: arms, seeds and scores, as `fpt compare` prints them."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from fpt.errors import DataError, SpecError, unknown
from fpt.results.contrasts import interval_of
from fpt.results.stats import MINIMUM_PAIRS, holm, paired, sampling_noise, seeds_needed, welch
from fpt.tasks.tables import FEW, MISSING, few, read_table

GUESSED = {  # role -> names of columns, the likeliest first
    "by": ("arm", "method", "model", "algorithm", "condition", "config", "variant", "group"),
    "pair": ("seed", "run", "replicate", "repeat", "trial", "fold", "split"),
    "score": ("score", "test_accuracy", "accuracy", "acc", "test_acc", "f1", "auc", "metric", "value"),
}
PARTS = re.compile(r"fold|split|(^|_)cv", re.IGNORECASE)  # names of columns whose values are parts of one collection
MOST_ARMS = 20  # 190 pairs; more are a grid, not arms
LARGEST = 1e300  # beyond it the end of an interval is no number any more
NAMES = ("first", "second", "n", "n_first", "n_second")
NUMBERS = ("level_first", "level_second", "mean", "low", "high", "p", "seeds")
LEAST_POWER = -900  # of 2, by which scores are scaled: its inverse, and the square of what it leaves, are numbers


def read_results(path: Path) -> pd.DataFrame:
    """A table of results: CSV, TSV or parquet, by its ending.

    Raises DataError for a file that is missing, empty, or no such table.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    return read_table(path)


def columns(frame: pd.DataFrame, given: Mapping[str, str | None], unpaired: bool = False) -> dict[str, str]:
    """The columns of arms (`by`), of seeds (`pair`) and of scores (`score`): as given, else guessed by their names.

    Raises SpecError for one that is not there, or that cannot be guessed; `unpaired` needs no `pair`, "" then.
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
        if name is None and not (unpaired and role == "pair"):
            raise SpecError(
                f"no column is named {', '.join(names)}: name one of {few(frame.columns.map(str))} by --{role}; "
                "if these are data, put a line of names before them"
            )
        found[role] = name or ""
    if len(set(found.values())) < len(found):
        raise SpecError(f"arms, seeds and scores need three different columns; given: {', '.join(found.values())}")
    return found


def _numbers(frame: pd.DataFrame, score: str) -> "pd.Series[float]":
    """A column as numbers, also where these are decimals or text; missing ones stay so.

    Raises DataError, which names the first row, for anything else.
    """
    scores = frame[score]
    numeric = pd.api.types.is_numeric_dtype(scores)
    numbers = scores if numeric else pd.to_numeric(scores.astype(str), errors="coerce").where(scores.notna())
    if (wrong := (scores.notna() & numbers.isna()).to_numpy()).any():
        row = int(wrong.argmax())
        raise DataError(
            f"column {score}: its scores must be numbers, with a decimal point and no other mark; "
            f"one is {repr(scores.iloc[row])[:60]} (row {row + 1})"
        )
    return numbers


def scores_of(frame: pd.DataFrame, by: str, pair: str, score: str, unpaired: bool = False) -> pd.DataFrame:
    """Scores, seeds x arms. `unpaired`: seeds may be missing for an arm, nan then, and `pair` may be "": each row is a
    run.

    Raises SpecError where a seed stands twice for an arm, or is missing for one; DataError for scores that are no
    numbers.
    """
    named = [name for name in (by, pair, score) if name]
    for name in named[:-1]:
        if frame[name].map(lambda value: isinstance(value, list | dict | np.ndarray)).any():
            raise DataError(f"column {name} holds lists or mappings; needed is one name or number in each row")
    numbers = _numbers(frame, score)
    if (lacking := frame[named].isna()).any(axis=None):
        row = int(lacking.any(axis=1).to_numpy().argmax())
        which = " and no ".join(name for name in named if lacking[name].iloc[row])
        raise DataError(f"row {row + 1} has no {which} {MISSING}; fill it, or take the row out")
    frame = frame.assign(**{score: numbers.astype(float)})
    if (endless := ~(np.abs(frame[score].to_numpy()) <= LARGEST)).any():
        row = int(endless.argmax())
        raise DataError(
            f"row {row + 1}: {score} must be finite, between -{LARGEST:g} and {LARGEST:g}; it is "
            f"{frame[score].iloc[row]:g}. Take the row out"
        )
    if pd.api.types.is_bool_dtype(frame[by]):
        frame = frame.astype({by: str})
    arms = frame[by].nunique()
    if not 2 <= arms <= MOST_ARMS:
        raise SpecError(f"column {by} has {arms} different values; arms to compare are 2 to {MOST_ARMS}")
    if not pair:
        return frame[[by, score]].reset_index(drop=True).pivot(columns=by, values=score).rename_axis(index=None)
    _check_once(frame, by, pair, score)
    table = frame.pivot(index=pair, columns=by, values=score)
    lacking = table[table.isna().any(axis=1)]
    if len(lacking) and not unpaired:
        seed, arm = lacking.index[0], lacking.columns[lacking.iloc[0].isna()][0]
        raise SpecError(
            f"{len(lacking)} of {len(table)} seeds are not in every arm; {pair} {seed} is missing for {arm}. "
            "Take them out of every arm; or --unpaired compares all runs of each arm, by Welch's t-test"
        )
    return table


def _check_once(frame: pd.DataFrame, by: str, pair: str, score: str) -> None:
    """SpecError for a seed that stands twice for an arm."""
    twice = frame[frame.duplicated([by, pair], keep=False)]
    if len(twice):
        arm, seed = twice[[by, pair]].iloc[0]
        alike = twice[(twice[by] == arm) & (twice[pair] == seed)].drop(columns=[by, pair, score])
        shown = {str(name): values.map(repr) for name, values in alike.items()}  # lists cannot be counted
        differ = [name for name, values in shown.items() if values.nunique() > 1]
        why = f"; these rows differ in {', '.join(differ[:FEW])}: compare one value at a time" if differ else ""
        raise SpecError(f"{by} {arm} has several rows for {pair} {seed}{why}")


def compare(
    table: pd.DataFrame,
    point: float | None = None,
    *,
    unpaired: bool = False,
    test_examples: int | None = None,
    test_share: float | None = None,
) -> pd.DataFrame:
    """One row for each two arms: `first`, `second`, `n` (pairs of seeds; unpaired, the runs of the smaller arm), both
    means, the `mean` difference with its 95% t-interval `low` to `high`, `p` (two-sided), `p_holm` (corrected over all
    rows), and `seeds`, with which a paired t-test at 5% finds a difference of one `point` with 80% power (nan: more
    than 1,000, or no number of them). Where all differences are equal, `p` is that of sign flips, and `low`, `high` and
    `seeds` are nan unless the noise of a test set is added. Two arms with fewer than three seeds have nan in all of
    these but `n`, and no part in the correction.

    `unpaired`: runs of two arms are no pairs. The test is Welch's then, and `seeds` are those of each arm, counted with
    the fewest degrees of freedom that it can have: the power is 80% or a little more. `n_first`, `n_second`: the runs.
    `test_examples`: how many examples stand for all that there could be, those of the test set that all seeds share or
    of the collection of which each seed tests a part; their noise is added as `fpt.results.contrast` adds it.
    `test_share`: the share of the data on which each fold or split is tested, 0 where they share no data; the variance
    is corrected for what they share (Nadeau and Bengio 2003).

    `point` is a percentage point where None: 0.01 if every score lies between 0 and 1, else 1.
    Raises SpecError where no two arms have three seeds, for folds without `test_share`, and for `test_examples` where
    scores are no accuracies.
    """
    _check_parts(str(table.index.name), unpaired, test_examples, test_share)
    scores = table.to_numpy(float)
    fractions = bool(np.nanmin(scores) >= 0 and np.nanmax(scores) <= 1)
    whole = 1.0 if fractions else 100.0
    if test_examples and (wrong := scores[(scores < 0) | (scores > whole)]).size:
        raise SpecError(f"--test-examples is for accuracies, from 0 to 1 or in percent; a score is {wrong[0]:g}")
    step = point or whole / 100
    noise = partial(_noise, test_examples=test_examples, whole=whole)
    rows = [_row(table[list(two)], step, noise, unpaired, test_share) for two in combinations(table.columns, 2)]
    found = pd.DataFrame(rows, columns=[*NAMES, *NUMBERS])
    tested = found["p"].notna()
    if not tested.any():
        raise SpecError(
            f"no two arms have {MINIMUM_PAIRS} seeds, but {found['n'].max()} at most: too few for intervals"
        )
    corrected = pd.Series(holm(list(found["p"][tested])), found.index[tested])
    test = "Welch" if unpaired else "paired"
    return found.assign(p_holm=corrected, point=step, test=test, test_examples=test_examples, test_share=test_share)


def _check_parts(pair: str, unpaired: bool, test_examples: int | None, test_share: float | None) -> None:
    """SpecError for options that exclude each other, and for folds of which nothing is known."""
    if test_share is None:
        if PARTS.search(pair):
            raise SpecError(
                f"--pair {pair}: folds and splits share data for training, which makes a t-interval too short (Nadeau "
                "and Bengio 2003).\nGive --test-share, the share of the data that each is tested on (0.1 of ten folds; "
                "0: they share none), or another --pair"
            )
        return
    if not 0 <= test_share < 1:
        raise SpecError(f"--test-share {test_share:g}: must be a share of the data, from 0 to less than 1")
    for name, given in (("--unpaired", unpaired), ("--test-examples", test_examples)):
        if given:
            raise SpecError(f"--test-share {test_share:g} is for pairs of folds or splits: leave out {name}")


def _noise(levels: Iterable[float], unit: float, test_examples: int | None, whole: float) -> float:
    """What a test set adds to the variance of a difference of arms, in units squared. `whole`: the score of an arm that
    misses nothing."""
    if not test_examples:
        return 0.0
    shares = (level * unit / whole for level in levels)
    return sum(sampling_noise(share, test_examples) * (whole / unit) * (whole / unit) for share in shares)


def _row(
    arms: pd.DataFrame, step: float, noise_of: Callable[..., float], unpaired: bool, test_share: float | None
) -> list[object]:
    """A row of `compare`, without Holm's correction.

    Scores are scaled by a power of 2, which rounds nothing, so that the squares of any are numbers.
    """
    kept = arms if unpaired else arms.dropna()
    n = [int(count) for count in kept.count()]
    row = [*arms.columns, min(n), *n]
    if min(n) < MINIMUM_PAIRS:
        return row + [math.nan] * len(NUMBERS)
    unit = 2.0 ** max(math.frexp(np.nanmax(kept.abs().to_numpy(float)))[1], LEAST_POWER)
    first, second = ((kept[name] / unit).dropna() for name in arms)
    levels = [float(first.mean()), float(second.mean())]
    noise = noise_of(levels, unit)
    if unpaired:
        mean, sd, low, high, p = welch(first, second, noise)
    else:
        if test_share:
            noise = test_share / (1 - test_share) * paired(first, second).sd ** 2
        test = paired(first, second, noise=noise)
        mean, sd, p = test.mean, test.sd, test.p
        low, high = interval_of(test) if noise else (test.low, test.high)
    wanted = min(step / unit, 16.0)  # more than four times any spread of scaled scores: three seeds find it
    needed = seeds_needed(wanted, sd, noise) if sd > 0 or noise else None  # without spread there is nothing to plan by
    return row + [value * unit for value in (*levels, mean, low, high)] + [p, math.nan if needed is None else needed]
