"""Losses on text: each seed tests windows of its own, which all arms share."""

import math
from itertools import combinations
from pathlib import Path

import pytest

from fpt.results.contrasts import find_arm
from fpt.results.losses import lower_loss, tuned_losses
from fpt.results.stats import paired

STUDY, FULL, LORA = "lora-text", "UP", "LP"


def test_windows_are_those_of_a_seed_and_shared_by_arms(root: Path) -> None:
    """Windows that are hard for one arm are hard for the other, within a seed alone."""
    full, lora = (tuned_losses(find_arm(STUDY, arm, root=root)) for arm in (FULL, LORA))
    assert all(full.loc[seed].corr(lora.loc[seed]) > 0.9 for seed in full.index)
    assert all(full.loc[one].corr(lora.loc[other]) < 0.5 for one, other in combinations(full.index, 2))


def test_the_noise_is_that_of_the_part_from_which_windows_are_drawn(root: Path) -> None:
    full, lora = (find_arm(STUDY, arm, root=root) for arm in (FULL, LORA))
    apart = tuned_losses(lora) - tuned_losses(full)
    lead = lower_loss(full, lora)
    assert lead.test_variance == pytest.approx(apart.var(axis=1).mean() / full.result["test"]["size"])
    assert lead.mean == pytest.approx(apart.mean(axis=1).mean())
    assert lead.high - lead.low > 2 * 1.96 * math.sqrt(lead.test_variance)


def test_a_window_that_one_arm_lacks_takes_its_seed_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full, lora = (find_arm(STUDY, arm, root=root) for arm in (FULL, LORA))
    found = {id(each): tuned_losses(each).copy() for each in (full, lora)}
    found[id(lora)].iloc[0, 3] = math.nan
    monkeypatch.setattr("fpt.results.losses.tuned_losses", lambda arm: found[id(arm)])
    means = [found[id(each)].iloc[1:].mean(axis=1) for each in (lora, full)]
    assert lower_loss(full, lora).by_seed == pytest.approx(paired(*means).by_seed)
