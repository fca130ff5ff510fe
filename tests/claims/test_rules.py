"""Every kind of rule on data for each of its words, and what rules make of edges, scales and runs that collapsed."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_cells import Made, claim, paper, study

from fpt.claims import judge, words
from fpt.claims.arithmetic import without_runs
from fpt.claims.by_rate import _set_words, pairs_of_rates
from fpt.claims.case import NOT_TESTED, Comparison, cases_of, pairs_not_run
from fpt.claims.judge import judged
from fpt.claims.rules import KINDS, comparisons_of
from fpt.claims.verdicts import SPEAKS, read
from fpt.claims.words import AGAINST, FOR, OPEN
from fpt.errors import SpecError
from fpt.papers import claims, schema
from fpt.papers.schema import Claim
from fpt.results import StudyCells
from fpt.results.baselines import Score
from fpt.results.estimate import NATS, TIMES
from fpt.results.losses import tuned_losses
from fpt.sweeps.row_on_task import PAPER_SCALE

ROOT = Path(__file__).parents[2]
AT = {1e-4: 80, 1e-3: 80, 1e-2: 80}


def up(points):
    return {rate: mean + points for rate, mean in AT.items()}


A, B = Made(up(5)), Made(AT)
NOISY = Made(up(0.5), sd=3)


def by_rate(*means, **more):
    """Accuracies at 1e-4, 1e-3 and, where there is a third, 1e-2."""
    return Made(dict(zip(AT, means, strict=False)), **more)


LOWER, PEAK, HIGHER = by_rate(90, 80, 60, best=1e-4), by_rate(70, 90, 70), by_rate(60, 80, 90, best=1e-2)
QUARTERS = dict.fromkeys((float(rate) for rate in 10.0 ** np.arange(-4.5, -1.4, 0.25)), 80)


def loss(place=-3.0, least=1.5, sd=0.4, backbone="tiny-lm", falls=0.0):
    """An arm whose loss is least at 10^place, and so many decades higher before the last step."""
    own = {"backbone": backbone}
    grid = {"best": list(QUARTERS)[6], "beyond": False}
    return Made(QUARTERS, sd, losses=(place, least), falls=falls, fields=own, **grid)


Case = tuple[dict[str, Any], str, dict[str, list[Made]]]  # rule, kind of table, {word: the rows, first to last}


def case(holds, against, hidden, table="accuracy", **rule):
    return rule, table, {FOR: holds, AGAINST: against, OPEN: hidden}


BEHIND_BY_5, AHEAD_BY_9, AHEAD_BY_10 = (Made(up(points)) for points in (-5, 9, 10))
EXACT = Made(AT, sd=0.2)
NO_GAP, SMALL_GAP, GAP, LARGE_GAP = (Made(train=80 + points) for points in (0.2, 1, 5, 10))
UNSURE_GAP = Made(train=81, sd=3)
EARLY, SOON, MIDDLE, LATE = (Made(arrives=[step, step + 5, step + 10]) for step in (60, 180, 200, 220))
SMALLER = loss(backbone="tiny-lm-64")
CASES = {
    "beats": case([A, B], [B, A], [NOISY, B]),
    "matches": case([B, B], [B, A], [Made(up(-1), sd=3), B]),
    "comparable": case([EXACT, B], [A, B], [NOISY, B]),
    "order": case([B, A, AHEAD_BY_9], [A, B, AHEAD_BY_9], [B, A, A]),
    "jump": case([B, AHEAD_BY_9, AHEAD_BY_10], [B, Made(up(1)), AHEAD_BY_10], [B, A, AHEAD_BY_10]),
    "above_linear": case([A], [BEHIND_BY_5], [NOISY]),
    "larger_difference": case([A, B, Made(up(1)), B], [B, B, A, B], [NOISY, B, B, B]),
    "near": case([EXACT], [A], [NOISY]),
    "linear": case([EXACT], [A], [NOISY]),
    "reaches": case([A], [B], [Made(up(2), sd=2)], level=82),
    "faster": case(
        [EARLY, LATE],
        [MIDDLE, SOON],
        [Made(arrives=[60, 390, 80]), Made(arrives=[180, 260, 240])],
        "steps",
        by=2,
        to=5,
    ),
    "never_reaches": case([Made(top=60), Made()], [Made(), Made(top=60)], [Made(), Made()], "steps"),
    "small_gap": case([NO_GAP], [GAP], [UNSURE_GAP], "gap"),
    "smaller_gap": case([SMALL_GAP, LARGE_GAP], [LARGE_GAP, SMALL_GAP], [Made(sd=3), UNSURE_GAP], "gap"),
    "underfits": case([SMALL_GAP, LARGE_GAP], [LARGE_GAP, SMALL_GAP], [UNSURE_GAP, Made(train=81.2, sd=3)], "gap"),
    "unstable": case(
        *([by_rate(80, mean, 50, best=1e-4, sd=sd)] for mean, sd in ((50, 0.4), (78, 0.4), (66, 3))),
        by=10,
    ),
    "loses_at_papers_rate": case(
        *([by_rate(80, mean, 50, best=1e-4, sd=sd)] for mean, sd in ((50, 0.4), (78, 0.4), (66, 3))),
        by=10,
    ),
    "drop": case([Made({1e-3: 80, 1e-2: 30})], [Made({1e-3: 80, 1e-2: 75})], [Made({1e-3: 80, 1e-2: [50, 70]})], by=20),
    "lower_rate": case([LOWER, PEAK], [PEAK, PEAK], [Made(AT), Made(AT)], by=3),
    "plane": case([LOWER, HIGHER], [BEHIND_BY_5, B], [NOISY, B]),
    "crossing": case([A, B], [B, A], [NOISY, B]),
    "inverts": case(
        [by_rate(60, 80), by_rate(80, 60)], [by_rate(80, 80), by_rate(70, 60)], [by_rate([60, 80], 80), by_rate(71, 60)]
    ),
    "inverts_somewhere": case(
        [by_rate(60, 80, 80), by_rate(80, 80, 60)],
        [by_rate(80, 80, 80), by_rate(70, 75, 60)],
        [by_rate([60, 80], 80), by_rate(71, 60)],
    ),
    "fixed_and_tuned": case(
        *([B, by_rate(mean, 60, 20, best=1e-4, sd=sd)] for mean, sd in ((90, 0.4), (70, 0.4), (80, 2)))
    ),
    "orders_differ": case(
        [by_rate(80, 60), by_rate(60, 80)], [by_rate(80, 80), by_rate(60, 60)], [by_rate(80, 80, sd=3)] * 2
    ),
    "rate_ratio": case([loss(), loss()], [loss(-2.0), loss()], [loss(-2.72), loss()], by=0.5, to=2),
    "falls_with_steps": case([loss(falls=0.3), loss()], [loss(), loss(falls=0.3)], [loss(), loss()]),
    "ratio_slope": case(*([loss(place), loss(), SMALLER, SMALLER] for place in (-3.0, -2.0, -2.92))),
    "lower": case([loss(least=1.4), loss()], [loss(), loss(least=1.4)], [loss(sd=3), loss(sd=3)]),
    "same_loss": case(
        [loss()] * 3, [loss(least=1.8), loss(), loss()], [loss(least=1.57, sd=3), loss(sd=3), loss()], by=5
    ),
    "attends": case(
        *([Made(attention=(after, 30, 30), sd=sd)] for after, sd in ((80, 0.4), (50, 0.4), (60, 4))),
        table="attention",
        level="needed",
    ),
}


@pytest.fixture(autouse=True)
def _counted(monkeypatch):
    monkeypatch.setattr("fpt.claims.losses.untouched_loss", lambda task, backbone: 3.0)
    counted(monkeypatch, 1_000_000)


def counted(monkeypatch, examples):
    """A linear classifier that reached 80% of so many examples."""
    monkeypatch.setattr(
        "fpt.claims.differences.known_scores", lambda task, variant: {"linear classifier": Score(0.8, examples)}
    )


def made(monkeypatch, kind, word):
    rule, of_table, cases = CASES[kind]
    names = [f"row {n}" for n in range(len(cases[word]))]
    printed = {"row 0": {"digits": 80}} if kind == "near" else None
    rows = dict(zip(names, cases[word], strict=True))
    toy = paper(names, of_table, printed)
    return claim({kind: names, **rule}), study(
        monkeypatch, toy, rows, scale=PAPER_SCALE if kind == "near" else "reduced"
    )


SAID = {FOR: words.HOLDS, AGAINST: words.HOLDS_NOT, OPEN: words.TOO_CLOSE}  # by the word of its only pair


def test_a_function_for_every_kind_of_rule():
    assert {*schema.KINDS, *schema.FUNCTIONS} - {"baseline"} == set(KINDS)
    assert set(CASES) == set(KINDS)
    assert all(set(cases) == {FOR, AGAINST, OPEN} for _, _, cases in CASES.values())


def test_every_kind_serves_a_claim():
    assert set(KINDS) == {rule.kind for each in claims().values() for rule in each.rule} - {"baseline"}


@pytest.mark.parametrize("word", [FOR, AGAINST, OPEN])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_comes_to_each_word_on_a_pair(monkeypatch, kind, word):
    monkeypatch.setattr(judge, "at_floor", lambda *_: False)
    of_claim, runs = made(monkeypatch, kind, word)
    summary, *rows = judged([runs], [of_claim]).to_dict("records")
    assert summary["word"] == SAID[word]
    assert rows
    assert {(row["pair"], row["role"]) for row in rows} == {("tiny-lm/digits", SPEAKS)}
    assert word in {row["word"] for row in rows} <= ({word} if word == FOR else {FOR, AGAINST, OPEN})
    assert all(row["contrast"] for row in rows)


def test_a_score_of_few_examples_has_an_error_of_its_own(monkeypatch):
    counted(monkeypatch, 400)  # 2 points
    of_claim, runs = made(monkeypatch, "linear", FOR)
    (comparison,) = comparisons_in(of_claim, runs)
    assert comparison.word == OPEN
    assert comparison.estimate.test_variance == pytest.approx(0.02**2)
    assert comparison.estimate.high - comparison.estimate.low > 2 * 0.02


@dataclass(frozen=True)
class Ruled:
    """What a rule says of one task."""

    comparisons: list[Comparison]

    @property
    def word(self):
        """For, against or open, over its comparisons; or that none says anything."""
        tested = [(each.supports, each.contradicts) for each in self.comparisons if each.tested]
        if not tested:
            return NOT_TESTED
        return words.pair_word(*words.of_comparisons(*zip(*tested, strict=True)))


def comparisons_in(of_claim, runs):
    """The comparisons of a claim's rules in one study."""
    comparisons = []
    for rule in of_claim.rule:
        for each in cases_of(rule, runs) if rule.table else []:
            comparisons += comparisons_of(each)
    return comparisons


