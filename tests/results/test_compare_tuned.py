"""`fpt compare`, every arm at its own rate: against scipy, statsmodels and loops, and the project's own studies."""

import json
import math
import re
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind
from typer.testing import CliRunner

from fpt.cli import app
from fpt.cli.compared import one_order
from fpt.errors import DataError, SpecError
from fpt.results.arm import COLLAPSE, Arm
from fpt.results.compare import COMMON, TUNED, Compared, compare
from fpt.results.contrasts import arms_of, contrast
from fpt.results.runs import rate_text
from fpt.show import compared_page
from fpt.show.compared_page import appendix
from fpt.sweeps.selection import choices

RATES = [1e-4, 1e-3, 1e-2]
SEEDS = 6


def table(seed: int = 0, spread: float = 0.01, seeds: int = SEEDS, **best: float) -> pd.DataFrame:
    """Runs of arms whose best rates are given, in decades."""
    rng, rows = np.random.default_rng(seed), []
    for arm, at in best.items():
        for number in range(seeds):
            for rate in RATES:
                level = 0.8 - 0.05 * (np.log10(rate) - at) ** 2
                val, test = level + rng.normal(0, spread, 2)
                rows.append((arm, number, rate, val, test))
    return pd.DataFrame(rows, columns=["arm", "seed", "lr", "val", "test"])


def tuned(frame: pd.DataFrame, **options: Any) -> Compared:
    return compare(frame, "arm", "seed", "test", **({"tune": "lr", "choose": "val"} | options))


@pytest.fixture
def crossing() -> pd.DataFrame:
    return table(full=-4, lora=-2.6)


def row_of(found: Compared, at: str = TUNED, **names: str) -> Any:
    rows = found.contrasts[found.contrasts["at"] == at]
    for name, value in names.items():
        rows = rows[rows[name] == value]
    (row,) = rows.itertuples()
    return row


def loop(frame: pd.DataFrame, arm: str, without: int | None = None) -> "pd.Series[float]":
    """By seed, the test score at the rate with the best mean validation score of the other seeds: written out."""
    runs = frame[(frame["arm"] == arm) & (frame["seed"] != without)]
    found = {}
    for seed in sorted(runs["seed"].unique()):
        means = runs[runs["seed"] != seed].groupby("lr")["val"].mean()
        rate = means.index[means >= means.max() - 1e-12][0]
        found[seed] = runs[(runs["seed"] == seed) & (runs["lr"] == rate)]["test"].item()
    return pd.Series(found)


def test_the_order_flips_between_neighbours_that_both_arms_have(crossing: pd.DataFrame) -> None:
    found = tuned(crossing)
    (flip,) = found.flips.to_dict("records")
    assert (flip["below"], flip["above"]) == ("0.0001", "0.001")
    assert (flip["leads_below"], flip["leads_above"]) == ("full", "lora")
    assert flip["shown"]
    for at, rate in zip(["0.0001", "0.001", "0.01"], RATES, strict=True):
        here = crossing[crossing["lr"] == rate].pivot(index="seed", columns="arm", values="test")
        (row,) = found.rates[found.rates["at"] == at].itertuples()
        test = stats.ttest_rel(here["full"], here["lora"])
        assert (row.p, row.low) == pytest.approx((test.pvalue, test.confidence_interval().low))
    apart = crossing[(crossing["arm"] == "full") | (crossing["lr"] != 1e-3)]
    (wide,) = tuned(apart).flips.to_dict("records")  # the neighbour is the next rate that both have
    assert (wide["below"], wide["above"]) == ("0.0001", "0.01")
    loss = crossing.assign(val=-crossing["val"], test=-crossing["test"])
    (lower,) = tuned(loss, lower_is_better=True).flips.to_dict("records")
    assert lower == flip


def test_an_arm_with_one_rate_or_none_is_named_as_not_tuned(crossing: pd.DataFrame) -> None:
    one = table(1, probe=-3).query("lr == 0.001")
    for probe in (one, one.assign(lr=np.nan)):
        found = tuned(pd.concat([crossing, probe]))
        assert [note for note in found.notes if note.startswith("probe has one lr alone")]
        row, test = row_of(found, second="probe", first="full"), stats.ttest_rel(loop(crossing, "full"), one["test"])
        assert row.p == pytest.approx(test.pvalue)
    with pytest.raises(DataError, match="has no lr"):
        tuned(crossing.assign(lr=crossing["lr"].where(crossing.index != 3)))


