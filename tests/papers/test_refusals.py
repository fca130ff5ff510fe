"""Rows and rules that cannot mean anything are refused when the file is read, with its line."""

from pathlib import Path

import pytest

from fpt import papers
from fpt.errors import SpecError
from fpt.papers import load_paper

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


def test_the_toy_paper_is_read(tmp_path: Path) -> None:
    _load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("beats: [FP, UP]", "beats: [FP]", r"line 15: beats needs 2 different rows; the rule names FP"),
        ("beats: [FP, UP]", "beats: [FP, FP]", r"line 15: beats needs 2 different rows; the rule names FP, FP"),
        ("beats: [FP, UP]", "reaches: []", r"line 15: reaches needs 1 different rows; the rule names no row"),
        ("beats: [FP, UP]", "beats: [FP, UR]", r"line 15: unknown row of toy-table-1 'UR'"),
        ("beats: [FP, UP], table: toy-table-1", "baseline: [], tasks: [digits]", r"line 15: a baseline names"),
        (
            "beats: [FP, UP], table: toy-table-1",
            "baseline: [], level: chance, tasks: [digit]",
            r"line 15: unknown task 'digit'",
        ),
        ("beats: [FP, UP]", "inverts: [FP, UP, FP]", r"line 15: inverts compares two rows; the rule names FP, UP, FP"),
        ("beats: [FP, UP]", "reaches: FP", r"line 15: reaches needs a level in percent, level = '' is none"),
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
        ("{ours: T-01, tasks: [digits]}", "{ours: T-01}", r"line 10: row 'UP' stands on no task of the paper"),
        ("{ours: T-01, tasks: [digits]}", "{ours: T-01, tasks: [mnist]}", r"line 10: unknown task 'mnist'"),
        ("{ours: T-01, tasks: [digits]}", "{}", r"line 10: row 'UP': the paper prints nothing there"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError, match=rf"toy\.yaml, {message}"):
        _load(tmp_path, old, new)


def test_a_name_stands_in_one_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy.yaml").write_text(PAPER.replace("T-01:", "R-01:"))
    monkeypatch.setattr(papers, "FOLDERS", [*papers.FOLDERS, tmp_path])
    papers.papers.cache_clear()
    with pytest.raises(SpecError, match=r"'R-01' stands in two papers, .* and 'Toy'"):
        papers.papers()


def test_a_table_of_any_task_needs_no_tasks(tmp_path: Path) -> None:
    _load(tmp_path, "{ours: T-01, tasks: [digits]}\n", "{ours: T-01}\n    any_task: true\n")
