"""The claims on baselines name scores that the package computes."""

from pathlib import Path

import numpy as np
import pytest

from fpt import papers
from fpt.claims.judge import Judge
from fpt.claims.words import CONSISTENT, SLIP, TOO_CLOSE
from fpt.papers import claims, load_paper
from fpt.papers.schema import Paper
from fpt.results import known_scores

FILE = Path(papers.__file__).with_name("baselines.yaml")


@pytest.fixture(scope="module")
def baselines() -> Paper:
    return load_paper(FILE)


def test_every_claim_is_there_with_its_number(baselines: Paper) -> None:
    assert list(baselines.claims) == [f"B-0{number}" for number in range(1, 8)]
    assert all("accuracy" in claim.numbers for claim in baselines.claims.values())


def test_every_score_named_is_known(baselines: Paper) -> None:
    for name, claim in baselines.claims.items():
        for rule in claim.rule:
            assert rule.kind == "baseline"
            assert all(rule.level in known_scores(task) for task in rule.tasks), name


def test_every_claim_is_decided() -> None:
    found = {name: Judge([]).of_claim(claim)[0] for name, claim in claims().items() if claim.paper == "baselines"}
    assert {each["word"] for each in found.values()} <= {CONSISTENT, TOO_CLOSE, SLIP}
    assert {found[name]["word"] for name in ("B-01", "B-02", "B-07")} == {CONSISTENT}
    assert "exact to depth 6" in found["B-05"]["note"]


def test_a_claim_on_a_baseline_can_fail(baselines: Paper) -> None:
    for claim in baselines.claims.values():
        numbers = claim.numbers["accuracy"]
        shifted = {k: v + 5 for k, v in numbers.items()} if isinstance(numbers, dict) else float(np.max(numbers)) + 5
        wrong = claim.model_copy(update={"numbers": {**claim.numbers, "accuracy": shifted}})
        assert Judge([]).of_claim(wrong)[0]["word"] == SLIP
