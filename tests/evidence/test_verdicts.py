"""Every kind of rule on data for each of its three verdicts, and what the engine makes of parts, edges and scales."""

import math
from typing import Any

import pandas as pd
import pytest
from made_cells import PAPER, RATES, Made, MadeStudy, claim, paper, study

from fpt.evidence.cells import NOT_RUN, SELECTION
from fpt.evidence.rules import KINDS
from fpt.evidence.verdicts import (
    CONTRADICTED,
    DEPENDS,
    DIVERGED,
    DOCUMENTARY,
    EDGE,
    INCONCLUSIVE,
    NOT_TESTED,
    OPEN,
    SUPPORTED,
    Verdict,
    other_reading,
    overall,
    verdict,
    verdicts,
)
from fpt.papers import Claim
from fpt.papers.paper import Kind

S, C, I = SUPPORTED, CONTRADICTED, INCONCLUSIVE  # noqa: E741
AT = {1e-4: 80, 1e-3: 80, 1e-2: 80}
GRID = {1e-5: 40, 1e-4: 60, 1e-3: 80}
FLAT = {rate: 80 for rate in GRID}


def up(points: float, rates: Any = AT) -> dict[float, float]:
    return {rate: mean + points for rate, mean in rates.items()}


A, B = Made(up(5)), Made(AT)
NOISY = Made(up(0.5), sd=3)
# kind -> (rule, kind of table, {word: the rows, first to last})
CASES: dict[str, tuple[dict[str, Any], str, dict[str, list[Made]]]] = {
    "beats": ({}, "accuracy", {S: [A, B], C: [B, A], I: [NOISY, B]}),
    "matches_or_beats": ({}, "accuracy", {S: [Made(AT), B], C: [B, A], I: [Made(up(-1), sd=3), B]}),
    "comparable": ({}, "accuracy", {S: [Made(AT, sd=0.2), B], C: [A, B], I: [NOISY, B]}),
    "order": ({}, "accuracy", {S: [B, A, Made(up(9))], C: [A, B, Made(up(9))], I: [B, A, Made(up(5))]}),
    "jump": (
        {}, "accuracy",
        {S: [B, Made(up(9)), Made(up(10))], C: [B, Made(up(1)), Made(up(10))], I: [B, Made(up(5)), Made(up(10))]},
    ),
    "near": ({}, "accuracy", {S: [Made(AT, sd=0.2)], C: [A], I: [NOISY]}),
    "linear": ({}, "accuracy", {S: [Made(AT, sd=0.2)], C: [A], I: [NOISY]}),
    "reaches": ({"level": 82}, "accuracy", {S: [A], C: [B], I: [Made(up(2), sd=2)]}),
    "faster": (
        {"by": 2, "to": 5}, "steps",
        {
            S: [Made(arrives=[60, 100, 80]), Made(arrives=[180, 300, 240])],
            C: [Made(arrives=[200, 100, 160]), Made(arrives=[180, 120, 140])],
            I: [Made(arrives=[60, 300, 80]), Made(arrives=[180, 260, 240])],
        },
    ),
    "never_reaches": ({}, "steps", {S: [Made(top=60), Made()], C: [Made(), Made(top=60)], I: [Made(), Made()]}),
    "small_gap": ({}, "gap", {S: [Made(train=80.2)], C: [Made(train=85)], I: [Made(train=81, sd=3)]}),
    "smaller_gap": (
        {}, "gap",
        {S: [Made(train=81), Made(train=90)], C: [Made(train=90), Made(train=81)], I: [Made(sd=3), Made(train=81, sd=3)]},
    ),
    "unstable": (
        {"by": 10}, "accuracy",
        {
            S: [Made({1e-4: 80, 1e-3: 50, 1e-2: 50}, best=1e-4)],
            C: [Made({1e-4: 80, 1e-3: 78, 1e-2: 50}, best=1e-4)],
            I: [Made({1e-4: 80, 1e-3: 68, 1e-2: 50}, best=1e-4, sd=3)],
        },
    ),
    "drop": (
        {"by": 20}, "accuracy",
        {S: [Made({1e-3: 80, 1e-2: 30})], C: [Made({1e-3: 80, 1e-2: 75})], I: [Made({1e-3: 80, 1e-2: 60}, sd=2)]},
    ),
    "lower_rate": ({"by": 3}, "accuracy", {S: [Made(best=1e-4), B], C: [B, B], I: [B, Made(best=1e-3, edge=True)]}),
    "inverts": (
        {}, "accuracy",
        {
            S: [Made({1e-4: 60, 1e-3: 80}), Made({1e-4: 80, 1e-3: 60})],
            C: [Made({1e-4: 80, 1e-3: 80}), Made({1e-4: 70, 1e-3: 60})],
            I: [Made({1e-4: 70, 1e-3: 80}, sd=3), Made({1e-4: 71, 1e-3: 60}, sd=3)],
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
    monkeypatch.setattr("fpt.evidence.rules.linear_score", lambda task: 0.8)


def made(monkeypatch: pytest.MonkeyPatch, kind: str, word: str) -> tuple[Claim, MadeStudy]:
    rule, of_table, cases = CASES[kind]
    names = [f"row {n}" for n in range(len(cases[word]))]
    printed = {"row 0": {"digits": 80}} if kind == "near" else None
    rows = dict(zip(names, cases[word], strict=True))
    toy = paper(names, of_table, printed)
    return claim({kind: names, **rule}), study(monkeypatch, toy, rows, scale=PAPER if kind == "near" else "reduced")


def test_a_function_for_every_kind_of_rule() -> None:
    assert set(KINDS) == set(Kind.__args__) - {"baseline"}  # type: ignore[attr-defined]
    assert set(CASES) == set(KINDS)
    assert all(set(cases) == {S, C, I} for _, _, cases in CASES.values())


@pytest.mark.parametrize("word", [S, C, I])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_to_each_verdict(monkeypatch: pytest.MonkeyPatch, kind: str, word: str) -> None:
    found = verdict(*made(monkeypatch, kind, word))
    assert found is not None
    assert found.word == (EDGE if (kind, word) == ("lower_rate", I) else word), found
    assert found.parts
    assert all(part.task == "digits" and part.comparison for part in found.parts)
