"""What a sweep costs and how that is known, and which files are refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import committed
import pytest

from fpt.bench import cost
from fpt.bench.cost import Cost, Row, Workload, costs, forecast
from fpt.errors import DataError
from fpt.sweeps.ledger import SweepState
from fpt.sweeps.spec import SweepSpec, resolve

ROOT = Path(__file__).parents[2]
SPEC: dict[str, Any] = {
    "task": "mnist", "backbone": "gpt2", "arm": "frozen-pretrained", "steps": 100, "evaluations": 5,
    "evaluation_examples": 1000, "budget_examples": 500, "learning_rates": [1e-4, 1e-3], "seeds": [0, 1, 2, 3],
}  # fmt: skip
CEILING = {"float32_flop_per_second": 1e11, "bfloat16_flop_per_second": 1e12}


def spec(**changes: Any) -> SweepSpec:
    return resolve(SPEC | changes)


def fields(**changes: Any) -> dict[str, Any]:
    """A row of 6 runs, as the file holds it: half a second a run-step, 1 ms an example."""
    measured = {
        "arm": "frozen-random", "tokens": 64, "runs": 6, "held": [10_000, 10_000], "compute_type": "bfloat16",
        "seconds": 0.5, "reference_seconds": 2.0, "ratios": [3.5, 4.5], "evaluation_seconds": 1e-3, "peak_gib": 1.5,
        "flop": 10**11,
    }  # fmt: skip
    return Workload.of(spec(arm="frozen-random")).model_dump() | measured | changes


def row(**changes: Any) -> Row:
    return Row.model_validate_json(json.dumps(fields(**changes)))


def write(runs: Path, *rows: Any, **changes: Any) -> Path:
    """A file of runs/bench."""
    top = {"device": "a processor", "kind": "cpu", "threads": 2, "ceiling": CEILING, "rows": list(rows)}
    path = runs / "bench" / "cpu.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(top | changes))
    return path


def test_seconds_of_a_sweep_are_steps_and_evaluations_of_all_runs() -> None:
    budgets, stops = [3, 6, 12, 25, 50, 100], [1, 3, 6, 10, 12, 25, 32, 50, 100]
    assert (spec().budgets(), spec().evaluation_steps()) == (budgets, stops)
    tested = 5 * 500 + 10_000  # and 500 training examples each time; at the end both again, with the last parameters
    evaluations = 9 * 1000 + tested + 10_000 + 7 * 500
    assert predict(spec(), [row()]) == pytest.approx(8 * (100 * 0.5 + evaluations * 1e-3))
    whole = 9 * 10_000 + 2 * 6 * 10_000 + 2 * 10_000
    seconds = predict(spec(evaluation_examples=None, budget_examples=20_000), [row()])
    assert seconds == pytest.approx(8 * (100 * 0.5 + whole * 1e-3))
    at_the_end = 5 * 1000 + 2 * 2000 + 2 * 500  # with a warm-up there is one budget
    seconds = predict(spec(warmup=0.1, test_examples=2000), [row()])
    assert seconds == pytest.approx(8 * (100 * 0.5 + at_the_end * 1e-3))


def test_the_fleet_nearest_in_size_decides() -> None:
    rows = [row(runs=1, seconds=9.0), row(runs=9, seconds=0.5), row(runs=27, seconds=9.0)]
    assert predict(spec(), rows) == predict(spec(), [row()])


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
    assert predict(spec(**change), [row()]) is None
    assert predict(spec(**change), []) is None


def test_how_weights_were_drawn_costs_nothing_and_named_defaults_are_defaults() -> None:
    same = spec(arm="frozen-random", random_gain=2.0, backbone_options={"layers": 0}, compute_type="bfloat16")
    assert predict(same, [row()]) == predict(spec(), [row()])
    groups = row(trainable=["input", "output"])
    assert predict(spec(arm="input+output-pretrained"), [groups]) is not None


def predict(of: SweepSpec, rows: list[Row]) -> float | None:
    found = forecast(of, rows)
    return found.seconds if found and found.source == "predicted" else None


# --- the best source


def state(of: SweepSpec, **results: Any) -> SweepState:
    return SweepState(**{"spec": of, "folder": Path(), "state": "waiting"} | dict.fromkeys(RESULTS) | results)


RESULTS = ("result", "progress", "published")
OWN = {"wall_seconds": 90, "device": "mine"}
OTHER = {"wall_seconds": 60, "device": "another"}


def test_what_was_measured_comes_before_every_forecast() -> None:
    figures = {"a processor": [row()]}
    assert costs(state(spec(), result=OWN, published=OTHER), figures) == [Cost(90, "measured")]
    assert costs(state(spec(), published=OTHER), figures) == [Cost(60, "measured", "another")]


def test_a_device_that_was_measured_comes_before_an_estimate_for_another() -> None:
    figures = {"one": [row()], "two": [row(task="cifar10")], "three": []}
    assert costs(state(spec()), figures) == [Cost(predict(spec(), [row()]) or 0, "predicted", "one")]
    (one, two) = costs(state(spec(task="cifar10-lra")), figures)
    assert (one.source, one.device, two.source, two.device) == ("estimated", "one", "estimated", "two")
    assert min(one.seconds, two.seconds) > 0


def test_nothing_is_known_where_nothing_was_measured() -> None:
    assert costs(state(spec()), {}) == costs(state(spec()), {"a processor": []}) == []


def test_a_known_cost_needs_no_torch() -> None:
    program = (
        "import sys, fpt.bench.cost as cost; from fpt.sweeps.study import load_study; from pathlib import Path\n"
        "bench, *_ = cost.benches(Path('runs'))\n"
        "sweeps = [each.changed(compute_type='auto') for each in load_study(Path('runs/laptop')).sweeps]\n"
        "found = [cost.forecast(spec, bench.rows) for spec in sweeps]\n"
        "sys.exit('torch' in sys.modules or not any(found))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


# --- files


def test_the_committed_file_is_read() -> None:
    (bench,) = map(cost.read, committed.benches())
    assert {row.backbone for row in bench.rows} >= {"tiny-lm", "gpt2", "minilm", "lstm"}
    assert len({row.cell for row in bench.rows}) == len(bench.rows)
    for row in bench.rows:
        assert 0 < bench.utilisation(row) < 1
        if row.ratio:
            assert min(row.ratios) - 0.01 <= row.ratio <= max(row.ratios) + 0.01


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert cost.benches(tmp_path) == []
    write(tmp_path, fields(), fields(runs=3, reference_seconds=None, ratios=[]))
    (found,) = cost.benches(tmp_path)
    assert found.rows == [row(), row(runs=3, reference_seconds=None, ratios=[])]
    assert (found.rows[0].ratio, found.rows[1].ratio) == (4.0, None)
    write(tmp_path, **found.model_dump(mode="json", exclude={"kind"}))
    assert cost.benches(tmp_path) == [found]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [fields(seconds="4")]}, r"rows\.0\.seconds: Input should be a valid number"),
        ({"rows": [fields(), {}]}, r"rows\.1\.task: Field required"),
        ({"rows": [3]}, r"rows\.0: Input should be an object"),
        ({"rows": None}, "rows: Input should be a valid array"),
        ({"ceiling": 3}, "ceiling: Input should be an object"),
        ({"ceiling": {}}, r"ceiling\.float32_flop_per_second: Field required"),
    ],
)
def test_a_damaged_file_is_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    write(tmp_path, **change)
    with pytest.raises(DataError, match=rf"cpu\.json is not what fpt bench writes: {message}"):
        cost.benches(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_file_that_is_no_json_object_is_named(text: str, tmp_path: Path) -> None:
    write(tmp_path).write_text(text)
    with pytest.raises(DataError, match=r"cpu\.json is not what"):
        cost.benches(tmp_path)
