"""Whether runs were made for a claim, with its rule as it stands now.

The record of a sweep (result.json) has a hash of the rule of each claim that it was run for. `asked.yaml` has the text
of every rule that was asked so, taken from the git history: what counts is the text, not how a hash is made.
"""

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from fpt.claims.rules import is_likeness
from fpt.documents import read_document
from fpt.papers import rule_hash
from fpt.papers.schema import RULES, Claim, Quantifier, Rule

FILE = Path(__file__).with_name("asked.yaml")
PLANNED, CHANGED, EXPLORATORY = "planned", "changed after results", "exploratory"
LABELS = (EXPLORATORY, CHANGED, PLANNED)  # beside a word, the weakest first
RENAMED = {"matches_or_beats": "matches"}  # kinds that were called otherwise
SAID = {"part", "words"}  # of a rule, and decides nothing
IN_GENERAL = date(2026, 11, 27)  # a rule without a quantifier that was asked before asked for all tasks


def asked_as(claim: Claim, record: Mapping[str, Any]) -> str:
    """Whether the sweep of a result.json was run for a claim: EXPLORATORY: it was not; PLANNED: with the rule of today;
    CHANGED: the rule, or how it is evaluated, is another one since."""
    given = record["asks"].get(claim.id)
    if given is None:
        return EXPLORATORY
    known = asked().get(claim.id, {}).get(given, {})
    if record["rules"] != RULES or record.get("started_utc", "") < known.get("evaluated_anew", ""):
        return CHANGED
    if given == rule_hash(claim):
        return PLANNED
    same = "rule" in known and rules_as_text(known) == [_text(rule) for rule in claim.rule]
    return PLANNED if same else CHANGED


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
    """{reaches: FPT, level: 99.9, table: ...}: what is no field of a rule is its kind."""
    (kind,) = (key for key in written if key not in Rule.model_fields)
    rows = written[kind]
    rest = {key: value for key, value in written.items() if key != kind}
    return Rule.model_validate(
        {"kind": RENAMED.get(kind, kind), "rows": [rows] if isinstance(rows, str) else rows, **rest}
    )


def _text(rule: Rule, unsaid: Quantifier = "") -> dict[str, Any]:
    """What a rule asks. `unsaid`: how one without a quantifier was read; a likeness is always one of all."""
    return rule.model_dump(exclude=SAID) | {"of": "all" if is_likeness(rule) else rule.of or unsaid}
