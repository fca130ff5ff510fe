"""Computed sentences: with results, with some of them, and with none."""

import re
from pathlib import Path

import pandas as pd
import synthetic

from fpt.evidence import StudyCells, facts
from fpt.evidence.show import text
from fpt.evidence.show.numbers import NONE
from fpt.evidence.stats import Paired, paired
from fpt.evidence.verdicts import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Part, Verdict


def test_numbers_of_the_arms_with_results_and_without(study: Path, tmp_path: Path) -> None:
    some = facts(text.arms(StudyCells(study), "digits"))
    none = facts(text.arms(StudyCells(synthetic.workspace(tmp_path)), "digits"))
    assert set(some) == set(none) == set(facts({}))  # every number that a sentence asks for is always there
    assert re.fullmatch(r"\d\d\.\d%", some["fp-tuned"])
    assert (some["fp-rate"], some["up-rate"], some["confirmation-seeds"]) == ("1e-2", "1e-3", "8")
    assert (some["steps"], some["grid"]) == ("400", "1e-4, 1e-3, 1e-2, 1e-1")
    assert none["fp-tuned"] == NONE


def test_whose_results_and_the_study_that_would_make_them(study: Path, tmp_path: Path) -> None:
    assert "your own results" in text.whose(study)
    empty = synthetic.workspace(tmp_path, "minilm-2")
    assert "the command fpt run minilm-2 makes them" in text.whose(empty)
    part = synthetic.finish(synthetic.workspace(tmp_path, "part"), skip=("unfrozen-random", "unfrozen-pretrained"))
    assert re.search(r"3 of its 6 sweeps \(not (UP, UR|UR, UP), UR fixed\)", text.whose(part))


def test_exploratory_sweeps_are_counted(study: Path, tmp_path: Path) -> None:
    assert "Exploratory" not in text.stages(StudyCells(study))
    lone = synthetic.STUDY.replace("confirmation_seeds: [10, 11, 12, 13, 14, 15, 16, 17]", "confirmation_seeds: []")
    cells = StudyCells(synthetic.finish(synthetic.workspace(tmp_path, study=lone)))
    assert "3 seeds choose among them. Exploratory: in 6 sweeps" in text.stages(cells)
    assert facts(text.arms(cells, "digits"))["fp-tuned"] == NONE  # no number without fresh seeds


def test_the_share_of_the_papers_steps() -> None:
    assert "400 steps are 0.10% of the 400,000" in text.budget_share("400", "mnist")
    assert "0.13% of the 300,000" in text.budget_share("400", "listops")


def test_rates_are_counted_over_all_setups(study: Path) -> None:
    assert text.rate_ratios([StudyCells(study)]) == "2 of 2"  # 1e-3 and 1e-2


def _test(place: int) -> Paired:
    return paired(pd.Series([0.8, 0.9, 0.85]), pd.Series([0.7, 0.75, 0.77 + place / 1000]))


def _verdict(*words: tuple[str, str], exploratory: bool = False) -> Verdict:
    p = {SUPPORTED: (0.01, 1.0), CONTRADICTED: (1.0, 0.01)}
    parts = tuple(
        Part(task, f"UP - FP {place}", _test(place), word, "", *p.get(word, (0.5, 0.5)))
        for place, (task, word) in enumerate(words)
    )
    return Verdict("P-04", words[0][1], "laptop", setting="tiny-lm, 400 steps", parts=parts, exploratory=exploratory)


def test_a_task_is_decided_by_all_of_its_comparisons() -> None:
    verdict = _verdict(("digits", SUPPORTED), ("digits", CONTRADICTED), ("mnist", SUPPORTED), ("mnist", INCONCLUSIVE))
    assert text.words_by_task(verdict) == {"digits": CONTRADICTED, "mnist": INCONCLUSIVE}


def test_a_tally_counts_every_fresh_pair_of_task_and_model() -> None:
    found = [_verdict(("digits", SUPPORTED), ("mnist", CONTRADICTED)), _verdict(("bit-xor", "inconclusive (edge)"))]
    found.append(found[0])  # two studies share these runs
    found.append(_verdict(("bit-xor", SUPPORTED), exploratory=True))
    assert text.tally(found) == "supported on 1, contradicted on 1, inconclusive on 1 of 3 pairs of task and model"


def test_counts_by_verdict_and_scale() -> None:
    found = {"R-01": [_verdict(("digits", SUPPORTED))], "R-21": [Verdict("R-21", SUPPORTED)], "R-29": []}
    words = text.counts(found)
    assert words.startswith("3 claims: ")
    assert "1 supported at reduced scale" in words
    assert "1 supported," in words + ","
    assert "1 not tested" in words
