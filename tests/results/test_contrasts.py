"""Contrasts of arms: against pandas and scipy on published results, and what their intervals mean."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic
from scipy import stats

from fpt.errors import SpecError
from fpt.results import arms_of, baseline, contrast, counted, level
from fpt.results.contrasts import at_equal_compute, find_arm
from fpt.sweeps import SweepSpec

DIGITS = 1797


def plane(root: Path, study: str, arm: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Validation and test accuracy by seed and rate, read without the package."""
    (folder,) = (root / "runs" / study / "published").glob(f"*.{arm}-*")
    runs = pd.read_parquet(folder / "runs.parquet")
    return tuple(
        runs.pivot(index="seed", columns="learning_rate", values=f"{of}_accuracy") for of in ("validation", "test")
    )


def tuned(validation: pd.DataFrame, test: pd.DataFrame) -> pd.Series:
    """Test accuracy by seed, at the rate that is best on the other seeds."""
    best = {seed: validation.drop(seed).mean().round(12).idxmax() for seed in validation.index}
    return pd.Series({seed: test.loc[seed, rate] for seed, rate in best.items()})


@pytest.mark.parametrize(("other", "jackknifed"), [("unfrozen-pretrained", True), ("unfrozen-random", False)])
def test_a_tuned_contrast_is_that_of_forty_lines_of_pandas(root: Path, other: str, jackknifed: bool) -> None:
    planes = [plane(root, "plane-digits", arm) for arm in ("frozen-pretrained", other)]
    first, second = (tuned(*each) for each in planes)
    found = contrast("plane-digits", "frozen-pretrained", other)
    difference, n = 100 * (first - second), len(first)
    images = sum(1e4 * each.mean() * (1 - each.mean()) / DIGITS for each in (first, second))
    left_out = pd.Series(
        {
            seed: 100 * np.subtract(*(tuned(*(part.drop(seed) for part in each)).mean() for each in planes))
            for seed in difference.index
        }
    )
    variances = difference.var() / n, (n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()
    assert (variances[1] > 1.01 * variances[0]) == jackknifed
    half = stats.t.ppf(0.975, n - 1) * math.sqrt(max(variances) + images)
    assert found.mean == pytest.approx(difference.mean())
    assert (found.low, found.high) == pytest.approx((difference.mean() - half, difference.mean() + half))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(difference.mean()) / math.sqrt(max(variances) + images), n - 1))
    assert (found.first, found.second) == pytest.approx((100 * first.mean(), 100 * second.mean()))
    assert found.n == len(difference)


def test_at_a_rate_both_arms_are_read_there(root: Path) -> None:
    (_, first), (_, second) = (plane(root, "plane-minilm", arm) for arm in ("frozen-pretrained", "unfrozen-pretrained"))
    found = contrast("plane-minilm", "FP", "UP", at=1e-3)
    assert found.mean == pytest.approx(100 * (first[1e-3] - second[1e-3]).mean())
    assert found.common is None


def test_the_common_rate_is_one_for_all_seeds(root: Path) -> None:
    values = []
    for arm in ("unfrozen-pretrained", "frozen-random"):
        validation, test = plane(root, "smollm2", arm)
        values.append(100 * test[validation.mean().idxmax()])
    found = contrast("smollm2", "UP (layers 4)", "FR (layers 4)")
    assert found.common.mean == pytest.approx((values[0] - values[1]).mean())
    assert found.common.mean != pytest.approx(found.mean)  # the rate alternates between seeds there


def test_a_study_is_read_once_until_it_is_published_anew(tmp_path: Path) -> None:
    study = synthetic.workspace(tmp_path)
    synthetic.finish(study, "published", skip=("unfrozen-random",))
    before = arms_of("laptop", tmp_path)
    level_before = before["digits", "FP"].values().mean()
    assert ("digits", "UR") not in before
    assert all(arms_of("laptop", tmp_path)[name] is arm for name, arm in before.items())
    synthetic.finish(study, "published", lambda spec, rate, seed: synthetic.accuracy(spec, rate, seed) / 2)
    after = arms_of("laptop", tmp_path)
    assert ("digits", "UR") in after
    assert after["digits", "FP"].values().mean() == pytest.approx(level_before / 2, abs=0.01)


def test_who_writes_into_values_changes_nobody_elses() -> None:
    before = contrast("plane-minilm", "FP", "UP", at=1e-3)
    values = arms_of("plane-minilm")["mnist", "FP"].values(1e-3)
    values -= 0.3
    assert contrast("plane-minilm", "FP", "UP", at=1e-3) == before
    linear = baseline("mnist", "linear classifier")
    scores = counted()
    scores["share"] *= 100
    assert baseline("mnist", "linear classifier") == linear


