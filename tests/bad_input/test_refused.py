"""Bad input of every kind: what is wrong is named, before anything is trained or written.

What is wrong in data, tokenizers, options and documents by themselves is tested beside their readers: tests/tasks/,
tests/models/, tests/sweeps/test_study.py.
"""

import json
from pathlib import Path

import numpy as np
import own_tokenizer
import pandas as pd
import pytest
import torch
from refusal import refused
from small_models import GPT2, added, configured, edited, filled, save_model, typed, without
from small_studies import PLAIN, workspace
from typer.testing import CliRunner

from fpt.advise import work
from fpt.cli import app

# --- advise: data of one's own, and what is asked of them

ROWS = 40


def table():
    pd.DataFrame({"x": np.arange(ROWS) % 7, "label": np.arange(ROWS) % 2}).to_csv("data.csv", index=False)


def cyrillic():
    table()
    Path("data.csv").rename("данные.csv")


def texts():
    """Texts, and a model with a tokenizer."""
    own_tokenizer.texts().to_csv("data.csv", index=False)
    own_tokenizer.save(Path("model"))


def numbers_and_tokenizer():
    texts()
    table()


def another_request():
    table()
    Path("runs/advise-data").mkdir()
    Path("runs/advise-data/advise.json").write_text(json.dumps({"task": "csv:other.csv"}))
    Path("runs/advise-data/study.yaml").touch()  # planned


OURS = "advise data.csv --backbone hub:model"
ADVISE = {
    "nothing there": (list, "advise data", ("data", "no such file")),
    "the tokenizer of a model of bytes": (texts, "advise data.csv --tokenizer own", ("tiny-lm", "hub:PATH")),
    "a tokenizer for numbers": (numbers_and_tokenizer, f"{OURS} --tokenizer own", ("tokenizer is own", "no table")),
    "tokens of numbers": (table, "advise data.csv --tokens 9", ("tokens is 9", "no table of texts")),
    "another kind of file": (lambda: Path("data.pdf").touch(), "advise data.pdf", ("data.pdf", ".csv")),
    "an option of another kind of data": (table, "advise data.csv --size 8", ("--size", "target")),
    "minutes that are no number": (table, "advise data.csv --minutes nan", ("--minutes",)),
    "a tolerance that is no number": (table, "advise data.csv --tolerance nan", ("--tolerance",)),
    "a name without ASCII letters": (cyrillic, "advise данные.csv", ("данные", "--name")),
    "one arm": (table, "advise data.csv --arms full", ("full", "two arms")),
    "no such arm": (table, "advise data.csv --arms full,frozne", ("frozne",)),
    "a name that is no folder": (table, "advise data.csv --name ../there", ("--name",)),
    "another request of the name": (
        another_request,
        "advise data.csv",
        ("runs/advise-data", "csv:other.csv", "--name"),
    ),
}

# --- models

MODELS = {
    "a backbone without matrices": ("--backbone lstm --arm lora-random", ("'lstm'", "adapters", "recurrent")),
    "targets that do not exist": ("--backbone tiny-lm --arm lora-random --targets all", ("targets", "feed_forward")),
    "no examples": ("--backbone tiny-lm --arm lora-random --batch-size 0", ("batch_size",)),
    "rank without an arm": ("--backbone tiny-lm --rank 4", ("--rank", "--arm")),
    "an arm of every backbone": ("--arm lora-random", ("--backbone",)),
}

# --- studies in which something has no effect, or compares what cannot be compared

FILE = "runs/mine/study.yaml"
SWEEPS = PLAIN.partition("sweeps:")[0] + "sweeps:\n"
VERBATIM = PLAIN.partition("sweeps:")[0].replace("backbone: tiny-lm, ", "") + "paper: rothermel2021\n"


def field(text):
    """The plain study with another field in its only sweep."""
    return f"{SWEEPS}  - {{task: digits, arm: frozen-pretrained, {text}}}\n"


