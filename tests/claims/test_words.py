"""Words: of a pair, and of a claim over its pairs by quantifier; and how often they are wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from fpt.claims.words import (
    AGAINST,
    FOR,
    HOLDS,
    HOLDS_NOT,
    MIXED,
    OPEN,
    TOO_CLOSE,
    claim_word,
    counts,
    of_comparisons,
    over_pairs,
    pair_word,
)
from fpt.papers.schema import Quantifier

YES, NO, MAYBE = (0.001, 1.0), (1.0, 0.001), (0.6, 1.0)
WEAK_YES, WEAK_NO = (0.04, 1.0), (1.0, 0.04)  # that survive no correction
PROBABILITIES = st.floats(0, 1)


def word(pairs: list[tuple[float, float]], of: Quantifier) -> str:
    p_for, p_against = zip(*pairs, strict=True)
    return claim_word(*over_pairs(p_for, p_against, of))


def test_words_of_a_pair() -> None:
    found = [pair_word(*each) for each in (YES, NO, MAYBE)]
    assert found == [FOR, AGAINST, OPEN]
    assert pair_word(0.0501, 0.9) == OPEN
    assert counts([*found, FOR]) == "2 for, 1 against, 1 open"


@pytest.mark.parametrize(
    ("pairs", "of", "said"),
    [
        ([YES], "", HOLDS), ([NO], "", HOLDS_NOT), ([MAYBE], "", TOO_CLOSE),
        ([YES, YES, MAYBE], "", HOLDS), ([NO, NO, MAYBE], "", HOLDS_NOT), ([MAYBE] * 7, "", TOO_CLOSE),
        ([YES, NO, MAYBE], "", MIXED),
        ([WEAK_YES, *[MAYBE] * 6], "", TOO_CLOSE),  # one of seven, by chance
        ([YES, WEAK_NO], "", HOLDS), ([NO, WEAK_YES], "", HOLDS_NOT),  # what survives no correction vetoes nothing
        ([YES, YES, MAYBE], "all", TOO_CLOSE), ([YES, WEAK_YES], "all", HOLDS), ([YES, YES, NO], "all", HOLDS_NOT),
        ([YES, WEAK_NO], "all", TOO_CLOSE),
        ([YES, YES, MAYBE], "most", HOLDS), ([YES, NO, NO], "most", HOLDS_NOT), ([YES, NO, MAYBE], "most", TOO_CLOSE),
        ([YES, WEAK_YES, MAYBE], "most", TOO_CLOSE),
        ([YES, NO, NO], "some", HOLDS), ([NO, NO, MAYBE], "some", TOO_CLOSE), ([NO, WEAK_NO], "some", HOLDS_NOT),
    ],
)  # fmt: skip
def test_words_of_a_claim(pairs: list[tuple[float, float]], of: Quantifier, said: str) -> None:
    assert word(pairs, of) == said


def test_several_contrasts_on_a_pair() -> None:
    """The largest p supports, and Bonferroni opposes."""
    assert of_comparisons([0.01, 0.02, 0.001], [0.6, 0.01, 0.9]) == (0.02, pytest.approx(0.03))


@given(st.lists(st.tuples(PROBABILITIES, PROBABILITIES), min_size=2, max_size=7))
def test_some_is_easier_to_show_than_all_and_most_and_harder_to_refute_than_all(
    pairs: list[tuple[float, float]],
) -> None:
    p_for, p_against = zip(*pairs, strict=True)
    by_all, by_most, by_some = (over_pairs(p_for, p_against, of) for of in ("all", "most", "some"))
    k = len(pairs)  # `all` and the refutation of `some` read every pair, so they need no correction
    assert by_some[0] <= k * by_all[0]
    assert by_all[1] <= k * by_some[1]
    assert by_some[0] <= by_most[0] or by_most[0] == max(p_for)


def simulated(
    effects: list[float], times: int, of: Quantifier = "", contrasts: int = 1, correlation: float = 0
) -> list[str]:
    """The words of a claim whose contrasts have these effects (in standard errors) on its pairs.

    correlation: of the errors of any two pairs, since pairs that share images or seeds err together."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(times):
        own, shared = rng.normal(size=(len(effects), contrasts)), rng.normal(size=contrasts)
        z = np.array(effects)[:, None] + np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
        found.append(word([of_comparisons(2 * ndtr(-each), 2 * ndtr(each)) for each in z], of))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("of", ["", "all", "most", "some"])
@pytest.mark.parametrize(("contrasts", "correlation"), [(1, 0), (1, 0.5), (1, 0.9), (3, 0)])
def test_no_direction_is_named_without_an_effect_in_more_than_1_of_20(
    of: Quantifier, contrasts: int, correlation: float
) -> None:
    found = simulated([0.0] * 7, 20_000, of, contrasts, correlation)
    assert np.mean([word != TOO_CLOSE for word in found]) < 0.054  # 5%, and two errors of the simulation


@pytest.mark.slow
def test_a_claim_that_half_of_its_pairs_show_is_found_in_3_of_4() -> None:
    half = 1.96  # an effect that one pair finds half of the time
    found = simulated([half] * 7, 20_000)
    assert np.mean([word == HOLDS for word in found]) > 0.72
    assert np.mean([word in (HOLDS_NOT, MIXED) for word in found]) < 0.005
