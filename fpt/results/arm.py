"""Arms: finished sweeps under their names, read from records alone.

A record (result.json, parquet) says what happened. What it does not say, since that depends on the rest of its study
and on papers, stands in two tables beside the records, runs/arms.csv and runs/rows.csv, which fpt/results/mapping.py
writes. So a number is read without any study, paper, task or model. How runs become values by seed is here and nowhere
else: what "tuned" means, at which budget, which runs collapsed, and what a fixed test set adds to the noise.
"""

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, cast

import numpy as np
import pandas as pd

from fpt.errors import DataError, SpecError
from fpt.files import State, state_of
from fpt.results.estimate import Estimate
from fpt.results.stats import mean_of, sampling_noise
from fpt.sweeps import selection
from fpt.sweeps.record import PUBLISHED, RESULT, read_record, read_table, recipe_of
from fpt.training.recipe import ANSWERS, ATTENTION, WINDOWS, Recipe

if TYPE_CHECKING:
    from fpt.sweeps.spec import SweepSpec

ARMS, ROWS = "arms.csv", "rows.csv"  # in runs/
NAMED = ("study", "sweep", "task", "name", "letters", "pair", "layers", "classes", "collection", "threshold")
LISTED = (*NAMED, "record")  # record: the SHA-256 of its result.json, which itself holds those of the tables
SERVED = ("study", "sweep", "table", "row", "stands_for", "scale")
WHOLE_NUMBERS = ("layers", "classes", "collection")
Origin = Literal["published", "own"]
TableName = Literal["runs", "attention", "answers"]
TUNED = "tuned"  # each seed at the rate that is best on the other seeds
COLLAPSE = 0.3  # a run so far below the median of its own rate, at the same budget, has collapsed
T = TypeVar("T")
P = ParamSpec("P")


def remembered(read: "Callable[Concatenate[Arm, P], T]") -> "Callable[Concatenate[Arm, P], T]":
    """What reads an arm is called once for the same arguments: verdicts ask for the same many times. Of a table, a
    copy: who writes into it changes nobody else's."""

    @wraps(read)
    def known(arm: "Arm", /, *args: P.args, **named: P.kwargs) -> T:
        key = (read, arm.of, args, *named.items())
        if key not in arm.memory:
            arm.memory[key] = read(arm, *args, **named)
        found = arm.memory[key]
        if isinstance(found, pd.DataFrame | pd.Series):
            found = found.copy(deep=False)  # pandas copies what is written to
        return cast(T, found)

    return known


