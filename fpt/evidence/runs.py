"""Finished sweeps as tidy tables: one row per run, with its spec and where it came from."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import pandas as pd

from fpt.errors import DataError, unknown
from fpt.sweeps.ledger import PUBLISHED, sweep_state, workspace
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import load_study, study_folder
from fpt.training.recipe import ATTENTION as ATTENTION_MEASURE

Origin = Literal["auto", "own", "published"]
SHORT = {
    "frozen-pretrained": "FP",
    "frozen-random": "FR",
    "unfrozen-pretrained": "UP",
    "unfrozen-random": "UR",
}
RECIPE = ("steps", "batch_size", "clip", "dropout", "evaluations", "evaluation_examples", "compute_type")
SETUP = ("task", "variant", "task_options", "backbone", "backbone_options", *RECIPE)
SPEC = (
    *SETUP, "arm", "init", "trainable", "random_init", "random_gain", "input_init", "pretrained_by", "threshold",
    "feeds",
)  # fmt: skip
ADDED = ("label", "setup", *SPEC, "selected_rate", "at_edge", "selected", "reference", "study", "origin")
RUNS = (
    "sweep", "stage", "learning_rate", "seed", "best_step", "validation_accuracy", "train_accuracy",
    "test_accuracy", "test_accuracy_exact", "test_accuracy_last", "train_accuracy_last", "diverged_at",
)  # fmt: skip
CURVES = (
    "sweep", "stage", "learning_rate", "seed", "step", "train_loss", "train_accuracy", "validation_loss",
    "validation_accuracy",
)  # fmt: skip
ATTENTION = (
    "sweep", "stage", "learning_rate", "seed", "trained", "query", "key", "weight", "relevant", "chance",
)  # fmt: skip


@dataclass(frozen=True)
class Sweep:
    """A sweep of the present study.yaml, and the result.json that answers it (None: unfinished)."""

    spec: SweepSpec
    folder: Path
    result: dict[str, Any] | None
    state: str
    origin: str


def find_study(name: str, root: Path | None = None) -> Path:
    """The folder of the study `name` in the workspace around the working directory (or `root`)."""
    return study_folder(workspace(root) / "runs", name)


def studies(root: Path | None = None) -> list[str]:
    """Names of the studies in the workspace: the folders of runs/ that hold a study.yaml."""
    return sorted(path.parent.name for path in (workspace(root) / "runs").glob("*/study.yaml"))


def load_runs(study_folder: str | Path, origin: Origin = "auto") -> pd.DataFrame:
    """One row per run of the study's finished sweeps; no rows (but all columns) where there are none.

    Columns: those of runs.parquet (accuracies are fractions), the resolved spec, `label` (FP, FR fixed, ...),
    `setup` (what must be equal for two sweeps to be compared), `selected` and `reference` (this run's rate is
    the selected one, a reference rate), `study` and `origin` ("own" or "published"). "auto" takes the
    reader's own results when they are complete, else the published ones, else the reader's unfinished study;
    the environment variable FPT_ORIGIN replaces "auto".

    Raises SpecError for a bad study file or origin.
    """
    return _tidy(study_folder, origin, "runs.parquet", RUNS)


def load_curves(study_folder: str | Path, origin: Origin = "auto") -> pd.DataFrame:
    """One row per run and evaluation, with the same added columns as `load_runs`."""
    return _tidy(study_folder, origin, "curves.parquet", CURVES)


def load_attention(study_folder: str | Path, origin: Origin = "auto") -> pd.DataFrame:
    """One row per run, trained or not, query and key, of the sweeps that measured their first layer's attention; the
    same added columns as `load_runs`."""
    return _tidy(study_folder, origin, "attention.parquet", ATTENTION)


def load_plan(study_folder: str | Path) -> pd.DataFrame:
    """One row per sweep of the study, finished or not, with its spec: what the study asks for."""
    sweeps = load_study(study_folder).sweeps
    rows = [{"sweep": spec.folder_name, "study": Path(study_folder).name} | _spec_columns(spec) for spec in sweeps]
    return pd.DataFrame(rows)


def sweeps_table(study_folder: str | Path, origin: Origin = "auto") -> pd.DataFrame:
    """Status and provenance of every sweep of the study, finished or not: one row each."""
    rows = []
    for sweep in _sweeps(Path(study_folder), origin):
        spec = sweep.spec
        status = "not published" if sweep.state == "done" else sweep.state  # own results, and published ones wanted
        row: dict[str, Any] = {"status": status, "origin": sweep.origin}
        if sweep.result is not None:
            runs = _table(sweep.folder / "runs.parquet")
            row |= {key: _flat(value) for key, value in sweep.result.items() if key != "spec"}
            row |= {"status": "done", "runs": len(runs), "diverged": int(runs["diverged_at"].notna().sum())}
        rows.append({"sweep": spec.folder_name, "task": spec.task, "label": _label(spec), "steps": spec.steps, **row})
    return pd.DataFrame(rows)


def label(
    arm: str,
    random_init: str = "matched",
    random_gain: float = 1.0,
    input_init: str = "orthogonal",
    pretrained_by: str | None = None,
) -> str:
    """The short name of an arm: FP, FR, UP, UR; what else tells it apart is named, a default is not."""
    words = [SHORT.get(arm, arm)]
    if random_init != "matched":
        words.append(random_init)
    if random_gain != 1.0:
        words.append(f"x{random_gain:g}")
    if input_init != "orthogonal":
        words.append(f"{input_init}-input")
    if pretrained_by:
        words.append(f"by-{pretrained_by.partition('.')[0]}")
    return " ".join(words)


def rate_text(rate: Any) -> str:
    """A learning rate as the papers write it: 1e-3, 3e-4."""
    digits, _, exponent = f"{float(rate):.3e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def _tidy(study_folder: str | Path, origin: Origin, file: str, columns: tuple[str, ...]) -> pd.DataFrame:
    folder = Path(study_folder)
    frames = []
    for sweep in _sweeps(folder, origin):
        if sweep.result is None or (columns is ATTENTION and ATTENTION_MEASURE not in sweep.spec.measures):
            continue
        frame = tidy(_table(sweep.folder / file), sweep.spec, sweep.result)
        frame = frame.assign(study=folder.name, origin=sweep.origin)
        frames.append(frame)
    if not frames:
        return pd.DataFrame({name: pd.Series(dtype=object) for name in (*columns, *ADDED)})
    return pd.concat(frames, ignore_index=True)


def _table(path: Path) -> pd.DataFrame:
    """A table of a finished sweep; DataError where it is missing, damaged or another sweep's."""
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}): remove {path.parent} and run the study again") from None
    if not set(frame["sweep"]) <= {path.parent.name}:
        raise DataError(f"{path} is of another sweep: remove {path.parent} and run the study again")
    return frame


