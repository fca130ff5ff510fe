"""Work of sweeps: the formula against torch's own counter, stand-ins, and estimates of sweeps that nobody timed."""

from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
from fpt.sweeps.flop import needed_flop, shaped_task
from fpt.training.reference import Reference
from torch.utils.flop_counter import FlopCounterMode

import fpt.models
import fpt.tasks
from fpt import bench
from fpt.sweeps import flop, speeds
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.sweeps.study import load_study
from fpt.training import Recipe

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")


@pytest.mark.parametrize("trainable", ["fpt", "all", "fpt-attention"])
@pytest.mark.parametrize("task", ["digits", "bit-memory", "listops-short"])
@pytest.mark.parametrize("backbone", ["small-gpt2", "small-bert"])
def test_the_formula_counts_what_the_library_computes(
    backbone: str, task: str, trainable: str, small_backbones: dict[str, torch.nn.Module]
) -> None:
    options = {"train": 60, "heldout": 20} if task == "listops-short" else {}
    loaded = replace(fpt.tasks.load(task, **options), name=task)
    template = fpt.models.build(loaded, backbone, "random", trainable)
    reference = Reference(template, Recipe(batch_size=4), 1e-3, 0, CPU)
    reference.model.backbone.set_attn_implementation("eager")  # products that the counter sees on every device
    reference.step()
    with FlopCounterMode(display=False) as counter:
        reference.step()
    assert counter.get_total_flops() == needed_flop(template, 4, last_rows=loaded.tokens)


@pytest.mark.parametrize(("variant", "held"), [("paper", [736, 718]), ("released", [736, 736])])
def test_homology_is_measured_without_its_data(variant: str, held: list[int]) -> None:
    task, found, inputs = shaped_task(bench.cell(f"tiny-lm/homology:{variant}/frozen-random/3"))
    whole = fpt.tasks.load("homology", ROOT / "tests" / "data", variant)
    shape = attrgetter("tokens", "vocabulary", "classes", "mask_padding", "name", "variant")
    assert (shape(task), found, inputs) == (shape(whole), held, "random")
    assert len(task.split(0).batch(0, 8)) == 8


def test_what_is_needed_is_less_by_the_rows_that_nobody_reads(small_backbones: dict[str, torch.nn.Module]) -> None:
    task = fpt.tasks.load("digits")  # 16 tokens, read at the last one
    template = fpt.models.build(task, "small-gpt2", "random")
    width, batch, tokens = 16, 4, 16
    # queries, attention's output and the feed-forward layer, forward and gradient; and scores with their two gradients
    unread = batch * (tokens - 1) * (2 * 2 * (2 + 8) * width**2 + 3 * 2 * 2 * tokens * width)
    assert needed_flop(template, batch, tokens) - needed_flop(template, batch) == unread
    frozen, unfrozen = (needed_flop(fpt.models.build(task, "gpt2", "random", kind), 8) for kind in ("fpt", "all"))
    assert 1.3 < unfrozen / frozen < 1.5  # a third product where weights train


def test_stand_ins_have_the_real_shape_and_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FPT_DATA", "/nowhere")
    task, held, inputs = shaped_task(bench.cell("tiny-lm/cifar10:released/frozen-random/1"))
    assert (task.tokens, task.width, task.classes, held, inputs) == (64, 48, 10, [10_000, 10_000], "random")
    assert len(task.split(0).batch(0, 8)) == 8
    task, held, inputs = shaped_task(bench.cell("tiny-lm/digits/frozen-random/1"))
    assert (task.tokens, held, inputs) == (16, [300, 400], "real")


# --- estimates


def spec(**changes: Any) -> SweepSpec:
    fields: dict[str, Any] = {"task": "mnist", "arm": "frozen-random", "learning_rates": [1e-3], "steps": 100}
    return resolve(fields | {"selection_seeds": [0], "confirmation_seeds": [10]} | changes)


def row(of: SweepSpec, rate: float = 1e9) -> dict[str, Any]:
    """A row of the bench for the fleets of a sweep, at `rate` FLOP per second."""
    work = flop.work_of(of)
    measured = {"held": work.held, "flop": work.step, "seconds": work.step / rate, "evaluation_seconds": 0.5}
    return speeds.cost_of(of) | measured | {"compute_type": "bfloat16", "runs": 1}


