"""Findings: every claim belongs to one question, and every question has what answers it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fpt import papers
from fpt.errors import SpecError
from fpt.papers import claims, findings, load_paper, printed_ranges, rules_of
from fpt.papers.schema import Finding

TOY = """\
name: toy
title: Toy
tasks: {digits: {}}
rows:
  FP: {arm: frozen-pretrained}
  UR: {arm: unfrozen-random}
tables:
  toy-table-1:
    title: One table
    rows:
      FP: {digits: 90}
      UR: {digits: 95}
claims:
  T-01: {says: One is better., where: nowhere, rule: {beats: [UR, FP], table: toy-table-1}}
  T-02: {says: It is written., where: nowhere, documentary: it is}
findings:
  better: {question: Is one better?, by: T-01, claims: [T-01]}
  written: {question: Is it written?, read: it is, claims: [T-02]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose YAML files are the only papers."""
    monkeypatch.setattr(papers, "FOLDERS", [tmp_path])
    papers.papers.cache_clear()
    yield tmp_path
    papers.papers.cache_clear()


def test_every_claim_of_every_paper_belongs_to_exactly_one_finding() -> None:
    count = Counter(name for finding in findings().values() for name in finding.claims)
    assert {name: count[name] for name in claims()} == dict.fromkeys(claims(), 1)


def test_every_finding_has_a_contrast_or_says_why_it_has_none() -> None:
    for finding in findings().values():
        assert bool(rules_of(finding)) != bool(finding.read), finding.id


def test_the_printed_range_is_what_the_tables_print() -> None:
    assert printed_ranges(findings()["train-all"]) == {"rothermel2021": (0.5, 13.1)}
    assert printed_ranges(findings()["from-scratch"]) == {"lu2021": (-3.4, 3.7), "rothermel2021": (-11.5, -0.2)}


def test_the_best_of_several_rows_is_subtracted() -> None:
    best = findings()["best-arm"]
    assert printed_ranges(best) == {"rothermel2021": (-1.3, 5.8)}
    assert printed_ranges(best.model_copy(update={"printed": ()})) == {}


def test_findings_of_a_paper_stand_in_its_file(folder: Path) -> None:
    (folder / "toy.yaml").write_text(TOY)
    assert list(findings()) == ["better", "written"]
    assert "T-02" in findings()["written"].claims
    assert [rule.rows for rule in rules_of(findings()["better"])] == [("UR", "FP")]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("claims: [T-02]", "claims: [T-03]", r"finding written.*T-03|T-03.*finding written"),
        ("claims: [T-02]", "claims: [T-01]", r"finding written: claim T-01 is in the finding better already"),
        ("by: T-01, ", "by: T-09, ", r"T-09"),
        ("by: T-01, ", "rule: {beats: [UR, UP], table: toy-table-1}, ", r"finding better: unknown row .*'UP'"),
        ("by: T-01, ", "rule: {beats: [UR, FP], table: toy-table-2}, ", r"unknown table 'toy-table-2'"),
    ],
)
def test_a_finding_that_names_what_does_not_exist_is_refused(folder: Path, old: str, new: str, message: str) -> None:
    assert old in TOY
    (folder / "toy.yaml").write_text(TOY.replace(old, new))
    with pytest.raises(SpecError, match=message):
        findings()


@pytest.mark.parametrize("ways", ["", "by: T-01, read: both, "])
def test_a_finding_is_answered_in_one_way(tmp_path: Path, ways: str) -> None:
    (tmp_path / "toy.yaml").write_text(TOY.replace("by: T-01, ", ways))
    with pytest.raises(SpecError, match=r"line 17: findings.better: needs one of rule, by and read"):
        load_paper(tmp_path / "toy.yaml")


def test_a_finding_knows_its_id_and_its_paper() -> None:
    found: Finding = findings()["cliff"]
    assert (found.id, found.paper) == ("cliff", "ours")


@pytest.mark.parametrize("place", ["{table: toy-table-1, row: UX}", "{table: toy-table-1, row: FP, minus: [UX]}"])
def test_a_printed_place_without_its_row_is_refused(folder: Path, place: str) -> None:
    (folder / "toy.yaml").write_text(TOY.replace("by: T-01, ", f"by: T-01, printed: [{place}], "))
    with pytest.raises(SpecError, match=r"unknown row of toy-table-1 'UX' .*finding better"):
        findings()


def test_a_row_alone_may_be_what_is_printed(folder: Path) -> None:
    (folder / "toy.yaml").write_text(TOY.replace("by: T-01, ", "by: T-01, printed: [{table: toy-table-1, row: FP}], "))
    assert printed_ranges(findings()["better"]) == {"toy": (90, 90)}
