"""The tuning protocol: selection on mean validation accuracy among rates that stayed finite."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpt.sweeps.selection import select


def runs(accuracy: dict[float, list[float]], diverged: tuple[float, ...] = ()) -> pd.DataFrame:
    rows = [
        {"learning_rate": rate, "seed": seed, "validation_accuracy": value, "diverged_at": None}
        for rate, values in accuracy.items()
        for seed, value in enumerate(values)
    ]
    table = pd.DataFrame(rows).astype({"diverged_at": "Int64"})
    table.loc[table["learning_rate"].isin(diverged) & (table["seed"] == 0), "diverged_at"] = 5
    return table


def test_the_best_mean_wins() -> None:
    chosen = select(runs({1e-4: [0.5, 0.6], 1e-3: [0.7, 0.9], 1e-2: [0.95, 0.1]}))
    assert chosen.rate == 1e-3
    assert not chosen.at_edge


def test_ties_go_to_the_smaller_rate() -> None:
    assert select(runs({1e-2: [0.5], 1e-3: [0.5], 1e-4: [0.1]})).rate == 1e-3


@pytest.mark.parametrize(("best", "edge"), [(1e-4, True), (1e-3, False), (1e-2, True)])
def test_an_end_of_the_grid_is_flagged(best: float, edge: bool) -> None:
    grid = {rate: [0.9 if rate == best else 0.1] for rate in (1e-4, 1e-3, 1e-2)}
    assert select(runs(grid)).at_edge is edge


def test_one_diverged_seed_makes_a_rate_ineligible() -> None:
    chosen = select(runs({1e-3: [0.5, 0.5], 1e-2: [0.9, 0.9]}, diverged=(1e-2,)))
    assert (chosen.rate, chosen.eligible) == (1e-3, [1e-3])


def test_a_run_without_a_finite_value_is_not_eligible_either() -> None:
    assert select(runs({1e-3: [0.5, 0.5], 1e-2: [0.9, float("nan")]})).rate == 1e-3


def test_no_eligible_rate() -> None:
    chosen = select(runs({1e-3: [0.5], 1e-2: [0.9]}, diverged=(1e-3, 1e-2)))
    assert (chosen.rate, chosen.at_edge, chosen.eligible, chosen.within_one_se) == (None, False, [], [])


def test_rates_within_one_standard_error_of_the_best() -> None:
    # best 0.80, seeds 0.70, 0.80, 0.90: standard error 0.1 / sqrt(3) = 0.058
    chosen = select(runs({1e-4: [0.74] * 3, 1e-3: [0.7, 0.8, 0.9], 1e-2: [0.75] * 3}))
    assert chosen.within_one_se == [1e-3, 1e-2]


def test_one_seed_has_no_standard_error() -> None:
    assert select(runs({1e-3: [0.5], 1e-2: [0.4]})).within_one_se == [1e-3]


@given(
    st.dictionaries(st.sampled_from([1e-5, 1e-4, 1e-3, 1e-2]), st.lists(st.floats(0, 1), min_size=3, max_size=3))
    .filter(bool)
)  # fmt: skip
def test_order_of_rows_does_not_matter(accuracy: dict[float, list[float]]) -> None:
    table = runs(accuracy)
    chosen = select(table)
    assert select(table.iloc[::-1]).eligible == chosen.eligible
    assert chosen.rate in chosen.within_one_se
    assert set(chosen.within_one_se) <= set(chosen.eligible)


def test_a_tie_in_counts_is_a_tie_in_means():
    counts = {1e-3: (109, 113, 65), 1e-2: (114, 108, 65)}  # equal sums, whose float means differ in the last bit
    rows = [
        {"learning_rate": rate, "validation_accuracy": count / 150, "diverged_at": pd.NA}
        for rate, some in counts.items()
        for count in some
    ]
    assert select(pd.DataFrame(rows)).rate == 1e-3
