"""FLOP of workloads: the formula against torch's own counter, stand-ins, and estimates of what nobody timed."""

import socket
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import fpt.models
import fpt.tasks
from fpt.bench.cost import Row, Workload, estimate, predict, seconds_of
from fpt.bench.flop import Sample, Work, needed_flop, sample, work_of
from fpt.bench.measure import cell
from fpt.bench.reference import Reference
from fpt.models import weights
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.sweeps.study import load_study
from fpt.tasks import TASKS, Entry
from fpt.training import Recipe

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")


@pytest.mark.parametrize("trainable", ["fpt", "all", "fpt-attention", "output"])
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


def test_what_is_needed_is_less_by_the_rows_that_nobody_reads(small_backbones: dict[str, torch.nn.Module]) -> None:
    task = fpt.tasks.load("digits")  # 16 tokens, read at the last one
    template = fpt.models.build(task, "small-gpt2", "random")
    width, batch, tokens = 16, 4, 16
    # queries, attention's output and the feed-forward layer, forward and gradient; and scores with their two gradients
    unread = batch * (tokens - 1) * (2 * 2 * (2 + 8) * width**2 + 3 * 2 * 2 * tokens * width)
    assert needed_flop(template, batch, tokens) - needed_flop(template, batch) == unread
    frozen, unfrozen = (needed_flop(fpt.models.build(task, "gpt2", "random", kind), 8) for kind in ("fpt", "all"))
    assert 1.3 < unfrozen / frozen < 1.5  # a third product where weights train


# --- shapes


