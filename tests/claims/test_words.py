"""Words: of a pair, over pairs by quantifier, of likenesses, of primary claims; and how often they are wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from fpt.claims import words
from fpt.claims.words import (
    AGAINST,
    FOR,
    HOLDS,
    HOLDS_NOT,
    MIXED,
    NOT_RUN,
    NOT_SHOWABLE,
    ONE_AGAINST,
    ONE_FOR,
    OPEN,
    TOO_CLOSE,
    PairTest,
    after_correction,
    at_papers_scale,
    claim_word,
    counts,
    of_contrasts,
    over_pairs,
    pair_word,
    simes,
)
from fpt.papers.schema import Quantifier

YES, NO, MAYBE = PairTest(0.001, 0.999), PairTest(0.999, 0.001), PairTest(0.3, 0.7)
HIDDEN = PairTest(0.3, 0.7, unreachable=True)
PROBABILITIES = st.floats(0, 1)


def test_words_of_a_pair() -> None:
    assert [test.word for test in (YES, NO, MAYBE)] == [FOR, AGAINST, OPEN]
    assert pair_word(0.0251, 0.9) == OPEN
    assert counts([YES, YES, NO, MAYBE]) == "2 for, 1 against, 1 open"


@pytest.mark.parametrize(
    ("tests", "of", "word"),
    [
        ([], "", NOT_RUN),
        ([YES], "", ONE_FOR), ([NO], "", ONE_AGAINST), ([MAYBE], "", TOO_CLOSE),
        ([YES, YES, MAYBE], "", HOLDS), ([NO, NO, MAYBE], "", HOLDS_NOT), ([MAYBE] * 7, "", TOO_CLOSE),
        ([YES, NO, MAYBE], "", MIXED),
        ([PairTest(0.02, 0.98), *[MAYBE] * 6], "", TOO_CLOSE),  # one of seven, by chance
        ([YES, YES, MAYBE], "all", TOO_CLOSE), ([YES, YES], "all", HOLDS), ([YES, YES, NO], "all", HOLDS_NOT),
        ([YES, YES, MAYBE], "most", HOLDS), ([YES, NO, NO], "most", HOLDS_NOT), ([YES, NO, MAYBE], "most", TOO_CLOSE),
        ([YES, NO, NO], "some", HOLDS), ([NO, NO, MAYBE], "some", TOO_CLOSE), ([NO, NO], "some", HOLDS_NOT),
    ],
)  # fmt: skip
def test_words_of_a_claim(tests: list[PairTest], of: Quantifier, word: str) -> None:
    assert claim_word(tests, of) == word


def test_a_likeness_that_noise_hides_is_not_showable() -> None:
    assert claim_word([YES, HIDDEN], "all", likeness=True) == NOT_SHOWABLE
    assert claim_word([YES, HIDDEN], "all") == TOO_CLOSE
    assert claim_word([YES, MAYBE], "all", likeness=True) == TOO_CLOSE
    assert claim_word([NO, HIDDEN], "all", likeness=True) == HOLDS_NOT
    assert claim_word([HIDDEN], "all", likeness=True) == NOT_SHOWABLE


def test_several_contrasts_on_a_pair() -> None:
    """The largest p supports, and Holm opposes."""
    found = of_contrasts([PairTest(0.01, 0.6), PairTest(0.02, 0.01), PairTest(0.001, 0.9)])
    assert found.p_for == 0.02
    assert found.p_against == pytest.approx(0.03)


@given(st.lists(PROBABILITIES, min_size=1, max_size=9))
def test_simes_lies_between_the_least_p_and_bonferroni(p_values: list[float]) -> None:
    found, rounding = simes(p_values), 1e-12
    assert min(p_values) - rounding <= found <= len(p_values) * min(p_values) + rounding
    assert found <= max(p_values) + rounding


@given(st.lists(st.tuples(PROBABILITIES, PROBABILITIES), min_size=2, max_size=7))
def test_some_is_easier_to_show_than_all_and_most_and_harder_to_refute_than_all(
    p_values: list[tuple[float, float]],
) -> None:
    tests = [PairTest(*pair) for pair in p_values]
    by_all, by_most, by_some = (over_pairs(tests, of) for of in ("all", "most", "some"))
    rounding = 1e-12
    assert by_some[0] <= by_all[0] + rounding
    assert by_all[1] <= by_some[1] + rounding
    assert by_some[0] <= by_most[0] + rounding


def test_a_primary_claim_that_its_corrected_p_leaves_open_is_too_close_to_call() -> None:
    assert after_correction(HOLDS, 0.04) == HOLDS
    assert after_correction(HOLDS, 0.06) == TOO_CLOSE
    assert after_correction(NOT_RUN, 1.0) == NOT_RUN


def test_replicated_is_said_at_the_papers_scale_alone() -> None:
    said = [at_papers_scale(word) for word in (HOLDS, ONE_FOR, HOLDS_NOT, ONE_AGAINST, MIXED)]
    assert said == [words.REPLICATED, words.REPLICATED, words.CONTRADICTED, words.CONTRADICTED, MIXED]


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
        tests = [of_contrasts([PairTest(ndtr(-each), ndtr(each)) for each in pair]) for pair in z]
        found.append(claim_word(tests, of))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("of", ["", "all", "most", "some"])
@pytest.mark.parametrize(("contrasts", "correlation"), [(1, 0), (1, 0.5), (1, 0.9), (3, 0)])
def test_no_direction_is_named_without_an_effect_in_more_than_1_of_20(
    of: Quantifier, contrasts: int, correlation: float
) -> None:
    found = simulated([0.0] * 7, 20_000, of, contrasts, correlation)
    assert np.mean([word in words.DECIDED for word in found]) < 0.054  # 5%, and two errors of the simulation


@pytest.mark.slow
def test_a_claim_that_half_of_its_pairs_show_is_found_in_3_of_4() -> None:
    half = 1.96  # an effect that one pair finds half of the time
    found = simulated([half] * 7, 20_000)
    assert np.mean([word == HOLDS for word in found]) > 0.72
    assert np.mean([word in (HOLDS_NOT, MIXED) for word in found]) < 0.005
