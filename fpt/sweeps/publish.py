"""Copying finished sweeps to `published/`, which is committed."""

import json
import os
import shutil
from pathlib import Path

from fpt.errors import SpecError
from fpt.sweeps import ledger
from fpt.sweeps.study import Study

FILES = (ledger.NOTEBOOK, *(f"{name}.parquet" for name in ledger.TABLES), ledger.RESULT)
SMOKE = "smoke"  # its few steps exercise the machinery and say nothing about the question


def publish(study: Study, partial: bool = False) -> list[Path]:
    """Copy the study's own finished sweeps to `published/`, each folder whole or not at all.

    Published sweeps that the study no longer resolves to are removed. Raises SpecError for the smoke study,
    and for one that is incomplete unless `partial`. Returns the folders written.
    """
    if study.folder.name == SMOKE:
        raise SpecError(f"study {SMOKE!r} is not published: a few steps of training are no results")
    states = [ledger.sweep_state(spec, study.folder) for spec in study.sweeps]
    missing = [state.folder.name for state in states if not state.complete]
    if missing and not partial:
        name, listed = study.folder.name, ", ".join(missing)
        raise SpecError(
            f"{len(missing)} of {len(states)} sweeps of {name} are not finished here: {listed}. "
            f"Finish them with `fpt run {name}`, or publish the others with --partial."
        )
    complete = [state.folder for state in states if state.complete]
    if not complete:
        raise SpecError(f"no sweep of {study.folder.name} is finished here: there is nothing to publish")
    for folder in complete:
        _check_whole(folder)
    published = study.folder / ledger.PUBLISHED
    written = [_copy(folder, published) for folder in complete]
    for folder in ledger.stale_folders(study, ledger.PUBLISHED):
        shutil.rmtree(folder)
    return written


def _check_whole(folder: Path) -> None:
    """SpecError if a file of a finished sweep is missing or cannot be read any more."""
    import pandas as pd

    for name in FILES:
        try:
            if name.endswith(".parquet"):
                if set(pd.read_parquet(folder / name)["sweep"]) != {folder.name}:
                    raise ValueError("it is empty, or of another sweep")
            else:
                json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError) as error:
            raise SpecError(f"{folder / name} cannot be read ({error}): remove {folder} and run the study") from None


def _copy(folder: Path, published: Path) -> Path:
    target, part = published / folder.name, published / f".{folder.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    measured = (f"{name}.parquet" for name in ledger.IF_MEASURED)
    for name in (*FILES, *(name for name in measured if (folder / name).is_file())):
        shutil.copyfile(folder / name, part / name)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(part, target)
    return target
