"""Files that appear whole or not at all, their checksums, and the folder of what can be made or fetched again."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fpt.errors import DataError, FptError


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A partial file to write; it takes the place of `path` at the end: after a crash at any moment the file is the
    old one or the new one, never half of either. An error leaves the old one and removes the partial one. Each process
    has a partial file of its own; that of a process that was killed stays, until `remove_partial`."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
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


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace `path` by `content` as JSON, durably."""
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The file's JSON object; None where there is none, whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def from_workspace(path: str) -> Path:
    """A path that a study names, from the workspace: the working directory, or the folder above it. The pages of the
    book run in a folder of the workspace, and so do notebooks that are started by hand."""
    named = Path(os.path.expanduser(path))  # of a user whom nobody knows it stays `~name`
    above = Path("..", named)  # the path itself, if it is absolute
    return above if above.exists() and not named.exists() else named


def sha256(path: str | os.PathLike[str], kind: type[FptError] = DataError) -> str:
    """SHA-256 of a file (hex). Raises an error of this `kind` where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise kind(f"{path}: cannot be read ({error.strerror}).") from error


def known_sha256(path: Path) -> str:
    """The same (DataError), read once for as long as the file's size and time of change stay as they are."""
    state = (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None
    return _known_sha256(path.absolute(), state)


@cache
def _known_sha256(path: Path, state: tuple[int, int] | None) -> str:
    return sha256(path)


def cache_folder() -> Path:
    """Of data, weights and measurements: fpt in $XDG_CACHE_HOME, else ~/.cache/fpt."""
    return Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache"), "fpt")


def check_writable(folder: Path) -> None:
    """Refuse (FptError) a folder in which no file can be made."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0")  # a disk may be full
    except OSError as error:
        raise FptError(f"{folder} cannot be written: {error.strerror}") from None
