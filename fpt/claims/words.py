"""How p-values become words: of a pair, and of a claim over its pairs.

A comparison has two p-values at the claim's own limits, `p_for` and `p_against`, each to be compared with 5%: twice a
one-sided p, and of a likeness, for it, the larger of its two one-sided tests.
"""

from collections.abc import Sequence

from fpt.papers.schema import Quantifier
from fpt.results.stats import SIGNIFICANCE

FOR, AGAINST, OPEN = "for", "against", "open"
HOLDS, HOLDS_NOT, MIXED, TOO_CLOSE = "holds here", "does not hold here", "mixed", "too close to call"
AT_FLOOR, NOT_RUN = "at floor", "not run"
SLIP, CONSISTENT, READ = "slip in print", "consistent in print", "read, not tested"
WORDS = (HOLDS, HOLDS_NOT, MIXED, TOO_CLOSE, AT_FLOOR, NOT_RUN, SLIP, CONSISTENT, READ)


def pair_word(p_for: float, p_against: float) -> str:
    """For or against where the interval clears the limit, else open."""
    if p_for < SIGNIFICANCE:
        return FOR
    return AGAINST if p_against < SIGNIFICANCE else OPEN


def of_comparisons(p_for: Sequence[float], p_against: Sequence[float]) -> tuple[float, float]:
    """Of several comparisons on one pair: all must hold, so the largest p is for it; one is enough against it, by
    Bonferroni's correction over them."""
    return max(p_for), bonferroni(p_against)


def bonferroni(p_values: Sequence[float]) -> float:
    """p of "none of these hypotheses holds"."""
    return min(1.0, len(p_values) * min(p_values))


def over_pairs(p_for: Sequence[float], p_against: Sequence[float], of: Quantifier = "") -> tuple[float, float]:
    """Of a claim over its pairs, of which there is one at least: on either side one pair has to survive Bonferroni's
    correction over all of them.

    A quantifier is read as written. For `all` every pair must be for it, and one refutes it; `some` is shown by one and
    refuted by all. `most` needs more than half of the pairs for it, and as many as leave it no such half against it;
    each of them has to survive the correction.
    """
    k = len(p_for)
    needed = {"all": (k, 1), "most": (k // 2 + 1, k - k // 2), "some": (1, k)}.get(of, (1, 1))
    return _of_so_many(p_for, needed[0]), _of_so_many(p_against, needed[1])


def _of_so_many(p_values: Sequence[float], least: int) -> float:
    """p of "fewer than `least` of these hypotheses hold". Of all of them each may be read at its own level: no choice
    among pairs is left that a correction would be for."""
    if least == len(p_values):
        return max(p_values)
    return min(1.0, len(p_values) * sorted(p_values)[least - 1])


def claim_word(p_for: float, p_against: float) -> str:
    """The word of a claim by its p-values over pairs."""
    shown, refuted = p_for < SIGNIFICANCE, p_against < SIGNIFICANCE
    if shown and refuted:
        return MIXED
    if shown:
        return HOLDS
    return HOLDS_NOT if refuted else TOO_CLOSE


def counts(words: Sequence[str]) -> str:
    """Of the words of pairs: 4 for, 0 against, 3 open."""
    return ", ".join(f"{words.count(word)} {word}" for word in (FOR, AGAINST, OPEN))
