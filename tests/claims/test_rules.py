"""Every kind of rule on data for each of its words, and what rules make of edges, scales and runs that collapsed."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_cells import PAPER, Made, MadeStudy, claim, paper, study

from fpt.claims import judge, registry, words
from fpt.claims.by_rate import _set_words, pairs_of_rates
from fpt.claims.case import DECADES, NATS, NOT_TESTED, Comparison, cases_of, decides
from fpt.claims.judge import SPEAKS, Judge
from fpt.claims.rules import baseline_verdict, comparisons_of
from fpt.claims.words import AGAINST, FOR, OPEN, PairTest
from fpt.errors import SpecError
from fpt.papers import claims, schema
from fpt.papers.schema import Claim
from fpt.results import StudyCells
from fpt.results.baselines import Score
from fpt.results.cells import NOT_RUN

ROOT = Path(__file__).parents[2]
AT = {1e-4: 80, 1e-3: 80, 1e-2: 80}
GRID = {1e-5: 40, 1e-4: 60, 1e-3: 80}
FLAT = dict.fromkeys(GRID, 80)


def up(points: float, rates: Any = AT) -> dict[float, float]:
    return {rate: mean + points for rate, mean in rates.items()}


A, B = Made(up(5)), Made(AT)
NOISY = Made(up(0.5), sd=3)
LOWER, PEAK, HIGHER = (  # best at 1e-4, 1e-3, 1e-2
    Made(dict(zip(AT, means, strict=True)), best=best)
    for means, best in (((90, 80, 60), 1e-4), ((70, 90, 70), 1e-3), ((60, 80, 90), 1e-2))
)
QUARTERS = dict.fromkeys((float(rate) for rate in 10.0 ** np.arange(-4.5, -1.4, 0.25)), 80)


def loss(place: float = -3.0, least: float = 1.5, sd: float = 0.4, backbone: str = "tiny-lm") -> Made:
    """An arm whose loss is least at 10^place."""
    own = {"backbone": backbone}
    return Made(QUARTERS, sd, best=list(QUARTERS)[6], beyond=False, losses=(place, least), fields=own)


# kind -> (rule, kind of table, {word: the rows, first to last})
CASES: dict[str, tuple[dict[str, Any], str, dict[str, list[Made]]]] = {
    "beats": ({}, "accuracy", {FOR: [A, B], AGAINST: [B, A], OPEN: [NOISY, B]}),
    "matches": ({}, "accuracy", {FOR: [Made(AT), B], AGAINST: [B, A], OPEN: [Made(up(-1), sd=3), B]}),
    "comparable": ({}, "accuracy", {FOR: [Made(AT, sd=0.2), B], AGAINST: [A, B], OPEN: [NOISY, B]}),
    "order": ({}, "accuracy", {FOR: [B, A, Made(up(9))], AGAINST: [A, B, Made(up(9))], OPEN: [B, A, Made(up(5))]}),
    "jump": (
        {}, "accuracy",
        {
            FOR: [B, Made(up(9)), Made(up(10))],
            AGAINST: [B, Made(up(1)), Made(up(10))],
            OPEN: [B, Made(up(5)), Made(up(10))],
        },
    ),
    "above_linear": ({}, "accuracy", {FOR: [A], AGAINST: [Made(up(-5))], OPEN: [NOISY]}),
    "larger_difference": (
        {}, "accuracy",
        {FOR: [A, B, Made(up(1)), Made(AT)], AGAINST: [B, B, A, Made(AT)], OPEN: [NOISY, B, Made(AT), Made(AT)]},
    ),
    "near": ({}, "accuracy", {FOR: [Made(AT, sd=0.2)], AGAINST: [A], OPEN: [NOISY]}),
    "linear": ({}, "accuracy", {FOR: [Made(AT, sd=0.2)], AGAINST: [A], OPEN: [NOISY]}),
    "reaches": ({"level": 82}, "accuracy", {FOR: [A], AGAINST: [B], OPEN: [Made(up(2), sd=2)]}),
    "faster": (
        {"by": 2, "to": 5}, "steps",
        {
            FOR: [Made(arrives=[60, 65, 70]), Made(arrives=[220, 225, 230])],
            AGAINST: [Made(arrives=[200, 205, 210]), Made(arrives=[180, 185, 190])],
            OPEN: [Made(arrives=[60, 390, 80]), Made(arrives=[180, 260, 240])],
        },
    ),
    "never_reaches": (
        {}, "steps",
        {FOR: [Made(top=60), Made()], AGAINST: [Made(), Made(top=60)], OPEN: [Made(), Made()]},
    ),
    "small_gap": ({}, "gap", {FOR: [Made(train=80.2)], AGAINST: [Made(train=85)], OPEN: [Made(train=81, sd=3)]}),
    "smaller_gap": (
        {}, "gap",
        {
            FOR: [Made(train=81), Made(train=90)],
            AGAINST: [Made(train=90), Made(train=81)],
            OPEN: [Made(sd=3), Made(train=81, sd=3)],
        },
    ),
    "underfits": (
        {}, "gap",
        {
            FOR: [Made(train=81), Made(train=90)],
            AGAINST: [Made(train=90), Made(train=81)],
            OPEN: [Made(train=81, sd=3), Made(train=81.2, sd=3)],
        },
    ),
    "unstable": (
        {"by": 10}, "accuracy",
        {
            FOR: [Made({1e-4: 80, 1e-3: 50, 1e-2: 50}, best=1e-4)],
            AGAINST: [Made({1e-4: 80, 1e-3: 78, 1e-2: 50}, best=1e-4)],
            OPEN: [Made({1e-4: 80, 1e-3: 66, 1e-2: 50}, best=1e-4, sd=3)],
        },
    ),
    "drop": (
        {"by": 20}, "accuracy",
        {
            FOR: [Made({1e-3: 80, 1e-2: 30})],
            AGAINST: [Made({1e-3: 80, 1e-2: 75})],
            OPEN: [Made({1e-3: 80, 1e-2: [50, 70]})],
        },
    ),
    "lower_rate": ({"by": 3}, "accuracy", {FOR: [LOWER, PEAK], AGAINST: [PEAK, PEAK], OPEN: [Made(AT), Made(AT)]}),
    "plane": (
        {}, "accuracy",
        {FOR: [LOWER, HIGHER], AGAINST: [Made(up(-5)), B], OPEN: [NOISY, B]},
    ),
    "crossing": ({}, "accuracy", {FOR: [A, B], AGAINST: [B, A], OPEN: [NOISY, B]}),
    "inverts": (
        {}, "accuracy",
        {
            FOR: [Made({1e-4: 60, 1e-3: 80}), Made({1e-4: 80, 1e-3: 60})],
            AGAINST: [Made({1e-4: 80, 1e-3: 80}), Made({1e-4: 70, 1e-3: 60})],
            OPEN: [Made({1e-4: [60, 80], 1e-3: 80}), Made({1e-4: 71, 1e-3: 60})],
        },
    ),
    "inverts_somewhere": (
        {}, "accuracy",
        {
            FOR: [Made({1e-4: 60, 3e-4: 80, 1e-3: 80}), Made({1e-4: 80, 3e-4: 80, 1e-3: 60})],
            AGAINST: [Made({1e-4: 80, 3e-4: 80, 1e-3: 80}), Made({1e-4: 70, 3e-4: 75, 1e-3: 60})],
            OPEN: [Made({1e-4: [60, 80], 1e-3: 80}), Made({1e-4: 71, 1e-3: 60})],
        },
    ),
    "fixed_and_tuned": (
        {}, "accuracy",
        {
            FOR: [B, Made({1e-4: 90, 1e-3: 60, 1e-2: 20}, best=1e-4)],
            AGAINST: [B, Made({1e-4: 70, 1e-3: 60, 1e-2: 20}, best=1e-4)],
            OPEN: [B, Made({1e-4: 80, 1e-3: 60, 1e-2: 20}, best=1e-4, sd=2)],
        },
    ),
    "orders_differ": (
        {}, "accuracy",
        {
            FOR: [Made({1e-4: 80, 1e-3: 60}), Made({1e-4: 60, 1e-3: 80})],
            AGAINST: [Made({1e-4: 80, 1e-3: 80}), Made({1e-4: 60, 1e-3: 60})],
            OPEN: [Made({1e-4: 80, 1e-3: 80}, sd=3), Made({1e-4: 80, 1e-3: 80}, sd=3)],
        },
    ),
    "rate_ratio": (
        {"by": 0.5, "to": 2}, "accuracy",
        {FOR: [loss(), loss()], AGAINST: [loss(-2.0), loss()], OPEN: [loss(-2.72), loss()]},
    ),
    "ratio_slope": (
        {}, "accuracy",
        {
            FOR: [loss(), loss(), loss(backbone="tiny-lm-64"), loss(backbone="tiny-lm-64")],
            AGAINST: [loss(-2.0), loss(), loss(backbone="tiny-lm-64"), loss(backbone="tiny-lm-64")],
            OPEN: [loss(-2.92), loss(), loss(backbone="tiny-lm-64"), loss(backbone="tiny-lm-64")],
        },
    ),
    "lower": (
        {}, "accuracy",
        {
            FOR: [loss(least=1.4), loss()],
            AGAINST: [loss(), loss(least=1.4)],
            OPEN: [loss(sd=3), loss(sd=3)],
        },
    ),
    "same_loss": (
        {"by": 5}, "accuracy",
        {
            FOR: [loss(), loss(), loss()],
            AGAINST: [loss(least=1.8), loss(), loss()],
            OPEN: [loss(least=1.57, sd=3), loss(sd=3), loss()],
        },
    ),
    "attends": (
        {"level": "needed"}, "attention",
        {
            FOR: [Made(attention=(80, 30, 30))],
            AGAINST: [Made(attention=(50, 30, 30))],
            OPEN: [Made(attention=(60, 30, 30), sd=4)],
        },
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpt.claims.losses.untouched_loss", lambda task, backbone: 3.0)
    counted(monkeypatch, 1_000_000)


def counted(monkeypatch: pytest.MonkeyPatch, examples: int) -> None:
    """A linear classifier that reached 80% of so many examples."""
    monkeypatch.setattr("fpt.claims.rules.known_scores", lambda task: {"linear classifier": Score(0.8, examples)})


def made(monkeypatch: pytest.MonkeyPatch, kind: str, word: str) -> tuple[Claim, MadeStudy]:
    rule, of_table, cases = CASES[kind]
    names = [f"row {n}" for n in range(len(cases[word]))]
    printed = {"row 0": {"digits": 80}} if kind == "near" else None
    rows = dict(zip(names, cases[word], strict=True))
    toy = paper(names, of_table, printed)
    return claim({kind: names, **rule}), study(monkeypatch, toy, rows, scale=PAPER if kind == "near" else "reduced")


SAID = {  # by the word of its only pair: those of a claim
    FOR: {words.ONE_FOR, words.REPLICATED},
    AGAINST: {words.ONE_AGAINST, words.CONTRADICTED},
    OPEN: {words.TOO_CLOSE, words.NOT_SHOWABLE},
}
KINDS = sorted(registry.KINDS | registry.OWN)


def test_a_function_for_every_kind_of_rule() -> None:
    assert set(registry.KINDS) == set(schema.KINDS) - {"baseline"}
    assert set(CASES) == set(KINDS)
    assert all(set(cases) == {FOR, AGAINST, OPEN} for _, _, cases in CASES.values())


def test_a_function_of_its_own_serves_the_claims_that_name_it() -> None:
    found: dict[str, set[str]] = {name: set() for name in registry.OWN}
    for name, each in claims().items():
        for rule in each.rule:
            if rule.is_own:
                found[rule.kind].add(name)
    assert found == {name: set(served) for name, served in registry.CLAIMS.items()}


def test_an_unknown_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match=r"unknown function of fpt.claims 'dropp'.*Did you mean 'drop'"):
        ruled(monkeypatch, {"function": "dropp", "rows": ["a"], "words": "so"}, {"a": Made(AT)})


@pytest.mark.parametrize("word", [FOR, AGAINST, OPEN])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_to_each_word_on_a_pair(monkeypatch: pytest.MonkeyPatch, kind: str, word: str) -> None:
    monkeypatch.setattr(judge, "at_floor", lambda *_: False)
    of_claim, runs = made(monkeypatch, kind, word)
    summary, *rows = Judge([runs]).of_claim(of_claim)  # type: ignore[list-item]
    assert summary["word"] in SAID[word]
    assert rows
    assert {(row["pair"], row["role"]) for row in rows} == {("tiny-lm/digits", SPEAKS)}
    assert word in {row["word"] for row in rows} <= ({word} if word == FOR else {FOR, AGAINST, OPEN})
    assert all(row["contrast"] for row in rows)


def test_a_score_of_few_examples_has_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch, 400)  # 2 points
    of_claim, runs = made(monkeypatch, "linear", FOR)
    (comparison,) = comparisons_in(of_claim, runs)
    assert comparison.word == OPEN
    assert comparison.test.noise == pytest.approx(0.02**2)
    assert comparison.test.high - comparison.test.low > 2 * 0.02


@dataclass(frozen=True)
class Ruled:
    """What a rule says of one task."""

    comparisons: list[Comparison]

    @property
    def word(self) -> str:
        """For, against or open, over its comparisons; why they say nothing, where none does."""
        tests = [
            PairTest(comparison.supports / 2, comparison.contradicts / 2)
            for comparison in self.comparisons
            if not comparison.missing
        ]
        return words.of_contrasts(tests).word if tests else self.comparisons[0].missing


def comparisons_in(of_claim: Claim, runs: Any) -> list[Comparison]:
    """The comparisons of a claim's rules in one study."""
    comparisons = []
    for rule in of_claim.rule:
        cases = cases_of(rule, runs) if rule.table else []
        for each in filter(decides, cases):
            comparisons += comparisons_of(each)
    return comparisons


