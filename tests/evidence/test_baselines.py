"""Trivial scores, computed or exact."""

from pathlib import Path

import pytest

from fpt.evidence import baseline_scores


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
