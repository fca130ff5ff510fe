"""Whether runs were made for a claim, with its rule as it stands now.

The record of a sweep (result.json) has a hash of the rule of each claim that it was run for. `asked.yaml` has the text
of every rule that was asked so, taken from the git history: what counts is the text, not how a hash is made.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from fpt.claims.case import Case
from fpt.claims.differences import accuracy
from fpt.claims.rules import KINDS, alone, in_order, is_likeness, with_first
from fpt.documents import read_document
from fpt.papers import paper_of, rule_hash, table
from fpt.papers.schema import RULES, Claim, Quantifier, Row, Rule
from fpt.results.cells import FEW_SEEDS

FILE = Path(__file__).with_name("asked.yaml")
PLANNED, CHANGED, EXPLORATORY = "planned", "changed after results", "exploratory"
HOW_PLANNED = (EXPLORATORY, CHANGED, PLANNED)  # the weakest first
RENAMED = {"matches_or_beats": "matches"}  # kinds that were called otherwise
SAID = {"part", "words"}  # of a rule, and decides nothing
IN_GENERAL = date(2026, 11, 27)  # a rule without a quantifier that was asked before asked for all tasks


def asked_as(claim: Claim, hash_today: str, record: Mapping[str, Any]) -> str:
    """Whether the sweep of a result.json was run for a claim, whose rule has this hash today: EXPLORATORY: it was not;
    PLANNED: with the rule of today; CHANGED: the rule, or how it is evaluated, is another one since."""
    given = record["asks"].get(claim.id)
    if given is None:
        return EXPLORATORY
    known = asked().get(claim.id, {}).get(given, {})
    if record["rules"] != RULES or record.get("started_utc", "") < known.get("evaluated_anew", ""):
        return CHANGED
    if given == hash_today:
        return PLANNED
    same = "rule" in known and rules_as_text(known) == [_text(rule) for rule in claim.rule]
    return PLANNED if same else CHANGED


def claims_that_ask(single: Rule, among: Sequence[Claim]) -> list[Claim]:
    """The claims that ask what a single rule asks, whatever the limit: of those of a finding, some ask the opposite."""
    wanted = _sides(single)
    return [each for each in among if any(wanted & _sides(rule) for rule in each.rule)]


def _sides(rule: Rule) -> set[tuple[Any, ...]]:
    """What a rule compares, whatever the limit: what is measured at which rates, and the models on both sides, those
    that are to be above first; of one row, where it is compared with itself."""
    if not rule.table:
        return set()
    read, kind = table(rule.table), KINDS[rule.kind]
    rows = paper_of(read.paper).rows
    is_difference = kind.measured is accuracy and kind.sides in (with_first, in_order)  # each has a limit of its own
    measured = "difference" if is_difference else rule.kind
    sides = (kind.sides or with_first)(rule.rows) or alone(rule.rows)
    return {(measured, read.kind, rule.at, *(_models(rows, side) for side in both)) for both in sides}


def _models(rows: Mapping[str, Row], side: Sequence[str]) -> str:
    return json.dumps([rows[row].fields for row in side], sort_keys=True)


def planned_word(asked_by: Sequence[Claim], case: Case, seeds: int) -> str:
    """Whether the sweeps that are read were run for one of these claims, and with its rule as it stands now; of few
    `seeds` nothing was planned."""
    found = EXPLORATORY
    if seeds < FEW_SEEDS:
        return found
    for claim in asked_by:
        hash_today = rule_hash(claim)
        given = {asked_as(claim, hash_today, arm.result) for arm in case.arms.values()}
        if given == {PLANNED}:
            return PLANNED
        if EXPLORATORY not in given:
            found = CHANGED
    return found


@cache
def asked() -> dict[str, dict[str, Any]]:
    """Claim -> hash in the records -> the rule, as it was written, and when it was first asked."""
    content: dict[str, dict[str, Any]] = read_document(FILE, FILE.name)[0]
    return content


def rules_as_text(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rules of an entry in the fields of today, so that they can be compared."""
    written = entry["rule"] if isinstance(entry["rule"], list) else [entry["rule"]]
    return [_text(_read(rule), "all" if entry["first"] < IN_GENERAL else "") for rule in written]


def _read(written: Mapping[str, Any]) -> Rule:
    """As it is written today, or as before functions had a key: {reaches: FPT, level: 99.9, table: ...}, where what is
    no field of a rule is its kind."""
    if "function" in written:
        return Rule.model_validate(written)
    (kind,) = (key for key in written if key not in Rule.model_fields)
    rows = written[kind]
    rest = {key: value for key, value in written.items() if key != kind}
    return Rule.model_validate(
        {"kind": RENAMED.get(kind, kind), "rows": [rows] if isinstance(rows, str) else rows, **rest}
    )


def _text(rule: Rule, unsaid: Quantifier = "") -> dict[str, Any]:
    """What a rule asks. `unsaid`: how one without a quantifier was read; a likeness is always one of all."""
    return rule.model_dump(exclude=SAID) | {"of": "all" if is_likeness(rule) else rule.of or unsaid}
