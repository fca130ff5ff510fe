"""What a sweep costs and how that is known, and which files are refused."""

import json
import socket
from pathlib import Path
from typing import Any

import committed
import pytest
from made_rows import bench, fields, row, write

import fpt.models
import fpt.tasks
from fpt.bench import cost
from fpt.bench.cost import Bench, Cost, Measurement, costs, forecast
from fpt.errors import DataError
from fpt.models import weights
from fpt.sweeps.ledger import SweepState
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.tasks import TASKS, Entry

SPEC: dict[str, Any] = {
    "task": "mnist", "backbone": "gpt2", "arm": "frozen-random", "steps": 100, "evaluations": 5,
    "evaluation_examples": 1000, "budget_examples": 500, "learning_rates": [1e-4, 1e-3], "seeds": [0, 1, 2, 3],
}  # fmt: skip
MNIST: dict[str, Any] = {
    "held": [10_000, 10_000], "compute_type": "bfloat16", "seconds": 0.5, "evaluation_seconds": 1e-3
}  # fmt: skip


def spec(**changes: Any) -> SweepSpec:
    return resolve(SPEC | changes)


def measured(of: dict[str, Any] | None = None, **changes: Any) -> Measurement:
    """A row of a sweep that differs so from the plain one: half a second a run-step, 1 ms an example."""
    return row(spec(**of or {}), **MNIST | changes)


def seconds(of: dict[str, Any], *rows: Measurement) -> float:
    found = forecast(spec(**of), rows)
    return found.seconds


def test_seconds_of_a_sweep_are_steps_and_evaluations_of_all_runs() -> None:
    budgets, stops = [3, 6, 12, 25, 50, 100], [1, 3, 6, 10, 12, 25, 32, 50, 100]
    assert (spec().budgets(), spec().evaluation_steps()) == (budgets, stops)
    tested = 5 * 500 + 10_000  # and 500 training examples each time; at the end both again, with the last parameters
    evaluations = 9 * 1000 + tested + 10_000 + 7 * 500
    assert seconds({}, measured()) == pytest.approx(8 * (100 * 0.5 + evaluations * 1e-3))
    whole = 9 * 10_000 + 2 * 6 * 10_000 + 2 * 10_000
    every = {"evaluation_examples": None, "budget_examples": 20_000}
    assert seconds(every, measured()) == pytest.approx(8 * (100 * 0.5 + whole * 1e-3))
    at_the_end = 5 * 1000 + 2 * 2000 + 2 * 500  # with a warm-up there is one budget
    found = seconds({"warmup": 0.1, "test_examples": 2000}, measured())
    assert found == pytest.approx(8 * (100 * 0.5 + at_the_end * 1e-3))


@pytest.mark.parametrize(
    "change",
    [
        {"task": "cifar10"},
        {"variant": "released"},
        {"backbone": "distilgpt2"},
        {"backbone_options": {"layers": 6}},
        {"arm": "unfrozen-random"},
        {"batch_size": 4},
        {"compute_type": "float32"},
    ],
)
def test_other_work_is_not_predicted(change: dict[str, Any]) -> None:
    found = forecast(spec(**change), [measured()])
    assert found is None or found.source == "estimated"


def test_how_weights_were_drawn_costs_nothing_and_named_defaults_are_defaults() -> None:
    same = {"arm": "frozen-pretrained", "backbone_options": {"layers": 0}, "compute_type": "bfloat16"}
    plain = forecast(spec(), [measured()])
    assert plain == forecast(spec(**same), [measured()]) == forecast(spec(random_gain=2.0), [measured()])
    assert plain.source == "predicted"
    groups = forecast(spec(arm="input+output-pretrained"), [measured(trainable=["input", "output"])])
    assert groups.source == "predicted"


