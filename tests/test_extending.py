"""One new task, backbone, arm, study and claim, each one entry in one place: what a page of the book promises."""

from importlib import import_module, resources
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Generator, Tensor

import fpt
from fpt.models import ARMS, BACKBONES, POLICIES, TRANSFORMER, Backbone
from fpt.sweeps.study import load_study
from fpt.tasks import TASKS, Entry
from fpt.tasks.arrays import Examples, Task

RECIPE = fpt.training.Recipe(steps=2, evaluations=1, evaluation_examples=50, compute_type="float32")


# A task: a function that gives a Task, and its entry.
def parity(data_dir: Path, variant: str, length: int) -> Task:
    def draw(count: int, generator: Generator) -> Examples:
        bits = torch.randint(0, 2, (count, length), generator=generator)
        return Examples(bits, bits.sum(1, keepdim=True) % 2)

    def encode(inputs: Tensor, generator: Generator | None = None) -> Tensor:
        return inputs

    return Task(
        draw, encode, tokens=length, vocabulary=2, classes=2, checksum=f"parity {length}",
        source="drawn at random", licence="none needed", scaling="none",
    )  # fmt: skip


PARITY = Entry(parity, "Parity of a bit string", options={"length": 6})

# A backbone: one row. Its family is a file of fpt/models/families.
NANO = Backbone("gpt2", {"n_embd": 16, "n_layer": 1, "n_head": 2}, layers=1, groups=TRANSFORMER, title="one layer")

STUDY = """
name: mine
defaults: {backbone: nano, steps: 2, learning_rates: [1e-3, 1e-2], selection_seeds: [0]}
sweeps:
  - {task: parity, task_options: {length: 4}, arm: [readout-random, unfrozen-random], feeds: [my-figure]}
"""

CLAIM = """
- id: MY-01
  paper: mine
  where: Table 1
  kind: result
  statement: One layer learns parity.
  reported: {parity: 100}
"""


@pytest.fixture(autouse=True)
def _extended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "parity", PARITY)
    monkeypatch.setitem(BACKBONES, "nano", NANO)
    monkeypatch.setitem(POLICIES, "readout", ("output", "positions"))
    monkeypatch.setitem(ARMS, "readout-random", ("random", "readout"))


def trained_groups(template: Any) -> set[str]:
    report = template.report()
    return set(report.index[report["trainable"] > 0])


def test_a_task() -> None:
    task = fpt.tasks.load("parity", length=4)
    assert (task.title, task.tokens, task.predictions) == ("Parity of a bit string", 4, 1)
    template = fpt.models.build(task, backbone="tiny-lm", init="random")
    runs = fpt.training.train_fleet(task, template, RECIPE, [1e-3], [0]).runs
    assert runs["test_accuracy"].between(0, 1).all()
    with pytest.raises(fpt.errors.SpecError, match="width"):
        fpt.tasks.load("parity", width=4)


def test_a_backbone() -> None:
    task = fpt.tasks.load("digits")
    template = fpt.models.build(task, backbone="nano", init="random", trainable="all")
    runs = fpt.training.train_fleet(task, template, RECIPE, [1e-3, 1e-2], [0, 1], test_examples=50).runs
    assert len(runs) == 4
    assert trained_groups(template) == set(TRANSFORMER)


def test_a_policy_and_an_arm() -> None:
    task = fpt.tasks.load("digits")
    assert trained_groups(fpt.models.build(task, backbone="nano", init="random", trainable="readout")) == {
        "output",
        "positions",
    }


def test_a_study_with_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    sweeps = load_study(tmp_path).sweeps
    assert [spec.arm for spec in sweeps] == ["readout-random", "unfrozen-random"]
    result = fpt.sweeps.run_sweep(sweeps[0])
    assert set(result.runs["learning_rate"]) == {1e-3, 1e-2}
    assert result.info["hash"] == sweeps[0].hash


def test_a_claim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shipped = resources.files("fpt.evidence").joinpath("claims.yaml").read_text(encoding="utf-8")
    (tmp_path / "claims.yaml").write_text(shipped + CLAIM, encoding="utf-8")
    module = import_module("fpt.evidence.claims")  # fpt.evidence.claims itself is the function of that name
    monkeypatch.setattr(module, "files", lambda package: tmp_path)
    module.claims.cache_clear()
    try:
        assert module.claim("MY-01")["reported"] == {"parity": 100}
        assert len(module.claims()) > 100
    finally:
        module.claims.cache_clear()
