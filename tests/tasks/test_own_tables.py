"""Your own tables of numbers and of texts: what becomes of them, and what is refused."""

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.datasets import load_wine

from fpt.errors import DataError, SpecError
from fpt.tasks import load


@pytest.fixture
def wine(tmp_path: Path) -> Path:
    data = load_wine(as_frame=True)
    data.frame.to_csv(tmp_path / "wine.csv", index=False)
    return tmp_path / "wine.csv"


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
    for words in (
        "178 rows, 3 classes (0: 59, 1: 71, 2: 48) of column target",
        "left out as constant: always",
        "as text: note",
    ):
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


@pytest.mark.parametrize("about", [{"index_columns": ["gone"]}, {"columns": 5}, []])
def test_parquet_that_says_of_itself_what_is_not_so(about: Any, tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 4] * 6, "target": [0, 1] * 9})
    whole = {"index_columns": [], "columns": [], "column_indexes": []}
    said = whole | about if isinstance(about, dict) else about
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(said)}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet: it is no table that can be read"):
        load(f"csv:{tmp_path}/x.parquet")


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
        (lambda t: t.assign(target=np.linspace(0, 1, len(t))), "numbers to predict"),
        (lambda t: t.assign(target=t.index % 40 + 18), "numbers to predict"),
        (lambda t: t.assign(again=10 - 3 * t["target"]), "column again goes one to one"),
        (lambda t: t.assign(target=1), "has the class 1 alone"),
        (lambda t: t.assign(target=t["target"].map(["None", "a", "b"].__getitem__)), "None, null and the like count"),
        (lambda t: t[["target"]], "no column of numbers that differ"),
        (lambda t: t.rename(columns={"ash": ""}), "column 3 has no name"),
        (lambda t: t.iloc[:0], "has no rows"),
        (lambda t: t[["target"]].assign(a=1, b=2), "no column of numbers that differ"),
        (lambda t: t.assign(Id=range(len(t), 0, -1)), "column Id numbers the rows"),
        (lambda t: t[["target"]].assign(idx=range(len(t)), sentence="good"), "column idx numbers the rows"),
        (lambda t: t.assign(nr=np.arange(len(t)) + 1000.0), "column nr numbers the rows"),
        (lambda t: t.assign(was=np.random.default_rng(0).permutation(300)[: len(t)]), "column was numbers the rows"),
        (lambda t: t.assign(PassengerId=7000 * t.index[::-1] ** 2), "column PassengerId numbers the rows"),
        (lambda t: t.assign(share=t.index / 1000), "column share numbers the rows, or rises"),
        (
            lambda t: t.sample(frac=1, replace=True).sort_index().reset_index(),
            "column index numbers the rows, or rises",
        ),
        (lambda t: t.assign(ash=t["ash"].astype(str).where(t.index != 4, "?")), r"column ash .* '\?' in row 5"),
        (lambda t: t.assign(ash=t["ash"].where(t.index > 170, "n.d.")), r"column ash .* 'n\.d\.' in row 1"),
        (lambda t: t.assign(ash=[f"$1,{row:03}" for row in t.index]), r"column ash .* '\$1,000' in row 1"),
        (lambda t: t.assign(ash=[None, *[True, False] * 100][: len(t)]), "ash has missing"),
        (lambda t: t.assign(note=[f"a good wine of {row}" for row in t.index]), "column note holds texts"),
        (lambda t: t[["target"]].assign(text="good", kind="red"), "column text holds texts"),
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
        ("5.1,3.5,0\n" + "6.2,3.4,1\n4.9,3.6,0\n" * 9, "first line, 5.1, 3.5, 0, holds data"),
        ("0,7,0\n" + "1,7,1\n0,8,0\n" * 9, "several columns are named 0; needed is a first line"),
        ("sep=,\na,target\n" + "1,0\n3,1\n" * 9, "first line, sep=, , is no header"),
        ("x" * 100_000 + ",target\n" + "1,0\n3,1\n" * 9, "first line, x+…, is no header"),
        ("# measured\na,target\n" + "1,0\n3,1\n" * 9, "first line, # measured, is no header"),
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
        ("x.csv", "a|target\n1|0\n", "separated by bars"),
        ("x.csv", "a target\n1 0\n", "separated by spaces"),
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
        ({"a": range(6), "target": [[0], [1]] * 3}, "column target holds ndarray"),
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


