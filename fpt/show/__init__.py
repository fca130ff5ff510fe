"""How results look: figures, tables, claim cards, the explorer, the report. Importing it imports no torch.

A name is imported from its module when it is first asked for.
"""

from importlib import import_module
from typing import Any

PUBLIC = {  # module -> names that notebooks, pages and users rely on
    "said": "say",
    "kept": "from_notebook",
    "leads": "PAIRS Place by_compute leads_table newest rates_table signs",
    "ladder": "printed_ladder printed_places",
    "html": "Folded Page CaptionedFigure Table",
    "figures": "budget_figure learning_rate_figure",
    "charts": "by_budget by_rate dots plane",
    "best_rates": "rate_ratios valleys",
    "pairs": "Pair best_of less_evidence",
    "spread": "spread_of",
    "attention": "attention_of",
    "findings": "cards findings_table forest word",
    "planes": "crossing_figure plane_figure",
    "tables": "summary",
    "provenance": "recipe_table record_table",
    "reference": "architectures_table arms_table backbones_table downloads model_cards parameters parameters_table "
    "records sizes_table slips_table studies_table task_card time_of",
    "report_page": "report",
    "yours": "yours_beside_ours yours_table",
    "printed": "beside",
    "explore": "explorer setups",
}
_MODULES = {name: module for module, names in PUBLIC.items() for name in names.split()}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
