"""BANKING77 and CLINC150: parts, labels a class, symbols, and files that are missing or others."""

import csv
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError

import own_tokenizer
import pytest
from transformers import AutoTokenizer

from fpt import models
from fpt.cli.doctor import _data
from fpt.errors import DataError, FptError, SpecError
from fpt.files import sha256
from fpt.tasks import check_task, data_folder, downloads, intents, load
from fpt.tasks.arrays import Examples
from fpt.tasks.task import Task

BANKING77, CLINC150 = (intents.TRAIN, intents.TEST), (intents.FULL,)
FILES = {"banking77": BANKING77, "clinc150": CLINC150}
LICENCES = {"banking77": "CC BY 4.0", "clinc150": "CC BY 3.0"}
PARTS = ("train", "val", "test")
LONG = 1000  # bytes: no text has more

Rows = list[tuple[str, str]]

both = pytest.mark.parametrize("name", FILES)


@pytest.fixture
def copied(made_intents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with the made-up queries, and no network."""

    def refuse(*_: Any, **__: Any) -> None:
        raise URLError("no network")

    monkeypatch.setattr(downloads, "urlopen", refuse)
    shutil.copytree(made_intents / "intents", tmp_path / "intents")
    return tmp_path


def texts_of(examples: Examples) -> list[str]:
    """The texts again, as far as fpt.tasks.texts.in_bytes kept them; half a letter at a cut is shown as U+FFFD."""
    return [bytes(symbol - 1 for symbol in row if symbol).decode(errors="replace") for row in examples.inputs.tolist()]


def in_files(folder: Path, name: str) -> dict[str, Rows]:
    """Texts and intents of each part, as the standard library reads them."""
    if name == "clinc150":
        content = json.loads((folder / CLINC150[0]).read_text())
        return {part: [(text, intent) for text, intent in content[part]] for part in PARTS}
    found = {}
    for part, file in zip(("train", "test"), BANKING77, strict=True):
        with open(folder / file, newline="", encoding="utf-8") as stream:
            found[part] = [(row["text"], row["category"]) for row in csv.DictReader(stream)]
    return found


def as_loaded(task: Task, classes: list[str], seed: int) -> dict[str, Rows]:
    split = task.split(seed)
    examples = (split.train_sample(None), split.validation, split.test)
    return {
        part: [(text, classes[label]) for text, label in zip(texts_of(each), each.targets[:, 0].tolist(), strict=True)]
        for part, each in zip(PARTS, examples, strict=True)
    }


def counts(rows: Rows) -> Counter[str]:
    return Counter(intent for _, intent in rows)


# --- parts


def check_parts(name: str, folder: Path, seed: int) -> None:
    """Every part has the texts and intents of the files; only BANKING77's validation is drawn, from its training file,
    in equal shares of the classes."""
    found, task = in_files(folder, name), load(name, folder, bytes=LONG)
    loaded = as_loaded(task, sorted(counts(found["train"])), seed)
    assert loaded["test"] == found["test"]
    if name == "clinc150":
        assert loaded == found
        return
    train, held = found["train"], len(found["train"]) // 10
    assert (len(loaded["train"]), len(loaded["val"])) == (len(train) - held, held)
    assert sorted(loaded["train"] + loaded["val"]) == sorted(train)
    whole, drawn = counts(train), counts(loaded["val"])
    assert all(abs(drawn[intent] - size * held / len(train)) < 1 for intent, size in whole.items())
    assert loaded["val"] != as_loaded(task, sorted(whole), seed + 1)["val"]


@both
@pytest.mark.parametrize("seed", [0, 5])
def test_parts_are_those_of_the_files(name: str, seed: int, made_intents: Path) -> None:
    check_parts(name, made_intents, seed)
    task = load(name, made_intents)
    assert task.card["licence"] == LICENCES[name]
    assert task.tokens == 128
    assert "4 classes (Open_hours, book_table, lost_umbrella, weather?)" in task.read


@pytest.mark.data
@both
def test_the_whole_files(name: str) -> None:
    check_parts(name, data_folder(), 900)
    task = load(name)
    sizes = {"banking77": (9_003, 1_000, 3_080, 77), "clinc150": (15_000, 3_000, 4_500, 150)}
    assert (*(task.card[part] for part in ("train", "validation", "test")), task.classes) == sizes[name]
    of_class = task.card["test"] // task.classes
    assert task.split(0).test.targets[:, 0].bincount().tolist() == [of_class] * task.classes


# --- labels a class


def check_labels(name: str, folder: Path, few: int, more: int, seed: int) -> None:
    classes = sorted(counts(in_files(folder, name)["train"]))
    some, larger, whole = (
        as_loaded(load(name, folder, bytes=LONG, labels=labels), classes, seed) for labels in (few, more, 0)
    )
    assert counts(some["train"]) == dict.fromkeys(classes, few)
    assert counts(larger["train"]) == dict.fromkeys(classes, more)
    assert set(some["train"]) < set(larger["train"]) < set(whole["train"])
    assert (some["val"], some["test"]) == (whole["val"], whole["test"])


@both
@pytest.mark.parametrize("seed", [0, 7])
def test_a_seed_draws_so_many_labels_of_every_class(name: str, seed: int, made_intents: Path) -> None:
    check_labels(name, made_intents, 2, 5, seed)
    task = load(name, made_intents, labels=4)
    one, other = (task.split(each).train_sample(None) for each in (seed, seed + 1))
    assert sorted(texts_of(one)) != sorted(texts_of(other))
    half = task.reduced(0.5).split(seed).train_sample(None)
    assert half.targets[:, 0].bincount().tolist() == [2] * 4
    assert set(texts_of(half)) < set(texts_of(one))
    assert load(name, made_intents).checksum == task.checksum


@pytest.mark.data
@both
def test_ten_and_thirty_labels_of_the_whole_files(name: str) -> None:
    check_labels(name, data_folder(), 10, 30, 900)


@pytest.mark.parametrize(("name", "most"), [("banking77", 31), ("clinc150", 100)])
def test_more_labels_than_a_class_has_are_refused(name: str, most: int) -> None:
    check_task(name, "paper", {"labels": most})
    with pytest.raises(SpecError, match=rf"labels is {most + 1}, but .* at most {most}"):
        check_task(name, "paper", {"labels": most + 1})


@pytest.mark.data
@pytest.mark.parametrize(("name", "most", "classes"), [("banking77", 31, 77), ("clinc150", 100, 150)])
def test_every_class_has_the_most_labels(name: str, most: int, classes: int) -> None:
    assert load(name, labels=most).split(3).train_size == most * classes


# --- symbols


@both
def test_texts_are_cut_where_the_options_say(name: str, made_intents: Path) -> None:
    whole, cut = load(name, made_intents, bytes=LONG), load(name, made_intents, bytes=20)
    assert cut.tokens == 20 < whole.tokens < LONG
    texts, starts = (texts_of(task.data.train) for task in (whole, cut))  # type: ignore[union-attr]
    assert starts == [text[:20] for text in texts]


@both
def test_a_model_reads_them_by_its_own_tokens(name: str, made_intents: Path, tmp_path: Path) -> None:
    own_tokenizer.save(tmp_path)
    options = {"labels": 3, "tokenizer": "own"}
    task = models.load_task(name, f"hub:{tmp_path}", made_intents, tokens=12, **options)
    assert (task.tokens, task.own_table, task.checksum) == (12, "reads", load(name, made_intents).checksum)
    test, texts = task.split(0).test, [text for text, _ in in_files(made_intents, name)["test"]]
    ids = AutoTokenizer.from_pretrained(tmp_path)(texts, truncation=True, max_length=12)["input_ids"]
    assert test.lengths is not None
    assert [row[:size].tolist() for row, size in zip(test.inputs, test.lengths, strict=True)] == ids
    with pytest.raises(SpecError, match=r"option bytes is 7.*tokenizer own"):
        models.load_task(name, f"hub:{tmp_path}", made_intents, bytes=7, **options)
    with pytest.raises(SpecError, match=r"option tokens is 7.*tokenizer bytes"):
        load(name, made_intents, tokens=7)


# --- files


@both
def test_a_file_that_is_missing_is_named_with_its_checksum_and_licence(name: str, copied: Path) -> None:
    for file in FILES[name]:
        (copied / file).unlink()
        with pytest.raises(DataError) as caught:
            load(name, copied)
        address, checksum = intents.SOURCES[file]
        for words in (str(copied / file), checksum, address, "no network", LICENCES[name], "FPT_DATA"):
            assert words in str(caught.value)
        found = {row[0]: row[1:] for row in _data(copied)}[f"data: {name}"]
        assert found[0] == "not here"
        assert LICENCES[name] in found[1]
        shutil.copy(Path(__file__).parents[1] / "data" / file, copied / file)
    assert {row[0]: row[1] for row in _data(copied)}[f"data: {name}"].startswith("intents/")


@both
def test_another_file_of_that_name_is_refused_and_stays(name: str, copied: Path) -> None:
    for file in FILES[name]:
        path = copied / file
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        message = f"{file} is truncated or altered: expected SHA-256 {intents.SOURCES[file][1]}, found {sha256(path)}"
        with pytest.raises(DataError, match=f"{message}.*{LICENCES[name]}"):
            load(name, copied)
        assert path.read_bytes() == whole[:-1]
        path.write_bytes(whole)


@both
def test_what_the_authors_publish_is_downloaded(
    name: str, made_intents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {address: file for file, (address, _) in intents.SOURCES.items()}
    assert all(address.startswith("https://raw.githubusercontent.com/") for address in sources)

    def deliver(url: str, timeout: float) -> io.BytesIO:
        return io.BytesIO((made_intents / sources[url]).read_bytes())

    monkeypatch.setattr(downloads, "urlopen", deliver)
    assert load(name, tmp_path).checksum == load(name, made_intents).checksum
    assert all((tmp_path / file).is_file() for file in FILES[name])


def emptied(rows: Rows) -> Rows:
    return [("", rows[0][1]), *rows[1:]]


@pytest.mark.parametrize(
    ("name", "part", "change", "message"),
    [
        ("banking77", "test", emptied, "banking77: .* no token in row 49"),
        ("clinc150", "train", emptied, "clinc150: .* no token in row 1,"),
    ],
)
def test_a_text_without_a_token_is_named(
    name: str,
    part: str,
    change: Callable[[Rows], Rows],
    message: str,
    copied: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = {each: change(found) if each == part else found for each, found in in_files(copied, name).items()}
    if name == "clinc150":
        (copied / CLINC150[0]).write_text(json.dumps(rows))
    else:
        for file, found in zip(BANKING77, rows.values(), strict=True):
            with open(copied / file, "w", newline="") as stream:
                csv.writer(stream).writerows([("text", "category"), *found])
    for file in FILES[name]:
        monkeypatch.setitem(intents.SOURCES, file, (intents.SOURCES[file][0], sha256(copied / file)))
    with pytest.raises(FptError, match=message):
        load(name, copied)
