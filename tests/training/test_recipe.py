"""The recipe's limits, and the compute type that is measured once."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fpt.training import Recipe, precision


@pytest.mark.parametrize(
    "values",
    [
        {"steps": 0}, {"steps": 1.5}, {"steps": True}, {"batch_size": -1}, {"dropout": 1.0}, {"dropout": -0.1},
        {"clip": 0}, {"clip": float("inf")}, {"evaluations": 0}, {"evaluation_examples": 0},
        {"compute_type": "fp8"}, {"step": 3},
    ],
)  # fmt: skip
def test_values_that_are_not_allowed(values):
    with pytest.raises(ValidationError):
        Recipe(**values)


@given(steps=st.integers(1, 5000), evaluations=st.integers(1, 50))
def test_evaluations_are_evenly_spaced_and_end_at_the_end(steps, evaluations):
    at = Recipe(steps=steps, evaluations=evaluations).evaluation_steps()
    assert len(at) == len(set(at)) == min(steps, evaluations)
    assert at[-1] == steps
    assert at[0] >= 1
    gaps = [b - a for a, b in zip([0, *at], at, strict=False)]
    assert max(gaps) - min(gaps) <= 1


def test_auto_is_measured_once_and_remembered(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    calls = []
    monkeypatch.setattr(precision, "faster", lambda device: calls.append(device) or "bfloat16")
    cpu = torch.device("cpu")
    assert precision.resolve("auto", cpu) == precision.resolve("auto", cpu) == torch.bfloat16
    assert len(calls) == 1
    assert list(json.loads((tmp_path / ".cache/fpt/compute_type.json").read_text()).values()) == ["bfloat16"]
    (tmp_path / ".cache/fpt/compute_type.json").write_text('{"cut')
    assert precision.resolve("auto", cpu) == torch.bfloat16
    assert len(calls) == 2
    assert precision.resolve("float32", cpu) == torch.float32


def test_a_home_that_cannot_be_written_is_no_error(monkeypatch, tmp_path):
    (tmp_path / ".cache").write_text("a file where a folder should be")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(precision, "faster", lambda device: "float32")
    assert precision.resolve("auto", torch.device("cpu")) == torch.float32


def test_the_measurement_answers():
    assert precision.faster(torch.device("cpu"), size=64, rows=64) in ("float32", "bfloat16")
