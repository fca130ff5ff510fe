"""A paper's file: what is read from it, and every refusal with file and line. What no document may be is refused by the
reader that papers and studies share: tests/sweeps/test_study.py."""

import pytest

from fpt import papers
from fpt.errors import SpecError
from fpt.papers import findings, load_paper, printed_ranges, rules_of
from fpt.papers.schema import Number
from fpt.sweeps.study_file import read_study

PAPER = """\
name: toy
title: Toy
defaults: {backbone: gpt2}
rates: {default: 1e-3, lstm: 3e-4, digits: 1e-4}
tasks:
  bit-xor: {steps: 100}
  digits: {}
rows:
  FP: {arm: frozen-pretrained}
  UR: {label: full, arm: unfrozen-random, layers: 3}
tables:
  toy-table-1:
    title: One table
    rows:
      FP: {digits: {is: 90, sem: 0.5, layers: 2}, bit-xor: 100}
      UR: {digits: [95, 91]}
  toy-figure-1:
    title: One figure
    rows:
      UR: {drawn: [digits]}
      FP: {ours: claim T-01, tasks: [digits, bit-xor]}
claims:
  T-01:
    says: One is better.
    where: nowhere
    rule: {beats: [FP, UR], table: toy-table-1}
  T-02:
    says: It is written.
    where: nowhere
    documentary: it is
findings:
  better: {question: Is one better?, by: T-01, claims: [T-01]}
  written: {question: Is it written?, read: it is, claims: [T-02]}
"""


@pytest.fixture
def write(tmp_path):
    """Writes the paper, with one change, and returns its file."""

    def write(old="", new=""):
        assert old in PAPER
        path = tmp_path / "toy.yaml"
        path.write_text(PAPER.replace(old, new, 1) if old else PAPER, encoding="utf-8")
        return path

    return write


@pytest.fixture
def toy(write):
    return load_paper(write())


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """The papers of the test's folder are the only ones."""
    monkeypatch.setattr(papers, "FOLDERS", [tmp_path])


def test_a_cell_knows_its_number_its_error_and_the_fields_in_which_it_differs(toy):
    rows = toy.tables["toy-table-1"].rows
    cell = rows["FP"].printed["digits"]
    assert (cell.value, cell.sem, cell.fields) == (90, 0.5, {"layers": 2})
    assert rows["UR"].printed["digits"].value == (95, 91)


def test_a_row_stands_on_its_tasks_in_the_order_of_the_paper(toy):
    assert toy.tables["toy-table-1"].on("FP", toy) == ["bit-xor", "digits"]
    assert toy.tables["toy-figure-1"].on("FP", toy) == ["bit-xor", "digits"]
    assert toy.tables["toy-figure-1"].on("UR", toy) == ["digits"]


def test_tables_claims_and_findings_know_their_ids_and_their_paper(toy):
    for part in (toy.tables, toy.claims, toy.findings):
        assert [(each.id, each.paper) for each in part.values()] == [(name, "toy") for name in part]


def test_a_row_is_called_by_its_label_and_else_by_its_name(toy):
    assert [toy.label(row) for row in toy.rows] == ["FP", "full"]
    assert toy.rows["UR"].fields == {"arm": "unfrozen-random", "layers": 3}


def test_the_printed_rate_of_a_backbone_goes_before_that_of_a_task(toy):
    assert toy.rate("bit-xor", "gpt2") == 1e-3
    assert toy.rate("digits", "gpt2") == 1e-4
    assert toy.rate("digits", "lstm-released") == 3e-4


