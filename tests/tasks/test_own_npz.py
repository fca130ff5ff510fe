"""Arrays in npz files: what becomes of them, and what wrong files get."""

import hashlib
import io
import pickle
import re
import struct
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest
import torch
from sklearn.datasets import load_digits

from fpt.errors import DataError, FptError
from fpt.files import sha256
from fpt.tasks import load
from fpt.tasks.own.npz import NAMES

Arrays = dict[str, Any]


def images(n: int = 40, side: int = 8) -> Arrays:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (n, side, side), np.uint8)
    return {"x_train": x, "y_train": np.arange(n) % 4, "x_test": x[:8], "y_test": np.arange(8) % 4}


def sequences() -> Arrays:
    x = np.array([[3, 1, 2, 0], [2, 1, 1, 0], [1, 2, 3, 4], [1, 0, 0, 0]] * 6, np.int16)
    return {"x_train": x, "y_train": np.arange(24) % 2, "x_test": x[:4], "y_test": np.arange(4) % 2}


def test_your_own_images(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", **images(60))
    task = load(f"npz:{tmp_path}/mine.npz")
    assert (task.tokens, task.width, task.classes, task.vocabulary) == (4, 16, 4, None)
    assert (task.card["train"], task.card["validation"], task.card["test"]) == (50, 10, 8)
    assert task.checksum == sha256(tmp_path / "mine.npz")
    assert load(f"npz:{tmp_path}/mine.npz", patch=2).tokens == 16
    assert str(tmp_path) not in task.source
    assert not task.test_drawn_by_seed


@pytest.mark.parametrize("padded", [False, True])
def test_without_a_test_set_of_its_own_the_seed_draws_one(padded: bool, tmp_path: Path) -> None:
    for name, arrays in (("images", images(60)), ("sequences", sequences())):
        np.savez(tmp_path / f"{name}.npz", x_train=arrays["x_train"], y_train=arrays["y_train"])
        task = load(f"npz:{tmp_path}/{name}.npz", padded=padded and name == "sequences")
        size = len(arrays["y_train"])
        assert task.test_drawn_by_seed
        sizes = task.card["train"], task.card["validation"], task.card["test"]
        assert sizes == (size - size // 3, size // 6, size // 6)
        assert (task.split(0).test.lengths is None) != (padded and name == "sequences")
    assert not np.array_equal(task.split(0).test.inputs, task.split(1).test.inputs)
    np.savez(tmp_path / "mnist.npz", x_train=images()["x_train"], y_train=images()["y_train"])
    with pytest.raises(DataError, match=r"mnist\.npz: it has x_train, y_train; needed are .*x_test, y_test"):
        load("mnist", tmp_path)


@pytest.mark.parametrize(("least", "test"), [(2, True), (3, False)])
def test_too_few_examples_to_be_divided_are_refused(least: int, test: bool, tmp_path: Path) -> None:
    def save(count: int) -> None:
        own = {"x_test": np.full((4, 8, 8), 255, np.uint8), "y_test": np.zeros(4, int)} if test else {}
        x = np.full((count, 8, 8), 255, np.uint8)
        np.savez(tmp_path / "few.npz", x_train=x, y_train=np.arange(count) % 2, **own)

    save(least - 1)
    with pytest.raises(DataError, match=r"few\.npz: .*_train has .* needed"):
        load(f"npz:{tmp_path}/few.npz")
    save(least)
    assert load(f"npz:{tmp_path}/few.npz").split(0).batch(0, 1)


def test_your_own_sequences(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "mine.npz", **sequences())
    task = load(f"npz:{tmp_path}/mine.npz")
    assert (task.tokens, task.width, task.vocabulary, task.classes, task.mask_padding) == (4, None, 5, 2, False)
    padded = load(f"npz:{tmp_path}/mine.npz", padded=True)
    assert padded.mask_padding
    test = padded.split(0).test
    assert test.lengths.tolist() == [3, 3, 4, 1]


def only(x: Any) -> Arrays:
    """Training examples of two classes, and no test set."""
    return {"x_train": x, "y_train": np.arange(len(x)) % 2}


def test_a_file_of_the_data_folder_may_hold_more_than_the_images(fixtures: Path, tmp_path: Path) -> None:
    """Such as notes on some of them: it is known by its checksum."""
    with np.load(fixtures / "cifar10.npz") as arrays:
        np.savez(tmp_path / "cifar10.npz", **arrays, notes=np.arange(3))
    found, plain = (load("cifar10", folder).split(0) for folder in (tmp_path, fixtures))
    assert torch.equal(found.test.inputs, plain.test.inputs)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        (images() | {"y_test": None}, {}, "has x_train, y_train, x_test; needed are .* y_test"),
        (images() | {"x_val": np.zeros(3)}, {}, "x_val; needed are .* and nothing else"),
        (images() | {"x_train": np.zeros((40, 8, 8), np.float32)}, {}, "x_train is float32, but must be uint8"),
        (images() | {"x_test": np.full((8, 4, 4), 255, np.uint8)}, {}, "x_train and x_test have the shapes"),
        (images() | {"x_train": np.zeros((0, 8, 8), np.uint8)}, {}, r"x_train has shape \(0, 8, 8\)"),
        (images() | {"y_train": np.zeros((40, 1), int)}, {}, r"y_train has shape \(40, 1\)"),
        (images() | {"y_train": np.arange(39) % 4}, {}, "x_train has 40 rows, but y_train has 39"),
        (images() | {"y_train": np.arange(40) % 4 - 1}, {}, "y_train has values from -1 to 2"),
        (images() | {"y_train": np.zeros(40, int), "y_test": np.zeros(8, int)}, {}, "y_train has the class 0 alone"),
        (images() | {"y_train": np.arange(40) / 4}, {}, "y_train is float64, but must be an integer type"),
        (images() | {"y_test": np.arange(8)}, {}, "class 4 of y_train has 0 examples"),
        (
            images() | {"y_train": np.full(40, 2**40)},
            {},
            "y_train .*1099511627776; allowed are 0 to 1,000,000",
        ),
        (images() | {"y_train": np.array([{}] * 40)}, {}, "no .npz file of numbers: y_train"),
        (only(np.array([[1], [1, 2]] * 20, object)), {}, "x_train.*different lengths with 0.*padded: true"),
        (images() | {"x_train": images()["x_train"] // 17}, {}, "x_train: most .* no value above 1., but white is 255"),
        (only(np.full((40, 4, 8, 8), 255, np.uint8)), {}, r"4x8 pixels of 8 channels.*height, width, channels"),
        (only(np.full((40, 1, 4, 4), 255, np.uint8)), {}, r"1x4 pixels of 4 channels.*height, width, channels"),
        (images(), {"patch": 3}, "patch 3 does not divide images of 8x8"),
        (images(), {"padded": True}, "padded is True, but .* holds images"),
        (images(), {"white": 16}, "x_train has values .*255; allowed are 0 to 16"),
        (images(), {"white": 256}, "white is 256"),
        (sequences(), {"patch": 5}, "patch is 5, but .* holds sequences"),
        (only(np.ones((24, 4), int)), {"padded": True}, "no 0 that fills a sequence"),
        (only(np.array([[0, 1, 2]] * 24)), {"padded": True}, "row 0 of x_train begins 0, 1, 2"),
        (only(np.array([[1, 2, 0]] * 23 + [[0, 0, 0]])), {"padded": True}, "row 23 of x_train begins 0, 0, 0"),
    ],
)
def test_what_an_array_or_an_option_lacks_is_named(
    arrays: Arrays, options: Arrays, message: str, tmp_path: Path
) -> None:
    np.savez(tmp_path / "mine.npz", **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(FptError if options else DataError, match=message):
        load(f"npz:{tmp_path}/mine.npz", **options)


def test_the_value_of_white_makes_the_digits_of_scikit_learn_the_task_digits(tmp_path: Path) -> None:
    bunch = load_digits()
    np.savez(tmp_path / "digits.npz", x_train=bunch.images.astype(np.uint8), y_train=bunch.target)
    own, ours = load(f"npz:{tmp_path}/digits.npz", patch=2, white=16), load("digits")
    assert torch.equal(own.encode(own.data.train.inputs), ours.encode(ours.data.train.inputs))
    assert torch.equal(own.data.train.targets, ours.data.train.targets)


WHOLE = (Path(__file__).parents[1] / "data" / "mnist.npz").read_bytes()


def npy() -> bytes:
    np.save(file := io.BytesIO(), np.zeros(3))
    return file.getvalue()


def archive(member: bytes, *, flags: int = 0, compression: int = 0) -> bytes:
    """An archive whose arrays are these bytes, with what its headers say of how they are stored."""
    with zipfile.ZipFile(file := io.BytesIO(), "w") as stored:
        for name in NAMES:
            stored.writestr(f"{name}.npy", member)
    content = bytearray(file.getvalue())
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(signature), bytes(content)):
            struct.pack_into("<HH", content, found.start() + place, flags, compression)
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        WHOLE[:-200],
        WHOLE[:900] + b"???" + WHOLE[903:],
        b"no arrays",
        npy(),
        pickle.dumps({"x_train": 1}),
        archive(b"no array"),
        archive(b"\x93NUMPY\x01\x00\x06\x00((((((\n"),
        archive(npy(), flags=1),
        archive(npy(), compression=99),
    ],
    ids=["truncated", "altered", "text", "npy", "pickle", "no array", "brackets", "encrypted", "compression"],
)
@pytest.mark.parametrize("name", ["mnist", "mine"])
def test_a_file_that_is_no_whole_npz_is_refused_and_stays(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.npz"
    path.write_bytes(content)
    sum_ = hashlib.sha256(content).hexdigest()
    with pytest.raises(DataError, match=rf"{name}\.npz: the file \(SHA-256 {sum_}\) is truncated, altered"):
        load("mnist" if name == "mnist" else f"npz:{path}", tmp_path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["mine.npz", "mine.parquet"])
def test_what_would_not_fit_into_memory_is_not_unpacked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros: 800 kB of them are a file of 4 kB."""
    zeros = np.zeros(100_000, np.int64)
    np.savez_compressed(tmp_path / "mine.npz", x_train=zeros[:, None], y_train=zeros)
    pd.DataFrame({"text": zeros}).to_parquet(tmp_path / "mine.parquet")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=799_999))
    with pytest.raises(DataError, match=rf"{name}.* GiB are free"):
        load(f"{'npz' if name == 'mine.npz' else 'csv'}:{tmp_path / name}")


def test_images_of_another_shape_are_not_mnist(tmp_path: Path) -> None:
    np.savez(tmp_path / "mnist.npz", **images())
    with pytest.raises(DataError, match=r"images have the shape \(8, 8\), but must have \(28, 28\)"):
        load("mnist", tmp_path)
