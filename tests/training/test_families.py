"""Fleets of every family of backbones: the runs one at a time, what moves, dropout, precision, cost."""

from functools import partial

import pytest
import torch
from flop import needed_flop
from plain_loop import plain_run
from small_models import short_recipe
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

import fpt.models
import fpt.tasks
from fpt.training.fleet import Fleet

CPU = torch.device("cpu")
RATES, SEEDS = [3e-4, 1e-3], [0, 5]
NEW = ["small-t5", "small-longformer", "small-vit"]  # the others are in test_fleet


recipe = partial(short_recipe, evaluations=2)


def test_large_tensors_that_take_no_part_have_no_gradient(digits, small_backbones, monkeypatch):
    """In a Longformer of real size each global projection is a piece of its own, of which a gradient is asked."""
    monkeypatch.setattr("fpt.training.fleet.LARGE", 256)
    template = fpt.models.build(digits, "small-longformer", "random", "all")
    fleet = Fleet(digits, template, recipe(), RATES, SEEDS, CPU)
    assert len(fleet.pieces) > 10
    losses = torch.stack([fleet.step(step) for step in range(1, 4)]).T
    expected = [plain_run(digits, template, recipe(steps=3), rate, seed)[1] for seed in SEEDS for rate in RATES]
    torch.testing.assert_close(losses, torch.tensor(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("backbone", "of_backbone"),
    # a block: attention, its output, the feed-forward layer; T5 inside that as well, before the blocks and after them
    [("gpt2", 1 + 3 * 2), ("bert", 1 + 3 * 2), ("t5", 2 + 4 * 2), ("longformer", 1 + 3 * 2), ("vit", 1 + 3 * 2)],
)
def test_dropout_is_everywhere_the_library_has_it(backbone, of_backbone, digits, small_backbones):
    template = fpt.models.build(digits, f"small-{backbone}", "random")
    tokens = digits.encode(digits.split(0).batch(0, 3).inputs)
    shapes = template.module.dropout_shapes(tokens, None)
    assert len(shapes) == 1 + of_backbone  # after the input layer
    # of the last block of these only what is read out: three rows, or three times two heads of them
    reads_out = sum(shape in {(3, 1, 16), (3, 2, 1, 16), (3, 1, 32)} for shape in shapes)
    assert reads_out == (3 if backbone in ("gpt2", "bert") else 0)
    fleet = Fleet(digits, template, recipe(dropout=0.5), RATES, SEEDS, CPU)
    losses = fleet.step(1).view(2, 2)
    assert torch.equal(losses[:, 0], losses[:, 1])  # the same weights, and masks that are the seed's
    plain = Fleet(digits, template, recipe(), RATES, SEEDS, CPU).step(1).view(2, 2)
    assert (losses != plain).all()


@pytest.mark.parametrize("trainable", ["fpt", "all", "fpt-attention"])
@pytest.mark.parametrize("name", ["bit-xor", "digits"])
@pytest.mark.parametrize("backbone", ["small-bert", *NEW])
def test_the_formula_counts_what_is_computed(backbone, name, trainable, small_backbones):
    task = fpt.tasks.load(name)
    template = fpt.models.build(task, backbone, "random", trainable)
    weights = {key: value.clone() for key, value in template.initialise(0).items()}
    leaves = [weights[key].requires_grad_() for key in template.trainable]
    template.module.drop_with([])
    with FlopCounterMode(display=False) as counter:
        tokens = task.encode(task.split(0).batch(0, 4).inputs)
        loss = functional_call(template.module, weights, (tokens, None)).sum()
        torch.autograd.grad(loss, leaves, allow_unused=True)
    assert counter.get_total_flops() == needed_flop(template, 4)
