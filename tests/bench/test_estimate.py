"""Estimates of what nobody timed: the nearest row of the same kind, by tokens and weights."""

import socket
from pathlib import Path
from typing import Any

import pytest

import fpt.models
import fpt.tasks
from fpt.bench.cost import Row, Workload, estimate, predict
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
    entry = TASKS[of.task]
    tokens = dict(zip(entry.variants, entry.tokens, strict=True))[of.variant]
    return Row(
        **Workload.of(of).model_dump(),
        arm=of.arm,
        compute_type="bfloat16",
        tokens=tokens,
        runs=1,
        held=(10_000, 10_000),
        seconds=seconds,
        evaluation_seconds=0.5,
        peak_gib=1.0,
        flop=1,
    )


def test_a_task_whose_length_nobody_says_has_no_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*_: Any) -> Any:
        raise OSError("there is no network")

    monkeypatch.setitem(TASKS, "mine", Entry(download, "Mine"))
    assert estimate(spec(task="mine"), [row(spec())]) is None
    longer = spec(task="bit-xor", task_options={"length": 256})  # fifty times as many tokens
    assert estimate(longer, [row(spec())]) is None


@pytest.mark.parametrize("backbone", list(fpt.models.BACKBONES))
def test_every_backbone_has_an_estimate_without_weights(backbone: str, nothing_here: None) -> None:
    assert (estimate(spec(backbone=backbone, arm="frozen-random"), [row(spec())]) or 0) > 0


@pytest.mark.parametrize("task", [name for name in TASKS if name != fpt.tasks.NPZ])
def test_every_task_has_an_estimate_without_data(task: str, nothing_here: None) -> None:
    pretrained = resolve({"task": task, "backbone": "distilgpt2", "learning_rates": [1e-3], "seeds": [0]})
    assert (estimate(pretrained, [row(spec())]) or 0) > 0


def test_a_sweep_that_was_measured_is_estimated_at_what_was_measured() -> None:
    for arm in ("frozen-random", "unfrozen-random"):
        known = predict(spec(arm=arm), [row(spec(arm=arm))])
        assert estimate(spec(arm=arm), [row(spec(arm=arm))]) == pytest.approx(known)


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


def test_nothing_is_estimated_from_another_kind_or_of_what_is_computed_once() -> None:
    rows = [row(spec()), row(spec(arm="unfrozen-random"))]
    once = spec(arm="output-random", dropout=0.0)
    assert estimate(once, rows) is estimate(once, [row(once)]) is predict(once, [row(once)]) is None
    assert estimate(spec(arm="output-random"), rows[1:]) is None
    assert estimate(spec(arm="output-random"), rows) is not None  # with dropout every step goes through the backbone


def test_every_sweep_of_the_paper_is_of_a_known_kind() -> None:
    kinds = {Workload.of(each).kind for each in load_study(ROOT / "runs" / "lu2021").sweeps}
    assert kinds == {"features", "frozen", "matrices"}


def test_recurrent_sweeps_go_by_recurrent_rows_where_there_are_any() -> None:
    transformer, recurrent = row(spec(backbone="gpt2"), 1.0), row(spec(backbone="lstm"), 10.0)
    with_its_like = estimate(spec(backbone="lstm-released"), [transformer, recurrent])
    without = estimate(spec(backbone="lstm-released"), [transformer])
    assert with_its_like is not None
    assert without is not None
    assert with_its_like > without
    assert estimate(spec(backbone="gpt2"), [recurrent, transformer]) == estimate(spec(backbone="gpt2"), [transformer])
