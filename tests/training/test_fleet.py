"""A fleet against the plain loop, and what must never change: frozen tensors, neighbours, the caller's generator."""

import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_loop import ALL, apart, plain_run, trained
from small_models import short_recipe as recipe

import fpt.models
import fpt.tasks
from fpt.errors import FptError
from fpt.training import evaluate, resources, train_fleet
from fpt.training.fleet import Fleet, stack
from fpt.training.loop import Training

CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 1e-2], [0, 5]


def in_double(fleet: Fleet) -> Fleet:
    """The same fleet with every tensor, and every product, in float64."""
    fleet.parameters = fleet.parameters.double()
    fleet.shared, fleet.per_seed = (
        {name: value.double() for name, value in held.items()} for held in (fleet.shared, fleet.per_seed)
    )
    fleet.all_runs = fleet.active = fleet.subset(fleet.all_runs.rows)
    fleet.module.set_compute_type(torch.float64)
    fleet._make_optimizers()
    encode = fleet.encode
    fleet.encode = lambda *arguments: encode(*arguments).double()
    return fleet


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("backbone", "arm"),
    [
        ("small-gpt2", "frozen-random"),
        ("small-bert", "unfrozen-pretrained"),
        *(slow("small-gpt2", arm) for arm in ("frozen-pretrained", "unfrozen-pretrained", "unfrozen-random")),
        *(slow("small-bert", arm) for arm in ("frozen-pretrained", "frozen-random", "unfrozen-random")),
    ],
)
def test_a_fleet_equals_the_plain_loop(backbone, arm, digits, small_backbones):
    """In double precision, after 100 steps. At rates ten times as large the unfrozen arms of models this small are
    chaotic: what is rounding here becomes a difference in the first digit there, in a plain loop as well."""
    rates, how = [3e-4, 1e-3], recipe(steps=100, clip=None)  # torch's fused Adam takes the clipping factor in float32
    template = fpt.models.build(digits, backbone, arm=arm)
    fleet = trained(in_double(Fleet(digits, template, how, rates, SEEDS, CPU)), 100)
    # By seed, then by rate. The middle two of four rows would tell a fleet whose rows are the other way round.
    for row, (seed, rate) in ((1, (SEEDS[0], rates[1])), (2, (SEEDS[1], rates[0]))):
        expected, _ = plain_run(digits, template, how, rate, seed, torch.float64)
        assert apart(fleet, row, expected) < 1e-9


@pytest.mark.parametrize(
    "changes",
    [
        {"dropout": 0.3},
        {"warmup": 0.9, "clip": None},
        slow({"warmup": 0.01}),
        *(slow({name: value}) for name, value in ALL.items()),
        ALL,
        ALL | {"warmup": 0.25, "dropout": 0.1},
    ],
    ids="+".join,
)
@pytest.mark.parametrize("arm", ["frozen-random", "unfrozen-pretrained"])
def test_whatever_the_recipe_asks_is_what_torchs_own_optimizer_does(arm, changes, digits, small_backbones):
    template, how = fpt.models.build(digits, "small-gpt2", arm=arm), recipe(steps=20, **changes)
    fleet = trained(Fleet(digits, template, how, RATES, SEEDS, CPU), 20)
    for row, (seed, rate) in ((1, (SEEDS[0], RATES[1])), (2, (SEEDS[1], RATES[0]))):
        assert apart(fleet, row, plain_run(digits, template, how, rate, seed)[0]) < 1e-5


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rates=st.lists(st.sampled_from([3e-4, 1e-3, 3e-3, 1e-2]), unique=True, min_size=1),
    seeds=st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=4),
    kind=st.sampled_from(["float32", "bfloat16"]),
    data=st.data(),
)
def test_a_run_is_itself_in_every_fleet(rates, seeds, kind, data, digits, small_backbones):
    rate, seed = data.draw(st.sampled_from(rates)), data.draw(st.sampled_from(seeds))
    template = fpt.models.build(digits, "small-gpt2", "random", "all")
    how = recipe(**ALL, dropout=0.1, warmup=0.25, compute_type=kind)
    among, alone = (trained(Fleet(digits, template, how, *runs, CPU), 4) for runs in ((rates, seeds), ([rate], [seed])))
    row = seeds.index(seed) * len(rates) + rates.index(rate)
    rtol, atol = (1e-4, 1e-5) if kind == "float32" else (0.1, 1e-2)
    torch.testing.assert_close(among.parameters[row], alone.parameters[0], rtol=rtol, atol=atol)


