"""Data of one's own that cannot be read as they are meant: each is refused by name before anything is trained."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import refusal

Arrays = dict[str, Any]
LABELS = np.arange(600) % 3
IMAGES = np.random.default_rng(0).integers(0, 256, (600, 8, 8), np.uint8)
SEQUENCES = np.random.default_rng(1).integers(1, 9, (600, 6))
RAGGED = np.array([[1], [1, 2]] * 300, dtype=object)
LEFT, ENDED, EMPTY = SEQUENCES.copy(), SEQUENCES.copy(), SEQUENCES.copy()
LEFT[7, 0], ENDED[:, -1], EMPTY[9], EMPTY[:, -1] = 0, 0, 0, 0


def study(options: str = "{}", file: str = "mine.npz") -> str:
    task = f"{{task: 'npz:{file}', task_options: {options}, arm: frozen-random}}"
    return refusal.STUDY.replace("{task: digits, arm: frozen-pretrained}", task)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("x", "options", "named"),
    [
        # values that cannot be what they are taken for
        (IMAGES // 16, "{}", ("x_train", "15", "white", "255")),
        (IMAGES // 128, "{}", ("x_train", "white", "255")),
        (IMAGES * 0, "{}", ("x_train", "white")),
        (IMAGES // 128, "{white: 16}", ("x_train", "white", "16")),
        (IMAGES, "{white: 16}", ("x_train", "255", "white", "16")),
        (IMAGES // 16, "{white: 4096}", ("white", "4096", "255")),
        (IMAGES // 16, "{white: 16.0}", ("white", "16.0", "int")),
        (IMAGES / 255, "{}", ("x_train", "float64", "uint8")),
        # channels first
        (IMAGES[:, None].repeat(4, 1), "{}", ("x_train", "(600, 4, 8, 8)", "(images, height, width, channels)")),
        (IMAGES[:, None], "{patch: 1}", ("x_train", "(600, 1, 8, 8)", "(images, height, width, channels)")),
        (IMAGES[:, None, :4, :4], "{patch: 1}", ("x_train", "(600, 1, 4, 4)", "(images, height, width, channels)")),
        # options without effect
        (IMAGES, "{padded: true}", ("padded", "images", "mine.npz")),
        (SEQUENCES, "{patch: 5}", ("patch", "5", "sequences", "mine.npz")),
        (SEQUENCES, "{white: 16}", ("white", "16", "sequences", "mine.npz")),
        (SEQUENCES, "{padded: true}", ("padded", "no 0", "mine.npz")),
        (SEQUENCES, "{pad: true}", ("pad", "padded")),
        # padding
        (LEFT, "{padded: true}", ("x_train", "row 7", "padded", "right")),
        (EMPTY, "{padded: true}", ("x_train", "row 9", "padded")),
        (RAGGED, "{}", ("x_train", "0", "padded: true")),
    ],
)
def test_values_options_and_padding(x: Any, options: str, named: tuple[str, ...], here: Path) -> None:
    refusal.workspace(here, study(options))
    np.savez("mine.npz", x_train=x, y_train=LABELS)
    refusal.refused("run", "mine", named=named)


@pytest.mark.parametrize(
    ("arrays", "named"),
    [
        ({"x_train": IMAGES, "y_train": LABELS, "x_val": IMAGES}, ("x_val", "x_test")),
        ({"x_train": IMAGES, "y_train": LABELS, "mask": IMAGES}, ("mask", "x_train")),
        ({"X_train": IMAGES, "y_train": LABELS}, ("x_train", "X_train")),
        ({"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES}, ("y_test",)),
        ({"x_train": SEQUENCES, "y_train": LABELS, "x_test": RAGGED, "y_test": LABELS}, ("x_test", "padded: true")),
        ({"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES // 16, "y_test": LABELS}, ("x_test", "white")),
    ],
)
def test_arrays(arrays: Arrays, named: tuple[str, ...], here: Path) -> None:
    refusal.workspace(here, study())
    np.savez("mine.npz", **arrays)
    refusal.refused("run", "mine", named=named)


def test_a_file_of_one_array(here: Path) -> None:
    refusal.workspace(here, study(file="mine.npy"))
    np.save("mine.npy", IMAGES)
    refusal.refused("run", "mine", named=("mine.npy", "single array", "np.savez"))


@pytest.mark.parametrize("command", ["plan", "status", "report", "run", "publish"])
def test_a_study_whose_data_are_gone(command: str, here: Path) -> None:
    refusal.workspace(here, study())
    refusal.refused(command, "mine", named=("mine.npz", "runs/mine/study.yaml"))


def test_padding_at_the_right_end_is_taken(here: Path) -> None:
    from fpt.tasks import load

    np.savez("mine.npz", x_train=ENDED, y_train=LABELS)
    assert load("npz:mine.npz", padded=True).mask_padding
