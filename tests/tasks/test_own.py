"""Your own data: folders of images, tables of numbers and of texts. What becomes of them, and what is refused."""

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits, load_wine

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


@pytest.fixture
def wine(tmp_path: Path) -> Path:
    data = load_wine(as_frame=True)
    data.frame.to_csv(tmp_path / "wine.csv", index=False)
    return tmp_path / "wine.csv"


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
        (lambda at: [(at / "cats" / f"{n}.png").unlink() for n in range(5)], {}, DataError, "'cats' has 1 images"),
        (lambda at: (at / "dogs").rename(at.parent / "dogs"), {}, DataError, "it has 'cats' alone"),
        (lambda at: [shutil.rmtree(folder) for folder in at.iterdir()], {}, DataError, "it has none"),
        (lambda at: cut(at / "cats" / "3.png"), {}, DataError, r"3\.png is no image"),
        (lambda at: among(at, "train", "val"), {}, DataError, "train, val are parts of data, no classes"),
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


def test_a_table_becomes_a_sequence_of_its_columns(wine: Path) -> None:
    task = load(f"csv:{wine}", target="target")
    assert (task.tokens, task.width, task.classes) == (13, 1, 3)
    tokens = task.encode(task.data.train.inputs)
    assert tokens.mean(0).abs().max() < 1e-5
    assert torch.allclose(tokens.std(0), torch.ones(13, 1), atol=1e-4)
    assert load(f"csv:{wine}").classes == 3  # a column named target is found


def test_columns_fill_whole_patches_and_what_is_left_out_is_named(wine: Path) -> None:
    pd.read_csv(wine).assign(always=1, note="red").to_csv(wine, index=False)
    task = load(f"csv:{wine}", patch=4)
    assert (task.tokens, task.width) == (4, 4)  # of 13 columns
    assert "3 of zeros" in task.scaling
    for words in ("178 rows, 3 classes (0, 1, 2) of column target", "left out as constant: always", "as text: note"):
        assert words in task.read


def test_the_unit_of_a_column_makes_no_difference(wine: Path) -> None:
    frame, before = pd.read_csv(wine), load(f"csv:{wine}").data.train.inputs
    for unit in (1e-150, 1e150):
        frame.assign(ash=frame["ash"] * unit).to_csv(wine, index=False)
        assert torch.allclose(load(f"csv:{wine}").data.train.inputs, before, atol=1e-6)


