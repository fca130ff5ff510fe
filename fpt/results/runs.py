"""Finished sweeps: their tables and records by sweep, and flattened into tidy frames for users (`load_runs`)."""

import json
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
import pandas as pd

from fpt.errors import FptError, SpecError, check_known
from fpt.results.baselines import chance
from fpt.sweeps.labels import label, labels
from fpt.sweeps.ledger import PUBLISHED, SweepState, sweep_state, workspace
from fpt.sweeps.record import TABLES, read_table
from fpt.sweeps.selection import SAME_RATE, by_seed, choices
from fpt.sweeps.spec import GRID, SweepSpec
from fpt.sweeps.study import Study, load_study, study_folder
from fpt.tasks import entry, own_kind
from fpt.training.recipe import ATTENTION, WINDOWS, Recipe

Origin = Literal["published", "own"]
SETUP = (  # what must be equal to be compared
    "task", "variant", "task_options", "backbone", "backbone_options", "data_fraction", "shuffle_tokens",
    *Recipe.model_fields,
)  # fmt: skip
SPEC = ("arm", *(name for name in SweepSpec.model_fields if name not in (*GRID, "measures")))
ADDED = (
    "label", "name", "setup", *SPEC, "selected_rate", "at_edge", "selected", "study", "origin", "commit",
    "sampled_from", "guessing",
)  # fmt: skip
TableName = Literal["runs", "attention"]
T = TypeVar("T")


@dataclass(frozen=True)
class SweepTables:
    """A finished sweep: its spec, its record, and its tables, read when they are first asked for.

    What is derived from them is remembered: verdicts ask for the same many times. Nobody writes into what it returns.
    """

    spec: SweepSpec
    folder: Path
    result: dict[str, Any]
    origin: str
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def runs(self) -> pd.DataFrame:
        return self._table("runs")

    @cached_property
    def curves(self) -> pd.DataFrame:
        return self._table("curves")

    @cached_property
    def attention(self) -> pd.DataFrame:
        """No rows where the sweep did not measure it."""
        return self._table(ATTENTION) if ATTENTION in self.spec.measures else pd.DataFrame()

    @cached_property
    def windows(self) -> pd.DataFrame:
        """The loss of every window that was evaluated at the end; no rows where the sweep did not measure it."""
        return self._table(WINDOWS) if WINDOWS in self.spec.measures else pd.DataFrame()

    def _table(self, name: str) -> pd.DataFrame:
        return read_table(self.folder, name, self.spec, self.result)

    @property
    def rates(self) -> list[float]:
        """The grid as it was trained."""
        return sorted(map(float, self.result["grid"]))

    @property
    def selected_rate(self) -> float | None:
        """None where no rate was eligible."""
        rate = self.result["selected_rate"]
        return None if rate is None else float(rate)

    @property
    def at_edge(self) -> bool:
        return bool(self.result["at_edge"])

    @property
    def guessing(self) -> float:
        """The accuracy of guessing, which a run counts as that was never finite; nan for the reader's own data where an
        earlier version did not record the number of classes."""
        classes = self.result["test"].get("classes")
        return 1 / classes if classes else chance(self.spec.task)

    @property
    def sampled_from(self) -> float:
        """How many examples stand for all that there could be: those of a test set that all seeds share, or of the
        collection of which each seed tests a part. nan where every seed tests examples made for it.

        Of the reader's own data an earlier version recorded the part alone, which is the cautious reading.
        """
        test = self.result["test"]
        if not test["drawn_by_seed"]:
            return float(test["size"])
        if own_kind(self.spec.task):
            return float(test.get("collection") or test["size"])
        return float(entry(self.spec.task).collection or math.nan)

    @property
    def commit(self) -> str:
        """Of the code that trained it, and whether that had changes; empty where it ran outside a checkout."""
        git = self.result["git"]
        return "" if git is None else git["commit"][:8] + " + changes" * git["dirty"]

    def plane(self, budget: int | None = None, column: str = "test_accuracy") -> pd.DataFrame:
        """A column of the runs at a budget [the last], seeds x rates; nan where a run was never finite.

        A run that diverged before the budget stays with what it was at its end: the reported parameters are the same.
        Raises SpecError for a budget that is not reported.
        """
        budget = self.spec.steps if budget is None else budget
        if budget not in self.spec.budgets():
            raise SpecError(f"budget {budget}: {self.spec.folder_name} is reported at {self.spec.budgets()} steps")
        return self.once(("plane", budget, column), lambda: self._plane(budget, column))

    def validation(self, step: int | None = None) -> pd.DataFrame:
        """The validation accuracy of what is reported at a step [the last], seeds x rates: the best until then, or the
        last; nan if a run was not finite by then."""
        step = self.spec.steps if step is None else step
        return self.once(("validation", step), lambda: self._validation(step))

    def choices(self, step: int | None = None) -> "pd.Series[float]":
        """By seed: the tuned rate of a run of so many steps (fpt.sweeps.selection.choices)."""
        step = self.spec.steps if step is None else step
        return self.once(("choices", step), lambda: choices(self.validation(step)))

    def at(self, table: TableName, rates: "pd.Series[float]") -> pd.DataFrame:
        """The rows of a table at each seed's rate (by seed); runs by seed."""
        return self.once((table, *rates.items()), lambda: self._at(table, rates))

    def tidy(self, table: Literal["runs", "curves"]) -> pd.DataFrame:
        """A table with the spec of the sweep, and what its result says of the learning rate of each row."""
        frame: pd.DataFrame = getattr(self, table)
        spec, rate = self.spec, math.nan if self.selected_rate is None else self.selected_rate
        row: dict[str, Any] = {name: _flat(getattr(spec, name)) for name in SPEC}
        row |= {"pretrained_by": spec.pretrained_by or "", "threshold": spec.threshold or math.nan}
        row |= {"label": label(spec), "setup": json.dumps([row[name] for name in SETUP]), "origin": self.origin}
        row |= {
            "selected_rate": rate,
            "at_edge": self.at_edge,
            "commit": self.commit,
            "sampled_from": self.sampled_from,
            "guessing": self.guessing,
        }
        # All at once: one after the other they take ten times as long.
        added = pd.DataFrame(row | {"selected": _at_own(frame, self.choices())}, index=frame.index)
        return pd.concat([frame, added], axis="columns")

    def once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """What `make` gives, made once for each key. Of a table, a copy: who writes into it changes nobody else's."""
        if key not in self._known:
            self._known[key] = make()
        found = self._known[key]
        if isinstance(found, pd.DataFrame | pd.Series):
            found = found.copy(deep=False)  # pandas copies what is written to
        return cast(T, found)

    def _plane(self, budget: int, column: str) -> pd.DataFrame:
        end = self._by_rate(self.runs, column)
        if budget == self.spec.steps:
            return end
        then = self._by_rate(self.curves[self.curves["step"] == budget], column).reindex_like(end)
        return then.where(then.notna(), end.where(self._lost(budget)))

    def _validation(self, step: int) -> pd.DataFrame:
        if step == self.spec.steps:
            return by_seed(self.runs)
        early = self.curves[self.curves["step"] <= step].sort_values("step", kind="stable")
        how = "max" if self.spec.report == "best" else "last"
        best = early.groupby(["seed", "learning_rate"])["validation_accuracy"].agg(how).unstack()
        lost = self._lost(step)
        return best.reindex_like(lost).mask(lost)

    def _lost(self, step: int) -> pd.DataFrame:
        """Whether a run had diverged by then, seeds x rates."""
        return self._by_rate(self.runs, "diverged_at").le(step).fillna(False).astype(bool)

    @staticmethod
    def _by_rate(frame: pd.DataFrame, column: str) -> pd.DataFrame:
        return frame.pivot(index="seed", columns="learning_rate", values=column)

    def _at(self, table: TableName, rates: "pd.Series[float]") -> pd.DataFrame:
        frame: pd.DataFrame = getattr(self, table)
        rows = frame[_at_own(frame, rates)]
        return rows.set_index("seed") if table == "runs" else rows


