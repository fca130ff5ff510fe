"""Anybody's table of runs: which of its columns is what, and the runs of every arm, seeds x settings."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fpt.errors import DataError, SpecError, check_known, naming, unknown
from fpt.results.difference import Reading
from fpt.sweeps import selection
from fpt.tasks.tables import FEW, MISSING, few, read_table

GUESSED = {  # role -> names of columns, the likeliest first
    "by": ("arm", "method", "model", "algorithm", "condition", "config", "variant", "group"),
    "pair": ("seed", "run", "replicate", "repeat", "trial", "fold", "split"),
    "score": ("score", "test_accuracy", "accuracy", "acc", "test_acc", "f1", "auc", "metric", "value"),
}
MOST_ARMS = 20  # 190 pairs; more are a grid, not arms
MOST_GROUPS = 1000  # of `within`: more are examples, not tasks
MOST_LEFT_OUT = 1000  # seeds: a choice of more of them hangs on no single one, and a jackknife takes minutes
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
class Rules:
    """How two arms are compared.

    `lower_is_better`: of scores, and of what chooses unless `choose_lower` says otherwise. `unpaired`: seeds of two
    arms are no pairs. `test_examples`: how many examples stand for all that there could be, those of the test set that
    all seeds share or of the collection of which each seed tests a part; their noise is added as
    `fpt.results.contrast` adds it (a column of examples adds it paired over these). `test_share`: the share of the data
    on which each fold or split is tested, 0 where they share no data; the variance is corrected for what they share
    (Nadeau and Bengio 2003). `margin`: a difference that does not matter. `collapse`: a run so far behind the median of
    its own setting has collapsed, and sign flips take the t-test's place. `diverged`: what a run counts as whose score
    is missing or not finite. `point`: the difference to plan for, by default a percentage point, 0.01 if every score
    lies between 0 and 1, else 1. `whole`: the score of an arm that misses nothing, where scores are accuracies.
    `where`: values of columns, of which one must be a row's, else it is not read.
    """

    lower_is_better: bool = False
    choose_lower: bool = False
    unpaired: bool = False
    test_examples: int | None = None
    test_share: float | None = None
    margin: float | None = None
    collapse: float | None = None
    diverged: float | None = None
    point: float = 1.0
    whole: float = 1.0
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Runs:
    """The runs of an arm in a group ("" where there is one alone), seeds x settings (both by their places among all
    that there are, ascending).

    `scores`: nan where a run diverged and nothing says what it counts as. `validation`: by what a setting is chosen,
    the larger the better; nan where a run diverged. `collapsed`: the runs that did. `right`: the scores of the examples
    of each run, seeds x settings x examples. `seeds`: their names. `incomplete`: settings that are left out, since some
    seed has no run there, each with one such seed.
    """

    group: str
    name: str
    scores: pd.DataFrame
    validation: pd.DataFrame
    collapsed: pd.DataFrame
    right: "np.ndarray[Any, Any] | None"
    seeds: Sequence[str]
    incomplete: Mapping[int, str]

    @property
    def label(self) -> str:
        """The arm, with its group."""
        return f"{self.name} ({self.group})" if self.group else self.name

    @cached_property
    def choices(self) -> "pd.Series[float]":
        """By seed: the place of the setting that is best on the other seeds; nan where each diverged on one of them. A
        single setting is no choice, and stands whatever diverged there."""
        if len(self.scores.columns) == 1:
            return pd.Series(float(self.scores.columns[0]), self.scores.index)
        return selection.choices(self.validation)

    @cached_property
    def common(self) -> float:
        """The place of the setting that is best over all seeds; nan where each diverged on one."""
        if len(self.scores.columns) == 1:
            return float(self.scores.columns[0])
        best = selection.best_rate(self.validation)
        return math.nan if best is None else best

    @cached_property
    def tuned(self) -> Reading:
        """At each seed's choice. The score is nan where a seed has none, or its run there has none."""
        if self.scores.shape[1] == 1 or len(self.scores) > MOST_LEFT_OUT:
            return self._read(self.choices)
        return replace(self._read(self.choices), without=selection.tuned_without(self.validation, self.scores))

    def at(self, place: float) -> Reading:
        """At one setting for all seeds."""
        return self._read(pd.Series(place, self.scores.index))

    def _read(self, places: "pd.Series[float]") -> Reading:
        seeds, columns = np.arange(len(places)), self.scores.columns.get_indexer(pd.Index(places))
        scores = np.where(columns < 0, math.nan, self.scores.to_numpy(float)[seeds, columns])
        right = None if self.right is None else pd.DataFrame(self.right[seeds, columns], self.scores.index)
        collapsed = bool((self.collapsed.to_numpy()[seeds, columns] & (columns >= 0)).any())
        return Reading(pd.Series(scores, self.scores.index), right=right, collapsed=collapsed)