def ruled(
    monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any], rows: dict[str, Made], kind: str = "accuracy", **more: Any
) -> Ruled:
    """One rule on one task of a made study."""
    toy = paper(list(rows), kind, more.pop("printed", None), more.pop("until", "threshold"))
    return Ruled(comparisons_in(claim(rule), study(monkeypatch, toy, (more.pop("task", "digits"), rows), **more)))


BEATS = {"beats": ["a", "b"]}
COMPARABLE = {"comparable": ["a", "b"]}
HIGH, LOW, SAME = Made(up(5)), Made(AT), Made(AT, sd=0.2)
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
def test_a_verdict_at_an_edge_stands_if_every_value_above_gives_the_same(
    rule: dict[str, Any], rows: tuple[Made, Made], edges: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {name: replace(row, edge=name in edges) for name, row in zip("ab", rows, strict=True)}
    found = ruled(monkeypatch, rule, made)
    assert found.word == word
    assert all("edge of the grid" in comparison.note for comparison in found.comparisons) or rule.get("at") == "paper"


@pytest.mark.parametrize("edges", ["a", "b"])
def test_an_edge_does_not_bound_a_gap_and_bounds_steps_from_above(edges: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [  # by 3; grids from 1e-4 to 1e-2, and beyond but for those that end there
        (LOWER, HIGHER, FOR),
        (replace(LOWER, beyond=False), PEAK, FOR),  # lower still is lower
        (PEAK, replace(HIGHER, edge=True), FOR),
        (PEAK, replace(LOWER, beyond=False), AGAINST),
        (replace(HIGHER, edge=True), replace(HIGHER, edge=True), OPEN),
        (replace(LOWER, beyond=False), replace(LOWER, beyond=False), OPEN),
        (PEAK, Made({1e-3: 90, 2e-3: 90.1, 1e-2: 60}, sd=0.2), AGAINST),  # whichever of the two is best
        (LOWER, Made({1e-4: 60, 2e-4: 90.1, 1e-3: 90}, sd=0.4), OPEN),
        (replace(LOWER, seeds=2), replace(HIGHER, seeds=2), OPEN),  # too few pairs
        (Made({1e-4: 80}, best=1e-4, beyond=False), HIGHER, OPEN),  # a single rate is not the best one of anything
        (Made(best=None), Made(best=1e-3), OPEN),
    ],
)
def test_ends_of_the_grid_bound_the_best_rate(
    first: Made, second: Made, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ruled(monkeypatch, {"lower_rate": ["a", "b"], "by": 3}, {"a": first, "b": second}).word == word


def test_printed_rates_are_those_of_the_pairs_that_decide() -> None:
    """A pair of rates is refuted at 5%, each of the two at 2.5%."""
    found = {1e-3: 1.0, 1e-2: 0.03, 1e-1: 0.02}
    kept = {low for low, _, p in pairs_of_rates(found, {1.0: 1.0}) if p >= 0.05}
    assert kept == {1e-3, 1e-2}
    assert _set_words(found) == "1e-3 to 1e-2"


def test_much_is_more_than_five_points(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {points: ruled(monkeypatch, BEATS | {"by": 5}, {"a": Made(up(points), sd=2), "b": LOW}).word
             for points in (1, 5, 9)}  # fmt: skip
    assert found == {1: AGAINST, 5: OPEN, 9: FOR}


def test_a_tie_in_the_paper_is_a_tie_in_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(up(-0.5), sd=0.1), "b": Made(AT, sd=0.1)}
    tie, lead = ({row: {"digits": value} for row, value in zip("ab", values, strict=True)}
                 for values in ((100, 100), (100, 99)))  # fmt: skip
    for rule in (BEATS, {"order": ["b", "a"]}):
        assert ruled(monkeypatch, rule, rows, printed=tie).word == FOR
        assert ruled(monkeypatch, rule, rows, printed=lead).word == AGAINST
    assert "a tie in the paper" in ruled(monkeypatch, BEATS, rows, printed=tie).comparisons[0].note
    worse = rows | {"a": Made(up(-5))}
    assert ruled(monkeypatch, BEATS, worse, printed=tie).word == AGAINST


def test_the_margin_of_listops_is_two_points(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(up(-1.5), sd=0.1), "b": Made(AT, sd=0.1)}
    assert ruled(monkeypatch, COMPARABLE, rows, task="listops-short").word == FOR
    assert ruled(monkeypatch, COMPARABLE, rows, task="digits").word == AGAINST


def test_numbers_of_the_paper_are_tested_at_its_scale_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = {"a": {"digits": 80}}
    for rule in ({"near": "a"}, {"beats": ["a", "b"], "only_paper_scale": True}):
        rows = {"a": Made(up(-9)), "b": LOW}
        assert ruled(monkeypatch, rule, rows, printed=printed).comparisons == []
        assert ruled(monkeypatch, rule, rows, printed=printed, scale=PAPER).word == AGAINST


def test_a_collapsed_run_gets_no_t_test(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made({1e-3: [85, 85, 20, 85, 85, 85, 85, 85]}), "b": LOW}
    comparison = ruled(monkeypatch, BEATS, rows).comparisons[0]
    assert comparison.test.exact
    assert math.isnan(comparison.test.low)
    assert "1 collapsed runs, medians 8" in comparison.note
    assert "p by sign flips" in comparison.note
    assert comparison.word == OPEN  # one pair in eight the other way
    ahead = ruled(monkeypatch, BEATS, {"a": rows["a"], "b": Made(19)})
    assert ahead.word == FOR


def test_runs_without_spread_are_tested_by_their_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(90, sd=0), "b": Made(80, sd=0)}
    found = ruled(monkeypatch, BEATS, rows)
    assert (found.word, found.comparisons[0].supports) == (FOR, pytest.approx(2 / 2**8))
    few = {row: replace(made, seeds=3) for row, made in rows.items()}
    assert ruled(monkeypatch, BEATS, few).word == OPEN  # three pairs: p = 1/4


def test_a_run_that_was_never_finite_counts_as_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(80), "b": Made(60, diverged={1e-3: 8})}
    comparison = ruled(monkeypatch, BEATS | {"at": "paper"}, rows).comparisons[0]
    assert comparison.test.mean == pytest.approx(0.7, abs=0.005)  # digits: one of ten
    assert "diverged runs: b (8)" in comparison.note
    assert comparison.word == FOR


