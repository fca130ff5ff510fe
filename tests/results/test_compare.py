"""`fpt compare`: contrasts of anybody's table as it is given. test_compare_tuned.py: each arm at its own rate."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestIndPower
from typer.testing import CliRunner

from fpt.cli import app
from fpt.errors import DataError, SpecError
from fpt.results.compare import compare
from fpt.results.contrasts import arms_of, contrast
from fpt.results.table import Columns, columns, read_results

SEEDS = 8


def contrasts(table: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """Of scores, seeds x arms."""
    seed = table.index.name or "seed"
    runs = table.rename_axis(index=seed, columns=None).reset_index().melt(seed, var_name="arm", value_name="score")
    return compare(runs.dropna(), **options).contrasts


def by_arm(frame: pd.DataFrame, seed: str = "seed") -> pd.DataFrame:
    return frame.pivot(index=seed, columns="method", values="accuracy")


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    levels, shared = {"frozen": 0.80, "lora": 0.83, "full": 0.84}, rng.normal(0, 0.02, SEEDS)
    runs = [(arm, seed) for arm in levels for seed in range(SEEDS)]
    rows = [(arm, seed, levels[arm] + shared[seed] + rng.normal(0, 0.005)) for arm, seed in runs]
    return pd.DataFrame(rows, columns=["method", "seed", "accuracy"])


def test_it_agrees_with_scipy_and_statsmodels(frame: pd.DataFrame) -> None:
    table, found = by_arm(frame), compare(frame).contrasts
    tests = [stats.ttest_rel(table[row.first], table[row.second]) for row in found.itertuples()]
    assert found["p"].to_numpy() == pytest.approx([test.pvalue for test in tests])
    assert found["low"].to_numpy() == pytest.approx([test.confidence_interval().low for test in tests])
    assert found["p_holm"].to_numpy() == pytest.approx(multipletests(found["p"], method="holm")[1])
    assert len(found) == 3


def test_a_point_is_a_hundredth_of_fractions_and_one_of_percent(frame: pd.DataFrame) -> None:
    percent = frame.assign(accuracy=100 * frame["accuracy"])
    one, other = (compare(each) for each in (frame, percent))
    assert (one.rules.point, other.rules.point) == (0.01, 1)
    assert one.contrasts["seeds"].tolist() == other.contrasts["seeds"].tolist()


def test_a_smaller_difference_needs_more_seeds(frame: pd.DataFrame) -> None:
    few, many = (compare(frame, point=point).contrasts for point in (0.01, 0.002))
    assert (many["seeds"] > few["seeds"]).all()
    assert (many["more_seeds"] == many["seeds"] - SEEDS).all()


def test_equal_differences_go_by_sign_flips_and_have_no_interval() -> None:
    table = pd.DataFrame({"frozen": [0.5, 0.625, 0.75, 0.875]}).assign(full=lambda each: each["frozen"] + 0.125)
    row = contrasts(table).iloc[0]
    assert (row["mean"], row["p"]) == (-0.125, 2 * 0.5**4)
    assert row[["low", "high", "seeds"]].isna().all()


def test_columns_are_guessed_by_their_names(frame: pd.DataFrame) -> None:
    found = columns(frame, Columns())
    assert (found.by, found.pair, found.score) == ("method", ("seed",), "accuracy")
    renamed = frame.rename(columns={"accuracy": "mine"})
    with pytest.raises(SpecError, match="--score"):
        columns(renamed, Columns())
    assert columns(renamed, Columns(score="mine")).score == "mine"
    with pytest.raises(SpecError, match="Did you mean 'method'"):
        columns(frame, Columns(by="metod"))
    both = frame.assign(acc=frame["accuracy"], run=0)
    assert columns(both, Columns(choose="accuracy", tune=("run",))).score == "acc"  # a column has one role
    with pytest.raises(SpecError, match="a column of its own"):
        columns(frame, Columns(pair=("seed",), within=("seed",)))


def test_seeds_that_an_arm_lacks_are_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(SpecError, match="seed 3 is missing for frozen"):
        compare(frame.drop(index=3))


@pytest.mark.parametrize("seeds", [True, False])
def test_unpaired_is_welchs_test_on_all_runs_of_each_arm(frame: pd.DataFrame, seeds: bool) -> None:
    uneven = frame.drop(index=[0, 3, 9]).sample(frac=1, random_state=0)
    if not seeds:
        uneven = uneven.drop(columns="seed")
    found = compare(uneven, unpaired=True).contrasts
    runs = {arm: rows["accuracy"] for arm, rows in uneven.groupby("method")}
    tests = [stats.ttest_ind(runs[row.first], runs[row.second], equal_var=False) for row in found.itertuples()]
    ends = [test.confidence_interval() for test in tests]
    assert found["p"].to_numpy() == pytest.approx([test.pvalue for test in tests])
    assert found["low"].to_numpy() == pytest.approx([end.low for end in ends])
    assert found["high"].to_numpy() == pytest.approx([end.high for end in ends])
    assert found["p_holm"].to_numpy() == pytest.approx(multipletests(found["p"], method="holm")[1])
    counts = [(row.n_first, row.n_second) for row in found.itertuples()]
    assert counts == [(len(runs[row.first]), len(runs[row.second])) for row in found.itertuples()]


def test_unpaired_needs_the_runs_of_a_t_test_of_two_arms(frame: pd.DataFrame) -> None:
    table = by_arm(frame)
    for row in compare(frame, point=0.02, unpaired=True).contrasts.itertuples():
        spread = np.sqrt(table[[row.first, row.second]].var().mean())
        least = TTestIndPower().solve_power(0.02 / spread, power=0.8, alpha=0.05)
        assert least <= row.seeds <= least + 3  # it counts with the fewest degrees of freedom


def test_unpaired_arms_without_spread_go_by_exchanging_runs() -> None:
    table = pd.DataFrame({"a": [0.5] * 4, "b": [0.5] * 4, "c": [0.75] * 4})
    equal, apart, _ = contrasts(table, unpaired=True).itertuples()
    exchanged = stats.permutation_test((table["a"], table["c"]), lambda x, y: np.mean(x) - np.mean(y))
    assert (equal.p, apart.p) == (1, pytest.approx(exchanged.pvalue))
    assert np.isnan(apart.low)
    assert contrasts(table, unpaired=True, test_examples=10)["p"].iloc[1] > 0.2  # of ten examples, 2.5 are no evidence


@pytest.mark.parametrize("study", ["plane-digits", "long-mnist", "minilm-cifar10"])
@pytest.mark.parametrize("percent", [False, True])
def test_with_the_test_examples_it_agrees_with_the_contrasts_of_published_studies(study: str, percent: bool) -> None:
    """Of arms at one rate each, the common one."""
    points = 1 if percent else 100
    arms = {arm: cell for (_, arm), cell in arms_of(study).items() if cell.best_rate() is not None}
    scores = {arm: cell.values(cell.best_rate()) * (100 if percent else 1) for arm, cell in arms.items()}
    (examples,) = {int(cell.sampled_from) for cell in arms.values()}
    for row in contrasts(pd.DataFrame(scores), test_examples=examples).itertuples():
        if any(arms[arm].collapsed(arms[arm].best_rate()).any() for arm in (row.first, row.second)):
            continue  # `collapse` tells them; see test_compare_tuned.py
        ours = contrast(study, row.first, row.second, at="common")
        numbers = (points * row.mean, points * row.low, points * row.high, row.p)
        assert numbers == pytest.approx((ours.mean, ours.low, ours.high, ours.p))


def test_test_examples_are_of_accuracies_alone(frame: pd.DataFrame) -> None:
    alone, noisy = (compare(frame, test_examples=examples).contrasts for examples in (None, 1000))
    assert (noisy["high"] - noisy["low"] > alone["high"] - alone["low"]).all()
    assert (noisy["seeds"].isna() | (noisy["seeds"] > alone["seeds"])).all()
    with pytest.raises(SpecError, match="test-examples"):
        contrasts(by_arm(frame) - 1, test_examples=1000)
    with pytest.raises(SpecError, match="test-examples"):
        contrasts(1000 * by_arm(frame), test_examples=1000)


@pytest.mark.parametrize("name", ["fold", "Split", "cv", "outer_fold"])
def test_folds_need_the_share_that_they_are_tested_on(frame: pd.DataFrame, name: str) -> None:
    folds = frame.rename(columns={"seed": name})
    for unpaired in (False, True):
        with pytest.raises(SpecError, match="--test-share"):
            compare(folds, pair=name, unpaired=unpaired)
    plain = compare(frame).contrasts
    assert compare(folds, pair=name, test_share=0).contrasts[["low", "high", "p"]].equals(plain[["low", "high", "p"]])
    corrected = compare(folds, pair=name, test_share=0.2).contrasts
    widened = (corrected["high"] - corrected["low"]) / (plain["high"] - plain["low"])
    assert widened.to_numpy() == pytest.approx(np.sqrt((1 / SEEDS + 0.2 / 0.8) * SEEDS))  # Nadeau and Bengio 2003
    for more in ({"unpaired": True}, {"test_examples": 100}):
        with pytest.raises(SpecError, match="--test-share"):
            compare(folds, pair=name, test_share=0.2, **more)
    for share in (-0.1, 1.0, np.nan):
        with pytest.raises(SpecError, match="--test-share"):
            compare(folds, pair=name, test_share=share)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(*[st.floats(0.1, 1)] * 3), min_size=3, max_size=6, unique=True),
    st.integers(-660, 660),
    st.booleans(),
)
def test_no_number_depends_on_the_unit_of_the_scores(rows: list[tuple[float]], power: int, unpaired: bool) -> None:
    unit, table = 2.0**power, pd.DataFrame(rows, columns=["a", "b", "c"])
    one, other = (contrasts(by * table, point=by * 0.05, unpaired=unpaired) for by in (1, unit))
    scaled = ["level_first", "level_second", "mean", "low", "high"]
    pd.testing.assert_frame_equal(unit * one[scaled], other[scaled], check_exact=True)
    pd.testing.assert_frame_equal(one[["p", "p_holm", "seeds"]], other[["p", "p_holm", "seeds"]], check_exact=True)


@pytest.mark.parametrize("unit", [1e-323, 1e-310, 1e-200, 1e-20, 1.0, 1e20, 1e200, 1e299])
@pytest.mark.parametrize("unpaired", [False, True])
def test_a_score_beyond_all_others_is_tested_in_its_own_unit(unit: float, unpaired: bool) -> None:
    small = {"a": [1.0, 2, 1, 3, 2, 1], "b": [2.0, 1, 3, 2, 3, 5]}
    found = contrasts(pd.DataFrame(small).assign(c=[0.0, 0, unit, 0, 0, 0]), unpaired=unpaired).set_index(
        ["first", "second"]
    )
    test = stats.ttest_ind(small["a"], small["b"], equal_var=False) if unpaired else stats.ttest_rel(*small.values())
    assert found["p"]["a", "b"] == pytest.approx(test.pvalue)
    alone = contrasts(pd.DataFrame({"c": [0.0, 0, unit, 0, 0, 0], "d": [0.0] * 6}), unpaired=unpaired)
    assert alone["p"].iloc[0] == pytest.approx(0.3632, abs=1e-4)  # t = 1 with 5 degrees of freedom
    assert alone["mean"].iloc[0] == pytest.approx(unit / 6, rel=0.4 if unit < 1e-320 else 1e-9)


@pytest.mark.parametrize("wrong", [1e308, -np.inf])
def test_a_score_too_large_to_subtract_is_refused_by_its_row(frame: pd.DataFrame, wrong: float) -> None:
    scores = frame["accuracy"].where(frame.index != 4, wrong)
    with pytest.raises(DataError, match="row 5"):
        compare(frame.assign(accuracy=scores))


def test_numbers_that_are_decimals_or_text_are_numbers(frame: pd.DataFrame) -> None:
    for kind in (Decimal, str):
        scores = frame["accuracy"].map(lambda score, kind=kind: kind(repr(score))).astype(object)
        assert compare(frame.assign(accuracy=scores)).contrasts.equals(compare(frame).contrasts)


@pytest.mark.parametrize("value", [["x"], np.array([1, 2]), {"a": 1}, {1, 2}, None])
def test_a_seed_that_stands_twice_is_refused_whatever_the_other_columns_hold(frame: pd.DataFrame, value: Any) -> None:
    twice = pd.concat([frame, frame.iloc[:1]], ignore_index=True).assign(task=["one"] * len(frame) + ["other"])
    tags = pd.Series([value] * len(twice), dtype=object)
    with pytest.raises(SpecError, match="differ in task:"):
        compare(twice.assign(tags=tags))


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        (lambda rows: rows.assign(accuracy="high"), DataError, "must be numbers"),
        (lambda rows: rows.assign(accuracy=["0.5", "crashed", *rows["method"][2:]]), DataError, "one is 'crashed'"),
        (lambda rows: rows.assign(accuracy=rows["accuracy"] / (rows.index != 1)), DataError, "row 2: accuracy must be"),
        (lambda rows: rows.assign(accuracy=np.nan), DataError, "row 1 has no accuracy"),
        (lambda rows: rows.assign(accuracy=["0.5", "0,85", *rows["method"][2:]]), DataError, "decimal point.*row 2"),
        (lambda rows: rows.assign(method="one"), SpecError, "has 1 different"),
        (lambda rows: rows[rows["seed"] < 2], SpecError, "3 seeds"),
        (lambda rows: pd.concat([rows.assign(task=task) for task in ("digits", "mnist")]), SpecError, "differ in task"),
    ],
)
def test_what_cannot_be_compared_is_refused(frame: pd.DataFrame, change: Any, error: Any, named: str) -> None:
    with pytest.raises(error, match=named):
        compare(change(frame), score="accuracy")


@pytest.mark.parametrize("kind", ["uint8", "bool", "Int64"])
def test_scores_of_any_type_and_arms_that_are_true_or_false(frame: pd.DataFrame, kind: str) -> None:
    two = frame[frame["method"] != "lora"].assign(full=lambda rows: rows["method"] == "full")
    scores = (two["full"] & (two["seed"] > 0)).astype(kind)
    (found,) = compare(two.assign(accuracy=scores), by="full").contrasts.to_dict("records")
    assert (found["first"], found["second"], found["mean"]) == ("False", "True", pytest.approx(-7 / 8))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", ""),
        ("b.csv", "arm,seed,score\n"),
        ("c.txt", "x"),
        ("d.parquet", "x"),
        ("e.csv", "arm,seed,score\na,0,0,5\na,1,0,6\n"),  # a decimal comma
        ("f.csv", "arm,seed,score,score\na,0,1,2\n"),
        ("g.csv", "arm;seed;score\na;0;0,5\n"),
        ("h.csv", "sep=,\narm,seed,score\na,0,0.5\n"),
        ("i.csv", "# runs of May\narm,seed,score\na,0,0.5\n"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=name):
        read_results(tmp_path / name)


def test_the_command_prints_a_table_or_json_or_one_error(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "mine.csv")
    frame.to_csv(path, index=False)
    frame.to_csv(tmp_path / "MINE.CSV", index=False)

    def command(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["compare", *words], env={"COLUMNS": "200"})
        assert done.exit_code == code, done.output
        return done.output

    assert "lora" in command(path)
    assert "lora" in command(str(tmp_path / "MINE.CSV"))
    assert "> 1,000" in command(path, "--point", "1e-6")
    assert {row["first"] for row in json.loads(command(path, "--json"))["contrasts"]} == {"frozen", "full"}
    assert "Welch" in command(path, "--unpaired")
    assert json.loads(command(path, "--json", "--unpaired"))["rules"]["unpaired"]
    assert "--test-examples" in command(path)
    told = command(path, "--test-examples", "1000")
    assert "1,000 test examples" in " ".join(told.split())  # the title may go on in the next line
    assert "--test-examples" not in told
    assert json.loads(command(path, "--json", "--test-examples", "9"))["rules"]["test_examples"] == 9
    folds = tmp_path / "folds.csv"
    frame.rename(columns={"seed": "fold"}).to_csv(folds, index=False)
    assert "fold" in command(str(folds), code=2)
    assert json.loads(command(str(folds), "--json", "--test-share", "0.1"))["rules"]["test_share"] == 0.1
    command(path, "--point", "nan", code=2)
    command(str(tmp_path / "not.csv"), code=2)
    days = pd.to_datetime(frame["method"].map({"frozen": "2026-01-01", "full": "2026-01-02", "lora": "2026-01-03"}))
    frame.assign(method=days).to_parquet(tmp_path / "days.parquet")
    assert "2026-01-02" in command(str(tmp_path / "days.parquet"), "--json")


def test_two_arms_with_too_few_seeds_are_shown_and_not_tested(frame: pd.DataFrame) -> None:
    few = frame[(frame["method"] != "lora") | (frame["seed"] < 2)]
    found = compare(few, unpaired=True).contrasts.set_index(["first", "second"])
    assert len(found) == 3
    assert found["n"].loc[("frozen", "lora")] == 2
    assert np.isnan(found["p"].loc[("frozen", "lora")])
    assert found["p_holm"].loc[("frozen", "full")] == found["p"].loc[("frozen", "full")]


@pytest.mark.parametrize("column", ["method", "seed"])
def test_lists_in_the_place_of_names_are_refused(frame: pd.DataFrame, column: str) -> None:
    with pytest.raises(DataError, match=f"column {column} holds lists"):
        compare(frame.assign(**{column: frame[column].map(lambda value: [value])}))


def test_equal_differences_give_no_seeds_to_plan_by(frame: pd.DataFrame) -> None:
    apart = frame["method"].map({"frozen": 0.25, "full": 0.5, "lora": 0.75})
    assert compare(frame.assign(accuracy=apart)).contrasts["seeds"].isna().all()


def test_json_keeps_small_numbers_and_says_null_for_none(frame: pd.DataFrame, tmp_path: Path) -> None:
    few = frame[(frame["method"] != "lora") | (frame["seed"] < 2)].assign(
        accuracy=lambda runs: runs["accuracy"] * 1e-13
    )
    few.to_csv(tmp_path / "runs.csv", index=False)
    shown = CliRunner().invoke(app, ["compare", str(tmp_path / "runs.csv"), "--unpaired", "--json"])
    rows = {(row["first"], row["second"]): row for row in json.loads(shown.stdout)["contrasts"]}
    assert rows["frozen", "lora"]["p"] is None
    assert rows["frozen", "full"]["mean"] != 0


def test_a_column_of_the_very_name_comes_before_one_in_capitals(frame: pd.DataFrame) -> None:
    both = frame.rename(columns={"method": "arm"}).assign(ARM="other")
    assert columns(both, Columns()).by == "arm"
