"""Estimates of what nobody timed: the nearest row of the same kind, by tokens and weights."""

import socket
from pathlib import Path
from typing import Any

import committed
import pytest

import fpt.models
import fpt.tasks
from fpt.bench.cost import Row, Workload, forecast, read
from fpt.models import weights
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.sweeps.study import load_study
from fpt.tasks import TASKS, Entry

ROOT = Path(__file__).parents[2]


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither data nor weights nor a network."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("there is no network")

    monkeypatch.setenv("FPT_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(weights, "fetch", refuse)


def spec(**changes: Any) -> SweepSpec:
    fields: dict[str, Any] = {"task": "mnist", "arm": "frozen-random", "learning_rates": [1e-3], "steps": 100}
    return resolve(fields | {"seeds": [0, 10]} | changes)


def row(of: SweepSpec, seconds: float = 1.0) -> Row:
    """A row of the bench for the fleets of a sweep, at `seconds` a run-step."""
    return Row(
        **Workload.of(of).model_dump(),
        arm=of.arm,
        compute_type="bfloat16",
        tokens=TASKS[of.task].length(of.variant, of.task_options),
        runs=1,
        held=(10_000, 10_000),
        seconds=seconds,
        evaluation_seconds=0.5,
        peak_gib=1.0,
        flop=1,
    )


def estimate(of: SweepSpec, rows: list[Row]) -> float | None:
    found = forecast(of, rows)
    return found and found.seconds


def test_a_task_whose_length_nobody_says_has_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*_: Any) -> Any:
        raise OSError("there is no network")

    monkeypatch.setitem(TASKS, "mine", Entry(download, "Mine"))
    assert estimate(spec(task="mine"), [row(spec())]) is None


@pytest.mark.parametrize(
    ("task", "options", "times"),
    [
        ("bit-xor", {"length": 50}, 10),
        ("bit-memory", {"strings": 11}, 2),
        ("bit-memory", {"patch": 25}, 2),
        ("listops-short", {"heldout": 500}, 1),
    ],
)
def test_options_that_make_examples_longer_cost_in_proportion(task: str, options: dict[str, int], times: int) -> None:
    plain, longer = (estimate(spec(task=task, **more), [row(spec())]) for more in ({}, {"task_options": options}))
    assert plain
    assert longer == pytest.approx(times * plain)


@pytest.mark.parametrize("backbone", list(fpt.models.BACKBONES))
def test_every_backbone_has_an_estimate_without_weights(backbone: str, nothing_here: None) -> None:
    assert (estimate(spec(backbone=backbone, arm="frozen-random"), [row(spec())]) or 0) > 0


@pytest.mark.parametrize("task", [name for name in TASKS if name not in fpt.tasks.OWN.values()])
def test_every_task_has_an_estimate_without_data(task: str, nothing_here: None) -> None:
    backbone = "tiny-lm" if TASKS[task].own_table else "distilgpt2"
    pretrained = resolve({"task": task, "backbone": backbone, "learning_rates": [1e-3], "seeds": [0]})
    assert (estimate(pretrained, [row(spec())]) or 0) > 0


def test_the_nearest_width_of_the_same_kind_decides() -> None:
    rows = [row(spec(), 9.0), row(spec(backbone="gpt2"), 4.0), row(spec(arm="unfrozen-random"), 9.0)]
    steps = 2 * 100 * 2.0  # of both runs: distilgpt2 has 6 of the 12 layers of GPT-2
    # of both runs: at 6 stops, as many test and training examples, and these again with the last parameters
    examples = 2 * (6 * 10_000 + 2 * 6 * 10_000 + 2 * 10_000)
    assert estimate(spec(backbone="distilgpt2", evaluations=1), rows) == pytest.approx(steps + examples * 0.25)


