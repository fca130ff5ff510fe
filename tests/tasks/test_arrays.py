"""Splits: what every task promises about its examples, by properties."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fpt.errors import SpecError
from fpt.seeds import generator
from fpt.tasks import arrays, load
from fpt.tasks.arrays import Examples, Finite
from fpt.tasks.task import FiniteSplit, Task, token_order

SEEDS = st.integers(0, 1_000)
HOLD_OUT = partial(arrays.hold_out, count=10)
LAST = partial(arrays.last_rows, count=10)  # the same rows for all seeds


def numbered(size: int, classes: int, divide: arrays.Divide | None, tests: int = 30, official: bool = True) -> Task:
    """A task whose inputs are the row numbers, so that every example can be recognised; an official test set's are
    10,000 and more."""
    rows, labels = torch.arange(size)[:, None], torch.arange(size) % classes
    test = Examples(10_000 + torch.arange(tests)[:, None], torch.arange(tests)[:, None] % classes)
    data = Finite(Examples(rows, labels[:, None], rows[:, 0] + 1), test if official else tests, divide)
    return Task(data, classes=classes)


def numbers(part: Examples) -> list[int]:
    return part.inputs[:, 0].tolist()


def parts_of(task: Task, seed: int) -> list[list[int]]:
    """Training, validation and test examples of a seed."""
    split = task.split(seed)
    return [numbers(part) for part in (split.train_sample(), split.validation, split.test)]


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, size=st.integers(40, 90), batch=st.integers(1, 30), epoch=st.integers(0, 3))
def test_an_epoch_visits_every_training_example_at_most_once(seed: int, size: int, batch: int, epoch: int) -> None:
    split = numbered(size, 4, HOLD_OUT).split(seed)
    assert split.train_size == size - 10
    steps = split.train_size // batch
    seen = torch.cat([split.batch(epoch * steps + step, batch).inputs[:, 0] for step in range(steps)])
    assert len(seen) == len(seen.unique()) == steps * batch
    validation = split.validation.inputs[:, 0]
    assert not set(seen.tolist()) & set(validation.tolist())
    assert sorted([*split.train_sample().inputs[:, 0].tolist(), *validation.tolist()]) == list(range(size))


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, steps=st.lists(st.integers(0, 200), min_size=1, max_size=8))
@pytest.mark.parametrize("name", ["digits", "bit-xor"])
def test_a_batch_is_a_pure_function_of_seed_and_step(name: str, seed: int, steps: list[int]) -> None:
    task = load(name)
    one = task.split(seed)
    first = [one.batch(step, 8) for step in steps]  # in any order, from one split
    for step, batch in zip(steps, first, strict=True):
        again = task.split(seed).batch(step, 8)
        assert torch.equal(batch.inputs, again.inputs)
        assert torch.equal(batch.targets, again.targets)


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS,
    size=st.integers(50, 90),  # so that a part of what is left has more examples than the four classes
    tests=st.integers(2, 20),
    official=st.booleans(),
    divided=st.booleans(),
    fraction=st.floats(0.3, 1),
)
def test_no_example_is_in_two_parts_and_a_reduced_task_trains_on_a_stratified_one(
    seed: int, size: int, tests: int, official: bool, divided: bool, fraction: float
) -> None:
    whole = numbered(size, 4, HOLD_OUT if divided else None, tests, official)
    task = whole.reduced(fraction)
    train, validation, test = parts_of(task, seed)
    everything, *others = parts_of(whole, seed)
    assert len({*everything, *validation, *test}) == len(everything) + len(validation) + len(test)
    assert all(number >= 10_000 for number in test) == official
    assert task.test_drawn_by_seed == (not official)
    assert (len(test), len(validation)) == ((tests, 10) if divided else (tests - tests // 2, tests // 2))
    assert task.test_size == len(test)
    assert len(everything) == size - (0 if official else tests) - (10 if divided else 0)
    assert ([validation, test], task.checksum) == (others, whole.checksum)
    assert set(train) <= set(everything)
    assert len(train) == round(fraction * len(everything))
    of_class, share = (torch.tensor(part).remainder(4).bincount(minlength=4) for part in (train, everything))
    assert (of_class - share * len(train) / len(everything)).abs().max() < 1
    assert sorted(numbers(task.split(seed).batch(0, len(train)))) == train


def test_digits_keep_their_sizes() -> None:
    task = load("digits")
    split = task.split(7)
    assert (split.train_size, len(split.validation), len(split.test)) == (1_097, 300, 400)
    for part in (split.validation, split.test):  # every class by its share
        assert part.targets[:, 0].bincount().min() >= len(part) // 11


def test_every_example_is_in_every_part_of_some_seed() -> None:
    """With classes of one example, too: where remainders are equal, chance decides and not the order of the classes."""
    task = numbered(30, 30, None, tests=4, official=False)
    for place in (1, 2):
        drawn = {number for seed in range(60) for number in parts_of(task, seed)[place]}
        assert drawn == set(range(30))


def test_every_epoch_of_every_seed_has_an_order_of_its_own() -> None:
    task = numbered(40, 4, LAST)
    orders = {tuple(numbers(task.split(seed).batch(epoch, 30))) for seed in (0, 1) for epoch in (0, 1)}
    assert len(orders) == 4


@settings(max_examples=50, deadline=None)
@given(data=st.data(), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_stratified_gives_every_class_its_share(data: st.DataObject, sizes: list[int]) -> None:
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    labels = labels[torch.randperm(len(labels), generator=generator(0, "test"))]
    count = data.draw(st.integers(1, len(labels)))
    rows = arrays.stratified(labels, count, generator(0, "sample"))
    assert len(rows) == len(rows.unique()) == count
    for label, size in enumerate(sizes):
        assert abs(int((labels[rows] == label).sum()) - count * size / len(labels)) < 1


SAMPLES = {"train_sample": 300, "validation_sample": 100, "test_sample": 30}


def test_samples_are_the_seeds_own_stratified_and_whole_by_default() -> None:
    task = numbered(400, 4, partial(arrays.last_rows, count=100))  # the same parts for every seed
    stream = load("bit-memory")
    for name, size in SAMPLES.items():
        some, again, other = (getattr(stream.split(seed), name)(50).inputs for seed in (3, 3, 4))
        assert torch.equal(some, again)
        assert not torch.equal(some, other)
        draw, again, other = (getattr(task.split(seed), name) for seed in (3, 3, 4))
        assert len(draw(None)) == len(draw(size)) == len(draw(10_000)) == size
        some = draw(20)
        assert torch.equal(some.inputs, again(20).inputs)
        assert not torch.equal(some.inputs, other(20).inputs)
        assert some.targets[:, 0].bincount().tolist() == [5, 5, 5, 5]
        assert set(numbers(some)) < set(numbers(draw(None)))


def test_other_divisions_hold_out_the_last_rows_or_as_many_of_every_class() -> None:
    assert all(parts_of(numbered(50, 5, LAST), seed)[1] == list(range(40, 50)) for seed in (0, 5))
    labels = torch.tensor([0] * 30 + [1] * 10)
    train, validation = arrays.hold_out_equally(labels, 0, count=4)
    assert (labels[validation].bincount().tolist(), len(train)) == ([4, 4], 32)


def test_lengths_travel_with_their_examples() -> None:
    split = numbered(40, 4, HOLD_OUT).split(0).to("cpu")
    for part in (split.batch(2, 8), split.validation, split.train_sample(9), split.validation[:3].to("cpu")):
        assert part.lengths is not None
        assert torch.equal(part.lengths, part.inputs[:, 0] + 1)


def test_the_training_data_are_copied_once_a_device() -> None:
    task = numbered(40, 4, HOLD_OUT)
    device = torch.device("meta")
    one, two = task.split(0), task.split(1)
    assert one.to(device).source is two.to(device).source is task.data.train_on(device)


def test_digest_sees_shapes_types_and_values() -> None:
    tensor = torch.arange(6)
    variants = [tensor, tensor.int(), tensor.reshape(2, 3), tensor.flip(0)]
    assert len({arrays.digest(variant) for variant in variants}) == 4
    assert arrays.digest(tensor) == arrays.digest(tensor.clone())


# --- a part of the training examples


def test_the_seed_draws_the_part_and_parts_of_parts_multiply() -> None:
    whole = numbered(110, 4, LAST)
    half = whole.reduced(0.5)
    assert parts_of(half, 0)[0] != parts_of(half, 1)[0]
    assert parts_of(half.reduced(0.5), 0) == parts_of(whole.reduced(0.25), 0)
    assert whole.reduced(1.0) is whole
    assert load("bit-xor").reduced(1).changes["data_fraction"] == 1
    assert (half.changes, whole.changes["data_fraction"]) == ({"data_fraction": 0.5, "shuffle_tokens": False}, 1.0)
    assert half.card["train"] == 50


# --- tokens in another order


@pytest.mark.parametrize(("name", "variant"), [("digits", "paper"), ("mnist", "paper"), ("cifar10", "augmented")])
def test_shuffled_tokens_have_one_order_for_everything(name: str, variant: str, fixtures: Path) -> None:
    plain = load(name, fixtures, variant)
    task = plain.shuffled()
    order = token_order(plain.tokens, torch.device("cpu"))
    assert sorted(order.tolist()) == list(range(plain.tokens)) != order.tolist()
    for seed in (0, 1):
        split = task.split(seed)
        for part in (split.batch(0, 4), split.validation[:3], split.test[:3]):
            assert torch.equal(task.encode(part.inputs), plain.encode(part.inputs)[:, order])
            seen, augmented = (each.encode(part.inputs, generator(5)) for each in (task, plain))
            assert torch.equal(seen, augmented[:, order])
    assert getattr(task.encode, "augmented", False) == (variant == "augmented")
    assert task.checksum == plain.checksum
    assert [each.changes["shuffle_tokens"] for each in (task, plain)] == [True, False]
    assert task.shuffled() is task
    assert "one random order" in task.card["normalisation"]


def test_changes_of_the_examples_keep_every_seeds_rows() -> None:
    for official in (True, False):
        task = numbered(60, 4, HOLD_OUT, 20, official).reduced(0.5)
        negative = replace(task, data=task.data.each(lambda part: replace(part, inputs=-part.inputs)))
        assert parts_of(negative, 3) == [[-number for number in part] for part in parts_of(task, 3)]


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: numbered(40, 4, None, tests=1).split(0), "half of the test examples is validation here, .* only 1"),
        (lambda: numbered(40, 4, HOLD_OUT).split(0).batch(0, 31), r"batch_size 31 .* 30 of the 40 examples"),
        (lambda: load("digits").reduced(0.005), r"0.005 leaves 5 of the 1,097 .* 'digits', fewer than its 10"),
        (lambda: load("bit-xor").reduced(0.5), r"= 0.5: task 'bit-xor' .* drawn afresh at every step"),
        (lambda: replace(load("digits"), vocabulary=17).shuffled(), "shuffle_tokens: .* 'digits'.* symbols"),
        (lambda: replace(load("digits"), mask_padding=True).shuffled(), "shuffle_tokens: .* end at different places"),
        (lambda: load("bit-xor").shuffled(), "shuffle_tokens: .* 'bit-xor' .* last 5 tokens are read out"),
    ],
)
def test_what_its_examples_do_not_allow_is_refused(attempt: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        attempt()


def texts(count=500, longest=40):
    """Sequences of many lengths, each filled with its own number."""
    lengths = torch.randint(1, longest + 1, (count,), generator=generator(0, "lengths"))
    inputs = (torch.arange(longest) < lengths[:, None]) * torch.arange(1, count + 1)[:, None]
    return Examples(inputs, torch.arange(count)[:, None] % 2, lengths)


@given(seed=st.integers(0, 9), epoch=st.integers(0, 2), size=st.sampled_from([1, 7, 32]))
def test_batches_of_like_length_are_an_epoch_cut_to_their_longest(seed, epoch, size):
    """Every row at most once an epoch; the same batch whatever was asked before; cut to whole eights."""
    split = FiniteSplit(Finite(texts(), 60, HOLD_OUT), seed, by_length=True)
    per_epoch = split.train_size // size
    batches = [split.batch(epoch * per_epoch + place, size) for place in range(per_epoch)]
    rows = torch.cat([batch.inputs[:, 0] for batch in batches])
    assert len(rows.unique()) == len(rows) == per_epoch * size
    for batch in batches:
        longest = int(batch.lengths.max())
        assert batch.inputs.shape[1] == -(-longest // 8) * 8
    again = FiniteSplit(Finite(texts(), 60, HOLD_OUT), seed, by_length=True)
    assert torch.equal(again.batch(epoch * per_epoch + 3, size).inputs, batches[3].inputs)
    if size == 32:  # most of the padding is gone
        spread = [int(batch.lengths.max() - batch.lengths.min()) for batch in batches]
        assert sorted(spread)[len(spread) // 2] <= 8


def test_batches_of_like_length_come_in_no_order_of_length():
    split = FiniteSplit(Finite(texts(2000), 60, HOLD_OUT), 0, by_length=True)
    longest = [float(split.batch(step, 8).lengths.max()) for step in range(100)]
    assert abs(np.corrcoef(longest, range(100))[0, 1]) < 0.3
