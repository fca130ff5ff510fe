"""Anybody's table of runs: which of its columns is what, and the runs of every arm, seeds x settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fpt.errors import DataError, SpecError, check_known, naming, unknown
from fpt.sweeps.selection import SAME_RATE
from fpt.tasks.tables import FEW, MISSING, few, read_table

GUESSED = {  # role -> names of columns, the likeliest first
    "by": ("arm", "method", "model", "algorithm", "condition", "config", "variant", "group"),
    "pair": ("seed", "run", "replicate", "repeat", "trial", "fold", "split"),
    "score": ("score", "test_accuracy", "accuracy", "acc", "test_acc", "f1", "auc", "metric", "value"),
}
MOST_ARMS = 20  # 190 pairs; more are a grid, not arms
MOST_GROUPS = 1000  # of `within`: more are examples, not tasks
LARGEST = 1e300  # beyond it the end of an interval is no number any more
NONE = "none"  # an arm's setting where its rows have no value, as that of a method without a learning rate
MISSING_WORDS = ("nan", "none", "")  # in a column of numbers they are missing, as they are in a CSV file


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold the arms (`by`), the seeds (`pair`), the `score`, the hyperparameters that are
    tuned (`tune`), the score by which they are chosen (`choose`), what is compared apart (`within`) and, where a row is
    an answer and no run, the `example`. Empty: there is none, or it is to be guessed."""

    by: str = ""
    pair: tuple[str, ...] = ()
    score: str = ""
    tune: tuple[str, ...] = ()
    choose: str = ""
    within: tuple[str, ...] = ()
    example: str = ""

    @property
    def named(self) -> list[str]:
        """All of them, each role's in turn."""
        given = (getattr(self, each.name) for each in fields(self))
        return [name for each in given for name in ((each,) if isinstance(each, str) else each) if name]


@dataclass(frozen=True)
class Runs:
    """The runs of an arm, seeds x settings (both by their places among all that there are, ascending).

    `scores`: nan where a run diverged and nothing says what it counts as. `validation`: by what a setting is chosen,
    the larger the better; nan where a run diverged. `seeds`: their names. `right`: the scores of the examples of each
    run, seeds x settings x examples. `incomplete`: settings that are left out, since some seed has no run there, each
    with one such seed.
    """

    scores: pd.DataFrame
    validation: pd.DataFrame
    seeds: Sequence[str]
    right: "np.ndarray[Any, Any] | None"
    incomplete: Mapping[int, str]


@dataclass(frozen=True)
class GroupedRuns:
    """The runs by group ("" where there is one alone) and arm; and the `settings` of all, a row each, ascending, a
    column a hyperparameter."""

    columns: Columns
    arms: Mapping[str, Mapping[str, Runs]]
    settings: pd.DataFrame

    def setting(self, place: float) -> str:
        """A setting as it is printed: 0.001, or where several hyperparameters are tuned "lr 0.001, rank 8"."""
        if np.isnan(place):
            return NONE
        shown = [value_text(value) for value in self.settings.iloc[int(place)]]
        named = (f"{name} {value}" for name, value in zip(self.settings.columns, shown, strict=True))
        return shown[0] if len(shown) == 1 else ", ".join(named)


def value_text(value: Any) -> str:
    """The value of a hyperparameter: numbers as short as they are, "none" for none."""
    if pd.isna(value):
        return NONE
    return f"{value:.10g}" if isinstance(value, float | np.floating) else str(value)


