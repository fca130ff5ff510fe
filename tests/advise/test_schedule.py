"""Arms, steps and seeds that fit into the time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpt.advise import schedule
from fpt.advise.schedule import Pace, Schedule, cost, fresh_seeds, planned, probe_seeds, whole_steps

PACES = {"unfrozen-pretrained": Pace(0.2, 0.01, 3.0), "lora-pretrained": Pace(0.1, 0.01, 3.0)}
ORDER = ("lora-pretrained", "unfrozen-pretrained")


def seconds(plan: Schedule, seeds: int = 3, examples: int = 1000) -> float:
    return sum(cost(arm, PACES[arm], plan.steps, plan.tuning, seeds, examples) for arm in plan.arms)


@given(left=st.floats(0, 1e5))
def test_what_is_planned_fits_and_more_does_not(left: float) -> None:
    plan = planned(PACES, left, 1000, 3, 1000)
    assert seconds(plan) <= left
    assert plan.arms == ORDER[: len(plan.arms)]
    if plan.arms == ORDER and plan.steps < 1000:
        assert seconds(Schedule(ORDER, plan.steps + 10, 1)) > schedule.SHARE * left


def test_a_whole_training_has_more_tuning_seeds_where_they_fit() -> None:
    assert planned(PACES, 1e5, 1000, 3, 1000) == Schedule(ORDER, 1000, 3)
    assert planned(PACES, 100.0, 1000, 3, 1000) == Schedule((), 0, 0)
    assert planned(PACES, 250.0, 1000, 3, 1000).arms == ORDER[:1]
    assert planned(PACES, 1e5, 4, 3, 1000).steps == 4  # the reader allows no more


def test_the_dearest_arm_goes_where_fewer_fresh_seeds_fit_than_have_an_interval() -> None:
    took = {"a": 10.0, "b": 100.0}
    assert fresh_seeds(took, 1000.0, 5, 3) == (["a", "b"], 5)
    assert fresh_seeds(took, 400.0, 5, 3) == (["a", "b"], 3)
    assert fresh_seeds(took, 300.0, 5, 3) == (["a"], 5)
    assert fresh_seeds(took, 10.0, 5, 3) == ([], 0)


def test_few_examples_have_more_tuning_seeds_and_a_whole_training_enough_steps() -> None:
    assert [len(probe_seeds(rows)) for rows in (28, 5000, 20_000)] == [4, 2, 1]
    assert whole_steps(8722, 32) == 5 * 273
    assert whole_steps(28, 28) == schedule.SHORTEST


@pytest.mark.parametrize("arm", ["lora-pretrained", "whole-pretrained", "norms-pretrained", "frozen-pretrained"])
def test_rates_are_half_decades(arm: str) -> None:
    rates = schedule.rates_of(arm)
    assert all(2.9 < high / low < 3.5 for low, high in pairwise(rates))