def sampled(text: str) -> Sample | None:
    return sample(*Workload.of(cell(text)).data)


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither data nor weights nor a network."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("there is no network")

    sample.cache_clear()
    work_of.cache_clear()
    monkeypatch.setenv("FPT_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(weights, "fetch", refuse)


@pytest.mark.parametrize(
    ("text", "held", "data"),
    [
        ("homology:paper", (736, 718), "tests/data"),
        ("homology:released", (736, 736), "tests/data"),
        ("mnist:released", (10_000, 10_000), "tests/data"),
        ("cifar10:released", (10_000, 10_000), "tests/data"),
        ("digits", (300, 400), "nowhere"),
    ],
)
def test_shapes_are_those_of_the_real_task(
    text: str, held: tuple[int, int], data: str, nothing_here: None, tmp_path: Path
) -> None:
    found = sampled(f"tiny-lm/{text}/frozen-random/3")
    name, _, variant = text.partition(":")
    whole = fpt.tasks.load(name, ROOT / data, variant or "paper")
    shape = attrgetter("tokens", "width", "vocabulary", "mask_padding", "name", "variant")
    assert found is not None
    assert (shape(found.task), found.held) == (shape(whole), held)
    assert len(found.task.split(0).batch(0, 8)) == 8
    assert not (tmp_path / "nowhere").exists()


def test_a_batch_of_any_size_can_be_drawn() -> None:
    for name in ("mnist", "cifar10", "homology", "listops-short"):
        found = sample(*Workload.of(spec(task=name, batch_size=512)).data)
        assert found is not None
        assert len(found.task.split(0).batch(0, 512)) == 512


@pytest.mark.parametrize("files", [(), ("mine.npz",)])
def test_the_loader_of_a_task_of_yours_is_not_called(files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*_: Any) -> Any:
        raise OSError("there is no network")

    monkeypatch.setitem(TASKS, "mine", Entry(download, "Mine", files=files))
    assert estimate(spec(task="mine"), [row(spec())]) is None
    assert estimate(spec(), [row(spec()).model_copy(update={"task": "mine"})]) is None


@pytest.mark.parametrize("backbone", list(fpt.models.BACKBONES))
def test_every_backbone_has_an_estimate_without_weights(backbone: str, nothing_here: None) -> None:
    assert (estimate(spec(backbone=backbone, arm="frozen-random"), [row(spec())]) or 0) > 0


@pytest.mark.parametrize("task", [name for name in TASKS if name != fpt.tasks.NPZ])
def test_every_task_has_an_estimate_without_data(task: str, nothing_here: None) -> None:
    pretrained = resolve({"task": task, "backbone": "distilgpt2", "learning_rates": [1e-3], "selection_seeds": [0]})
    assert (estimate(pretrained, [row(spec())]) or 0) > 0


# --- estimates


def spec(**changes: Any) -> SweepSpec:
    fields: dict[str, Any] = {"task": "mnist", "arm": "frozen-random", "learning_rates": [1e-3], "steps": 100}
    return resolve(fields | {"selection_seeds": [0], "confirmation_seeds": [10]} | changes)


def work(of: SweepSpec) -> Work:
    found = work_of(Workload.of(of))
    assert found is not None
    return found


def row(of: SweepSpec, rate: float = 1e9) -> Row:
    """A row of the bench for the fleets of a sweep, at `rate` FLOP per second."""
    done = work(of)
    return Row(
        **Workload.of(of).model_dump(),
        arm=of.arm,
        compute_type="bfloat16",
        tokens=done.tokens,
        runs=1,
        held=done.held,
        seconds=done.step / rate,
        evaluation_seconds=0.5,
        peak_gib=1.0,
        flop=done.step,
    )


def test_a_sweep_that_was_measured_is_estimated_at_what_was_measured() -> None:
    for arm in ("frozen-random", "unfrozen-random"):
        known = predict(spec(arm=arm), [row(spec(arm=arm))])
        assert estimate(spec(arm=arm), [row(spec(arm=arm))]) == pytest.approx(known)


def test_the_nearest_width_of_the_same_kind_decides() -> None:
    rows = [row(spec(), 1e9), row(spec(backbone="gpt2"), 1e10), row(spec(arm="unfrozen-random"), 1e12)]
    step = work(spec(backbone="distilgpt2")).step  # 6 of the 12 layers of GPT-2, of the last one less
    assert 0.5 * work(spec(backbone="gpt2")).step == pytest.approx(step, rel=0.1)
    steps = 2 * 100 * step / 1e10
    examples = 2 * 2 * 20 * 10_000 + 2 * 2 * 10_000  # of both runs, at 20 stops and at the end
    evaluation = 0.5 * step / rows[1].flop
    assert estimate(spec(backbone="distilgpt2"), rows) == pytest.approx(steps + examples * evaluation)


def test_nothing_is_estimated_from_another_kind() -> None:
    rows = [row(spec()), row(spec(arm="unfrozen-random"))]
    assert estimate(spec(arm="output-random", dropout=0.0), rows) is None


def test_what_is_computed_once_counts_once_a_seed() -> None:
    once, every_step = spec(arm="output-random", dropout=0.0), spec(arm="output-random")
    layer = 2 * 2 * 8 * 128 * 10  # forward, gradient of the weights; batch, width, classes
    assert work(once).step == layer
    assert work(once).features == (work(every_step).step - layer) // 8 * 70_000  # all images, forward alone
    assert predict(once, [row(once)]) is None  # a row knows the steps alone
    seconds = estimate(once, [row(once, 1e9), row(spec(), 1e12)])
    steps = seconds_of(once, (10_000, 10_000), layer / 1e9, 0.5)
    assert seconds == pytest.approx(steps + 2 * work(once).features / 1e12)


def test_streams_have_no_features_to_keep() -> None:
    assert work(spec(task="bit-xor", arm="output-random", dropout=0.0)).features == 0


@pytest.mark.parametrize(("task", "examples"), [("listops", 100_000), ("listops-short", 24_000), ("digits", 1_797)])
def test_all_examples_of_a_task_are_counted(task: str, examples: int) -> None:
    found = sample(*Workload.of(spec(task=task)).data)
    assert found is not None
    assert found.examples == examples


def test_every_sweep_of_the_paper_has_a_cost() -> None:
    kinds = {work(each).kind for each in load_study(ROOT / "runs" / "lu2021").sweeps}
    assert kinds == {(False, True), (False, False), (True, False)}


def test_recurrent_sweeps_go_by_recurrent_rows_where_there_are_any() -> None:
    transformer, recurrent = row(spec(backbone="gpt2"), 1e10), row(spec(backbone="lstm"), 1e9)
    with_its_like = estimate(spec(backbone="lstm-released"), [transformer, recurrent])
    without = estimate(spec(backbone="lstm-released"), [transformer])
    assert with_its_like is not None
    assert without is not None
    assert with_its_like > 5 * without
    both = estimate(spec(backbone="gpt2"), [recurrent, transformer])
    assert both == estimate(spec(backbone="gpt2"), [transformer])