def test_choosing_by_the_scores_is_said_to_flatter(crossing: pd.DataFrame) -> None:
    assert "--choose" in tuned(crossing, choose=None).notes[0]
    assert not [note for note in tuned(crossing).notes if "--choose" in note]
    ours = tuned(crossing.assign(val=crossing["test"])).contrasts
    pd.testing.assert_frame_equal(tuned(crossing, choose=None).contrasts, ours)


def test_of_very_many_seeds_the_interval_is_the_t_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice that hangs on single seeds widens it, where these are not so many."""
    unstable = table(3, spread=0.06, a=-3.5, b=-2.9)
    apart = loop(unstable, "a") - loop(unstable, "b")
    alone = stats.ttest_rel(apart, np.zeros(SEEDS)).confidence_interval()
    assert row_of(found := tuned(unstable)).low < alone.low - 1e-6
    assert "jackknife" in appendix(found)[1]
    monkeypatch.setattr("fpt.results.table.MOST_LEFT_OUT", SEEDS - 1)
    monkeypatch.setattr("fpt.show.compared_page.MOST_LEFT_OUT", SEEDS - 1)
    assert row_of(found := tuned(unstable)).low == pytest.approx(alone.low)
    assert "jackknife" not in appendix(found)[1]


def test_arms_with_other_examples_are_refused() -> None:
    rows = [(arm, seed, text + 10 * (arm == "b"), 1) for arm in "ab" for seed in range(4) for text in range(5)]
    frame = pd.DataFrame(rows, columns=["arm", "seed", "text", "right"])
    with pytest.raises(SpecError, match="same examples"):
        compare(frame, "arm", "seed", "right", example="text")


def test_ties_go_to_the_smaller_rate() -> None:
    level = table(a=-3, b=-3).assign(val=0.5)
    assert set(tuned(level).arms["common"]) == {"0.0001"}


@pytest.mark.parametrize("unit", [1e-250, 1.0, 1e250])
def test_a_diverged_loss_however_large_hides_no_other(unit: float) -> None:
    """Of perplexities, one of which is 1e40 times the others: its own seed does not see it, and all others do."""
    frame = table(full=-4, lora=-3).assign(test=lambda rows: (2 - rows["test"]) * unit)
    frame.loc[frame.index[1], "test"] = 1e40 * unit  # of full, seed 0, at 1e-3
    found = tuned(frame.assign(val=frame["test"]), lower_is_better=True)
    assert found.arms["chosen"].tolist() == [{"0.0001": SEEDS}, {"0.001": SEEDS}]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", ["val", "test"])
def test_a_diverged_run_is_named_and_no_other_seed_chooses_its_rate(
    crossing: pd.DataFrame, column: str, value: float
) -> None:
    best = (crossing["arm"] == "full") & (crossing["lr"] == 1e-4)
    lost = crossing.index[best & (crossing["seed"] == 2)]
    frame = crossing.assign(**{column: crossing[column].where(~crossing.index.isin(lost), value)})
    found = tuned(frame, diverged=0.1)
    assert found.arms["chosen"].tolist()[0] == {"0.0001": 1, "0.001": SEEDS - 1}
    assert [note for note in found.notes if "1 of the 18 runs of full have no finite score" in note]
    if column == "test":  # without its value, nothing is said of the arm where it is tuned
        unknown = tuned(frame)
        assert np.isnan(row_of(unknown).p)
        assert [note for note in unknown.notes if "--diverged" in note]
        assert row_of(unknown, COMMON).p < 1
        with pytest.raises(SpecError, match="--diverged"):
            tuned(frame[(frame["arm"] == "lora") | (frame["lr"] == 1e-4)])


def test_an_arm_that_diverged_at_every_rate_is_named_and_costs_no_other(crossing: pd.DataFrame) -> None:
    third = table(5, third=-3).assign(val=np.nan)
    found = tuned(pd.concat([crossing, third]))
    assert np.isnan(row_of(found, first="full", second="third").p)
    assert row_of(found, first="full", second="lora").p == pytest.approx(row_of(tuned(crossing)).p)
    assert [note for note in found.notes if note.startswith("third is not compared where it is tuned")]


def test_the_same_number_is_one_rate_however_it_is_written(crossing: pd.DataFrame) -> None:
    written = {1e-4: ("1e-4", "0.0001"), 1e-3: ("1e-3", " 0.001"), 1e-2: ("1e-2", "0.01")}
    texts = [written[rate][seed % 2] for rate, seed in zip(crossing["lr"], crossing["seed"], strict=True)]
    pd.testing.assert_frame_equal(tuned(crossing.assign(lr=texts)).contrasts, tuned(crossing).contrasts)


@pytest.mark.parametrize(
    ("rate", "named"), [("low", r"low \(row 3\)"), (np.inf, "row 3: lr .* inf"), (1e308, r"row 3: lr .* 1e\+308")]
)
def test_a_rate_that_has_no_place_among_the_others_is_refused(crossing: pd.DataFrame, rate: Any, named: str) -> None:
    assert crossing["lr"].iloc[2] == 1e-2
    with pytest.raises(DataError, match=named):
        tuned(crossing.assign(lr=crossing["lr"].astype(object).replace(1e-2, rate)))


def test_a_rate_that_some_seed_lacks_is_left_out_and_named(crossing: pd.DataFrame) -> None:
    lacking = (crossing["arm"] == "full") & (crossing["lr"] == 1e-4) & (crossing["seed"] == 2)
    found = tuned(crossing[~lacking])
    assert found.arms["incomplete"].tolist()[0] == {"0.0001": "2"}
    both = tuned(
        crossing[~lacking & ((crossing["arm"] != "full") | (crossing["lr"] != 1e-2) | (crossing["seed"] != 3))]
    )
    (note,) = (note for note in both.notes if note.startswith("full lacks"))  # one for all of an arm's rates
    assert {"0.0001 (seed 2)", "0.01 (seed 3)"} <= set(re.findall(r"[\d.]+ \(seed \d\)", note))
    with pytest.raises(SpecError, match="seed 2 is missing for full"):
        tuned(crossing[(crossing["arm"] != "full") | (crossing["seed"] != 2)])


def test_ends_of_the_grid_are_named_by_hyperparameter(crossing: pd.DataFrame) -> None:
    assert tuned(crossing).arms["ends"].tolist() == [["lr low"], []]
    both = pd.concat([crossing.assign(rank=rank, val=crossing["val"] + rank / 1000) for rank in (4, 8)])
    found = tuned(both, tune=("lr", "rank"))
    assert found.arms["ends"].tolist() == [["lr low", "rank high"], ["rank high"]]
    assert found.arms["common"].tolist() == ["lr 0.0001, rank 8", "lr 0.001, rank 8"]
    assert set(found.flips["tune"]) == {"lr"}


def test_groups_are_compared_apart_and_joined_by_bonferroni() -> None:
    groups = {"x": table(1, full=-4, lora=-3), "y": table(2, full=-4, lora=-3), "z": table(3, full=-4, lora=-3)}
    shift = {"x": 0.1, "y": 0.0, "z": 0.0}
    frames = [frame.assign(task=task, test=frame["test"] + shift[task] * (frame["arm"] == "full"))
              for task, frame in groups.items()]  # fmt: skip
    found = tuned(pd.concat(frames), within="task")
    (joined,) = found.joined.drop(columns=["within", "first", "second"]).to_numpy().tolist()
    assert joined == [3, 1, 0, "full leads"]
    for task, frame in zip(groups, frames, strict=True):
        alone, row = row_of(tuned(frame)), row_of(found, within=task)
        assert (row.mean, row.low, row.p) == pytest.approx((alone.mean, alone.low, alone.p))
    ps = found.contrasts[found.contrasts["at"] == TUNED]
    assert ps["p_holm"].to_numpy() == pytest.approx(multipletests(ps["p"], method="holm")[1])
    other = frames[1].assign(test=lambda rows: rows["test"] + 0.1 * (rows["arm"] == "lora"))
    assert tuned(pd.concat([frames[0], other]), within="task").joined["word"].tolist() == ["mixed"]


def test_several_columns_name_a_pair(crossing: pd.DataFrame) -> None:
    frame = crossing.assign(draw=crossing["seed"] % 2, number=crossing["seed"] // 2).drop(columns="seed")
    found = compare(frame, "arm", ["draw", "number"], "test", tune="lr", choose="val")
    assert row_of(found).p == pytest.approx(row_of(tuned(crossing)).p)


def test_unpaired_tuned_arms_are_welchs_and_alike_by_two_one_sided_tests(crossing: pd.DataFrame) -> None:
    fewer = crossing[(crossing["arm"] != "full") | (crossing["seed"] != 2)]
    row = row_of(tuned(fewer, unpaired=True, margin=0.02))
    one, other = loop(fewer, "full"), loop(fewer, "lora")
    assert row.p == pytest.approx(stats.ttest_ind(one, other, equal_var=False).pvalue)
    assert row.p_alike == pytest.approx(ttost_ind(one, other, -0.02, 0.02, usevar="unequal")[0])


def test_where_keeps_rows_by_text_or_number(crossing: pd.DataFrame) -> None:
    found = tuned(crossing, where={"lr": ["0.001", "1e-2"]})
    assert set(found.rates["at"]) == {"0.001", "0.01"}
    for where in ({"lr": ["5"]}, {"rate": ["1"]}):
        with pytest.raises(SpecError, match="--where"):
            tuned(crossing, where=where)


def test_answers_by_example_bring_the_noise_of_the_examples_in_pairs() -> None:
    """Against the two-way analysis of variance of the paired answers, written out."""
    rng, rows = np.random.default_rng(0), []
    hard, m = rng.normal(size=40), 40
    for arm, level in (("a", 0.8), ("b", 0.3)):
        for seed in range(5):
            right = rng.normal(size=m) + level > hard
            rows += [(arm, seed, example, int(right[example])) for example in range(m)]
    frame = pd.DataFrame(rows, columns=["arm", "seed", "text", "right"])
    row = row_of(compare(frame, "arm", "seed", "right", example="text"), "as given")
    cube = frame.pivot(index=["arm", "seed"], columns="text", values="right")
    apart = (cube.loc["a"] - cube.loc["b"]).to_numpy(float)
    rest = apart - apart.mean(0) - apart.mean(1, keepdims=True) + apart.mean()
    of_rest = (rest**2).sum() / (4 * (m - 1))
    noise = max(0.0, (apart.mean(0).var(ddof=1) - of_rest / 5) / m)
    error = np.sqrt(apart.mean(1).var(ddof=1) / 5 + noise)
    assert row.high - row.low == pytest.approx(2 * error * stats.t.ppf(0.975, 4))
    with pytest.raises(SpecError, match="same examples"):
        compare(frame.drop(index=7), "arm", "seed", "right", example="text")


def test_seeds_of_many_digits_and_names_with_commas_stay_apart(crossing: pd.DataFrame) -> None:
    far = crossing.assign(seed=crossing["seed"] + 10**18)
    pd.testing.assert_frame_equal(tuned(far).contrasts, tuned(crossing).contrasts)
    names = {0: ("a, b", "c"), 1: ("a", "b, c")}
    frame = crossing[crossing["seed"] < 2].assign(
        one=lambda rows: rows["seed"].map(lambda seed: names[seed][0]),
        two=lambda rows: rows["seed"].map(lambda seed: names[seed][1]),
    )
    with pytest.raises(DataError, match="are written"):
        compare(frame, "arm", ["one", "two"], "test", tune="lr")


def test_arms_without_a_rate_in_common_are_named(crossing: pd.DataFrame) -> None:
    apart = crossing[(crossing["lr"] < 1e-2) == (crossing["arm"] == "full")]
    found = tuned(apart)
    assert found.rates.empty
    assert [note for note in found.notes if "full - lora" in note]
    assert not [note for note in tuned(crossing).notes if "full - lora" in note]


@pytest.mark.parametrize("option", ["tune", "within", "pair", "example", "where"])
def test_what_is_advised_for_rows_that_stand_twice_makes_them_single(crossing: pd.DataFrame, option: str) -> None:
    """Each piece of advice is taken word for word, beside the options that were given."""
    twice = pd.concat([crossing.assign(warm=warm, steps=range(len(crossing))) for warm in (0, 100)], ignore_index=True)
    twice["val"] += twice.index * 1e-6
    given = {"tune": ["lr"], "within": [], "pair": ["seed"], "example": []}
    with pytest.raises(SpecError) as refused:
        compare(twice, "arm", ["seed"], "test", tune="lr")
    words = re.split(r"[\s,]+", str(refused.value).partition("differ in ")[2])
    advised: dict[str, list[str]] = {}
    for name, value in pairwise(words):
        if name.startswith("--"):
            advised.setdefault(name[2:], []).append(value)
    options: dict[str, Any] = given | {option: advised[option]}
    if option == "where":
        options["where"] = {"warm": [advised["where"][0].replace("warm=VALUE", "0")]}
    options["example"] = "".join(options["example"]) or None
    found = compare(twice, "arm", options.pop("pair"), "test", **options)
    assert row_of(found, **({"within": "0"} if option == "within" else {})).n == SEEDS * (2 if option == "pair" else 1)


CHOICES = {
    "where": ({"where": {"lr": ["0.001", "0.01"]}}, "lr 0.001 or 0.01"),
    "margin": ({"margin": 0.0325}, "0.0325"),
    "diverged": ({"diverged": 0.125}, "0.125"),
    "collapse": ({"collapse": 0.275}, "0.275"),
    "test examples": ({"test_examples": 4321}, "4,321"),
    "lower": ({"lower_is_better": True}, "lowest mean val"),
    "direction of the score": ({"lower_is_better": True}, "test (lower is better)"),
    "direction of the choice": ({"choose_lower": True}, "lowest mean val"),
    "unpaired": ({"unpaired": True}, "Welch"),
    "groups": ({"within": "task"}, "each task"),
    "parts": ({"test_share": 0.2}, "0.2"),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_the_sentences_for_an_appendix_name_every_choice(crossing: pd.DataFrame, choice: str) -> None:
    options, named = CHOICES[choice]
    frame = crossing.assign(task="one")
    assert named not in " ".join(appendix(tuned(frame)))
    assert named in " ".join(appendix(tuned(frame, **options)))


def test_the_bars_of_a_page_are_the_intervals(crossing: pd.DataFrame) -> None:
    """Also where an interval is much longer than its difference, which reached only twice as far once."""
    wide = crossing.assign(test=np.random.default_rng(0).normal(0, 1, len(crossing)))
    found = tuned(
        pd.concat([wide, wide[wide["arm"] == "full"].assign(arm="same", test=lambda rows: rows["test"] + 1e-6)])
    )
    (axes,) = compared_page._forest(found).axes
    drawn = [segment[:, 0] for bars in axes.collections for segment in bars.get_segments()]
    rows = found.contrasts[found.contrasts["low"].notna()]
    assert np.array(drawn) == pytest.approx(rows[["low", "high"]].to_numpy())


def test_a_page_says_whether_less_is_better_and_has_room_for_long_names(crossing: pd.DataFrame) -> None:
    """pytest makes an error of matplotlib's warning that a figure has no room."""
    names = {
        name: f"{name}, a method whose name has many words and goes on for lines, {'x' * 90}" for name in "abcdefgh"
    }
    many = pd.concat([table(number, **{name: -3}) for number, name in enumerate(names)])
    found = tuned(many.assign(arm=many["arm"].map(names), lr=many["lr"].map("a setting in words, {}".format)))
    page = compared_page.compared_page(found, "runs.csv")
    assert all(name in page for name in names.values())
    assert "(lower is better)" not in page
    assert "(lower is better)" in compared_page.compared_page(tuned(crossing, lower_is_better=True), "runs.csv")


