"""Finished sweeps of a study: as arms, and flattened into tidy frames for users (`load_runs`)."""

import json
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from fpt.errors import FptError, check_known
from fpt.files import STUDY_FILE, study_folder, workspace
from fpt.results.arm import Arm, at_own, published_arms
from fpt.results.arm import Origin as Origin
from fpt.sweeps.record import TABLES
from fpt.training.recipe import Recipe

if TYPE_CHECKING:
    from fpt.sweeps.spec import SweepSpec
    from fpt.sweeps.study import Study

SETUP = (  # what must be equal to be compared
    "task", "variant", "task_options", "backbone", "backbone_options", "data_fraction", "shuffle_tokens",
    *Recipe.model_fields,
)  # fmt: skip
SPEC = (  # of a sweep: what its record says of it, and the threshold, which is the study's
    "arm", *Recipe.model_fields, "task", "variant", "task_options", "backbone", "backbone_options", "init", "trainable",
    "random_init", "random_gain", "input_init", "rank", "alpha", "targets", "zero", "pretrained_by", "data_fraction",
    "shuffle_tokens", "threshold",
)  # fmt: skip
# What was so before there was a choice: a record that is older than a field lacks it. No default of today, which may
# change, says what an old run did.
BEFORE: dict[str, Any] = {
    "solver": "adamw", "probe": None, "clip": 1.0, "warmup": 0.0, "schedule": "constant", "head_rate": None,
    "weight_decay": 0.0, "dropout": 0.1, "report": "best", "evaluation_examples": None, "budget_examples": None,
    "test_examples": None, "compute_type": "auto", "rank": 8, "alpha": 32.0, "targets": "both", "zero": "B",
}  # fmt: skip
ADDED = (
    "label", "name", "setup", *SPEC, "common_rate", "at_edge", "selected", "study", "origin", "commit",
    "sampled_from", "guessing",
)  # fmt: skip


def tidy(arm: Arm, table: Literal["runs", "curves"]) -> pd.DataFrame:
    """A table of an arm with the spec of its sweep, and what its result says of the learning rate of each row."""
    frame: pd.DataFrame = getattr(arm, table)
    known = BEFORE | arm.fields | {"threshold": arm.threshold}
    row: dict[str, Any] = {name: _flat(known[name]) for name in SPEC}
    row |= {"pretrained_by": known["pretrained_by"] or "", "threshold": arm.threshold or math.nan}
    row |= {"label": arm.letters, "setup": json.dumps([row[name] for name in SETUP]), "origin": arm.origin}
    rate = arm.result["selected_rate"]
    row |= {
        "common_rate": math.nan if rate is None else float(rate),
        "at_edge": bool(arm.result["at_edge"]),
        "commit": arm.commit,
        "sampled_from": arm.sampled_from,
        "guessing": arm.guessing,
    }
    # All at once: one after the other they take ten times as long.
    added = pd.DataFrame(row | {"selected": at_own(frame, arm.choices())}, index=frame.index)
    return pd.concat([frame, added], axis="columns")


def rate_text(rate: Any) -> str:
    """A learning rate as the papers write it: 1e-3, 3e-4."""
    digits, _, exponent = f"{float(rate):.3e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def find_study(name: str, root: Path | None = None) -> Path:
    """The folder of the study `name` in the workspace around the working directory (or `root`). Raises SpecError."""
    return study_folder(workspace(root) / "runs", name)


def study_names(root: Path | None = None) -> list[str]:
    """The folders of runs/ that hold a study.yaml, whatever is in it."""
    return sorted(path.parent.name for path in (workspace(root) / "runs").glob(f"*/{STUDY_FILE}"))


def studies(root: Path | None = None) -> list[str]:
    """Names of the studies in the workspace, less those that cannot be read: a warning names each of these."""
    return [study.folder.name for study in loaded_studies(root)]


def loaded_studies(root: Path | None = None) -> "Iterator[Study]":
    """The studies of `studies`, by name."""
    from fpt.sweeps.study import load_study

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


def arms_in(study: "str | Path | Study", origin: Origin | None = None) -> dict[str, Arm]:
    """The arms of a study by the name of their sweep; studies and origins as in `load_runs`.

    A published sweep that cannot be read costs itself alone: a warning says what is wrong with it. Of own results,
    which nobody published, the study file says what there is: it raises SpecError, and DataError where one is damaged.
    """
    if origin is not None:
        check_known("origin", origin, ["published", "own"])
    published, faults = ({}, {}) if origin == "own" else published_arms(folder_of(study))
    for error in faults.values():
        warnings.warn(f"a published sweep is left out: {error}", stacklevel=2)
    return published if published or faults or origin == "published" else unpublished_arms(study_of(study))


