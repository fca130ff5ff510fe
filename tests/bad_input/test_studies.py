"""Studies in which something has no effect, or compares what cannot be compared: refused before anything is trained,
naming the file and the field. Fields and documents that are wrong by themselves: tests/sweeps/test_study.py."""

from pathlib import Path

import pytest
from refusal import refused
from small_studies import OF_A_PAPER, PLAIN, workspace

FILE = "runs/mine/study.yaml"
SWEEPS = PLAIN.partition("sweeps:")[0] + "sweeps:\n"
PAPER = f"{OF_A_PAPER}defaults: {{steps: 400, compute_type: float32, learning_rates: [1e-3, 1e-2], seeds: [0, 1]}}\n"
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
    "a cell without a paper": (PLAIN + "cells: {FP/mnist: {seeds: [5]}}", ("cells", "paper")),
    "a replace after one that leaves all out": (
        LESS.replace("defaults", "  - {where: {row: UR, task: mnist}, with: {steps: 3}}\ndefaults"),
        ("replace 5", "UR"),
    ),
    "a replace of what is replaced already": (
        LESS.replace("defaults", "  - {where: {backbone: gpt2, task: digits}, with: null}\ndefaults"),
        ("replace 5", "gpt2"),
    ),
    "a replace without a paper that fits no row": (
        PLAIN + "replace: [{where: {backbone: gpt2, width: 96}, with: null}]",
        ("replace 1", "width"),
    ),
    # budgets
    "unequal budgets by cells": (PAPER + "cells: {FP/mnist: {steps: 800}}", ("steps", "400", "800", "table-1")),
    "unequal budgets by sweeps": (
        SWEEPS + "  - {task: digits, arm: frozen-pretrained}\n  - {task: digits, arm: frozen-random, steps: 6}\n",
        ("steps", "after 3", "after 6"),
    ),
    # YAML 1.1
    "a number with a leading zero": (field("steps: 010"), ("line 4", "010", "eight")),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_study_is_refused_before_anything_is_trained(
    bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, named = BAD[bad]
    workspace(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    refused("run", "mine", named=(FILE, *named))


def test_a_batch_above_the_split_is_refused_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace(tmp_path, field("batch_size: 5000"))
    monkeypatch.chdir(tmp_path)
    refused("run", "mine", named=("batch_size", "5000"))
