"""Which texts the model's own tokenizer reads, and what the plan says of it."""

from pathlib import Path
from typing import Any

import own_tokenizer
import pytest

from fpt.advise import work
from fpt.advise.request import Request, request, task_and_model
from fpt.tasks import BY_MODEL, MEAN

from .conftest import table

MODEL = "hub:model"


@pytest.fixture
def model(place: Path) -> Path:
    """In a workspace with texts: a model with its tokenizer."""
    own_tokenizer.texts().to_csv("texts.csv", index=False)
    own_tokenizer.save(Path("model"))
    return place / "model"


def asked(place: Path, data: str = "texts.csv", backbone: str = MODEL, **options: Any) -> Request:
    return request(data, backbone, "frozen,full,scratch", root=place, options=options)


def said(wanted: Request) -> str:
    task, _ = task_and_model(wanted.probe([1.0], [0], batch_size=1))
    return "; ".join(work.reading(task, wanted.backbone))


def test_a_folder_with_a_tokenizer_reads_texts_by_it(place: Path, model: Path) -> None:
    wanted = asked(place, tokens=9)
    assert wanted.options == {"tokenizer": BY_MODEL, "tokens": 9, "pooling": MEAN}
    task, _ = task_and_model(wanted.probe([1.0], [0], batch_size=1))
    line = "; ".join(work.reading(task, wanted.backbone))
    for words in (f"9 tokens: {task.scaling.removeprefix('none: ')}", "padded", "mean"):
        assert words in line
    assert wanted.arms == ("frozen-pretrained", "whole-pretrained", "unfrozen-random")  # the embeddings train, too


def test_a_model_of_the_catalogue_with_a_tokenizer_reads_texts_by_it(place: Path, model: Path) -> None:
    assert asked(place, backbone="minilm").options == {"tokenizer": BY_MODEL, "pooling": MEAN}
    assert asked(place, backbone="minilm", pooling="last").options["pooling"] == "last"
    assert asked(place, data="banking77", backbone="minilm").options["tokenizer"] == BY_MODEL


def test_one_without_reads_bytes_and_says_why(place: Path, model: Path) -> None:
    for file in model.glob("token*"):
        file.unlink()
    wanted = asked(place, tokens=30)
    assert wanted.options == {"bytes": 30}
    line = said(wanted)
    assert "bytes of UTF-8" in line
    assert f"{MODEL} is no folder with a tokenizer" in line


def test_bytes_are_read_where_they_are_asked_for(place: Path, model: Path) -> None:
    wanted = asked(place, tokenizer="bytes")
    line = said(wanted)
    assert "bytes of UTF-8" in line
    assert "no folder" not in line
    assert wanted.asked != asked(place).asked


def test_a_model_of_bytes_and_a_table_of_numbers_are_as_before(place: Path, model: Path) -> None:
    table(place / "mine.csv")
    assert asked(place, backbone="tiny-lm").options == {}
    assert asked(place, "mine.csv").options == {}
    assert "standardised" in said(asked(place, "mine.csv"))


def test_paths_are_those_of_the_place_in_which_the_command_is_given(
    place: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("inside").mkdir()
    Path("texts.csv").rename("inside/texts.csv")
    monkeypatch.chdir("inside")
    wanted = asked(place, backbone="hub:../model")
    assert (wanted.task, wanted.backbone) == ("csv:inside/texts.csv", MODEL)
    assert wanted.options == {"tokenizer": BY_MODEL, "pooling": MEAN}
