"""Splits: what every task promises about its examples, by properties."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fpt.tasks
from fpt.errors import SpecError
from fpt.seeds import generator
from fpt.tasks import arrays
from fpt.tasks.arrays import Examples, Finite, Task

SEEDS = st.integers(0, 1_000)


def numbered(size: int, classes: int, divide: arrays.Divide, tests: int = 30) -> Task:
    """A task whose inputs are the row numbers, so that every example can be recognised."""
    rows, labels = torch.arange(size)[:, None], torch.arange(size) % classes
    test = Examples(torch.arange(tests)[:, None], torch.arange(tests)[:, None] % classes)
    data = Finite(Examples(rows, labels[:, None], rows[:, 0] + 1), test, divide)
    return Task(data, arrays.symbols, tokens=1, classes=classes, checksum="", source="", licence="", scaling="")


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


def test_seeds_share_the_test_set_and_nothing_else() -> None:
    for name in ("digits", "bit-xor", "listops-short"):
        one, two = (fpt.tasks.load(name).split(seed) for seed in (0, 1))
        assert torch.equal(one.test.inputs, two.test.inputs)
        assert not torch.equal(one.batch(0, 8).inputs, two.batch(0, 8).inputs)
    assert not torch.equal(
        fpt.tasks.load("digits").split(0).validation.inputs,
        fpt.tasks.load("digits").split(1).validation.inputs,
    )


def test_consecutive_epochs_have_different_orders() -> None:
    split = numbered(40, 4, partial(arrays.hold_out, count=10)).split(0)
    assert not torch.equal(split.batch(0, 30).inputs, split.batch(1, 30).inputs)


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


def test_samples_are_fixed_stratified_and_whole_by_default() -> None:
    split = numbered(400, 4, partial(arrays.hold_out, count=100)).split(3)
    for sample, size in ((split.train_sample, 300), (split.validation_sample, 100), (split.test_sample, 30)):
        assert len(sample(None)) == len(sample(10_000)) == size
        some = sample(20)
        assert torch.equal(some.inputs, sample(20).inputs)
        assert some.targets[:, 0].bincount().tolist() == [5, 5, 5, 5]
    train = set(split.train_sample(None).inputs[:, 0].tolist())
    assert set(split.train_sample(20).inputs[:, 0].tolist()) <= train


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
    assert isinstance(one, arrays.FiniteSplit)
    assert isinstance(two, arrays.FiniteSplit)
    assert one.to(device).source is two.to(device).source is task.data.train_on(device)


def test_digest_sees_shapes_types_and_values() -> None:
    tensor = torch.arange(6)
    variants = [tensor, tensor.int(), tensor.reshape(2, 3), tensor.flip(0)]
    assert len({arrays.digest(variant) for variant in variants}) == 4
    assert arrays.digest(tensor) == arrays.digest(tensor.clone())