def ruled(monkeypatch, rule, rows, kind="accuracy", **more):
    """One rule on one task of a made study."""
    toy = paper(list(rows), kind, more.pop("printed", None), more.pop("until", "threshold"))
    return Ruled(comparisons_in(claim(rule), study(monkeypatch, toy, (more.pop("task", "digits"), rows), **more)))


BEATS = {"beats": ["a", "b"]}
COMPARABLE = {"comparable": ["a", "b"]}
HIGH, LOW, SAME = A, B, EXACT


@pytest.mark.parametrize("kind", ["matches", "comparable"])
def test_a_likeness_may_have_a_margin_of_its_own(kind, monkeypatch):
    """Too far apart for the margin of the task, and near enough for one of 90 points."""
    rows = {"a": LOW, "b": HIGH}
    assert ruled(monkeypatch, {kind: ["a", "b"]}, rows).word == AGAINST
    assert ruled(monkeypatch, {kind: ["a", "b"], "by": 90}, rows).word == FOR


EDGES = [  # rule, rows, which of them are at an edge (their accuracy may be higher still), the verdict
    (BEATS, (HIGH, LOW), "a", FOR),  # the winner may win by more
    (BEATS, (HIGH, LOW), "b", OPEN),
    (BEATS, (LOW, HIGH), "b", AGAINST),  # the loser may lose by more
    (BEATS, (LOW, HIGH), "a", OPEN),
    (BEATS, (LOW, HIGH), "ab", OPEN),
    (COMPARABLE, (SAME, LOW), "a", OPEN),
    (COMPARABLE, (SAME, LOW), "b", OPEN),
    (COMPARABLE, (HIGH, LOW), "a", AGAINST),
    (COMPARABLE, (HIGH, LOW), "b", OPEN),
    ({"matches": ["a", "b"]}, (SAME, LOW), "a", FOR),
    ({"matches": ["a", "b"]}, (SAME, LOW), "b", OPEN),
    ({"beats": ["a", "b"], "by": 3, "to": 8}, (HIGH, LOW), "a", OPEN),  # it may be more than 8
    ({"reaches": "a", "level": 82}, (HIGH, LOW), "a", FOR),
    ({"reaches": "a", "level": 99}, (HIGH, LOW), "a", OPEN),
    ({"beats": ["a", "b"], "at": "paper"}, (HIGH, LOW), "b", FOR),  # an edge is of the tuned rate alone
]