def test_of_one_width_the_nearest_length_decides() -> None:
    rows = [row(spec(task="listops"), 9.0), row(spec(), 4.0), row(spec(task="bit-xor"), 9.0)]
    samples = {"evaluation_examples": 1, "budget_examples": 3, "test_examples": 7}
    found = estimate(spec(task="cifar10", batch_size=16, evaluations=1, **samples), rows)
    assert found == pytest.approx(2 * (100 * 8.0 + (6 * 1 + 5 * 3 + 2 * 7 + 7 * 3) * 0.5))


def test_options_of_the_backbone_count() -> None:
    options = {"layers": 1, "width": 384}
    rows = [row(spec(backbone="lstm"), 12.0)]
    small = estimate(spec(backbone="lstm", backbone_options=options, evaluation_examples=1), rows) or 0
    whole = estimate(spec(backbone="lstm", evaluation_examples=1), rows) or 0
    assert whole / small == pytest.approx(12)


def test_nothing_is_estimated_from_another_kind() -> None:
    rows = [row(spec()), row(spec(arm="unfrozen-random"))]
    assert estimate(spec(arm="output-random"), rows[1:]) is None
    assert estimate(spec(arm="output-random"), rows) is not None  # with dropout every step goes through the backbone


def test_features_are_one_forward_pass_of_every_example_and_seed() -> None:
    rows = [row(spec())]  # half a second an example, 10,000 of them validate
    once = {"arm": "output-random", "dropout": 0.0}
    assert estimate(spec(**once), rows) == estimate(spec(**once, steps=7), rows) == pytest.approx(2 * 70_000 * 0.5)
    assert estimate(spec(**once), [row(spec(**once))]) is None
    lists = estimate(spec(task="listops", variant="released", **once), rows)
    assert lists == pytest.approx(2 * (96_000 + 20_000) * 0.5 * 512 / 64)


def test_a_row_of_the_same_number_type_goes_before_one_of_the_same_length() -> None:
    longer = row(spec(task="cifar10-lra"), 16.0).model_copy(update={"compute_type": "float32"})  # 1,024 tokens
    few = {"evaluations": 1, "evaluation_examples": 1, "budget_examples": 1, "test_examples": 1}
    for compute_type, seconds in {"bfloat16": 9.0, "float32": 1.0}.items():
        found = estimate(spec(task="cifar10", compute_type=compute_type, **few), [row(spec(), 9.0), longer])
        assert found == pytest.approx(2 * 100 * seconds, rel=0.02)


def test_sample_sizes_are_those_of_the_task_where_a_row_has_it() -> None:
    small = row(spec(task="digits")).model_copy(update={"held": (300, 400), "seconds": 99.0})
    found = estimate(spec(task="digits", backbone="gpt2"), [small, row(spec(backbone="gpt2"))])
    alone = estimate(spec(task="digits", backbone="gpt2"), [row(spec(backbone="gpt2"))])
    assert found is not None
    assert alone is not None
    assert found < alone / 10


@pytest.mark.parametrize("study", ["rothermel2021", "lu2021", "laptop-rothermel2021", "laptop-lu2021", "smollm2"])
def test_every_sweep_of_a_study_has_a_cost(study: str) -> None:
    rows = read(committed.benches()[0]).rows
    assert all(forecast(each, rows) for each in load_study(ROOT / "runs" / study).sweeps)


def test_every_sweep_of_the_paper_is_of_a_known_kind() -> None:
    kinds = {Workload.of(each).kind for each in load_study(ROOT / "runs" / "lu2021").sweeps}
    assert kinds == {"features", "frozen", "matrices"}


def test_a_row_of_the_family_goes_before_one_of_the_width() -> None:
    transformer, recurrent = row(spec(backbone="gpt2"), 1.0), row(spec(backbone="lstm"), 10.0)
    with_its_like = estimate(spec(backbone="lstm-released"), [transformer, recurrent])
    without = estimate(spec(backbone="lstm-released"), [transformer])
    assert with_its_like is not None
    assert without is not None
    assert with_its_like > without
    assert estimate(spec(backbone="gpt2"), [recurrent, transformer]) == estimate(spec(backbone="gpt2"), [transformer])