RULE = "beats: [FP, UR], table: toy-table-1"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # rows, tables, tasks
        ("      UR: {digits: [95, 91]}", "      UP: {digits: 95}", "line 16: unknown row 'UP'. Known: FP, UR."),
        ("title: One figure", "title: F\n    until: UP", "line 19: unknown row 'UP'"),
        ("digits: [95, 91]", "digit: 95", "line 16: unknown task 'digit'. Did you mean 'digits'?"),
        ("FP: {arm: frozen-pretrained}", "FP:", "line 9: rows.FP = None: must be a mapping"),
        ("UR: {digits: [95, 91]}", "UR: 95", "line 16: tables.toy-table-1.rows.UR = 95: must map tasks"),
        ("{digits: [95, 91]}", "{digits: about 95}", "line 16: tables.toy-table-1.rows.UR.printed.digits"),
        (", tasks: [digits, bit-xor]", "", "line 21: row 'FP' stands on no task of the paper"),
        ("lstm: 3e-4", "lstm: 0", "line 4: rates.lstm = 0: must be greater than 0"),
        # claims
        ("    documentary: it is\n", "", "line 27: claims.T-02: needs one of rule, documentary, arithmetic and "),
        ("beats: [FP, UR], ", "", "line 26: claims.T-01.rule[0]: needs one kind of rule, one of beats,"),
        ("table: toy-table-1", "table: toy-table-2", "line 26: unknown table 'toy-table-2'"),
        ("[FP, UR]", "[FP, UP]", "line 26: unknown row of toy-table-1 'UP'"),
        ("[FP, UR]", "[FP]", "line 26: beats needs 2 different rows; the rule names FP"),
        ("beats: [FP, UR]", "function: drop, rows: [FP]", "line 26: a rule that the function drop decides says what"),
        (
            "beats: [FP, UR]",
            "function: dropp, rows: [FP], words: so",
            "line 26: unknown function of a rule 'dropp'. Did you mean 'drop'?",
        ),
        ("[FP, UR]", "[FP, UR], by: -1", "line 26: claims.T-01.rule[0].by = -1: must be greater than or equal to 0"),
        ("[FP, UR]", "[FP, UR], by: 5, to: 5", "line 26: to = 5 must be above by = 5"),
        ("beats: [FP, UR]", "function: plane, rows: [FP], words: so", "line 26: plane needs 2 rows; the rule names FP"),
        ("beats: [FP, UR]", "function: reaches, rows: [FP], words: so", "line 26: reaches needs a level, in percent"),
        ("[FP, UR]", "[FP, UR], level: 5", "line 26: beats does not read level, but by and to"),
        (
            "[FP, UR]",
            "[FP, UR], bye: 5",
            "line 26: claims.T-01.rule[0]: unknown field of a rule 'bye'. Did you mean 'by'",
        ),
        (RULE, "baseline: [], level: chance", "line 26: a baseline names its tasks"),
        (RULE, "baseline: [], level: chance, tasks: [digits]", "line 26: a baseline is compared with an accuracy"),
        (
            RULE,
            "baseline: [], level: chanse, tasks: [digits]",
            "line 26: unknown level of baseline 'chanse'. Did you mean 'chance'?",
        ),
        # findings: one way of answering
        ("by: T-01, ", "", "line 32: findings.better: needs one of rule, by and read"),
        ("by: T-01, ", "by: T-01, read: both, ", "line 32: findings.better: needs one of rule, by and read"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_its_line(write, old, new, message):
    with pytest.raises(SpecError) as refused:
        load_paper(write(old, new))
    assert str(refused.value).startswith(f"toy.yaml, {message}")
    assert "{" not in str(refused.value)


def test_the_hash_of_a_rule_is_that_of_what_decides(write, monkeypatch):
    def hash_of(old="", new=""):
        toy = load_paper(write(old, new))
        monkeypatch.setattr(papers, "papers", lambda: {"toy": toy})
        return papers.rule_hash(toy.claims["T-01"])

    plain = hash_of()
    assert len(plain) == 12
    for old, new in (  # what is said of it decides nothing
        ("One is better.", "It is better."),
        ("table: toy-table-1}", "table: toy-table-1, part: most of it}"),
        ("{digits: [95, 91]}", "{digits: [95, 91], ours: T-02}"),
        ("title: Toy", "title: A toy"),
    ):
        assert hash_of(old, new) == plain, new
    changed = {
        hash_of(old, new)
        for old, new in (
            ("beats: [FP, UR]", "beats: [UR, FP]"),
            ("beats: [FP, UR]", "beats: [FP, UR], by: 5"),
            ("{is: 90,", "{is: 91,"),
            ("arm: unfrozen-random", "arm: unfrozen-pretrained"),
            ("title: One table", "title: One table\n    kind: gap"),
            ("rates: {default: 1e-3,", "rates: {default: 3e-3,"),
        )
    }
    assert len(changed) == 6
    assert plain not in changed


def test_a_name_stands_in_one_paper(write, tmp_path, monkeypatch):
    write("  T-02:", "  R-01:")
    monkeypatch.setattr(papers, "FOLDERS", [*papers.FOLDERS, tmp_path])
    with pytest.raises(SpecError, match=r"'R-01' stands in two papers, .* and 'Toy'"):
        papers.papers()


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("layers: 3", "lairs: 3", "row UR"),
        ("layers: 2", "lairs: 2", "toy-table-1/FP/digits"),
        ("digits: {}", "digits: {lairs: 3}", "task digits"),
        ("backbone: gpt2", "lairs: 3", "defaults of toy.yaml"),
    ],
)
def test_a_misspelt_field_is_refused_where_no_study_uses_it(write, tmp_path, monkeypatch, old, new, place):
    toy = load_paper(write(old, new))
    monkeypatch.setattr(papers, "papers", lambda: {"toy": toy})
    (tmp_path / "study.yaml").write_text("paper: toy\ntables: []\n")
    with pytest.raises(SpecError, match=rf"unknown study field 'lairs' \(.*{place}\). Did you mean 'layers'"):
        read_study(tmp_path, "runs/toy/study.yaml")


