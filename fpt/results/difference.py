"""Differences between what arms reached: sums of arms at a rate and a budget, paired by seed."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from fpt.results.arm import Arm, same_rate
from fpt.results.estimate import Estimate
from fpt.results.stats import MINIMUM_PAIRS, example_noise, paired

Point = tuple[Arm, str | float, int | None]  # an arm, and the rate and the budget at which it is read


def paired_difference(
    plus: Sequence[Point], minus: Sequence[Point] = (), less: float = 0.0, noise: float = 0.0
) -> Estimate:
    """The sum of the values of some cells minus that of others and the number `less` (of variance `noise`), by seed.

    By sign flips where a run collapsed. What is read twice on one side brings the noise of its test set twice. Where
    each cell has the answers of its runs to the same examples, that noise is paired over these (`example_noise`). Where
    one is read tuned, the seeds hang together by their choices, and a jackknife chooses anew without each of them.
    """
    first, second = total(plus), total(minus, less)
    read: dict[tuple[str, str | float, int | None], tuple[Arm, int]] = {}  # each once, with how often it counts
    for sign, points in ((1, plus), (-1, minus)):
        for cell, at, budget in points:
            _, times = read.get((cell.name, at, budget), (cell, 0))
            read[cell.name, at, budget] = cell, times + sign
    collapsed = any(cell.collapsed(at, budget).any() for (_, at, budget), (cell, _) in read.items())
    counted = [((cell, at, budget), times) for (_, at, budget), (cell, times) in read.items() if times]
    without: Any = None
    if any(cell.chooses(at) for (cell, at, _), _ in counted):
        without = sum((times * cell.without(at, budget) for (cell, at, budget), times in counted), -less)
    apart = _apart(counted, lambda: (first - second).dropna().index)
    if apart is not None:
        return paired(first, second, collapsed, noise + example_noise(apart), without)
    noise += sum(times**2 * cell.test_noise(at, budget) for (cell, at, budget), times in counted)
    return paired(first, second, collapsed, noise, without)


def _apart(counted: Sequence[tuple[Point, int]], seeds: Callable[[], Any]) -> pd.DataFrame | None:
    """How far cells are apart on each test example, seeds x examples; None where one lacks the answer of a seed, and
    where they do not have the same examples."""
    right = [(cell.right(at, budget), times) for (cell, at, budget), times in counted]
    if not right or any(each.empty for each, _ in right):
        return None
    rows = seeds()
    if len(rows) < MINIMUM_PAIRS:
        return None
    first, *others = (times * each for each, times in right)
    apart: pd.DataFrame = sum(others, first).reindex(rows)
    return None if apart.shape[1] < 2 or apart.isna().to_numpy().any() else apart


def total(points: Sequence[Point], start: float = 0.0) -> Any:
    """The sum of a number and of what cells have at these places, by seed; nan where one has no run."""
    values = [cell.values(at, budget) for cell, at, budget in points]
    return values[0] if len(values) == 1 and not start else sum(values, start)


def shared_rates(*arms: Arm) -> list[float]:
    """The rates of the first arm's grid that all of them have, ascending."""
    shared, *others = (sorted(each.rates) for each in arms)
    for grid in others:
        shared = [rate for rate in shared if same_rate(grid, rate).any()]
    return shared
