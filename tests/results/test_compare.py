"""`fpt compare`: paired contrasts of anybody's table."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from typer.testing import CliRunner

from fpt.cli import app
from fpt.errors import DataError, SpecError
from fpt.results.compare import columns, compare, read_results, scores_of

SEEDS = 8


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    levels, shared = {"frozen": 0.80, "lora": 0.83, "full": 0.84}, rng.normal(0, 0.02, SEEDS)
    runs = [(arm, seed) for arm in levels for seed in range(SEEDS)]
    rows = [(arm, seed, levels[arm] + shared[seed] + rng.normal(0, 0.005)) for arm, seed in runs]
    return pd.DataFrame(rows, columns=["method", "seed", "accuracy"])


def test_it_agrees_with_scipy_and_statsmodels(frame: pd.DataFrame) -> None:
    table = scores_of(frame, "method", "seed", "accuracy")
    found = compare(table)
    tests = [stats.ttest_rel(table[row.first], table[row.second]) for row in found.itertuples()]
    assert found["p"].to_numpy() == pytest.approx([test.pvalue for test in tests])
    assert found["low"].to_numpy() == pytest.approx([test.confidence_interval().low for test in tests])
    assert found["p_holm"].to_numpy() == pytest.approx(multipletests(found["p"], method="holm")[1])
    assert len(found) == 3


def test_a_point_is_a_hundredth_of_fractions_and_one_of_percent(frame: pd.DataFrame) -> None:
    percent = frame.assign(accuracy=100 * frame["accuracy"])
    one, other = (compare(scores_of(each, "method", "seed", "accuracy")) for each in (frame, percent))
    assert (one["point"].iloc[0], other["point"].iloc[0]) == (0.01, 1)
    assert one["seeds"].tolist() == other["seeds"].tolist()


def test_a_smaller_difference_needs_more_seeds(frame: pd.DataFrame) -> None:
    table = scores_of(frame, "method", "seed", "accuracy")
    assert (compare(table, 0.002)["seeds"] > compare(table, 0.01)["seeds"]).all()


def test_equal_differences_go_by_sign_flips_and_have_no_interval() -> None:
    table = pd.DataFrame({"frozen": [0.5, 0.625, 0.75, 0.875]}).assign(full=lambda each: each["frozen"] + 0.125)
    row = compare(table).iloc[0]
    assert (row["mean"], row["p"]) == (-0.125, 2 * 0.5**4)
    assert row[["low", "high", "seeds"]].isna().all()


def test_columns_are_guessed_by_their_names(frame: pd.DataFrame) -> None:
    assert columns(frame, {}) == {"by": "method", "pair": "seed", "score": "accuracy"}
    renamed = frame.rename(columns={"accuracy": "mine"})
    with pytest.raises(SpecError, match="--score"):
        columns(renamed, {})
    assert columns(renamed, {"score": "mine"})["score"] == "mine"
    with pytest.raises(SpecError, match="Did you mean 'method'"):
        columns(frame, {"by": "metod"})


def test_seeds_that_an_arm_lacks_are_refused_unless_told(frame: pd.DataFrame) -> None:
    short = frame.drop(index=3)
    with pytest.raises(SpecError, match="seed 3 is missing for frozen"):
        scores_of(short, "method", "seed", "accuracy")
    found = compare(scores_of(short, "method", "seed", "accuracy", unpaired=True))
    assert sorted(found["n"]) == [SEEDS - 1, SEEDS - 1, SEEDS]


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        (lambda rows: rows.assign(accuracy="high"), DataError, "must be numbers"),
        (lambda rows: rows.assign(accuracy=["0.5", "crashed", *rows["method"][2:]]), DataError, "one is 'crashed'"),
        (lambda rows: rows.assign(accuracy=rows["accuracy"] / (rows.index != 1)), DataError, "row 2: accuracy must be"),
        (lambda rows: rows.assign(accuracy=np.nan), DataError, "row 1 has no"),
        (lambda rows: rows.assign(method="one"), SpecError, "has 1 different"),
        (lambda rows: rows[rows["seed"] < 2], SpecError, "3 seeds"),
        (lambda rows: pd.concat([rows.assign(task=task) for task in ("digits", "mnist")]), SpecError, "differ in task"),
    ],
)
def test_what_cannot_be_compared_is_refused(frame: pd.DataFrame, change: Any, error: Any, named: str) -> None:
    with pytest.raises(error, match=named):
        compare(scores_of(change(frame), "method", "seed", "accuracy"))


@pytest.mark.parametrize("kind", ["uint8", "bool", "Int64"])
def test_scores_of_any_type_and_arms_that_are_true_or_false(frame: pd.DataFrame, kind: str) -> None:
    two = frame[frame["method"] != "lora"].assign(full=lambda rows: rows["method"] == "full")
    scores = (two["full"] & (two["seed"] > 0)).astype(kind)
    (found,) = compare(scores_of(two.assign(accuracy=scores), "full", "seed", "accuracy")).to_dict("records")
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
    assert {row["first"] for row in json.loads(command(path, "--json"))} == {"frozen", "full"}
    command(path, "--point", "nan", code=2)
    command(str(tmp_path / "not.csv"), code=2)
    days = pd.to_datetime(frame["method"].map({"frozen": "2026-01-01", "full": "2026-01-02", "lora": "2026-01-03"}))
    frame.assign(method=days).to_parquet(tmp_path / "days.parquet")
    assert "2026-01-02" in command(str(tmp_path / "days.parquet"), "--json")


def test_two_arms_with_too_few_seeds_in_common_are_shown_and_not_tested(frame: pd.DataFrame) -> None:
    few = frame[(frame["method"] != "lora") | (frame["seed"] < 2)]
    found = compare(scores_of(few, "method", "seed", "accuracy", unpaired=True)).set_index(["first", "second"])
    assert len(found) == 3
    assert found["n"].loc[("frozen", "lora")] == 2
    assert np.isnan(found["p"].loc[("frozen", "lora")])
    assert found["p_holm"].loc[("frozen", "full")] == found["p"].loc[("frozen", "full")]


@pytest.mark.parametrize("column", ["method", "seed"])
def test_lists_in_the_place_of_names_are_refused(frame: pd.DataFrame, column: str) -> None:
    with pytest.raises(DataError, match=f"column {column} holds lists"):
        scores_of(frame.assign(**{column: frame[column].map(lambda value: [value])}), "method", "seed", "accuracy")


def test_equal_differences_give_no_seeds_to_plan_by(frame: pd.DataFrame) -> None:
    apart = frame["method"].map({"frozen": 0.25, "full": 0.5, "lora": 0.75})
    assert compare(scores_of(frame.assign(accuracy=apart), "method", "seed", "accuracy"))["seeds"].isna().all()


def test_json_keeps_small_numbers_and_says_null_for_none(frame: pd.DataFrame, tmp_path: Path) -> None:
    few = frame[(frame["method"] != "lora") | (frame["seed"] < 2)].assign(
        accuracy=lambda runs: runs["accuracy"] * 1e-13
    )
    few.to_csv(tmp_path / "runs.csv", index=False)
    shown = CliRunner().invoke(app, ["compare", str(tmp_path / "runs.csv"), "--unpaired", "--json"])
    rows = {(row["first"], row["second"]): row for row in json.loads(shown.stdout)}
    assert rows["frozen", "lora"]["p"] is None
    assert rows["frozen", "full"]["mean"] != 0


def test_a_column_of_the_very_name_comes_before_one_in_capitals(frame: pd.DataFrame) -> None:
    both = frame.rename(columns={"method": "arm"}).assign(ARM="other")
    assert columns(both, {})["by"] == "arm"
