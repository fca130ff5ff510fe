"""Steps and seeds that fit into the time, and the rates of the fine grid."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_rows import row

from fpt.advise import schedule
from fpt.advise.schedule import Machine, check_time, fine_rates, makespan, most_steps, seeds_and_steps, with_steps
from fpt.errors import SpecError
from fpt.sweeps.spec import SweepSpec, resolve

ARMS = ("frozen-pretrained", "lora-pretrained", "unfrozen-pretrained")


def spec(arm: str, **change: Any) -> SweepSpec:
    fields = {"task": "digits", "arm": arm, "learning_rates": schedule.COARSE, "seeds": range(4), "extend": 0}
    return resolve(fields | change)


@given(seconds=st.lists(st.floats(0.1, 100), min_size=1, max_size=6), slots=st.integers(1, 4))
def test_slots_end_together_as_far_as_they_can(seconds: list[float], slots: int) -> None:
    found = makespan(seconds, slots)
    least = max(max(seconds), sum(seconds) / slots)
    assert least - 1e-9 <= found <= 2 * least
    assert makespan(seconds, 1) == pytest.approx(sum(seconds))


@given(budget=st.floats(0, 3000), cost=st.floats(0.01, 5))
def test_the_most_steps_fit_and_more_do_not(budget: float, cost: float) -> None:
    steps = most_steps(lambda steps: 10 + cost * steps, budget)
    assert steps == 0 or 10 + cost * steps <= budget
    assert steps == schedule.MOST_STEPS or 10 + cost * (steps + 10) > budget


def test_a_machine_that_became_slower_gets_fewer_steps() -> None:
    specs = [spec(arm) for arm in ARMS]
    rows = {each.arm: row(each, seconds=1e-3, evaluation_seconds=1e-5) for each in specs}
    quick = Machine(slots=2, threads=1, overhead=10)
    slow = replace(quick, factors=dict.fromkeys(ARMS, 2.0))

    def fit(machine: Machine) -> int:
        return most_steps(lambda steps: machine.wall(with_steps(specs, steps), rows), 600)

    assert 0.4 * fit(quick) < fit(slow) < 0.6 * fit(quick)
    assert quick.wall(with_steps(specs, fit(quick)), rows) <= 600


def test_more_seeds_once_every_run_has_enough_steps() -> None:
    assert seeds_and_steps(lambda seeds: 4000 // seeds) == (4, 1000)
    assert seeds_and_steps(lambda seeds: 9000 // seeds) == (8, 1125)
    assert seeds_and_steps(lambda seeds: 400 // seeds) == (4, 100)
    assert min(schedule.SEEDS) >= 4


@pytest.mark.parametrize("best", schedule.COARSE)
def test_the_fine_grid_is_in_half_decades_around_the_best_rate(best: float) -> None:
    rates = fine_rates(best)
    assert best in rates
    assert len(rates) == 1 + schedule.BELOW + schedule.ABOVE
    assert all(2.9 < high / low < 3.5 for low, high in pairwise(rates))
    assert min(rates) < best < max(rates)


def test_too_little_time_is_refused_with_what_is_needed() -> None:
    check_time(schedule.LEAST, 60.0, 1, "tiny-lm")
    with pytest.raises(SpecError, match=r"--minutes 1: .*about 11 minutes"):
        check_time(schedule.LEAST - 1, 600.0, 1, "tiny-lm")