def _at_own(frame: pd.DataFrame, rates: "pd.Series[float]") -> "np.ndarray[Any, Any]":
    """Which rows are at the rate of their seed."""
    return same_rate(frame["learning_rate"].to_numpy(float), frame["seed"].map(rates).to_numpy(float))


def same_rate(one: Any, other: Any) -> "np.ndarray[Any, Any]":
    """Whether rates, or arrays of them, are the same: they went through YAML, JSON and parquet. False for nan."""
    return np.asarray(np.isclose(one, other, rtol=SAME_RATE, atol=0))


def rate_text(rate: Any) -> str:
    """A learning rate as the papers write it: 1e-3, 3e-4."""
    digits, _, exponent = f"{float(rate):.3e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def find_study(name: str, root: Path | None = None) -> Path:
    """The folder of the study `name` in the workspace around the working directory (or `root`)."""
    return study_folder(workspace(root) / "runs", name)


def study_names(root: Path | None = None) -> list[str]:
    """The folders of runs/ that hold a study.yaml, whatever is in it."""
    return sorted(path.parent.name for path in (workspace(root) / "runs").glob("*/study.yaml"))


def studies(root: Path | None = None) -> list[str]:
    """Names of the studies in the workspace, less those that cannot be read: a warning names each of these."""
    return [study.folder.name for study in loaded_studies(root)]


def loaded_studies(root: Path | None = None) -> Iterator[Study]:
    """The studies of `studies`, by name."""
    for name in study_names(root):
        with left_out(name):
            yield load_study(find_study(name, root))


