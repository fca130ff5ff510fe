"""`fpt compare` on a dozen awkward files, by the command: every number of its JSON against scipy and statsmodels.

What an arm scores, tuned, is written out here with pandas alone: by_hand. Nothing of the package computes it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired
from typer.testing import CliRunner

from fpt.cli import app

RATES = (1e-4, 3e-4, 1e-3, 3e-3)
EXACT = 1e-9
COLUMNS = ("--by", "arm", "--rate", "lr", "--score", "test", "--choose", "val")


def sweep(seed: int, best: Mapping[str, float], seeds: int = 6, spread: float = 0.01) -> pd.DataFrame:
    """Accuracies that fall off from each arm's best rate, in decades."""
    rng = np.random.default_rng(seed)
    rows = []
    for arm, at in best.items():
        for number in range(seeds):
            for rate in RATES:
                level = 0.8 - 0.06 * (np.log10(rate) - at) ** 2
                rows.append((arm, number, rate, *(level + rng.normal(0, spread, 2))))
    return pd.DataFrame(rows, columns=["arm", "seed", "lr", "val", "test"])


@dataclass(frozen=True)
class Case:
    """A table, the options that are given, and what these mean for who computes by hand."""

    frame: Callable[[], pd.DataFrame]
    ending: str = "csv"
    options: tuple[str, ...] = ()
    tune: tuple[str, ...] = ("lr",)
    diverged: float | None = None
    margin: float | None = None
    lower: bool = False  # of what chooses
    unstable: bool = False  # the seeds of some arm do not agree on a rate
    flips: bool = True  # the order, between some rates


def flipping() -> pd.DataFrame:
    return sweep(0, {"full": -4, "lora": -2.6})


def never_tuned() -> pd.DataFrame:
    rows = sweep(1, {"full": -4, "lora": -3, "probe": -3.5})
    return rows[(rows["arm"] != "probe") | (rows["lr"] == 1e-3)]


def without_rate() -> pd.DataFrame:
    rows = never_tuned()
    return rows.assign(lr=rows["lr"].mask(rows["arm"] == "probe"))


def missing_runs() -> pd.DataFrame:
    """The best rate of one arm lacks a seed, another rate of the other arm two."""
    rows = flipping()
    first = (rows["arm"] == "full") & (rows["lr"] == 1e-4) & (rows["seed"] == 3)
    second = (rows["arm"] == "lora") & (rows["lr"] == 3e-4) & rows["seed"].isin([0, 5])
    return rows[~first & ~second]


def diverging() -> pd.DataFrame:
    """NaN and both infinities, in either column, at the best rate of one arm and beside it."""
    rows = sweep(4, {"full": -3.3, "lora": -2.8}).astype({"seed": float})
    of_full = rows.index[(rows["arm"] == "full") & (rows["lr"] == 1e-3)]
    rows.loc[of_full[0], "test"], rows.loc[of_full[3], "val"] = np.nan, np.inf
    rows.loc[rows.index[(rows["arm"] == "lora") & (rows["lr"] == 3e-3)][1], ["val", "test"]] = -np.inf
    return rows.astype({"seed": int})


def losses() -> pd.DataFrame:
    """A perplexity is reported, and an accuracy chooses; one perplexity is 1e40 times the others."""
    rows = sweep(5, {"full": -4, "lora": -3})
    rows["test"] = 20 - 10 * rows["test"]
    rows.loc[rows.index[(rows["arm"] == "lora") & (rows["lr"] == 3e-3)][2], "test"] = 1e40
    return rows


def written_in_many_ways() -> pd.DataFrame:
    rows = flipping()
    ways = {1e-4: ("1e-4", "0.0001"), 3e-4: ("3E-4", ".0003"), 1e-3: ("0.001", "1e-03"), 3e-3: ("0.003", "3.0e-3")}
    texts = [ways[rate][seed % 2] for rate, seed in zip(rows["lr"], rows["seed"], strict=True)]
    return rows.assign(lr=texts).sample(frac=1, random_state=0)