@dataclass(frozen=True, repr=False, eq=False)
class Arm:
    """A finished sweep under its name: its record, and its tables, read when they are first asked for.

    Up to `threshold` the fields are those of its line in runs/arms.csv. `of`: what its values are, "accuracy" on test
    data or "gap", training minus test accuracy. Budgets are gradient steps, one of `budgets`; None is the last one.
    `at` is TUNED or a rate. What is derived from the tables is remembered: nobody writes into what an arm returns.
    """

    study: str
    sweep: str  # the name of its folder
    task: str
    name: str  # which no other sweep of the study on this task has: FR (layers 1)
    letters: str  # of the arm alone: FR
    pair: str  # that it is counted in: tiny-lm/digits
    layers: int
    classes: int | None  # of the task; None: the record names them, or nobody does
    collection: int | None  # examples of which every seed tests another part; None: the record names them, or none
    threshold: float | None  # accuracy that counts as converged
    folder: Path
    result: dict[str, Any]
    origin: Origin = "published"
    of: str = "accuracy"
    memory: dict[tuple[Any, ...], Any] = field(default_factory=dict)  # of what is `remembered`

    def __repr__(self) -> str:
        grid = f"{len(self.rates)} rates, {len(self.fields['seeds'])} seeds, {self.steps:,} steps"
        return f"Arm({self.name} on {self.task}, {self.study or self.folder}: {grid}, {self.origin})"

    @property
    def fields(self) -> dict[str, Any]:
        """Of the sweep, as the record has them."""
        found: dict[str, Any] = self.result["spec"]
        return found

    @cached_property
    def recipe(self) -> Recipe:
        return recipe_of(self.result)

    @cached_property
    def spec(self) -> "SweepSpec":
        """What would be trained again, checked anew against the tasks and models that there are. Raises SpecError."""
        from fpt.sweeps.spec import FIELDS, resolve

        plain = {name: value for name, value in self.fields.items() if name in FIELDS and name != "arm"}
        return resolve(plain | {"threshold": self.threshold}, str(self.folder / RESULT))

    @property
    def variant(self) -> str:
        return str(self.fields["variant"])

    @property
    def steps(self) -> int:
        return self.recipe.steps

    @property
    def budgets(self) -> list[int]:
        """The budgets that are reported, in steps, ascending."""
        return self.recipe.budgets()

    @property
    def rates(self) -> list[float]:
        """The grid as it was trained."""
        return sorted(map(float, self.result["grid"]))

    @cached_property
    def runs(self) -> pd.DataFrame:
        return self._table("runs")

    @cached_property
    def curves(self) -> pd.DataFrame:
        return self._table("curves")

    @cached_property
    def attention(self) -> pd.DataFrame:
        """No rows where the sweep did not measure it."""
        return self._measured(ATTENTION)

    @cached_property
    def windows(self) -> pd.DataFrame:
        """The loss of every window that was evaluated at the end; no rows where the sweep did not measure it."""
        return self._measured(WINDOWS)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The class that was predicted for every example at the end; no rows where the sweep did not measure it."""
        return self._measured(ANSWERS)

    def _measured(self, name: str) -> pd.DataFrame:
        return self._table(name) if name in self.fields["measures"] else pd.DataFrame()

    def _table(self, name: str) -> pd.DataFrame:
        return read_table(self.folder, name)

    @property
    def seeds(self) -> int:
        return int(self.runs["seed"].nunique())

    @property
    def guessing(self) -> float:
        """The accuracy of guessing, which a run counts as that was never finite; nan for the reader's own data where an
        earlier version did not record the number of classes."""
        classes = self.result["test"].get("classes") or self.classes
        return 1 / classes if classes else math.nan

    @property
    def sampled_from(self) -> float:
        """How many examples stand for all that there could be: those of a test set that all seeds share, or of the
        collection of which each seed tests a part. nan where every seed tests examples made for it.

        Of the reader's own data an earlier version recorded the part alone, which is the cautious reading.
        """
        test = self.result["test"]
        if not test["drawn_by_seed"]:
            return float(test["size"])
        if ":" in self.task:
            return float(test.get("collection") or test["size"])
        return float(self.collection or math.nan)

    @property
    def commit(self) -> str:
        """Of the code that trained it, and whether that had changes; empty where it ran outside a checkout."""
        git = self.result["git"]
        return "" if git is None else git["commit"][:8] + " + changes" * git["dirty"]

    @property
    def at_edge(self) -> bool:
        """Whether a tuned rate of the last budget is an end of the grid: the accuracy is a lower bound."""
        return bool(self.ends())

    @remembered
    def validation(self, step: int | None = None) -> pd.DataFrame:
        """The validation accuracy of what is reported at a step [the last], seeds x rates: the best until then, or the
        last; nan if a run was not finite by then."""
        if step in (None, self.steps):
            return selection.by_seed(self.runs)
        steps, values = self._so_far()
        early, runs = np.flatnonzero(steps <= step), self._diverged
        best = values[:, :, early[-1]] if len(early) else math.nan
        return pd.DataFrame(np.where(runs <= step, math.nan, best), runs.index, runs.columns)

    @remembered
    def choices(self, step: int | None = None) -> "pd.Series[float]":
        """By seed: the tuned rate of a run of so many steps, the best on the other seeds; nan where there is none
        (fpt.sweeps.selection.choices)."""
        return selection.choices(self.validation(step))

    def best_rate(self, budget: int | None = None) -> float | None:
        """The rate with the best mean validation accuracy over all seeds; None where some run diverged at every
        rate."""
        return selection.best_rate(self.validation(budget))

    def ends(self, budget: int | None = None) -> set[str]:
        """The ends of the grid, "low" and "high", that some seed's choice at this budget is. A single rate is both: a
        better one may lie on either side."""
        both = {"low", "high"} if len(self.rates) == 1 else set[str]()
        return both | selection.ends(self.choices(budget), self.validation(budget))

    @remembered
    def plane(self, budget: int | None = None, column: str = "") -> pd.DataFrame:
        """What `values` are of at a budget [the last], seeds x rates; or a column of the runs, nan where none was
        finite.

        Of accuracies, a run that was never finite counts as chance. Gaps are those of the last step; before the last
        budget those of the parameters that are best by then. Raises SpecError for a budget that is not reported.
        """
        budget = self.steps if budget is None else budget
        if budget not in self.budgets:
            raise SpecError(f"budget {budget}: {self.folder / RESULT} is reported at {self.budgets} steps")
        if column:
            return self._reported(budget, column)
        if self.of == "gap":
            return self._accuracy("train", budget) - self._accuracy("test", budget)
        return self._reported(budget, "test_accuracy").fillna(self.guessing)

    def _accuracy(self, part: Literal["train", "test"], budget: int | None) -> pd.DataFrame:
        """That of which a gap is made: of the parameters of the last step, where the budget is the last."""
        return self.plane(budget, f"{part}_accuracy" + "_last" * (budget in (None, self.steps)))

    @remembered
    def values(self, at: str | float = TUNED, budget: int | None = None) -> "pd.Series[float]":
        """By seed: what the arm is read for, `of`.

        Seeds without a run at this rate are left out. Raises SpecError for a budget that is not reported.
        """
        return picked(self.plane(budget), self._rates(at, budget))

    def chooses(self, at: str | float) -> bool:
        """Whether what it is read at hangs on a choice of its seeds, so that each is also left out of it."""
        return at == TUNED

    @remembered
    def without(self, at: str | float = TUNED, budget: int | None = None) -> pd.DataFrame:
        """What `values` would be without one seed, whose runs then take part in no choice: the seed that is left out x
        the seeds, nan for itself."""
        if at == TUNED:
            return selection.tuned_without(self.validation(budget), self.plane(budget))
        values = self.values(at, budget)
        return pd.DataFrame({seed: values.drop(seed) for seed in values.index}, index=values.index).T

    @remembered
    def at(self, at: str | float = TUNED, table: TableName = "runs") -> pd.DataFrame:
        """The rows of a table of the runs to which `values` belong; of the runs themselves, by seed."""
        frame: pd.DataFrame = getattr(self, table)
        rows = frame[at_own(frame, self._rates(at, None))]
        return rows.set_index("seed") if table == "runs" else rows

    def validated(self, at: str | float = TUNED) -> pd.DataFrame:
        """The best validation accuracy so far, evaluation steps x seeds, each step at its own rates."""
        steps = self.recipe.evaluation_steps()
        found = {step: picked(self.validation(step), self._rates(at, step)) for step in steps}
        return pd.DataFrame(found).T.rename_axis("step")

    def diverged(self, at: str | float = TUNED) -> int:
        """How many of the runs at this rate diverged."""
        return int(picked(self._diverged.notna(), self._rates(at, None)).sum())

    @remembered
    def collapsed(self, at: str | float = TUNED, budget: int | None = None) -> "pd.Series[bool]":
        """By seed: whether the run to which its value belongs lies 30 points below the median of its own rate; a gap
        does not collapse."""
        return picked(self._fallen(budget), self._rates(at, budget)).astype(bool)

    @remembered
    def _fallen(self, budget: int | None) -> pd.DataFrame:
        plane, least = self.plane(budget), math.inf if self.of == "gap" else COLLAPSE
        return plane < plane.median() - least

    def test_noise(self, at: str | float = TUNED, budget: int | None = None) -> float:
        """`sampling_noise` in the mean of `values`: of a test set that seeds share, or a collection that they split."""
        values = self.values(at, budget)
        if self.of == "gap":
            values = picked(self._accuracy("test", budget), self._rates(at, budget))
        return sampling_noise(float(values.mean()), self.sampled_from)

    @remembered
    def right(self, at: str | float = TUNED, budget: int | None = None) -> pd.DataFrame:
        """Seeds x examples (number and class) of a test set that seeds share: 1 where the run that `values` are of is
        right, else 0; nan where it has no answer. No rows without answers, and before the last budget."""
        if self.result["test"]["drawn_by_seed"] or self.answers.empty:
            return pd.DataFrame()
        if self.of == "gap" or budget not in (None, self.steps):
            return pd.DataFrame()
        test = self.at(at, "answers").query("part == 'test'")
        right = test["predicted"].eq(test["target"]).astype(float).where(test["predicted"] >= 0)
        return test.assign(right=right).pivot(index="seed", columns=["example", "target"], values="right")

    def estimate(self, at: str | float = TUNED, budget: int | None = None, noise: float = 0.0) -> Estimate:
        """The mean of `values`, a share; without an interval as in `mean_of`.

        `noise`: a variance of the mean beside that of the seeds and of the test set.
        """
        without = self.without(at, budget) if at == TUNED else None
        return mean_of(self.values(at, budget), self.test_noise(at, budget) + noise, without)

    def _rates(self, at: str | float, budget: int | None) -> "pd.Series[float]":
        """The rate by seed."""
        return self.choices(budget) if at == TUNED else pd.Series(float(at), self._diverged.index, dtype=float)

    def _reported(self, budget: int, column: str) -> pd.DataFrame:
        """A column, seeds x rates. A run that diverged before the budget stays with what it was at its end: the
        reported parameters are the same."""
        end = _by_rate(self.runs, column)
        if budget == self.steps:
            return end
        steps, values = self._by_step(column)
        then = values[:, :, int(np.flatnonzero(steps == budget)[0])]
        kept = np.where(self._diverged <= budget, end.to_numpy(float), math.nan)
        return pd.DataFrame(np.where(np.isnan(then), kept, then), end.index, end.columns)

    @remembered
    def _so_far(self) -> tuple[Any, Any]:
        """The steps of the curves, and the validation accuracy of what would be reported, seeds x rates x steps: the
        best until then, or the last."""
        steps, values = self._by_step("validation_accuracy")
        if self.recipe.report == "best":
            return steps, np.fmax.accumulate(values, axis=2)
        last = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(steps))), axis=2)
        return steps, np.take_along_axis(values, last, axis=2)

    @remembered
    def _by_step(self, column: str) -> tuple[Any, Any]:
        """The steps of the curves, ascending, and a column of them, seeds x rates x steps."""
        runs = pd.MultiIndex.from_product([self._diverged.index, self._diverged.columns])
        found = self.curves.pivot(index=["seed", "learning_rate"], columns="step", values=column).reindex(runs)
        return found.columns.to_numpy(), found.to_numpy(float).reshape(*self._diverged.shape, -1)

    @cached_property
    def _diverged(self) -> pd.DataFrame:
        """The step at which a run diverged, seeds x rates; nan where it did not."""
        return _by_rate(self.runs, "diverged_at").astype(float)


def _by_rate(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    return frame.pivot(index="seed", columns="learning_rate", values=column)


# --- each seed at its own rate


def picked(plane: pd.DataFrame, rates: "pd.Series[float]") -> "pd.Series[float]":
    """By seed: the entry of a plane (seeds x rates) at the seed's rate; seeds that have none there are left out."""
    own = rates.reindex(plane.index).to_numpy(float)
    hits = same_rate(plane.columns.to_numpy(float)[None, :], own[:, None])
    seeds = np.flatnonzero(hits.any(axis=1))
    values = plane.to_numpy()[seeds, hits.argmax(axis=1)[seeds]]
    return pd.Series(values, plane.index.to_numpy()[seeds], dtype=float)


