"""What came out: runs as tidy tables, cells of a paper's tables, paired statistics. Importing it imports no torch."""

from fpt.results.baselines import baseline_scores, counted, floor, known_scores
from fpt.results.cells import StudyCells, every_study
from fpt.results.contrasts import arms_of, baseline, contrast, level
from fpt.results.runs import find_study, load_runs, studies, sweeps_table

__all__ = [
    "StudyCells",
    "arms_of",
    "baseline",
    "baseline_scores",
    "contrast",
    "counted",
    "every_study",
    "find_study",
    "floor",
    "known_scores",
    "level",
    "load_runs",
    "studies",
    "sweeps_table",
]