def test_several_columns_may_be_the_target_and_the_reader_is_asked(wine: Path) -> None:
    pd.read_csv(wine).assign(Label=1).to_csv(wine, index=False)
    with pytest.raises(SpecError, match="it may be target, Label"):
        load(f"csv:{wine}")
    assert "of column target; inputs:" in load(f"csv:{wine}", target="target").read


def test_what_is_read_is_said(wine: Path, tmp_path: Path) -> None:
    for words in (
        "178 rows",
        "3 classes (0: 59, 1: 71, 2: 48) of column target, guessed",
        "inputs: alcohol, malic_acid, ",
    ):
        assert words in load(f"csv:{wine}").read
    pd.DataFrame({"say\nwhat": ["good", "bad"] * 9, "y": ["a", "b"] * 9}).to_csv(tmp_path / "x.csv", index=False)
    read = load(f"csv:{tmp_path}/x.csv").read
    assert "18 rows, 2 classes (a: 9, b: 9) of column y" in read
    assert "the texts of column" in read
    assert read.isprintable()  # it becomes a line of study.yaml


def test_decimals_are_numbers(wine: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(wine)
    frame.map(lambda value: Decimal(str(value))).to_parquet(tmp_path / "x.parquet")
    assert torch.equal(load(f"csv:{tmp_path}/x.parquet").data.train.inputs, load(f"csv:{wine}").data.train.inputs)


@pytest.mark.parametrize("column", ["price", "fold", "waves"])
def test_a_column_that_does_not_number_the_rows_is_read(wine: Path, column: str) -> None:
    frame, rng = pd.read_csv(wine), np.random.default_rng(0)
    made = {
        "price": rng.permutation(100_000)[: len(frame)],  # whole numbers without a repeat, as they come
        "fold": frame.index // 40,  # rises with repeats
        "waves": rng.normal(size=len(frame)),
    }
    frame.assign(**{column: made[column]}).to_csv(wine, index=False)
    assert column in list(pd.read_csv(wine))
    assert load(f"csv:{wine}").tokens == 14


@pytest.mark.parametrize("heads", [range(13), np.linspace(900, 1000, 13).round(2), 900 + np.arange(13) ** 2])
def test_columns_may_be_named_by_numbers(wine: Path, heads: Any) -> None:
    pd.read_csv(wine).set_axis([*heads, "target"], axis=1).to_csv(wine, index=False)
    assert load(f"csv:{wine}").tokens == 13


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ('bad film\t0\n"good film\t1\nbad "film\t0\n', "line 4"),  # the second quote is followed by a text
        ('bad film\t0\n"good film\t1\nso so\t0\nbad film"\t0\n', "line 6"),  # and here ends one
        ('bad film\t0\n"good film\t1\n', "line 4"),  # there is no other one
        ('"a \\"good\\" film"\t1\n', "line 3"),
    ],
)
def test_a_quote_that_would_join_rows_is_refused(tmp_path: Path, rows: str, line: str) -> None:
    (tmp_path / "x.tsv").write_text("text\tlabel\nbad one\t0\n" + rows + "good one\t1\nbad one\t0\n" * 9)
    with pytest.raises(DataError, match=f"{line}.*quote"):
        load(f"csv:{tmp_path}/x.tsv")


@pytest.mark.parametrize("order", [["text", "label"], ["label", "text"]])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_texts_of_several_lines_are_read_as_they_are(tmp_path: Path, order: list[str], separator: str) -> None:
    texts = [f'Dear{separator} "Sir", {row}\nwe pay{separator} {row % 2}\r\n"bye"' for row in range(20)]
    path = tmp_path / ("x.csv" if separator == "," else "x.tsv")
    pd.DataFrame({"text": texts, "label": [0, 1] * 10})[order].to_csv(path, index=False, sep=separator)
    inputs = load(f"csv:{path}").data.train.inputs
    assert [bytes((row[row > 0] - 1).tolist()).decode() for row in inputs] == texts
