"""What a bench predicts for a sweep, and which files are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from fpt.errors import DataError
from fpt.sweeps import speeds
from fpt.sweeps.spec import SweepSpec, resolve

SPEC: dict[str, Any] = {
    "task": "mnist", "backbone": "gpt2", "arm": "frozen-pretrained", "steps": 100, "evaluations": 5,
    "evaluation_examples": 1000, "learning_rates": [1e-4, 1e-3], "selection_seeds": [0, 1, 2],
    "confirmation_seeds": [10, 11], "reference_rates": [1e-3],
}  # fmt: skip


def spec(**changes: Any) -> SweepSpec:
    return resolve(SPEC | changes)


def row(**changes: Any) -> dict[str, Any]:
    """A row of 6 runs: half a second a run-step, 1 ms an example."""
    measured = {
        "arm": "frozen-random", "tokens": 64, "runs": 6, "steps": 10, "threads": 2, "inputs": "random",
        "held": [10_000, 10_000], "compute_type": "bfloat16", "seconds": 0.5, "reference_seconds": 2.0, "ratio": 4.0,
        "ratios": [3.5, 4.5], "utilisation": 0.3, "evaluation_seconds": 1e-3, "peak_gib": 1.5, "flop": 10**11,
        "trainable_parameters": 100_000,
    }  # fmt: skip
    return speeds.cost_of(spec(arm="frozen-random")) | measured | changes


def write(runs: Path, *rows: dict[str, Any], **changes: Any) -> Path:
    """A file of runs/bench."""
    ceiling = {"float32_flop_per_second": 1e11, "bfloat16_flop_per_second": 1e12, "bytes_per_second": 1e10}
    top = {"device": "a processor", "kind": "cpu", "threads": 2, "ceiling": ceiling, "rows": list(rows)}
    path = runs / "bench" / "cpu.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(top | changes))
    return path


def test_seconds_of_a_sweep_are_steps_and_evaluations_of_all_runs() -> None:
    runs = 2 * 3 + 2 * 2
    evaluations = runs * 5 * (1000 + 1000) + 2 * (6 * 1000 + 4 * 10_000)  # the confirmation tests on the whole test set
    assert speeds.predict(spec(), [row()]) == pytest.approx(runs * 100 * 0.5 + evaluations * 1e-3)
    whole = runs * 5 * (10_000 + 10_000) + 2 * runs * 10_000
    seconds = speeds.predict(spec(evaluation_examples=None), [row()])
    assert seconds == pytest.approx(runs * 100 * 0.5 + whole * 1e-3)


def test_the_fleet_nearest_in_size_decides() -> None:
    rows = [row(runs=1, seconds=9.0), row(runs=9, seconds=0.5), row(runs=27, seconds=9.0)]
    assert speeds.predict(spec(), rows) == speeds.predict(spec(), [row()])


@pytest.mark.parametrize(
    "change",
    [
        {"task": "cifar10"},
        {"variant": "released"},
        {"backbone": "distilgpt2"},
        {"backbone_options": {"layers": 6}},
        {"arm": "unfrozen-pretrained"},
        {"batch_size": 4},
        {"compute_type": "float32"},
    ],
)
def test_other_work_is_of_unknown_time(change: dict[str, Any]) -> None:
    assert speeds.predict(spec(**change), [row()]) is None
    assert speeds.predict(spec(**change), []) is None


def test_how_weights_were_drawn_costs_nothing_and_named_defaults_are_defaults() -> None:
    same = spec(arm="frozen-random", random_gain=2.0, backbone_options={"layers": 0}, compute_type="bfloat16")
    assert speeds.predict(same, [row()]) == speeds.predict(spec(), [row()])
    groups = row() | {"trainable": ["input", "output"]}
    assert speeds.predict(spec(arm="input+output-pretrained"), json.loads(json.dumps([groups]))) is not None


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert speeds.benches(tmp_path) == []
    write(tmp_path, row(), row(runs=3))
    (found,) = speeds.benches(tmp_path)
    assert found["rows"] == json.loads(json.dumps([row(), row(runs=3)]))
    assert set(row()) == set(speeds.ROW)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [row(ratio="4")]}, "ratio is missing or wrong"),
        ({"rows": [{}]}, "backbone is missing or wrong"),
        ({"rows": [3]}, "backbone is missing or wrong"),
        ({"rows": None}, "rows is missing or wrong"),
        ({"ceiling": 3}, "ceiling is missing or wrong"),
        ({"kind": "h200"}, "its device is 'h200'"),
    ],
)
def test_a_damaged_file_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    write(tmp_path, **change)
    with pytest.raises(DataError, match=rf"cpu\.json is not what fpt bench writes: {message}"):
        speeds.benches(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_file_that_is_no_json_object_is_named(text: str, tmp_path: Path) -> None:
    write(tmp_path).write_text(text)
    with pytest.raises(DataError, match=r"cpu\.json (cannot be read|is not what)"):
        speeds.benches(tmp_path)
