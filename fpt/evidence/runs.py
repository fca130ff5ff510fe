"""Finished sweeps: their tables and records by sweep, and flattened into tidy frames for users (`load_runs`)."""

import json
import math
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from fpt.errors import DataError, check_known
from fpt.sweeps.ledger import PUBLISHED, SweepState, sweep_state, workspace
from fpt.sweeps.spec import GRID, SweepSpec
from fpt.sweeps.study import Study, load_study, study_folder
from fpt.training.recipe import ATTENTION, Recipe

Origin = Literal["auto", "own", "published"]
SHORT = {
    "frozen-pretrained": "FP",
    "frozen-random": "FR",
    "unfrozen-pretrained": "UP",
    "unfrozen-random": "UR",
}
SETUP = ("task", "variant", "task_options", "backbone", "backbone_options", *Recipe.model_fields)  # to be compared
SPEC = ("arm", *(name for name in SweepSpec.model_fields if name not in (*GRID, "measures")))
ADDED = ("label", "setup", *SPEC, "selected_rate", "at_edge", "selected", "reference", "study", "origin")
RUN = ("sweep", "stage", "learning_rate", "seed")
SCORES = ("validation_accuracy", "train_accuracy")
COLUMNS = {  # of the tables of a sweep, where there is none
    "runs": (*RUN, "best_step", *SCORES, "test_accuracy", "test_accuracy_exact", "test_accuracy_last",
             "train_accuracy_last", "diverged_at"),
    "curves": (*RUN, "step", "train_loss", "validation_loss", *SCORES),
}  # fmt: skip


