"""LSTMs in fleets: equal to one run after the other, with randomness that is a seed's own; what trains, and learns."""

from functools import partial

import pytest
import torch
from flop import needed_flop
from small_models import short_recipe

import fpt.models
import fpt.tasks
from fpt.cli.doctor import findings
from fpt.training import evaluate, features, resources, train_fleet
from fpt.training.fleet import Fleet, stack

pytestmark = pytest.mark.usefixtures("small_lstms")

CPU = torch.device("cpu")
WIDTH = 16
RATES, SEEDS = [1e-3, 1e-2], [0, 5]


recipe = partial(short_recipe, steps=4, evaluations=2)


def test_every_forward_pass_of_the_released_cell_starts_elsewhere(digits):
    """In training at every step, at evaluation for every example; from streams of the seed, whatever the fleet."""
    template = fpt.models.build(digits, "small-lstm-released", "random", ["output"])
    fleet = Fleet(digits, template, recipe(), RATES, SEEDS, CPU)
    first, second = (fleet.noise(fleet.active, step)(8) for step in (1, 2))
    assert first.shape == (2, 8, 2, 2, WIDTH)
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])
    together = fleet.noise(fleet.active, "evaluation")(20)
    draw = fleet.noise(fleet.active, "evaluation")
    assert torch.equal(together, torch.cat([draw(7), draw(13)], 1))
    example = stack([split.test[:1] for split in fleet.splits])
    twice = stack([split.test[torch.tensor([0, 0])] for split in fleet.splits])
    one, other = (evaluate.score(fleet, fleet.parameters, part).loss for part in (example, twice))
    assert (one != other).all()  # the second copy has another start
    assert not features.constant(digits, template, recipe())
    assert features.constant(digits, fpt.models.build(digits, "small-lstm", "random", ["output"]), recipe())


def test_flop_and_what_there_is_to_compare_with(digits):
    template = fpt.models.build(digits, "small-lstm", "random", "all")
    products = 3 * 2 * 2 * (8 * digits.tokens) * 2 * 4 * WIDTH**2  # layers, i2h and h2h, all tokens, three passes
    ends = 2 * 2 * 8 * digits.tokens * WIDTH * digits.width + 3 * 2 * 8 * WIDTH * 10
    assert needed_flop(template, 8) == products + ends
    assert ("weights: lstm", "none exist", "") in findings()


def test_loops_over_time_are_not_compiled(digits):
    template = fpt.models.build(digits, "lstm", "random", "fpt")
    assert not resources.compiling_pays(template, recipe(steps=10**9), 100, CPU)


def test_it_learns_bit_xor():
    task = fpt.tasks.load("bit-xor", length=2)
    template = fpt.models.build(task, "small-lstm", "random", "all", residual=True, positions=True)
    settings = recipe(steps=400, evaluations=2, evaluation_examples=200, batch_size=16)
    curves = train_fleet(task, template, settings, [1e-2], [0]).curves
    assert curves["validation_accuracy"].iloc[-1] > 0.9  # chance is 0.5