def two_hyperparameters() -> pd.DataFrame:
    rows = [sweep(6, {"full": -4, "lora": -2.6}).assign(rank=4), sweep(7, {"full": -3.8, "lora": -2.6}).assign(rank=16)]
    return pd.concat(rows)


def published(file: str, arm: str, seed: str, lr: str, score: str, **only: str) -> pd.DataFrame:
    """One of the tables in tests/data/sweeps, whose scores choose as well. `only`: the value of another column."""
    rows = pd.read_csv(Path(__file__).parents[1] / "data" / "sweeps" / file)
    for column, value in only.items():
        rows = rows[rows[column] == value]
    rows = rows.rename(columns={arm: "arm", seed: "seed", lr: "lr", score: "test"})
    return rows[["arm", "seed", "lr", "test"]].assign(val=rows["test"])


CASES = {
    "published: optimizers": Case(
        lambda: published("optimizers.csv", "optimizer", "budget", "learning_rate", "loss"),
        "tsv",
        ("--lower-is-better",),
        lower=True,
        flips=False,
    ),
    "published: batches": Case(
        lambda: published("hpobench.csv", "batch_size", "seed", "learning_rate", "valid_accuracy", dataset="phoneme")
    ),
    "published: schedules": Case(
        lambda: published("fcnet.csv", "schedule", "repeat", "init_lr", "valid_mse", dataset="slice_localization"),
        options=("--lower-is-better",),
        lower=True,
        unstable=True,
        flips=False,
    ),
    "the order flips": Case(flipping),
    "an arm never tuned": Case(never_tuned, "tsv"),
    "an arm without a rate": Case(without_rate, "parquet"),
    "an unstable choice": Case(lambda: sweep(3, {"a": -3.5, "b": -2.9}, spread=0.06), "parquet", unstable=True),
    "missing runs": Case(missing_runs, "tsv", flips=False),
    "diverged runs": Case(diverging, options=("--diverged", "0.1"), diverged=0.1, unstable=True),
    "losses chosen by accuracies": Case(losses, "parquet", ("--lower-is-better", "--choose-higher")),
    "very large scores": Case(lambda: flipping().assign(test=lambda rows: rows["test"] * 1e250), "tsv"),
    "very small scores": Case(lambda: flipping().assign(test=lambda rows: rows["test"] * 1e-250)),
    "rates written in many ways": Case(written_in_many_ways, "tsv"),
    "two hyperparameters": Case(two_hyperparameters, options=("--tune", "rank"), tune=("lr", "rank")),
    "a difference that does not matter": Case(flipping, "parquet", ("--margin", "0.05"), margin=0.05),
}


def planes(runs: pd.DataFrame, case: Case) -> list[pd.DataFrame]:
    """What chooses, and the scores, seeds x settings, ascending; a setting that some seed lacks is left out."""
    rates = runs.astype(dict.fromkeys(case.tune, float))
    settings = rates.groupby(list(case.tune), dropna=False).ngroup()
    counts = settings.groupby(settings).transform("size")
    whole = runs.assign(setting=settings)[counts == runs["seed"].nunique()]
    whole["val"] = (-whole["val"] if case.lower else whole["val"]).where(
        np.isfinite(whole["val"]) & np.isfinite(whole["test"])
    )
    whole["test"] = whole["test"].where(np.isfinite(whole["test"]), case.diverged)
    return [whole.pivot(index="seed", columns="setting", values=name) for name in ("val", "test")]


def best(val: pd.DataFrame) -> int:
    """The setting with the best mean at which no run diverged; of equal ones the smallest."""
    means = val.mean(skipna=False).dropna()
    return min(means.index[means == means.max()])


