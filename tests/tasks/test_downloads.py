"""Files that are fetched: whole, or not at all; MNIST and CIFAR-10 from the files that torchvision knows."""

import hashlib
import io
import pickle
import shutil
import tarfile
from http.client import IncompleteRead
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
from torchvision.datasets import CIFAR10, MNIST

from fpt.errors import DataError
from fpt.files import sha256
from fpt.tasks import downloads, load


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise URLError("no network")

    monkeypatch.setattr(downloads, "urlopen", refuse)


@pytest.fixture
def idx(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a few MNIST images in the original files, known to torchvision by their sums."""
    raw = shutil.copytree(fixtures / "idx", tmp_path / "mnist") / "MNIST" / "raw"
    monkeypatch.setattr(MNIST, "resources", [(name, md5(raw / name)) for name, _ in MNIST.resources])
    return tmp_path / "mnist"


@pytest.fixture
def batches(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with real CIFAR-10 images packed as the original archive is."""
    with np.load(fixtures / "cifar10.npz") as arrays:
        images, labels = arrays["x_train"], arrays["y_train"].tolist()
    folder = tmp_path / CIFAR10.base_folder
    folder.mkdir()

    def write(name: str, content: object) -> list[str]:
        (folder / name).write_bytes(pickle.dumps(content))
        return [name, md5(folder / name)]

    def batch(number: int) -> object:
        rows = slice(20 * number, 20 * number + 20)
        return {"data": images[rows].transpose(0, 3, 1, 2).reshape(20, -1), "labels": labels[rows]}

    monkeypatch.setattr(CIFAR10, "train_list", [write(f"data_batch_{number}", batch(number)) for number in range(1, 6)])
    monkeypatch.setattr(CIFAR10, "test_list", [write("test_batch", batch(0))])
    name, sum_ = write("batches.meta", {"label_names": ["plane"]})
    monkeypatch.setattr(CIFAR10, "meta", {"filename": name, "key": "label_names", "md5": sum_})
    data = tmp_path / "data"
    data.mkdir()
    with tarfile.open(data / CIFAR10.filename, "w:gz") as archive:
        archive.add(folder, CIFAR10.base_folder)
    monkeypatch.setattr(CIFAR10, "tgz_md5", md5(data / CIFAR10.filename))
    return data


@pytest.mark.usefixtures("offline")
def test_mnist_from_its_original_files(idx: Path, fixtures: Path) -> None:
    task, packed = load("mnist", idx), load("mnist", fixtures)
    assert (task.card["train"] + task.card["validation"], task.card["test"]) == (40, 20)
    assert packed.card["train"] == 250
    assert packed.split(0).validation.targets[:, 0].bincount().tolist() == [5] * 10
    assert packed.checksum == sha256(fixtures / "mnist.npz")
    known = {image.numpy().tobytes() for image in packed.split(0).test.inputs}
    assert all(image.numpy().tobytes() in known for image in task.split(0).test.inputs)


@pytest.mark.usefixtures("offline")
def test_cifar10_from_the_archive_then_from_the_folder(batches: Path, fixtures: Path) -> None:
    with np.load(fixtures / "cifar10.npz") as arrays:
        images, labels = arrays["x_train"], arrays["y_train"]
    for _ in range(2):  # the second time the archive is unpacked already
        split = load("cifar10", batches).split(0)
        assert split.train_size == 80
        assert np.array_equal(split.train_sample().inputs.numpy(), images[20:100])
        assert np.array_equal(split.validation.inputs.numpy(), images[100:120])  # data_batch_5
        assert np.array_equal(split.test.targets[:, 0].numpy(), labels[:20])
        (batches / CIFAR10.filename).unlink(missing_ok=True)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("there", [[], ["data", "data/MNIST"]])
@pytest.mark.parametrize("name", ["mnist", "cifar10", "cifar10-lra"])
def test_missing_data_without_a_network_leave_the_folders_as_they_were(
    name: str, there: list[str], tmp_path: Path
) -> None:
    for folder in there:
        (tmp_path / folder).mkdir()
    path = tmp_path / "data" / f"{name.removesuffix('-lra')}.npz"
    with pytest.raises(DataError, match=f"is missing and could not be downloaded.*no network.*{path.name}.*FPT_DATA"):
        load(name, tmp_path / "data")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == there


def test_a_download_is_checked_before_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def deliver(url: str, timeout: float) -> io.BytesIO:
        asked.append((url, timeout))
        if "dead" in url:
            raise URLError("gone")
        if "broken" in url:
            raise IncompleteRead(b"cont")
        return io.BytesIO(b"content" if "right" in url else b"something else")

    monkeypatch.setattr(downloads, "urlopen", deliver)
    path, sum_ = tmp_path / "new" / "file", hashlib.md5(b"content").hexdigest()
    bad = ["http://dead/", "http://broken/", "http://altered/"]
    with pytest.raises(DataError, match=rf"gone.*IncompleteRead.*expected MD5 {sum_}, found [0-9a-f]{{32}}.*advice"):
        downloads.fetch(path, sum_, bad, "advice")
    assert list(tmp_path.iterdir()) == []
    assert downloads.fetch(path, sum_, [*bad, "http://right/"], "advice").read_bytes() == b"content"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
    assert asked[3:] == [(url, downloads.PATIENCE) for url in (*bad, "http://right/")]


@pytest.mark.usefixtures("offline")
def test_altered_downloads_name_both_sums_and_stay(idx: Path, batches: Path) -> None:
    archive, folder = batches / CIFAR10.filename, batches / CIFAR10.base_folder

    def altered(path: Path, name: str, data: Path, named: str = "") -> None:
        expected, cut = md5(path), path.read_bytes()[:-9]
        path.write_bytes(cut)
        with pytest.raises(DataError, match=named or f"expected MD5 {expected}, found {md5(path)}"):
            load(name, data)
        assert path.read_bytes() == cut

    whole = archive.read_bytes()
    altered(archive, "cifar10", batches)
    assert not folder.exists()  # it is not unpacked
    archive.write_bytes(whole)
    load("cifar10", batches)
    altered(folder / "data_batch_3", "cifar10", batches, f"{folder} is altered")
    (folder / "data_batch_3").unlink()
    with pytest.raises(DataError, match=f"{folder} is altered"):
        load("cifar10", batches)
    altered(idx / "MNIST" / "raw" / "train-images-idx3-ubyte.gz", "mnist", idx)