def test_where_some_run_diverged_at_every_rate_there_is_no_common_one(tmp_path: Path) -> None:
    def lost(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if seed == spec.learning_rates.index(rate) else synthetic.accuracy(spec, rate, seed)

    synthetic.finish(synthetic.workspace(tmp_path), "published", lost)
    assert contrast("laptop", "UP", "FP", root=tmp_path).common is None
    with pytest.raises(SpecError, match="diverged at every rate"):
        contrast("laptop", "UP", "FP", at="common", root=tmp_path)


def test_a_difference_of_differences_takes_the_other_lead_off() -> None:
    arms = ("FP", "FR", "FP (shuffled tokens)", "FR (shuffled tokens)")
    found = contrast("controls", *arms[:2], task="digits", minus=arms[2:])
    leads = [contrast("controls", *pair, task="digits").mean for pair in (arms[:2], arms[2:])]
    assert found.mean == pytest.approx(leads[0] - leads[1], abs=1e-9)
    assert (found.first, found.second) == pytest.approx(leads)


def test_turned_round_it_says_the_same() -> None:
    one, other = contrast("plane-digits", "UP", "FP"), contrast("plane-digits", "FP", "UP")
    turned = -one
    assert (turned.value, turned.p, turned.first, turned.second) == pytest.approx(
        (other.value, other.p, other.first, other.second)
    )
    assert turned.interval == pytest.approx(other.interval)
    assert turned.common.interval == pytest.approx(other.common.interval)
    assert one.open == other.open
    assert other.most_lost == pytest.approx(one.high)


def test_a_level_has_its_own_interval_and_rate(root: Path) -> None:
    validation, test = plane(root, "plane-mnist", "unfrozen-pretrained")
    found = level("plane-mnist", "UP", at=1e-3)
    assert found.mean == pytest.approx(100 * test[1e-3].mean())
    assert found.low < found.mean < found.high
    assert found.rate == pytest.approx(validation.mean().idxmax())


@pytest.mark.parametrize(
    ("study", "arm", "options", "named"),
    [
        ("plane-digits", "FPP", {}, "Did you mean 'FP'"),
        ("controls", "FP", {}, "name one as `task`"),
        ("controls", "FP", {"task": "cifar10"}, "Known: digits, mnist"),
        ("plane-digits", "FP", {"at": 2e-3}, "3e-5, 1e-4"),
        ("plane-digits", "FP", {"at": "tunned"}, "must be 'tuned', 'common', or one of the rates 3e-5"),
        ("plane-digits", "FP", {"at": None}, "must be 'tuned'"),
        ("plane-digits", "FP", {"at": math.nan}, "1e-3"),
        ("plane-digits", "FP", {"at": math.inf}, "1e-3"),
        ("plane-digits", "FP", {"budget": 17}, "188, 375"),
        ("plane-digits", "FP", {"budget": 0}, "budget 0"),
        ("nothing", "FP", {}, "nothing"),
    ],
)
def test_what_is_not_there_is_named(study: str, arm: str, options: dict[str, str], named: str) -> None:
    with pytest.raises(SpecError, match=named):
        contrast(study, arm, "FR", **options)


def test_a_baseline_is_a_percentage() -> None:
    assert 90 < baseline("mnist", "linear classifier") < 94
    with pytest.raises(SpecError, match="linear"):
        baseline("mnist", "liner classifier")


def test_a_gap_is_training_minus_test_accuracy_after_the_last_step(root: Path) -> None:
    values = []
    for arm in ("unfrozen-pretrained", "frozen-pretrained"):
        (folder,) = (root / "runs" / "plane-mnist" / "published").glob(f"*.{arm}-*")
        runs = pd.read_parquet(folder / "runs.parquet").assign(
            gap=lambda frame: 100 * (frame["train_accuracy_last"] - frame["test_accuracy_last"])
        )
        values.append(runs[runs["learning_rate"] == 1e-3].set_index("seed")["gap"])
    found = contrast("plane-mnist", "UP", "FP", at=1e-3, of="gap")
    assert found.mean == pytest.approx((values[0] - values[1]).mean())
    assert level("plane-mnist", "FP", at=1e-3, of="gap").mean == pytest.approx(values[1].mean())
    with pytest.raises(SpecError, match="accuracy, gap"):
        level("plane-mnist", "FP", of="loss")


def test_the_rate_of_a_level_is_the_best_one_at_its_budget() -> None:
    cell = find_arm("plane-minilm", "FR")
    found = {budget: level("plane-minilm", "FR", budget=budget).rate for budget in cell.budgets}
    assert found == {budget: cell.validation(budget).mean().idxmax() for budget in cell.budgets}
    assert len(set(found.values())) > 1


def test_arms_of_different_lengths_need_a_budget() -> None:
    with pytest.raises(SpecError, match="steps"):
        contrast("recipe", "FP (minilm, layers 2)", "FP", task="mnist")


def test_at_equal_compute_an_arm_stops_earlier_between_two_of_its_budgets() -> None:
    named = ("plane-minilm", "UP", "FP")
    for budget, share, stopped in ((1600, 1.0, 1600), (1600, 0.5, 800), (400, 0.25, 100)):
        found = at_equal_compute(*named, share, budget=budget)
        assert found.first == pytest.approx(level("plane-minilm", "UP", budget=stopped).mean)
        assert found.second == pytest.approx(level("plane-minilm", "FP", budget=budget).mean)
        assert found.mean == pytest.approx(found.first - found.second)
    whole, tuned = at_equal_compute(*named, 1.0), contrast(*named)
    assert (whole.low, whole.high) == pytest.approx((tuned.low, tuned.high))
    between = at_equal_compute(*named, math.sqrt(0.5)).first  # half of the way between two budgets, by the logarithm
    assert between == pytest.approx(np.mean([level("plane-minilm", "UP", budget=at).mean for at in (800, 1600)]))


@pytest.mark.parametrize(("share", "budget"), [(0.5, 50), (1.1, 1600)])
def test_at_equal_compute_an_arm_must_be_reported_then(share: float, budget: int) -> None:
    with pytest.raises(SpecError, match="50, 100, 200, 400, 800, 1600"):
        at_equal_compute("plane-minilm", "UP", "FP", share, budget=budget)
