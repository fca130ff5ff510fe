"""The ladder of ListOps: readers against readers written otherwise, and where printed numbers stand."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.patches import Rectangle
from notebook_code import definitions

from fpt.papers import claim, papers
from fpt.papers.schema import BASELINES, LEVELS
from fpt.results.baselines import DIGITS, Score
from fpt.show.pages import listops as ladder
from fpt.tasks import load
from fpt.tasks.listops import CLOSE, SYMBOLS, evaluate
from fpt.tasks.trees import TreeRules, trees

NOTEBOOK = definitions("notebooks/ladder.py")
ROUND = {"low": Score(0.2), "middle": Score(0.4), "high": Score(1.0)}


def symbols(text: str) -> bytes:
    return bytes(SYMBOLS[word] for word in text.split())


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Score]:
    return NOTEBOOK.ladder_scores(load("listops-short", tmp_path_factory.mktemp("data"), train=2_000, heldout=1_000))


def test_the_ladder_rises_to_the_whole_answer(short: dict[str, Score]) -> None:
    shares = [score.share for name, score in short.items() if name != LEVELS[0]]
    assert list(short) == ["majority class", "outermost operator", DIGITS, *LEVELS[:4]]
    assert all(low < high for low, high in pairwise(shares))
    assert short[LEVELS[3]] == Score(1.0, 1_000)


def test_the_first_readers_are_what_they_say(tmp_path: Path) -> None:
    task = load("listops-short", tmp_path, train=500, heldout=200)
    split = task.split(0)
    train, test = split.train_sample(None), split.test
    commonest, _ = Counter(train.targets[:, 0].tolist()).most_common(1)[0]
    found = NOTEBOOK.ladder_scores(task)
    assert found["majority class"] == Score(float((test.targets == commonest).double().mean()), 200)
    typical = {SYMBOLS["[MAX"]: 9, SYMBOLS["[MIN"]: 0, SYMBOLS["[MED"]: 5, SYMBOLS["[SM"]: 0}
    guesses = [typical[text[0]] for text in NOTEBOOK.lists_of(test)]
    assert found[LEVELS[0]].share == float(np.mean(np.array(guesses) == test.targets[:, 0].numpy()))


def test_without_brackets_there_are_three_rungs(tmp_path: Path) -> None:
    found = NOTEBOOK.ladder_scores(load("listops", tmp_path, "released", train=60, heldout=20))
    assert list(found) == ["majority class", "outermost operator", DIGITS]
    assert {score.of for score in found.values()} == {10}


def test_direct_digits_are_those_of_the_outermost_list() -> None:
    text = "[MAX 2 [MED 1 [SM 9 9 ] 9 ] 7 [MIN 4 0 ] 5 ]"
    assert NOTEBOOK.direct_digits(symbols(text)) == (SYMBOLS["[MAX"], SYMBOLS["2"], SYMBOLS["7"])
    assert NOTEBOOK.direct_digits(symbols(text.replace(" ]", ""))) == (SYMBOLS["[MAX"], SYMBOLS["2"], SYMBOLS["2"])
    assert NOTEBOOK.direct_digits(symbols("[MIN [SM 1 2 ] [SM 3 4 ] ]")) == (SYMBOLS["[MIN"], 0, 0)


@given(seed=st.integers(0, 10**6))
def test_direct_digits_bound_what_the_list_says(seed: int) -> None:
    for text in trees(TreeRules(4, 6, 3, 60), np.random.PCG64(seed))[:30]:
        value, (operator, least, largest) = evaluate(text), NOTEBOOK.direct_digits(text)
        if operator == SYMBOLS["[MIN"] and least:
            assert value <= least - 1
        if operator == SYMBOLS["[MAX"]:
            assert value >= largest - 1
        if text.count(bytes([CLOSE])) == 1:
            assert (least, largest) == (min(text[1:-1]), max(text[1:-1]))


@pytest.mark.parametrize(
    ("accuracy", "of", "words"),
    [
        (0.40, 1_000, "at: middle"),
        (0.43, 1_000, "at: middle"),
        (0.43, 100_000, "above middle, below high"),
        (0.10, 1_000, "below low"),
        (0.30, 1_000, "above low, below middle"),
        (0.29, 10, "at: low"),  # both are within the interval: the nearer one
        (1.00, 1_000, "at: high"),
    ],
)
def test_an_accuracy_stands_at_a_rung_or_between_two(accuracy: float, of: int, words: str) -> None:
    assert ladder.standing(accuracy, ROUND, of) == words


def test_printed_accuracies_are_those_of_the_papers() -> None:
    frame = ladder.printed_places()
    assert list(frame["accuracy"]) == sorted(frame["accuracy"], reverse=True)
    assert not frame.duplicated(["paper", "row", "accuracy"]).any()
    assert set(frame["paper"]) == {"Lu et al.", "Rothermel et al.", "Tay et al."}
    every = {
        printed.value
        for paper in papers().values()
        for table in paper.tables.values()
        for entry in table.rows.values()
        for printed in [entry.printed.get("listops")]
        if table.kind == "accuracy" and printed is not None and printed.value is not None
    }
    assert every | {claim("O-08").numbers["tay_listops"]} <= set(frame["accuracy"])
    known = frame.set_index("row")
    assert known.loc["Unfrozen Random", "accuracy"].tolist() == [57.6, 57.5]  # type: ignore[union-attr]


def test_the_long_ladder_is_the_known_one() -> None:
    known = claim("B-05").numbers
    rungs = ladder.rungs()
    for depth, percent in known["accuracy"].items():
        if depth:
            low, high = rungs[LEVELS[depth]].interval
            assert low - 0.011 < percent / 100 < high + 0.011  # theirs has an interval, too
    assert rungs[LEVELS[9]].share == 1
    assert set(rungs) <= set(BASELINES) | {DIGITS}


def test_the_figure_counts_every_printed_number() -> None:
    figure = ladder.printed_ladder("Where they stand.").figure
    frame = ladder.printed_places()
    assert "LSTM 17.1, at: majority class" in str(figure.get_label())
    (axes,) = figure.axes
    boxes = [bar.get_bbox() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert sum(box.height for box in boxes) == len(frame)
    tallest = max(boxes, key=lambda box: box.height)
    assert tallest.x0 < 17 < tallest.x1
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == set(frame["paper"])
