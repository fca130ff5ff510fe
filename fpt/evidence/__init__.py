"""What the runs show: tidy tables, intervals, verdicts, figures. Importing it does not import torch."""

from fpt.evidence.arithmetic import lstm_table, parameter_table, size_table, spread_figure
from fpt.evidence.attention import attention_figure, attention_rulings, attention_table, attention_to_see
from fpt.evidence.baselines import baseline_scores, linear_score
from fpt.evidence.claims import Verdict, claim, headline, verdict_table
from fpt.evidence.exhibits import (
    experiment_figure,
    experiment_table,
    printed_table,
    ruling_table,
    title,
    what_to_see,
    what_was_run,
)
from fpt.evidence.experiments import Results, experiment, experiments, load_results
from fpt.evidence.ordering import ordering_table
from fpt.evidence.overview import claims_table, lu_rulings, other_claims_table, tally
from fpt.evidence.rulings import Ruling, rulings
from fpt.evidence.runs import find_study, load_attention, load_curves, load_plan, load_runs, studies, sweeps_table
from fpt.evidence.show.figures import (
    alt_text,
    budget_figure,
    curves_figure,
    difference_figure,
    gain_figure,
    learning_rate_figure,
)
from fpt.evidence.show.html import Picture, Table
from fpt.evidence.show.tables import (
    beside_paper,
    beside_published,
    budget_table,
    paper_table,
    protocol_table,
    summary,
    table_one,
)

__all__ = [
    "Picture",
    "Results",
    "Ruling",
    "Table",
    "Verdict",
    "alt_text",
    "attention_figure",
    "attention_rulings",
    "attention_table",
    "attention_to_see",
    "baseline_scores",
    "beside_paper",
    "beside_published",
    "budget_figure",
    "budget_table",
    "claim",
    "claims_table",
    "curves_figure",
    "difference_figure",
    "experiment",
    "experiment_figure",
    "experiment_table",
    "experiments",
    "find_study",
    "gain_figure",
    "headline",
    "learning_rate_figure",
    "linear_score",
    "load_attention",
    "load_curves",
    "load_plan",
    "load_results",
    "load_runs",
    "lstm_table",
    "lu_rulings",
    "ordering_table",
    "other_claims_table",
    "paper_table",
    "parameter_table",
    "printed_table",
    "protocol_table",
    "ruling_table",
    "rulings",
    "size_table",
    "spread_figure",
    "studies",
    "summary",
    "sweeps_table",
    "table_one",
    "tally",
    "title",
    "verdict_table",
    "what_to_see",
    "what_was_run",
]
