"""Bad study files: each is refused before anything is trained, naming the file and the field."""

from pathlib import Path

import pytest
from refusal import STUDY, refused, workspace

FILE = "runs/mine/study.yaml"
SWEEPS = STUDY.partition("sweeps:")[0] + "sweeps:\n"
PAPER = """
paper: rothermel2021
tables: [rothermel-table-1]
replace:
  - {where: {backbone: gpt2}, with: {backbone: tiny-lm}}
  - {where: {task: mnist}, with: {task: digits}}
  - {where: {task: [listops, cifar10, cifar10-lra]}, with: null}
defaults: {steps: 400, compute_type: float32, learning_rates: [1e-3, 1e-2], seeds: [0, 1]}
"""
LESS = PAPER.replace("defaults", "  - {where: {row: UR}, with: null}\ndefaults")


def field(text: str) -> str:
    """The plain study with another field in its only sweep."""
    return f"{SWEEPS}  - {{task: digits, arm: frozen-pretrained, {text}}}\n"


BAD = {
    # without effect
    "a cell that replace leaves out": (LESS + "cells: {UR/mnist: {seeds: [5]}}", ("cells", "UR/mnist", "replace 4")),
    "a cell of no chosen table": (
        PAPER + 'cells: {"FP, DistilGPT2/mnist": {seeds: [5]}}',
        ("cells", "FP, DistilGPT2/mnist", "no table"),
    ),
    "a cell without a paper": (STUDY + "cells: {FP/mnist: {seeds: [5]}}", ("cells", "paper")),
    "a cell of an unknown row": (PAPER + "cells: {FX/mnist: {seeds: [5]}}", ("cells", "FX")),
    "a replace after one that leaves all out": (
        LESS.replace("defaults", "  - {where: {row: UR, task: mnist}, with: {steps: 3}}\ndefaults"),
        ("replace 5", "UR"),
    ),
    "a replace of what is replaced already": (
        LESS.replace("defaults", "  - {where: {backbone: gpt2, task: digits}, with: null}\ndefaults"),
        ("replace 5", "gpt2"),
    ),
    "a replace without a paper that fits no row": (
        STUDY + "replace: [{where: {backbone: gpt2, width: 96}, with: null}]",
        ("replace 1", "width"),
    ),
    "a task that no sweep has": (STUDY + "tasks: {mnist: {steps: 5}}", ("tasks", "mnist")),
    "a table without a paper": (STUDY + "tables: [rothermel-table-1]", ("tables", "paper")),
    # budgets
    "unequal budgets by cells": (PAPER + "cells: {FP/mnist: {steps: 800}}", ("steps", "400", "800", "table-1")),
    "unequal budgets by cells, none shared": (PAPER + "cells: {FP/mnist: {steps: 700}}", ("steps", "400", "700")),
    "unequal budgets by sweeps": (
        SWEEPS + "  - {task: digits, arm: frozen-pretrained}\n  - {task: digits, arm: frozen-random, steps: 6}\n",
        ("steps", "after 3", "after 6"),
    ),
    # the document
    "an empty file": ("", ("empty",)),
    "a list": ("- task: digits\n", ("must be a mapping",)),
    "a tab": ("defaults:\n\tsteps: 3\n", ("line 2",)),
    "a repeated key": (STUDY + "defaults: {steps: 4}\n", ("defaults",)),
    "a repeated field": (field("steps: 3, steps: 4"), ("steps",)),
    "an unknown field of the study": (STUDY + "sweep: []\n", ("sweep", "line")),
    "an unknown field of a sweep": (field("learning_rate: 1e-3"), ("learning_rate", "sweep 1")),
    "no sweeps": ("defaults: {steps: 3}\n", ("sweeps",)),
    "sweeps that are no list": ("sweeps: {task: digits}\n", ("sweeps", "list")),
    "a list of arms in a replace": (
        PAPER.replace("with: {backbone: tiny-lm}", "with: {backbone: [tiny-lm, gpt2]}"),
        ("backbone", "replace 1"),
    ),
    # fields of a sweep
    "text for a number": (field("steps: many"), ("steps", "many")),
    "a fraction of a step": (field("steps: 2.5"), ("steps", "2.5")),
    "true for a number": (field("steps: true"), ("steps",)),
    "no steps": (field("steps: 0"), ("steps", "0")),
    "a rate of the head where nothing else trains": (
        field("head_rate: 1e-3").replace("frozen-pretrained", "output-pretrained"),
        ("head_rate", "0.001", "sweep 1"),
    ),
    "an unknown schedule": (field("schedule: linear"), ("schedule", "linear", "cosine")),
    "a negative weight decay": (field("weight_decay: -0.1"), ("weight_decay", "-0.1")),
    "a negative rate": (field("learning_rates: [-1e-3]"), ("learning_rates", "-0.001")),
    "a rate that is no number": (field("learning_rates: [.nan]"), ("learning_rates",)),
    "no rates": (field("learning_rates: []"), ("learning_rates",)),
    "one rate without a list": (field("learning_rates: 1e-3"), ("learning_rates",)),
    "a repeated seed": (field("seeds: [1, 1]"), ("seeds", "1 given more than once")),
    "a negative seed": (field("seeds: [-1]"), ("seeds",)),
    "a number for a name": (f"{SWEEPS}  - {{task: 5, arm: frozen-pretrained}}\n", ("task", "5")),
    "an unknown arm": (f"{SWEEPS}  - {{task: digits, arm: frozen}}\n", ("arm", "frozen")),
    "an arm and its parts": (field("init: random"), ("arm", "init")),
    "a share of the data above 1": (field("data_fraction: 2"), ("data_fraction", "2")),
    "two number types": (field("compute_type: [auto]"), ("compute_type",)),
    "weights that nobody keeps": (field("pretrained_by: elsewhere"), ("keep_as", "elsewhere")),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_study_is_refused_by_every_command(bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, named = BAD[bad]
    workspace(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    for command in ("plan", "run", "status"):
        refused(command, "mine", named=(FILE, *named))


def test_a_batch_above_the_split_is_refused_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace(tmp_path, field("batch_size: 5000"))
    monkeypatch.chdir(tmp_path)
    refused("run", "mine", named=("batch_size", "5000"))


@pytest.mark.parametrize("name", ["a/b", "../mine", "/mine", ".mine", "mine/", ""])
def test_a_name_is_that_of_a_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    refused("run", name, named=("study", "runs"))