def tidy(frame: pd.DataFrame, spec: "SweepSpec", result: dict[str, Any]) -> pd.DataFrame:
    """Runs or curves of one sweep with its spec and what result.json says of the selection."""
    rate = float("nan") if result["selected_rate"] is None else float(result["selected_rate"])
    added = _spec_columns(spec) | {"selected_rate": rate, "at_edge": bool(result["at_edge"])}
    frame = frame.assign(**added)
    frame["selected"] = _among(frame["learning_rate"], [added["selected_rate"]])
    frame["reference"] = _among(frame["learning_rate"], list(spec.reference_rates))
    return frame


def _sweeps(folder: Path, origin: Origin) -> Iterator[Sweep]:
    """Each sweep once, in the order of the study, from the origin that the rule of `load_runs` picks."""
    states = [sweep_state(spec, folder) for spec in load_study(folder).sweeps]
    if origin == "auto":
        origin = cast(Origin, os.environ.get("FPT_ORIGIN", "auto"))
    if origin not in ("auto", "own", "published"):
        raise unknown("origin", origin, ["auto", "own", "published"])
    if origin == "auto":
        complete, any_published = all(s.result for s in states), any(s.published for s in states)
        origin = "own" if complete or not any_published else "published"
    for state in states:
        place = state.folder if origin == "own" else folder / PUBLISHED / state.folder.name
        result = state.result if origin == "own" else state.published
        yield Sweep(state.spec, place, result, state.state, origin)


def _spec_columns(spec: SweepSpec) -> dict[str, Any]:
    row = {name: _flat(getattr(spec, name)) for name in SPEC}
    row |= {"pretrained_by": spec.pretrained_by or "", "threshold": spec.threshold or float("nan")}
    row["label"] = _label(spec)
    row["setup"] = json.dumps([row[name] for name in SETUP])
    return row


def _label(spec: SweepSpec) -> str:
    return label(spec.arm, spec.random_init, spec.random_gain, spec.input_init, spec.pretrained_by)


def _flat(value: Any) -> Any:
    """Lists and mappings as text, so that a table stays flat and can be written as CSV."""
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple | frozenset) else value


def _among(rates: "pd.Series[float]", wanted: list[float]) -> "pd.Series[bool]":
    """Rates went through YAML and parquet: compare to 9 digits."""
    text = {f"{rate:.9g}" for rate in wanted}
    return rates.map(lambda rate: f"{rate:.9g}" in text).astype(bool)
