"""Bit tasks against plain Python."""

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fpt.seeds import generator
from fpt.tasks import load
from fpt.tasks.bits import draw_memory, draw_xor


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), strings=st.integers(1, 4), length=st.integers(1, 7))
def test_xor_labels(seed: int, strings: int, length: int) -> None:
    examples = draw_xor(5, generator(seed), strings, length)
    for rows, targets in zip(examples.inputs.tolist(), examples.targets.tolist(), strict=True):
        for place, target in enumerate(targets):
            bit = 0
            for row in rows:
                assert row[place] in (0, 1)
                bit ^= row[place]
            assert bit == target


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), strings=st.integers(1, 5), length=st.integers(1, 12))
def test_memory_queries_one_of_its_strings(seed: int, strings: int, length: int) -> None:
    examples = draw_memory(5, generator(seed), strings, length)
    for (*rows, query), targets in zip(examples.inputs.tolist(), examples.targets.tolist(), strict=True):
        signs = [2 * bit - 1 for bit in targets]
        assert signs in rows  # the target is a whole string, visible bits included
        assert all(shown in (0, sign) for shown, sign in zip(query, signs, strict=True))
        assert all(value in (-1, 1) for row in rows for value in row)


def test_memory_shapes_and_masking() -> None:
    task = load("bit-memory")
    assert (task.tokens, task.width, task.readout, task.per_token, task.output_width) == (120, 50, 20, 50, 100)
    batch = task.split(0).batch(0, 8)
    query = batch.inputs[:, -1]
    assert abs((query == 0).float().mean() - 0.5) < 0.03
    tokens = task.encode(batch.inputs)
    for token in range(120):  # token k holds 50 bits of string k // 20
        start = 50 * (token % 20)
        assert torch.equal(tokens[:, token], batch.inputs[:, token // 20, start : start + 50].float())


def test_xor_tokens_are_raw_bits_in_order() -> None:
    task = load("bit-xor")
    assert (task.tokens, task.width, task.readout, task.per_token, task.output_width) == (10, 1, 5, 1, 2)
    batch = task.split(0).batch(0, 8)
    assert torch.equal(task.encode(batch.inputs)[..., 0], batch.inputs.flatten(1).float())
    assert "1,024" in task.source


@pytest.mark.parametrize("name", ["bit-xor", "bit-memory"])
def test_streams_are_fresh_and_independent(name: str) -> None:
    task = load(name)
    split = task.split(0)
    assert split.train_size is None
    assert len(split.validation) == len(split.test) == len(split.train_sample()) == 2_000
    batches = [split.batch(step, 2_000) for step in (0, 1)]
    for one, two in combinations([split.validation, split.test, split.train_sample(2_000), *batches], 2):
        assert not torch.equal(one.inputs, two.inputs)


def test_the_first_bits_are_the_same_on_every_machine() -> None:
    xor = load("bit-xor").split(0).batch(0, 2).inputs.flatten().tolist()
    assert "".join(map(str, xor)) == "01010010111010100101"
    memory = load("bit-memory").split(0).batch(0, 1).inputs[0, 5, :12].tolist()
    assert memory == [0, 0, 0, 0, 0, 1, 0, -1, -1, 0, 1, 1]


def test_more_inputs_than_python_writes_out_are_a_power_of_two():
    assert "2^50000 possible inputs" in load("bit-xor", strings=1, length=50_000).source
    assert "1,024 possible inputs" in load("bit-xor").source
