"""The comparison with what people start with: the same test examples, and our own answer beside it."""

import pytest

from fpt.advise import bench
from fpt.advise.baselines import TREES


def test_all_three_ways_answer_for_the_same_examples(place) -> None:
    rows = bench.compared("wine", 0.1).set_index("what")
    assert rows.index.tolist() == [bench.OURS, bench.EMBEDDINGS, TREES]
    above = rows["accuracy"] - rows["accuracy"][bench.OURS]
    for name in (bench.EMBEDDINGS, TREES):
        assert rows["above"][name] == pytest.approx(above[name], abs=0.01)
        assert rows["above_low"][name] <= rows["above"][name] <= rows["above_high"][name]
        assert rows["low"][name] <= rows["accuracy"][name] <= rows["high"][name]


def test_images_are_written_by_class(tmp_path) -> None:
    name, _, _ = bench.digits(tmp_path)
    assert sorted(folder.name for folder in (tmp_path / name).iterdir()) == [str(digit) for digit in range(10)]
    assert len([*(tmp_path / name).rglob("*.png")]) == 1797
