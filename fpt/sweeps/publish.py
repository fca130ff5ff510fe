"""Copying finished sweeps to `published/`, which is committed."""

import shutil
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from fpt.errors import FptError, SpecError
from fpt.files import STUDY_FILE, read_json
from fpt.sweeps import ledger
from fpt.sweeps.ledger import SweepState
from fpt.sweeps.record import PUBLISHED, RESULT, check, damaged
from fpt.sweeps.study import Study

FILES = (ledger.NOTEBOOK, RESULT)  # and the tables that the latter names
ARCHIVE, REASON = "archive", "reason.txt"  # runs/archive/STUDY/SWEEP: no study, and nothing reads it
SMOKE = "smoke"  # its few steps exercise the machinery and say nothing about the question


def publish(study: Study, partial: bool = False) -> tuple[list[Path], list[Path]]:
    """Copy the study's own finished sweeps to `published/`, each folder whole or not at all.

    Published sweeps that the study no longer resolves to move to runs/archive/STUDY, each with a file that says why:
    nothing that was published is ever lost. Raises SpecError for the smoke study, and for one that is incomplete
    unless `partial`; DataError for results that were changed or damaged; FptError for a disk that takes no more.
    Returns the folders written, and those in the archive.
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
    complete = [state for state in states if state.complete]
    if not complete:
        raise SpecError(f"no sweep of {study.folder.name} is finished here: there is nothing to publish")
    files = {state.folder: _whole(state) for state in complete}
    published = study.folder / PUBLISHED
    written = [_copy(folder, names, published) for folder, names in files.items()]
    return written, [_archive(folder, study) for folder in ledger.stale_folders(study, PUBLISHED)]


def _whole(state: SweepState) -> list[str]:
    """The files of a finished sweep, all of which were read. Raises DataError for the first that cannot be believed."""
    result = check(state.folder)
    if read_json(notebook := state.folder / ledger.NOTEBOOK) is None:
        raise damaged(notebook, "it holds no JSON object")
    return [*FILES, *(f"{name}.parquet" for name in result["tables"])]


def _copy(folder: Path, names: list[str], published: Path) -> Path:
    """FptError where the disk is full or read-only: what was published before is then still there."""
    target, part = published / folder.name, published / f".{folder.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        for name in names:
            shutil.copyfile(folder / name, part / name)
        if target.exists():  # not before the new one is whole
            shutil.rmtree(target)
        part.rename(target)
    except OSError as error:
        raise _unwritten(published, error, f"{target.name} is not published anew") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)  # there is none after the renaming
    return target


def _unwritten(place: Path, error: OSError, what: str) -> FptError:
    return FptError(f"{place} cannot be written: {error.strerror}. {what}")


def _archive(folder: Path, study: Study) -> Path:
    """Move a published sweep to the archive, where a folder of the same name keeps its place."""
    why = f"{study.folder.name} has it no longer: {STUDY_FILE}, or your own data or model, changed."
    reason = f"{datetime.now(UTC):%Y-%m-%d}: moved here by fpt publish. {why}\n"
    place = study.folder.parent / ARCHIVE / study.folder.name
    names = (f"{folder.name}.{number}" if number else folder.name for number in count())
    target = next(place / name for name in names if not (place / name).exists())
    try:
        place.mkdir(parents=True, exist_ok=True)
        (folder / REASON).write_text(reason, encoding="utf-8")
        shutil.move(folder, target)  # a study may be a link to another disk
    except OSError as error:
        raise _unwritten(place, error, f"{folder.name} stays in {folder.parent}") from error
    return target
