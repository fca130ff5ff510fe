"""What the runs show: tidy tables, intervals, verdicts, figures. Importing it does not import torch."""

from fpt.evidence.baselines import baseline_scores
from fpt.evidence.claims import Verdict, claim, headline, verdict_table
from fpt.evidence.figures import (
    alt_text,
    budget_figure,
    curves_figure,
    difference_figure,
    gain_figure,
    learning_rate_figure,
)
from fpt.evidence.page import Picture, Table
from fpt.evidence.results import find_study, load_curves, load_runs, studies, sweeps_table
from fpt.evidence.speed import bench_table, bench_targets, bench_words, load_benches, precision_table
from fpt.evidence.tables import beside_paper, beside_published, budget_table, paper_table, summary, table_one

__all__ = [
    "Picture",
    "Table",
    "Verdict",
    "alt_text",
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
    "find_study",
    "gain_figure",
    "headline",
    "learning_rate_figure",
    "load_benches",
    "load_curves",
    "load_runs",
    "paper_table",
    "precision_table",
    "studies",
    "summary",
    "sweeps_table",
    "table_one",
    "verdict_table",
]