@pytest.mark.parametrize(("rule", "rows", "edges", "word"), EDGES)
def test_a_verdict_at_an_edge_stands_if_every_value_above_gives_the_same(rule, rows, edges, word, monkeypatch):
    made = {name: replace(row, edge=name in edges) for name, row in zip("ab", rows, strict=True)}
    found = ruled(monkeypatch, rule, made)
    assert found.word == word
    assert all("edge of the grid" in comparison.note for comparison in found.comparisons) or rule.get("at") == "paper"


@pytest.mark.parametrize("edges", ["a", "b"])
def test_an_edge_does_not_bound_a_gap_and_bounds_steps_from_above(edges, monkeypatch):
    gaps = {"a": Made(train=81), "b": Made(train=90)}
    steps = {"a": Made(arrives=[60, 100, 80]), "b": Made(arrives=[180, 300, 240])}
    for rule, kind, rows in (({"smaller_gap": ["a", "b"]}, "gap", gaps), ({"faster": ["a", "b"]}, "steps", steps)):
        made = {name: replace(row, edge=name in edges) for name, row in rows.items()}
        sure = kind == "steps" and edges == "a"  # the faster one may be faster still
        assert ruled(monkeypatch, rule, made, kind).word == (FOR if sure else OPEN)
        assert ruled(monkeypatch, rule, rows, kind).word == FOR
    other = {name: replace(row, edge=name in edges) for name, row in zip("ba", steps.values(), strict=True)}
    assert ruled(monkeypatch, {"faster": ["a", "b"]}, other, "steps").word == (OPEN if edges == "a" else AGAINST)
    goal = {"a": Made(top=60, edge="a" in edges), "b": Made(edge="b" in edges)}  # a higher goal is not reached either
    assert ruled(monkeypatch, {"never_reaches": ["a", "b"]}, goal, "steps").word == (OPEN if edges == "a" else FOR)
    assert ruled(monkeypatch, {"never_reaches": ["b", "a"]}, goal, "steps").word == (OPEN if edges == "a" else AGAINST)


