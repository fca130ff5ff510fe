"""The claims on baselines name scores that the package computes."""

from pathlib import Path
from typing import Any

import pytest

from fpt import papers
from fpt.evidence import baseline_scores
from fpt.papers import load_paper
from fpt.papers.schema import Paper

FILE = Path(papers.__file__).with_name("baselines.yaml")
STAND_INS = {"listops": "listops-short", "mnist": "digits", "cifar10": "digits", "cifar10-lra": "digits"}


@pytest.fixture(scope="module")
def baselines() -> Paper:
    return load_paper(FILE)


def test_every_claim_is_there_with_its_number(baselines: Paper) -> None:
    assert list(baselines.claims) == [f"B-0{number}" for number in range(1, 8)]
    assert all("accuracy" in claim.numbers for claim in baselines.claims.values())


def test_every_score_named_is_computed(baselines: Paper, tmp_path: Path) -> None:
    small: dict[str, dict[str, Any]] = {"listops-short": {"train": 200, "heldout": 50}}
    for name, claim in baselines.claims.items():
        for rule in claim.rule:
            assert rule.kind == "baseline"
            for task in rule.tasks:
                stand_in = STAND_INS.get(task, task)
                scores = baseline_scores(stand_in, data_dir=tmp_path, **small.get(stand_in, {}))
                assert rule.level == "linear" or rule.level in scores, (name, task)  # linear: fpt.evidence.linear_score