STUDIES = {
    "a stand-in for nobody": (PLAIN + "stands_for: {gtp2: tiny-lm}", ("stands_for", "gtp2", "gpt2")),
    "a stand-in that does not exist": (PLAIN + "stands_for: {gpt2: tiny-ml}", ("stands_for", "tiny-ml", "tiny-lm")),
    "a stand-in that is not trained": (PLAIN + "stands_for: {mnist: digits-lra}", ("stands_for", "digits-lra")),
    "a stand-in of another kind": (PLAIN + "stands_for: {gpt2: digits}", ("stands_for", "digits")),
    "a task with options for a task": (PLAIN + "stands_for: {mnist: {task: digits}}", ("stands_for", "mnist")),
    "a model without a name for a model": (
        PLAIN + "stands_for: {gpt2: {layers: 2}}",
        ("stands_for", "gpt2", "backbone"),
    ),
    "another arm for a row": (PLAIN + "stands_for: {FPT: {arm: frozen-random}}", ("stands_for", "FPT", "arm")),
    "a name for a row": (PLAIN + "stands_for: {LSTM: tiny-lm}", ("stands_for", "LSTM", "fields")),
    "a stand-in with another size": (
        PLAIN + "stands_for: {gpt2: {backbone: tiny-lm, layers: 2}}",
        ("stands_for", "gpt2", "'layers': 2"),
    ),
    "a stand-in that is neither name nor fields": (PLAIN + "stands_for: {gpt2: 5}", ("stands_for", "gpt2", "5")),
    "a misspelt field for a row": (PLAIN + "stands_for: {LSTM: {widht: 3}}", ("stands_for", "LSTM", "widht", "width")),
    "no such cell to leave out": (PLAIN + "leaves_out: [lu-table-99/*]", ("leaves_out", "lu-table-99")),
    "a stand-in in a table of a paper": (VERBATIM + "stands_for: {gpt2: tiny-lm}", ("rothermel2021", "sweeps")),
    "another model for a table of a paper": (
        VERBATIM.replace("steps: 3", "steps: 3, backbone: tiny-lm"),
        ("backbone", "tiny-lm", "rothermel2021"),
    ),
    "what is no longer a field": (PLAIN + "replace: []", ("replace", "stands_for")),
    "unequal budgets by sweeps": (
        "stands_for: {gpt2: tiny-lm}"
        f"{SWEEPS}  - {{task: digits, arm: frozen-pretrained}}\n  - {{task: digits, arm: frozen-random, steps: 6}}\n",
        ("steps", "after 3", "after 6"),
    ),
    "a number with a leading zero": (field("steps: 010"), ("line 4", "010", "eight")),
}
GONE = PLAIN.replace("{task: digits, arm: frozen-pretrained}", "{task: 'npz:mine.npz', arm: frozen-random}")

# --- folders of models that do not hold what they announce

MATRIX = "h.1.mlp.c_fc.weight"
WEIGHTS = {
    "no number": (edited(filled(MATRIX, float("nan"))), (MATRIX, "not finite")),
    "whole numbers": (edited(typed(torch.int8, MATRIX)), ("I8", MATRIX)),
    "a tensor more": (edited(added("h.0.attn.lora_A.weight", torch.zeros(32, 4))), ("h.0.attn.lora_A.weight",)),
    "another shape": (edited(added("wpe.weight", torch.zeros(32, 32))), ("wpe.weight", "(32, 32)", "(64, 32)")),
    "a tensor less": (edited(without(MATRIX)), (MATRIX, "lack")),
    "a layer less": (configured(n_layer=1), ("h.1.", "layers")),
    "heads that do not divide": (configured(n_head=3), ("n_head 3", "n_embd 32")),
    "fewer positions": (configured(n_positions=32), ("wpe.weight", "(64, 32)", "(32, 32)")),
}


def of_model(task="digits"):
    of_model = PLAIN.replace("tiny-lm", '"hub:model"').replace("task: digits", f"task: {task}")
    return of_model.replace("frozen-pretrained", "unfrozen-pretrained")


def planned(text):
    return lambda: workspace(Path.cwd(), text)


def spoilt(spoil):
    def arrange():
        save_model(Path("model"), "gpt2", **GPT2)
        spoil(Path("model"))
        workspace(Path.cwd(), of_model())

    return arrange


# id -> what makes the place, the command, what its refusal names
CASES = {f"advise: {name}": case for name, case in ADVISE.items()}
CASES |= {f"models: {name}": (list, f"models {words}", named) for name, (words, named) in MODELS.items()}
CASES |= {name: (planned(text), "run mine", (FILE, *named)) for name, (text, named) in STUDIES.items()}
CASES["a batch above the split"] = planned(field("batch_size: 5000")), "run mine", ("batch_size", "5000")
CASES["data are gone"] = planned(GONE), "status mine", ("mine.npz", FILE)
CASES |= {
    f"weights: {name}": (spoilt(spoil), "run mine", ("model", *named)) for name, (spoil, named) in WEIGHTS.items()
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty workspace as working directory."""
    for name in ("runs", "notebooks"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_by_name_and_nothing_is_written(case, here):
    arrange, command, named = CASES[case]
    arrange()
    before = set(here.rglob("*"))
    refused(*command.split(), named=named)
    assert set(here.rglob("*")) == before


def test_a_minute_for_a_model_that_needs_ten_for_a_step(here, monkeypatch):
    table()
    monkeypatch.setattr(work, "product_rate", lambda compute_type: 1e3)  # FLOP a second: of a very slow machine
    refused("advise", "data.csv", "--minutes", "1", named=("--minutes 1", "tiny-lm", "minutes"))
    assert not list((here / "runs").iterdir())


def test_a_dry_run_reaches_no_further_than_the_model(here, root):
    sizes = {"d_model": 32, "n_layers": 2, "n_heads": 2, "max_seq_len": 16, "vocab_size": 20}
    save_model(Path("model"), "mpt", **sizes)
    (here / "tests").mkdir()
    (here / "tests" / "data").symlink_to(root / "tests" / "data")
    workspace(here, of_model("digits-lra"))
    done = CliRunner().invoke(app, ["run", "mine", "--smoke"])
    assert done.exit_code != 0
    assert "max_seq_len 16" in " ".join(done.output.split())