def by_hand(runs: pd.DataFrame, case: Case, without: int | None = None) -> "pd.Series[float]":
    """By seed, the score at the setting that is best on the other seeds; as if one had not been run."""
    val, test = (plane.drop(index=[] if without is None else without) for plane in planes(runs, case))
    return pd.Series({seed: test.loc[seed, best(val.drop(index=seed))] for seed in val.index})


def contrast_by_hand(one: pd.DataFrame, other: pd.DataFrame, case: Case) -> tuple[float, float, float, float]:
    """Mean, ends of the interval and p: of a t-test, or of a jackknife of the whole procedure where it is wider."""
    apart = by_hand(one, case) - by_hand(other, case)
    n = len(apart)
    scale = np.abs(apart).max()  # the squares of very large and very small scores are no numbers
    left_out = [(by_hand(one, case, seed) - by_hand(other, case, seed)).mean() / scale for seed in apart.index]
    jackknife = np.sqrt((n - 1) / n * ((left_out - np.mean(left_out)) ** 2).sum())
    of_values = (apart / scale).std(ddof=1) / np.sqrt(n)
    if np.isclose(jackknife, of_values, rtol=1e-6):
        test = stats.ttest_rel(apart / scale, np.zeros(n))
        ends = test.confidence_interval()
        return apart.mean(), ends.low * scale, ends.high * scale, test.pvalue
    half = max(jackknife, of_values) * stats.t.ppf(0.975, n - 1)
    p = 2 * stats.t.sf(abs((apart / scale).mean()) / max(jackknife, of_values), n - 1)
    return apart.mean(), apart.mean() - half * scale, apart.mean() + half * scale, p