def test_frozen_tensors_are_held_once_or_once_a_seed(digits, small_backbones):
    pretrained = Fleet(digits, fpt.models.build(digits, "small-gpt2"), recipe(), RATES, SEEDS, CPU)
    assert not pretrained.per_seed
    random = Fleet(digits, fpt.models.build(digits, "small-gpt2", "random"), recipe(), RATES, SEEDS, CPU)
    assert all(len(value) == len(SEEDS) for value in random.per_seed.values())
    assert "backbone.h.0.attn.c_attn.weight" in random.per_seed


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_diverged_runs_leave_at_the_next_evaluation(dropout, digits, small_backbones):
    template = fpt.models.build(digits, "small-gpt2", "random", "all")
    rates, calm = [1e-3, 1e30, 1e-2], recipe(steps=12, dropout=dropout)
    left, stayed = (Training(Fleet(digits, template, calm, rates, [0, 5], CPU)) for _ in range(2))
    stayed.fleet.release = lambda: None
    for training in (left, stayed):
        for _ in range(12):
            training.step()
    assert left.fleet.active.rows.tolist() == [[0, 2], [3, 5]]  # their place in the parameter matrix
    assert stayed.fleet.active.rows.tolist() == [[0, 1, 2], [3, 4, 5]]
    keep = left.fleet.active.places
    torch.testing.assert_close(left.fleet.parameters[keep], stayed.fleet.parameters[keep], rtol=1e-5, atol=1e-6)
    for name, table in left.tables().items():  # a run that left is in the tables all the same
        pd.testing.assert_frame_equal(table, stayed.tables()[name], rtol=1e-5)


def test_one_diverged_run_leaves_only_with_company(digits, small_backbones):
    """Seeds x rates stays a rectangle; seeds of which nothing lives leave as well, and at last everybody."""
    fleet = Fleet(digits, fpt.models.build(digits, "small-gpt2", "random"), recipe(), [1e-3, 1e-2], [0, 5, 7], CPU)
    living = torch.tensor([[True, True], [True, False], [False, False]])
    fleet.alive.copy_(living.flatten())
    fleet.release()
    assert fleet.active.rows.tolist() == [[0, 1], [2, 3]]
    assert fleet.active.seeds == [0, 1]
    assert all(len(value) == 2 for value in fleet.active.per_seed.values())
    fleet.alive[0] = False
    fleet.release()
    assert fleet.active.rows.tolist() == [[1], [2]]
    fleet.step(1)
    fleet.alive.zero_()
    fleet.release()
    assert fleet.active.places == []


def test_a_fleet_of_which_nothing_lives_costs_nothing_and_has_its_tables(digits, small_backbones, monkeypatch):
    steps, real = [], Fleet.step
    monkeypatch.setattr(Fleet, "step", lambda fleet, step: (steps.append(step), real(fleet, step))[1])
    result = train_fleet(digits, fpt.models.build(digits, "small-gpt2", "pretrained", "all"), recipe(), [1e30], [0, 5])
    assert steps == [1]  # until the first evaluation
    assert len(result.curves) == 2 * len(recipe().evaluation_steps())
    assert result.runs["diverged_at"].tolist() == [1, 1]


