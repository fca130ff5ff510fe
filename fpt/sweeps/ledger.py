"""The ledger: the state of each sweep's folder, and who writes it."""

import fcntl
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fpt.errors import FptError, LockedError
from fpt.files import read_json
from fpt.sweeps.fields import SWEEP
from fpt.sweeps.record import PUBLISHED, RESULT, damaged, read_progress, read_record
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study

PROGRESS, LOCK = "progress.json", "lock"
KEPT_WEIGHTS = "weights.safetensors"  # kept for the sweeps that are pretrained by this one
NOTEBOOK, NOTEBOOK_LOCK = "notebook.ipynb", "notebook-lock"
LOCK_WAIT = 30.0  # seconds: a killed driver's workers are gone long before


@dataclass(frozen=True)
class SweepState:
    """One sweep of a study: `state` is done, running, unfinished (started, nobody at work) or waiting."""

    spec: SweepSpec
    folder: Path
    state: str
    result: dict[str, Any] | None
    progress: dict[str, Any] | None
    published: dict[str, Any] | None  # the published result of the same spec

    @property
    def complete(self) -> bool:
        """Done, and its executed notebook is there as well."""
        return self.state == "done" and (self.folder / NOTEBOOK).is_file()


def sweep_state(spec: SweepSpec, study: Path) -> SweepState:
    """The state of one sweep below the folder of its study."""
    folder = study / spec.folder_name
    result = read_result(folder, spec)
    running = result is None and is_held(folder / LOCK)
    if result:
        state = "done"
    elif running:
        state = "running"
    else:
        state = "unfinished" if folder.is_dir() else "waiting"
    progress = read_progress(folder / PROGRESS) if running else None
    published = read_result(study / PUBLISHED / folder.name, spec)
    return SweepState(spec, folder, state, result=result, progress=progress, published=published)


def stale_folders(study: Study, inside: str = "") -> list[Path]:
    """Folders, named as those of sweeps are, that the present study.yaml does not resolve to: own or
    (inside=PUBLISHED) published ones."""
    names = {spec.folder_name for spec in study.sweeps}
    folders = sorted(path for path in (study.folder / inside).glob("*") if path.is_dir())
    return [path for path in folders if path.name not in names and SWEEP.fullmatch(path.name)]


def stale_results(study: Study) -> list[Path]:
    """Those of the `stale_folders` that are results, by the lock under which such are written, and in which nobody is
    at work."""
    locks = (LOCK, NOTEBOOK_LOCK)
    return [
        folder
        for folder in stale_folders(study)
        if any((folder / name).is_file() for name in (*locks, RESULT))
        and not any(is_held(folder / name) for name in locks)
    ]


def remove(folders: Iterable[Path]) -> None:
    """Remove folders of results; a link to one, and not what it leads to."""
    for folder in folders:
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)


def read_result(folder: Path, spec: SweepSpec) -> dict[str, Any] | None:
    """The folder's result.json if it answers this very spec; a sweep is done by this sign and no other.

    Raises DataError for one that no sweep wrote, or that was changed since, or its tables.
    """
    if not (folder / RESULT).is_file():
        return None
    result = read_record(folder)
    if result["hash"] == spec.hash:
        return result
    if folder.name == spec.folder_name:
        raise damaged(folder / RESULT, f"hash = {result['hash']!r}: {spec.hash!r} is expected")
    return None


@contextmanager
def hold(path: Path, spec: SweepSpec) -> Iterator[None]:
    """Hold the lock file `path` while writing its folder; the kernel drops the lock with the process.

    Raises LockedError after LOCK_WAIT seconds, naming who holds it, or at once if the folder is another's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        _wait(path, lambda: not _try_lock(file.fileno(), fcntl.LOCK_EX))
        owner = read_json(path) or read_json(path.with_name(RESULT)) or {}
        if owner.get("hash", spec.hash) != spec.hash:
            by = f", last written by process {owner['pid']} on {owner['host']}" if "pid" in owner else ""
            raise LockedError(
                f"{path.parent} holds another sweep ({owner['hash']}, this one is {spec.hash}){by}; "
                "choose another folder, or remove that one"
            )
        file.truncate(0)
        file.write(json.dumps({"hash": spec.hash, "pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        yield


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock file."""
    try:
        with path.open("rb") as file:
            return not _try_lock(file.fileno(), fcntl.LOCK_SH)  # shared: two observers do not see each other
    except OSError:
        return False


def wait_until_free(folder: Path) -> None:
    """Return when nobody writes the folder; LockedError if somebody still does after LOCK_WAIT seconds."""
    for path in (folder / LOCK, folder / NOTEBOOK_LOCK):
        _wait(path, partial(is_held, path))


def _wait(path: Path, blocked: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LOCK_WAIT
    while blocked():
        if time.monotonic() > deadline:
            owner = read_json(path) or {}
            raise LockedError(
                f"{path.parent} is being written by process {owner.get('pid')} on {owner.get('host')}, "
                f"still after {LOCK_WAIT:g} s; wait for it, or end that process"
            )
        time.sleep(0.2)


def check_locks(folder: Path) -> None:
    """Refuse (FptError) a folder on a file system that has no locks, as some of clusters."""
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            _try_lock(file.fileno(), fcntl.LOCK_EX)
        except OSError as error:
            raise FptError(
                f"{folder}: this file system has no locks ({error.strerror}), and without them two processes could "
                "write one sweep. Make the study's folder a link to another disk, or mount this one with flock"
            ) from error


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
