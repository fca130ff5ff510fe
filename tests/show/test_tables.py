"""Tables: what they say agrees with the runs; studies and setups stay apart."""

import math
from pathlib import Path

import synthetic

from fpt.results import load_runs
from fpt.results.stats import mean_interval
from fpt.show import summary
from fpt.sweeps import SweepSpec


def test_summary_and_divergence(tmp_path: Path) -> None:
    def never(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if spec.trainable == "all" else synthetic.accuracy(spec, rate, seed)

    rows = summary(load_runs(synthetic.finish(synthetic.workspace(tmp_path), accuracy=never))).set_index("arm")
    assert rows.loc["UP", "learning rate"] == "none eligible"
    assert rows.loc["UP", "test accuracy (95% interval)"] == "-"
    assert rows.loc["FP", "diverged runs"] == 0
    assert rows.loc["FP", "learning rate"] == "1e-2"


def test_the_rates_that_seeds_choose_for_each_other(study: Path) -> None:
    runs = load_runs(study)
    arm = runs[runs["label"] == "FP"]
    other = arm["seed"].isin([0, 1]) & (arm["learning_rate"] == 1e-3)
    kept = ~arm["seed"].isin([0, 1]) & (arm["learning_rate"] == 1e-2)
    (row,) = summary(arm.assign(selected=other | kept)).to_dict("records")
    assert row["learning rate"] == "1e-3 (2 seeds), 1e-2 (6 seeds)"


def test_a_fixed_test_set_widens_the_interval(study: Path) -> None:
    arm = load_runs(study).query("label == 'FP'")
    (own,), (wider,) = (summary(arm.assign(sampled_from=images)).to_dict("records") for images in (math.nan, 1000))
    spread = "test accuracy (95% interval)"
    values = arm.loc[arm["selected"], "test_accuracy"]
    mean, low, high = mean_interval(values, values.mean() * (1 - values.mean()) / 1000)
    assert wider[spread] == f"{100 * mean:.1f} ({100 * low:.1f} to {100 * high:.1f})" != own[spread]