def test_parquet_is_read_as_the_csv_is(wine: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(wine)
    frame["target"] = pd.Categorical(frame["target"], categories=range(4))  # no row has class 3
    frame.assign(waited=pd.Timedelta(1, "s")).to_parquet(tmp_path / "WINE.PARQUET")
    one, other = load(f"csv:{wine}"), load(f"csv:{tmp_path}/WINE.PARQUET")
    assert "left out as text: waited" in other.read
    assert torch.equal(one.data.train.inputs, other.data.train.inputs)


def test_an_index_of_parquet_with_a_name_is_a_column(wine: Path, tmp_path: Path) -> None:
    pd.read_csv(wine).set_index("ash").to_parquet(tmp_path / "x.parquet")
    found, whole = load(f"csv:{tmp_path}/x.parquet"), load(f"csv:{wine}")
    assert found.tokens == whole.tokens


def test_columns_of_parquet_may_be_numbered(tmp_path: Path) -> None:
    pd.DataFrame({0: np.arange(30) % 7, 1: np.arange(30) % 2}).to_parquet(tmp_path / "x.parquet")
    assert load(f"csv:{tmp_path}/x.parquet", target="1").classes == 2


@pytest.mark.parametrize(("text", "option"), [(True, "patch"), (False, "bytes"), (False, "tokens")])
def test_an_option_that_changes_nothing_is_refused(tmp_path: Path, text: bool, option: str) -> None:
    inputs = ["good film", "bad film"] * 9 if text else [7, 3, 3] * 6
    pd.DataFrame({"a": inputs, "label": [0, 1] * 9}).to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(SpecError, match=f"option {option} is 7"):
        load(f"csv:{tmp_path}/x.csv", **{option: 7})


def test_texts_are_their_bytes(tmp_path: Path) -> None:
    texts = [f"{'good' if row % 2 else 'bad'} film {'ß' * (row % 3)}" for row in range(30)]
    frame = pd.DataFrame({"text": texts, "label": ["pos" if row % 2 else "neg" for row in range(30)]})
    frame.to_csv(tmp_path / "films.csv", index=False)
    task = load(f"csv:{tmp_path}/films.csv", bytes=12)
    assert (task.vocabulary, task.classes, task.mask_padding) == (257, 2, True)
    assert task.tokens == 12
    row = int((task.data.train.targets[:, 0] == 0).nonzero()[0])
    stored = task.data.train.inputs[row]
    assert bytes((stored[stored > 0] - 1).tolist()).startswith(b"bad film")
    assert "cut at 12 bytes" in task.scaling


def test_the_first_text_may_be_as_long_as_any(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["long " * 50_000, *["bad film", "good film"] * 9], "label": [1, *[0, 1] * 9]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    limit = csv.field_size_limit()
    assert load(f"csv:{tmp_path}/x.csv", bytes=12).tokens == 12
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(ash=t["ash"].where(t.index != 4)), "column ash has missing"),
        (lambda t: t.assign(target=t["target"].where(t.index != 4)), "column target has no value in row 5"),
        (lambda t: t.assign(target=t["target"].where(t.index != 4, 7)), "class 7 of column target has 1 rows"),
        (lambda t: t.assign(target=np.linspace(0, 1, len(t))), "a number to predict"),
        (lambda t: t.assign(target=1), "has the class 1 alone"),
        (lambda t: t.assign(target=t["target"].map(["None", "a", "b"].__getitem__)), "None, null and the like count"),
        (lambda t: t[["target"]], "has the column target alone"),
        (lambda t: t.rename(columns={"ash": ""}), "column 3 has no name"),
        (lambda t: t.iloc[:0], "has no rows"),
        (lambda t: t[["target"]].assign(a=1, b=2), "no column of numbers that differ"),
        (lambda t: t.assign(Id=range(len(t), 0, -1)), "column Id numbers the rows"),
        (lambda t: t[["target"]].assign(idx=range(len(t)), sentence="good"), "column idx numbers the rows"),
        (lambda t: t.set_axis(["ash", *t.columns[1:]], axis=1), "several columns are named ash"),
        (lambda t: pd.DataFrame(np.ones((1, 10_001), int)), "10,001 columns"),
        (lambda t: t.assign(ash=t["ash"] * 1e-165), "column ash has values .* too close together"),
        (lambda t: t.assign(ash=t["ash"] * 1e-156), "column ash has values .* too close together"),
        (lambda t: t.assign(ash=t["ash"] * 1e160), "column ash has values that are too large"),
        (lambda t: t.assign(ash=t["ash"] * 1e307), "column ash has values that are too large"),
    ],
)
def test_a_table_that_is_no_task_is_refused(wine: Path, change: Any, message: str) -> None:
    change(pd.read_csv(wine)).to_csv(wine, index=False)
    with pytest.raises(DataError, match=message):
        load(f"csv:{wine}", target="target")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no table that can be read"),
        ("\x00\x01", "has no rows"),
        ("a,target\n1,0\n1,2,3,4\n", "no table that can be read"),
        ("a,target\n" + "1,5,0\n1,6,1\n" * 3, "rows have more fields than the header"),
        (
            "id,price,target\n" + "".join(f"{row},1,5,{row % 2}\n" for row in range(9)),
            "rows have more fields than the header",
        ),
        ("\nid,target\n\n" + "".join(f"{row},{row},{row % 2}\n" for row in range(9)), "more fields than the header"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        load(f"csv:{tmp_path}/x.csv", target="target")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "a;b;target\n1;2;0\n", "separated by semicolons"),
        ("x.csv", "a\ttarget\n1\t0\n", "separated by tabs"),
        ("x.tsv", "a,target\n1,0\n", r"separated by commas; save it as \.tsv"),
        ("x.jsonl", '{"a": 1, "target": 0}\n', r"x\.jsonl: the name of a table ends in \.csv, \.tsv, \.parquet"),
    ],
)
def test_another_kind_of_table_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        load(f"csv:{tmp_path}/{name}", target="target")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        # as the datasets library writes images
        ({"image": [{"bytes": b"x"}] * 6, "label": [0, 1] * 3}, "column image holds dict"),
        ({"a": range(6), "target": [[0], [1]] * 3}, "holds lists"),
    ],
)
def test_a_column_that_is_neither_numbers_nor_text_is_refused(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    pd.DataFrame(columns).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=message):
        load(f"csv:{tmp_path}/x.parquet")


def test_a_class_is_one_class_in_a_file_of_any_size(tmp_path: Path) -> None:
    """In a large one, the library would read 1 as a number in some rows and as text in others."""
    labels = np.where(np.arange(300_000) % 30_000 == 29_999, "x", (np.arange(300_000) % 3).astype(str))
    pd.DataFrame({"a": np.arange(300_000) % 7, "label": labels}).to_csv(tmp_path / "x.csv", index=False)
    assert load(f"csv:{tmp_path}/x.csv").classes == 4


def test_what_is_transparent_is_white(images: Path) -> None:
    drawn = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    drawn.putpixel((3, 3), (0, 0, 0, 255))
    drawn.save(images / "cats" / "drawn.png")
    pixels = load(f"folder:{images}", size=8).data.train.inputs
    assert any(int(each.flatten(0, 1).sum(0).min()) == 63 * 255 for each in pixels)


def test_the_usual_names_of_the_target_may_be_capital(wine: Path) -> None:
    pd.read_csv(wine).rename(columns={"target": "Label"}).to_csv(wine, index=False)
    assert load(f"csv:{wine}").classes == 3


def test_a_target_is_named_by_the_reader_where_none_is_called_so(wine: Path) -> None:
    pd.read_csv(wine).rename(columns={"target": "kind"}).to_csv(wine, index=False)
    with pytest.raises(SpecError, match="name the column of classes"):
        load(f"csv:{wine}")
    with pytest.raises(SpecError, match="Did you mean 'kind'"):
        load(f"csv:{wine}", target="kinds")
    assert load(f"csv:{wine}", target="kind").classes == 3