@dataclass(frozen=True)
class SweepTables:
    """A finished sweep: its spec, its record, and its tables, read when they are first asked for."""

    spec: SweepSpec
    folder: Path
    result: dict[str, Any]
    origin: str
    _cut: dict[tuple[str, str, float], pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def runs(self) -> pd.DataFrame:
        return _table(self.folder / "runs.parquet")

    @cached_property
    def curves(self) -> pd.DataFrame:
        return _table(self.folder / "curves.parquet")

    @cached_property
    def attention(self) -> pd.DataFrame:
        """No rows where the sweep did not measure it."""
        path = self.folder / "attention.parquet"
        return _table(path) if ATTENTION in self.spec.measures else pd.DataFrame()

    def at(self, table: Literal["runs", "curves", "attention"], stage: str, rate: float) -> pd.DataFrame:
        """The rows of a table of a stage at a rate: runs by seed; of curves their validation accuracy, a row an
        evaluation step, a column a seed. Cut once, then remembered: verdicts ask for the same ones many times."""
        key = (table, stage, rate)
        if key not in self._cut:
            frame = getattr(self, table)
            rows = frame[near(frame["learning_rate"], rate) & (frame["stage"] == stage)]
            if table == "runs":
                rows = rows.set_index("seed")
            elif table == "curves":
                rows = rows.pivot_table("validation_accuracy", "step", "seed")
            self._cut[key] = rows
        return self._cut[key]

    @property
    def selected_rate(self) -> float | None:
        """None where no rate was eligible."""
        rate = self.result["selected_rate"]
        return None if rate is None else float(rate)

    @property
    def at_edge(self) -> bool:
        return bool(self.result["at_edge"])

    def tidy(self, table: Literal["runs", "curves"]) -> pd.DataFrame:
        """A table with the spec of the sweep, and what its result says of the learning rate of each row."""
        frame: pd.DataFrame = getattr(self, table)
        spec, rate = self.spec, math.nan if self.selected_rate is None else self.selected_rate
        row = {name: _flat(getattr(spec, name)) for name in SPEC}
        row |= {"pretrained_by": spec.pretrained_by or "", "threshold": spec.threshold or math.nan}
        row |= {"label": label(spec), "setup": json.dumps([row[name] for name in SETUP]), "origin": self.origin}
        row |= {"selected_rate": rate, "at_edge": self.at_edge}
        rates = frame["learning_rate"]
        return frame.assign(**row, selected=near(rates, rate), reference=near(rates, *spec.reference_rates))


def near(rates: "pd.Series[float]", *wanted: float) -> "np.ndarray[Any, Any]":
    """Which of `rates` are one of those `wanted`: they went through YAML, JSON and parquet. False for nan."""
    close = np.isclose(rates.to_numpy(float)[:, None], wanted, rtol=1e-6, atol=0)
    return np.asarray(close.any(axis=1))


def rate_text(rate: Any) -> str:
    """A learning rate as the papers write it: 1e-3, 3e-4."""
    digits, _, exponent = f"{float(rate):.3e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def find_study(name: str, root: Path | None = None) -> Path:
    """The folder of the study `name` in the workspace around the working directory (or `root`)."""
    return study_folder(workspace(root) / "runs", name)


def studies(root: Path | None = None) -> list[str]:
    """Names of the studies in the workspace: the folders of runs/ that hold a study.yaml."""
    return sorted(path.parent.name for path in (workspace(root) / "runs").glob("*/study.yaml"))


def load_sweeps(study: Study, origin: Origin = "auto") -> dict[str, SweepTables]:
    """The finished sweeps by folder name, in the order of the study; origins as in `load_runs`.

    Raises SpecError for an unknown origin.
    """
    states = [sweep_state(spec, study.folder) for spec in study.sweeps]
    chosen = _chosen(states, origin)
    found = {}
    for state in states:
        result = state.result if chosen == "own" else state.published
        folder = state.folder if chosen == "own" else study.folder / PUBLISHED / state.folder.name
        if result is not None:
            found[state.folder.name] = SweepTables(state.spec, folder, result, chosen)
    return found


def load_runs(study_folder: str | Path, origin: Origin = "auto") -> pd.DataFrame:
    """One row per run of the study's finished sweeps; no rows (but all columns) where there are none.

    Columns: those of runs.parquet (accuracies are fractions), the resolved spec, `label` (FP, FR fixed, ...),
    `setup` (what must be equal for two sweeps to be compared), `selected` and `reference` (this run's rate is
    the selected one, a reference rate), `study` and `origin` ("own" or "published"). "auto" takes the
    reader's own results when they are complete, else the published ones, else the reader's unfinished study;
    the environment variable FPT_ORIGIN replaces "auto".

    Raises SpecError for a bad study file or origin, DataError for a table that cannot be read.
    """
    return _tidy(study_folder, origin, "runs")


def load_curves(study_folder: str | Path, origin: Origin = "auto") -> pd.DataFrame:
    """One row per run and evaluation, with the same added columns as `load_runs`."""
    return _tidy(study_folder, origin, "curves")


def sweeps_table(study_folder: str | Path, origin: Origin = "auto") -> pd.DataFrame:
    """Status and provenance of every sweep of the study, finished or not: one row each."""
    study, rows = load_study(study_folder), []
    states = [sweep_state(spec, study.folder) for spec in study.sweeps]
    finished, chosen = load_sweeps(study, origin), _chosen(states, origin)
    for state in states:
        status = "not published" if state.state == "done" else state.state  # own results, and published ones wanted
        row: dict[str, Any] = {"status": status, "origin": chosen}
        if sweep := finished.get(state.folder.name):
            row |= {key: _flat(value) for key, value in sweep.result.items() if key != "spec"}
            diverged = int(sweep.runs["diverged_at"].notna().sum())
            row |= {"status": "done", "runs": len(sweep.runs), "diverged": diverged}
        spec = state.spec
        rows.append({"sweep": spec.folder_name, "task": spec.task, "label": label(spec), "steps": spec.steps, **row})
    return pd.DataFrame(rows)


def label(spec: SweepSpec) -> str:
    """The short name of an arm: FP, FR, UP, UR; what else tells it apart is named, a default is not."""
    words = [SHORT.get(spec.arm, spec.arm)]
    words += [] if spec.random_init == "matched" else [spec.random_init]
    words += [] if spec.random_gain == 1 else [f"x{spec.random_gain:g}"]
    words += [] if spec.input_init == "orthogonal" else [f"{spec.input_init}-input"]
    words += [f"by-{spec.pretrained_by.partition('.')[0]}"] if spec.pretrained_by else []
    return " ".join(words)


def _chosen(states: list[SweepState], origin: Origin) -> Origin:
    """Whose results are read, by the rule of `load_runs`."""
    if origin == "auto":
        origin = cast(Origin, os.environ.get("FPT_ORIGIN", "auto"))
    check_known("origin", origin, ["auto", "own", "published"])
    if origin != "auto":
        return origin
    complete, any_published = all(state.result for state in states), any(state.published for state in states)
    return "own" if complete or not any_published else "published"


def _tidy(study_folder: str | Path, origin: Origin, table: Literal["runs", "curves"]) -> pd.DataFrame:
    study = load_study(study_folder)
    frames = [sweep.tidy(table).assign(study=study.folder.name) for sweep in load_sweeps(study, origin).values()]
    empty = pd.DataFrame(columns=[*COLUMNS[table], *ADDED], dtype=object)
    return pd.concat(frames, ignore_index=True) if frames else empty


def _table(path: Path) -> pd.DataFrame:
    """A table of a finished sweep; DataError where it is missing, damaged or another sweep's."""
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}): remove {path.parent} and run the study again") from None
    if not set(frame["sweep"]) <= {path.parent.name}:
        raise DataError(f"{path} is of another sweep: remove {path.parent} and run the study again")
    return frame


def _flat(value: Any) -> Any:
    """Lists and mappings as text, so that a table stays flat and can be written as CSV."""
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple | frozenset) else value