LOWER_BY_3 = {"lower_rate": ["a", "b"], "by": 3}
ENDS = [  # of grids, from 1e-4 to 1e-2, and beyond but for those that end there
    (LOWER_BY_3, (LOWER, HIGHER), FOR, {}),
    (LOWER_BY_3, (replace(LOWER, beyond=False), PEAK), FOR, {}),  # lower still is lower
    (LOWER_BY_3, (PEAK, replace(HIGHER, edge=True)), FOR, {}),
    (LOWER_BY_3, (PEAK, replace(LOWER, beyond=False)), AGAINST, {}),
    (LOWER_BY_3, (replace(HIGHER, edge=True), replace(HIGHER, edge=True)), OPEN, {}),
    (LOWER_BY_3, (replace(LOWER, beyond=False), replace(LOWER, beyond=False)), OPEN, {}),
    (LOWER_BY_3, (PEAK, Made({1e-3: 90, 2e-3: 90.1, 1e-2: 60}, sd=0.2)), AGAINST, {}),  # whichever of the two is best
    (LOWER_BY_3, (LOWER, Made({1e-4: 60, 2e-4: 90.1, 1e-3: 90}, sd=0.4)), OPEN, {}),
    (LOWER_BY_3, (replace(LOWER, seeds=2), replace(HIGHER, seeds=2)), OPEN, {}),  # too few pairs
    (LOWER_BY_3, (Made({1e-4: 80}, best=1e-4, beyond=False), HIGHER), OPEN, {}),  # one rate is not the best of anything
    (LOWER_BY_3, (Made(best=None), Made(best=1e-3)), OPEN, {}),
]
RATIO = {"rate_ratio": ["a", "b"], "by": 1}
RATIOS = [  # with one bound: no likeness
    (RATIO, (loss(-2.5), loss()), FOR, {}),
    (RATIO, (loss(-3.5), loss()), AGAINST, {}),
    (RATIO, (loss(-4.4), loss()), OPEN, {"note": "end of the grid"}),
    ({"lower": ["a", "b"]}, (HIGH, LOW), NOT_TESTED, {}),  # without losses
]
EVEN, BEHIND, MUCH = Made(AT, sd=0.1), Made(up(-0.5), sd=0.1), BEATS | {"by": 5}
TIE, LEAD = ({"a": {"digits": 100}, "b": {"digits": number}} for number in (100, 99))
MARGINS = [
    (MUCH, (Made(up(1), sd=2), LOW), AGAINST, {}),
    (MUCH, (Made(up(5), sd=2), LOW), OPEN, {}),
    (MUCH, (Made(up(9), sd=2), LOW), FOR, {}),
    (COMPARABLE, (Made(up(-1.5), sd=0.1), EVEN), AGAINST, {}),
    (COMPARABLE, (Made(up(-1.5), sd=0.1), EVEN), FOR, {"task": "listops-short"}),
    (BEATS, (BEHIND, EVEN), FOR, {"printed": TIE, "note": "a tie in the paper"}),  # is a tie in the rule
    (BEATS, (BEHIND, EVEN), AGAINST, {"printed": LEAD}),
    (BEATS, (Made(up(-5)), EVEN), AGAINST, {"printed": TIE}),
    ({"order": ["b", "a"]}, (BEHIND, EVEN), FOR, {"printed": TIE}),
    ({"order": ["b", "a"]}, (BEHIND, EVEN), AGAINST, {"printed": LEAD}),
]
AS_PRINTED = BEATS | {"at": "paper"}
BY_ITS_OWN = {"arm": "frozen-pretrained", "pretrained_by": "digits.unfrozen-random-0a1b2c3d"}
INCOMPARABLE = [
    (AS_PRINTED, (HIGH, Made(fields={"steps": 800})), NOT_TESTED, {"note": "different numbers of steps"}),
    (AS_PRINTED, (HIGH, Made(fields=BY_ITS_OWN)), NOT_TESTED, {"note": "pretrained on this very task"}),
    (AS_PRINTED, (HIGH, Made({1e-4: 80}, best=1e-4)), NOT_TESTED, {"note": "not run at the paper's rate"}),
    (AS_PRINTED, (HIGH, Made(result={"compute_type": "bfloat16"})), NOT_TESTED, {"note": "different number types"}),
    (AS_PRINTED, (HIGH, Made(result={"data_checksum": "f" * 64})), NOT_TESTED, {"note": "other data than those of a"}),
    (BEATS, (HIGH, Made(best=None)), OPEN, {"note": "diverged at every rate: b"}),
    (AS_PRINTED, (HIGH, Made(60, diverged={1e-3: 8})), FOR, {"note": "diverged runs: b (8)"}),  # they count as chance
    (BEATS, (Made(90, sd=0), Made(80, sd=0)), FOR, {}),  # without spread signs are flipped
    (BEATS, (Made(90, sd=0, seeds=3), Made(80, sd=0, seeds=3)), OPEN, {}),  # three pairs: p = 1/4
]
FASTER, ALWAYS, NEVER = {"faster": ["a", "b"]}, Made(arrives=[100, 90, 80]), Made(top=80)
FEW, MANY = Made(arrives=[60, 65]), Made(arrives=[220, 225])
TO_B = {"kind": "steps", "until": "b"}  # to the last accuracy of that row
STEPS = [
    (FASTER, (ALWAYS, NEVER), FOR, {"kind": "steps", "note": "steps: a 100 (50 to 100), b > 400"}),
    (FASTER, (NEVER, ALWAYS), AGAINST, {"kind": "steps"}),
    (FASTER, (NEVER, NEVER), OPEN, {"kind": "steps"}),
    (FASTER | {"by": 2, "to": 5}, (ALWAYS, NEVER), OPEN, {"kind": "steps"}),  # at most 5 times cannot be said
    (FASTER, (ALWAYS, Made(arrives=[60, 70])), OPEN, {"kind": "steps"}),  # both come between two budgets
    (FASTER | {"by": 2, "to": 5}, (FEW, MANY), FOR, {"kind": "steps", "note": "steps on validation data: a "}),
    (FASTER | {"by": 5, "to": 9}, (FEW, MANY), AGAINST, {"kind": "steps"}),
    (FASTER | {"by": 1, "to": 2}, (FEW, MANY), AGAINST, {"kind": "steps"}),
    (
        FASTER, (Made(top=85, arrives=[60, 100, 80]), Made(top=60)), FOR,
        TO_B | {"note": "steps: a 100 (50 to 100), b 400 (200 to 400)"},
    ),
    ({"faster": ["a", "c"]}, (ALWAYS, Made(top=60), Made(top=50)), FOR, TO_B),
    ({"faster": ["c", "a"]}, (ALWAYS, Made(top=60), Made(top=50)), AGAINST, TO_B),
]  # fmt: skip
WEAKER, LEADS = {"attends": ["a", "b"], "level": "weaker"}, {"attends": "a", "level": "lead"}
STRONG, WEAK = Made(attention=(80, 30, 30)), Made(attention=(50, 30, 30))
ATTENTION = [
    (WEAKER, (WEAK, STRONG), FOR, {"kind": "attention"}),
    (WEAKER, (STRONG, WEAK), AGAINST, {"kind": "attention"}),
    (LEADS, (STRONG,), FOR, {"kind": "attention"}),
    (LEADS, (Made(attention=(70, 90, 30)),), AGAINST, {"kind": "attention"}),  # it led before training too
    (LEADS, (Made(),), NOT_TESTED, {"kind": "attention"}),
]
FALLS, FALLEN = Made({1e-3: 80, 3e-3: 79, 1e-2: 60}), Made({1e-4: 80, 1e-3: 50, 3e-3: 40}, best=1e-4)
NEAR_CHANCE = Made({1e-4: 29, 1e-3: 25, 3e-3: 22}, best=1e-4)
DROPS = [
    ({"drop": "a", "by": 10}, (FALLS,), AGAINST, {}),
    ({"drop": "a", "by": 10, "level": 1e-2}, (FALLS,), FOR, {}),  # at a named rate
    ({"drop": "a", "level": 1e-2}, (Made({1e-3: 80, 1e-2: 90}, beyond=False),), AGAINST, {}),  # it rises there
    ({"drop": "a", "by": 10}, (Made({1e-4: 80, 1e-3: 70}, beyond=False),), NOT_TESTED, {}),
    # what has fallen at the paper's rate says nothing of a drop beyond
    ({"drop": "a", "by": 20}, (FALLEN,), NOT_TESTED, {"note": "a has lost 30 points at 1e-3"}),
    ({"drop": "a", "by": 35}, (FALLEN,), AGAINST, {}),
    ({"drop": "a", "by": 20}, (NEAR_CHANCE,), NOT_TESTED, {"note": "a is 15 points over chance at 1e-3"}),
    ({"drop": "a", "by": 10}, (NEAR_CHANCE,), AGAINST, {}),
    ({"unstable": "a", "by": 10}, (Made(80, best=1e-4, diverged={1e-3: 1}),), FOR, {"note": "1 runs diverged"}),
    ({"loses_at_papers_rate": "a", "by": 10}, (Made(80, best=1e-4, diverged={1e-3: 1}),), OPEN, {"note": "a (1)"}),
    ({"unstable": "a", "by": 10}, (Made(80),), NOT_TESTED, {}),  # one cell: not compared with itself
]


