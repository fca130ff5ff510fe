"""The recipe's limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fpt.training import Recipe


@pytest.mark.parametrize(
    "values",
    [
        {"steps": 0}, {"steps": 1.5}, {"steps": True}, {"batch_size": -1}, {"dropout": 1.0}, {"dropout": -0.1},
        {"clip": 0}, {"clip": float("inf")}, {"evaluations": 0}, {"evaluation_examples": 0},
        {"compute_type": "fp8"}, {"step": 3},
    ],
)  # fmt: skip
def test_values_that_are_not_allowed(values):
    with pytest.raises(ValidationError):
        Recipe(**values)


@given(steps=st.integers(1, 5000), evaluations=st.integers(1, 50))
def test_evaluations_are_evenly_spaced_and_end_at_the_end(steps, evaluations):
    at = Recipe(steps=steps, evaluations=evaluations).evaluation_steps()
    assert len(at) == len(set(at)) == min(steps, evaluations)
    assert at[-1] == steps
    assert at[0] >= 1
    gaps = [b - a for a, b in zip([0, *at], at, strict=False)]
    assert max(gaps) - min(gaps) <= 1
