"""The whole data sets, from the folder that FPT_DATA names."""

from pathlib import Path

import pytest

from fpt.tasks import load

pytestmark = pytest.mark.data


def test_mnist() -> None:
    split = load("mnist").split(0)
    assert (split.train_size, len(split.validation), len(split.test)) == (50_000, 10_000, 10_000)
    assert split.validation.targets[:, 0].bincount().tolist() == [1_000] * 10
    labels = split.train_sample(None).targets[:, 0].bincount() + 1_000
    assert labels.tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@pytest.mark.parametrize(("name", "images"), [("mnist", 60_000), ("cifar10", 50_000), ("cifar10-lra", 50_000)])
def test_released(name: str, images: int) -> None:
    split = load(name, variant="released").split(0)
    assert (split.train_size, len(split.validation), len(split.test)) == (images, 5_000, 5_000)
    both = split.validation.targets[:, 0].bincount() + split.test.targets[:, 0].bincount()
    official = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009] if name == "mnist" else [1_000] * 10
    assert both.tolist() == official


@pytest.mark.parametrize("name", ["cifar10", "cifar10-lra"])
def test_cifar10(name: str) -> None:
    split = load(name).split(0)
    assert (split.train_size, len(split.validation), len(split.test)) == (40_000, 10_000, 10_000)
    both = split.train_sample(None).targets[:, 0].bincount() + split.validation.targets[:, 0].bincount()
    assert both.tolist() == [5_000] * 10
    assert split.test.targets[:, 0].bincount().tolist() == [1_000] * 10


def test_listops(tmp_path: Path) -> None:
    """Every answer is checked by the evaluator while the examples are made."""
    task = load("listops", tmp_path)
    assert (task.card["train"], task.card["validation"], task.card["test"]) == (96_000, 2_000, 2_000)
    assert task.checksum == "3515150f03f11346edf4f4859a564b9e663f350150525634412ff094f02cec28"
    assert load("listops", tmp_path).checksum == task.checksum
