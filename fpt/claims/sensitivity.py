"""What fewer rates or seeds would have concluded than the whole grid does."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from fpt.results.arm import Arm, picked, same_rate
from fpt.results.difference import shared_rates
from fpt.results.stats import MINIMUM_PAIRS, SIGNIFICANCE, paired
from fpt.seeds import stream
from fpt.sweeps import selection

MOST_SUBSETS = 100  # of one size; where there are more, so many are drawn
# of the columns of `conclusions`, how those of single choices become one of all
HOW = {"subsets": "sum", "same": "mean", "otherwise": "mean", "first": "mean", "second": "mean"}
Planes = np.ndarray[Any, Any]  # validation and test accuracy of an arm: 2 x seeds x rates


def accuracies(arm: Arm, rates: Sequence[float], seeds: "pd.Index[int]") -> Planes:
    """At the last budget, of those rates in ascending order and of those seeds."""
    validation = arm.validation().sort_index(axis=1)
    tested = arm.plane().reindex_like(validation)
    kept = [bool(same_rate(rates, rate).any()) for rate in validation]
    return np.stack([plane.loc[seeds, kept] for plane in (validation, tested)])


def tuned(planes: Planes) -> "pd.Series[float]":
    """By seed: test accuracy at the rate that the others choose; nan where none is eligible."""
    validation, tested = map(pd.DataFrame, planes)  # seeds and rates by their places in the grid
    return picked(tested, selection.choices(validation)).reindex(tested.index)


def conclusions(first: Arm, second: Arm) -> pd.DataFrame:
    """What fewer rates, or fewer seeds, would have concluded on the tuned first minus the second at the last budget.

    One row per number of rates (`of` "rates": at equal distances in the grid that both have) or of seeds (any of
    them, at least 3): the share of these `subsets` concluding the `same` as all rates and seeds, the share that decides
    `otherwise` (the opposite, or anything where all leave it open), and those that decide for the `first` arm and for
    the `second`. A conclusion is the sign of the mean, or none where its 95% interval (over seeds, and over the
    images of a fixed test set) includes 0; `whole` is that of all.
    """
    shared = shared_rates(first, second)
    seeds = first.validation().index.intersection(second.validation().index)
    arms = [accuracies(arm, shared, seeds) for arm in (first, second)]
    rates, rows = range(len(shared)), range(len(seeds))
    noise = first.test_noise() + second.test_noise()
    whole = says(arms, rates, rows, noise)
    parts = [("rates", len(some), says(arms, some, rows, noise)) for some in rate_subsets(len(shared))]
    parts += [("seeds", len(some), says(arms, rates, some, noise)) for some in seed_subsets(len(seeds))]
    said = pd.DataFrame(parts, columns=["of", "kept", "sign"])
    same, ahead, behind = (said["sign"] == sign for sign in (whole, 1, -1))
    said = said.assign(subsets=1, same=same, otherwise=(ahead | behind) & ~same, first=ahead, second=behind)
    return said.groupby(["of", "kept"], as_index=False).agg(HOW).assign(whole=whole)


def rate_subsets(count: int) -> Iterator[Sequence[int]]:
    """All choices among so many rates that are at equal distances."""
    yield from (range(place, place + 1) for place in range(count))
    for step in range(1, count):
        yield from (range(start, end + 1, step) for start in range(count) for end in range(start + step, count, step))


def seed_subsets(count: int) -> Iterator[Sequence[int]]:
    """All choices among so many seeds, of 3 and more; where there are more than 100 of one size, so many are drawn."""
    for size in range(MINIMUM_PAIRS, count + 1):
        if math.comb(count, size) <= MOST_SUBSETS:
            yield from combinations(range(count), size)
        else:
            rng = np.random.default_rng(stream(0, "subsets", count, size))
            yield from (tuple(sorted(rng.choice(count, size, replace=False))) for _ in range(MOST_SUBSETS))


def says(arms: Sequence[Planes], rates: Sequence[int], seeds: Sequence[int], noise: float = 0.0) -> int:
    """The sign of the first arm minus the second, both tuned, at some places of rates and seeds; 0 where it is open.
    `noise` is the variance of a test set that is the same for all seeds."""
    kept = [arm[:, list(seeds)][:, :, list(rates)] for arm in arms]
    first, second = map(tuned, kept)
    one, two = (selection.tuned_without(*map(pd.DataFrame, arm)) for arm in kept)
    test = paired(first, second, noise=noise, without=one - two)
    return int(np.sign(test.mean)) if test.p < SIGNIFICANCE else 0