def test_no_rate_that_stayed_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ruled(monkeypatch, BEATS, {"a": HIGH, "b": Made(best=None)})
    assert (found.word, found.comparisons[0].note) == (OPEN, "diverged at every rate: b")


def test_only_the_tasks_that_the_rule_names(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": HIGH, "b": LOW}
    made = study(monkeypatch, paper(["a", "b"]), ("digits", rows), ("mnist", rows))
    assert [comparison.task for comparison in comparisons_in(claim(BEATS | {"tasks": ["mnist"]}), made)] == ["mnist"]
    assert comparisons_in(claim(BEATS | {"tasks": ["bit-xor"]}), made) == []


@pytest.mark.parametrize(
    ("changed", "word", "note"),
    [
        ({"missing": True}, NOT_RUN, "not run: b"),
        ({"fields": {"steps": 800}}, NOT_TESTED, "different numbers of steps"),
        ({"fields": {"pretrained_by": "digits.unfrozen-random-0a1b2c3d", "arm": "frozen-pretrained"}}, NOT_TESTED,
         "pretrained on this very task"),
        ({"means": {1e-4: 80}, "best": 1e-4}, NOT_TESTED, "not run at the paper's rate"),
        ({"result": {"compute_type": "bfloat16"}}, NOT_TESTED, "different number types"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_compared(
    changed: dict[str, Any], word: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ruled(monkeypatch, BEATS | {"at": "paper"}, {"a": HIGH, "b": Made(**changed)})
    assert found.word == word
    assert note in found.comparisons[0].note


def test_a_fixed_test_set_is_part_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    lead, behind = Made(up(1.5)), Made(AT)
    assert ruled(monkeypatch, BEATS, {"a": lead, "b": behind}).word == FOR
    fixed = {"test": {"drawn_by_seed": False, "size": 400}}
    found = ruled(monkeypatch, BEATS, {"a": replace(lead, result=fixed), "b": replace(behind, result=fixed)})
    assert found.word == OPEN
    expected = (0.815 * 0.185 + 0.8 * 0.2) / 400
    assert found.comparisons[0].test.noise == pytest.approx(expected, rel=0.01)
    twice = {"jump": ["a", "b", "c"]}  # b counts twice
    rows = {row: replace(made, result=fixed) for row, made in zip("abc", (LOW, HIGH, LOW), strict=True)}
    noise = ruled(monkeypatch, twice, rows).comparisons[0].test.noise
    assert noise == pytest.approx((4 * 0.85 * 0.15 + 2 * 0.8 * 0.2) / 400, rel=0.01)


def test_a_side_that_never_arrives_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    always, never = Made(arrives=[100, 90, 80]), Made(top=80)
    steps = {"faster": ["a", "b"]}
    found = ruled(monkeypatch, steps, {"a": always, "b": never}, "steps")
    assert (found.word, found.comparisons[0].note) == (FOR, "steps: a 100 (50 to 100), b > 400")
    assert ruled(monkeypatch, steps, {"a": never, "b": always}, "steps").word == AGAINST
    assert ruled(monkeypatch, steps, {"a": never, "b": never}, "steps").word == OPEN
    # how many times is open where the slower never arrives: at most 5 times cannot be said
    assert ruled(monkeypatch, steps | {"by": 2, "to": 5}, {"a": always, "b": never}, "steps").word == OPEN
    tie = ruled(monkeypatch, steps, {"a": always, "b": Made(arrives=[60, 70])}, "steps")
    assert tie.word == OPEN  # both come between two budgets


def test_steps_to_the_last_accuracy_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(top=85, arrives=[60, 100, 80]), "b": Made(top=60), "c": Made(top=50)}
    assert ruled(monkeypatch, {"faster": ["a", "c"]}, rows, "steps", until="b").word == FOR
    assert ruled(monkeypatch, {"faster": ["c", "a"]}, rows, "steps", until="b").word == AGAINST
    own = ruled(monkeypatch, {"faster": ["a", "b"]}, rows, "steps", until="b")
    assert (own.word, own.comparisons[0].note) == (FOR, "steps: a 100 (50 to 100), b 400 (200 to 400)")


def test_how_many_times_as_many_is_read_on_validation_data(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(arrives=[60, 65]), "b": Made(arrives=[220, 225])}
    found = ruled(monkeypatch, {"faster": ["a", "b"], "by": 2, "to": 5}, rows, "steps")
    assert found.word == FOR
    assert found.comparisons[0].note.startswith("steps on validation data: a ")
    assert ruled(monkeypatch, {"faster": ["a", "b"], "by": 5, "to": 9}, rows, "steps").word == AGAINST
    assert ruled(monkeypatch, {"faster": ["a", "b"], "by": 1, "to": 2}, rows, "steps").word == AGAINST


def test_the_scores_of_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    weaker = {"attends": ["a", "b"], "level": "weaker"}
    strong, weak = Made(attention=(80, 30, 30)), Made(attention=(50, 30, 30))
    assert ruled(monkeypatch, weaker, {"a": weak, "b": strong}, "attention").word == FOR
    assert ruled(monkeypatch, weaker, {"a": strong, "b": weak}, "attention").word == AGAINST
    lead = {"attends": "a", "level": "lead"}
    assert ruled(monkeypatch, lead, {"a": strong}, "attention").word == FOR
    had = Made(attention=(70, 90, 30))  # it led before training too
    assert ruled(monkeypatch, lead, {"a": had}, "attention").word == AGAINST
    assert ruled(monkeypatch, lead, {"a": Made()}, "attention").word == NOT_TESTED


def test_a_drop_to_a_named_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"a": Made({1e-3: 80, 3e-3: 79, 1e-2: 60})}
    assert ruled(monkeypatch, {"drop": "a", "by": 10}, made).word == AGAINST
    assert ruled(monkeypatch, {"drop": "a", "by": 10, "level": 1e-2}, made).word == FOR
    rises = {"a": Made({1e-3: 80, 1e-2: 90}, beyond=False)}
    assert ruled(monkeypatch, {"drop": "a", "level": 1e-2}, rises).word == AGAINST  # also where it is no end of a fall
    assert (
        ruled(monkeypatch, {"drop": "a", "by": 10}, {"a": Made({1e-4: 80, 1e-3: 70}, beyond=False)}).word == NOT_TESTED
    )


def test_a_run_that_diverges_is_unstable(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ruled(monkeypatch, {"unstable": "a", "by": 10}, {"a": Made(80, best=1e-4, diverged={1e-3: 1})})
    assert (found.word, found.comparisons[0].note) == (FOR, "1 runs diverged")
    paper_is_best = ruled(monkeypatch, {"unstable": "a", "by": 10}, {"a": Made(80)})
    assert paper_is_best.word == NOT_TESTED  # one cell: not compared with itself


def test_rates_at_which_nothing_is_learned_do_not_count_as_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"inverts": ["a", "b"]}
    rows = {"a": Made({1e-6: 11, 1e-4: 60, 1e-3: 80}), "b": Made({1e-6: 10, 1e-4: 80, 1e-3: 60})}
    found = ruled(monkeypatch, rule, rows)
    assert (found.word, len(found.comparisons)) == (FOR, 2)


def test_what_has_fallen_at_the_papers_rate_says_nothing_of_a_drop_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made({1e-4: 80, 1e-3: 50, 3e-3: 40}, best=1e-4)}
    found = ruled(monkeypatch, {"drop": "a", "by": 20}, rows)
    assert (found.word, [comparison.note for comparison in found.comparisons]) == (
        NOT_TESTED,
        ["a has lost 30 points at 1e-3"],
    )
    assert ruled(monkeypatch, {"drop": "a", "by": 35}, rows).word == AGAINST


def test_what_is_near_chance_cannot_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made({1e-4: 29, 1e-3: 25, 3e-3: 22}, best=1e-4)}
    found = ruled(monkeypatch, {"drop": "a", "by": 20}, rows)
    assert (found.word, [comparison.note for comparison in found.comparisons]) == (
        NOT_TESTED,
        ["a is 15 points over chance at 1e-3"],
    )
    assert ruled(monkeypatch, {"drop": "a", "by": 10}, rows).word == AGAINST


def test_no_study_compares_a_sweep_with_itself() -> None:
    """plane-minilm gives every row two layers: what compares two layers with the whole model is not tested there."""
    runs, every = StudyCells(ROOT / "runs/plane-minilm", "published"), claims().values()
    assert comparisons_in(claims()["P-10"], runs) == []
    compared = [comparison.label for each in every for comparison in comparisons_in(each, runs)]
    assert "Unfrozen Pretrained - Frozen Pretrained" in compared
    assert not [each for each in compared if "layers" in each]


def test_what_stands_for_several_tasks_says_nothing_where_a_claim_tells_them_apart() -> None:
    """In laptop-lu2021 digits stand for MNIST and CIFAR-10 alike; in plane-digits for MNIST alone."""
    both, one = (StudyCells(ROOT / "runs" / name, "published") for name in ("laptop-lu2021", "plane-digits"))
    assert comparisons_in(claims()["L-16"], both)  # on MNIST and CIFAR-10
    assert comparisons_in(claims()["R-10"], both) == []  # on MNIST
    assert comparisons_in(claims()["R-10"], one)


def test_a_comparison_at_rates_takes_those_that_both_have(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made({1e-5: 80, 1e-4: 60, 1e-3: 80}), "b": Made({1e-4: 80, 1e-3: 60})}
    found = ruled(monkeypatch, {"inverts": ["a", "b"]}, rows)
    assert (found.word, [comparison.label for comparison in found.comparisons]) == (
        FOR,
        ["b - a at 1e-4", "a - b at 1e-3"],
    )


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
def test_a_baseline_is_the_printed_number(numbers: Any, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpt.claims.rules.known_scores", lambda task: {"exact to depth 1": Score(0.5)})
    given = on_a_baseline({"accuracy": numbers, "se": 0.5}, "exact to depth 1", "bit-xor")
    assert Judge([]).of_claim(given)[0]["word"] == word


def test_a_baseline_that_was_not_counted_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpt.claims.rules.known_scores", lambda task: {})
    given = on_a_baseline({"accuracy": 92}, "linear classifier", "mnist")
    assert baseline_verdict(given, given.rule[0], "mnist") == (
        words.READ,
        "mnist: linear classifier was not counted",
    )


def on_a_baseline(numbers: Any, level: str, task: str) -> Claim:
    rule = {"baseline": [], "level": level, "tasks": [task]}
    return Claim.model_validate({"id": "B", "says": "so", "where": "there", "numbers": numbers, "rule": rule})


def test_ratios_of_rates_and_of_steps_have_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    (rates,) = ruled(monkeypatch, {"lower_rate": ["a", "b"], "by": 3}, {"a": LOWER, "b": HIGHER}).comparisons
    assert (rates.unit, rates.estimate) == (DECADES, pytest.approx((2, 2, 2)))
    rows = {"a": Made(arrives=[60, 65, 70]), "b": Made(arrives=[220, 225, 230])}
    (steps,) = ruled(monkeypatch, {"faster": ["a", "b"]}, rows, "steps").comparisons
    assert steps.unit == DECADES
    assert steps.estimate is not None
    assert steps.estimate == pytest.approx([math.log10(times) for times in (4, 2, 8)])
    never = ruled(monkeypatch, {"faster": ["a", "b"]}, rows | {"b": Made(top=80)}, "steps").comparisons[0]
    assert never.estimate is None


def test_a_ratio_of_rates_says_what_it_excludes(monkeypatch: pytest.MonkeyPatch) -> None:
    adapted = replace(loss(-2.7), fields={"arm": "lora-pretrained"})
    (comparison,) = ruled(
        monkeypatch, {"rate_ratio": ["a", "b"], "by": 5, "to": 20}, {"a": adapted, "b": loss()}
    ).comparisons
    assert comparison.word == AGAINST
    assert comparison.note == "excludes 1, 10"  # and not width / (2 alpha), which is 2
    assert comparison.estimate is not None
    assert comparison.estimate[0] == pytest.approx(0.3, abs=0.02)


def test_a_ratio_with_one_bound_is_no_likeness(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"rate_ratio": ["a", "b"], "by": 1}
    assert ruled(monkeypatch, rule, {"a": loss(-2.5), "b": loss()}).word == FOR
    assert ruled(monkeypatch, rule, {"a": loss(-3.5), "b": loss()}).word == AGAINST
    open_end = ruled(monkeypatch, rule, {"a": loss(-4.4), "b": loss()}).comparisons[0]
    assert (open_end.word, open_end.estimate) == (OPEN, None)
    assert "end of the grid" in open_end.note


def test_losses_are_compared_window_by_window(monkeypatch: pytest.MonkeyPatch) -> None:
    (comparison,) = ruled(monkeypatch, {"lower": ["a", "b"]}, {"a": loss(least=1.4), "b": loss()}).comparisons
    assert comparison.unit == NATS
    assert comparison.estimate is not None
    assert comparison.estimate[0] == pytest.approx(0.1, abs=0.02)
    assert comparison.test.noise == pytest.approx(0, abs=1e-12)  # that a window is hard for both is no noise
    assert ruled(monkeypatch, {"lower": ["a", "b"]}, {"a": HIGH, "b": LOW}).word == NOT_TESTED


def test_a_model_that_gains_nothing_leaves_a_share_of_the_gain_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpt.claims.losses.untouched_loss", lambda task, backbone: 1.0)
    rule = {"same_loss": ["a", "b"], "by": 5}
    assert ruled(monkeypatch, rule, {"a": loss(), "b": loss()}).word == OPEN
    monkeypatch.setattr("fpt.claims.losses.untouched_loss", lambda task, backbone: None)
    assert ruled(monkeypatch, rule, {"a": loss(), "b": loss()}).word == NOT_TESTED