@pytest.mark.parametrize(
    ("of", "nearest", "others"),
    [
        ({}, measured(runs=9), [measured(runs=1), measured(runs=27)]),  # of 8 runs
        ({"backbone": "distilgpt2"}, measured(), [measured({"backbone": "tiny-lm"})]),  # by width
        ({"task": "cifar10"}, measured(), [measured({"task": "listops"}), measured({"task": "bit-xor"})]),  # by length
        # by family before width
        ({"backbone": "lstm-released"}, measured({"backbone": "lstm"}), [measured()]),
        ({"backbone": "distilgpt2"}, measured(), [measured({"backbone": "lstm"})]),
        # by number type before length
        ({"task": "cifar10"}, measured(), [measured({"task": "cifar10-lra"}, compute_type="float32")]),
        (
            {"task": "cifar10", "compute_type": "float32"},
            measured({"task": "cifar10-lra"}, compute_type="float32"),
            [measured()],
        ),
    ],
)
def test_the_nearest_row_of_the_same_kind_decides(
    of: dict[str, Any], nearest: Measurement, others: list[Measurement]
) -> None:
    others = [each.model_copy(update={"seconds": 99.0}) for each in (*others, measured({"arm": "unfrozen-random"}))]
    assert seconds(of, nearest, *others) == seconds(of, *others, nearest) == seconds(of, nearest)


@pytest.mark.parametrize(
    ("more", "less", "step", "example"),
    [  # how many times as long a step and an example take
        ({"backbone": "gpt2"}, {"backbone": "distilgpt2"}, 2, 2),
        ({"task": "bit-xor", "task_options": {"length": 50}}, {"task": "bit-xor"}, 10, 10),
        ({"task": "bit-memory", "task_options": {"strings": 11}}, {"task": "bit-memory"}, 2, 2),
        ({"task": "bit-memory", "task_options": {"patch": 25}}, {"task": "bit-memory"}, 2, 2),
        ({"task": "listops-short", "task_options": {"heldout": 500}}, {"task": "listops-short"}, 1, 1),
        ({"backbone": "lstm"}, {"backbone": "lstm", "backbone_options": {"layers": 1, "width": 384}}, 12, 12),
        ({"task": "cifar10", "batch_size": 16}, {"task": "cifar10"}, 2, 1),
    ],
)
def test_tokens_weights_and_examples_cost_in_proportion(
    more: dict[str, Any], less: dict[str, Any], step: float, example: float
) -> None:
    for times, change in ((step, {"evaluation_seconds": 0.0}), (example, {"seconds": 0.0})):
        rows = measured(**change), measured({"backbone": "lstm"}, **change)
        assert seconds(more, *rows) == pytest.approx(times * seconds(less, *rows))


def test_nothing_is_estimated_from_another_kind() -> None:
    matrices = measured({"arm": "unfrozen-random"})
    assert forecast(spec(arm="output-random"), [matrices]) is None
    assert seconds({"arm": "output-random"}, measured()) > 0  # with dropout every step goes through the backbone
    assert forecast(spec(), []) is None


def test_features_are_one_forward_pass_of_every_example_and_seed() -> None:
    once = {"arm": "output-random", "dropout": 0.0}  # 10,000 examples of MNIST validate
    assert seconds(once, measured()) == seconds({**once, "steps": 7}, measured()) == pytest.approx(4 * 70_000 * 1e-3)
    assert forecast(spec(**once), [measured(once)]) is None
    lists = seconds({**once, "task": "listops", "variant": "released"}, measured())
    assert lists == pytest.approx(4 * (96_000 + 20_000) * 1e-3 * 512 / 64)


def test_sample_sizes_are_those_of_the_task_where_a_row_has_it() -> None:
    of = {"task": "digits", "evaluation_examples": None, "budget_examples": None}
    small = measured({"task": "digits", "backbone": "tiny-lm"}, held=[300, 400])
    assert seconds(of, small, measured()) < seconds(of, measured()) / 4


# --- without data, weights or a network


def refuse(*_: Any, **__: Any) -> Any:
    raise OSError("there is no network")


def test_every_task_and_every_backbone_has_an_estimate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FPT_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(weights, "fetch", refuse)
    for backbone in fpt.models.BACKBONES:
        assert seconds({"backbone": backbone}, measured()) > 0
    for task in [name for name, entry in TASKS.items() if not entry.path]:
        own = TASKS[task].own_table
        backbone = "tiny-lm" if own else "gpt2"
        assert seconds({"task": task, "backbone": backbone, "arm": "frozen-pretrained"}, measured()) > 0


def test_a_task_whose_length_nobody_says_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "mine", Entry(refuse, "Mine"))
    assert forecast(spec(task="mine"), [measured()]) is None


