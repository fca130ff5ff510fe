"""Data of one's own that cannot be read: every command refuses them by name before anything is trained. What there is
to refuse in them is tested beside their readers (tests/tasks/test_files.py)."""

from pathlib import Path

import numpy as np
import pytest
import refusal
import small_studies

STUDY = small_studies.PLAIN.replace(
    "{task: digits, arm: frozen-pretrained}", "{task: 'npz:mine.npz', arm: frozen-random}"
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_studies.workspace(tmp_path, STUDY)
    monkeypatch.chdir(tmp_path)


def test_images_that_are_all_but_black() -> None:
    np.savez("mine.npz", x_train=np.ones((60, 8, 8), np.uint8), y_train=np.arange(60) % 3)
    refusal.refused("run", "mine", named=("mine.npz", "x_train", "white", "255"))


@pytest.mark.parametrize("command", ["plan", "status", "report", "run", "publish"])
def test_a_study_whose_data_are_gone(command: str) -> None:
    refusal.refused(command, "mine", named=("mine.npz", "runs/mine/study.yaml"))
