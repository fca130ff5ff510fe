"""Files that appear whole or not at all, their checksums, and the folder of what can be made or fetched again."""

import hashlib
import json
import math
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fpt.errors import DataError, FptError, SpecError, check_known

STUDY_FILE = "study.yaml"  # of a folder of runs/
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # of such a folder

State = tuple[int, int] | None  # of a file: its size and time of change; None where there is none


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A partial file to write; it takes the place of `path` at the end: after a crash at any moment the file is the
    old one or the new one, never half of either. An error leaves the old one and removes the partial one. Each call
    has a partial file of its own; that of a process that was killed stays, until `remove_partial`."""
    # The number of a process is not enough: containers that share a folder may have equal ones.
    partial = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        yield partial
        _sync(partial)
        os.replace(partial, path)
        _sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)  # there is none after the replacement


def remove_partial(folder: Path) -> None:
    """Remove the partial files of processes that were killed, where nobody else writes into the folder."""
    for partial in folder.glob(".*.part"):
        partial.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`, durably."""
    with replaced(path) as partial:
        partial.write_bytes(content)


def plain(value: Any) -> Any:
    """What JSON can say of a value: nan and infinities, which it does not have, are null."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace `path` by `content` as JSON, durably."""
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The file's JSON object; None where there is none, whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def from_workspace(path: str) -> Path:
    """A path that a study names, from the workspace around the working directory: the book's pages and notebooks run in
    a folder inside it. What the working directory itself has of that name comes first."""
    named = Path(os.path.expanduser(path))  # `~name` of an unknown user stays as it is
    root = workspace_around(Path.cwd())
    if named.is_absolute() or os.path.exists(named) or root is None or root == Path.cwd():
        return named
    return Path(os.path.relpath(root / named))


def workspace_around(folder: Path) -> Path | None:
    """The nearest workspace at this folder or above it: a folder that holds a study, runs/NAME/study.yaml."""
    return next((each for each in (folder, *folder.parents) if any(each.glob(f"runs/*/{STUDY_FILE}"))), None)


def workspace(root: Path | str | None = None) -> Path:
    """`root`, else the nearest workspace at or above the working directory. Raises SpecError where there is none."""
    start = Path.cwd() if root is None else Path(root).absolute()
    found = workspace_around(start)
    if found and (root is None or found == start):
        return found
    where = "at or above the working directory" if root is None else f"as --root ({root})"
    raise SpecError(
        f"no workspace {where}: a folder that holds a study, runs/NAME/{STUDY_FILE}; `fpt init` begins one, and --root "
        "names one that lies elsewhere"
    )


def study_folder(runs: Path, name: str) -> Path:
    """`runs/<name>`; names are bare folder names, so that no study reaches outside `runs`."""
    existing = [path.parent.name for path in runs.glob(f"*/{STUDY_FILE}") if NAME.fullmatch(path.parent.name)]
    check_known("study", name, existing, f"folders of {runs.name} with a {STUDY_FILE}; names of A-Z a-z 0-9 . _ -")
    return runs / name


def sha256(path: str | os.PathLike[str], kind: type[FptError] = DataError) -> str:
    """SHA-256 of a file (hex). Raises an error of this `kind` where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise kind(f"{path}: cannot be read ({error.strerror}).") from error


def state_of(path: Path) -> State:
    """Size and time of change of a file: while they stay, it is taken for the same. None where there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def known_sha256(path: Path, kind: type[FptError] = DataError) -> str:
    """SHA-256 of a file (hex), read once for as long as its size and time of change stay as they are. Errors as those
    of `sha256`."""
    try:
        return _known_sha256(path.absolute(), state_of(path))
    except DataError as error:
        raise kind(str(error)) from error


def check_sha256(path: Path, expected: str, advice: str, kind: type[FptError] = DataError) -> None:
    """Refuse, by an error of this `kind`, a file of another SHA-256 (hex) than is `expected`. It stays as it is."""
    if (found := known_sha256(path, kind)) != expected:
        raise kind(f"{path} is altered or incomplete: expected SHA-256 {expected}, found {found}; {advice}")


@cache
def _known_sha256(path: Path, state: State) -> str:
    return sha256(path)


def cache_folder() -> Path:
    """Of data, weights and measurements: fpt in $XDG_CACHE_HOME, else ~/.cache/fpt."""
    named = os.environ.get("XDG_CACHE_HOME")
    return Path(os.path.expanduser(named) if named else home() / ".cache", "fpt")


def home() -> Path:
    """The user's home; a temporary folder for a user that the system does not know, as in some containers."""
    found = os.path.expanduser("~")
    return Path(tempfile.gettempdir(), f"fpt-home-{os.getuid()}") if found.startswith("~") else Path(found)


def check_writable(folder: Path) -> None:
    """Refuse (FptError) a folder in which no file can be made."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(2**16))  # a disk may be full
    except OSError as error:
        raise FptError(f"{folder} cannot be written: {error.strerror}") from None


def check_fits(size: int, place: str) -> None:
    """DataError for data of so many bytes, once they are read, for which the memory of this machine has no room now."""
    import psutil

    if size > (free := psutil.virtual_memory().available):
        raise DataError(f"{place} takes {size / 2**30:,.1f} GiB of memory, and {free / 2**30:,.1f} GiB are free.")
