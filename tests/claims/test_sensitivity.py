"""Ratios, and what fewer rates or seeds conclude, on made-up cells whose answers are known."""

import math

import numpy as np
import pandas as pd
import pytest
from made_cells import Made, cell, paper

from fpt.claims.by_rate import ratio_of_best
from fpt.claims.sensitivity import MOST_SUBSETS, conclusions, rate_subsets, seed_subsets
from fpt.results.arm import TUNED, Arm
from fpt.results.difference import paired_difference
from fpt.results.stats import SIGNIFICANCE

TABLE = paper(["a", "b"]).tables["toy-table"]


def made(row: str = "a", **fields: object) -> Arm:
    return cell(TABLE, row, Made(**fields)).arm  # type: ignore[arg-type]


def ratio(*arms: Arm) -> tuple[float, float, float]:
    found = ratio_of_best(*arms)
    return found.value, *found.interval


def test_what_all_conclude_is_what_the_contrast_says() -> None:
    """A run that diverged at the rate of its seed keeps what it had learned, in both."""
    first = made(means={1e-4: 86.0, 1e-3: 88.0}, beyond=False)  # without seed 0 its best rate is 1e-3, else 1e-4
    runs = first.runs
    lost = (runs["learning_rate"] == 1e-3) & (runs["seed"] == 0)
    runs.loc[lost, ["diverged_at", "validation_accuracy"]] = 300, np.nan
    second = made("b", means={1e-4: 60.0, 1e-3: 78.0}, beyond=False)
    test = paired_difference([(first, TUNED, None)], [(second, TUNED, None)])
    assert test.mean > 0
    assert test.p < SIGNIFICANCE
    assert set(conclusions(first, second)["whole"]) == {1}


def test_rates_that_nothing_tells_apart_and_ends_leave_the_ratio_open() -> None:
    flat, peak = made(sd=0.0), made("b", means={1e-4: 50.0, 1e-3: 90.0, 1e-2: 50.0})
    assert ratio(flat, peak) == pytest.approx((1, 0.1, 10))
    edge = made(means={1e-4: 50.0, 1e-3: 70.0, 1e-2: 90.0}, best=1e-2, beyond=False)
    assert ratio(edge, peak) == pytest.approx((10, 10, math.inf))
    assert ratio(peak, edge) == pytest.approx((0.1, 0, 0.1))
    assert ratio(edge, edge) == pytest.approx((1, 0, math.inf))
    assert math.isnan(ratio(made(best=None), peak)[0])


def test_subsets_are_all_of_them_or_many() -> None:
    assert sorted(map(tuple, rate_subsets(3))) == [(0,), (0, 1), (0, 1, 2), (0, 2), (1,), (1, 2), (2,)]
    sizes = pd.Series([len(some) for some in seed_subsets(12)]).value_counts()
    assert sizes.loc[[3, 10, 11, 12]].tolist() == [MOST_SUBSETS, 66, 12, 1]
    assert all(len(set(some)) == len(some) for some in seed_subsets(12))
    assert list(seed_subsets(12)) == list(seed_subsets(12))


def test_one_rate_can_say_the_opposite_of_all() -> None:
    """The first arm is best at 1e-4 and wins tuned; at 1e-3 and 1e-2 alone it loses."""
    first = made(means={1e-4: 90.0, 1e-3: 60.0, 1e-2: 20.0}, best=1e-4, beyond=False)
    second = made("b", means={1e-4: 70.0, 1e-3: 80.0, 1e-2: 75.0}, best=1e-3, beyond=False)
    found = conclusions(first, second).set_index(["of", "kept"])
    one, two, three = (found.loc[("rates", k)] for k in (1, 2, 3))
    assert (one["subsets"], one["same"], one["otherwise"]) == (3, pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (one["whole"], one["first"], one["second"]) == (1, pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (two["subsets"], two["same"]) == (3, pytest.approx(2 / 3))
    assert (three["subsets"], three["same"]) == (1, 1)
    assert found.loc["seeds"].index.tolist() == [3, 4, 5, 6, 7, 8]
    assert (found.loc["seeds"]["same"] == 1).all()


def test_few_seeds_leave_open_what_many_decide() -> None:
    first, second = made(means=81.5, sd=1.5), made("b", means=80.0, sd=1.5)
    found = conclusions(first, second).set_index(["of", "kept"]).loc["seeds"]
    assert found.loc[8, "same"] == 1
    assert found.loc[3, "same"] < 0.8
    assert (found["otherwise"] == 0).all()


def test_a_fixed_test_set_is_part_of_what_is_open() -> None:
    first, second = made(means=81.5, sd=0.2), made("b", means=80.0, sd=0.2)
    assert set(conclusions(first, second)["whole"]) == {1}
    for arm in (first, second):
        arm.result["test"] = {"drawn_by_seed": False, "size": 1000}
    assert set(conclusions(first, second)["whole"]) == {0}


def test_one_rate_can_decide_what_all_leave_open() -> None:
    """Tuned, both arms come to 80%; at 1e-4 the first leads, at 1e-3 and 1e-2 the second."""
    first = made(means={1e-4: 80.0, 1e-3: 60.0, 1e-2: 20.0}, best=1e-4, beyond=False)
    second = made("b", means={1e-4: 60.0, 1e-3: 80.0, 1e-2: 75.0}, best=1e-3, beyond=False)
    one = conclusions(first, second).set_index(["of", "kept"]).loc[("rates", 1)]
    assert (one["whole"], one["same"], one["otherwise"]) == (0, 0, 1)
    assert (one["first"], one["second"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
