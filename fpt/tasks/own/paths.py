"""Which file or folder the name of a task means, and the checksum of what lies there. No torch here."""

import hashlib
import os
from pathlib import Path

from fpt.errors import DataError, SpecError
from fpt.files import from_workspace, known_sha256
from fpt.tasks.catalogue import TASKS

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
# Folders in which programs keep copies, beside those that begin with a dot or with @
COPIES = ("__macosx", "#recycle", "#snapshot", "$recycle.bin", "system volume information", "lost+found")


def own_kind(name: object) -> str:
    """What stands before the colon of a task of your own data: npz, folder or csv; empty for every other task."""
    kind, colon, _ = name.partition(":") if isinstance(name, str) else ("", "", "")
    return kind if colon and f"{kind}:PATH" in TASKS else ""


def own_path(name: str) -> Path:
    """The file or folder of a task `npz:PATH`, `folder:PATH` or `csv:PATH`."""
    return from_workspace(name.partition(":")[2])


def check_there(name: str, what: str) -> None:
    """SpecError unless there is such a file, or such a folder, under a name that a study can have."""
    path = own_path(name)
    there = os.path.isdir if what == "folder" else os.path.isfile  # of a name that is too long they say no
    if not there(path):
        raise SpecError(f"no {what} {path}. Put it back, or name another: {own_kind(name)}:PATH.")
    if any("\ud800" <= letter <= "\udfff" for letter in str(path)):  # bytes of the file system that are no text
        raise SpecError(f"this name is no UTF-8, in which studies are written; rename the {what}.")


def own_checksum(name: str) -> str:
    """SHA-256 (hex) of your own data: of the file; of a folder over the names, which may be no UTF-8, and the contents
    of its images."""
    path = own_path(name)
    if own_kind(name) != "folder":
        return known_sha256(path)
    total = hashlib.sha256()
    for file in images_below(path):
        total.update(os.fsencode(f"{file.relative_to(path).as_posix()} {known_sha256(file)}\n"))
    return total.hexdigest()


def images_below(path: Path) -> list[Path]:
    """Every image in a folder and the folders in it, sorted. Raises DataError as `files_below`, and for a pipe, whose
    reader would wait for ever, or a link to nothing."""
    found = [file for file in files_below(path) if file.suffix.lower() in IMAGES]
    for file in found:
        if not file.is_file():
            raise DataError(f"{file} is no file with an image: it is a pipe, a device, or a link to nothing")
    return found


def files_below(path: Path, left: list[str] | None = None) -> list[Path]:
    """Every file in a folder and the folders in it, sorted, links followed. What is hidden is not there: programs keep
    copies in such files and folders. `left` takes the names of those that do not begin with a dot.

    Raises DataError for a folder that cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise DataError(f"{error.filename} cannot be read ({error.strerror})")

    found: list[Path] = []
    for folder, inside, files in os.walk(path, onerror=refuse, followlinks=True):
        here = Path(folder)
        above = [each.resolve() for each in (here, *here.parents)]
        for name in inside[:]:
            target = (here / name).resolve()
            if is_hidden(name):
                inside.remove(name)
                if left is not None and not name.startswith("."):
                    left.append(name)
            elif any(each.is_relative_to(target) for each in above):  # a link in a circle
                inside.remove(name)
        found += [here / file for file in files if not file.startswith(".")]
    return sorted(found)


def is_hidden(name: str) -> bool:
    """Whether a folder of this name is none of the reader's: of the system, of a photo library, of a network drive."""
    return name.startswith(".") or (name.startswith("@") and len(name) > 1) or name.lower() in COPIES
