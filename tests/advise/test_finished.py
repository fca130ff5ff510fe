"""What a finished study says, the page, and the winner that other libraries load."""

import json
import math
import re
from pathlib import Path
from typing import Any

import own_tokenizer
import pytest
import synthetic
import torch
from bs4 import BeautifulSoup
from safetensors.torch import load_file
from torch.func import functional_call
from transformers import AutoTokenizer

import fpt
from fpt.advise.keep import keep_winner
from fpt.advise.report import arms_frame, finished
from fpt.advise.request import Request, prepared, request
from fpt.advise.verdict import advice, cells_of
from fpt.advise.words import warnings
from fpt.advise.work import BASELINES, BY_SEED, write_study
from fpt.errors import DataError
from fpt.files import write_json
from fpt.sweeps import SweepSpec, ledger, load_study

from .conftest import carried_out, request_of, table, train

CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
peft_warns = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft's own call


def test_a_table_on_which_a_linear_classifier_is_best_is_told_so(wanted: Request) -> None:
    found = finished(wanted)
    assert (found.reason, found.advised) == ("baseline", "linear classifier")
    assert not found.beats_linear
    page = BeautifulSoup((wanted.study / "report.html").read_text(), "html.parser")
    assert "240 rows, 2 classes (0, 1) of column label" in page.get_text()
    assert "linear classifier" in page.select_one("b").get_text()
    assert len(page.select("figure")) >= 4
    assert not page.select("script[src], link[href]")  # it needs no other file
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["arms"][0]["arm"] in wanted.arms
    assert ledger.stale_folders(load_study(wanted.study)) == []  # the winner's folder is none
    flop = [arm.flop for arm in found.arms]
    assert flop == sorted(flop)
    assert found.arms[-1].arm == "unfrozen-pretrained"
    assert {arm.seeds for arm in found.arms} == {4}
    assert len(found.pairs) == 3


@pytest.mark.slow  # of made-up results: test_verdict.py
def test_on_labels_of_pure_noise_nothing_can_be_told(place: Path) -> None:
    found = finished(train(place, "noise", arms="frozen,full"))
    assert (found.reason, found.advised) == ("nothing", "")


WILD = 1e30  # a rate at which every run diverges


def with_rates(place: Path, rates: dict[str, float]) -> Request:
    """A finished study in which each arm has one rate; its results are made up."""
    table(place / "mine.csv")
    wanted = request_of(place, arms=",".join(rates))
    specs = [
        wanted.spec(arm, [rate], range(3), 4, "float32") for arm, rate in zip(wanted.arms, rates.values(), strict=True)
    ]
    write_study(wanted, wanted.study, specs, [], {})
    scores = {"majority class": [0.1] * 3, "linear classifier": [0.2] * 3}
    write_json(wanted.study / BASELINES, {BY_SEED: scores})
    for spec in specs:
        accuracy = math.nan if spec.learning_rates == (WILD,) else 0.9
        synthetic.write(spec, wanted.study / spec.folder_name, lambda _, rate, seed, value=accuracy: value + seed / 100)
    return wanted


def test_an_arm_whose_every_rate_diverged_is_shown_and_never_advised(place: Path) -> None:
    wanted = with_rates(place, {"frozen": WILD, "full": 1e-3})
    found = advice(wanted, cells_of(wanted))
    assert found.advised == "unfrozen-pretrained"
    assert found.pairs == ()
    assert any("3 runs diverged" in line for line in warnings(found))
    shown = arms_frame(found)
    assert "nan" not in shown.to_csv()
    assert len(shown) == 2


def test_an_arm_that_lost_a_seed_at_every_rate_is_compared_with_none(place: Path) -> None:
    """Its runs of the seed that was lost have a rate, chosen on the other seeds, and so a value."""
    table(place / "mine.csv")
    wanted = request_of(place)
    specs = [wanted.spec(arm, [1e-3, 1e-2], range(4), 4, "float32") for arm in wanted.arms]
    write_study(wanted, wanted.study, specs, [], {})
    write_json(wanted.study / BASELINES, {BY_SEED: {"majority class": [0.1] * 4, "linear classifier": [0.2] * 4}})

    def accuracy(spec: SweepSpec, rate: float, seed: int) -> float:
        return math.nan if spec.arm == "lora-pretrained" and seed == 0 else 0.9 + rate + seed / 100

    for spec in specs:
        synthetic.write(spec, wanted.study / spec.folder_name, accuracy)
    found = advice(wanted, cells_of(wanted))
    assert [(pair.first, pair.second) for pair in found.pairs] == [("frozen-pretrained", "unfrozen-pretrained")]
    (lost,) = [arm for arm in found.arms if arm.rate is None]
    assert lost.seeds == 1
    assert math.isnan(lost.accuracy)  # that of one seed says nothing of the arm
    assert math.isfinite(found.lost)
    assert "nan" not in arms_frame(found).to_csv()


