"""What a step takes, counted without weights: against torch's counter on a step of a real fleet."""

from typing import Any

import pytest
import torch
from small_models import short_recipe
from torch.utils.flop_counter import FlopCounterMode

import fpt.models
import fpt.tasks
from fpt.bench import step_cost, sweep_cost
from fpt.bench.step import StepCost
from fpt.models import ARMS
from fpt.sweeps.spec import resolve
from fpt.training import features, memory

CPU = torch.device("cpu")
SMALL = ("small-gpt2", "small-library", "small-bert")


def cost(backbone: str, arm: str, **changes: Any) -> StepCost:
    fields = {"task": "digits", "backbone": backbone, "arm": arm, "learning_rates": [1e-3], "seeds": [0]}
    return sweep_cost(resolve(fields | changes))


@pytest.mark.parametrize("arm", [*ARMS, "output-random"])
@pytest.mark.parametrize("backbone", SMALL)
def test_a_real_step_multiplies_as_often(backbone: str, arm: str, small_backbones: Any) -> None:
    recipe = short_recipe()
    template = fpt.models.build(fpt.tasks.load("digits"), backbone, arm=arm)
    fleet = features.fleet(template.task, template, recipe, [1e-3], [0, 1], CPU)
    with FlopCounterMode(display=False) as counter:
        fleet.step(1)
    found = step_cost(template, recipe)
    assert 2 * found.flop == counter.get_total_flops()
    report = template.report()
    assert sum(found.trainable.values()) == report["trainable"].sum() == fleet.parameters.shape[1]
    assert sum(found.frozen.values()) == report["frozen"].sum()
    assert found == cost(backbone, arm, dropout=0.0)  # the weights are not read
    if not features.constant(template.task, template, recipe):
        shared, own = (sum(t.nbytes for t in held.values()) for held in (fleet.shared, fleet.per_seed))
        assert (found.once_bytes, 2 * found.seed_bytes) == (shared, own)
    assert found.run_bytes == memory.run_bytes(template, recipe)


def test_a_frozen_matrix_costs_one_product_backward_and_an_adapter_two_of_its_own() -> None:
    frozen, whole, lora = (cost("tiny-lm", f"{arm}-random") for arm in ("frozen", "unfrozen", "lora"))
    rows, blocks = 8 * 16, 12 * 128**2 * 4  # weights of the four blocks' matrices
    shapes = [(128, 384), (128, 128), (128, 512), (512, 128)]
    adapters = 4 * 8 * sum(map(sum, shapes))
    assert frozen.forward == whole.forward
    assert lora.trainable["adapter"] == adapters
    saved = whole.backward - frozen.backward
    beside = lora.forward - frozen.forward
    # the last block's queries, attention output and feed-forward layer are computed at the last token alone
    assert 0 < saved <= 2 * rows * blocks
    assert 0 < beside <= 2 * rows * adapters
    assert lora.backward - frozen.backward == 2 * beside
    assert cost("tiny-lm", "lora-random", rank=1).forward - frozen.forward == beside / 8


def test_no_weights_are_needed() -> None:
    assert cost("gpt2-xl", "lora-pretrained", backbone_options={"layers": 2}).once_bytes > 2**27
