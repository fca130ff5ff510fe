"""Differences between what arms scored, paired by seed: the one way from scores to an estimate.

What is read of an arm is a `Reading`. The book's arms are read at a rate and a budget (`Point`), those of anybody's
table at a setting (fpt.results.table).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fpt.results.arm import Arm, same_rate
from fpt.results.estimate import Estimate
from fpt.results.stats import MINIMUM_PAIRS, example_noise, paired

Point = tuple[Arm, str | float, int | None]  # an arm, and the rate and the budget at which it is read


@dataclass(frozen=True, eq=False)
class Reading:
    """What an arm scored, and what an interval of it needs to know.

    `scores`: by seed. `without`: where seeds choose, what they score without one of them: the seed that is left out x
    the seeds; None where nothing is chosen. `right`: the scores of examples that all seeds share, seeds x examples;
    None where they are not known. `collapsed`: whether one of these runs did, so that signs are flipped in the
    t-test's place. `noise`: the variance that test examples add to the mean, where these scores are not known.
    """

    scores: "pd.Series[float]"
    without: pd.DataFrame | None = None
    right: pd.DataFrame | None = None
    collapsed: bool = False
    noise: float = 0.0

    @property
    def left_out(self) -> pd.DataFrame:
        """The scores without each seed, also where it takes part in no choice."""
        if self.without is not None:
            return self.without
        return pd.DataFrame({seed: self.scores.drop(seed) for seed in self.scores.index}, index=self.scores.index).T


def difference(
    plus: Sequence[Reading], minus: Sequence[Reading] = (), less: float = 0.0, noise: float = 0.0
) -> Estimate:
    """The sum of some readings minus that of others and the number `less` (of variance `noise`), by seed.

    By sign flips where a run collapsed. What is read twice on one side brings the noise of its test set twice. Where
    each reading has the scores of the same examples, that noise is paired over these (`example_noise`). Where seeds
    chose, they hang together by their choices, and a jackknife chooses anew without each of them.
    """
    first, second = _sum([each.scores for each in plus]), _sum([each.scores for each in minus], less)
    times: dict[Reading, int] = {}  # how often each counts
    for sign, readings in ((1, plus), (-1, minus)):
        for each in readings:
            times[each] = times.get(each, 0) + sign
    counted = {each: count for each, count in times.items() if count}
    without: Any = None
    if any(each.without is not None for each in counted):
        without = sum((count * each.left_out for each, count in counted.items()), -less)
    apart = _apart(counted, first - second)
    if apart is None:
        noise += sum(count**2 * each.noise for each, count in counted.items())
    else:
        noise += example_noise(apart)
    return paired(first, second, any(each.collapsed for each in times), noise, without)


def paired_difference(
    plus: Sequence[Point], minus: Sequence[Point] = (), less: float = 0.0, noise: float = 0.0
) -> Estimate:
    """The `difference` of arms at their rates and budgets; a place that is named twice is one reading."""
    places = {(arm.name, at, budget): (arm, at, budget) for arm, at, budget in (*plus, *minus)}
    readings = {place: _read(*point) for place, point in places.items()}
    sides = [[readings[arm.name, at, budget] for arm, at, budget in side] for side in (plus, minus)]
    return difference(sides[0], sides[1], less, noise)


def _read(arm: Arm, at: str | float, budget: int | None) -> Reading:
    right = arm.right(at, budget)
    return Reading(
        arm.values(at, budget),
        arm.without(at, budget) if arm.chooses(at) else None,
        None if right.empty else right,
        bool(arm.collapsed(at, budget).any()),
        arm.test_noise(at, budget),
    )


def _apart(counted: Mapping[Reading, int], by_seed: "pd.Series[float]") -> pd.DataFrame | None:
    """How far readings are apart on each test example, seeds x examples; None where one lacks the answer of a seed, and
    where they do not have the same examples."""
    right = [count * each.right for each, count in counted.items() if each.right is not None]
    if not right or len(right) < len(counted) or len(rows := by_seed.dropna().index) < MINIMUM_PAIRS:
        return None
    apart: pd.DataFrame = sum(right[1:], right[0]).reindex(rows)
    return None if apart.shape[1] < 2 or apart.isna().to_numpy().any() else apart


def total(points: Sequence[Point], start: float = 0.0) -> Any:
    """The sum of a number and of what arms have at these places, by seed; nan where one has no run."""
    return _sum([arm.values(at, budget) for arm, at, budget in points], start)


def _sum(values: Sequence["pd.Series[float]"], start: float = 0.0) -> Any:
    return values[0] if len(values) == 1 and not start else sum(values, start)


def shared_rates(*arms: Arm) -> list[float]:
    """The rates of the first arm's grid that all of them have, ascending."""
    shared, *others = (sorted(each.rates) for each in arms)
    for grid in others:
        shared = [rate for rate in shared if same_rate(grid, rate).any()]
    return shared
