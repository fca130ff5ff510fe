"""Whether runs were made for a claim, with its rule as it stands now: by the text that they were asked with."""

import json
from datetime import date
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
            tables = {rule["table"] for rule in rules_as_text(entry)}
            assert tables == {papers.table(table).id for table in tables}, name


@pytest.mark.parametrize(
    ("name", "given", "word"),
    [
        ("R-01", "ef0d1ec8ee13", PLANNED),  # asked as matches_or_beats, of all tasks
        ("P-26", "2a50de25072f", PLANNED),  # a likeness is always one of all
        ("L-15", "06e0901be806", CHANGED),  # asked of all tasks, read in general
        ("S-02", "ef9eecad7a89", PLANNED),  # asked when it was read so
        ("X-15", "2e83d118ef19", CHANGED),  # the noise of the test windows was mended
        ("L-05", "b398901468f2", CHANGED),  # not at the paper's scale alone
        ("R-16", "b288fe65ef50", CHANGED),  # by gaps
        ("R-01", "000000000000", CHANGED),
    ],
)
def test_a_question_is_the_same_if_its_text_is(name: str, given: str, word: str) -> None:
    claim = claims()[name]
    today = rule_hash(claim)
    assert asked_as(claim, today, record(name, given)) == word
    assert asked_as(claim, today, record("L-04", given)) == EXPLORATORY
    assert asked_as(claim, today, record(name, given) | {"rules": RULES - 1}) == CHANGED


def test_runs_before_another_evaluation_were_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same text, and also where the hash is that of today."""
    claim = claims()["R-02"]
    anew, text = {"evaluated_anew": "2026-11-25T00:00"}, {"beats": ["FP", "FR"], "table": "rothermel-table-1"}
    known = {"before": anew | {"first": date(2026, 11, 22), "rule": text}, rule_hash(claim): anew}
    monkeypatch.setattr("fpt.claims.asked.asked", lambda: {"R-02": known})
    for each in known:
        assert asked_as(claim, rule_hash(claim), record("R-02", each, "2026-11-24T00:00:00Z")) == CHANGED
        assert asked_as(claim, rule_hash(claim), record("R-02", each)) == PLANNED
