"""A rate of the head, a schedule and weight decay: what stays as it is without them, and what they go together with.
That they are torch's own is tested in test_fleet.py."""

from functools import partial

import pytest
import torch
from plain_loop import ALL, trained
from small_models import short_recipe

import fpt.models
import fpt.tasks
from fpt.errors import SpecError
from fpt.training import features, train_fleet
from fpt.training.fleet import LARGE, Fleet

CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 3e-3], [0, 5]
STEPS = 20
recipe = partial(short_recipe, steps=STEPS)


@pytest.mark.parametrize("policy", ["fpt", "all"])
def test_with_the_defaults_it_is_adam_with_one_group_bit_for_bit(policy, digits):
    """The layout and the numbers are those of the recipe before it had these fields."""
    template = fpt.models.build(digits, "tiny-lm", "random", policy, layers=1)
    fleet = Fleet(digits, template, recipe(dropout=0.1, warmup=0.25), [*RATES, 1e30], SEEDS, CPU)
    sizes = {name: template.shapes[name].numel() for name in template.trainable}
    assert fleet.names == sorted(template.trainable, key=lambda name: sizes[name] >= LARGE)
    large = [size for size in sizes.values() if size >= LARGE]
    assert fleet.pieces == [sum(sizes.values()) - sum(large), *large]
    assert all(len(optimizer.param_groups) == 1 for optimizer in fleet.optimizers)
    other = Fleet(digits, template, fleet.recipe, fleet.rates, SEEDS, CPU)
    for run, optimizer in enumerate(other.optimizers):
        (group,) = optimizer.param_groups
        adam = torch.optim.Adam(group["params"], lr=1.0, fused=True)
        adam.state.update(optimizer.state)
        adam.param_groups[0]["initial_lr"] = fleet.rates[run % 3]
        other.optimizers[run] = adam
    for each in (fleet, other):
        trained(each, 6)
    assert fleet.alive.tolist() == [True, True, False] * 2
    for name, tensor in fleet.state().items():
        assert torch.equal(tensor, other.state()[name]), name


def test_a_compiled_fleet_computes_the_same(digits, monkeypatch):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))  # traced, and interpreted
    template = fpt.models.build(digits, "tiny-lm", "random", "all", layers=1)
    plain, quick = (Fleet(digits, template, recipe(**ALL), RATES, SEEDS, CPU, flag) for flag in (False, True))
    for step in range(1, 4):
        torch.testing.assert_close(quick.step(step), plain.step(step), rtol=0, atol=1e-5)


def test_features_that_are_computed_once_give_the_same(digits):
    """Where the output layer alone trains: the fleet on features, and the ordinary one."""
    template = fpt.models.build(digits, "tiny-lm", "random", "output", layers=1)
    how = recipe(schedule="cosine", weight_decay=0.5)
    assert features.constant(digits, template, how)
    quick, plain = (trained(make(digits, template, how, RATES, SEEDS, CPU), STEPS) for make in (features.fleet, Fleet))
    torch.testing.assert_close(quick.parameters, plain.parameters, rtol=1e-4, atol=1e-5)


def test_a_rate_of_the_head_alone_is_refused_before_anything_is_written(digits, small_backbones, tmp_path):
    template = fpt.models.build(digits, "small-gpt2", "random", "output")
    with pytest.raises(SpecError, match=r"head_rate = 0\.01"):
        train_fleet(digits, template, recipe(head_rate=1e-2), RATES, SEEDS, checkpoints=tmp_path / "none")
    assert not (tmp_path / "none").exists()
