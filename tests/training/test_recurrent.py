"""LSTMs in fleets: equal to one run after the other, with randomness that is a seed's own; what trains, and learns."""

from functools import partial

import pytest
import torch
from flop import needed_flop
from small_models import short_recipe
from torch.func import functional_call
from torch.nn.functional import cross_entropy

import fpt.models
import fpt.tasks
from fpt.cli.doctor import findings
from fpt.seeds import generator
from fpt.tasks.task import Task
from fpt.training import evaluate, features, resources, train_fleet
from fpt.training.fleet import Fleet, stack

pytestmark = pytest.mark.usefixtures("small_lstms")

CPU = torch.device("cpu")
WIDTH = 16
BOTH = ["small-lstm", "small-lstm-released"]
RATES, SEEDS = [1e-3, 1e-2], [0, 5]


@pytest.fixture(scope="module")
def digits() -> Task:
    return fpt.tasks.load("digits")


recipe = partial(short_recipe, steps=4, evaluations=2)


def plain_loop(task, template, recipe, rate, seed) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Losses and weights of one run without a fleet; the same noise by its documented stream."""
    weights = {name: value.clone() for name, value in template.initialise(seed).items()}
    trainable = [weights[name].requires_grad_() for name in template.trainable]
    optimizer = torch.optim.Adam(trainable, lr=rate)
    losses, noise = [], template.module.noise
    for step in range(1, recipe.steps + 1):
        batch = task.split(seed).batch(step - 1, recipe.batch_size)
        numbers = noise and torch.randn(recipe.batch_size, *noise.shape, generator=generator(seed, "noise", step))
        template.module.drop_with([], numbers)
        logits = functional_call(template.module, weights, (task.encode(batch.inputs), batch.lengths))
        loss = cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, recipe.clip)
        optimizer.step()
    return losses, {name: value.detach() for name, value in weights.items()}


@pytest.mark.parametrize("trainable", ["fpt", "all"])
@pytest.mark.parametrize("backbone", BOTH)
def test_a_fleet_equals_one_run_after_the_other(backbone, trainable, digits):
    template = fpt.models.build(digits, backbone, "random", trainable, residual=True, positions=True)
    settings = recipe(steps=8)
    fleet = Fleet(digits, template, settings, RATES, SEEDS, CPU)
    actual = torch.stack([fleet.step(step) for step in range(1, 9)], 1)
    for row, (seed, rate) in enumerate((seed, rate) for seed in SEEDS for rate in RATES):
        losses, weights = plain_loop(digits, template, settings, rate, seed)
        torch.testing.assert_close(actual[row], torch.tensor(losses), rtol=0, atol=1e-5)
        flat = torch.cat([weights[name].flatten() for name in fleet.names])
        torch.testing.assert_close(fleet.parameters[row], flat, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "trainable",
    ["fpt", "all", "output", ["recurrent"], ["layer_norm"], ["positions"], ["input", "recurrent"]],
)
@pytest.mark.parametrize("backbone", BOTH)
def test_exactly_the_trainable_groups_change(backbone, trainable, digits):
    template = fpt.models.build(digits, backbone, "random", trainable, positions=True)
    fleet = Fleet(digits, template, recipe(dropout=0.1), RATES, SEEDS, CPU)
    start = fleet.parameters.clone()
    frozen = {name: value.clone() for name, value in fleet.per_seed.items()}
    for step in range(1, 4):
        fleet.step(step)
    assert not fleet.shared
    assert all(torch.equal(value, frozen[name]) for name, value in fleet.per_seed.items())
    pieces = (fleet.parameters != start).split([shape.numel() for shape in fleet.shapes], dim=1)
    assert all(piece.any(1).all() for piece in pieces)
    expected = {name for name, group in template.groups.items() if group in template.trainable_groups}
    assert set(fleet.names) == expected == template.shapes.keys() - frozen.keys()


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


@pytest.mark.parametrize("backbone", BOTH)
def test_the_same_fleet_twice_and_a_part_of_it(backbone, digits):
    template = fpt.models.build(digits, backbone, "random", "fpt")
    before = torch.get_rng_state()
    one, other = (train_fleet(digits, template, recipe(dropout=0.1), RATES, SEEDS) for _ in range(2))
    assert one.runs.equals(other.runs)
    assert one.curves.equals(other.curves)
    assert torch.equal(before, torch.get_rng_state())
    whole = train_fleet(digits, template, recipe(), RATES, SEEDS).curves.query("learning_rate == 1e-3 and seed == 5")
    alone = train_fleet(digits, template, recipe(), [1e-3], [5]).curves
    assert alone["validation_loss"].tolist() == pytest.approx(whole["validation_loss"].tolist(), abs=1e-5)


@pytest.mark.parametrize("backbone", BOTH)
def test_bfloat16_follows_float32(backbone, digits):
    template = fpt.models.build(digits, backbone, "random", "fpt")
    losses = {}
    for kind in ("float32", "bfloat16"):
        fleet = Fleet(digits, template, recipe(compute_type=kind), RATES, SEEDS, CPU)
        losses[kind] = torch.stack([fleet.step(step) for step in range(1, 5)])
    kinds = {name: value.dtype for name, value in fleet.per_seed.items()}
    assert kinds["backbone.layers.0.h2h.weight"] == torch.bfloat16
    assert kinds["backbone.layers.0.h2h.bias"] == torch.float32
    assert 0 < (losses["float32"] - losses["bfloat16"]).abs().max() < 0.1


def test_flop_and_what_there_is_to_compare_with(digits):
    template = fpt.models.build(digits, "small-lstm", "random", "all")
    products = 3 * 2 * 2 * (8 * digits.tokens) * 2 * 4 * WIDTH**2  # layers, i2h and h2h, all tokens, three passes
    ends = 2 * 2 * 8 * digits.tokens * WIDTH * digits.width + 3 * 2 * 8 * WIDTH * 10
    assert needed_flop(template, 8) == products + ends
    assert ("weights: lstm", "none exist", "") in findings()


def test_loops_over_time_are_not_compiled(digits):
    template = fpt.models.build(digits, "lstm", "random", "fpt")
    assert not resources.compiling_pays(template, recipe(steps=10**9), 100, CPU)


@pytest.mark.slow
@pytest.mark.parametrize("backbone", BOTH)
def test_it_learns_digits(backbone, digits):
    template = fpt.models.build(digits, backbone, "random", "all")
    runs = train_fleet(digits, template, recipe(steps=200, evaluation_examples=100), [1e-2], [0]).runs
    assert runs["test_accuracy"].item() > 0.25  # chance is 0.1


def test_it_learns_bit_xor():
    task = fpt.tasks.load("bit-xor", length=2)
    template = fpt.models.build(task, "small-lstm", "random", "all", residual=True, positions=True)
    settings = recipe(steps=400, evaluations=2, evaluation_examples=200, batch_size=16)
    curves = train_fleet(task, template, settings, [1e-2], [0]).curves
    assert curves["validation_accuracy"].iloc[-1] > 0.9  # chance is 0.5


def test_symbols_of_different_lengths_in_a_fleet():
    task = fpt.tasks.load("listops-short", train=200, heldout=50)
    for backbone in BOTH:
        template = fpt.models.build(task, backbone, "random", "fpt")
        assert train_fleet(task, template, recipe(), [1e-3], [0]).runs["test_accuracy"].between(0, 1).all()
