"""Says when a page must be executed again: when the page changed, or anything that its numbers are computed from."""

import hashlib
import os
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PLACES = ("book/_ext", "book/_templates", "book/_toc.yml", "fpt", "runs")
SETTINGS = ("FPT_DATA", "FPT_WEIGHTS")
REPORT = "report.html"  # `fpt report` writes it after the book, from what the book reads; no page reads it
READS_EVERY_PAGE = "book/claims"  # it lists the places where each claim is shown


def computed_from() -> str:
    """A hash of the package with its weights, the runs, what builds the pages, the installed libraries, and what the
    environment says of data and results. Weights and data that lie elsewhere are not read: `make clean` forgets pages.
    """
    libraries = sorted({f"{each.name} {each.version}" for each in distributions()})
    hashed = hashlib.sha256(repr((libraries, list(map(os.environ.get, SETTINGS)))).encode())
    within = (path for place in PLACES for path in (ROOT / place, *(ROOT / place).rglob("*")))
    for path in sorted(path for path in within if path.is_file() and path.suffix != ".pyc" and path.name != REPORT):
        hashed.update(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return hashed.hexdigest()


def also(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    return [READS_EVERY_PAGE] if added | changed | removed else []


def setup(app: Any) -> dict[str, bool]:
    app.add_config_value("computed_from", "", "env")  # "env": when it changes, every page is read again
    app.connect("config-inited", lambda app, config: setattr(config, "computed_from", computed_from()))
    app.connect("env-get-outdated", also)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
