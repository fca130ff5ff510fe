"""Data of one's own that cannot be read: every command refuses them by name before anything is trained. What there is
to refuse in them is tested beside their readers (tests/tasks/test_files.py)."""

from pathlib import Path

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


@pytest.mark.parametrize("command", ["plan", "status", "report", "run", "publish"])
def test_a_study_whose_data_are_gone(command: str) -> None:
    refusal.refused(command, "mine", named=("mine.npz", "runs/mine/study.yaml"))
