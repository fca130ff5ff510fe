"""The claims of this study and the tables on which they are read."""

from pathlib import Path

import pytest

from fpt import papers
from fpt.papers import load_paper
from fpt.papers.schema import Paper
from fpt.sweeps import load_study

FILE = Path(papers.__file__).with_name("ours.yaml")


@pytest.fixture(scope="module")
def ours() -> Paper:
    return load_paper(FILE)


def test_every_claim_has_its_rule(ours: Paper) -> None:
    assert list(ours.claims) == [f"P-{number:02}" for number in (*range(1, 12), *range(20, 35))]
    assert all(claim.rule for claim in ours.claims.values())
    (plane,), (crossing,) = ours.claims["P-01"].rule, ours.claims["P-02"].rule
    assert (plane.kind, plane.rows) == ("plane", ("FP", "UP"))
    assert (crossing.kind, crossing.rows) == ("crossing", ("UP", "FP"))


def test_the_tables_are_read_on_any_task_and_every_row_says_why(ours: Paper) -> None:
    controls = [f"ours-{name}" for name in ("backbone", "pretraining", "checkpoints", "order", "recipe", "gains")]
    assert list(ours.tables) == ["ours-plane", "ours-arms", "ours-scales", "ours-depth", *controls]
    for table in ours.tables.values():
        assert table.any_task
        assert all(row.ours and not row.printed and not row.tasks for row in table.rows.values())


def test_every_row_is_in_a_table(ours: Paper) -> None:
    assert {row for table in ours.tables.values() for row in table.rows} == set(ours.rows)


def test_frozen_pretrained_is_compared_with_frozen_random_at_every_gain(ours: Paper) -> None:
    (rule,) = ours.claims["P-07"].rule
    first, *others = rule.rows
    assert first == "FP"
    gains = [ours.rows[row].fields.get("random_gain", 1) for row in others]
    assert gains == [0.5, 1, 2, 4]
    assert {ours.rows[row].fields["arm"] for row in others} == {"frozen-random"}


    assert list(ours.claims) == [f"P-{number:02}" for number in (*range(1, 12), *range(20, 35))]