@pytest.mark.parametrize(
    ("rule", "rows", "word", "more"),
    [*ENDS, *RATIOS, *MARGINS, *INCOMPARABLE, *STEPS, *ATTENTION, *DROPS],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_rule_says_of_rows(rule, rows, word, more, monkeypatch):
    more = dict(more)
    note = more.pop("note", "")
    found = ruled(monkeypatch, rule, dict(zip("abc", rows, strict=False)), **more)
    assert found.word == word
    assert all(note in comparison.note for comparison in found.comparisons)


def test_printed_rates_are_those_of_the_pairs_that_decide():
    """A pair of rates is refuted at 5%, each of the two at 2.5%."""
    found = {1e-3: 1.0, 1e-2: 0.03, 1e-1: 0.02}
    kept = {low for low, _, p in pairs_of_rates(found, {1.0: 1.0}) if p >= 0.05}
    assert kept == {1e-3, 1e-2}
    assert _set_words(found) == "1e-3 to 1e-2"


def test_numbers_of_the_paper_are_tested_at_its_scale_alone(monkeypatch):
    printed = {"a": {"digits": 80}}
    for rule in ({"near": "a"}, {"beats": ["a", "b"], "only_paper_scale": True}):
        rows = {"a": Made(up(-9)), "b": LOW}
        assert ruled(monkeypatch, rule, rows, printed=printed).comparisons == []
        assert ruled(monkeypatch, rule, rows, printed=printed, scale=PAPER_SCALE).word == AGAINST


def test_a_collapsed_run_gets_no_t_test(monkeypatch):
    rows = {"a": Made({1e-3: [85, 85, 20, 85, 85, 85, 85, 85]}), "b": LOW}
    comparison = ruled(monkeypatch, BEATS, rows).comparisons[0]
    assert comparison.estimate.flips
    assert math.isnan(comparison.estimate.df)
    assert "1 collapsed runs, medians 8" in comparison.note
    assert "p by sign flips" in comparison.note
    assert comparison.word == OPEN  # one pair in eight the other way
    ahead = ruled(monkeypatch, BEATS, {"a": rows["a"], "b": Made(19)})
    assert ahead.word == FOR


def test_what_is_planned_and_not_run_is_on_a_list_of_its_own(monkeypatch):
    (rule,) = claim(BEATS).rule
    for second, pairs in ((Made(missing=True), ["tiny-lm/digits"]), (LOW, [])):
        runs = study(monkeypatch, paper(["a", "b"]), {"a": HIGH, "b": second})
        assert pairs_not_run(rule, runs) == pairs
        assert len(cases_of(rule, runs)) == 1 - len(pairs)


def test_only_the_tasks_that_the_rule_names(monkeypatch):
    rows = {"a": HIGH, "b": LOW}
    made = study(monkeypatch, paper(["a", "b"]), ("digits", rows), ("mnist", rows))
    for tasks in (["mnist"], ["bit-xor"]):
        (rule,) = claim(BEATS | {"tasks": tasks}).rule
        assert [each.task for each in cases_of(rule, made)] == [task for task in tasks if task in made.tasks]  # type: ignore[arg-type]


def test_a_fixed_test_set_is_part_of_the_noise(monkeypatch):
    lead, behind = Made(up(1.5)), Made(AT)
    assert ruled(monkeypatch, BEATS, {"a": lead, "b": behind}).word == FOR
    fixed = {"test": {"drawn_by_seed": False, "size": 400}}
    found = ruled(monkeypatch, BEATS, {"a": replace(lead, result=fixed), "b": replace(behind, result=fixed)})
    assert found.word == OPEN
    expected = (0.815 * 0.185 + 0.8 * 0.2) / 400
    assert found.comparisons[0].estimate.test_variance == pytest.approx(expected, rel=0.01)
    twice = {"jump": ["a", "b", "c"]}  # b counts twice
    rows = {row: replace(made, result=fixed) for row, made in zip("abc", (LOW, HIGH, LOW), strict=True)}
    noise = ruled(monkeypatch, twice, rows).comparisons[0].estimate.test_variance
    assert noise == pytest.approx((4 * 0.85 * 0.15 + 2 * 0.8 * 0.2) / 400, rel=0.01)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({1e-6: 11, 1e-4: 60, 1e-3: 80}, {1e-6: 10, 1e-4: 80, 1e-3: 60}),  # at 1e-6 nothing is learned
        ({1e-5: 80, 1e-4: 60, 1e-3: 80}, {1e-4: 80, 1e-3: 60}),  # 1e-5 is of one arm alone
    ],
)
def test_a_comparison_at_rates_takes_those_that_both_have_and_learn_at(first, second, monkeypatch):
    found = ruled(monkeypatch, {"inverts": ["a", "b"]}, {"a": Made(first), "b": Made(second)})
    assert found.word == FOR
    assert [comparison.label for comparison in found.comparisons] == ["b - a at 1e-4", "a - b at 1e-3"]


