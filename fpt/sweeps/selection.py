"""The tuned learning rate of each seed, chosen by validation accuracy on the other seeds: leave one seed out.

Thus no run takes part in choosing its own rate, and every run is reported (Varma and Simon 2006 call this nested
validation). Tables here hold validation accuracies, seeds x rates; nan where a run was not finite.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fpt.seeds import stream

if TYPE_CHECKING:
    import pandas as pd

SAME_RATE = 1e-6  # relative: rates went through YAML, JSON and parquet
SAME_MEAN = 1e-12  # relative: below it two means are a tie
ONE_AND_THREE = (1.0, 3.0)  # first digits of a grid of half decades
QUARTERS = (1.0, 1.8, 3.0, 5.6)  # and of quarter decades


def by_seed(runs: "pd.DataFrame") -> "pd.DataFrame":
    """The table of `runs` (learning_rate, seed, validation_accuracy, diverged_at) at their end."""
    finite = runs["validation_accuracy"].where(runs["diverged_at"].isna())
    return runs.assign(finite=finite).pivot(index="seed", columns="learning_rate", values="finite")


def macro_by_seed(runs: "pd.DataFrame", answers: "pd.DataFrame") -> "pd.DataFrame":
    """The same of macro accuracy on validation, the mean over classes of the share of a class's examples that is right:
    `best_rate` of it is the rate of a few tuning seeds. `answers`: learning_rate, seed, part, target, predicted."""
    held = answers[answers["part"] == "validation"]
    right = held["predicted"].eq(held["target"]).groupby([held[name] for name in ("seed", "learning_rate", "target")])
    macro = right.mean().groupby(level=["seed", "learning_rate"]).mean().unstack()
    return macro.where(by_seed(runs).reindex_like(macro).notna())


def chosen_by_few(runs: "pd.DataFrame", answers: "pd.DataFrame", labels: int, draws: int = 1000) -> "pd.Series[float]":
    """The rate that so many validation texts a class would have chosen, once for each of so many `draws`: each draws
    the texts of one seed anew, without replacement, and takes the rate of the best accuracy on them, ties to the
    smaller. Tables as those of `macro_by_seed`; every class has as many texts in the validation part of each seed.
    """
    import pandas as pd

    held = answers[answers["part"] == "validation"]
    finite = eligible(by_seed(runs)).columns
    source, chosen = np.random.default_rng(stream(0, "few labels")), []
    right = held.assign(right=held["predicted"].eq(held["target"]))
    by_text = right.pivot(index=["seed", "target", "example"], columns="learning_rate", values="right")[finite]
    assert by_text.groupby(level=["seed", "target"]).size().min() >= labels, f"a class has fewer than {labels} texts"
    seeds = [by_text.loc[seed] for seed in by_text.index.unique("seed")]
    for draw in range(draws):
        texts = seeds[draw % len(seeds)]
        drawn = texts.iloc[source.permutation(len(texts))].groupby(level="target").head(labels)
        chosen += _best(drawn.columns.to_numpy(float), drawn.to_numpy(float).mean(0, keepdims=True))
    return pd.Series(chosen, name="learning_rate")


def eligible(validation: "pd.DataFrame") -> "pd.DataFrame":
    """The rates at which every seed stayed finite, in ascending order."""
    return validation.sort_index(axis=1).dropna(axis=1)


def best_rate(validation: "pd.DataFrame") -> float | None:
    """The rate with the best mean over all seeds, ties to the smaller; None if no rate is eligible."""
    finite = eligible(validation)
    if finite.columns.empty:
        return None
    return _best(finite.columns.to_numpy(float), finite.to_numpy(float).mean(0, keepdims=True))[0]


def choices(validation: "pd.DataFrame") -> "pd.Series[float]":
    """By seed: the best rate of the other seeds, nan if none is eligible. A seed alone is chosen on itself."""
    import pandas as pd

    grid = validation.sort_index(axis=1)
    return pd.Series(_choices(grid.to_numpy(float), grid.columns.to_numpy(float)), index=grid.index, dtype=float)


def _choices(values: "np.ndarray[Any, Any]", rates: "np.ndarray[Any, Any]") -> list[float]:
    lost, means = np.isnan(values), values
    if len(values) > 1:
        means = _sums_of_others(np.where(lost, 0.0, values)) / (len(values) - 1)
        lost = lost.sum(axis=0) - lost > 0
    return _best(rates, np.where(lost, -np.inf, means))


def tuned_without(validation: "pd.DataFrame", plane: "pd.DataFrame") -> "pd.DataFrame":
    """The tuned values of a plane (seeds x rates) without one seed, whose runs then take part in no choice: the seed
    that is left out x the seeds; nan for itself, and where no rate is eligible."""
    import pandas as pd

    grid = validation.sort_index(axis=1)
    validated, rates = grid.to_numpy(float), grid.columns.to_numpy(float)
    values = plane.reindex_like(grid).to_numpy(float)
    found = np.full((len(grid), len(grid)), math.nan)
    for seed in range(len(grid)):
        others = np.delete(np.arange(len(grid)), seed)
        chosen = np.array(_choices(validated[others], rates))
        own = values[others, rates.searchsorted(chosen) % len(rates)]
        found[seed, others] = np.where(np.isnan(chosen), math.nan, own)
    return pd.DataFrame(found, grid.index, grid.index)


def chosen(validation: "pd.DataFrame") -> dict[str, Any]:
    """What the runs choose, as result.json records it: plain JSON values, null where no rate is eligible."""
    rates = choices(validation)
    return {
        "selected_rate": best_rate(validation),
        "choices": {str(seed): None if math.isnan(rate) else float(rate) for seed, rate in rates.items()},
        "at_edge": bool(ends(rates, validation)),
        "within_one_se": within_one_se(validation),
        "eligible": [float(rate) for rate in eligible(validation).columns],
    }


def _sums_of_others(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """By row, the sum of the other rows: added up, since taking a row off the sum of all would leave nothing of the
    others beside a score that is very much larger."""
    before, after = np.zeros_like(values), np.zeros_like(values)
    before[1:] = np.cumsum(values[:-1], axis=0)
    after[:-1] = np.cumsum(values[:0:-1], axis=0)[::-1]
    return before + after


def _best(grid: "np.ndarray[Any, Any]", means: "np.ndarray[Any, Any]") -> list[float]:
    """The rate of a grid with the best mean in each row of `means`; nan where none is finite. Equal counts in another
    order add up differently, so means that agree in twelve digits are a tie."""
    best = means.max(axis=1, keepdims=True)
    rates = grid[(means >= best - SAME_MEAN * np.abs(best)).argmax(axis=1)]
    rates[~np.isfinite(best[:, 0])] = math.nan
    return list(map(float, rates))


def ends(chosen: "pd.Series[float]", validation: "pd.DataFrame") -> set[str]:
    """The ends of the grid, "low" and "high", that some seed's choice is: beyond them a better rate may lie.

    The upper end is none where a run diverged at it, and a single rate was not chosen.
    """
    grid = sorted(validation.columns)
    if len(grid) < 2:
        return set()
    found = {"low"} if (chosen == grid[0]).any() else set()
    if (chosen == grid[-1]).any() and validation[grid[-1]].notna().all():
        found.add("high")
    return found


def within_one_se(validation: "pd.DataFrame") -> list[float]:
    """Eligible rates whose mean is within one standard error of the best mean."""
    finite = eligible(validation)
    if finite.columns.empty:
        return []
    values = finite.to_numpy(float)
    means = values.mean(0)
    error = values[:, means.argmax()].std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return [
        float(rate) for rate, mean in zip(finite.columns, means, strict=True) if mean >= means.max() - error - 1e-12
    ]


def beyond(rates: Sequence[float], end: str) -> float:
    """The next rate after the highest ("high") or lowest one of a grid, in its own steps.

    Half decades (1, 3, 10), unless every step of the grid is below a third of a decade: then quarters (1, 1.8, 3, 5.6).
    """
    ordered = sorted(rates)
    steps = [math.log10(high / low) for low, high in pairwise(ordered)]
    finest = bool(steps) and max(steps) < 1 / 3
    digits, least = (QUARTERS, 1.5) if finest else (ONE_AND_THREE, 2.0)
    rate = ordered[-1 if end == "high" else 0]
    decade = math.floor(math.log10(rate))
    # A product of powers of ten is not the number as it is written: 3e-05 and 3 * 10**-5 differ.
    grid = [float(f"{digit:g}e{decade + k}") for k in (-2, -1, 0, 1, 2) for digit in digits]
    if end == "high":
        return min(each for each in grid if each >= least * rate * (1 - SAME_RATE))
    return max(each for each in grid if each <= rate / least * (1 + SAME_RATE))
