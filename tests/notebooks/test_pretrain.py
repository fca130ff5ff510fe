"""The text that a control is pretrained on: characters drawn from the statistics of a corpus."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notebook_code import definitions

from fpt.errors import DataError

ROOT = Path(__file__).parents[2]
NOVEL = ROOT / "tests" / "data" / "novel.txt"


PRETRAIN = definitions("notebooks/pretrain.py")
ORDERS, drawn_text, read_corpus = PRETRAIN.ORDERS, PRETRAIN.drawn_text, PRETRAIN.read_corpus


def grams(text: str, length: int) -> Counter[str]:
    """Of a text whose end is followed by its beginning."""
    circle = text + text[: length - 1]
    return Counter(circle[place : place + length] for place in range(len(text)))


@pytest.mark.parametrize("order", ORDERS)
@given(text=st.text(min_size=1, max_size=60))
@settings(max_examples=30, deadline=None)
def test_what_is_drawn_is_as_long_and_was_there(order: int, text: str) -> None:
    drawn = drawn_text(text, order, chains=1)
    assert len(drawn) == len(text)
    there = grams(text, order + 1)
    assert all(drawn[place : place + order + 1] in there for place in range(len(drawn) - order))


def test_independent_characters_have_the_frequencies_of_the_text() -> None:
    text = NOVEL.read_text()
    drawn = drawn_text(text, 0)
    one, two = Counter(text), Counter(drawn)
    for character, count in one.items():
        assert abs(two[character] - count) <= 5 * np.sqrt(count) + 1, character
    pairs, size = Counter(pairwise(drawn)), len(drawn)
    for pair in (("t", "h"), ("e", " "), ("q", "u")):  # what follows does not depend on what was there
        expected = two[pair[0]] * two[pair[1]] / size
        assert abs(pairs[pair] - expected) <= 5 * np.sqrt(expected) + 1, pair


@pytest.mark.parametrize("order", [1, 2])
def test_a_chain_has_the_transitions_of_the_text(order: int) -> None:
    text = NOVEL.read_text()
    one, two = (grams(each, order + 1) for each in (text, drawn_text(text, order)))
    before = {name: grams(each, order) for name, each in (("one", text), ("two", drawn_text(text, order)))}
    frequent = [gram for gram, count in one.most_common(300)]
    gaps = [two[gram] / before["two"][gram[:-1]] - one[gram] / before["one"][gram[:-1]] for gram in frequent]
    errors = [0.5 / np.sqrt(before["two"][gram[:-1]]) for gram in frequent]
    assert max(abs(gap) / error for gap, error in zip(gaps, errors, strict=True)) < 5
    absent = set(two) - set(one)
    assert sum(two[gram] for gram in absent) < 2 * 1024  # where chains are joined


def test_it_is_the_same_in_every_call_and_another_for_each_order() -> None:
    text = NOVEL.read_text()
    assert drawn_text(text, 1) == drawn_text(text, 1)
    assert len({drawn_text(text, order) for order in ORDERS}) == len(ORDERS)


def test_the_drawn_text_takes_the_place_of_the_corpus() -> None:
    plain, drawn = (read_corpus(NOVEL, 40_000, order) for order in (None, 2))
    text = bytes([*plain.train.tolist(), *plain.held_out.tolist()]).decode()
    assert text == NOVEL.read_text()
    assert bytes([*drawn.train.tolist(), *drawn.held_out.tolist()]).decode() == drawn_text(text, 2)
    assert len(drawn.train) == len(plain.train) == 40_000
    assert drawn.sha256 != plain.sha256


@pytest.mark.parametrize(
    ("path", "held_out_from", "order", "message"),
    [
        ("nowhere.txt", 40_000, None, r"nowhere\.txt does not exist"),
        (NOVEL, 10, None, r"held_out_from=10 leaves under 512 bytes"),
        (NOVEL, 40_000, 4, r"order=4 of the drawn text: allowed are \(0, 1, 2, 3\), or None"),
        (NOVEL, 40_000, -1, r"order=-1 of the drawn text"),
    ],
)
def test_what_is_refused(path: str | Path, held_out_from: int, order: int | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_corpus(path, held_out_from, order)


def test_a_text_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("é".encode("latin-1") * 2000)
    with pytest.raises(DataError, match=r"latin\.txt is no UTF-8 text"):
        read_corpus(path, 1000, 1)