def test_refusals_name_what_is_wrong(crossing: pd.DataFrame) -> None:
    with pytest.raises(SpecError, match=r"differ in lr: --tune lr"):
        compare(crossing.drop(columns="val"), "arm", "seed", "test")
    with pytest.raises(SpecError, match="several"):
        tuned(pd.concat([crossing, crossing.iloc[:1]]))
    with pytest.raises(SpecError, match="--tune"):
        compare(crossing, "arm", "seed", "test", choose="val")
    with pytest.raises(SpecError, match="--example"):
        tuned(pd.concat([crossing.assign(text=text) for text in range(1001)]), within="text")
    for number in (1e301, -1e301):
        with pytest.raises(DataError, match="row 5"):
            tuned(crossing.assign(test=crossing["test"].where(crossing.index != 4, number)))


RUNS = st.lists(st.floats(0.25, 1).map(lambda value: round(value, 3)), min_size=24, max_size=24, unique=True)
GRID = pd.MultiIndex.from_product([["a", "b"], range(4), RATES], names=["arm", "seed", "lr"])


@settings(max_examples=40)
@given(RUNS, st.randoms(use_true_random=False), st.integers(-300, 300))
def test_rows_order_unit_and_direction_change_no_number(scores: list[float], source: Any, power: int) -> None:
    frame = pd.DataFrame({"test": scores}, index=GRID).reset_index().assign(val=lambda rows: rows["test"])
    one = tuned(frame, point=0.1)
    order = list(frame.index)
    source.shuffle(order)
    pd.testing.assert_frame_equal(tuned(frame.loc[order], point=0.1).contrasts, one.contrasts)
    numbers, unit = ["level_first", "level_second", "mean", "low", "high"], 2.0**power
    scaled = tuned(frame.assign(test=unit * frame["test"], val=unit * frame["val"]), point=0.1 * unit).contrasts
    pd.testing.assert_frame_equal(scaled[numbers], unit * one.contrasts[numbers])
    pd.testing.assert_frame_equal(scaled[["p", "seeds"]], one.contrasts[["p", "seeds"]])
    swapped = tuned(frame.assign(arm=frame["arm"].map({"a": "b", "b": "a"})), point=0.1).contrasts
    assert swapped["mean"].to_numpy() == pytest.approx(-one.contrasts["mean"].to_numpy())
    assert swapped["low"].to_numpy() == pytest.approx(-one.contrasts["high"].to_numpy())
    losses = tuned(frame.assign(test=-frame["test"], val=-frame["val"]), point=0.1, lower_is_better=True).contrasts
    assert losses["mean"].to_numpy() == pytest.approx(-one.contrasts["mean"].to_numpy())
    assert losses["leads"].tolist() == one.contrasts["leads"].tolist()


