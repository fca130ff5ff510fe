"""A paper's file: what is read from it, and every refusal with file and line."""

from pathlib import Path

import pytest

from fpt.errors import SpecError
from fpt.papers import load_paper
from fpt.papers.schema import Paper

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
"""


def _write(tmp_path: Path, old: str = "", new: str = "") -> Path:
    assert old in PAPER
    path = tmp_path / "toy.yaml"
    path.write_text(PAPER.replace(old, new, 1) if old else PAPER, encoding="utf-8")
    return path


@pytest.fixture
def toy(tmp_path: Path) -> Paper:
    return load_paper(_write(tmp_path))


def test_a_cell_knows_its_number_its_error_and_the_fields_in_which_it_differs(toy: Paper) -> None:
    rows = toy.tables["toy-table-1"].rows
    cell = rows["FP"].printed["digits"]
    assert (cell.value, cell.sem, cell.fields) == (90, 0.5, {"layers": 2})
    assert rows["UR"].printed["digits"].value == (95, 91)


def test_a_row_stands_on_its_tasks_in_the_order_of_the_paper(toy: Paper) -> None:
    assert toy.tables["toy-table-1"].on("FP", toy) == ["bit-xor", "digits"]
    assert toy.tables["toy-figure-1"].on("FP", toy) == ["bit-xor", "digits"]
    assert toy.tables["toy-figure-1"].on("UR", toy) == ["digits"]


def test_tables_and_claims_know_their_ids_and_their_paper(toy: Paper) -> None:
    assert [(table.id, table.paper) for table in toy.tables.values()] == [
        ("toy-table-1", "toy"),
        ("toy-figure-1", "toy"),
    ]
    assert [(claim.id, claim.paper) for claim in toy.claims.values()] == [("T-01", "toy"), ("T-02", "toy")]


def test_a_row_is_called_by_its_label_and_else_by_its_name(toy: Paper) -> None:
    assert [toy.label(row) for row in toy.rows] == ["FP", "full"]
    assert toy.rows["UR"].fields == {"arm": "unfrozen-random", "layers": 3}


def test_the_printed_rate_of_a_backbone_goes_before_that_of_a_task(toy: Paper) -> None:
    assert toy.rate("bit-xor", "gpt2") == 1e-3
    assert toy.rate("digits", "gpt2") == 1e-4
    assert toy.rate("digits", "lstm-released") == 3e-4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("      UR: {digits: [95, 91]}", "      UP: {digits: 95}", "line 16: unknown row 'UP'. Known: FP, UR."),
        ("digits: [95, 91]", "digit: 95", "line 16: unknown task 'digit'. Did you mean 'digits'?"),
        ("{drawn: [digits]}", "{drawn: [mnist]}", "line 20: unknown task 'mnist'"),
        ("title: One figure", "title: F\n    until: UP", "line 19: unknown row 'UP'"),
        ("table: toy-table-1", "table: toy-table-2", "line 26: unknown table 'toy-table-2'"),
        ("beats: [FP, UR], ", "", "line 26: claims.T-01.rule[0]: needs one kind of rule, one of beats,"),
        (
            "    documentary: it is\n",
            "",
            "line 27: claims.T-02: needs one of rule, documentary, arithmetic and printed;",
        ),
        ("FP: {arm: frozen-pretrained}", "FP:", "line 9: rows.FP = None: must be a mapping"),
        ("UR: {digits: [95, 91]}", "UR: 95", "line 16: tables.toy-table-1.rows.UR = 95: must map tasks"),
        ("lstm: 3e-4", "lstm: low", "line 4: rates.lstm = 'low': must be a number"),
        ("title: Toy\n", "title: Toy\ntitle: Again\n", 'line 3: found duplicate key "title"'),
        ("title: Toy\n", "title: !!python/tuple [1]\n", "line 2: could not determine a constructor for the tag"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        load_paper(_write(tmp_path, old, new))
    assert str(refused.value).startswith(f"toy.yaml, {message}")
    assert "{" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "toy.yaml is empty"),
        ("# nothing\n", "toy.yaml is empty"),
        ("name: [toy\n", "toy.yaml is not YAML: "),
        ("- name\n", "toy.yaml must be a mapping with the fields name, title,"),
        ("[" * 500 + "]" * 500, "toy.yaml cannot be read: it is nested too deeply"),
    ],
)
def test_a_file_that_is_no_paper_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as refused:
        load_paper(path)
    assert str(refused.value).startswith(message)


def test_a_field_that_does_not_exist_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"unknown field 'titel' \(toy.yaml, line 2\). Did you mean 'title'"):
        load_paper(_write(tmp_path, "title: Toy", "titel: Toy\ntitle: Toy"))


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "toy.yaml"
    with pytest.raises(SpecError, match=r"^toy\.yaml does not exist or cannot be read$"):
        load_paper(path)
    path.write_bytes(b"name: \xff\xfe\n")
    with pytest.raises(SpecError, match=r"^toy\.yaml is not YAML: it is not UTF-8 text$"):
        load_paper(path)
