"""Leave one seed out: the tuned rate of a seed rests on the other seeds alone."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from fpt.sweeps.selection import (
    best_rate,
    beyond,
    by_seed,
    choices,
    chosen_by_few,
    eligible,
    ends,
    macro_by_seed,
    tuned_without,
    within_one_se,
)

NAN = math.nan


def table(*rows, rates=(1e-4, 1e-3, 1e-2)):
    """A row a seed, a column a rate."""
    return pd.DataFrame(list(rows), index=range(len(rows)), columns=list(rates))


def test_a_seed_alone_chooses_on_itself():
    assert choices(table([0.1, 0.3, 0.2])).tolist() == [1e-3]


def test_ties_go_to_the_smaller_rate_whatever_the_order_of_addition():
    found = table([0.1, 0.3, 0.2], [0.2, 0.1, 0.3], [0.3, 0.2, 0.1])
    assert best_rate(found) == 1e-4
    assert table([0.1, 0.1, 0.1])[[1e-2, 1e-4, 1e-3]].pipe(best_rate) == 1e-4


def test_a_rate_at_which_a_seed_diverged_is_not_eligible():
    found = table([0.5, 0.6, 0.9], [0.5, 0.6, NAN], [0.5, 0.6, 0.9])
    assert best_rate(found) == 1e-3
    assert eligible(found).columns.tolist() == [1e-4, 1e-3]


def test_without_a_seed_the_others_choose_on_fewer_seeds():
    validation = table([0.5, 0.9], [0.5, 0.6], [0.6, 0.5], [NAN, 0.1], rates=(1e-3, 1e-2))
    plane = table([10, 20], [11, 21], [12, 22], [13, 23], rates=(1e-3, 1e-2))
    expected = {  # a rate at which one of the others diverged is not theirs
        0: [NAN, 21, 22, 13],
        1: [20, NAN, 22, 23],
        2: [20, 21, NAN, 23],
        3: [10, 20 + 1, 22, NAN],
    }
    found = tuned_without(validation, plane)
    np.testing.assert_array_equal(found, pd.DataFrame(expected).T)
    np.testing.assert_array_equal(tuned_without(validation[[1e-2, 1e-3]], plane), found)  # in any order


def test_nothing_is_eligible_where_every_rate_diverged():
    found = table([NAN, NAN, NAN], [NAN, NAN, NAN])
    assert best_rate(found) is None
    assert choices(found).isna().all()
    assert within_one_se(found) == []
    assert ends(choices(found), found) == set()


def test_ends_of_the_grid():
    low, high = [0.9, 0.5, 0.1], [0.1, 0.5, 0.9]
    for found, expected in (
        (table(low, low), {"low"}),
        (table(high, high), {"high"}),
        (table([0.1, 0.2, 0.9], [0.9, 0.3, 0.1]), {"low", "high"}),
        (table([0.1, 0.9, 0.2], [0.1, 0.9, 0.2]), set()),
        (table([0.1, 0.5, NAN], high, high), set()),  # beyond a rate that diverged nothing better is to be found
        (table([0.1], [0.2], rates=(1e-3,)), set()),  # a single rate is not chosen
    ):
        assert ends(choices(found), found) == expected


def test_within_one_standard_error_of_the_best():
    found = table([0.50, 0.60, 0.1], [0.58, 0.70, 0.1])  # the best mean is 0.65, its standard error 0.05
    assert within_one_se(found) == [1e-3]
    found[1e-4] += 0.07
    assert within_one_se(found) == [1e-4, 1e-3]


def test_runs_that_diverged_or_have_no_accuracy_are_not_finite():
    runs = pd.DataFrame(
        {
            "learning_rate": [1e-3, 1e-2, 1e-3, 1e-2],
            "seed": [0, 0, 1, 1],
            "validation_accuracy": [0.5, 0.6, 0.7, NAN],
            "diverged_at": pd.array([None, 7, None, None], dtype="Int64"),
        }
    )
    expected = pd.DataFrame([[0.5, NAN], [0.7, NAN]], index=[0, 1], columns=[1e-3, 1e-2])
    assert by_seed(runs).equals(expected.rename_axis(index="seed", columns="learning_rate"))


def test_macro_accuracy_is_the_librarys_and_chooses_among_rates_at_which_no_run_diverged():
    rng = np.random.default_rng(0)
    chances = {1e-4: 0.3, 1e-3: 0.7, 1e-2: 0.7, 1e-1: 0.9}
    runs, answers = [], []
    for rate, chance in chances.items():
        for seed in (900, 901):
            target = rng.choice(5, 200, p=[0.6, 0.1, 0.1, 0.1, 0.1])
            predicted = np.where(rng.random(200) < chance, target, rng.integers(0, 5, 200))
            lost = 7 if (rate, seed) == (1e-1, 901) else None
            runs.append((rate, seed, 0.5, lost))
            part = np.where(np.arange(200) < 150, "validation", "test")
            key = {"learning_rate": rate, "seed": seed, "part": part}
            answers.append(pd.DataFrame({**key, "target": target, "predicted": predicted}))
    table = pd.DataFrame(runs, columns=["learning_rate", "seed", "validation_accuracy", "diverged_at"])
    found = macro_by_seed(table, pd.concat(answers))
    for (rate, seed), rows in pd.concat(answers).query("part == 'validation'").groupby(["learning_rate", "seed"]):
        if rate < 1e-1:
            expected = balanced_accuracy_score(rows["target"], rows["predicted"])
            assert found.loc[seed, rate] == pytest.approx(expected)
    assert found[1e-1].isna().to_dict() == {900: False, 901: True}
    means = found.mean()
    assert best_rate(found) == max((1e-4, 1e-3, 1e-2), key=lambda rate: means[rate])
    found[1e-2] = found[1e-3]
    assert best_rate(found) == 1e-3  # of two equal ones the smaller


def test_few_labels_choose_as_all_do_where_rates_lie_far_apart_and_by_chance_where_they_do_not():
    rng, rows = np.random.default_rng(1), []
    chances = {1e-4: 0.2, 1e-3: 0.9, 1e-2: 0.85, 1e-1: 1.0}
    for seed in (900, 901):
        target = np.repeat(np.arange(20), 6)
        for rate, chance in chances.items():
            predicted = np.where(rng.random(len(target)) < chance, target, -1)
            columns = {"seed": seed, "learning_rate": rate, "part": "validation", "example": np.arange(len(target))}
            rows.append(pd.DataFrame({**columns, "target": target, "predicted": predicted}))
    runs = pd.DataFrame(
        [(rate, seed, 0.5, 7 if (rate, seed) == (1e-1, 900) else None) for rate in chances for seed in (900, 901)],
        columns=["learning_rate", "seed", "validation_accuracy", "diverged_at"],
    )
    found = chosen_by_few(runs, pd.concat(rows), labels=2, draws=200)
    shares = found.value_counts(normalize=True)
    assert set(shares.index) == {1e-3, 1e-2}  # neither the poor one nor one that diverged
    assert shares.min() > 0.05
    whole = chosen_by_few(runs, pd.concat(rows), labels=6, draws=20)
    assert whole[::2].nunique() == whole[1::2].nunique() == 1  # all texts of a seed choose once and for all
    assert found.equals(chosen_by_few(runs, pd.concat(rows), labels=2, draws=200))


def test_macro_accuracy_counts_every_class_alike():
    """One rate is right on the common class alone, the other on each rare one: accuracy prefers the first."""
    target = [0] * 8 + [1, 2]
    predicted = {1e-3: [0] * 10, 1e-2: [1] * 5 + [0] * 3 + [1, 2]}
    columns = {"seed": 900, "part": "validation", "target": target}
    answers = pd.concat(
        [pd.DataFrame({"learning_rate": rate, "predicted": classes, **columns}) for rate, classes in predicted.items()]
    )
    runs = pd.DataFrame(
        {"learning_rate": [1e-3, 1e-2], "seed": 900, "validation_accuracy": [0.8, 0.5], "diverged_at": [NAN, NAN]}
    )
    assert best_rate(by_seed(runs)) == 1e-3
    found = macro_by_seed(runs, answers)
    assert found.loc[900].to_dict() == pytest.approx({1e-3: 1 / 3, 1e-2: (3 / 8 + 2) / 3})
    assert best_rate(found) == 1e-2


ROW = st.lists(st.sampled_from([0.1, 0.25, 0.5, 0.9, NAN]), min_size=4, max_size=4)


@given(st.lists(ROW, min_size=2, max_size=6))
def test_leaving_one_out_is_choosing_without_it(rows):
    """The oracle: drop the seed, take the best rate of what is left."""
    found = table(*rows, rates=(1e-4, 3e-4, 1e-3, 3e-3))
    expected = [best_rate(found.drop(index=seed)) for seed in found.index]
    assert [None if math.isnan(rate) else rate for rate in choices(found)] == expected


@pytest.mark.parametrize(
    ("rate", "below", "above"),
    [
        (1e-3, 3e-4, 3e-3),
        (3e-3, 1e-3, 1e-2),
        (3e-5, 1e-5, 1e-4),
        (2e-3, 1e-3, 1e-2),
        (1.0, 0.3, 3.0),
        (1e-2, 3e-3, 3e-2),
    ],
)
def test_half_decades_beyond_a_rate(rate, below, above):
    """As they are written: 3e-05, not 3 * 10**-5."""
    assert beyond([rate], "low") == below
    assert beyond([rate], "high") == above


def test_a_grid_grows_in_its_own_steps():
    assert beyond([1e-3, 1e-2, 3e-3], "high") == 3e-2
    quarters = [3e-4, 5.6e-4, 1e-3, 1.8e-3]
    assert (beyond(quarters, "low"), beyond(quarters, "high")) == (1.8e-4, 3e-3)
    assert beyond([1e-3, 1.8e-3, 1e-2], "high") == 3e-2  # quarters in a part of it alone


@given(st.floats(1e-8, 1e2))
def test_a_rate_beyond_is_about_half_a_decade_away(rate):
    assert 2 * (1 - 1e-5) <= beyond([rate], "high") / rate <= 6.67
    assert 2 * (1 - 1e-5) <= rate / beyond([rate], "low") <= 6.67