PRINTED = r"finding better: unknown row of toy-table-1 'UX'"


@pytest.mark.usefixtures("alone")
def test_findings_of_a_paper_stand_in_its_file(write):
    write()
    assert list(findings()) == ["better", "written"]
    assert "T-02" in findings()["written"].claims
    assert [rule.rows for rule in rules_of(findings()["better"])] == [("FP", "UR")]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("claims: [T-02]", "claims: [T-03]", r"finding written.*T-03|T-03.*finding written"),
        ("claims: [T-02]", "claims: [T-01]", r"finding written: claim T-01 is in the finding better already"),
        ("claims: [T-02]", "claims: []", r"claim T-02 is in no finding"),
        ("by: T-01, ", "by: T-09, ", r"T-09"),
        ("by: T-01, ", "by: T-02, ", r"finding better: by T-02, a claim without a rule"),
        ("by: T-01, ", "rule: {beats: [FP, UP], table: toy-table-1}, ", r"finding better: unknown row .*'UP'"),
        ("by: T-01, ", "rule: {beats: [FP, UR], table: toy-table-2}, ", r"unknown table 'toy-table-2'"),
        ("by: T-01, ", "by: T-01, printed: [{table: toy-table-1, row: UX}], ", PRINTED),
        ("by: T-01, ", "by: T-01, printed: [{table: toy-table-1, row: FP, minus: [UX]}], ", PRINTED),
    ],
)
def test_a_finding_that_names_what_does_not_exist_is_refused(write, old, new, message):
    write(old, new)
    with pytest.raises(SpecError, match=message):
        findings()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("of", ["sem", "train"])  # UR prints no error, and FP no gap
def test_a_number_that_is_not_printed_is_refused(write, of):
    write()
    row, task = ("UR", "digits") if of == "sem" else ("FP", "digits")
    with pytest.raises(SpecError, match=f"toy-table-1, {row} on {task}: {of} is None"):
        papers.printed_number(Number(table="toy-table-1", row=row, of=of), task)


@pytest.mark.usefixtures("alone")
def test_a_row_alone_may_be_what_is_printed(write):
    write("by: T-01, ", "by: T-01, printed: [{table: toy-table-1, row: FP}], ")
    assert printed_ranges(findings()["better"]) == {"toy": (90, 100)}