@dataclass(frozen=True)
class ResultsTable:
    """The arms of a table, in the order of their groups; and the `settings` of all, a row each, ascending, a column a
    hyperparameter."""

    columns: Columns
    arms: Sequence[Runs]
    settings: pd.DataFrame

    @property
    def pair(self) -> str:
        """What tells apart the runs of an arm."""
        return ", ".join(self.columns.pair)

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


def table_of(frame: pd.DataFrame, named: Columns, rules: Rules) -> ResultsTable:
    """The runs of a table whose rows are runs, or answers of runs where there is a column of examples.

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
    if named.example:
        _check_examples(codes, named)
    scores = _scores(frame, named, rules.diverged)
    chosen = _numbers(frame, named.choose) if named.choose else scores
    lost = ~np.isfinite(scores) | ~np.isfinite(chosen)
    counted = scores.where(np.isfinite(scores), np.nan if rules.diverged is None else rules.diverged)
    codes = codes.assign(score=counted, validation=(-chosen if rules.choose_lower else chosen).mask(lost))
    names = [str(number + 1) for number in of_pair] if pairs is None else _labels(pairs)
    of_groups, of_arms = _labels(groups), _labels(arms)
    found = [
        _runs(of_groups[rows["group"].iloc[0]], of_arms[rows["arm"].iloc[0]], rows, names, rules)
        for _, rows in codes.groupby(["group", "arm"])
    ]
    if none := [arm for arm in found if arm.scores.empty]:
        tune = f"no setting of {', '.join(named.tune)} was run with every {', '.join(named.pair)}"
        raise SpecError(f"{tune} of {none[0].label}")
    return ResultsTable(named, found, settings)


def _runs(group: str, name: str, rows: pd.DataFrame, names: Sequence[str], rules: Rules) -> Runs:
    """The runs of an arm, whose rows are runs or answers of runs: a run's score is the mean over its answers."""
    runs = rows.groupby(["pair", "setting"])[["score", "validation"]].mean(skipna=False)
    there = pd.Series(data=True, index=runs.index).unstack("setting", fill_value=False)
    whole = there.columns[there.all()]
    scores, validation = (runs[column].unstack("setting")[whole] for column in ("score", "validation"))
    behind = (scores.median() - scores) * (-1 if rules.lower_is_better else 1)
    seeds, right = [names[pair] for pair in scores.index], None
    if "example" in rows:
        answers = rows[rows["setting"].isin(whole)].pivot(index=["pair", "setting"], columns="example", values="score")
        right = answers.to_numpy(float).reshape(*scores.shape, -1)
    return Runs(
        group,
        name,
        scores,
        validation,
        behind > (math.inf if rules.collapse is None else rules.collapse),
        right,
        seeds,
        {int(place): seeds[int(there[place].argmin())] for place in there.columns.difference(whole)},
    )


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
    numbers, words = _parsed(frame[name])
    if not words.notna().any():
        _check_size(numbers, name)
        return _alike(numbers)
    if numbers.notna().any():
        first = [_first(each.notna()) for each in (words, numbers)]
        word, number = (f"{str(frame[name].iloc[row]).strip()} (row {row + 1})" for row in first)
        raise DataError(
            f"column {name} has a word and a number, {word} and {number}, which have no order. Write a number in every "
            "row, or a word in every row; leave the cell empty where an arm has none"
        )
    return words


