"""Rothermel et al. 2021 as data: complete, consistent with itself, and with what is known to be misprinted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fpt import papers
from fpt.papers import load_paper
from fpt.papers.schema import Paper, Rule

FILE = Path(papers.__file__).with_name("rothermel2021.yaml")
ARMS = ["FR", "FP", "UR", "UP"]
TASKS = ["listops", "mnist", "cifar10", "cifar10-lra"]
NO_RUN_DECIDES = {"R-22", "R-23", "R-26", "R-28", "X-09", "X-11", "O-25", "O-27", "O-28", "O-29", "O-35"}


@pytest.fixture(scope="module")
def rothermel() -> Paper:
    return load_paper(FILE)


def test_few_claims_are_documentary(rothermel: Paper) -> None:
    assert {name for name, claim in rothermel.claims.items() if claim.documentary} == NO_RUN_DECIDES


@pytest.mark.parametrize("table", ["rothermel-table-1", "rothermel-table-2", "rothermel-table-3"])
def test_the_four_arms_are_printed_on_all_four_tasks(rothermel: Paper, table: str) -> None:
    rows = rothermel.tables[table].rows
    assert sorted(rows) == sorted(ARMS)
    assert all(list(row.printed) == TASKS for row in rows.values())


def test_table_2_prints_steps_within_the_budget_or_never(rothermel: Paper) -> None:
    table = rothermel.tables["rothermel-table-2"]
    assert (table.kind, table.until) == ("steps", "FP")
    for name, row in table.rows.items():
        for task, printed in row.printed.items():
            if name == "FR":
                assert printed.value == "never"
            else:
                assert isinstance(printed.value, float)
                assert 0 < printed.value < rothermel.tasks[task]["steps"]


def test_table_4_prints_the_numbers_of_table_1_for_gpt2(rothermel: Paper) -> None:
    first, fourth = (rothermel.tables[f"rothermel-table-{number}"].rows for number in (1, 4))
    for arm in ARMS:
        assert {task: first[arm].printed[task] for task in TASKS[1:]} == fourth[arm].printed
        assert list(fourth[f"{arm}, DistilGPT2"].printed) == TASKS[1:]


def test_every_accuracy_is_a_percentage_with_its_error(rothermel: Paper) -> None:
    for table in ("rothermel-table-1", "rothermel-table-4"):
        for row in rothermel.tables[table].rows.values():
            for printed in row.printed.values():
                assert isinstance(printed.value, float)
                assert 10 < printed.value < 100
                assert printed.sem is not None
                assert 0 <= printed.sem < 2


def _rules(paper: Paper) -> Iterator[tuple[str, Rule]]:
    return ((name, rule) for name, claim in paper.claims.items() for rule in claim.rule)


def test_every_rule_is_read_on_tasks_where_all_its_rows_stand(rothermel: Paper) -> None:
    for name, rule in _rules(rothermel):
        stands = set.intersection(*(set(rothermel.tables[rule.table].on(row, rothermel)) for row in rule.rows))
        assert stands, name
        assert set(rule.tasks) <= stands, name


def test_what_is_near_a_printed_number_is_printed_and_at_the_papers_scale(rothermel: Paper) -> None:
    near = [rule for _, rule in _rules(rothermel) if rule.kind == "near"]
    assert near
    for rule in near:
        assert rule.only_paper_scale
        for row in rule.rows:
            assert set(rule.tasks) <= set(rothermel.tables[rule.table].rows[row].printed)


def test_the_derived_numbers_follow_from_the_table(rothermel: Paper) -> None:
    rows = rothermel.tables["rothermel-table-1"].rows

    def difference(first: str, second: str) -> list[float]:
        pairs = [(rows[first].printed[task].value, rows[second].printed[task].value) for task in TASKS]
        return [round(a - b, 1) for a, b in pairs if isinstance(a, float) and isinstance(b, float)]

    assert difference("FP", "FR") == [7.2, 0.5, 4.5, 10.5]
    assert difference("UR", "FP") == [11.5, 0.2, 11.5, 7.3]
    assert difference("UP", "UR")[-1] == 5.8  # O-21: the text has 4.8
    assert rothermel.claims["R-09"].numbers == {"text": 4.8}