@contextmanager
def left_out(name: str) -> Iterator[None]:
    """Where the study `name` cannot be read, a warning says why, once, and what is not about this study goes on: its
    data or its model may be gone, which are part of what its sweeps are."""
    try:
        yield
    except FptError as error:
        warnings.warn(f"the study {name} is left out, since it cannot be read: {error}", stacklevel=1)


def load_sweeps(study: Study, origin: Origin | None = None) -> dict[str, SweepTables]:
    """The finished sweeps by folder name, in the order of the study; origins as in `load_runs`.

    Raises SpecError for an unknown origin.
    """
    states = [sweep_state(spec, study.folder) for spec in study.sweeps]
    return _finished(study, states, _chosen(states, origin))


def _finished(study: Study, states: list[SweepState], chosen: Origin) -> dict[str, SweepTables]:
    found = {}
    for state in states:
        result = state.result if chosen == "own" else state.published
        folder = state.folder if chosen == "own" else study.folder / PUBLISHED / state.folder.name
        if result is not None:
            found[state.folder.name] = SweepTables(state.spec, folder, result, chosen)
    return found


def load_runs(
    study_folder: str | Path | Study, origin: Origin | None = None, table: Literal["runs", "curves"] = "runs"
) -> pd.DataFrame:
    """One row per run of the study's finished sweeps, or per run and evaluation (`curves`); no rows (but all columns)
    where there are none.

    Columns: those of the parquet file (accuracies are fractions), the resolved spec, `label` (FP, FR fixed, ...),
    `name` (the label, and in brackets what else tells it apart on this task of the study), `setup` (what must be equal
    for two sweeps to be compared), `selected` (this run's rate is the tuned one of its seed: the best over the other
    seeds), `study`, `origin` ("own" or "published"), `commit` (of the code that ran), `sampled_from`
    (how many examples the test set, or the collection that the seeds split, has; nan where examples are made anew) and
    `guessing` (the accuracy of a guess).
    `origin` says which of them are read; without it the published ones, or the reader's own where a study has none. The
    name of a study, or one that was read already, may stand in the place of its folder.

    Raises SpecError for a bad study file, origin or table, DataError for a table that cannot be read.
    """
    check_known("table", table, ["runs", "curves"], "load_runs")
    study = study_of(study_folder)
    names = labels(study.sweeps)
    frames = [
        sweep.tidy(table).assign(study=study.folder.name, name=names[folder])
        for folder, sweep in load_sweeps(study, origin).items()
    ]
    empty = pd.DataFrame(columns=[*TABLES[table].columns, *ADDED], dtype=object)
    return pd.concat(frames, ignore_index=True) if frames else empty


def sweeps_table(study_folder: str | Path | Study, origin: Origin | None = None) -> pd.DataFrame:
    """Status and provenance of every sweep of the study, finished or not: one row each."""
    study, rows = study_of(study_folder), []
    states = [sweep_state(spec, study.folder) for spec in study.sweeps]
    chosen, names = _chosen(states, origin), labels(study.sweeps)
    finished = _finished(study, states, chosen)
    for state in states:
        status = "not published" if state.state == "done" else state.state  # own results, and published ones wanted
        row: dict[str, Any] = {"status": status, "origin": chosen}
        if sweep := finished.get(state.folder.name):
            row |= {key: _flat(value) for key, value in sweep.result.items() if key != "spec"}
            diverged = int(sweep.runs["diverged_at"].notna().sum())
            row |= {"status": "done", "runs": len(sweep.runs), "diverged": diverged, "commit": sweep.commit}
        spec = state.spec
        known = {"sweep": spec.folder_name, "task": spec.task, "label": label(spec), "name": names[spec.folder_name]}
        rows.append({**known, "steps": spec.steps, **row})
    return pd.DataFrame(rows)


def study_of(study: str | Path | Study) -> Study:
    """The study in a folder, or by its name in the workspace; one that was read already is not read again. Errors as
    those of `load_study`."""
    if isinstance(study, Study):
        return study
    named = isinstance(study, str) and Path(study).name == study and not Path(study).exists()
    return load_study(find_study(str(study)) if named else study)


def _chosen(states: list[SweepState], origin: Origin | None) -> Origin:
    """Whose results are read, by the rule of `load_runs`."""
    if origin is None:
        return "published" if any(state.published for state in states) else "own"
    check_known("origin", origin, ["published", "own"])
    return origin


def has_own(study: Study) -> bool:
    """Whether the reader has results of some sweep of the study."""
    return any(sweep_state(spec, study.folder).result for spec in study.sweeps)


def _flat(value: Any) -> Any:
    """Lists and mappings as text, so that a table stays flat and can be written as CSV."""
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple | frozenset) else value
