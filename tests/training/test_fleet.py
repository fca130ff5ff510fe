"""A fleet against the plain loop, compiled or not, of every family; and what must never change: frozen tensors,
neighbours, the caller's generator."""

import gc
import weakref
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_loop import ALL, apart, plain_run, trained
from small_models import short_recipe as recipe
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

import fpt.models
import fpt.tasks
from fpt.errors import FptError
from fpt.training import compute, features, memory, train_fleet
from fpt.training.evaluate import even, score
from fpt.training.fleet import Fleet, stack
from fpt.training.layout import LARGE
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


@pytest.mark.parametrize(("backbone", "arm"), [("small-gpt2", "frozen-random"), ("small-bert", "unfrozen-pretrained")])
def test_a_fleet_equals_the_plain_loop(backbone, arm, digits, small_backbones):
    """In double precision, after 20 steps. At rates ten times as large the unfrozen arms of models this small are
    chaotic: what is rounding here becomes a difference in the first digit there, in a plain loop as well."""
    rates, how = [3e-4, 1e-3], recipe(steps=20, clip=None)  # torch's fused Adam takes the clipping factor in float32
    template = fpt.models.build(digits, backbone, arm=arm)
    fleet = trained(in_double(Fleet(digits, template, how, rates, SEEDS, CPU)), 20)
    # By seed, then by rate. The middle two of four rows would tell a fleet whose rows are the other way round.
    for row, (seed, rate) in ((1, (SEEDS[0], rates[1])), (2, (SEEDS[1], rates[0]))):
        expected, _ = plain_run(digits, template, how, rate, seed, torch.float64)
        assert apart(fleet, row, expected) < 1e-9


@pytest.mark.parametrize(
    "changes", [{"warmup": 0.9, "clip": None}, ALL | {"warmup": 0.25, "dropout": 0.1}], ids="+".join
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
    keep = left.fleet.active.row_numbers
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
    assert fleet.active.seed_numbers == [0, 1]
    assert all(len(value) == 2 for value in fleet.active.per_seed.values())
    fleet.alive[0] = False
    fleet.release()
    assert fleet.active.rows.tolist() == [[1], [2]]
    fleet.step(1)
    fleet.alive.zero_()
    fleet.release()
    assert fleet.active.row_numbers == []


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


def test_a_fleet_that_runs_out_of_memory_is_halved(digits, small_backbones, monkeypatch):
    template = fpt.models.build(digits, "small-gpt2")
    whole = train_fleet(digits, template, recipe(dropout=0.1), RATES, SEEDS)
    real = Fleet.step

    def step(fleet, *arguments):
        if len(fleet.rates) * len(fleet.seeds) > 1 or fleet.seeds == [7]:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory")
        if fleet.seeds == [9]:
            raise RuntimeError("another error")
        return real(fleet, *arguments)

    monkeypatch.setattr(Fleet, "step", step)
    halved = train_fleet(digits, template, recipe(dropout=0.1), RATES, SEEDS)
    assert halved.parts == [(1, 1)] * 4
    assert halved.runs[["learning_rate", "seed"]].equals(whole.runs[["learning_rate", "seed"]])
    assert (halved.runs["test_accuracy"] - whole.runs["test_accuracy"]).abs().max() <= 2 / 400
    with pytest.raises(FptError, match=r"one run alone \(learning rate 0.001, seed 7\) ran out of memory"):
        train_fleet(digits, template, recipe(), [1e-3], [7])
    with pytest.raises(RuntimeError, match="another error"):
        train_fleet(digits, template, recipe(), [1e-3], [9])


def test_progress_counts_the_runs_of_every_part_to_the_end(digits, small_backbones, monkeypatch):
    seen = []
    template = fpt.models.build(digits, "small-gpt2")
    monkeypatch.setattr(memory, "split", lambda *_: [([1e-3], [0, 1, 2]), ([1e-3], [3])])
    train_fleet(digits, template, recipe(), [1e-3], [0, 1, 2, 3], progress=lambda *at: seen.append(at[:2]))
    assert {18, 24} <= {done for done, _ in seen}  # 6 steps of 3 runs, then of 1
    assert {total for _, total in seen} == {24}
    assert seen == sorted(seen)


@pytest.mark.parametrize("policy", ["fpt", "all"])
def test_with_the_defaults_there_is_one_group_and_each_large_tensor_is_a_piece(policy, digits):
    template = fpt.models.build(digits, "tiny-lm", "random", policy, layers=1)
    fleet = Fleet(digits, template, recipe(), RATES, SEEDS, CPU)
    sizes = {name: template.shapes[name].numel() for name in template.trainable}
    assert fleet.layout.names == sorted(template.trainable, key=lambda name: sizes[name] >= LARGE)
    large = [size for size in sizes.values() if size >= LARGE]
    assert [piece.size for piece in fleet.layout.pieces] == [sum(sizes.values()) - sum(large), *large]
    assert all(len(optimizer.param_groups) == 1 for optimizer in fleet.optimizers)


def calls(fleet: Fleet) -> list[int]:
    """How many runs each call of the compiled function had, from now on."""
    seen, function = [], fleet._compiled
    assert function is not None
    fleet._compiled = lambda pieces, *others: (seen.append(len(pieces[0])), function(pieces, *others))[1]
    return seen


@pytest.mark.parametrize(
    ("backbone", "init", "policy", "changes", "compiled"),
    [
        slow("small-gpt2", "random", "all", ALL, False),  # traced, and interpreted
        slow("small-gpt2", "pretrained", "fpt", {}, True),  # a minute of the C++ compiler, where there is one
        slow("small-bert", "random", "all", {}, True),
    ],
)
def test_a_compiled_fleet_computes_the_same(
    backbone, init, policy, changes, compiled, digits, small_backbones, monkeypatch
):
    if not (compiled and compute.can_compile()):
        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    template = fpt.models.build(digits, backbone, init, policy, layers=1 if policy == "all" else 2)
    how = recipe(steps=12, dropout=0.1, **changes)
    plain, quick = (Fleet(digits, template, how, RATES, SEEDS, CPU, flag) for flag in (False, True))
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


def test_runs_leave_a_compiled_fleet_when_they_are_half_of_it(digits, small_backbones, monkeypatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    template = fpt.models.build(digits, "small-gpt2", "random")
    rates = [1e-3, 3e-3, 1e-2, 3e-2]
    for flag, lost, left in ((False, [3], 3), (True, [3], 4), (True, [2, 3], 2)):
        fleet = Fleet(digits, template, recipe(), rates, [0], CPU, flag)
        fleet.alive[lost] = False
        fleet.release()
        assert len(fleet.active.row_numbers) == left


@pytest.mark.parametrize(
    ("count", "most", "size"), [(300, 12, 12), (300, 51, 50), (10_000, 25, 25), (397, 50, 50), (5, 8, 5)]
)
def test_parts_divide_the_examples_where_they_can(count, most, size) -> None:
    assert even(count, most) == size


@pytest.mark.usefixtures("small_lstms")
def test_every_forward_pass_of_the_released_cell_starts_elsewhere(digits):
    """In training at every step, at evaluation for every example; from streams of the seed, whatever the fleet."""
    template = fpt.models.build(digits, "small-lstm-released", "random", ["output"])
    fleet = Fleet(digits, template, recipe(), RATES, SEEDS, CPU)
    first, second = (fleet.noise(fleet.active, 8, step) for step in (1, 2))
    assert first.shape == (2, 8, 2, 2, 16)
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])
    example = stack([split.test[:1] for split in fleet.splits])
    twice = stack([split.test[torch.tensor([0, 0])] for split in fleet.splits])
    one, other = (score(fleet, fleet.parameters, part).loss for part in (example, twice))
    assert (one != other).all()  # the second copy has another start
    assert not features.constant(digits, template, recipe())
    assert features.constant(digits, fpt.models.build(digits, "small-lstm", "random", ["output"]), recipe())