PUBLISHED = Path(__file__).parents[2] / "runs"
STUDIES = sorted(set(pd.read_csv(PUBLISHED / "arms.csv")["study"]))
MANY = {"controls", "laptop-lu2021", "laptop-rothermel2021", "lora-text"}  # of whose pairs most are read by nobody


def comparable(study: str) -> Iterator[dict[str, Arm]]:
    """Published arms that share task, steps and test set, and have a rate at which every seed stayed finite; of studies
    with many, every two that the book contrasts."""
    groups: dict[tuple[Any, ...], dict[str, Arm]] = {}
    for (task, name), arm in arms_of(study).items():
        if arm.best_rate() is not None:
            groups.setdefault((task, arm.steps, f"{arm.sampled_from}"), {})[name] = arm
    read = set(map(frozenset, pd.read_csv(PUBLISHED / "contrasts.csv")[["first", "second"]].to_numpy()))
    for arms in groups.values():
        if study not in MANY:
            yield arms
            continue
        for one, other in combinations(arms.values(), 2):
            if {one.sweep, other.sweep} in read:
                yield {one.name: one, other.name: other}


def runs_of(arm: Arm) -> pd.DataFrame:
    """A published arm as anybody's table: a row a run, or an answer of a run where the record keeps these."""
    scores, right = arm.plane(), {rate: arm.right(rate) for rate in arm.rates}
    if all(len(each) for each in right.values()):
        scores = pd.concat(right, names=["learning_rate"]).stack(["example", "target"], future_stack=True)
    else:
        scores = scores.stack()
    frame = scores.rename("test").reset_index().assign(arm=arm.name)
    if "example" not in frame:
        frame["example"] = None
    val = arm.validation().stack(future_stack=True).rename("val")
    return frame.join(val, on=["seed", "learning_rate"]).rename(columns={"learning_rate": "lr", "example": "text"})


