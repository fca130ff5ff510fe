"""Steps to a goal: the p of a ratio of steps and its interval say the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpt.claims.steps import Reach, ratio_of_steps, slower
from fpt.results.estimate import SIGNIFICANCE, Estimate

STEPS = (125, 250, 500, 1000)
P = st.one_of(st.floats(0, 1), st.floats(0, 0.03))


@st.composite
def reaches(draw) -> Reach:
    """As `reach` makes them: p of being there falls with the steps, and p of being short rises."""
    above, below = (np.array([draw(P) for _ in STEPS]) for _ in range(2))
    there = np.maximum.accumulate(above[::-1])[::-1]
    short = np.maximum.accumulate(below)
    return Reach(STEPS, draw(st.sampled_from(STEPS)), tuple(there), tuple(short), Estimate())


@given(first=reaches(), other=reaches())
def test_what_is_slower_by_its_p_is_not_faster_by_its_interval(first: Reach, other: Reach) -> None:
    ratio = ratio_of_steps(other, first)
    shown = 2 * slower(first, other, 1.0) < SIGNIFICANCE
    assert not shown or ratio.low >= 1
    assert shown or not ratio.low > 1


@pytest.mark.parametrize(("p", "expected"), [(0.01, 0.02), (0.6, 1.0)])
def test_two_bounds_may_err(p: float, expected: float) -> None:
    """The first is there from 125 steps on, the other short until 250: each with this p."""
    first = Reach(STEPS, 125, (p, p, p, p), (1, 1, 1, 1), Estimate())
    other = Reach(STEPS, 500, (1, 1, 1, 1), (p, p, 1, 1), Estimate())
    assert slower(first, other, 1.0) == slower(first, other, 2.0) == expected
    assert slower(first, other, 4.0) == 1.0
