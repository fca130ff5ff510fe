"""What `fpt advise` refuses by name and before any training. What is wrong in data themselves is tested beside their
readers (tests/tasks/test_own.py)."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import own_tokenizer
import pandas as pd
import pytest
import torch
from refusal import refused
from safetensors.torch import save_file
from small_studies import ROOT

from fpt.advise import work

ROWS = 40


def table(**columns: object) -> None:
    frame = pd.DataFrame({"x": np.arange(ROWS) % 7, "label": np.arange(ROWS) % 2} | columns)
    frame.to_csv("data.csv", index=False)


def short_window() -> None:
    """A model that reads 8 tokens at most, and data of 16."""
    table(**{f"c{number}": np.random.default_rng(number).normal(size=ROWS) for number in range(15)})
    config = {"model_type": "opt", "hidden_size": 16, "word_embed_proj_dim": 16, "ffn_dim": 32, "num_hidden_layers": 1,
              "num_attention_heads": 2, "max_position_embeddings": 8, "vocab_size": 11}  # fmt: skip
    Path("model").mkdir()
    Path("model/config.json").write_text(json.dumps(config))
    save_file({"decoder.embed_tokens.weight": torch.zeros(11, 16)}, "model/model.safetensors")


def texts() -> None:
    """Texts, and a model with a tokenizer. What is wrong in a tokenizer is tested with it (models/test_tokens.py)."""
    own_tokenizer.texts().to_csv("data.csv", index=False)
    own_tokenizer.save(Path("model"))


def numbers_and_tokenizer() -> None:
    texts()
    table()


OURS = "data.csv --backbone hub:model"
CASES: dict[str, tuple[Callable[[], object], str, tuple[str, ...]]] = {
    "nothing there": (lambda: None, "data", ("data", "no such file")),
    "one class": (lambda: table(label=np.zeros(ROWS, int)), "data.csv", ("class 0 alone",)),
    "a window shorter than the data": (short_window, OURS, ("16 tokens", "8")),
    "the tokenizer of a model of bytes": (texts, "data.csv --tokenizer own", ("tiny-lm", "hub:PATH")),
    "no such tokenizer": (texts, f"{OURS} --tokenizer owm", ("owm", "own")),
    "a tokenizer for numbers": (numbers_and_tokenizer, f"{OURS} --tokenizer own", ("tokenizer is own", "no table")),
    "tokens of numbers": (table, "data.csv --tokens 9", ("tokens is 9", "no table of texts")),
    "another kind of file": (lambda: Path("data.pdf").write_text("x"), "data.pdf", ("data.pdf", ".csv")),
    "an option of another kind of data": (table, "data.csv --size 8", ("--size", "target")),
    "no such column": (table, "data.csv --target lable", ("lable", "label")),
    "one arm": (table, "data.csv --arms full", ("full", "two arms")),
    "no such arm": (table, "data.csv --arms full,frozne", ("frozne",)),
    "no such model": (table, "data.csv --backbone tiny-ml", ("tiny-ml", "tiny-lm")),
    "a name that is no folder": (table, "data.csv --name ../there", ("--name",)),
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace as working directory."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_by_name_and_nothing_is_written(case: str) -> None:
    make, words, named = CASES[case]
    make()
    refused("advise", *words.split(), named=named)
    assert not list(Path("runs").iterdir())


def test_a_minute_for_a_model_that_needs_ten_for_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    table()
    monkeypatch.setattr(work, "product_rate", lambda compute_type: 1e3)  # FLOP a second: of a very slow machine
    refused("advise", "data.csv", "--minutes", "1", named=("--minutes 1", "tiny-lm", "minutes"))
    assert not list(Path("runs").iterdir())


def test_another_request_of_the_same_name() -> None:
    table()
    Path("runs/advise-data").mkdir()
    Path("runs/advise-data/advise.json").write_text(json.dumps({"task": "csv:other.csv"}))
    refused("advise", "data.csv", named=("runs/advise-data", "csv:other.csv", "--name"))
