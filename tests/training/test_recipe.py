"""The recipe's limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpt.errors import SpecError
from fpt.training import Recipe


@pytest.mark.parametrize(
    "values",
    [
        {"steps": 0}, {"steps": 1.5}, {"steps": True}, {"dropout": 1.0}, {"clip": 0}, {"evaluations": 0},
        {"warmup": -0.1}, {"schedule": "linear"}, {"head_rate": float("inf")}, {"weight_decay": float("nan")},
        {"report": "first"}, {"compute_type": "fp8"}, {"weight_decay": True}, {"clip": True}, {"dropout": False},
    ],
)  # fmt: skip
def test_values_that_are_not_allowed(values):
    with pytest.raises(SpecError, match=next(iter(values))):
        Recipe(**values)


def test_a_field_that_is_misspelt_is_told_what_there_is():
    with pytest.raises(SpecError, match=r"'step'.*Did you mean 'steps'.*batch_size"):
        Recipe(step=3)


@given(steps=st.integers(1, 500_000), evaluations=st.integers(1, 50))
def test_evaluations_end_at_the_end_and_include_the_budgets(steps, evaluations):
    recipe = Recipe(steps=steps, evaluations=evaluations)
    at = recipe.evaluation_steps()
    assert at == sorted(set(at))
    assert at[0] >= 1
    assert at[-1] == steps
    assert set(recipe.budgets()) <= set(at)
    assert len(at) <= evaluations + len(recipe.budgets())


def test_evaluations_are_even_in_the_logarithm():
    at = Recipe(steps=10_000, evaluations=3).evaluation_steps()
    assert [step for step in at if step not in Recipe(steps=10_000).budgets()[:-1]] == [100, 1000, 10_000]


def test_budgets_are_halves_down_to_a_32nd():
    assert Recipe(steps=6400).budgets() == [200, 400, 800, 1600, 3200, 6400]
    assert Recipe(steps=3).budgets() == [1, 2, 3]


@given(steps=st.integers(32, 100_000), evaluations=st.integers(1, 30))
def test_half_of_a_run_has_the_same_budgets(steps, evaluations):
    """A value at a budget is that of a run of so many steps."""
    whole = Recipe(steps=2 * steps, evaluations=evaluations).budgets()
    assert whole[:-1] == Recipe(steps=steps).budgets()[1:]


@pytest.mark.parametrize("changes", [{"warmup": 0.1}, {"schedule": "cosine"}])
def test_where_the_rate_changes_only_the_last_step_is_a_budget(changes):
    """A shorter run would have warmed up, or slowed down, faster."""
    assert Recipe(steps=6400, **changes).budgets() == [6400]


@given(steps=st.integers(5, 100_000))
def test_five_evaluations_are_five_where_there_is_one_budget(steps):
    at = Recipe(steps=steps, warmup=0.1, schedule="cosine", evaluations=5).evaluation_steps()
    assert len(at) <= 5
    assert len(at) == 5 or steps < 500
    assert at[-1] == steps


@given(steps=st.integers(1, 500), warmup=st.sampled_from([0.0, 0.001, 0.1, 0.35, 0.99]))
def test_the_rate_rises_to_the_full_one_and_falls_to_a_tenth(steps, warmup):
    cosine = Recipe(steps=steps, warmup=warmup, schedule="cosine")
    shares = [cosine.share_of_rate(step) for step in range(1, steps + 1)]
    warm = int(max(1, warmup * steps))
    assert shares[:warm] == sorted(shares[:warm])
    assert shares[warm:] == sorted(shares[warm:], reverse=True)
    assert 0 < min(shares) <= max(shares) <= 1
    assert shares[-1] == pytest.approx(0.1 if steps > max(1, warmup * steps) else 1.0)
    constant = cosine.model_copy(update={"schedule": "constant"})
    assert [constant.share_of_rate(step) for step in range(1, warm + 1)] == shares[:warm]
    assert constant.share_of_rate(steps) == 1
    assert Recipe(steps=3, schedule="cosine").share_of_rate(2) == pytest.approx(0.55)  # halfway from 1 to a tenth


@pytest.mark.parametrize("groups", [("input", "output"), ("output",), ("layer_norm", "positions")])
def test_a_rate_of_the_head_needs_a_head_and_something_else(groups):
    Recipe().check_head_rate(groups)
    Recipe(head_rate=1e-3).check_head_rate(("output", "layer_norm"))
    with pytest.raises(SpecError, match=f"head_rate = 0.001.*{', '.join(groups)}"):
        Recipe(head_rate=1e-3).check_head_rate(groups)
