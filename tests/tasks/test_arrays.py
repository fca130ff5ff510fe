"""Splits: what every task promises about its examples, by properties."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fpt.tasks
from fpt.errors import SpecError
from fpt.seeds import generator
from fpt.tasks import arrays
from fpt.tasks.arrays import Examples, Finite
from fpt.tasks.task import FiniteSplit, Task, token_order

SEEDS = st.integers(0, 1_000)


def numbered(size: int, classes: int, divide: arrays.Divide | None, tests: int = 30, official: bool = True) -> Task:
    """A task whose inputs are the row numbers, so that every example can be recognised; an official test set's are
    10,000 and more."""
    rows, labels = torch.arange(size)[:, None], torch.arange(size) % classes
    test = Examples(10_000 + torch.arange(tests)[:, None], torch.arange(tests)[:, None] % classes)
    data = Finite(Examples(rows, labels[:, None], rows[:, 0] + 1), test if official else tests, divide)
    return Task(
        data, arrays.symbols, tokens=1, width=1, classes=classes, checksum="", source="", licence="", scaling=""
    )


def numbers(part: Examples) -> list[int]:
    return part.inputs[:, 0].tolist()


def parts_of(task: Task, seed: int) -> list[list[int]]:
    """Training, validation and test examples of a seed."""
    split = task.split(seed)
    return [numbers(part) for part in (split.train_sample(), split.validation, split.test)]


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, size=st.integers(40, 90), batch=st.integers(1, 30), epoch=st.integers(0, 3))
def test_an_epoch_visits_every_training_example_at_most_once(seed: int, size: int, batch: int, epoch: int) -> None:
    split = numbered(size, 4, partial(arrays.hold_out, count=10)).split(seed)
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
    task = fpt.tasks.load(name)
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
    fraction=st.sampled_from([1.0, 0.5, 0.3]),
)
def test_no_example_is_in_two_parts(
    seed: int, size: int, tests: int, official: bool, divided: bool, fraction: float
) -> None:
    divide = partial(arrays.hold_out, count=10) if divided else None
    task = numbered(size, 4, divide, tests, official).reduced(fraction)
    train, validation, test = parts_of(task, seed)
    assert len({*train, *validation, *test}) == len(train) + len(validation) + len(test)
    assert parts_of(task, seed) == [train, validation, test]
    assert all(number >= 10_000 for number in test) == official
    assert task.test_drawn_by_seed == (not official)
    assert (len(test), len(validation)) == ((tests, 10) if divided else (tests - tests // 2, tests // 2))
    assert task.test_size == len(test)
    left = size - (0 if official else tests) - (10 if divided else 0)
    assert len(train) == round(fraction * left)


def test_digits_keep_their_sizes() -> None:
    task = fpt.tasks.load("digits")
    split = task.split(7)
    assert (split.train_size, len(split.validation), len(split.test)) == (1_097, 300, 400)
    for part in (split.validation, split.test):  # every class by its share
        assert part.targets[:, 0].bincount().min() >= len(part) // 11


def test_a_single_test_example_is_not_halved() -> None:
    with pytest.raises(SpecError, match="half of the test examples is validation here, and there is only 1"):
        numbered(40, 4, None, tests=1).split(0)


def test_every_example_is_in_every_part_of_some_seed() -> None:
    """With classes of one example, too: where remainders are equal, chance decides and not the order of the classes."""
    task = numbered(30, 30, None, tests=4, official=False)
    for place in (1, 2):
        drawn = {number for seed in range(60) for number in parts_of(task, seed)[place]}
        assert drawn == set(range(30))


def test_every_epoch_of_every_seed_has_an_order_of_its_own() -> None:
    task = numbered(40, 4, partial(arrays.last_rows, count=10))  # the same rows for all seeds
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
    stream = fpt.tasks.load("bit-memory")
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


def test_the_last_rows_are_validation_for_every_seed() -> None:
    for seed in (0, 5):
        split = numbered(50, 5, partial(arrays.last_rows, count=10)).split(seed)
        assert split.validation.inputs[:, 0].tolist() == list(range(40, 50))


def test_hold_out_equally_takes_as_many_of_every_class() -> None:
    labels = torch.tensor([0] * 30 + [1] * 10)
    train, validation = arrays.hold_out_equally(labels, 0, count=4)
    assert labels[validation].bincount().tolist() == [4, 4]
    assert len(train) == 32


def test_a_batch_over_the_split_is_refused_with_both_numbers() -> None:
    split = numbered(40, 4, partial(arrays.hold_out, count=10)).split(0)
    with pytest.raises(SpecError, match=r"batch_size 31 .* 30 training examples"):
        split.batch(0, 31)


def test_lengths_travel_with_their_examples() -> None:
    split = numbered(40, 4, partial(arrays.hold_out, count=10)).split(0).to("cpu")
    for part in (split.batch(2, 8), split.validation, split.train_sample(9), split.validation[:3].to("cpu")):
        assert part.lengths is not None
        assert torch.equal(part.lengths, part.inputs[:, 0] + 1)


def test_the_training_data_are_copied_once_a_device() -> None:
    task = numbered(40, 4, partial(arrays.hold_out, count=10))
    device = torch.device("meta")
    one, two = task.split(0), task.split(1)
    assert isinstance(task.data, Finite)
    assert isinstance(one, FiniteSplit)
    assert isinstance(two, FiniteSplit)
    assert one.to(device).source is two.to(device).source is task.data.train_on(device)


def test_digest_sees_shapes_types_and_values() -> None:
    tensor = torch.arange(6)
    variants = [tensor, tensor.int(), tensor.reshape(2, 3), tensor.flip(0)]
    assert len({arrays.digest(variant) for variant in variants}) == 4
    assert arrays.digest(tensor) == arrays.digest(tensor.clone())


# --- a part of the training examples


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, fraction=st.floats(0.06, 1))
def test_a_reduced_task_trains_on_a_stratified_part(seed: int, fraction: float) -> None:
    whole = numbered(110, 4, partial(arrays.hold_out, count=10))
    task = whole.reduced(fraction)
    train, validation, test = parts_of(task, seed)
    everything, *others = parts_of(whole, seed)
    assert [validation, test] == others
    assert set(train) <= set(everything)
    assert len(train) == round(100 * fraction)
    labels = torch.tensor(train) % 4
    assert all(abs(int((labels == label).sum()) - len(train) / 4) <= 1 for label in range(4))
    batch = task.split(seed).batch(0, len(train))
    assert sorted(numbers(batch)) == train
    assert task.checksum == whole.checksum


def test_the_seed_draws_the_part_and_parts_of_parts_multiply() -> None:
    whole = numbered(110, 4, partial(arrays.last_rows, count=10))
    half = whole.reduced(0.5)
    assert parts_of(half, 0)[0] != parts_of(half, 1)[0]
    assert parts_of(half.reduced(0.5), 0) == parts_of(whole.reduced(0.25), 0)
    assert whole.reduced(1.0) is whole
    assert (half.changes, whole.changes["data_fraction"]) == ({"data_fraction": 0.5, "shuffle_tokens": False}, 1.0)
    assert half.card["train"] == 50


@pytest.mark.parametrize(
    ("name", "fraction", "message"),
    [
        ("digits", 0.0, r"data_fraction = 0.0: must be above 0 and at most 1"),
        ("bit-xor", float("nan"), r"data_fraction = nan: must be above 0 and at most 1"),
        ("digits", 0.005, r"0.005 leaves 5 of the 1,097 .* 'digits', fewer than its 10"),
        ("bit-xor", 0.5, r"data_fraction = 0.5: task 'bit-xor' .* drawn afresh at every step"),
    ],
)
def test_no_part_is_taken_where_there_is_none(name: str, fraction: float, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        fpt.tasks.load(name).reduced(fraction)
    assert fpt.tasks.load(name).reduced(1).changes["data_fraction"] == 1


# --- tokens in another order


@pytest.mark.parametrize(("name", "variant"), [("digits", "paper"), ("mnist", "paper"), ("cifar10", "augmented")])
def test_shuffled_tokens_have_one_order_for_everything(name: str, variant: str, fixtures: Path) -> None:
    plain = fpt.tasks.load(name, fixtures, variant)
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


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("digits", {"vocabulary": 17}, "sequences of symbols"),
        ("digits", {"mask_padding": True}, "end at different places"),
        ("bit-xor", {}, "last 5 tokens are read out"),
    ],
)
def test_what_cannot_be_shuffled_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=f"shuffle_tokens: the tokens of task '{name}' cannot be shuffled.* {message}"):
        replace(fpt.tasks.load(name), **changes).shuffled()


def test_changes_of_the_examples_keep_every_seeds_rows() -> None:
    for official in (True, False):
        task = numbered(60, 4, partial(arrays.hold_out, count=10), 20, official).reduced(0.5)
        assert isinstance(task.data, Finite)
        negative = replace(task, data=task.data.each(lambda part: replace(part, inputs=-part.inputs)))
        assert parts_of(negative, 3) == [[-number for number in part] for part in parts_of(task, 3)]
