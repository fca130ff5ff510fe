"""Refuses to build the book where runs/claims.csv was computed from other results than those that are published."""

from pathlib import Path
from typing import Any

from sphinx.errors import ConfigError

from fpt.claims.verdicts import check_digest
from fpt.errors import FptError

ROOT = Path(__file__).parents[2]


def refuse_old_verdicts(app: Any, config: Any) -> None:
    """Raises ConfigError, which ends the build before any page is read."""
    try:
        check_digest(ROOT)
    except FptError as error:
        raise ConfigError(str(error)) from None


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", refuse_old_verdicts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
