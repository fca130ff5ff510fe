"""Whether runs were made for a claim, with its rule as it stands now: by the text that they were asked with."""

import json
from pathlib import Path
from typing import Any

import pytest

from fpt import papers
from fpt.claims.asked import CHANGED, EXPLORATORY, PLANNED, asked, asked_as, rules_as_text
from fpt.papers import claims, rule_hash
from fpt.papers.schema import RULES

RECORDS = sorted((Path(__file__).parents[2] / "runs").glob("*/published/*/result.json"))


def record(name: str, given: str, started: str = "2026-11-26T00:00:00Z") -> dict[str, Any]:
    return {"asks": {name: given}, "rules": RULES, "started_utc": started}


def test_the_text_of_every_question_in_the_records_is_known() -> None:
    given = {place for path in RECORDS for place in json.loads(path.read_text())["asks"].items()}
    known = {(name, key) for name, entries in asked().items() for key in entries}
    today = {(name, rule_hash(claim)) for name, claim in claims().items()}
    assert given
    assert given <= known | today


def test_every_text_can_be_read_by_the_rules_of_today() -> None:
    for name, entries in asked().items():
        for entry in entries.values():
            tables = {rule["table"] for rule in rules_as_text(entry["rule"])}
            assert tables == {papers.table(table).id for table in tables}, name


@pytest.mark.parametrize(
    ("name", "given", "word"),
    [
        ("R-01", "ef0d1ec8ee13", PLANNED),  # asked as matches_or_beats, of all tasks
        ("L-05", "7c0834f8024a", PLANNED),
        ("L-05", "b398901468f2", CHANGED),  # not at the paper's scale alone
        ("R-16", "b288fe65ef50", CHANGED),  # by gaps
        ("R-01", "000000000000", CHANGED),
    ],
)
def test_a_question_is_the_same_if_its_text_is(name: str, given: str, word: str) -> None:
    assert asked_as(claims()[name], record(name, given)) == word
    assert asked_as(claims()[name], record("L-04", given)) == EXPLORATORY
    assert asked_as(claims()[name], record(name, given) | {"rules": RULES - 1}) == CHANGED


def test_runs_before_another_evaluation_were_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same text, and also where the hash is that of today."""
    claim = claims()["R-07"]
    (given,) = asked()["R-07"]
    known = {"R-07": {rule_hash(claim): {"evaluated_anew": "2026-11-25T00:00"}}}
    for each in (given, rule_hash(claim)):
        assert asked_as(claim, record("R-07", each, "2026-11-24T00:00:00Z")) == CHANGED
        assert asked_as(claim, record("R-07", each)) == PLANNED
        monkeypatch.setattr("fpt.claims.asked.asked", lambda: known)


def test_the_hash_of_today_is_that_of_the_same_question() -> None:
    for name, claim in claims().items():
        assert asked_as(claim, record(name, rule_hash(claim))) == PLANNED
