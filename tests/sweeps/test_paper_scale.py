"""The studies of the two papers: every cell of their tables has its sweep, as the papers say, and nothing else."""

from itertools import pairwise

import committed
import pytest

from fpt import papers
from fpt.papers.schema import Rule
from fpt.sweeps import Study
from fpt.sweeps.words import title
from fpt.tasks import entry

ARMS = {"frozen-pretrained", "frozen-random", "unfrozen-pretrained", "unfrozen-random"}
STEPS = {"listops": 300_000, "mnist": 400_000, "cifar10": 400_000, "cifar10-lra": 300_000}  # Rothermel et al., Table 5

TABLES = papers.paper_of("rothermel2021").tables.values()


@pytest.fixture(scope="module")
def rothermel() -> Study:
    return committed.loaded("rothermel2021")


def test_every_table_has_sweeps_and_no_sweep_is_of_no_table(rothermel: Study) -> None:
    served = {table.id: {spec.hash for spec in rothermel.serving(table.id)} for table in TABLES}
    assert all(served.values())
    assert set.union(*served.values()) == {spec.hash for spec in rothermel.sweeps}


def test_every_printed_cell_of_rothermel_et_al_is_at_their_scale(rothermel: Study) -> None:
    for table in TABLES:
        cells = {(planned.row, planned.task): planned for planned in rothermel.planned(table)}
        assert {planned.scale for planned in cells.values()} == {"paper"}, table.id
        assert all((row, task) in cells for row, entry in table.rows.items() for task in entry.printed), table.id


def test_what_rothermel_et_al_say_of_their_runs(rothermel: Study) -> None:
    """Section 3, appendix E and Table 5; half decades and eight seeds are ours."""
    for spec in rothermel.sweeps:
        assert (spec.batch_size, spec.steps, spec.warmup) == (8, STEPS[spec.task], 0), title(spec)
        assert (spec.learning_rates[0], spec.learning_rates[-1], len(spec.learning_rates)) == (1e-6, 1e-2, 9)
        assert spec.init == "pretrained" or spec.random_init == "fixed"
        assert len(spec.seeds) == 8
    table = {spec.hash for spec in rothermel.serving("rothermel-table-1")}
    own = [spec for spec in rothermel.sweeps if spec.hash in table]
    assert {(spec.arm, spec.task) for spec in own} == {(arm, task) for arm in ARMS for task in STEPS}
    assert {(spec.backbone, spec.variant) for spec in own} == {("gpt2", "paper")}
    assert entry("listops").length("paper", {}) == 2000


def test_steps_to_an_accuracy_are_known_within_about_five_percent(rothermel: Study) -> None:
    for spec in rothermel.serving("rothermel-table-2"):
        steps = spec.evaluation_steps()
        assert max(later / step for step, later in pairwise(steps)) < 1.06
        assert steps[0] <= 4000  # Table 2 prints 43,000 at least


def test_distilgpt2_is_run_where_table_4_prints_it_for_the_steps_of_gpt2(rothermel: Study) -> None:
    distil = {(s.arm, s.task): s.steps for s in rothermel.serving("rothermel-table-4") if s.backbone == "distilgpt2"}
    assert distil == {(arm, task): steps for arm in ARMS for task, steps in STEPS.items() if task != "listops"}


def can_decide(study: Study, rule: Rule) -> bool:
    """Whether the study has a sweep for every row of the rule, on each of its tasks."""
    found: dict[str, set[str]] = {row: set() for row in rule.rows}
    for planned in study.planned(papers.table(rule.table)):
        if planned.row in found:
            found[planned.row] |= {planned.task}
    common = set.intersection(*found.values())
    return bool(common) and set(rule.tasks) <= common


@pytest.mark.parametrize("name", ["lu2021", "rothermel2021"])
def test_every_rule_of_a_paper_can_be_decided_by_its_study(name: str) -> None:
    study = committed.loaded(name)
    rules = [(claim.id, rule) for claim in papers.paper_of(name).claims.values() for rule in claim.rule]
    assert len(rules) > 30
    assert [claim for claim, rule in rules if not can_decide(study, rule)] == []


def test_a_study_can_decide_what_it_asks_of_our_claims() -> None:
    studies = [committed.loaded(name) for name in committed.studies()]
    asked = [(study, papers.claim(name)) for study in studies for name in study.file.asks if name.startswith("P-")]
    assert len(asked) > 10
    for study, claim in asked:
        assert all(can_decide(study, rule) for rule in claim.rule), f"{study.name}: {claim.id}"


def test_the_released_data_of_lu_et_al_have_rows_of_their_own() -> None:
    sweeps = committed.loaded("lu2021").serving("lu-released")
    found = {(spec.task, spec.variant, spec.arm) for spec in sweeps}
    tasks, arms = ("mnist", "cifar10", "cifar10-lra", "homology"), ARMS - {"unfrozen-pretrained"}
    assert found == {(task, how, arm) for task in tasks for how in ("paper", "released") for arm in arms}


def test_a_stand_in_for_a_papers_models_is_not_at_its_scale() -> None:
    study = committed.loaded("lora-text")
    cells = study.planned(papers.paper_of("schulman2025").tables["schulman-text"])
    rows = papers.paper_of("schulman2025").tables["schulman-text"].rows
    assert {*rows} - {planned.row for planned in cells} == {"LoRA small", "full small"}  # of study small-text
    assert {planned.scale for planned in cells} == {"reduced"}
