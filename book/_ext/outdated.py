"""Says when a page must be executed again: when the page changed, or anything that its numbers are computed from."""

import hashlib
import os
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
READ = (  # of a study its file and its published sweeps: own sweeps, logs and reports are on no page
    "book/_ext/**/*", "book/_templates/**/*", "book/_toc.yml", "book/tables/*", "fpt/**/*", "notebooks/*.ipynb",
    "runs/*", "runs/*/study.yaml", "runs/*/published/**/*", "runs/architectures/*.json",
)  # fmt: skip
SETTINGS = ("FPT_DATA", "FPT_WEIGHTS")


def computed_from() -> str:
    """A hash of the package with its weights, the published runs, the notebooks, what builds the pages, the installed
    libraries, and what the environment says of data and results. Weights and data that lie elsewhere are not read:
    `make clean` forgets pages.
    """
    libraries = sorted({f"{each.name} {each.version}" for each in distributions()})
    hashed = hashlib.sha256(repr((libraries, list(map(os.environ.get, SETTINGS)))).encode())
    found = {path for pattern in READ for path in ROOT.glob(pattern) if path.is_file() and path.suffix != ".pyc"}
    for path in sorted(found):
        hashed.update(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return hashed.hexdigest()


def setup(app: Any) -> dict[str, bool]:
    app.add_config_value("computed_from", "", "env")  # "env": when it changes, every page is read again
    app.connect("config-inited", lambda app, config: setattr(config, "computed_from", computed_from()))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