@pytest.mark.usefixtures("small_lstms")
def test_evaluation_starts_every_example_where_it_does_in_a_larger_part(digits, monkeypatch):
    """torch fills blocks of 16 numbers: at another width one draw is not the same as two, one after the other."""
    small = fpt.models.BACKBONES["small-lstm-released"]
    odd = replace(small, config={**small.config, "width": 7})
    monkeypatch.setitem(fpt.models.BACKBONES, "small-lstm-released", odd)
    template = fpt.models.build(digits, "small-lstm-released", "random", ["output"])
    fleet = Fleet(digits, template, recipe(), RATES, SEEDS, CPU)
    examples = stack([split.test[:30] for split in fleet.splits])
    whole = score(fleet, fleet.parameters, examples).loss
    monkeypatch.setattr("fpt.training.evaluate.TOKENS_AT_ONCE", digits.tokens * len(fleet.active.row_numbers) * 7)
    torch.testing.assert_close(score(fleet, fleet.parameters, examples).loss, whole)


def test_large_tensors_that_take_no_part_have_no_gradient(digits, small_backbones, monkeypatch):
    """In a Longformer of real size each global projection is a piece of its own, of which a gradient is asked."""
    monkeypatch.setattr("fpt.training.layout.LARGE", 256)
    template, rates = fpt.models.build(digits, "small-longformer", "random", "all"), [3e-4, 1e-3]
    fleet = Fleet(digits, template, recipe(), rates, SEEDS, CPU)
    assert len(fleet.layout.pieces) > 10
    losses = torch.stack([fleet.step(step) for step in range(1, 4)]).T
    expected = [plain_run(digits, template, recipe(steps=3), rate, seed)[1] for seed in SEEDS for rate in rates]
    torch.testing.assert_close(losses, torch.tensor(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("backbone", "of_backbone"),
    # a block: attention, its output, the feed-forward layer; T5 inside that as well, before the blocks and after them
    [("gpt2", 1 + 3 * 2), ("bert", 1 + 3 * 2), ("t5", 2 + 4 * 2), ("longformer", 1 + 3 * 2), ("vit", 1 + 3 * 2)],
)
def test_dropout_is_everywhere_the_library_has_it_and_in_training_alone(backbone, of_backbone, digits, small_backbones):
    template = fpt.models.build(digits, f"small-{backbone}", "random")
    tokens = digits.encode(digits.split(0).batch(0, 3).inputs)
    shapes = template.module.dropout_shapes(tokens, None)
    assert len(shapes) == 1 + of_backbone  # after the input layer
    # of the last block of these only what is read out: three rows, or three times two heads of them
    reads_out = sum(shape in {(3, 1, 16), (3, 2, 1, 16), (3, 1, 32)} for shape in shapes)
    assert reads_out == (3 if backbone in ("gpt2", "bert") else 0)
    fleet, plain = (Fleet(digits, template, recipe(dropout=rate), RATES, SEEDS, CPU) for rate in (0.5, 0.0))
    drawn = stack([split.test_sample(30) for split in fleet.splits])
    assert torch.equal(*(score(each, each.parameters, drawn).loss for each in (fleet, plain)))  # not in evaluation
    losses = fleet.step(1).view(2, 2)
    assert torch.equal(losses[:, 0], losses[:, 1])  # the same weights, and masks that are the seed's
    assert (losses != plain.step(1).view(2, 2)).all()


def needed_flop(template, batch_size):
    """FLOP that one step of one run needs, by a formula; a multiplication and its addition are two.

    A product of n rows with a matrix of w weights takes 2 n w FLOP forward, as much again for the gradient of its
    inputs, and as much again for the gradient of its weights where they train. Attention scores and the sums they weigh
    are two products of activations, with two gradients each. The last block needs keys and values at every token,
    everything else only where BERT's is read out. Masks are not discounted; layer norms, softmax, GELU and Adam are not
    counted, as is the custom.
    """
    task, trains = template.task, template.trainable_groups
    rows, read = batch_size * task.tokens, task.readout if template.backbone.family == "bert" else task.tokens
    above, last = (template.layers - 1) * rows, batch_size * read  # rows of all blocks but the last, and of it

    def products(group):
        """FLOP a row of one block's matrices of a group; no token of Longformer attends globally."""
        names = [name for name, its in template.groups.items() if its == group and "_global." not in name]
        sizes = [template.shapes[name].numel() for name in names if len(template.shapes[name]) == 2]
        return 2 * sum(sizes) // template.layers * (3 if group in trains else 2)

    flop = above * products("attention") + (rows + last) * products("attention") // 2  # half makes keys and values
    flop += (above + last) * (products("feed_forward") + 3 * 2 * 2 * template.task.tokens * template.width)
    flop += 2 * 2 * rows * template.width * (task.width or 0)  # of the input layer; a table is no product
    return flop + 3 * 2 * batch_size * task.readout * template.width * task.output_width


@pytest.mark.parametrize("trainable", ["fpt", "all", "fpt-attention"])
@pytest.mark.parametrize("name", ["bit-xor", "digits"])
@pytest.mark.parametrize("backbone", ["small-bert", "small-t5", "small-longformer", "small-vit"])
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


@pytest.fixture
def no_collector():
    """What is freed within the test, is freed at once or on purpose."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_the_memory_of_a_fleet_is_free_once_nobody_has_it(digits, small_backbones):
    fleet = trained(Fleet(digits, fpt.models.build(digits, "small-gpt2", "random"), recipe(), RATES, SEEDS, CPU), 1)
    held = [weakref.ref(tensor) for tensor in (fleet.parameters, fleet.moments, *fleet.per_seed.values())]
    assert all(tensor() is not None for tensor in held)
    del fleet
    assert all(tensor() is None for tensor in held)


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("compiled", [False, True])
def test_of_a_fleet_that_ran_out_of_memory_nothing_is_left_for_its_halves(
    compiled, digits, small_backbones, monkeypatch
):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(compute, "compiling_pays", lambda *_: compiled)
    first, real = [], Fleet.step

    def step(fleet, *arguments):
        if len(fleet.seeds) > 1:
            first.append(weakref.ref(fleet.parameters))
            raise torch.OutOfMemoryError("CUDA out of memory")
        assert first[0]() is None
        return real(fleet, *arguments)

    monkeypatch.setattr(Fleet, "step", step)
    template = fpt.models.build(digits, "small-gpt2", "random")
    result = train_fleet(digits, template, recipe(steps=2), RATES, SEEDS)
    assert result.parts == [(2, 1), (2, 1)]
    assert result.compiled is compiled
