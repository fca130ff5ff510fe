"""What ways of training on labelled texts reached: against pandas, on the sweeps that are published."""

from pathlib import Path

import pandas as pd
import pytest

from fpt.errors import SpecError
from fpt.results.texts import FRESH, WAYS, Setting, apart, chosen, few_choose, linear, probes, suspicious, tried

TASK, FEW = "banking77", Setting(10, 481)


def test_a_way_of_training_is_read_at_the_rate_of_the_best_mean_macro_accuracy() -> None:
    full = tried(TASK)[FEW]["WP"]
    folder = full.arm.folder
    answers = pd.read_parquet(folder / "answers.parquet").query("part == 'validation'")
    right = answers.assign(right=answers["predicted"] == answers["target"])
    macro = right.groupby(["learning_rate", "seed", "target"])["right"].mean().groupby("learning_rate").mean()
    assert full.rate == macro.idxmax()
    runs = pd.read_parquet(folder / "runs.parquet").set_index(["learning_rate", "seed"])["test_accuracy"]
    assert full.level().value == pytest.approx(100 * runs[full.rate].mean())
    assert full.level(1e-3).value == pytest.approx(100 * runs[1e-3].mean())


def test_the_lead_over_the_probe_is_paired_by_seed_and_text() -> None:
    full, probe = tried(TASK)[FEW]["WP"], probes(TASK)[10]
    found = full.over_probe()
    assert found.value == pytest.approx(full.level().value - probe.level().value)
    assert (found.first, found.second) == pytest.approx((full.level().value, probe.level().value))
    ahead = full.arm.right(full.rate) - probe.arm.right(probe.rate)
    assert found.seed_variance == pytest.approx(1e4 * ahead.mean(axis=1).var() / len(ahead))
    assert found.high - found.low < full.level().high - full.level().low


def test_texts_that_are_left_out_count_in_no_mean() -> None:
    full, numbers = tried(TASK)[FEW]["WP"], suspicious(TASK)
    assert 0 < len(numbers) < 3_080 / 10
    answers = pd.read_parquet(full.arm.folder / "answers.parquet").query(
        "part == 'test' and learning_rate == @full.rate"
    )
    kept = answers[~answers["example"].isin(numbers)]
    found = full.over_probe(left_out=numbers)
    assert found.first == pytest.approx(100 * (kept["predicted"] == kept["target"]).mean())
    assert found.first > full.level().value


def test_what_is_read_on_both_sides_is_no_difference() -> None:
    full = tried(TASK)[FEW]["WP"]
    found = apart([(full.arm, full.rate)], [(full.arm, full.rate)])
    assert (found.value, found.seed_variance, found.test_variance) == (0, 0, 0)


def test_fresh_seeds_are_read_at_the_rate_that_tuning_seeds_chose() -> None:
    tuned, fresh = tried(TASK), tried(TASK, study=FRESH)
    assert FEW in fresh
    for setting, ways in fresh.items():
        for way, each in ways.items():
            assert each.rate == chosen(tuned[setting][way].arm)
            assert each.level().value == pytest.approx(100 * each.arm.values(each.rate).mean())
            assert not {*each.arm.fields["seeds"]} & {*tuned[setting][way].arm.fields["seeds"]}
            assert each.strength == probes(TASK)[setting.labels].rate


def test_few_texts_choose_among_the_rates_of_the_grid() -> None:
    arm = tried(TASK)[FEW]["WP"].arm
    shares = few_choose(arm, 2)
    assert set(shares) <= {*arm.rates}
    assert sum(shares.values()) == pytest.approx(1)
    every = few_choose(
        arm, int(arm.answers.query("part == 'validation'").groupby(["seed", "target"])["example"].nunique().min())
    )
    assert every[chosen(arm)] > shares[chosen(arm)]
    levels = {rate: tried(TASK)[FEW]["WP"].level(rate).value for rate in shares}
    expected = sum(share * levels[rate] for rate, share in shares.items())
    assert tried(TASK)[FEW]["WP"].lost_by_few(2) == pytest.approx(levels[chosen(arm)] - expected)


def test_texts_that_nobody_counted_are_not_left_out() -> None:
    with pytest.raises(SpecError, match="mnist"):
        suspicious("mnist")


def test_settings_come_with_few_labels_first_and_ways_from_the_cheapest_on(root: Path) -> None:
    found = tried(TASK, root)
    assert list(found) == sorted(found, key=lambda each: (each.labels or 1e9, each.steps))
    for setting, ways in found.items():
        assert list(ways) == [way for way in WAYS if way in ways]
        assert all(each.probe is probes(TASK, root)[setting.labels].arm for each in ways.values())
    assert not tried("mnist", root)


def test_a_setting_says_what_trains() -> None:
    assert [str(Setting(10, 481)), str(Setting(0, 1407))] == ["10 labels a class, 481 steps", "all labels, 1,407 steps"]


def test_the_classifier_without_a_model_is_that_of_as_many_labels() -> None:
    assert linear(TASK, 10).share < linear(TASK, 30).share < linear(TASK).share