def unpublished_arms(study: "Study") -> dict[str, Arm]:
    """The reader's own finished sweeps of a study as arms. Raises DataError where one is damaged."""
    from fpt.results.mapping import lines_of
    from fpt.sweeps.ledger import read_result

    found = {}
    for spec, line in zip(study.sweeps, lines_of(study.folder.name, study.sweeps), strict=True):
        folder = study.folder / spec.folder_name
        if (result := read_result(folder, spec)) is not None:
            # a field that the record lacks came later, or was lost: the study says what it is
            fields = spec.resolved() | result["spec"]
            found[folder.name] = Arm(**line, folder=folder, result=result | {"spec": fields}, origin="own")
    return found


def arm_alone(spec: "SweepSpec", folder: Path, result: dict[str, Any]) -> Arm:
    """A finished sweep that belongs to no study, as `run_sweep` gives it."""
    from fpt.results.mapping import lines_of

    (line,) = lines_of("", [spec])
    return Arm(**line, folder=folder, result=result, origin="own")


def load_runs(
    study: "str | Path | Study", origin: Origin | None = None, table: Literal["runs", "curves"] = "runs"
) -> pd.DataFrame:
    """One row per run of the study's finished sweeps, or per run and evaluation (`curves`); no rows (but all columns)
    where there are none.

    Columns: those of the parquet file (accuracies are fractions), the resolved spec, `label` (FP, FR fixed, ...),
    `name` (the label, and in brackets what else tells it apart on this task of the study), `setup` (what must be equal
    for two sweeps to be compared), `common_rate` (the best over all seeds), `selected` (this run's rate is the tuned
    one of its seed: the best over the other seeds), `study`, `origin` ("own" or "published"), `commit` (of the code
    that ran), `sampled_from` (how many examples the test set, or the collection that the seeds split, has; nan where
    examples are made anew) and `guessing` (the accuracy of a guess).
    `origin` says which of them are read; without it the published ones, or the reader's own where a study has none. The
    name of a study, or one that was read already, may stand in the place of its folder.

    A published sweep whose record or tables were changed is left out, and a warning names it. Raises SpecError for an
    unknown study or origin, and, of own results, for a bad study file; DataError for a table that cannot be read.
    """
    arms = arms_in(study, origin).values()
    frames = [tidy(arm, table).assign(study=arm.study, name=arm.name) for arm in arms]
    empty = pd.DataFrame(columns=[*TABLES[table], *ADDED], dtype=object)
    return pd.concat(frames, ignore_index=True) if frames else empty


def sweeps_table(study: "str | Path | Study", origin: Origin | None = None) -> pd.DataFrame:
    """Status and provenance of every sweep of the study, finished or not: one row each. Errors as those of
    `load_study`."""
    from fpt.results.mapping import lines_of
    from fpt.sweeps.ledger import sweep_state

    known, rows = study_of(study), []
    states, finished = [sweep_state(spec, known.folder) for spec in known.sweeps], arms_in(known, origin)
    published = finished and next(iter(finished.values())).origin == "published"
    for state, line in zip(states, lines_of(known.folder.name, known.sweeps), strict=True):
        status = "not published" if state.state == "done" else state.state  # own results, and published ones wanted
        row: dict[str, Any] = {"status": status, "origin": "published" if published else origin or "own"}
        if arm := finished.get(state.folder.name):
            row |= {key: _flat(value) for key, value in arm.result.items() if key != "spec"}
            diverged = int(arm.runs["diverged_at"].notna().sum())
            row |= {"status": "done", "runs": len(arm.runs), "diverged": diverged, "commit": arm.commit}
        named = {"sweep": line["sweep"], "task": line["task"], "label": line["letters"], "name": line["name"]}
        rows.append({**named, "steps": state.spec.steps, **row})
    return pd.DataFrame(rows)


def folder_of(study: "str | Path | Study", root: Path | None = None) -> Path:
    """The folder of a study, of its name in the workspace (or in `root`), or of one that was read already. Raises
    SpecError."""
    if not isinstance(study, str | Path):
        return study.folder
    named = isinstance(study, str) and Path(study).name == study and (root or not Path(study).exists())
    return find_study(str(study), root) if named else Path(study)


def study_of(study: "str | Path | Study") -> "Study":
    """The study in a folder, or by its name in the workspace; one that was read already is not read again. Errors as
    those of `load_study`."""
    from fpt.sweeps.study import load_study

    return load_study(folder_of(study)) if isinstance(study, str | Path) else study


def has_own(study: "Study") -> bool:
    """Whether the reader has results of some sweep of the study."""
    from fpt.sweeps.ledger import sweep_state

    return any(sweep_state(spec, study.folder).result for spec in study.sweeps)


def _flat(value: Any) -> Any:
    """Lists and mappings as text, so that a table stays flat and can be written as CSV."""
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple | frozenset) else value
