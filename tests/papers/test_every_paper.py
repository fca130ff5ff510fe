"""The papers of the package as data: complete, equal to what was transcribed, and as consistent as they are known to
be."""

import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fpt import papers
from fpt.claims.judge import judged
from fpt.claims.words import CONSISTENT, SLIP, TOO_CLOSE
from fpt.sweeps import load_study

ROOT = Path(__file__).parents[2]
NO_RUN_DECIDES = {
    "lu2021": {"L-09", "L-25", "L-32", "L-48", "O-09", "O-11", "O-18", "O-30", "O-33"},
    "rothermel2021": {"R-22", "R-23", "R-26", "R-28", "X-09", "X-11", "O-25", "O-27", "O-28", "O-29", "O-35"},
    "schulman2025": {"S-07"},
    "baselines": set(),
    "ours": set(),
}


@pytest.fixture
def paper(request):
    return papers.paper_of(request.param)


def of(*names):
    return pytest.mark.parametrize("paper", names, indirect=True)


def test_the_printed_numbers_are_those_that_were_transcribed_twice():
    """Two people's transcriptions agreed. Whoever corrects a number compares it with the paper, and freezes the new
    sum."""
    found = {name: _sum(papers.paper_of(name)) for name in ("lu2021", "rothermel2021")}
    assert found == {"lu2021": "ba1c98bf364af2bc", "rothermel2021": "3a6840e39c5aed60"}


def _sum(paper):
    """SHA-256 over all numbers of a paper: of tables, recipes and claims."""
    numbers = {
        "tables": {
            f"{name}/{row}/{task}": (cell.value, cell.sem, cell.mark)
            for name, table in paper.tables.items()
            for row, entry in table.rows.items()
            for task, cell in entry.printed.items()
        },
        "rates": dict(paper.rates),
        "tasks": {name: dict(fields) for name, fields in paper.tasks.items()},
        "claims": {name: claim.numbers for name, claim in paper.claims.items() if claim.numbers},
    }
    return hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()[:16]


@of(*NO_RUN_DECIDES)
def test_few_claims_are_documentary(paper):
    assert {name for name, claim in paper.claims.items() if claim.documentary} == NO_RUN_DECIDES[paper.name]


@of(*NO_RUN_DECIDES)
def test_every_row_is_in_a_table(paper):
    assert {row for table in paper.tables.values() for row in table.rows} == set(paper.rows)


@of("lu2021")
def test_no_two_rows_are_the_same_sweep(paper):
    fields = Counter(str(sorted({"backbone": "gpt2", **row.fields}.items())) for row in paper.rows.values())
    assert [which for which, count in fields.items() if count > 1] == []


@of("lu2021")
def test_the_kept_weights_are_those_that_another_row_starts_from(paper):
    kept = {
        f"{row}/{task}"
        for table in paper.tables.values()
        for row, entry in table.rows.items()
        for task, printed in entry.printed.items()
        if printed.keep
    }
    assert kept == {row.fields["pretrained_by"] for row in paper.rows.values() if "pretrained_by" in row.fields}


def _holds(rule, values):
    """Whether printed numbers, in the order of the rule's rows, keep to it; a tie is one in the rule too."""
    if rule.kind == "beats":
        return all(rule.by <= values[0] - other <= rule.to or values[0] == other for other in values[1:])
    if rule.kind == "faster":
        return all(values[0] <= other for other in values[1:])
    steps = [b - a for a, b in itertools.pairwise(values)]
    return min(steps) >= 0 if rule.kind == "order" else max(steps) == steps[0]