@pytest.mark.parametrize("study", ["rothermel2021", "lu2021", "laptop-rothermel2021", "laptop-lu2021", "smollm2"])
def test_every_sweep_of_a_study_has_a_cost(study: str) -> None:
    rows = cost.read(committed.benches()[0]).rows
    assert all(forecast(each, rows) for each in committed.loaded(study).sweeps)


# --- the best source


def known(of: SweepSpec, figures: dict[str, list[Measurement]], **results: Any) -> list[Cost]:
    nothing = dict.fromkeys(("result", "progress", "published"))
    return costs(SweepState(**{"spec": of, "folder": Path(), "state": "waiting"} | nothing | results), figures)


def test_what_was_measured_comes_before_what_is_predicted_and_that_before_an_estimate() -> None:
    own, other = {"wall_seconds": 90, "device": "mine"}, {"wall_seconds": 60, "device": "another"}
    figures = {"one": [measured()], "two": [measured({"task": "cifar10"})], "three": []}
    assert known(spec(), figures, result=own, published=other) == [Cost(90, "measured")]
    assert known(spec(), figures, published=other) == [Cost(60, "measured", "another")]
    assert known(spec(), figures) == [Cost(seconds({}, measured()), "predicted", "one")]
    found = known(spec(task="cifar10-lra"), figures)
    assert [(each.source, each.device) for each in found] == [("estimated", "one"), ("estimated", "two")]
    assert known(spec(), {}) == known(spec(), {"three": []}) == []


# --- files


def test_every_committed_file_is_read() -> None:
    benches = {found.kind: found for found in map(cost.read, committed.benches())}
    assert {row.backbone for row in benches["cpu"].rows} >= {"tiny-lm", "gpt2", "minilm", "lstm"}
    for found in benches.values():
        assert len({row.key for row in found.rows}) == len(found.rows)
        for each in found.rows:
            assert 0 < found.utilisation(each) < 1
            if each.ratio:
                assert min(each.ratios) - 0.01 <= each.ratio <= max(each.ratios) + 0.01


def test_rows_are_kept_of_the_same_committed_code_on_the_same_device_alone() -> None:
    made = Bench.model_validate_json(json.dumps(bench(fields(spec()))))
    committed_code, dirty = ({"git": {"commit": "a", "dirty": changed}} for changed in (False, True))
    for changes, kept in (({}, made.rows), (committed_code, made.rows), (dirty, [])):
        old = made.model_copy(update=changes)
        assert old.rows_like(old.model_copy(update={"rows": [], "measured_utc": "later"})) == kept
        assert old.rows_like(old.model_copy(update={"version": "1"})) == []


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert cost.benches(tmp_path) == []
    compared = {"reference_seconds": 4.0, "ratios": [3.5, 4.5]}
    write(tmp_path, fields(spec(), **compared), fields(spec(), runs=3))
    (found,) = cost.benches(tmp_path)
    assert found.rows == [row(spec(), **compared), row(spec(), runs=3)]
    assert [each.ratio for each in found.rows] == [4.0, None]
    write(tmp_path, **found.model_dump(mode="json"))
    write(tmp_path, kind="another")
    assert [each.kind for each in cost.benches(tmp_path)] == ["another", "cpu"]
    assert cost.benches(tmp_path)[1] == found


def test_a_readers_own_figures_stand_beside_ours_and_never_in_their_place(tmp_path: Path) -> None:
    ours = write(tmp_path, device="ours")
    (ours.parent / "published").mkdir()
    ours.rename(ours.parent / "published" / ours.name)
    write(tmp_path, device="mine")
    assert [each.device for each in cost.benches(tmp_path)] == ["ours", "mine"]
    assert [each.device for each in cost.benches(tmp_path, own=False)] == ["ours"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bench(fields(spec(), seconds="4")), r"rows\.0\.seconds: Input should be a valid number"),
        (bench(fields(spec()), {}), r"rows\.1\.task: Field required"),
        (bench(ceiling={}), r"ceiling\.float32_flop_per_second: Field required"),
        ("no object", ""),
    ],
)
def test_a_damaged_file_is_named(content: Any, message: str, tmp_path: Path) -> None:
    write(tmp_path).write_text(json.dumps(content))
    with pytest.raises(DataError, match=rf"cpu\.json is not what fpt bench writes: {message}"):
        cost.benches(tmp_path)
