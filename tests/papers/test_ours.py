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


def test_every_claim_has_a_rule_and_every_row_says_why_it_is_read_on_any_task(ours: Paper) -> None:
    assert all(claim.rule for claim in ours.claims.values())
    for table in ours.tables.values():
        assert table.any_task
        assert all(row.ours and not row.printed and not row.tasks for row in table.rows.values())


def test_every_row_is_in_a_table(ours: Paper) -> None:
    assert {row for table in ours.tables.values() for row in table.rows} == set(ours.rows)


def test_a_control_differs_from_its_arm_in_what_its_name_says(ours: Paper) -> None:
    """And in nothing else: FP warm-up is FP with a warm-up."""
    changes = {
        "warm-up": {"warmup": 0.1},
        "no clipping": {"clip": None},
        "10%": {"data_fraction": 0.1},
        "shuffled": {"shuffle_tokens": True},
        "iid": {"backbone": "tiny-lm-iid"},
        "Markov": {"backbone": "tiny-lm-markov"},
        "seed 1": {"backbone": "tiny-lm-seed1"},
        "seed 2": {"backbone": "tiny-lm-seed2"},
    }
    found = {name: row.fields for name, row in ours.rows.items() if name.partition(" ")[2] in changes}
    assert len(found) == 20
    for name, fields in found.items():
        arm, _, change = name.partition(" ")
        assert fields == {**ours.rows[arm].fields, **changes[change]}


def test_the_study_of_controls_has_every_row_and_asks_every_claim_of_them(ours: Paper) -> None:
    study = load_study(FILE.parents[2] / "runs" / "controls")
    others = ("ours-plane", "ours-arms", "ours-scales", "ours-depth", "ours-gains")
    tables = [table for name, table in ours.tables.items() if name not in others]
    for table in tables:
        planned = {(each.task, each.row): each.spec for each in study.planned(table)}
        on_digits = list(table.rows)
        assert all(planned["digits", row] for row in on_digits), table.id
    read = {table.id for table in tables}
    assert {name for name, claim in ours.claims.items() if {rule.table for rule in claim.rule} <= read} < set(
        study.file.asks
    )
    used = {planned.spec.hash for name in ours.tables for planned in study.planned(ours.tables[name]) if planned.spec}
    assert used == {spec.hash for spec in study.sweeps}  # no sweep that no table shows
    on_mnist = {each.row for table in tables for each in study.planned(table) if each.spec and each.task == "mnist"}
    assert {"FP iid", "FP Markov", "FP warm-up", "UP warm-up"} <= on_mnist  # what P-23 and P-30 compare there
