"""The reference that fleets are timed against: it learns what a fleet of one run learns, in the released style."""

from typing import Any

import pytest
import torch
from transformers import BertModel, GPT2Model
from transformers.pytorch_utils import Conv1D

import fpt.models
import fpt.tasks
from fpt.bench.reference import Reference, comparable
from fpt.training import Recipe
from fpt.training.fleet import Fleet

CPU = torch.device("cpu")


@pytest.mark.parametrize("arm", ["frozen-random", "unfrozen-pretrained"])
def test_the_reference_learns_what_a_fleet_of_one_run_learns(arm: str, small_backbones: Any) -> None:
    task = fpt.tasks.load("digits")
    template = fpt.models.build(task, "small-gpt2", arm=arm)
    recipe = Recipe(compute_type="float32", dropout=0.0)
    # Key biases have no gradient but rounding's, which Adam turns into steps of full size: small ones where they train.
    rate = 1e-3 if template.trainable_groups == fpt.models.trainable_groups("fpt", template.backbone) else 2e-4
    reference, fleet = Reference(template, recipe, rate, 3, CPU), Fleet(task, template, recipe, [rate], [3], CPU)
    losses = [(reference.step()[0], fleet.step(step).item()) for step in range(1, 7)]
    assert losses[-1][0] != losses[0][0]
    assert max(abs(one - other) for one, other in losses) <= 1e-5


@pytest.mark.parametrize(
    ("backbone", "task", "variant"),
    [
        ("small-gpt2", "bit-xor", "paper"),
        ("small-bert", "listops", "paper"),
        ("small-gpt2", "listops", "released"),
        ("small-bert", "cifar10", "paper"),
    ],
)
def test_every_kind_of_task(backbone: str, task: str, variant: str, shaped_task: Any, small_backbones: Any) -> None:
    shaped = shaped_task(task, variant)
    template = fpt.models.build(shaped, backbone, "random")
    recipe = Recipe(compute_type="float32", dropout=0.0, batch_size=2)
    reference = Reference(template, recipe, 1e-3, 0, CPU)
    fleet = Fleet(shaped, template, recipe, [1e-3], [0], CPU)
    for step in range(1, 4):
        loss, _ = reference.step()
        assert loss == pytest.approx(fleet.step(step).item(), abs=1e-4)


@pytest.mark.parametrize(("task", "arm"), [("digits", "lora-random"), ("text", "frozen-random")])
def test_it_runs_neither_adapters_nor_a_table_of_the_models_own(task: str, arm: str) -> None:
    template = fpt.models.build(fpt.models.load_task(task, "tiny-lm"), "tiny-lm", arm=arm)
    assert not comparable(template)


@pytest.mark.parametrize(("backbone", "library"), [("small-gpt2", GPT2Model), ("small-bert", BertModel)])
def test_it_is_the_librarys_own_model_in_float32(
    backbone: str, library: type, small_backbones: dict[str, torch.nn.Module]
) -> None:
    task = fpt.tasks.load("digits")
    template = fpt.models.build(task, backbone, "random", "fpt")
    reference = Reference(template, Recipe(dropout=0.3, compute_type="bfloat16"), 1e-3, 0, CPU)
    assert type(reference.model.backbone) is library
    plain = [m for m in reference.model.backbone.modules() if type(m) in (Conv1D, torch.nn.Linear)]
    assert len(plain) == 2 * (4 if backbone == "small-gpt2" else 6)
    assert {p.dtype for p in reference.model.parameters()} == {torch.float32}
    assert {m.p for m in reference.model.modules() if isinstance(m, torch.nn.Dropout)} == {0.3}
    trained = {name for name, p in reference.model.named_parameters() if p.requires_grad}
    assert trained == set(template.trainable)
    assert sum(len(group["params"]) for group in reference.optimizer.param_groups) == len(trained)


def test_the_callers_generator_is_left_alone(small_backbones: dict[str, torch.nn.Module]) -> None:
    task = fpt.tasks.load("bit-xor")
    template = fpt.models.build(task, "small-gpt2", "random")
    before = torch.get_rng_state()
    Reference(template, Recipe(dropout=0.0), 1e-3, 0, CPU).step()
    assert torch.equal(before, torch.get_rng_state())