def read_results(path: Path) -> pd.DataFrame:
    """A table of results: CSV, TSV or parquet, by its ending.

    Raises DataError for a file that is missing, empty, or no such table.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    with naming(path):
        return read_table(path)


def columns(frame: pd.DataFrame, given: Columns, unpaired: bool = False) -> Columns:
    """The columns as given; those of arms, seeds and scores are guessed by their names where they are not.

    Raises SpecError for one that is not there, that stands in two roles, or that cannot be guessed; `unpaired` without
    `tune` needs no `pair`.
    """
    taken, guessed = set(given.named), dict[str, Any]()
    for role, names in GUESSED.items():
        if getattr(given, role):
            continue
        guess = _guess(frame, names, taken)
        if guess is None and not (unpaired and role == "pair" and not given.tune):
            raise SpecError(
                f"no column is named {', '.join(names)}: name one of {few(frame.columns.map(str))} by --{role}; "
                "if these are data, put a line of names before them"
            )
        guessed[role] = ((guess,) if guess else ()) if role == "pair" else guess
    found = replace(given, **guessed)
    for each in fields(found):
        value = getattr(found, each.name)
        for name in (value,) if isinstance(value, str) else value:
            if name:
                check_known("column", name, list(map(str, frame.columns)), f"--{each.name}")
    if len(set(found.named)) < len(found.named):
        raise SpecError(f"every role needs a column of its own; given: {', '.join(found.named)}")
    return found


def _guess(frame: pd.DataFrame, names: Iterable[str], taken: set[str]) -> str | None:
    """The column that bears one of these names, in any case; the very same name comes first."""
    free = [str(column) for column in frame.columns if str(column) not in taken]
    lower = {column.lower(): column for column in free} | {column: column for column in free}
    return next((lower[each] for each in names if each in lower), None)


def rows_where(frame: pd.DataFrame, where: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """The rows in which every named column has one of the values that are given for it, as text or as a number.

    Raises SpecError for a column or a value that is not there.
    """
    for name, wanted in where.items():
        check_known("column", name, list(map(str, frame.columns)), "--where")
        texts, numbers = frame[name].astype(str), pd.to_numeric(frame[name].astype(str), errors="coerce")
        keep = np.zeros(len(frame), bool)
        for value in wanted:
            number = pd.to_numeric(pd.Series([value]).astype(str), errors="coerce").iloc[0]
            hits = (texts == str(value)) | (numbers == number)
            if not hits.any():
                raise unknown(f"value of {name}", str(value), texts.unique()[:MOST_ARMS], "--where")
            keep |= hits.to_numpy()
        frame = frame[keep]
        if frame.empty:
            raise SpecError(f"--where {name}: no row is left")
    return frame


def table_of(frame: pd.DataFrame, named: Columns, lower: bool, diverged: float | None) -> GroupedRuns:
    """The runs of a table whose rows are runs, or answers of runs where there is a column of examples.

    `lower`: of what a setting is chosen by, the smaller is the better. `diverged`: the score that a run counts as whose
    own is missing or not finite; its setting is chosen by no other seed all the same.

    Raises DataError, which names the row, for scores that are no numbers, for cells that are missing, for a
    hyperparameter that is infinite or now a number and now a word, and where nothing is tuned for scores that are not
    finite; SpecError for too few or too many arms, for a run that stands twice, and for examples that a run lacks.
    """
    frame = frame.reset_index(drop=True)
    _check_names(frame, named)
    tuned = pd.DataFrame({name: _values(frame, name) for name in named.tune}, index=frame.index)
    place, settings = _coded(tuned)
    of_pair, pairs = _coded(frame[list(named.pair)]) if named.pair else (np.arange(len(frame)), None)
    of_arm, arms = _coded(frame[[named.by]])
    of_group, groups = _coded(frame[list(named.within)])
    _check_counts(named, arms, groups)
    codes = pd.DataFrame({"group": of_group, "arm": of_arm, "setting": place, "pair": of_pair})
    if named.example:
        codes["example"] = _coded(frame[[named.example]])[0]
    _check_once(frame, named, codes)
    _check_settings(tuned, codes, named)
    scores = _scores(frame, named.score, bool(named.tune) and not named.example, diverged)
    chosen = _numbers(frame, named.choose) if named.choose else scores
    _check_size(chosen, named.choose or named.score)
    lost = ~np.isfinite(scores) | ~np.isfinite(chosen)
    counted = scores.where(np.isfinite(scores), np.nan if diverged is None else diverged)
    codes = codes.assign(score=counted, validation=(-chosen if lower else chosen).mask(lost))
    names = None if pairs is None else _labels(pairs)
    of_groups, of_arms = _labels(groups), _labels(arms)
    found: dict[str, dict[str, Runs]] = {}
    for _, rows in codes.groupby(["group", "arm"], sort=True):
        group, arm = of_groups[rows["group"].iloc[0]], of_arms[rows["arm"].iloc[0]]
        found.setdefault(group, {})[arm] = _runs(rows, names, named)
    return GroupedRuns(named, found, settings)


def _runs(rows: pd.DataFrame, names: list[str] | None, named: Columns) -> Runs:
    right = None
    if named.example:
        rows, right = _by_run(rows, named)
    pairs, row = np.unique(rows["pair"], return_inverse=True)
    places, column = np.unique(rows["setting"], return_inverse=True)
    scores, validation, there = (np.full((len(pairs), len(places)), np.nan) for _ in range(3))
    scores[row, column], validation[row, column], there[row, column] = rows["score"], rows["validation"], 1
    seeds = [names[pair] if names else f"{pair + 1}" for pair in pairs]
    lacking = np.isnan(there)
    whole = ~lacking.any(axis=0)
    incomplete = {int(places[place]): seeds[lacking[:, place].argmax()] for place in np.flatnonzero(~whole)}
    if not whole.any():
        raise SpecError(f"no setting of {', '.join(named.tune)} was run with every {', '.join(named.pair)} of an arm")
    tables = [pd.DataFrame(plane[:, whole], pairs, places[whole]) for plane in (scores, validation)]
    return Runs(tables[0], tables[1], seeds, None if right is None else right[:, whole], incomplete)


def _by_run(rows: pd.DataFrame, named: Columns) -> "tuple[pd.DataFrame, np.ndarray[Any, Any]]":
    """Answers as runs: a row a run with the means over its examples; and the answers, seeds x settings x examples."""
    wide = rows.pivot(index=["pair", "setting"], columns="example", values="score")
    if wide.isna().any(axis=None):
        raise SpecError(f"--example {named.example}: every run needs the same examples, and some run lacks one")
    cube = wide.unstack("setting").to_numpy(float).reshape(wide.index.get_level_values(0).nunique(), wide.shape[1], -1)
    means = rows.groupby(["pair", "setting"], as_index=False)[["score", "validation"]].mean(skipna=False)
    return means, cube.transpose(0, 2, 1)


def _labels(levels: pd.DataFrame) -> list[str]:
    """A name for each of the values that columns have together. Raises DataError where two have the same."""
    labels = [", ".join(map(str, row)) for row in levels.itertuples(index=False)]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise DataError(f"{', '.join(map(str, levels.columns))}: several values are written {twice}; rename them")
    return labels


def _coded(frame: pd.DataFrame) -> "tuple[np.ndarray[Any, Any], pd.DataFrame]":
    """For each row the place of its values among all that there are, ascending; and these, a row each."""
    if frame.shape[1] == 0:
        return np.zeros(len(frame), int), pd.DataFrame(index=[0])
    codes = frame.groupby(list(frame.columns), sort=True, observed=True, dropna=False).ngroup().to_numpy()
    first = pd.Series(codes).drop_duplicates().sort_values()
    return codes, frame.iloc[first.index].reset_index(drop=True)


def _values(frame: pd.DataFrame, name: str) -> "pd.Series[Any]":
    """The values of a hyperparameter, words or numbers. Numbers are told apart by what they are and not by how they are
    written, and those that are the same up to rounding are one."""
    texts = frame[name].astype(str).str.strip().where(frame[name].notna())
    texts = texts.mask(texts.str.lower().isin(MISSING_WORDS))
    numbers = pd.to_numeric(texts, errors="coerce").astype(float)
    words, known = texts.notna() & numbers.isna(), numbers.notna()
    if not words.any():
        return _alike(_checked_rates(numbers, name))
    if known.any():
        rows = [int(each.to_numpy().argmax()) for each in (words, known)]
        word, number = (f"{texts.iloc[row]} (row {row + 1})" for row in rows)
        raise DataError(
            f"column {name} has a word and a number, {word} and {number}, which have no order. Write a number in every "
            "row, or a word in every row; leave the cell empty where an arm has none"
        )
    return texts


def _checked_rates(numbers: "pd.Series[float]", name: str) -> "pd.Series[float]":
    """The numbers. Raises DataError, with the row, for one that is infinite or too large."""
    wrong = numbers.abs().gt(LARGEST).to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"row {row + 1}: {name} must be finite; it is {numbers.iloc[row]:g}. Take the row out")
    return numbers


def _alike(numbers: "pd.Series[float]") -> "pd.Series[float]":
    known = np.unique(numbers.dropna().to_numpy(float))
    if not len(known):
        return numbers
    apart = np.diff(known) > SAME_RATE * np.abs(known[1:])
    first = known[np.maximum.accumulate(np.where([True, *apart], np.arange(len(known)), 0))]
    return numbers.map(dict(zip(known, first, strict=True)))


def _scores(frame: pd.DataFrame, name: str, may_diverge: bool, diverged: float | None) -> "pd.Series[float]":
    scores = _numbers(frame, name)
    bad = ~np.isfinite(scores.to_numpy(float))
    if bad.any() and diverged is None and not may_diverge:
        row = int(bad.argmax())
        if np.isnan(scores.iloc[row]):
            raise DataError(f"row {row + 1} has no {name} {MISSING}; fill it, or take the row out")
        raise DataError(f"row {row + 1}: {name} must be finite; it is {scores.iloc[row]:g}. Take the row out")
    _check_size(scores, name)
    return scores


def _numbers(frame: pd.DataFrame, score: str) -> "pd.Series[float]":
    """A column as numbers, also where these are decimals or text; missing ones stay so.

    Raises DataError, which names the first row, for anything else.
    """
    scores = frame[score]
    numeric = pd.api.types.is_numeric_dtype(scores)
    numbers = scores if numeric else pd.to_numeric(scores.astype(str), errors="coerce").where(scores.notna())
    words = scores.notna() & numbers.isna()
    if not numeric and words.any():  # a word for what is not a number is missing, as it is in a CSV file
        words &= ~scores.astype(str).str.lower().isin(MISSING_WORDS)
    if (wrong := words.to_numpy()).any():
        row = int(wrong.argmax())
        raise DataError(
            f"column {score}: its scores must be numbers, with a decimal point and no other mark; "
            f"one is {repr(scores.iloc[row])[:60]} (row {row + 1})"
        )
    return numbers.astype("Float64").astype(float) if numeric and numbers.isna().any() else numbers.astype(float)


def _check_size(scores: "pd.Series[float]", name: str) -> None:
    sizes = np.abs(scores.to_numpy(float))
    large = np.isfinite(sizes) & (sizes > LARGEST)
    if large.any():
        row = int(large.argmax())
        raise DataError(
            f"row {row + 1}: {name} must lie between -{LARGEST:g} and {LARGEST:g}; it is {scores.iloc[row]:g}. Take "
            "the row out"
        )


def _check_names(frame: pd.DataFrame, named: Columns) -> None:
    """DataError for lists in the place of names, and for a row that lacks one."""
    names = [named.by, *named.pair, *named.within, *filter(None, [named.example])]
    for name in [*names, *named.tune]:
        objects = frame[name].dtype == object
        if objects and frame[name].map(lambda value: isinstance(value, list | dict | set | np.ndarray)).any():
            raise DataError(f"column {name} holds lists or mappings; needed is one name or number in each row")
    if (lacking := frame[names].isna()).any(axis=None):
        row = int(lacking.any(axis=1).to_numpy().argmax())
        which = " and no ".join(name for name in names if lacking[name].iloc[row])
        raise DataError(f"row {row + 1} has no {which} {MISSING}; fill it, or take the row out")


def _check_counts(named: Columns, arms: pd.DataFrame, groups: pd.DataFrame) -> None:
    if not 2 <= len(arms) <= MOST_ARMS:
        raise SpecError(f"column {named.by} has {len(arms)} different values; arms to compare are 2 to {MOST_ARMS}")
    if len(groups) > MOST_GROUPS:
        raise SpecError(
            f"--within {', '.join(named.within)}: there are {len(groups):,} different values; each is compared apart, "
            f"and at most {MOST_GROUPS:,} can be. If these are examples, with an answer a row, give --example instead"
        )


def _check_settings(tuned: pd.DataFrame, codes: pd.DataFrame, named: Columns) -> None:
    """DataError for a row without a value of a hyperparameter of which other rows of its arm have one."""
    for name in tuned:
        lacking = tuned[name].isna()
        some = lacking.groupby([codes["group"], codes["arm"]]).transform("nunique") > 1
        if (wrong := (lacking & some).to_numpy()).any():
            raise DataError(
                f"row {int(wrong.argmax()) + 1} has no {name} {MISSING}, though others of its {named.by} have one; "
                "fill it, or take the row out"
            )


def _check_once(frame: pd.DataFrame, named: Columns, codes: pd.DataFrame) -> None:
    """SpecError for a run, or an answer, that stands twice."""
    twice = codes.duplicated(keep=False).to_numpy()
    if not twice.any():
        return
    first = int(twice.argmax())
    alike = frame[(codes == codes.iloc[first]).all(axis=1).to_numpy()]
    keys = [name for name in named.named if name not in (named.score, named.choose)]
    shown = {str(name): values.map(repr) for name, values in alike.drop(columns=named.named).items()}  # lists, too
    differ = [name for name, values in shown.items() if values.nunique() > 1]
    what = ", ".join(f"{name} {value_text(frame[name].iloc[first])}" for name in keys)
    why = "; take out all rows of it but one"
    if differ:
        # a column of few values is more likely to say what was run than one of many, which says what came out
        differ.sort(key=lambda name: len(set(frame[name].map(repr))))
        why = f"; these rows differ in {', '.join(differ[:FEW])}: {_remedies(named, differ[0])}"
    raise SpecError(f"{int(twice.sum()):,} rows are not alone in the table: {what} has several{why}")


def _remedies(named: Columns, name: str) -> str:
    """What a column can be that tells apart the rows of a run; an option is given anew for each of its columns."""
    both = {
        role: " ".join(f"--{role} {each}" for each in (*getattr(named, role), name))
        for role in ("tune", "within", "pair")
    }
    found = [f"{both['tune']} gives every arm its own", f"{both['within']} compares each apart",
             f"{both['pair']} makes each a pair of its own"]  # fmt: skip
    if not named.example:
        found.append(f"--example {name} makes rows the answers of a run")
    return ", ".join([*found, f"--where {name}=VALUE takes one"])