def test_a_sweep_that_was_measured_is_estimated_at_what_was_measured() -> None:
    for arm in ("frozen-random", "unfrozen-random"):
        known = speeds.predict(spec(arm=arm), [row(spec(arm=arm))])
        assert flop.estimate(spec(arm=arm), [row(spec(arm=arm))]) == pytest.approx(known)


def test_the_nearest_width_of_the_same_kind_decides() -> None:
    rows = [row(spec(), 1e9), row(spec(backbone="gpt2"), 1e10), row(spec(arm="unfrozen-random"), 1e12)]
    step = flop.work_of(spec(backbone="distilgpt2")).step
    assert 0.5 * flop.work_of(spec(backbone="gpt2")).step == pytest.approx(
        step, rel=0.1
    )  # 6 of its 12 layers, of the last one less
    steps = 2 * 100 * step / 1e10
    examples = 2 * 2 * 20 * 10_000 + 2 * 2 * 10_000  # of both runs, at 20 stops and at the end
    evaluation = 0.5 * step / rows[1]["flop"]
    found = flop.estimate(spec(backbone="distilgpt2"), rows)
    assert found == pytest.approx(steps + examples * evaluation)


def test_nothing_is_said_of_a_kind_that_was_not_measured() -> None:
    rows = [row(spec()), row(spec(arm="unfrozen-random"))]
    assert flop.estimate(spec(arm="output-random", dropout=0.0), rows) is None
    assert flop.estimate(spec(), []) is None


def test_what_is_computed_once_counts_once_a_seed() -> None:
    once, every_step = spec(arm="output-random", dropout=0.0), spec(arm="output-random")
    work, below = flop.work_of(once), flop.work_of(spec(arm="input+output-random"))
    assert (work.kind, flop.work_of(every_step).kind) == ("output", "some")
    assert work.features == pytest.approx(70_000 * below.step / 8 / 2, rel=0.01)  # all images, forward alone
    assert flop.flop_of(once) == 2 * 100 * work.step + 2 * work.features
    assert flop.flop_of(every_step) == 2 * 100 * (below.step // 2)
    assert speeds.predict(once, [row(once)]) is None  # a row knows the steps alone
    seconds = flop.estimate(once, [row(once, 1e9), row(spec(), 1e12)])
    steps = speeds.seconds_of(once, row(once, 1e9))
    assert seconds == pytest.approx(steps + 2 * work.features / 1e12)


def test_streams_have_no_features_to_keep() -> None:
    assert flop.work_of(spec(task="bit-xor", arm="output-random", dropout=0.0)).kind == "some"


@pytest.mark.parametrize(("task", "examples"), [("listops", 100_000), ("listops-short", 24_000), ("digits", 1_797)])
def test_all_examples_of_a_task_are_counted(task: str, examples: int) -> None:
    once = flop.work_of(spec(task=task, arm="output-random", dropout=0.0))
    below = flop.work_of(spec(task=task, arm="input+output-random"))
    assert once.features / (below.step / 8 / 2) == pytest.approx(examples, rel=0.01)


def test_every_sweep_of_the_paper_has_a_cost() -> None:
    kinds = {flop.work_of(each).kind for each in load_study(ROOT / "runs" / "lu2021").sweeps}
    assert kinds == {"all", "some", "output"}


def test_recurrent_sweeps_go_by_recurrent_rows_where_there_are_any() -> None:
    transformer, recurrent = row(spec(backbone="gpt2"), 1e10), row(spec(backbone="lstm"), 1e9)
    with_its_like = flop.estimate(spec(backbone="lstm-released"), [transformer, recurrent])
    without = flop.estimate(spec(backbone="lstm-released"), [transformer])
    assert with_its_like is not None
    assert without is not None
    assert with_its_like > 5 * without
    assert flop.estimate(spec(backbone="gpt2"), [recurrent, transformer]) == flop.estimate(
        spec(backbone="gpt2"), [transformer]
    )
