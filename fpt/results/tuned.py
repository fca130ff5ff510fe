"""An arm of anybody's table, tuned: what its seeds choose, what they score there, and what if one had not been run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fpt.results.stats import MINIMUM_PAIRS, pseudo_values
from fpt.results.table import Runs
from fpt.sweeps import selection

Array = np.ndarray[Any, Any]
ROUNDING = 1e-9  # relative: where no choice changes, pseudo-values are the values but for this


@dataclass(frozen=True)
class Reading:
    """What an arm scored by seed, at the settings at which it is read.

    `left_out`: by seed, the mean of the others as if this one had never been run; None where no seed chose anything.
    `collapsed`: whether a run lies so far below the median of its own setting that sign flips take the t-test's place.
    `right`: the scores of examples, seeds x examples.
    """

    scores: Array
    left_out: Array | None = None
    collapsed: bool = False
    right: Array | None = None


@dataclass(frozen=True)
class Tuned:
    """An arm with its choices: by seed the setting that the other seeds choose, and the best one over all seeds."""

    runs: Runs
    choices: "pd.Series[float]"
    common: float
    tuned: Reading
    fixed: Mapping[float, Reading] = field(default_factory=dict)

    @property
    def at_common(self) -> Reading | None:
        return self.fixed.get(self.common)


def tuned(runs: Runs, lower_is_better: bool, collapse: float | None) -> Tuned:
    """An arm with what its seeds choose. A single setting is no choice, even where a run diverged at it.

    `collapse`: how far behind the median of its setting a run has collapsed; None: never.
    """
    behind = (runs.scores - runs.scores.median()).to_numpy(float) * (-1 if lower_is_better else 1)
    lost = behind < (-math.inf if collapse is None else -collapse)
    places = runs.scores.columns
    fixed = {float(place): _reading(runs, pd.Series(float(place), runs.scores.index), lost) for place in places}
    if len(places) == 1:
        (place,) = fixed
        return Tuned(runs, pd.Series(place, runs.scores.index), place, fixed[place], fixed)
    choices = selection.choices(runs.validation)
    best = selection.best_rate(runs.validation)
    tuned = _reading(runs, choices, lost, left_out_means(runs.validation, runs.scores))
    return Tuned(runs, choices, math.nan if best is None else best, tuned, fixed)


def _reading(runs: Runs, choices: "pd.Series[float]", lost: Array, left_out: Array | None = None) -> Reading:
    """The scores at each seed's setting; nan where it has none. `lost`: the runs that collapsed, seeds x settings."""
    seeds, picked = np.arange(len(choices)), runs.scores.columns.get_indexer(pd.Index(choices))
    values = np.where(picked < 0, math.nan, runs.scores.to_numpy(float)[seeds, picked])
    right = None if runs.right is None else runs.right[seeds, picked]
    return Reading(values, left_out, bool(lost[seeds, picked].any()), right)


def left_out_means(validation: pd.DataFrame, scores: pd.DataFrame) -> Array:
    """By seed, the mean of the tuned scores of the others if this one had never been run, and had chosen nothing."""
    held = validation[_in_reach(validation)]
    kept, values = held.to_numpy(float), scores[held.columns].to_numpy(float)
    n = len(kept)
    if n < MINIMUM_PAIRS or held.columns.empty:
        return np.full(n, math.nan)
    if held.shape[1] == 1:
        return means_of_others(values[:, 0])
    found = np.full(n, math.nan)
    for seed in range(n):
        others = np.delete(np.arange(n), seed)
        choices = selection.choices(pd.DataFrame(kept[others], columns=held.columns)).to_numpy(float)
        known = np.flatnonzero(~np.isnan(choices))
        picked = values[others[known], held.columns.get_indexer(pd.Index(choices[known]))]
        picked = picked[~np.isnan(picked)]
        found[seed] = picked.mean() if len(picked) else math.nan
    return found


def _in_reach(validation: pd.DataFrame) -> list[Any]:
    """The settings that some seed may choose when one other is left out; the others are no part of any choice.

    Two seeds are missing from such a mean at most. So a setting is out of reach where three runs diverged, and where
    its sum is further from the best one than two seeds can bring it. This spares many seeds their many choices.
    """
    values = validation.to_numpy(float)
    whole = ~np.isnan(values).any(axis=0)
    near = np.isnan(values).sum(axis=0) <= 2
    if whole.any():
        sums = np.where(whole, np.where(whole, values, 0).sum(axis=0), -np.inf)
        best = int(sums.argmax())
        reach = 2 * (values[:, [best]] - values).max(axis=0) + ROUNDING * np.abs(values[:, best]).sum()
        near &= ~whole | (sums[best] - sums <= reach)
    return list(validation.columns[near])


def means_of_others(values: Array) -> Array:
    """By seed, the mean of the other seeds."""
    found: Array = (values.sum() - values) / (len(values) - 1)
    return found


def tuned_spread(values: Array, left_out: Array | None) -> Array:
    """What a tuned interval goes by: the values by seed, or where these vary more the pseudo-values of the jackknife
    (Tukey 1958), one per seed, whose mean is that of the values. A choice that hangs on single seeds widens them."""
    if left_out is None or len(values) < MINIMUM_PAIRS or np.isnan(left_out).any():
        return values
    pseudo = pseudo_values(float(values.mean()), left_out)
    return pseudo if pseudo.std() > (1 + ROUNDING) * values.std() else values
