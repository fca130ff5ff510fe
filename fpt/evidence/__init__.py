"""What the runs show: tidy tables, intervals, verdicts, figures. Importing it does not import torch."""

from fpt.evidence.attention import attention_maps, attention_table
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
from fpt.evidence.sizes import lstm_table, parameter_table, size_table, spread_figure
from fpt.evidence.speed import bench_table, bench_targets, bench_words, load_benches, plan_table, precision_table
from fpt.evidence.verdicts import all_verdicts, other_reading, overall, verdict

__all__ = [
    "Picture",
    "Results",
    "Ruling",
    "Table",
    "Verdict",
    "all_verdicts",
    "alt_text",
    "attention_maps",
    "attention_table",
    "baseline_scores",
    "bench_table",
    "bench_targets",
    "bench_words",
    "beside_paper",
    "beside_published",
    "budget_figure",
    "budget_table",
    "claim",
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
    "load_benches",
    "load_curves",
    "load_plan",
    "load_results",
    "load_runs",
    "lstm_table",
    "ordering_table",
    "other_reading",
    "overall",
    "paper_table",
    "parameter_table",
    "plan_table",
    "precision_table",
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
    "title",
    "verdict",
    "verdict_table",
    "what_to_see",
    "what_was_run",
]
