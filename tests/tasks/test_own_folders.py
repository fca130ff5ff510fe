"""Folders of images of your own: what becomes of them, and what is refused."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from fpt.errors import DataError, FptError, SpecError
from fpt.sweeps.spec import resolve
from fpt.tasks import load, own_checksum

EACH = 6  # images of a class


def image(path: Path, shade: int = 200, size: tuple[int, int] = (10, 8), mode: str = "L") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    colour: Any = shade if mode == "L" else (shade, 10, 10)
    Image.new(mode, size, colour).save(path)


def among(folder: Path, *names: str) -> None:
    """Move the classes of a folder into each of these folders in it."""
    classes = sorted(folder.iterdir())
    for name in names:
        for each in classes:
            shutil.copytree(each, folder / name / each.name)
    for each in classes:
        shutil.rmtree(each)


def shaded(folder: Path, top: int, kind: type = np.uint8, damaged: bool = False) -> None:
    """Fill every image with noise below `top`; `damaged`: but for one pixel, which is as bright as can be."""
    for path in folder.rglob("*.png"):
        pixels = np.random.default_rng(0).integers(0, top, (8, 8)).astype(kind)
        pixels[0, 0] = np.iinfo(kind).max if damaged else 0
        Image.fromarray(pixels).save(path)


def named(folder: Path, *names: str) -> None:
    """Give the classes of a folder other names."""
    for each, name in zip(sorted(folder.iterdir()), names, strict=True):
        each.rename(folder / name)


def copied(folder: Path, name: str) -> None:
    """A folder in every class with its images again."""
    for each in list(folder.iterdir()):
        shutil.copytree(each, folder.parent / "copy")
        (folder.parent / "copy").rename(each / name)


def cut(path: Path) -> None:
    """An image of which the end is missing."""
    noise = np.random.default_rng(0).integers(0, 255, (64, 64), np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:2000])


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for name, shade in (("cats", 100), ("dogs", 220)):
        for number in range(EACH):
            image(tmp_path / "mine" / name / f"{number}.png", shade + number)
    return tmp_path / "mine"


def test_a_folder_of_digits_is_the_task_digits(tmp_path: Path) -> None:
    digits = load_digits()
    for number in range(300):
        pixels = (digits.images[number] * 15.9375).round().astype(np.uint8)  # 16 is 255
        path = tmp_path / "digits" / str(digits.target[number]) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    task, ours = load(f"folder:{tmp_path}/digits", size=8, patch=2), load("digits")
    assert (task.tokens, task.width, task.classes) == (ours.tokens, ours.width, ours.classes)
    (row,) = (digits.target[:300] == 0).nonzero()[0][:1]
    mine = task.encode(task.data.train.inputs[:1])  # of class 0, by name
    theirs = ours.encode(torch.tensor(digits.images[row : row + 1], dtype=torch.uint8))
    assert torch.allclose(mine, theirs, atol=1 / 255)


def test_images_are_resized_and_the_card_says_so(images: Path) -> None:
    image(images / "cats" / "wide.png", size=(40, 20))
    task = load(f"folder:{images}", size=16)
    assert (task.tokens, task.width, task.classes) == (16, 16, 2)
    assert "resized to 16x16 from 2 sizes from 10x8 to 40x20" in task.scaling
    assert "gray" in task.scaling


def test_one_image_in_colour_makes_all_of_them_rgb(images: Path) -> None:
    image(images / "cats" / "red.png", mode="RGB")
    assert load(f"folder:{images}").width == 4 * 4 * 3


def test_pixels_of_16_bits_are_scaled_and_a_turned_image_is_turned_back(images: Path) -> None:
    place, before = images / "cats" / "0.png", load(f"folder:{images}", size=2, patch=1).data.train.inputs
    pixels = np.array([[0, 1000], [30_000, 65_535]], np.uint16)
    turned = Image.Exif()
    turned[0x0112] = 6  # by a quarter
    Image.fromarray(pixels).save(place, exif=turned)
    after = load(f"folder:{images}", size=2, patch=1).data.train.inputs
    assert after[1:].equal(before[1:])
    assert after[0].tolist() == [[117, 0], [255, 3]]


@pytest.mark.parametrize(("top", "kind"), [(17, np.uint8), (2**12, np.uint16)])
def test_another_white_is_named_and_is_as_bright(images: Path, top: int, kind: type) -> None:
    shaded(images, top, kind)
    task = load(f"folder:{images}", size=8, white=top - 1)
    assert 0.9 < float(task.encode(task.data.train.inputs).max()) <= 1
    shaded(images, top, kind, damaged=True)
    load(f"folder:{images}", white=int(np.iinfo(kind).max))  # who names it knows that the images are dark


def test_what_is_read_is_said_and_what_is_not(images: Path) -> None:
    shutil.copytree(images / "cats", images / "cats" / "@eaDir")
    (images / "cats" / "0.png").rename(images / "cats" / "0.jfif")
    for name in ("1.jfif", "labels"):
        (images / name).touch()
    read = load(f"folder:{images}").read
    assert read.startswith(f"{2 * EACH - 1} images in 2 classes (cats: {EACH - 1}, dogs: {EACH})")
    for left in ("@eaDir", "3 files", "2 .jfif", "1 without ending"):
        assert left in read


@pytest.mark.parametrize("names", [("train", "bus"), ("mask", "no_mask"), ("test", "control"), ("folder1", "folder2")])
def test_a_class_may_be_called_like_a_part(images: Path, names: tuple[str, str]) -> None:
    named(images, *names)
    assert load(f"folder:{images}").classes == 2


def test_the_images_of_every_class_may_lie_in_one_folder_more(images: Path) -> None:
    for each in list(images.iterdir()):
        each.rename(images.parent / "images")
        each.mkdir()
        (images.parent / "images").rename(each / "images")
    assert len(load(f"folder:{images}").data.train) == 2 * EACH


def test_names_that_are_no_utf_8_are_read(images: Path) -> None:
    before = own_checksum(f"folder:{images}")
    os.rename(images / "cats" / "0.png", os.fsencode(images / "cats") + b"/caf\xe9.png")
    assert own_checksum(f"folder:{images}") != before
    os.rename(images / "cats", os.fsencode(images) + b"/caf\xe9")
    assert load(f"folder:{images}").read.isprintable()
    moved = os.fsencode(images.parent) + b"/caf\xe9"
    os.rename(images, moved)
    with pytest.raises(SpecError, match="no UTF-8"):  # a study that names it could not be written
        load(f"folder:{os.fsdecode(moved)}")


def test_hidden_files_are_no_images(images: Path) -> None:
    before = load(f"folder:{images}")
    (images / "cats" / "._0.png").write_bytes(b"what macOS writes")
    shutil.copytree(images / "cats", images / "cats" / ".ipynb_checkpoints")
    after = load(f"folder:{images}")
    assert (len(after.data.train), after.checksum) == (2 * EACH, before.checksum)


def test_classes_behind_links_are_read_and_are_part_of_the_identity(images: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    for each in images.iterdir():
        (linked / each.name).symlink_to(each)
    (images / "cats" / "again").symlink_to(images)  # in a circle
    (images / "cats" / "two").symlink_to(tmp_path / "elsewhere")  # in a circle by way of another folder
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "back").symlink_to(images / "cats")
    assert len(load(f"folder:{linked}").data.train) == 2 * EACH
    before = own_checksum(f"folder:{linked}")
    image(images / "cats" / "0.png", 3)
    assert own_checksum(f"folder:{linked}") != before


def test_train_and_test_are_taken_as_they_are(tmp_path: Path, images: Path) -> None:
    images.rename(tmp_path / "train")
    for name in ("cats", "dogs"):
        image(tmp_path / "both" / "test" / name / "a.png")
    (tmp_path / "train").rename(tmp_path / "both" / "train")
    image(tmp_path / "both" / "val" / "cats" / "a.png")
    task = load(f"folder:{tmp_path}/both")
    assert not task.test_drawn_by_seed
    assert "not read: the folders val" in task.read
    assert len(task.split(0).test) == 2


def test_the_content_is_the_identity_and_not_the_place(images: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    fields = {"backbone": "tiny-lm", "arm": "frozen-pretrained", "steps": 4, "seeds": [0], "learning_rates": [1e-3]}
    before = resolve({"task": "folder:mine", **fields}).hash
    images.rename(tmp_path / "moved")
    assert resolve({"task": "folder:moved", **fields}).hash == before
    image(tmp_path / "moved" / "cats" / "0.png", 7)
    assert resolve({"task": "folder:moved", **fields}).hash != before
    assert own_checksum("folder:moved") == load("folder:moved").checksum


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (
            lambda at: [(at / "cats" / f"{n}.png").unlink() for n in range(5)],
            {},
            DataError,
            "class cats of .* has 1 images",
        ),
        (lambda at: (at / "dogs").rename(at.parent / "dogs"), {}, DataError, "it has 'cats' alone"),
        (lambda at: [shutil.rmtree(folder) for folder in at.iterdir()], {}, DataError, "it has none"),
        (lambda at: cut(at / "cats" / "3.png"), {}, DataError, r"3\.png is no image"),
        (lambda at: among(at, "train", "val"), {}, DataError, "train, val are parts of data, no classes"),
        (lambda at: named(at, "seg_train", "TestImages"), {}, DataError, "seg_train, TestImages are parts of data"),
        (lambda at: named(at, "fold1", "fold2"), {}, DataError, "fold1, fold2 are parts of data"),
        (lambda at: named(at, "images", "masks"), {}, DataError, "images, masks are parts of data"),
        (lambda at: among(at, "a", "b"), {}, DataError, r"a and b hold the same folders \(cats, dogs\)"),
        (lambda at: copied(at, "thumbs"), {}, DataError, r"hold the same folders \(thumbs\)"),
        (lambda at: shaded(at, 17), {}, DataError, "8 bits have no value above 16, but white is 255"),
        (lambda at: shaded(at, 2**14, np.uint16), {}, DataError, "but white is 65,535"),
        (lambda at: shaded(at, 2**12, np.uint16, damaged=True), {}, DataError, "but white is 65,535"),
        (lambda at: shaded(at / "dogs", 2**12, np.uint16), {}, DataError, "images of 16 bits have no value above"),
        (lambda at: shaded(at / "dogs", 2**12, np.uint16), {"white": 4095}, DataError, "8 and of 16 bits"),
        (lambda at: shaded(at, 17), {"white": 15}, DataError, r"\.png has the value 16, but option white is 15"),
        (lambda at: None, {"white": 4095}, DataError, "images of 8 bits, and option white is 4095"),
        (lambda at: None, {"white": 2**16}, SpecError, "white is 65536"),
        (lambda at: Image.new("F", (8, 8)).save(at / "cats" / "a.tif"), {}, DataError, r"a\.tif has pixels of 32 bits"),
        (shutil.rmtree, {}, SpecError, "no folder"),
        (lambda at: None, {"size": 30}, SpecError, "does not divide"),
    ],
)
def test_a_folder_that_is_no_task_is_refused(
    images: Path, change: Any, options: Any, error: type[FptError], message: str
) -> None:
    change(images)
    with pytest.raises(error, match=message):
        load(f"folder:{images}", **options)


def test_what_is_transparent_is_white(images: Path) -> None:
    drawn = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    drawn.putpixel((3, 3), (0, 0, 0, 255))
    drawn.save(images / "cats" / "drawn.png")
    pixels = load(f"folder:{images}", size=8).data.train.inputs
    assert any(int(each.flatten(0, 1).sum(0).min()) == 63 * 255 for each in pixels)
