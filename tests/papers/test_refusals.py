"""Rows and rules that cannot mean anything are refused when the file is read, with its line."""

from pathlib import Path

import pytest

from fpt import papers
from fpt.errors import SpecError
from fpt.papers import load_paper
from fpt.sweeps.study_file import read_study

PAPER = """\
name: toy
title: Toy
tasks: {digits: {}}
rows: {FP: {arm: frozen-pretrained}, UP: {arm: unfrozen-pretrained}}
tables:
  toy-table-1:
    title: One table
    rows:
      FP: {digits: 90}
      UP: {ours: T-01, tasks: [digits]}
claims:
  T-01:
    says: One is better.
    where: nowhere
    rule: {beats: [FP, UP], table: toy-table-1}
"""


def _load(tmp_path: Path, old: str = "", new: str = "") -> None:
    assert old in PAPER
    path = tmp_path / "toy.yaml"
    path.write_text(PAPER.replace(old, new) if old else PAPER)
    load_paper(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("beats: [FP, UP]", "beats: [FP]", r"line 15: beats needs 2 different rows; the rule names FP"),
        ("beats: [FP, UP]", "function: drop, rows: [UR], words: so", r"line 15: unknown row of toy-table-1 'UR'"),
        ("beats: [FP, UP]", "function: drop, rows: [FP]", r"line 15: a rule that the function drop decides says what"),
        ("beats: [FP, UP]", "beats: [FP, UR]", r"line 15: unknown row of toy-table-1 'UR'"),
        (
            "beats: [FP, UP], table: toy-table-1",
            "baseline: [], level: chance, tasks: [digits]",
            r"line 15: a baseline is compared with an accuracy among the claim's numbers; numbers = None",
        ),
        (
            "beats: [FP, UP]",
            "beats: [FP, UP], by: -1",
            r"line 15: claims.T-01.rule.* = -1: must be greater",
        ),
        (
            "tasks: {digits: {}}",
            "tasks: {digits: {}}\nrates: {default: 0}",
            r"line 4: rates.default = 0: must be",
        ),
        ("beats: [FP, UP]", "beats: [FP, UP], by: 5, to: 5", r"line 15: to = 5 must be above by = 5"),
        (
            "beats: [FP, UP], table: toy-table-1",
            "baseline: [], level: chanse, tasks: [digits]",
            r"line 15: unknown level of baseline 'chanse'. Did you mean 'chance'\?",
        ),
        ("beats: [FP, UP], table: toy-table-1", "baseline: [], level: chance", r"line 15: a baseline names its tasks"),
        ("{digits: 90}", "{digits: about 90}", r"line 9: .*'about 90' is no number: text is 'never' alone"),
        ("where: nowhere", "where: nowhere\n    primary: perhaps", r"line 15: claims.T-01.primary = 'perhaps'"),
        ("{ours: T-01, tasks: [digits]}", "{ours: T-01}", r"line 10: row 'UP' stands on no task of the paper"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError, match=rf"toy\.yaml, {message}"):
        _load(tmp_path, old, new)


def test_steps_may_be_never(tmp_path: Path) -> None:
    _load(tmp_path, "{digits: 90}", "{digits: never}")


def test_the_hash_of_a_rule_is_that_of_what_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def hash_of(old: str = "", new: str = "") -> str:
        path = tmp_path / "toy.yaml"
        assert old in PAPER
        path.write_text(PAPER.replace(old, new, 1) if old else PAPER)
        toy = load_paper(path)
        monkeypatch.setattr(papers, "papers", lambda: {"toy": toy})
        return papers.rule_hash(toy.claims["T-01"])

    plain = hash_of()
    assert len(plain) == 12
    for old, new in (  # what is said of it decides nothing
        ("One is better.", "It is better."),
        ("table: toy-table-1}", "table: toy-table-1, part: most of it}"),
        ("{ours: T-01,", "{ours: T-02,"),
        ("title: Toy", "title: A toy"),
    ):
        assert hash_of(old, new) == plain, new
    changed = {
        hash_of(old, new)
        for old, new in (
            ("beats: [FP, UP]", "beats: [UP, FP]"),
            ("beats: [FP, UP]", "beats: [FP, UP], by: 5"),
            ("{digits: 90}", "{digits: 91}"),
            ("{arm: unfrozen-pretrained}", "{arm: unfrozen-random}"),
            ("title: One table", "title: One table\n    kind: gap"),
            ("title: Toy", "title: Toy\nrates: {default: 1e-3}"),
        )
    }
    assert len(changed) == 6
    assert plain not in changed


def test_a_name_stands_in_one_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy.yaml").write_text(PAPER.replace("T-01:", "R-01:"))
    monkeypatch.setattr(papers, "FOLDERS", [*papers.FOLDERS, tmp_path])
    papers.papers.cache_clear()
    with pytest.raises(SpecError, match=r"'R-01' stands in two papers, .* and 'Toy'"):
        papers.papers()


def test_a_table_of_any_task_needs_no_tasks(tmp_path: Path) -> None:
    _load(tmp_path, "{ours: T-01, tasks: [digits]}\n", "{ours: T-01}\n    any_task: true\n")


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("UP: {arm: unfrozen-pretrained}", "UP: {arm: unfrozen-pretrained, lairs: 3}", "row UP"),
        ("{digits: 90}", "{digits: {is: 90, lairs: 3}}", "toy-table-1/FP/digits"),
        ("tasks: {digits: {}}", "tasks: {digits: {lairs: 3}}", "task digits"),
        ("title: Toy", "title: Toy\ndefaults: {lairs: 3}", "defaults of fpt/papers/toy.yaml"),
    ],
)
def test_a_misspelt_field_is_refused_where_no_study_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, place: str
) -> None:
    (tmp_path / "toy.yaml").write_text(PAPER.replace(old, new))
    toy = load_paper(tmp_path / "toy.yaml")
    monkeypatch.setattr(papers, "papers", lambda: {"toy": toy})
    (tmp_path / "study.yaml").write_text("paper: toy\ntables: []\n")
    with pytest.raises(SpecError, match=rf"unknown study field 'lairs' \(.*{place}\). Did you mean 'layers'"):
        read_study(tmp_path, "runs/toy/study.yaml")
