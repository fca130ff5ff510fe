"""How results look: figures, tables, claim cards, the explorer, the report. Importing it imports no torch."""

from fpt.show.attention import attention_of
from fpt.show.best_rates import lora_ratios, rate_ratios, valleys
from fpt.show.charts import by_budget, by_rate, dots, plane
from fpt.show.explore import explorer, setups
from fpt.show.figures import budget_figure, learning_rate_figure
from fpt.show.findings import cards, forest, word
from fpt.show.html import CaptionedFigure, Folded, Page, Table
from fpt.show.kept import from_notebook
from fpt.show.ladder import printed_ladder, printed_places
from fpt.show.pairs import best_of
from fpt.show.places import PAIRS, Place, newest, rates_table, signs
from fpt.show.planes import crossing_figure, plane_figure
from fpt.show.provenance import recipe_table, record_table
from fpt.show.reference import (
    architectures_table,
    arms_table,
    backbones_table,
    downloads,
    kept_table,
    model_cards,
    named_on_pages,
    parameters,
    parameters_table,
    records,
    sizes_table,
    slips_table,
    studies_table,
    task_card,
    tasks_table,
    time_of,
)
from fpt.show.report_page import report
from fpt.show.said import leads, open_, say, trails
from fpt.show.spread import spread_of
from fpt.show.steps import OverSteps, ends_table, over_steps, ratios_table
from fpt.show.tables import summary
from fpt.show.texts import texts_by_rate, texts_table
from fpt.show.yours import yours_beside_ours, yours_table

__all__ = [
    "PAIRS", "CaptionedFigure", "Folded", "OverSteps", "Page", "Place", "Table", "architectures_table", "arms_table",
    "attention_of", "backbones_table", "best_of", "budget_figure", "by_budget", "by_rate", "cards", "crossing_figure",
    "dots", "downloads", "ends_table", "explorer", "forest", "from_notebook", "kept_table", "leads",
    "learning_rate_figure", "lora_ratios", "model_cards", "named_on_pages", "newest", "open_", "over_steps",
    "parameters", "parameters_table", "plane", "plane_figure", "printed_ladder", "printed_places", "rate_ratios",
    "rates_table", "ratios_table", "recipe_table", "record_table", "records", "report", "say", "setups", "signs",
    "sizes_table", "slips_table", "spread_of", "studies_table", "summary", "task_card", "tasks_table", "texts_by_rate",
    "texts_table", "time_of", "trails", "valleys", "word", "yours_beside_ours", "yours_table",
]  # fmt: skip
