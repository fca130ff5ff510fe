"""Every kind of rule on data for each of its three verdicts, and what the engine makes of parts, edges and scales."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cells import PAPER, Made, MadeStudy, claim, paper, study

from fpt.claims import registry
from fpt.claims.by_rate import _set_words, pairs_of_rates
from fpt.claims.verdicts import (
    ASKED,
    CHANGED,
    CONTRADICTED,
    DIVERGED,
    DOCUMENTARY,
    EDGE,
    INCONCLUSIVE,
    NOT_TESTED,
    SUPPORTED,
    UNFINISHED,
    Part,
    Verdict,
    _all,
    _word,
    verdict,
    verdicts,
)
from fpt.errors import SpecError
from fpt.papers import claims, rule_hash, schema
from fpt.papers.schema import RULES, Claim, Rule
from fpt.results import StudyCells
from fpt.results.baselines import Score
from fpt.results.cells import NOT_RUN
from fpt.results.stats import Paired, holm

ROOT = Path(__file__).parents[2]
S, C, I = SUPPORTED, CONTRADICTED, INCONCLUSIVE  # noqa: E741
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
# kind -> (rule, kind of table, {word: the rows, first to last})
CASES: dict[str, tuple[dict[str, Any], str, dict[str, list[Made]]]] = {
    "beats": ({}, "accuracy", {S: [A, B], C: [B, A], I: [NOISY, B]}),
    "matches": ({}, "accuracy", {S: [Made(AT), B], C: [B, A], I: [Made(up(-1), sd=3), B]}),
    "comparable": ({}, "accuracy", {S: [Made(AT, sd=0.2), B], C: [A, B], I: [NOISY, B]}),
    "order": ({}, "accuracy", {S: [B, A, Made(up(9))], C: [A, B, Made(up(9))], I: [B, A, Made(up(5))]}),
    "jump": (
        {}, "accuracy",
        {S: [B, Made(up(9)), Made(up(10))], C: [B, Made(up(1)), Made(up(10))], I: [B, Made(up(5)), Made(up(10))]},
    ),
    "above_linear": ({}, "accuracy", {S: [A], C: [Made(up(-5))], I: [NOISY]}),
    "larger_difference": (
        {}, "accuracy",
        {S: [A, B, Made(up(1)), Made(AT)], C: [B, B, A, Made(AT)], I: [NOISY, B, Made(AT), Made(AT)]},
    ),
    "near": ({}, "accuracy", {S: [Made(AT, sd=0.2)], C: [A], I: [NOISY]}),
    "linear": ({}, "accuracy", {S: [Made(AT, sd=0.2)], C: [A], I: [NOISY]}),
    "reaches": ({"level": 82}, "accuracy", {S: [A], C: [B], I: [Made(up(2), sd=2)]}),
    "faster": (
        {"by": 2, "to": 5}, "steps",
        {
            S: [Made(arrives=[60, 65, 70]), Made(arrives=[220, 225, 230])],
            C: [Made(arrives=[200, 205, 210]), Made(arrives=[180, 185, 190])],
            I: [Made(arrives=[60, 390, 80]), Made(arrives=[180, 260, 240])],
        },
    ),
    "never_reaches": ({}, "steps", {S: [Made(top=60), Made()], C: [Made(), Made(top=60)], I: [Made(), Made()]}),
    "small_gap": ({}, "gap", {S: [Made(train=80.2)], C: [Made(train=85)], I: [Made(train=81, sd=3)]}),
    "smaller_gap": (
        {}, "gap",
        {
            S: [Made(train=81), Made(train=90)],
            C: [Made(train=90), Made(train=81)],
            I: [Made(sd=3), Made(train=81, sd=3)],
        },
    ),
    "underfits": (
        {}, "gap",
        {
            S: [Made(train=81), Made(train=90)],
            C: [Made(train=90), Made(train=81)],
            I: [Made(train=81, sd=3), Made(train=81.2, sd=3)],
        },
    ),
    "unstable": (
        {"by": 10}, "accuracy",
        {
            S: [Made({1e-4: 80, 1e-3: 50, 1e-2: 50}, best=1e-4)],
            C: [Made({1e-4: 80, 1e-3: 78, 1e-2: 50}, best=1e-4)],
            I: [Made({1e-4: 80, 1e-3: 66, 1e-2: 50}, best=1e-4, sd=3)],
        },
    ),
    "drop": (
        {"by": 20}, "accuracy",
        {S: [Made({1e-3: 80, 1e-2: 30})], C: [Made({1e-3: 80, 1e-2: 75})], I: [Made({1e-3: 80, 1e-2: [50, 70]})]},
    ),
    "lower_rate": ({"by": 3}, "accuracy", {S: [LOWER, PEAK], C: [PEAK, PEAK], I: [Made(AT), Made(AT)]}),
    "plane": (
        {}, "accuracy",
        {S: [LOWER, HIGHER], C: [Made(up(-5)), B], I: [NOISY, B]},
    ),
    "crossing": ({}, "accuracy", {S: [A, B], C: [B, A], I: [NOISY, B]}),
    "inverts": (
        {}, "accuracy",
        {
            S: [Made({1e-4: 60, 1e-3: 80}), Made({1e-4: 80, 1e-3: 60})],
            C: [Made({1e-4: 80, 1e-3: 80}), Made({1e-4: 70, 1e-3: 60})],
            I: [Made({1e-4: [60, 80], 1e-3: 80}), Made({1e-4: 71, 1e-3: 60})],
        },
    ),
    "fixed_and_tuned": (
        {}, "accuracy",
        {
            S: [B, Made({1e-4: 90, 1e-3: 60, 1e-2: 20}, best=1e-4)],
            C: [B, Made({1e-4: 70, 1e-3: 60, 1e-2: 20}, best=1e-4)],
            I: [B, Made({1e-4: 80, 1e-3: 60, 1e-2: 20}, best=1e-4, sd=2)],
        },
    ),
    "orders_differ": (
        {}, "accuracy",
        {
            S: [Made({1e-4: 80, 1e-3: 60}), Made({1e-4: 60, 1e-3: 80})],
            C: [Made({1e-4: 80, 1e-3: 80}), Made({1e-4: 60, 1e-3: 60})],
            I: [Made({1e-4: 80, 1e-3: 80}, sd=3), Made({1e-4: 80, 1e-3: 80}, sd=3)],
        },
    ),
    "attends": (
        {"level": "needed"}, "attention",
        {
            S: [Made(attention=(80, 30, 30))],
            C: [Made(attention=(50, 30, 30))],
            I: [Made(attention=(60, 30, 30), sd=4)],
        },
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _linear_score(monkeypatch: pytest.MonkeyPatch) -> None:
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


KINDS = sorted(registry.KINDS | registry.OWN)


def test_a_function_for_every_kind_of_rule() -> None:
    assert set(registry.KINDS) == set(schema.KINDS) - {"baseline"}
    assert set(CASES) == set(KINDS)
    assert all(set(cases) == {S, C, I} for _, _, cases in CASES.values())


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


@pytest.mark.parametrize("word", [S, C, I])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_to_each_verdict(monkeypatch: pytest.MonkeyPatch, kind: str, word: str) -> None:
    found = verdict(*made(monkeypatch, kind, word))
    assert found is not None
    assert found.word == word, found
    assert found.parts
    assert all(part.task == "digits" and part.comparison for part in found.parts)


def test_a_score_of_few_examples_has_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch, 400)  # 2 points
    found = verdict(*made(monkeypatch, "linear", S))
    assert found is not None
    assert found.word == I
    (part,) = found.parts
    assert part.test.noise == pytest.approx(0.02**2)
    assert part.test.half_width > 0.02


def ruled(
    monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any], rows: dict[str, Made], kind: str = "accuracy", **more: Any
) -> Verdict:
    """The verdict of one rule on one task of a made study."""
    toy = paper(list(rows), kind, more.pop("printed", None), more.pop("until", "threshold"))
    found = verdict(claim(rule), study(monkeypatch, toy, (more.pop("task", "digits"), rows), **more))
    assert found is not None
    return found


BEATS = {"beats": ["a", "b"]}
COMPARABLE = {"comparable": ["a", "b"]}
HIGH, LOW, SAME = Made(up(5)), Made(AT), Made(AT, sd=0.2)
EDGES = [  # rule, rows, which of them are at an edge (their accuracy may be higher still), the verdict
    (BEATS, (HIGH, LOW), "a", S),  # the winner may win by more
    (BEATS, (HIGH, LOW), "b", EDGE),
    (BEATS, (LOW, HIGH), "b", C),  # the loser may lose by more
    (BEATS, (LOW, HIGH), "a", EDGE),
    (BEATS, (LOW, HIGH), "ab", EDGE),
    (COMPARABLE, (SAME, LOW), "a", EDGE),
    (COMPARABLE, (SAME, LOW), "b", EDGE),
    (COMPARABLE, (HIGH, LOW), "a", C),
    (COMPARABLE, (HIGH, LOW), "b", EDGE),
    ({"matches": ["a", "b"]}, (SAME, LOW), "a", S),
    ({"matches": ["a", "b"]}, (SAME, LOW), "b", EDGE),
    ({"beats": ["a", "b"], "by": 3, "to": 8}, (HIGH, LOW), "a", EDGE),  # it may be more than 8
    ({"reaches": "a", "level": 82}, (HIGH, LOW), "a", S),
    ({"reaches": "a", "level": 99}, (HIGH, LOW), "a", EDGE),
    ({"beats": ["a", "b"], "at": "paper"}, (HIGH, LOW), "b", S),  # an edge is of the tuned rate alone
]


@pytest.mark.parametrize(("rule", "rows", "edges", "word"), EDGES)
def test_a_verdict_at_an_edge_stands_if_every_value_above_gives_the_same(
    rule: dict[str, Any], rows: tuple[Made, Made], edges: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {name: replace(row, edge=name in edges) for name, row in zip("ab", rows, strict=True)}
    found = ruled(monkeypatch, rule, made)
    assert found.word == word
    assert all("edge of the grid" in part.note for part in found.parts) or rule.get("at") == "paper"


@pytest.mark.parametrize("edges", ["a", "b"])
def test_an_edge_does_not_bound_a_gap_and_bounds_steps_from_above(edges: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = {"a": Made(train=81), "b": Made(train=90)}
    steps = {"a": Made(arrives=[60, 100, 80]), "b": Made(arrives=[180, 300, 240])}
    for rule, kind, rows in (({"smaller_gap": ["a", "b"]}, "gap", gaps), ({"faster": ["a", "b"]}, "steps", steps)):
        made = {name: replace(row, edge=name in edges) for name, row in rows.items()}
        sure = kind == "steps" and edges == "a"  # the faster one may be faster still
        assert ruled(monkeypatch, rule, made, kind).word == (S if sure else EDGE)
        assert ruled(monkeypatch, rule, rows, kind).word == S
    other = {name: replace(row, edge=name in edges) for name, row in zip("ba", steps.values(), strict=True)}
    assert ruled(monkeypatch, {"faster": ["a", "b"]}, other, "steps").word == (EDGE if edges == "a" else C)
    goal = {"a": Made(top=60, edge="a" in edges), "b": Made(edge="b" in edges)}  # a higher goal is not reached either
    assert ruled(monkeypatch, {"never_reaches": ["a", "b"]}, goal, "steps").word == (EDGE if edges == "a" else S)
    assert ruled(monkeypatch, {"never_reaches": ["b", "a"]}, goal, "steps").word == (EDGE if edges == "a" else C)


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [  # by 3; grids from 1e-4 to 1e-2, and beyond but for those that end there
        (LOWER, HIGHER, S),
        (replace(LOWER, beyond=False), PEAK, S),  # lower still is lower
        (PEAK, replace(HIGHER, edge=True), S),
        (PEAK, replace(LOWER, beyond=False), C),
        (replace(HIGHER, edge=True), replace(HIGHER, edge=True), EDGE),
        (replace(LOWER, beyond=False), replace(LOWER, beyond=False), EDGE),
        (PEAK, Made({1e-3: 90, 2e-3: 90.1, 1e-2: 60}, sd=0.2), C),  # whichever of the two is best
        (LOWER, Made({1e-4: 60, 2e-4: 90.1, 1e-3: 90}, sd=0.4), I),
        (replace(LOWER, seeds=2), replace(HIGHER, seeds=2), I),  # too few pairs
        (Made({1e-4: 80}, best=1e-4, beyond=False), HIGHER, I),  # a single rate is not the best one of anything
        (Made(best=None), Made(best=1e-3), DIVERGED),
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
    words = {points: ruled(monkeypatch, BEATS | {"by": 5}, {"a": Made(up(points), sd=2), "b": LOW}).word
             for points in (1, 5, 9)}  # fmt: skip
    assert words == {1: C, 5: I, 9: S}


def test_a_tie_in_the_paper_is_a_tie_in_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(up(-0.5), sd=0.1), "b": Made(AT, sd=0.1)}
    tie, lead = ({row: {"digits": value} for row, value in zip("ab", values, strict=True)}
                 for values in ((100, 100), (100, 99)))  # fmt: skip
    for rule in (BEATS, {"order": ["b", "a"]}):
        assert ruled(monkeypatch, rule, rows, printed=tie).word == S
        assert ruled(monkeypatch, rule, rows, printed=lead).word == C
    assert "a tie in the paper" in ruled(monkeypatch, BEATS, rows, printed=tie).parts[0].note
    worse = rows | {"a": Made(up(-5))}
    assert ruled(monkeypatch, BEATS, worse, printed=tie).word == C


def test_the_margin_of_listops_is_two_points(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(up(-1.5), sd=0.1), "b": Made(AT, sd=0.1)}
    assert ruled(monkeypatch, COMPARABLE, rows, task="listops-short").word == S
    assert ruled(monkeypatch, COMPARABLE, rows, task="digits").word == C


def test_numbers_of_the_paper_are_tested_at_its_scale_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = {"a": {"digits": 80}}
    for rule in ({"near": "a"}, {"beats": ["a", "b"], "only_paper_scale": True}):
        rows = {"a": Made(up(-9)), "b": LOW}
        assert ruled(monkeypatch, rule, rows, printed=printed).word == NOT_TESTED
        found = ruled(monkeypatch, rule, rows, printed=printed, scale=PAPER)
        assert (found.word, found.scale) == (C, PAPER)


def test_a_collapsed_run_gets_no_t_test(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made({1e-3: [85, 85, 20, 85, 85, 85, 85, 85]}), "b": LOW}
    part = ruled(monkeypatch, BEATS, rows).parts[0]
    assert part.test.exact
    assert math.isnan(part.test.low)
    assert "1 collapsed runs, medians 8" in part.note
    assert "p by sign flips" in part.note
    assert part.word == I  # one pair in eight the other way
    ahead = ruled(monkeypatch, BEATS, {"a": rows["a"], "b": Made(19)})
    assert ahead.word == S


def test_runs_without_spread_are_tested_by_their_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(90, sd=0), "b": Made(80, sd=0)}
    found = ruled(monkeypatch, BEATS, rows)
    assert (found.word, found.parts[0].supports) == (S, pytest.approx(2 / 2**8))
    few = {row: replace(made, seeds=3) for row, made in rows.items()}
    assert ruled(monkeypatch, BEATS, few).word == I  # three pairs: p = 1/4


def test_a_run_that_was_never_finite_counts_as_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(80), "b": Made(60, diverged={1e-3: 8})}
    part = ruled(monkeypatch, BEATS | {"at": "paper"}, rows).parts[0]
    assert part.test.mean == pytest.approx(0.7, abs=0.005)  # digits: one of ten
    assert "diverged runs: b (8)" in part.note
    assert part.word == S


def test_no_rate_that_stayed_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ruled(monkeypatch, BEATS, {"a": HIGH, "b": Made(best=None)})
    assert (found.word, found.parts[0].note) == (DIVERGED, "diverged at every rate: b")


def test_all_parts_must_hold_and_a_contradiction_survives_holm(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"beats": ["a", "b", "c", "d"]}
    rows = {"a": HIGH, "b": LOW, "c": LOW, "d": LOW}
    assert ruled(monkeypatch, rule, rows).word == S
    assert ruled(monkeypatch, rule, rows | {"d": Made(up(4.9), sd=2)}).word == I
    assert ruled(monkeypatch, rule, rows | {"d": Made(up(9))}).word == C
    weak = [Part("digits", "", Paired(8), C, contradicts=0.03), *[Part("digits", "", Paired(8), S, supports=0.01)] * 2]
    word, _, _, notes = _word([(Rule.model_validate({**rule, "table": "t"}), weak)], weak)
    assert (word, notes) == (I, ["no contradiction is left after Holm's correction"])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_the_contrary_of_all_has_the_smallest_p_of_holm(p_values: list[float]) -> None:
    assert _all([(0.0, p) for p in p_values])[1] == pytest.approx(min(holm(p_values)))


@pytest.mark.parametrize(
    ("leads", "most", "some"),
    [
        ((5, 5, -5), S, S),
        ((5, -5, -5), C, S),
        ((5, 5, 5), S, S),
        ((5, 0, -5), I, S),
        ((0, 0, -5), I, I),
        ((-5, -5, -5), C, C),
    ],
)
def test_most_and_some_tasks(leads: tuple[float, ...], most: str, some: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [(task, {"a": Made(up(lead), sd=0.2), "b": Made(AT, sd=0.2)})
             for task, lead in zip(("digits", "mnist", "bit-xor"), leads, strict=True)]  # fmt: skip
    made = study(monkeypatch, paper(["a", "b"]), *tasks)
    for of, word in (("most", most), ("some", some), ("all", S if leads == (5, 5, 5) else C)):
        found = verdict(claim(BEATS | {"of": of}), made)
        assert found is not None
        assert found.word == word


def test_of_several_rules_all_must_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": HIGH, "b": LOW, "c": Made(up(9))}
    made = study(monkeypatch, paper([*rows, "not run"]), rows)
    for rules, word in (
        ([BEATS, {"beats": ["c", "a"]}], S),
        ([BEATS, {"beats": ["a", "c"]}], C),
        ([BEATS, {"beats": ["a", "not run"]}], S),
    ):
        found = verdict(claim(*rules), made)
        assert found is not None
        assert found.word == word
    assert "1 of its 2 rules tested here" in found.note
    assert verdict(claim({"beats": ["a", "not run"]}), made) is None


def test_only_the_tasks_that_the_rule_names(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": HIGH, "b": LOW}
    made = study(monkeypatch, paper(["a", "b"]), ("digits", rows), ("mnist", rows))
    found = verdict(claim(BEATS | {"tasks": ["mnist"]}), made)
    assert found is not None
    assert [part.task for part in found.parts] == ["mnist"]
    assert verdict(claim(BEATS | {"tasks": ["bit-xor"]}), made) is None


@pytest.mark.parametrize(("winner", "word"), [("a", UNFINISHED), ("b", C)])
def test_nothing_is_supported_before_all_of_it_is_run(winner: str, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": LOW, "b": LOW} | {winner: HIGH}
    missing = {"a": HIGH, "b": Made(missing=True)}
    made = study(monkeypatch, paper(["a", "b"]), ("digits", rows), ("mnist", missing))
    found = verdict(claim(BEATS), made)
    assert found is not None
    assert found.word == word


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
    assert note in found.parts[0].note


def test_few_seeds_are_exploratory(monkeypatch: pytest.MonkeyPatch) -> None:
    enough = ruled(monkeypatch, BEATS, {"a": HIGH, "b": LOW})
    assert (enough.exploratory, enough.parts[0].test.n) == (False, 8)
    mixed = ruled(monkeypatch, BEATS, {"a": HIGH, "b": replace(LOW, seeds=7)})
    assert (mixed.exploratory, mixed.parts[0].test.n) == (True, 7)


def test_a_fixed_test_set_is_part_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    lead, behind = Made(up(1.5)), Made(AT)
    assert ruled(monkeypatch, BEATS, {"a": lead, "b": behind}).word == S
    fixed = {"test": {"drawn_by_seed": False, "size": 400}}
    found = ruled(monkeypatch, BEATS, {"a": replace(lead, result=fixed), "b": replace(behind, result=fixed)})
    assert found.word == I
    expected = (0.815 * 0.185 + 0.8 * 0.2) / 400
    assert found.parts[0].test.noise == pytest.approx(expected, rel=0.01)
    twice = {"jump": ["a", "b", "c"]}  # b counts twice
    rows = {row: replace(made, result=fixed) for row, made in zip("abc", (LOW, HIGH, LOW), strict=True)}
    noise = ruled(monkeypatch, twice, rows).parts[0].test.noise
    assert noise == pytest.approx((4 * 0.85 * 0.15 + 2 * 0.8 * 0.2) / 400, rel=0.01)


def test_an_open_verdict_gives_the_seeds_that_would_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ruled(monkeypatch, BEATS, {"a": NOISY, "b": LOW})
    one, three = (int(n) for n in re.findall(r"points?: (\d+)", found.note))
    assert 3 < three < one
    rows = {"a": NOISY, "b": LOW, "c": replace(LOW, sd=6)}
    first, second = (ruled(monkeypatch, {"beats": ["a", *others]}, rows) for others in ("bc", "cb"))
    assert first.note == second.note == max(first.parts, key=lambda part: part.test.half_width).seeds


def test_a_side_that_never_arrives_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    always, never = Made(arrives=[100, 90, 80]), Made(top=80)
    steps = {"faster": ["a", "b"]}
    found = ruled(monkeypatch, steps, {"a": always, "b": never}, "steps")
    assert (found.word, found.parts[0].note) == (S, "steps: a 100 (50 to 100), b > 400")
    assert ruled(monkeypatch, steps, {"a": never, "b": always}, "steps").word == C
    assert ruled(monkeypatch, steps, {"a": never, "b": never}, "steps").word == I
    # how many times is open where the slower never arrives: at most 5 times cannot be said
    assert ruled(monkeypatch, steps | {"by": 2, "to": 5}, {"a": always, "b": never}, "steps").word == I
    tie = ruled(monkeypatch, steps, {"a": always, "b": Made(arrives=[60, 70])}, "steps")
    assert tie.word == I  # both come between two budgets


def test_steps_to_the_last_accuracy_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(top=85, arrives=[60, 100, 80]), "b": Made(top=60), "c": Made(top=50)}
    assert ruled(monkeypatch, {"faster": ["a", "c"]}, rows, "steps", until="b").word == S
    assert ruled(monkeypatch, {"faster": ["c", "a"]}, rows, "steps", until="b").word == C
    own = ruled(monkeypatch, {"faster": ["a", "b"]}, rows, "steps", until="b")
    assert (own.word, own.parts[0].note) == (S, "steps: a 100 (50 to 100), b 400 (200 to 400)")


def test_how_many_times_as_many_is_read_on_validation_data(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made(arrives=[60, 65]), "b": Made(arrives=[220, 225])}
    found = ruled(monkeypatch, {"faster": ["a", "b"], "by": 2, "to": 5}, rows, "steps")
    assert found.word == S
    assert found.parts[0].note.startswith("steps on validation data: a ")
    assert ruled(monkeypatch, {"faster": ["a", "b"], "by": 5, "to": 9}, rows, "steps").word == C
    assert ruled(monkeypatch, {"faster": ["a", "b"], "by": 1, "to": 2}, rows, "steps").word == C


def test_the_scores_of_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    weaker = {"attends": ["a", "b"], "level": "weaker"}
    strong, weak = Made(attention=(80, 30, 30)), Made(attention=(50, 30, 30))
    assert ruled(monkeypatch, weaker, {"a": weak, "b": strong}, "attention").word == S
    assert ruled(monkeypatch, weaker, {"a": strong, "b": weak}, "attention").word == C
    lead = {"attends": "a", "level": "lead"}
    assert ruled(monkeypatch, lead, {"a": strong}, "attention").word == S
    had = Made(attention=(70, 90, 30))  # it led before training too
    assert ruled(monkeypatch, lead, {"a": had}, "attention").word == C
    assert ruled(monkeypatch, lead, {"a": Made()}, "attention").word == NOT_TESTED


def test_a_drop_to_a_named_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"a": Made({1e-3: 80, 3e-3: 79, 1e-2: 60})}
    assert ruled(monkeypatch, {"drop": "a", "by": 10}, made).word == C
    assert ruled(monkeypatch, {"drop": "a", "by": 10, "level": 1e-2}, made).word == S
    rises = {"a": Made({1e-3: 80, 1e-2: 90}, beyond=False)}
    assert ruled(monkeypatch, {"drop": "a", "level": 1e-2}, rises).word == C  # also where it is no end of a fall
    assert (
        ruled(monkeypatch, {"drop": "a", "by": 10}, {"a": Made({1e-4: 80, 1e-3: 70}, beyond=False)}).word == NOT_TESTED
    )


def test_a_run_that_diverges_is_unstable(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ruled(monkeypatch, {"unstable": "a", "by": 10}, {"a": Made(80, best=1e-4, diverged={1e-3: 1})})
    assert (found.word, found.parts[0].note) == (S, "1 runs diverged")
    paper_is_best = ruled(monkeypatch, {"unstable": "a", "by": 10}, {"a": Made(80)})
    assert paper_is_best.word == NOT_TESTED  # one cell: not compared with itself


def test_rates_at_which_nothing_is_learned_do_not_count_as_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"inverts": ["a", "b"]}
    rows = {"a": Made({1e-6: 11, 1e-4: 60, 1e-3: 80}), "b": Made({1e-6: 10, 1e-4: 80, 1e-3: 60})}
    found = ruled(monkeypatch, rule, rows)
    assert (found.word, len(found.parts)) == (S, 2)


def test_what_has_fallen_at_the_papers_rate_says_nothing_of_a_drop_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made({1e-4: 80, 1e-3: 50, 3e-3: 40}, best=1e-4)}
    found = ruled(monkeypatch, {"drop": "a", "by": 20}, rows)
    assert (found.word, [part.note for part in found.parts]) == (NOT_TESTED, ["a has lost 30 points at 1e-3"])
    assert ruled(monkeypatch, {"drop": "a", "by": 35}, rows).word == C


def test_what_is_near_chance_cannot_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made({1e-4: 29, 1e-3: 25, 3e-3: 22}, best=1e-4)}
    found = ruled(monkeypatch, {"drop": "a", "by": 20}, rows)
    assert (found.word, [part.note for part in found.parts]) == (NOT_TESTED, ["a is 15 points over chance at 1e-3"])
    assert ruled(monkeypatch, {"drop": "a", "by": 10}, rows).word == C


def test_no_study_compares_a_sweep_with_itself() -> None:
    """plane-minilm gives every row two layers: what compares two layers with the whole model is not tested there."""
    study, every = StudyCells(ROOT / "runs/plane-minilm", "published"), claims().values()
    assert verdicts(claims()["P-10"], [study]) == []
    compared = [part.comparison for each in every for found in verdicts(each, [study]) for part in found.parts]
    assert "Unfrozen Pretrained - Frozen Pretrained" in compared
    assert not [each for each in compared if "layers" in each]


def test_what_stands_for_several_tasks_says_nothing_where_a_claim_tells_them_apart() -> None:
    """In laptop-lu2021 digits stand for MNIST and CIFAR-10 alike; in plane-digits for MNIST alone."""
    both, one = (StudyCells(ROOT / "runs" / name, "published") for name in ("laptop-lu2021", "plane-digits"))
    assert verdicts(claims()["L-16"], [both])  # on MNIST and CIFAR-10
    assert verdicts(claims()["R-10"], [both]) == []  # on MNIST
    assert verdicts(claims()["R-10"], [one])


def test_a_verdict_says_for_how_many_of_the_tasks_it_was_tested() -> None:
    (found,) = verdicts(claims()["R-01"], [StudyCells(ROOT / "runs/plane-digits", "published")])
    assert found.setting == "tiny-lm, digits (1 of 4 tasks), 6,000 steps"


def test_studies_are_shown_each_and_never_pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    toy, rows = paper(["a", "b"]), {"a": HIGH, "b": LOW}
    yes = study(monkeypatch, toy, rows)
    no, none = replace(study(monkeypatch, toy, {"a": LOW, "b": HIGH}), name="other"), replace(yes, tasks={})
    found = verdicts(claim(BEATS), [yes, no, none])
    assert [(each.study, each.word) for each in found] == [("made", S), ("other", C)]
    assert found[0].setting == "tiny-lm, digits, 400 steps"


def test_a_claim_knows_whether_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = paper(["a", "b"])
    monkeypatch.setattr("fpt.papers.papers", lambda: {"toy": toy})
    asked = {"asks": {"T-01": rule_hash(claim(BEATS))}}
    rows = {"a": replace(HIGH, result=asked), "b": replace(LOW, result=asked)}
    assert ruled(monkeypatch, BEATS, rows).asked == ASKED
    assert ruled(monkeypatch, BEATS | {"by": 1}, rows).asked == CHANGED
    assert ruled(monkeypatch, BEATS | {"part": "a word on it"}, rows).asked == ASKED
    assert ruled(monkeypatch, BEATS, rows | {"b": LOW}).asked == ""  # one of the sweeps was run for other claims
    older = {row: replace(made, result=asked | {"rules": RULES - 1}) for row, made in rows.items()}
    assert ruled(monkeypatch, BEATS, older).asked == CHANGED


def test_primary_claims_are_corrected_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made = study(monkeypatch, paper(["a", "b", "c"]), {"a": Made(up(0.8), sd=1), "b": LOW, "c": LOW})
    one = claim(BEATS)
    alone = verdict(one, made)
    assert alone is not None
    assert alone.word == S
    assert 0.05 / 6 < alone.supports < 0.05
    others = [claim({"beats": ["b", "c"]}).model_copy(update={"id": f"T-0{n}", "primary": True}) for n in range(2, 7)]
    primary = one.model_copy(update={"primary": True})
    monkeypatch.setattr("fpt.claims.verdicts.claims", lambda: {each.id: each for each in [primary, *others]})
    found = verdict(primary, made)
    assert found is not None
    assert found.word == I
    assert found.note == "p = 0.02 alone, 0.12 after Holm's correction over 6 primary claims"
    not_tested = [claim({"beats": ["a", "d"]}).model_copy(update={"id": "T-02", "primary": True})]
    monkeypatch.setattr("fpt.claims.verdicts.claims", lambda: {each.id: each for each in [primary, *not_tested]})
    found = verdict(primary, made)
    assert found is not None
    assert (found.word, found.supports) == (S, alone.supports)  # of those that the study tests


def test_a_comparison_at_rates_takes_those_that_both_have(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": Made({1e-5: 80, 1e-4: 60, 1e-3: 80}), "b": Made({1e-4: 80, 1e-3: 60})}
    found = ruled(monkeypatch, {"inverts": ["a", "b"]}, rows)
    assert (found.word, [part.comparison for part in found.parts]) == (S, ["b - a at 1e-4", "a - b at 1e-3"])


def test_claims_that_need_no_study() -> None:
    fields = {"id": "T-01", "says": "so", "where": "there"}
    (read,) = verdicts(Claim(documentary="read there", **fields), [])
    assert (read.word, read.note, read.study) == (DOCUMENTARY, "read there", "")


@pytest.mark.parametrize(("numbers", "word"), [(50.9, S), ([40, 50.3], S), (51.5, I), (53, C), ({1: 50, 2: 60}, S)])
def test_a_baseline_is_the_printed_number(numbers: Any, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpt.claims.rules.known_scores", lambda task: {"exact to depth 1": Score(0.5)})
    rule = {"baseline": [], "level": "exact to depth 1", "tasks": ["bit-xor"]}
    given = {"id": "B", "says": "so", "where": "there", "numbers": {"accuracy": numbers, "se": 0.5}, "rule": rule}
    (found,) = verdicts(Claim.model_validate(given), [])
    assert (found.word, found.study) == (word, "")


def test_a_baseline_that_was_not_counted_is_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpt.claims.rules.known_scores", lambda task: {})
    rule = {"baseline": [], "level": "linear classifier", "tasks": ["mnist"]}
    given = {"id": "B", "says": "so", "where": "there", "numbers": {"accuracy": 92}, "rule": rule}
    (found,) = verdicts(Claim.model_validate(given), [])
    assert (found.word, found.note) == (NOT_TESTED, "mnist: linear classifier was not counted")