def test_neighbours_of_a_diverged_run_are_bit_for_bit_unchanged(digits, small_backbones):
    template, how = fpt.models.build(digits, "small-gpt2", "pretrained", "all"), recipe(steps=20, dropout=0.1, **ALL)
    calm, wild = (trained(Fleet(digits, template, how, [1e-3, rate], [0], CPU), 12) for rate in (1e-2, 1e30))
    assert wild.alive.tolist() == [True, False]
    assert torch.equal(calm.parameters[0], wild.parameters[0])
    last = wild.parameters[1].clone()
    assert last.isfinite().all()
    wild.step(13)
    assert torch.equal(wild.parameters[1], last), "it moves and decays no more"


def test_the_same_fleet_twice_is_bit_for_bit_the_same(digits, small_backbones):
    template = fpt.models.build(digits, "small-gpt2", "random")
    before = torch.get_rng_state()
    results = [train_fleet(digits, template, recipe(dropout=0.1), RATES, SEEDS) for _ in range(2)]
    assert results[0].runs.equals(results[1].runs)
    assert results[0].curves.equals(results[1].curves)
    assert torch.equal(before, torch.get_rng_state())  # the caller's generator was not touched


def test_whole_string_accuracy_is_at_most_bit_accuracy(small_backbones):
    task = fpt.tasks.load("bit-xor", length=3)
    runs = train_fleet(task, fpt.models.build(task, "small-gpt2"), recipe(steps=2), [1e-3], [0]).runs
    assert 0 < runs["test_accuracy_exact"].item() < runs["test_accuracy"].item() < 1


def test_dropout_acts_in_training_and_not_in_evaluation(digits, small_backbones):
    template = fpt.models.build(digits, "small-gpt2")
    losses, scores = [], []
    for rate in (0.0, 0.5):
        fleet = Fleet(digits, template, recipe(dropout=rate), RATES, SEEDS, CPU)
        scores.append(evaluate.score(fleet, fleet.parameters, stack([split.test for split in fleet.splits])))
        losses.append(fleet.step(1))
    assert (losses[0] != losses[1]).all()
    assert torch.equal(scores[0].loss, scores[1].loss)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=["cuda", "cpu"],
)
def test_a_fleet_that_runs_out_of_memory_is_halved(error, digits, small_backbones, monkeypatch):
    template = fpt.models.build(digits, "small-gpt2")
    whole = train_fleet(digits, template, recipe(dropout=0.1), RATES, SEEDS)
    real = Fleet.step

    def step(fleet, *arguments):
        if len(fleet.rates) * len(fleet.seeds) > 1 or fleet.seeds == [7]:
            raise error
        if fleet.seeds == [9]:
            raise RuntimeError("another error")
        return real(fleet, *arguments)

    monkeypatch.setattr(Fleet, "step", step)
    halved = train_fleet(digits, template, recipe(dropout=0.1), RATES, SEEDS)
    assert halved.parts == [(1, 1)] * 4
    assert (halved.runs["test_accuracy"] - whole.runs["test_accuracy"]).abs().max() <= 2 / 400
    with pytest.raises(FptError, match=r"one run alone \(learning rate 0.001, seed 7\) ran out of memory"):
        train_fleet(digits, template, recipe(), [1e-3], [7])
    with pytest.raises(RuntimeError, match="another error"):
        train_fleet(digits, template, recipe(), [1e-3], [9])


def test_progress_reaches_the_end(digits, small_backbones):
    seen = []
    template = fpt.models.build(digits, "small-gpt2")
    train_fleet(digits, template, recipe(), [1e-3], [0], progress=lambda *at: seen.append(at))
    assert seen[-1] == (6, 6)
    assert seen == sorted(seen)


def test_progress_counts_the_runs_of_every_part(digits, small_backbones, monkeypatch):
    seen = []
    template = fpt.models.build(digits, "small-gpt2")
    monkeypatch.setattr(resources, "split", lambda *_: [([1e-3], [0, 1, 2]), ([1e-3], [3])])
    train_fleet(digits, template, recipe(), [1e-3], [0, 1, 2, 3], progress=lambda *at: seen.append(at))
    assert {18, 24} <= {done for done, _ in seen}  # 6 steps of 3 runs, then of 1
    assert {total for _, total in seen} == {24}
    assert seen == sorted(seen)