def test_no_study_compares_a_sweep_with_itself():
    """plane-minilm gives every row two layers: what compares two layers with the whole model is not tested there."""
    runs, rows = StudyCells(ROOT / "runs/plane-minilm", "published"), read(ROOT / "runs")
    assert comparisons_in(claims()["P-10"], runs) == []
    compared = set(rows.loc[rows["study"] == "plane-minilm", "contrast"])
    assert "Unfrozen Pretrained - Frozen Pretrained" in compared
    assert not [each for each in compared if "layers" in each]


def test_what_stands_for_several_tasks_says_nothing_where_a_claim_tells_them_apart():
    """In laptop-lu2021 digits stand for MNIST and CIFAR-10 alike; in plane-digits for MNIST alone."""
    both, one = (StudyCells(ROOT / "runs" / name, "published") for name in ("laptop-lu2021", "plane-digits"))
    assert comparisons_in(claims()["L-16"], both)  # on MNIST and CIFAR-10
    assert comparisons_in(claims()["R-10"], both) == []  # on MNIST
    assert comparisons_in(claims()["R-10"], one)


@pytest.mark.parametrize(
    ("numbers", "word"),
    [
        (50.9, words.CONSISTENT),
        ([40, 50.3], words.CONSISTENT),
        (51.5, words.TOO_CLOSE),
        (53, words.SLIP),
        ({1: 50, 2: 60}, words.CONSISTENT),
    ],
)
def test_a_baseline_is_the_printed_number(numbers, word, monkeypatch):
    monkeypatch.setattr("fpt.claims.arithmetic.known_scores", lambda task: {"exact to depth 1": Score(0.5)})
    given = on_a_baseline({"accuracy": numbers, "se": 0.5}, "exact to depth 1", "bit-xor")
    assert judged([], [given])["word"][0] == word