@pytest.mark.parametrize(
    "study", [pytest.param(study, marks=[pytest.mark.slow] if study in MANY else []) for study in STUDIES]
)
def test_it_says_of_published_runs_what_the_book_says(study: str) -> None:
    """Levels, means, intervals and p-values of all contrasts, tuned, at the best rate of each, and at every rate."""
    for arms in comparable(study):
        (examples,), (task,) = {f"{arm.sampled_from}" for arm in arms.values()}, {arm.task for arm in arms.values()}
        if len(arms) < 2:
            continue
        frame = pd.concat([runs_of(arm) for arm in arms.values()])
        kept = frame["text"].notna().all()  # then the noise of the test set is paired over texts, there and here
        size = None if kept or examples == "nan" else int(float(examples))
        found = tuned(frame, example="text" if kept else None, test_examples=size, collapse=COLLAPSE)
        for name, arm in arms.items():
            (row,) = found.arms[found.arms["arm"] == name].itertuples()
            counts = choices(arm.validation()).map(rate_text).value_counts().to_dict()
            assert {rate_text(rate): seeds for rate, seeds in row.chosen.items()} == counts
        rates = found.rates.assign(at=found.rates["at"].astype(float))
        for row in [*found.contrasts.itertuples(), *rates.itertuples()]:
            ours = contrast(study, row.first, row.second, task=task, at=row.at)
            assert (100 * row.mean, 100 * row.level_first, row.n) == pytest.approx((ours.mean, ours.first, ours.n))
            assert row.p == pytest.approx(ours.p, rel=1e-6)
            if math.isnan(row.low):  # all differences are equal: the book shows an interval of one point, and we none
                assert ours.low == ours.high == pytest.approx(ours.mean)
            else:
                ends = pytest.approx((ours.low, ours.high), rel=1e-6, abs=1e-4)  # those of sign flips are searched for
                assert (100 * row.low, 100 * row.high) == ends


