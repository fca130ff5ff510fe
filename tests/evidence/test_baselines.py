"""Trivial scores, computed or exact."""

from pathlib import Path

import pytest

from fpt.evidence.baselines import baseline_scores, chance, missing_data
from fpt.tasks import TASKS, load


def test_bits_are_exact() -> None:
    assert baseline_scores("bit-memory") == {"chance": 0.5, "copy the visible bits": 0.75}
    assert baseline_scores("bit-xor") == {"chance": 0.5}


def test_the_majority_class_of_balanced_digits_is_about_a_tenth() -> None:
    scores = baseline_scores("digits")
    assert scores["chance"] == 0.1
    assert scores["majority class"] == pytest.approx(0.1, abs=0.01)


def test_the_listops_ladder_rises(tmp_path: Path) -> None:
    ladder = baseline_scores("listops-short", data_dir=tmp_path, train=2000, heldout=500)
    assert list(ladder)[:3] == ["majority class", "root operator only", "one level"]
    assert list(ladder.values()) == sorted(ladder.values())


@pytest.mark.parametrize("task", ["digits", "digits-lra", "bit-xor", "bit-memory", "listops-short"])
def test_chance_is_that_of_the_classes_of_the_task(task: str, tmp_path: Path) -> None:
    options = {"train": 200, "heldout": 20} if task == "listops-short" else {}
    assert chance(task) == 1 / load(task, tmp_path, **options).classes


def test_only_data_of_ones_own_have_no_known_chance() -> None:
    assert [name for name, entry in TASKS.items() if entry.classes is None] == ["npz:PATH"]


def test_missing_data_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FPT_DATA", str(tmp_path))
    assert missing_data("mnist") == "the data of mnist are not on this machine"
    (tmp_path / "mnist.npz").touch()
    assert missing_data("mnist") == missing_data("digits") == ""
