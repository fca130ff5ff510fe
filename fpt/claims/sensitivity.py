"""What the whole grid of rates shows: how wide an arm's usable range is, and how far apart the best rates of two arms
are."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fpt.claims.by_rate import pairs_of_rates, refuted
from fpt.results.baselines import chance
from fpt.results.cells import Cell
from fpt.results.runs import SweepTables, same_rate
from fpt.results.stats import SIGNIFICANCE
from fpt.sweeps import selection

BETWEEN_RATES = 2001  # points at which a curve over the rates is read
Arm = np.ndarray[Any, Any]  # validation and test accuracy of an arm: 2 x seeds x rates


def usable(cell: Cell, within: float) -> tuple["pd.Series[float]", bool]:
    """The decades of rates at which the mean test accuracy is at most `within` (a fraction) below the tuned one; and
    whether they meet an end of the grid, beyond which there may be more.

    Mean accuracy is a line between neighbouring rates, over the logarithm of the rate; a run that diverged counts as
    chance. By seed: values whose mean is the width, and whose t-interval is the jackknife's (Tukey 1958), without its
    correction of the bias, which can leave a width below zero.
    """
    if cell.tables is None:
        return pd.Series(dtype=float), False
    seeds, places = cell.tables.validation().index, np.log10(cell.rates)
    arm = accuracies(cell, cell.tables, cell.rates, seeds)
    width, at_end = _width(arm, places, within)
    left_out = pd.Series([_width(np.delete(arm, k, axis=1), places, within)[0] for k in range(len(seeds))], seeds)
    return width + (len(seeds) - 1) * (left_out.mean() - left_out), at_end


def _width(arm: Arm, places: Arm, within: float) -> tuple[float, bool]:
    between = np.linspace(places[0], places[-1], BETWEEN_RATES)
    near = np.interp(between, places, arm[1].mean(axis=0)) >= tuned(arm).mean() - within
    return float(near.mean() * (places[-1] - places[0])), bool(near[0] or near[-1])


def accuracies(cell: Cell, tables: SweepTables, rates: Sequence[float], seeds: "pd.Index[int]") -> Arm:
    """At the last budget, of those rates in ascending order and of those seeds."""
    validation = tables.validation().sort_index(axis=1)
    tested = cell.plane().reindex_like(validation).where(validation.notna(), chance(cell.task))
    kept = [bool(same_rate(rates, rate).any()) for rate in validation]
    return np.stack([plane.loc[seeds, kept] for plane in (validation, tested)])


def tuned(arm: Arm) -> "pd.Series[float]":
    """By seed: test accuracy at the rate that the others choose; nan where none is eligible."""
    validation, tested = arm
    places = selection.choices(pd.DataFrame(validation)).to_numpy()  # rates by their places in the grid
    picked = tested[np.arange(len(tested)), np.nan_to_num(places).astype(int)]
    return pd.Series(np.where(np.isnan(places), np.nan, picked))


def ratio(over: Cell, under: Cell, budget: int | None = None) -> tuple[float, float, float]:
    """The best rate of one arm over that of another, by mean validation accuracy (nan where all rates diverged), and
    its 95% interval: the ratios of all pairs that are not refuted as the best (`by_rate.refuted`). 0 and infinity: an
    end of a grid bounds nothing."""
    one, two = (selection.best_rate(each.tables.validation(budget)) if each.tables else None for each in (over, under))
    pairs = pairs_of_rates(refuted(over, budget), refuted(under, budget))
    kept = np.array([(above, below) for above, below, p in pairs if p >= SIGNIFICANCE])
    if one is None or two is None or not len(kept):
        return math.nan, 0.0, math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = kept[:, 0] / kept[:, 1]
    if np.isnan(ratios).any():  # beyond the same end of both grids lie rates of any ratio
        return one / two, 0.0, math.inf
    return one / two, float(ratios.min()), float(ratios.max())
