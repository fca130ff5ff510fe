"""What several pages of the book compute, kept in the folder that FPT_CACHE names; without it nothing is written.

A file is named by a hash of all that its content follows from, so it is never out of date.
"""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from fpt import papers
from fpt.files import write_atomically
from fpt.results.cells import StudyCells
from fpt.sweeps.ledger import RESULT
from fpt.sweeps.study_file import FILE

PACKAGE = Path(__file__).parents[1]
SOURCES = (".py", ".yaml", ".json")
LIBRARIES = ("numpy", "pandas", "pydantic", "scipy", "statsmodels", "torch", "transformers")
T = TypeVar("T")


def is_on() -> bool:
    return bool(os.environ.get("FPT_CACHE"))


def kept(kind: TypeAdapter[T], follows_from: Iterable[Path | str], make: Callable[[], T]) -> T:
    """What `make` gives of these files and words, by the package as it is; made where it is not there yet.

    Of several processes that ask at once, one makes it and the others wait.
    """
    if not is_on():
        return make()
    hashed = hashlib.sha256(_package())
    for each in sorted(follows_from, key=str):
        hashed.update(_digest(each) if isinstance(each, Path) else hashlib.sha256(each.encode()).digest())
    path = Path(os.environ["FPT_CACHE"]) / f"{hashed.hexdigest()[:32]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # which the kernel drops with the process
        if not path.is_file():
            write_atomically(path, kind.dump_json(make()))
    return kind.validate_json(path.read_bytes())


def files_of(study: StudyCells) -> list[Path]:
    """All that the cells of a study follow from: the study itself, and the records and tables of its results."""
    folders = [sweep.folder for sweep in study.results.values()]
    tables = [file for folder in folders for file in folder.glob("*.parquet")]
    return [study.folder / FILE, *(folder / RESULT for folder in folders), *tables]


@cache
def _package() -> bytes:
    """A hash of this package, of the papers and of the libraries that it computes with."""
    hashed = hashlib.sha256(" ".join(version(name) for name in LIBRARIES).encode())
    for folder in dict.fromkeys([PACKAGE, *papers.FOLDERS]):
        for path in sorted(path for path in folder.rglob("*") if path.suffix in SOURCES):
            hashed.update(_digest(path))
    return hashed.digest()


def _digest(path: Path) -> bytes:
    """Of a file's name, its folder's, and its content."""
    return hashlib.sha256("/".join(path.parts[-2:]).encode()).digest() + hashlib.sha256(path.read_bytes()).digest()
