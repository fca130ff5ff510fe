"""What a finished study says, the page, and the winner that other libraries load."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import own_tokenizer
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from transformers import AutoTokenizer

import fpt
from fpt.advise import words
from fpt.advise.keep import keep_baseline, keep_winner
from fpt.advise.metrics import accuracy
from fpt.advise.report import arms_frame, finished
from fpt.advise.request import PROBE, Request, request, task_and_model
from fpt.advise.studies import finished_arms, read_baselines
from fpt.advise.studies import test_answers as answers_of
from fpt.advise.verdict import advice
from fpt.sweeps import ledger, load_study

from .conftest import STEPS, carried_out, request_of, table

CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
peft_warns = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft's own call


def test_a_table_on_which_a_linear_classifier_is_best_is_told_so(wanted: Request) -> None:
    found = finished(wanted)
    assert found.advised == "linear classifier"
    page = BeautifulSoup((wanted.study / "advice.html").read_text(), "html.parser")
    assert "240 rows, 2 classes (0: 120, 1: 120) of column label" in page.get_text()
    assert "linear classifier" in page.select_one("b").get_text()
    assert page.select("figure")
    assert not page.select("script[src], link[href]")  # it needs no other file
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["candidates"][0]["name"] == "linear classifier"
    assert ledger.stale_folders(load_study(wanted.study)) == []  # the winner's folder is none
    names = [each.name for each in found.candidates]
    assert names == ["linear classifier", "boosted trees", PROBE, "lora-pretrained", "unfrozen-pretrained"]
    assert {each.seeds for each in found.candidates} == {3}
    assert len(found.pairs) == 10
    assert "nan" not in arms_frame(found).to_csv()


def told(place: Path, frame: pd.DataFrame, **how: Any) -> Any:
    """What is said of a table after the probe alone, in no minutes."""
    frame.to_csv(place / "mine.csv", index=False)
    wanted = request_of(place, minutes=1e-4, **{"options": {}, "seeds": 5} | how)
    carried_out(wanted)
    return advice(wanted)


def test_on_labels_of_pure_noise_nothing_can_be_told(place: Path) -> None:
    table(place / "noise.csv", "noise")
    found = told(place, pd.read_csv(place / "noise.csv"))
    assert (found.reason, found.advised) == ("nothing", "")


def test_uneven_classes_are_told_and_accuracy_is_not_all(place: Path) -> None:
    """Of 95 to 5 naming the commonest class has 95%: what finds rare ones is seen in the other metrics."""
    x = np.random.default_rng(0).normal(size=(400, 2))
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(label=(x[:, 0] > np.quantile(x[:, 0], 0.95)).astype(int))
    found = told(place, frame, metric="macro-f1")
    assert found.majority == pytest.approx(48.7, abs=1)  # of macro F1
    assert found.uneven
    assert found.commonest == pytest.approx(95, abs=1)
    assert found.score(found.advised) > 70
    by_accuracy = told(place, frame, name="other")
    assert any("95%" in line for line in words.warnings(by_accuracy))


def test_forty_rows_leave_most_open_and_say_what_would_tell(place: Path) -> None:
    table(place / "few.csv", rows=40)
    found = told(place, pd.read_csv(place / "few.csv"))
    reach = [high - low for _, low, high in (each.scores["accuracy"] for each in found.candidates)]
    assert max(reach) > 10
    assert found.reason in ("nothing", "open", "open, more data", "best and cheapest", "clear")


def test_two_hundred_classes_have_a_probe(place: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(1200) % 200
    frame = pd.DataFrame(rng.normal(size=(200, 4))[labels] + rng.normal(size=(1200, 4)) / 50, columns=list("abcd"))
    found = told(place, frame.assign(label=[f"c{label}" for label in labels]), seeds=3)
    assert "200 classes" in fpt.tasks.load("csv:mine.csv").read
    assert found.score(PROBE) > 10
    assert found.majority < 2


def predicted(folder: Path) -> np.ndarray[Any, Any]:
    """What the lines in the README.md of a winner give for the test examples of seed 0."""
    (code,) = CODE.findall((folder / "README.md").read_text())
    space: dict[str, Any] = {}
    exec(code, space)
    return np.asarray(space["predicted"])


def check_winner(wanted: Request, arm: str) -> Path:
    """The lines reach the accuracy that is reported of seed 0, answer by answer but for rounding."""
    sweep = finished_arms(wanted.study)[arm]
    task, template = task_and_model(sweep.spec)
    folder = keep_winner(sweep, template, wanted.study)
    answers = answers_of(sweep)
    reported = answers[answers["seed"] == 0]
    split = task.split(0)
    assert len(reported) == len(split.test)  # all examples, so in the same order
    found, target = predicted(folder), reported["target"].to_numpy()
    assert (target == split.test.targets[:, 0].numpy()).all()
    assert accuracy(target, found) == pytest.approx(accuracy(target, reported["predicted"].to_numpy()), abs=0.03)
    assert (found == reported["predicted"]).mean() > 0.95
    assert (folder / "adapter_config.json").is_file() == (arm == "lora-pretrained")
    return folder


@peft_warns
@pytest.mark.parametrize("arm", [PROBE, "unfrozen-pretrained", "lora-pretrained"])
def test_the_lines_in_its_readme_load_the_winner_and_predict_the_same(arm: str, wanted: Request) -> None:
    folder = check_winner(wanted, arm)
    assert (folder / "model.safetensors").is_file() == (arm == "unfrozen-pretrained")


@pytest.mark.parametrize("name", ["linear classifier", "boosted trees"])
def test_and_so_they_do_of_a_baseline(name: str, wanted: Request) -> None:
    task, _ = task_and_model(finished_arms(wanted.study)[PROBE].spec)
    found = predicted(keep_baseline(name, task, wanted))
    answers = read_baselines(wanted.study).query("seed == 0 and baseline == @name")
    assert (found == answers["predicted"]).all()


@peft_warns
@pytest.mark.parametrize("backbone", [pytest.param("small-bert", marks=pytest.mark.slow), "small-library"])
def test_and_so_they_do_of_other_families(backbone: str, place: Path, small_backbones: dict[str, Any]) -> None:
    table(place / "mine.csv")
    wanted = request_of(place, backbone=backbone)
    carried_out(wanted)
    for arm in (PROBE, *wanted.arms):
        check_winner(wanted, arm)


@peft_warns
@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_and_so_they_do_where_its_own_tokenizer_reads_texts(pooling: str, place: Path) -> None:
    texts, model = Path("texts.csv"), Path("model")
    own_tokenizer.texts().to_csv(texts, index=False)
    own_tokenizer.save(model)
    options = {"tokens": 12, "pooling": pooling}
    wanted = request(str(texts), f"hub:{model}", None, root=place, options=options, steps=STEPS, seeds=3)
    assert wanted.arms == ("lora-pretrained", "whole-pretrained")
    carried_out(wanted)
    for arm in (PROBE, *wanted.arms):
        folder = check_winner(wanted, arm)
        assert len(AutoTokenizer.from_pretrained(folder)) == own_tokenizer.TOKENS
    assert finished(wanted).score("TF-IDF with a linear SVM") == 100  # the first word says the class
    assert {path.name for path in (wanted.study / "winner").iterdir()} == {"README.md"}