def at_own(frame: pd.DataFrame, rates: "pd.Series[float]") -> "np.ndarray[Any, Any]":
    """Which rows of a table of runs are at the rate of their seed."""
    return same_rate(frame["learning_rate"].to_numpy(float), frame["seed"].map(rates).to_numpy(float))


def same_rate(one: Any, other: Any) -> "np.ndarray[Any, Any]":
    """Whether rates, or arrays of them, are the same: they went through YAML, JSON and parquet. False for nan."""
    return np.asarray(np.isclose(one, other, rtol=selection.SAME_RATE, atol=0))


# --- the published arms of a study


Faults = dict[tuple[str, str], DataError]  # task and name of an arm -> why it cannot be read


def published_arms(folder: Path) -> tuple[dict[str, Arm], Faults]:
    """The published arms of the study in a folder by the name of their sweep, in the order of runs/arms.csv; and what
    is wrong with those that cannot be read.

    They are read once in a process, for as long as the files stay as they are. Raises DataError for a runs/arms.csv
    that is no such table.
    """
    files = sorted(path for name in (RESULT, "*.parquet") for path in folder.glob(f"{PUBLISHED}/*/{name}"))
    return _published(folder, state_of(folder.parent / ARMS), tuple((path, state_of(path)) for path in files))


@cache
def _published(folder: Path, listed: State, files: tuple[tuple[Path, State], ...]) -> tuple[dict[str, Arm], Faults]:
    arms, faults, known = dict[str, Arm](), Faults(), set[str]()
    for line in lines(folder.parent / ARMS, folder.name):
        place, recorded = folder / PUBLISHED / str(line["sweep"]), line.pop("record")
        try:
            arms[place.name] = Arm(**line, folder=place, result=read_record(place, recorded))
        except DataError as error:
            faults[line["task"], line["name"]] = error
        known.add(place.name)
    for place in (path.parent for path, _ in files if path.name == RESULT):
        if place.name not in known and not place.name.startswith("."):
            missing = f"{place} has no line in {folder.parent / ARMS}: `fpt publish --mapping` writes it anew"
            faults[place.name.partition(".")[0], place.name] = DataError(missing)
    return arms, faults


