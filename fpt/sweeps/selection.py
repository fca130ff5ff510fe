"""Choosing a sweep's learning rate from its selection stage, on validation accuracy alone."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Selection:
    """The selected rate (None if no rate is eligible) and what qualifies it.

    `eligible`: rates whose every seed stayed finite. `at_edge`: the selected rate ends the grid.
    `within_one_se`: eligible rates whose mean is within one standard error of the best mean.
    """

    rate: float | None
    at_edge: bool
    within_one_se: list[float]
    eligible: list[float]


def select(runs: "pd.DataFrame") -> Selection:
    """The rate with the best mean validation accuracy over seeds, ties to the smaller.

    `runs`: columns learning_rate, validation_accuracy, diverged_at; one row per run of the selection stage.
    """
    finite = runs["diverged_at"].isna() & runs["validation_accuracy"].notna()
    stayed = finite.groupby(runs["learning_rate"]).all()
    grid = sorted(float(rate) for rate in stayed.index)
    eligible = [rate for rate in grid if stayed[rate]]
    if not eligible:
        return Selection(None, False, [], [])
    accuracy = runs.groupby("learning_rate")["validation_accuracy"]
    mean = accuracy.mean().round(12)  # equal counts in another order add up differently: a tie must stay one
    error = accuracy.sem().fillna(0.0)  # one seed has no standard error
    best = max(eligible, key=lambda rate: (mean[rate], -rate))
    within = [rate for rate in eligible if mean[rate] >= mean[best] - error[best] - 1e-12]
    return Selection(best, best in (grid[0], grid[-1]), within, eligible)