def test_the_command_tunes_and_writes_a_page(crossing: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    odd = crossing.assign(arm=crossing["arm"].replace("lora", "<b>$r$</b>"))
    odd.to_csv(path, index=False)

    def command(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["compare", str(path), "--score", "test", *words], env={"COLUMNS": "80"})
        assert done.exit_code == code, done.output
        return done.output

    told = command("--rate", "lr", "--choose", "val", "--page", str(tmp_path / "page.html"))
    assert max(map(len, told.splitlines())) <= 80
    assert "The order flips" in told
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<b>$r$</b>" not in page.partition("<body>")[2]
    assert "&lt;b&gt;" in page
    shown = json.loads(command("--tune", "lr", "--choose", "val", "--json"))
    assert {row["at"] for row in shown["contrasts"]} == {TUNED, COMMON}
    assert shown["flips"][0]["below"] == "0.0001"
    command("--tune", "lr", "--where", "lr", code=2)
    command("--tune", "lr", "--page", str(tmp_path), code=2)
    command("--tune", "lr", "--margin", "nan", code=2)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"choose_lower": True}, "--choose-lower"),
        ({"collapse": 0.3, "unpaired": True}, "--unpaired"),
        *(({name: number}, f"--{name.replace('_', '-')}") for name, number in [
            ("diverged", 1e308), ("diverged", math.nan), ("margin", math.nan), ("margin", -1), ("margin", math.inf),
            ("collapse", -0.1), ("point", 0), ("point", math.nan), ("test_examples", 0), ("test_share", 1.0),
        ]),
    ],
)  # fmt: skip
def test_options_that_would_have_no_effect_are_refused(crossing: pd.DataFrame, options: dict, named: str) -> None:
    with pytest.raises(SpecError, match=named):
        tuned(crossing, choose=None, **options)


def test_one_order_is_claimed_only_of_several_settings_that_were_tested() -> None:
    names = {"within": "", "first": "a", "second": "b"}
    for means, said in (([0.1, 0.2], True), ([0.1, -0.2], False), ([0.1], False), ([0.1, math.nan], False)):
        assert one_order(pd.DataFrame([names | {"mean": mean} for mean in means])) is said