def test_a_baseline_that_was_not_counted_is_read_alone(monkeypatch):
    monkeypatch.setattr("fpt.claims.arithmetic.known_scores", lambda task: {})
    given = on_a_baseline({"accuracy": 92}, "linear classifier", "mnist")
    assert without_runs(given) == (words.READ, "mnist: linear classifier was not counted")


def on_a_baseline(numbers, level, task):
    rule = {"baseline": [], "level": level, "tasks": [task]}
    return Claim.model_validate({"id": "B", "says": "so", "where": "there", "numbers": numbers, "rule": rule})


def test_ratios_of_rates_and_of_steps_have_an_estimate(monkeypatch):
    (rates,) = ruled(monkeypatch, {"lower_rate": ["a", "b"], "by": 3}, {"a": LOWER, "b": HIGHER}).comparisons
    assert rates.estimate.unit == TIMES
    assert (rates.estimate.value, *rates.estimate.interval) == pytest.approx((100, 100, 100))
    rows = {"a": Made(arrives=[60, 65, 70]), "b": Made(arrives=[220, 225, 230])}
    (steps,) = ruled(monkeypatch, {"faster": ["a", "b"]}, rows, "steps").comparisons
    assert (steps.estimate.value, *steps.estimate.interval) == pytest.approx((4, 2, 8))
    assert judge.numbers_of(steps)["estimate"] == pytest.approx(math.log10(4))  # a file has it in decades
    never = ruled(monkeypatch, {"faster": ["a", "b"]}, rows | {"b": Made(top=80)}, "steps").comparisons[0]
    assert judge.numbers_of(never)["unit"] == ""


