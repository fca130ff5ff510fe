"""What the runs show: tidy tables, cells, verdicts, and what a page shows of them. Importing it imports no torch.

A name is imported from its module when it is first asked for.
"""

from importlib import import_module
from typing import Any

PUBLIC = {  # module -> names that notebooks, pages and users rely on
    "runs": "find_study load_runs studies sweeps_table",
    "cells": "StudyCells every_study study_cells",
    "verdicts": "all_verdicts overall",
    "baselines": "baseline_scores counted floor known_scores",
    "show.html": "Folded Page Picture Table",
    "show.figures": "budget_figure learning_rate_figure",
    "show.planes": "crossing_figure plane_figure",
    "show.tables": "summary verdict_table",
    "show.provenance": "recipe_table record_table",
    "show.report": "report",
    "show.depth": "by_depth depth_figure depth_table",
    "show.numbers": "facts",
    "show.beside": "across_studies beside_paper printed_table",
    "show.explorer": "explorer setups",
    "show.exhibit": "at_papers_rate claim_list claims_of exhibit finding judged plane_exhibit verdicts_on",
}
_MODULES = {name: module for module, names in PUBLIC.items() for name in names.split()}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