def lines(path: Path, study: str) -> Iterator[dict[str, Any]]:
    """The lines of a study in runs/arms.csv, their numbers as numbers; none where there is no such file. Raises
    DataError."""
    for number, row in _listed(path, state_of(path), LISTED).get(study, ()):
        line: dict[str, Any] = {**row}
        try:
            line |= {name: int(row[name]) if row[name] else None for name in WHOLE_NUMBERS}
            line["threshold"] = float(row["threshold"]) if row["threshold"] else None
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}; `fpt publish --mapping` writes it anew") from None
        yield line


def served(path: Path, study: str, table: str) -> Iterator[Mapping[str, str]]:
    """The lines of a study in runs/rows.csv that are about a table of a paper: `sweep`, `row`, `stands_for` (tasks of
    the paper, joined by ;), `scale`."""
    for _, row in _listed(path, state_of(path), SERVED).get(study, ()):
        if row["table"] == table:
            yield row


@cache
def _listed(path: Path, state: State, columns: tuple[str, ...]) -> dict[str, list[tuple[int, dict[str, str]]]]:
    """The lines of a CSV file by study, with their numbers, read once for as long as it stays as it is."""
    found: dict[str, list[tuple[int, dict[str, str]]]] = {}
    if state is None:
        return found
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            raise DataError(f"{path}: its columns must be {', '.join(columns)}; `fpt publish --mapping` writes it anew")
        for row in reader:
            if None in row or None in row.values():
                raise DataError(f"{path}, line {reader.line_num}: has not {len(columns)} values")
            found.setdefault(row["study"], []).append((reader.line_num, row))
    return found