def asked(path: Path, frame: pd.DataFrame, case: Case, *more: str) -> dict[str, Any]:
    """What the command finds in a file, as JSON."""
    file = path / f"table.{case.ending}"
    if case.ending == "parquet":
        frame.to_parquet(file, index=False)
    else:
        frame.to_csv(file, index=False, sep="\t" if case.ending == "tsv" else ",")
    done = CliRunner().invoke(app, ["compare", str(file), *COLUMNS, "--pair", "seed", *case.options, *more, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_that_of_scipy_and_statsmodels(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    frame = case.frame()
    found = asked(tmp_path, frame, case)
    arms = {str(arm): runs for arm, runs in frame.groupby("arm")}
    tuned = [row for row in found["contrasts"] if row["at"] == "tuned"]
    assert len(tuned) == len(arms) * (len(arms) - 1) // 2
    for row in tuned:
        numbers = contrast_by_hand(arms[row["first"]], arms[row["second"]], case)
        assert (row["mean"], row["low"], row["high"], row["p"]) == pytest.approx(numbers, rel=EXACT)
        level = by_hand(arms[row["first"]], case).mean()
        assert row["level_first"] == pytest.approx(level, rel=EXACT)
        if case.margin:
            one, other = (by_hand(arms[row[side]], case).to_numpy() for side in ("first", "second"))
            assert row["p_alike"] == pytest.approx(ttost_paired(one, other, -case.margin, case.margin)[0], rel=EXACT)
    holm = multipletests([row["p"] for row in tuned], method="holm")[1]
    assert [row["p_holm"] for row in tuned] == pytest.approx(list(holm), rel=EXACT)
    for row in (row for row in found["contrasts"] if row["at"] == "common"):
        both = [planes(arms[row[side]], case) for side in ("first", "second")]
        one, other = (test[best(val)] / abs(row["level_first"]) for val, test in both)
        assert row["p"] == pytest.approx(stats.ttest_rel(one, other).pvalue, rel=EXACT)
    assert any(len(row["chosen"]) > 1 for row in found["arms"]) == case.unstable
    assert bool(found["flips"]) == case.flips


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.tune == ("lr",)])
def test_at_every_rate_that_two_arms_share_it_is_the_paired_t_test(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    frame = case.frame().assign(lr=lambda rows: rows["lr"].astype(float))
    found = asked(tmp_path, case.frame(), case)
    scores = frame["test"].where(np.isfinite(frame["test"]), case.diverged)
    for row in (row for row in found["rates"] if row["p"] is not None):  # none: a run has no score
        here = frame.assign(test=scores)[np.isclose(frame["lr"], float(row["at"]))]
        one, other = (
            here[here["arm"].astype(str) == row[side]].set_index("seed")["test"].sort_index()
            for side in ("first", "second")
        )
        scale = max(one.abs().max(), other.abs().max())
        test = stats.ttest_rel(one / scale, other / scale)
        ends = test.confidence_interval()
        numbers = (test.pvalue, ends.low * scale, ends.high * scale)
        assert (row["p"], row["low"], row["high"]) == pytest.approx(numbers, rel=EXACT)
    for names in {(row["first"], row["second"]) for row in found["rates"]}:
        rows = sorted(
            (float(row["at"]), row["mean"])
            for row in found["rates"]
            if (row["first"], row["second"]) == names and row["p"] is not None
        )
        crossed = [(below, above) for (below, a), (above, b) in pairwise(rows) if (a > 0) != (b > 0)]
        told = [(float(each["below"]), float(each["above"])) for each in found["flips"]
                if (each["first"], each["second"]) == names]  # fmt: skip
        assert told == crossed


def test_groups_in_a_file_are_the_tables_of_each(tmp_path: Path) -> None:
    tasks = {task: sweep(place, {"full": -4, "lora": -2.9}) for place, task in enumerate("xyz")}
    frame = pd.concat([rows.assign(task=task) for task, rows in tasks.items()])
    found = asked(tmp_path, frame, Case(flipping, "tsv"), "--within", "task")
    rows = [row for row in found["contrasts"] if row["at"] == "tuned"]
    for row in rows:
        arms = dict(list(tasks[row["within"]].groupby("arm")))
        numbers = contrast_by_hand(arms["full"], arms["lora"], Case(flipping))
        assert (row["mean"], row["low"], row["high"], row["p"]) == pytest.approx(numbers, rel=EXACT)
    (joined,) = found["joined"]
    survive = [row["leads"] for row in rows if row["p"] * len(rows) < 0.05]
    assert (joined["first_leads"], joined["second_leads"]) == (survive.count("full"), survive.count("lora"))


@pytest.mark.parametrize("twice", ["the same row again", "another score"])
def test_a_run_that_stands_twice_stops_the_command(twice: str, tmp_path: Path) -> None:
    frame = flipping()
    again = frame.iloc[[7]] if twice == "the same row again" else frame.iloc[[7]].assign(test=0.5)
    pd.concat([frame, again]).to_csv(tmp_path / "twice.csv", index=False)
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "twice.csv"), *COLUMNS])
    assert done.exit_code == 2
    assert "2 rows" in done.output


def test_half_a_million_rows_have_the_numbers_of_a_loop(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arms, seeds = ("a", "b"), 25_000
    grid = pd.MultiIndex.from_product([arms, range(seeds), np.geomspace(1e-5, 1e-1, 10)], names=["arm", "seed", "lr"])
    frame = pd.DataFrame(index=grid).reset_index()
    best = frame["arm"].map({"a": -4, "b": -2})
    level = 0.8 - 0.02 * (np.log10(frame["lr"]) - best) ** 2
    frame = frame.assign(val=level + rng.normal(0, 0.02, len(frame)), test=level + rng.normal(0, 0.02, len(frame)))
    (row,) = (row for row in asked(tmp_path, frame, Case(flipping, "parquet"))["contrasts"] if row["at"] == "tuned")
    means = frame.groupby(["arm", "lr"])["val"].mean()
    one, other = (frame[(frame["arm"] == arm) & (frame["lr"] == means[arm].idxmax())] for arm in arms)
    test = stats.ttest_rel(one["test"], other["test"])
    assert (row["n"], row["p"]) == (seeds, pytest.approx(test.pvalue))
    assert row["low"] == pytest.approx(test.confidence_interval().low)
