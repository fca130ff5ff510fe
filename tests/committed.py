"""What the repository has. A reader's own study in runs/ is no part of it, and no test judges it."""

import functools
import re
import subprocess
from pathlib import Path

from fpt.sweeps import Study, load_study

ROOT = Path(__file__).parents[1]


@functools.cache
def tracked() -> list[Path]:
    """Files that git has or would take, of runs/ only those that it has; outside a checkout, all but hidden folders and
    what was built."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--exclude=/runs/"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    names = listing.stdout.split("\0")
    if listing.returncode:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
        names = [name for name in names if not re.search(r"(^|/)(\.(?!ci|github)|_build|__pycache__)", name)]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def studies() -> dict[str, Path]:
    """The folders of the repository's studies, by name."""
    folders = sorted(path.parent for path in tracked() if path.match("runs/*/study.yaml"))
    return {folder.name: folder for folder in folders}


@functools.cache
def loaded(name: str) -> Study:
    """A study of the repository."""
    return load_study(studies()[name])


def benches() -> list[Path]:
    """The repository's files of `fpt bench`."""
    return sorted(path for path in tracked() if path.match("runs/bench/published/*.json"))
