"""Who is on top at which learning rate."""

import pandas as pd
import pytest

from fpt.evidence import ordering_table
from fpt.evidence.ordering import ordering, turning


def frame(levels: dict[str, dict[float, float]], stage: str = "selection") -> pd.DataFrame:
    """Runs of three seeds around a level for each arm and rate; arms do not share their scatter."""
    scatter = {"FP": (-0.01, 0.0, 0.01), "UP": (0.0, 0.01, -0.01), "UR": (0.01, -0.01, 0.0)}
    rows = [
        {"label": arm, "learning_rate": rate, "seed": seed, "stage": stage, "test_accuracy": level + scatter[arm][seed]}
        for arm, rates in levels.items()
        for rate, level in rates.items()
        for seed in range(3)
    ]
    return pd.DataFrame(rows)


TURNS = {
    "FP": {1e-4: 0.3, 1e-3: 0.5, 1e-2: 0.8},
    "UP": {1e-4: 0.6, 1e-3: 0.5, 1e-2: 0.2},
    "UR": {1e-4: 0.5, 1e-3: 0.8, 1e-2: 0.8},
}


def test_differences_are_paired_at_every_rate() -> None:
    found = ordering(frame(TURNS))
    assert set(found) == {"UP", "UR"}
    assert [round(test.mean, 6) for test in found["UP"].values()] == [0.3, 0.0, -0.6]
    assert found["UP"][1e-4].differences == pytest.approx((0.31, 0.31, 0.28))


def test_the_sign_turns_or_does_not() -> None:
    turns, clause = turning(frame(TURNS))
    assert turns is True
    assert clause == (
        "the unfrozen pretrained model leads the frozen pretrained model by 30.0 points at 1e-4 "
        "and trails it by 60.0 points at 1e-2"
    )
    turns, clause = turning(frame(TURNS), "UR")
    assert turns is False
    assert clause == "the unfrozen random model leads the frozen pretrained model by 30.0 points at 1e-3"
    same = {arm: {1e-3: 0.5} for arm in TURNS}
    assert turning(frame(same))[0] is None


def test_only_selection_runs_of_arms_that_were_run_count() -> None:
    assert ordering(frame(TURNS, "confirmation")) == {"UP": {}, "UR": {}}
    alone = frame({"FP": TURNS["FP"], "UR": TURNS["UR"]})
    assert ordering(alone)["UP"] == {}
    assert ordering_table(alone)["UP - FP"].tolist() == ["", "", ""]
    assert ordering_table(frame(TURNS, "confirmation")).empty


def test_a_diverged_seed_leaves_too_few_pairs() -> None:
    runs = frame(TURNS)
    runs.loc[(runs["label"] == "UP") & (runs["learning_rate"] == 1e-2) & (runs["seed"] == 0), "test_accuracy"] = None
    table = ordering_table(runs)
    assert table["rate"].tolist() == ["1e-4", "1e-3", "1e-2"]
    assert table["UP - FP"].tolist() == ["+30.0", "+0.0", ""]
    assert table["95% interval (UP)"].tolist()[2] == ""
    assert turning(runs)[0] is False