@of("lu2021")
def test_the_printed_numbers_keep_to_the_rules_but_where_the_paper_is_known_not_to(paper):
    broken, kept = set(), 0
    for claim in paper.claims.values():
        for rule in claim.rule:
            rows = paper.tables[rule.table].rows
            for task in rule.tasks or paper.tasks:
                cells = [rows[row].printed.get(task) for row in rule.rows]
                values = [cell.value for cell in cells if cell and isinstance(cell.value, float)]
                if rule.kind not in ("beats", "faster", "order", "jump") or len(values) < max(2, len(cells)):
                    continue
                if _holds(rule, values):
                    kept += 1
                else:
                    broken.add((claim.id, task))
    assert kept > 100
    assert broken == {
        ("L-11", "homology"),  # Bit Memory below random: O-15
        ("L-18", "mnist"),  # LSTM* above the transformer
        ("L-31", "cifar10-lra"),  # O-31
        ("L-38", "mnist"),  # by 9 points, where some task must lose 10
        ("L-40", "bit-memory"),  # the input layer is best: O-19
        ("L-43", "bit-memory"),
    }


@of("rothermel2021")
def test_what_is_near_a_printed_number_is_printed_and_at_the_papers_scale(paper):
    near = [rule for claim in paper.claims.values() for rule in claim.rule if rule.kind == "near"]
    assert near
    for rule in near:
        assert rule.only_paper_scale
        for row in rule.rows:
            assert set(rule.tasks) <= set(paper.tables[rule.table].rows[row].printed)


@of("ours")
def test_every_claim_of_ours_has_a_rule_and_every_row_says_why_it_is_read_on_any_task(paper):
    assert all(claim.rule for claim in paper.claims.values())
    for table in paper.tables.values():
        assert table.any_task
        assert all(row.ours and not row.printed and not row.tasks for row in table.rows.values())


@of("ours")
def test_a_control_differs_from_its_arm_in_what_its_name_says(paper):
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
    found = {name: row.fields for name, row in paper.rows.items() if name.partition(" ")[2] in changes}
    assert len(found) == 20
    for name, fields in found.items():
        arm, _, change = name.partition(" ")
        assert fields == {**paper.rows[arm].fields, **changes[change]}


@of("ours")
def test_the_study_of_controls_has_every_row_and_asks_every_claim_of_them(paper):
    study = load_study(ROOT / "runs" / "controls")
    others = ("ours-plane", "ours-arms", "ours-scales", "ours-depth", "ours-gains")
    planned = {name: study.planned(table) for name, table in paper.tables.items()}
    tables = paper.tables.keys() - set(others)
    for name in tables:
        on_digits = {each.row for each in planned[name] if each.task == "digits"}
        assert on_digits == set(paper.tables[name].rows), name
    of_them = {name for name, claim in paper.claims.items() if {rule.table for rule in claim.rule} <= tables}
    assert of_them < set(study.file.asks)
    used = {each.spec.hash for cells in planned.values() for each in cells}
    assert used == {spec.hash for spec in study.sweeps}  # no sweep that no table shows
    on_mnist = {each.row for name in tables for each in planned[name] if each.task == "mnist"}
    assert {"FP iid", "FP Markov", "FP warm-up", "UP warm-up"} <= on_mnist  # what P-23 and P-30 compare there


@of("baselines")
def test_every_claim_on_a_baseline_is_decided(paper):
    found = {name: judged([], [claim]).iloc[0] for name, claim in paper.claims.items()}
    assert {each["word"] for each in found.values()} <= {CONSISTENT, TOO_CLOSE, SLIP}
    assert {found[name]["word"] for name in ("B-01", "B-02", "B-07")} == {CONSISTENT}
    assert "exact to depth 6" in found["B-05"]["note"]


@of("baselines")
def test_a_claim_on_a_baseline_can_fail(paper):
    for claim in paper.claims.values():
        numbers = claim.numbers["accuracy"]
        shifted = {k: v + 5 for k, v in numbers.items()} if isinstance(numbers, dict) else float(np.max(numbers)) + 5
        wrong = claim.model_copy(update={"numbers": {**claim.numbers, "accuracy": shifted}})
        assert judged([], [wrong])["word"][0] == SLIP
