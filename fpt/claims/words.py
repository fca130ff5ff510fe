"""How comparisons become words: of a pair, of a claim over its pairs, and of primary claims together.

All p-values here are one-sided, at the level of 2.5%: `p_for` is small where the contrast is for the claim, `p_against`
where it is against it. Of a likeness, `p_for` is half of the larger of its two one-sided tests, so that the tests
together keep their 5%.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fpt.papers.schema import Quantifier
from fpt.results.stats import SIGNIFICANCE, partial_conjunction

FOR, AGAINST, OPEN = "for", "against", "open"
HOLDS, HOLDS_NOT, MIXED, TOO_CLOSE = "holds here", "does not hold here", "mixed", "too close to call"
ONE_FOR, ONE_AGAINST = "for, in 1 pair", "against, in 1 pair"
NOT_SHOWABLE, AT_FLOOR, NOT_RUN = "not showable here", "at floor", "not run"
REPLICATED, CONTRADICTED = "replicated", "contradicted"  # of the paper's own scale alone
SLIP, CONSISTENT, READ = "slip in print", "consistent in print", "read, not tested"
DECIDED = (HOLDS, HOLDS_NOT, MIXED, ONE_FOR, ONE_AGAINST, REPLICATED, CONTRADICTED)
WORDS = (*DECIDED, TOO_CLOSE, NOT_SHOWABLE, AT_FLOOR, NOT_RUN, SLIP, CONSISTENT, READ)
LEVEL = SIGNIFICANCE / 2  # one-sided


@dataclass(frozen=True)
class PairTest:
    """What the contrasts of a claim say on one pair, by one-sided p-values.

    `unreachable`: a likeness that no number of seeds could show here, since the test set's own noise is too large.
    """

    p_for: float
    p_against: float
    unreachable: bool = False

    @property
    def word(self) -> str:
        return pair_word(self.p_for, self.p_against)


def pair_word(p_for: float, p_against: float) -> str:
    """For or against where the interval clears the limit, else open."""
    if p_for < LEVEL:
        return FOR
    return AGAINST if p_against < LEVEL else OPEN


def of_contrasts(tests: Sequence[PairTest]) -> PairTest:
    """Several contrasts on one pair: all must hold, so the largest p is for it; one is enough against it, after Holm's
    correction over them."""
    against = min(1.0, len(tests) * min(test.p_against for test in tests))
    return PairTest(max(test.p_for for test in tests), against, any(test.unreachable for test in tests))


def simes(p_values: Sequence[float]) -> float:
    """p of "none of these hypotheses holds", the smallest of k p(i) / i over the ordered p-values (Simes 1986)."""
    ordered = sorted(p_values)
    return min(1.0, *(len(ordered) * p / (i + 1) for i, p in enumerate(ordered)))


def over_pairs(tests: Sequence[PairTest], of: Quantifier = "") -> tuple[float, float]:
    """P_for and P_against of a claim, one-sided, over its pairs; 1 where there are none.

    In general, and of `some` for it: Simes. `all` needs every pair, so the largest p; one pair refutes it, by Simes.
    `most` needs more than half of them, by partial conjunction (Benjamini and Heller 2008). `some` is refuted by all.
    """
    if not tests:
        return 1.0, 1.0
    p_for, p_against = ([test.p_for for test in tests], [test.p_against for test in tests])
    if of == "most":
        most = len(tests) // 2 + 1
        return partial_conjunction(p_for, most), partial_conjunction(p_against, len(tests) - most + 1)
    return (
        max(p_for) if of == "all" else simes(p_for),
        max(p_against) if of == "some" else simes(p_against),
    )


def claim_word(tests: Sequence[PairTest], of: Quantifier = "", likeness: bool = False) -> str:
    """The word of a claim over the pairs that count: those that were run, above floor, listed before their results."""
    if not tests:
        return NOT_RUN
    p_for, p_against = over_pairs(tests, of)
    if len(tests) == 1:
        word = {FOR: ONE_FOR, AGAINST: ONE_AGAINST}.get(tests[0].word, TOO_CLOSE)
    elif of:
        word = {FOR: HOLDS, AGAINST: HOLDS_NOT, OPEN: TOO_CLOSE}[pair_word(p_for, p_against)]
    else:
        word = _in_general(tests, p_for, p_against)
    open_pairs = [test for test in tests if test.word == OPEN]
    if word == TOO_CLOSE and likeness and any(test.unreachable for test in open_pairs):
        return NOT_SHOWABLE
    return word


def _in_general(tests: Sequence[PairTest], p_for: float, p_against: float) -> str:
    words = {test.word for test in tests}
    if min(p_for, p_against) >= LEVEL:
        return TOO_CLOSE
    if {FOR, AGAINST} <= words:
        return MIXED
    return HOLDS if p_for < LEVEL else HOLDS_NOT


def counts(tests: Sequence[PairTest]) -> str:
    """4 for, 0 against, 3 open."""
    words = [test.word for test in tests]
    return ", ".join(f"{words.count(word)} {word}" for word in (FOR, AGAINST, OPEN))


def two_sided(p_for: float, p_against: float) -> float:
    return min(1.0, 2 * min(p_for, p_against))


def after_correction(word: str, p: float) -> str:
    """The word of a primary claim by its corrected p."""
    return TOO_CLOSE if word in DECIDED and p >= SIGNIFICANCE else word


def at_papers_scale(word: str) -> str:
    """What holds, or does not, at the paper's own scale: replicated, contradicted."""
    return {HOLDS: REPLICATED, ONE_FOR: REPLICATED, HOLDS_NOT: CONTRADICTED, ONE_AGAINST: CONTRADICTED}.get(word, word)
