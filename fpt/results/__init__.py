"""What came out: runs as tidy tables, cells of a paper's tables, paired statistics. Importing it imports no torch.

A name is imported from its module when it is first asked for.
"""

from importlib import import_module
from typing import Any

PUBLIC = {  # module -> names that notebooks, pages and users rely on
    "runs": "find_study load_runs studies sweeps_table",
    "cells": "StudyCells every_study",
    "contrasts": "arms_of baseline contrast level",
    "baselines": "baseline_scores counted floor known_scores",
}
_MODULES = {name: module for module, names in PUBLIC.items() for name in names.split()}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
