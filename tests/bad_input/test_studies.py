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
    # budgets
    "unequal budgets by cells": (PAPER + "cells: {FP/mnist: {steps: 800}}", ("steps", "400", "800", "table-1")),
    "unequal budgets by sweeps": (
        SWEEPS + "  - {task: digits, arm: frozen-pretrained}\n  - {task: digits, arm: frozen-random, steps: 6}\n",
        ("steps", "after 3", "after 6"),
    ),
    # the document
    "a number with a leading zero": (field("steps: 010"), ("line 6", "010", "eight")),
    "an empty file": ("", ("empty",)),
    "a repeated key": (STUDY + "defaults: {steps: 4}\n", ("defaults",)),
    "an unknown field of a sweep": (field("learning_rate: 1e-3"), ("learning_rate", "sweep 1")),
    "a list of arms in a replace": (
        PAPER.replace("with: {backbone: tiny-lm}", "with: {backbone: [tiny-lm, gpt2]}"),
        ("backbone", "replace 1"),
    ),
    # fields of a sweep
    "text for a number": (field("steps: many"), ("steps", "many")),
    "an arm and its parts": (field("init: random"), ("arm", "init")),
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
