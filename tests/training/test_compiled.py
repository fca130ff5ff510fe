"""Compiled fleets compute what uncompiled ones do; they are made where it pays and where it can be done."""

from functools import partial

import pytest
import torch
from small_models import short_recipe

import fpt.models
import fpt.tasks
from fpt.training import resources
from fpt.training.evaluate import even, score
from fpt.training.fleet import Fleet
from fpt.training.loop import Training

CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 1e-2], [0, 5]


@pytest.fixture
def task():
    return fpt.tasks.load("digits")


recipe = partial(short_recipe, steps=12, evaluations=4, evaluation_examples=20, dropout=0.1)


@pytest.fixture
def compiler(monkeypatch) -> None:
    """Without a C++ compiler the same graph is traced, and interpreted."""
    if not resources.can_compile():
        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))


def calls(fleet: Fleet) -> list[int]:
    """How many runs each call of the compiled function had, from now on."""
    seen, function = [], fleet._forward_all
    assert function != fleet._forward
    fleet._forward_all = lambda pieces, *others: (seen.append(len(pieces[0])), function(pieces, *others))[1]
    return seen


@pytest.mark.slow  # a minute of the C++ compiler
@pytest.mark.parametrize(
    ("backbone", "init", "policy", "layers"),
    [("small-gpt2", "pretrained", "fpt", 2), ("small-bert", "random", "all", 1)],
)
def test_a_compiled_fleet_computes_the_same(backbone, init, policy, layers, task, small_backbones, compiler) -> None:
    template = fpt.models.build(task, backbone, init, policy, layers=layers)
    plain, quick = (Fleet(task, template, recipe(), RATES, SEEDS, CPU, flag) for flag in (False, True))
    seen = calls(quick)
    for step in range(1, 6):
        torch.testing.assert_close(quick.step(step), plain.step(step), rtol=0, atol=1e-5)
    quick.load({name: tensor.clone() for name, tensor in quick.state().items()})  # as after a crash
    torch.testing.assert_close(quick.step(6), plain.step(6), rtol=0, atol=1e-5)
    assert seen == [4] * 6
    examples = Training(quick).validation
    for fleet in (plain, quick):
        fleet.active = fleet.subset(torch.tensor([[0], [3]]))  # others than all of them are not compiled
    torch.testing.assert_close(quick.step(7), plain.step(7), rtol=0, atol=1e-5)
    assert len(seen) == 6
    whole, part = (score(quick, quick.parameters, examples, subset) for subset in (quick.all_runs, quick.active))
    torch.testing.assert_close(whole.loss[[0, 3]], part.loss, rtol=0, atol=1e-6)


def test_runs_leave_a_compiled_fleet_when_they_are_half_of_it(task, small_backbones, monkeypatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    template = fpt.models.build(task, "small-gpt2", "random")
    rates = [1e-3, 3e-3, 1e-2, 3e-2]
    for flag, lost, left in ((False, [3], 3), (True, [3], 4), (True, [2, 3], 2)):
        fleet = Fleet(task, template, recipe(), rates, [0], CPU, flag)
        fleet.alive[lost] = False
        fleet.release()
        assert len(fleet.active.places) == left


@pytest.mark.parametrize(
    ("count", "most", "size"), [(300, 12, 12), (300, 51, 50), (10_000, 25, 25), (397, 50, 50), (5, 8, 5)]
)
def test_parts_divide_the_examples_where_they_can(count, most, size) -> None:
    assert even(count, most) == size