def test_where_every_rate_of_every_arm_diverged_it_says_so(place: Path) -> None:
    with pytest.raises(DataError, match="every rate of every arm diverged"):
        finished(with_rates(place, {"frozen": WILD, "full": WILD}))


def logits_of(wanted: Request, arm: str) -> tuple[Any, torch.Tensor]:
    """By our own model, with the weights that the sweep kept: the task, and logits of the test examples of seed 0."""
    sweep = cells_of(wanted)[arm]
    task = fpt.models.load_task(wanted.task, wanted.backbone, **wanted.options)
    template = fpt.models.build(task, wanted.backbone, "pretrained", "all")
    weights = load_file(wanted.study / sweep.spec.folder_name / ledger.KEPT_WEIGHTS)
    examples = task.split(0).test
    with torch.no_grad():
        found = functional_call(template.module, weights, (task.encode(examples.inputs), examples.lengths))
    return sweep, found[:, 0]


def check_winner(wanted: Request, arm: str) -> None:
    """The lines in the README.md of the winner give the logits of our own model."""
    sweep, expected = logits_of(wanted, arm)
    _, templates = prepared(wanted, "float32")
    folder = keep_winner(sweep, templates[arm], wanted.study)
    (code,) = CODE.findall((folder / "README.md").read_text())
    space: dict[str, Any] = {}
    exec(code, space)
    torch.testing.assert_close(space["logits"], expected, rtol=1e-4, atol=1e-4)
    assert (folder / "adapter_config.json").is_file() == (arm == "lora-pretrained")


@peft_warns
@pytest.mark.parametrize("arm", ["unfrozen-pretrained", "lora-pretrained"])
def test_the_lines_in_its_readme_load_the_winner_and_predict_the_same(arm: str, wanted: Request) -> None:
    check_winner(wanted, arm)


@peft_warns
@pytest.mark.parametrize("backbone", [pytest.param("small-bert", marks=pytest.mark.slow), "small-library"])
def test_and_so_they_do_of_other_families(backbone: str, place: Path, small_backbones: dict[str, Any]) -> None:
    wanted = train(place, arms="lora,full", backbone=backbone, seeds=3, steps=4)
    for arm in wanted.arms:
        check_winner(wanted, arm)


def test_and_so_they_do_where_adapters_are_not_all_that_differs(place: Path) -> None:
    wanted = train(place, arms="fpt-lora-pretrained,lora-random", seeds=3, steps=4)
    for arm in wanted.arms:
        check_winner(wanted, arm)


@peft_warns
def test_and_so_they_do_where_its_own_tokenizer_reads_texts(place: Path) -> None:
    texts, model = Path("texts.csv"), Path("model")
    own_tokenizer.texts().to_csv(texts, index=False)
    own_tokenizer.save(model)
    wanted = request(str(texts), f"hub:{model}", "lora,full", root=place, options={"tokens": 12})
    carried_out(wanted, steps=4, seeds=3)
    for arm in wanted.arms:
        check_winner(wanted, arm)
        assert len(AutoTokenizer.from_pretrained(wanted.study / "winner")) == own_tokenizer.TOKENS
    assert finished(wanted).baselines["linear classifier"] == 100  # the first word says the class


def test_a_study_without_results_is_refused(place: Path) -> None:
    table(place / "mine.csv")
    wanted = request_of(place)
    specs = [wanted.spec(arm, [1e-3], [0], 4, "float32") for arm in wanted.arms]
    write_study(wanted, wanted.study, specs, [], {})
    with pytest.raises(DataError, match="results of 0 arms"):
        finished(wanted)