def test_a_ratio_of_rates_says_what_it_excludes(monkeypatch):
    adapted = replace(loss(-2.7), fields={"arm": "lora-pretrained"})
    (comparison,) = ruled(
        monkeypatch, {"rate_ratio": ["a", "b"], "by": 5, "to": 20}, {"a": adapted, "b": loss()}
    ).comparisons
    assert comparison.word == AGAINST
    assert comparison.note == "excludes 1, 10"  # and not width / (2 alpha), which is 2
    assert comparison.estimate.value == pytest.approx(2, abs=0.1)


def test_losses_are_compared_window_by_window(monkeypatch):
    (comparison,) = ruled(monkeypatch, {"lower": ["a", "b"]}, {"a": loss(least=1.4), "b": loss()}).comparisons
    assert comparison.estimate.unit == NATS
    assert comparison.estimate.value == pytest.approx(0.1, abs=0.02)
    assert comparison.estimate.test_variance == pytest.approx(
        0, abs=1e-12
    )  # that a window is hard for both is no noise


def test_a_model_that_gains_nothing_leaves_a_share_of_the_gain_open(monkeypatch):
    monkeypatch.setattr("fpt.claims.losses.untouched_loss", lambda task, backbone: 1.0)
    rule = {"same_loss": ["a", "b"], "by": 5}
    assert ruled(monkeypatch, rule, {"a": loss(), "b": loss()}).word == OPEN
    monkeypatch.setattr("fpt.claims.losses.untouched_loss", lambda task, backbone: None)
    assert ruled(monkeypatch, rule, {"a": loss(), "b": loss()}).word == NOT_TESTED


def test_a_seed_that_diverged_takes_no_part_in_the_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(tables: Any) -> Any:
        found = tuned_losses(tables).copy()
        found.iloc[0] = math.nan
        return found

    monkeypatch.setattr("fpt.claims.losses.tuned_losses", lost)
    assert ruled(monkeypatch, {"same_loss": ["a", "b", "c"], "by": 5}, dict.fromkeys("abc", loss())).word == FOR


def test_an_unknown_level_of_attention_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match=r"unknown level of attends 'need'.*Did you mean 'needed'"):
        ruled(monkeypatch, {"attends": "a", "level": "need"}, {"a": STRONG}, "attention")