def _parsed(column: "pd.Series[Any]") -> "tuple[pd.Series[float], pd.Series[str]]":
    """The numbers of a column, which may be decimals or text; and what in it is a word. Both miss what is missing, also
    where a text says so."""
    if pd.api.types.is_numeric_dtype(column):
        return pd.Series(column.to_numpy(float, na_value=math.nan), column.index), pd.Series(None, column.index, str)
    texts = column.astype(str).str.strip().where(column.notna())
    texts = texts.mask(texts.str.lower().isin(MISSING_WORDS))
    numbers = pd.to_numeric(texts, errors="coerce").astype(float)
    return numbers, texts.where(numbers.isna())


def _alike(numbers: "pd.Series[float]") -> "pd.Series[float]":
    known = np.unique(numbers.dropna().to_numpy(float))
    if not len(known):
        return numbers
    apart = np.diff(known) > selection.SAME_RATE * np.abs(known[1:])
    first = known[np.maximum.accumulate(np.where([True, *apart], np.arange(len(known)), 0))]
    return numbers.map(dict(zip(known, first, strict=True)))


def _scores(frame: pd.DataFrame, named: Columns, diverged: float | None) -> "pd.Series[float]":
    """The scores; one may be missing or infinite where a run is tuned, and so may have diverged."""
    scores = _numbers(frame, named.score)
    if diverged is None and (named.example or not named.tune):
        if scores.isna().any():
            raise _missing(_first(scores.isna()), named.score)
        _check_size(scores, named.score)
    return scores


def _numbers(frame: pd.DataFrame, name: str) -> "pd.Series[float]":
    """A column as numbers; missing and infinite ones stay so.

    Raises DataError, which names the first row, for words, and for a number that is too large.
    """
    numbers, words = _parsed(frame[name])
    if words.notna().any():
        row = _first(words.notna())
        raise DataError(
            f"column {name}: its scores must be numbers, with a decimal point and no other mark; "
            f"one is {repr(frame[name].iloc[row])[:60]} (row {row + 1})"
        )
    _check_size(numbers.where(np.isfinite(numbers)), name)
    return numbers


def _check_size(numbers: "pd.Series[float]", name: str) -> None:
    """DataError, which names the row, for a number that is infinite or too large."""
    if (large := numbers.abs() > LARGEST).any():
        row = _first(large)
        raise DataError(
            f"row {row + 1}: {name} must be finite, and lie between -{LARGEST:g} and {LARGEST:g}; it is "
            f"{numbers.iloc[row]:g}. Take the row out"
        )


def _check_names(frame: pd.DataFrame, named: Columns) -> None:
    """DataError for lists in the place of names, and for a row that lacks one."""
    names = [named.by, *named.pair, *named.within, *filter(None, [named.example])]
    for name in [*names, *named.tune]:
        objects = frame[name].dtype == object
        if objects and frame[name].map(lambda value: isinstance(value, list | dict | set | np.ndarray)).any():
            raise DataError(f"column {name} holds lists or mappings; needed is one name or number in each row")
    if (lacking := frame[names].isna()).any(axis=None):
        row = _first(lacking.any(axis=1))
        which = " and no ".join(name for name in names if lacking[name].iloc[row])
        raise _missing(row, which)


def _first(rows: "pd.Series[bool]") -> int:
    """The first row of which it is true."""
    return int(rows.to_numpy().argmax())


def _missing(row: int, what: str, though: str = "") -> DataError:
    return DataError(f"row {row + 1} has no {what} {MISSING}{though}; fill it, or take the row out")


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
        if (lacking & some).any():
            raise _missing(_first(lacking & some), str(name), f", though others of its {named.by} have one")


def _check_examples(codes: pd.DataFrame, named: Columns) -> None:
    """SpecError for runs of a group that do not all have an answer to each of its examples."""
    for _, rows in codes.groupby("group"):
        if len(rows) < rows["example"].nunique() * len(rows[["arm", "setting", "pair"]].drop_duplicates()):
            raise SpecError(f"--example {named.example}: every run needs the same examples, and some run lacks one")


def _check_once(frame: pd.DataFrame, named: Columns, codes: pd.DataFrame) -> None:
    """SpecError for a run, or an answer, that stands twice."""
    twice = codes.duplicated(keep=False)
    if not twice.any():
        return
    first = _first(twice)
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
