"""Computed sentences: with results, with some of them, and with none."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import synthetic

from fpt.claims.verdicts import ASKED, CHANGED, CONTRADICTED, INCONCLUSIVE, SUPPORTED, Part, Verdict
from fpt.results import StudyCells
from fpt.results.cells import Cell
from fpt.results.stats import Paired, paired
from fpt.show import facts, text
from fpt.show.numbers import NONE


def test_numbers_of_the_arms_with_results_and_without(study: Path, tmp_path: Path) -> None:
    some = facts(text.arms(StudyCells(study), "digits"))
    none = facts(text.arms(StudyCells(synthetic.workspace(tmp_path)), "digits"))
    assert set(some) == set(none) == set(facts({}))  # every number that a sentence asks for is always there
    assert (some["steps"], some["grid"], some["seeds"]) == ("400", "1e-4, 1e-3, 1e-2, 1e-1", "8")
    assert none["steps"] == "400"  # planned
    assert facts({})["steps"] == NONE


def test_whose_results_and_the_study_that_would_make_them(study: Path, tmp_path: Path) -> None:
    assert "your own results" in text.whose(study)
    empty = synthetic.workspace(tmp_path, "minilm-2")
    assert "the command fpt run minilm-2 makes them" in text.whose(empty)
    part = synthetic.finish(synthetic.workspace(tmp_path, "part"), skip=("unfrozen-random", "unfrozen-pretrained"))
    assert re.search(r"3 of its 6 sweeps \(not (UP, UR|UR, UP), UR fixed\)", text.whose(part))


def test_an_arm_that_is_there_on_one_task_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"name": ["FP", "FP"], "status": ["done", "waiting"], "device": "a machine", "origin": "published"}
    monkeypatch.setattr(text, "sweeps_table", lambda _: pd.DataFrame(rows))
    assert "the study two-tasks, 1 of its 2 sweeps, computed on a machine" in text.whose("two-tasks")


def test_the_design_of_a_study_and_what_is_exploratory(study: Path, tmp_path: Path) -> None:
    words = "Learning rates 1e-4, 1e-3, 1e-2, 1e-1; 8 seeds. "
    words += "Each seed takes the rate that is best for the others (validation)."
    assert text.design(StudyCells(study)) == words
    few = synthetic.STUDY.replace("seeds: [0, 1, 2, 3, 4, 5, 6, 7]", "seeds: [0, 1, 2]")
    cells = StudyCells(synthetic.finish(synthetic.workspace(tmp_path, "few", few)))
    assert text.design(cells).endswith("Exploratory: 6 of 6 sweeps have fewer than 8 seeds.")
    assert text.design(StudyCells(synthetic.workspace(tmp_path, "empty"))) == ""


def test_sentences_on_the_plane_and_the_crossing(study: Path) -> None:
    arms = text.arms(StudyCells(study), "digits")
    plane = text.plane(arms["FP"], arms["UP"])
    assert re.match(r"Of 24 pairs of learning rate and budget, Frozen Pretrained is ahead at \d+ \(rates 1e-4", plane)
    assert "Unfrozen Pretrained is ahead at" in plane
    assert "(rate 1e-3)" in plane
    crossing = text.crossing(arms["FP"], arms["UP"])
    assert crossing == (
        "Frozen Pretrained against Unfrozen Pretrained, each at its own rate, for all budgets together: "
        "not within 400 steps."
    )
    equal = text.crossing(arms["FP"], arms["FP"])
    words = "undecided at every budget. Without correction, the 95% interval holds 0 only after 12, 25, 50, 100,"
    assert words in equal


def test_what_is_gained_and_when_it_is_clear(study: Path, tmp_path: Path) -> None:
    arms = text.arms(StudyCells(study), "digits")
    frozen, full = arms["FP"], arms["UP"]
    verb, test = text.gain(frozen, full)
    assert (verb, test.high < 0) == ("loses", True)
    assert test.mean == pytest.approx(float((frozen.values() - full.values()).mean()))
    assert text.gain(full, frozen)[0] == "gains"
    assert text.gain(frozen, frozen)[0] == "makes no clear difference"
    assert text.whole([StudyCells(study)]) == {"Digits, laptop": arms}
    assert text.whole([StudyCells(synthetic.workspace(tmp_path / "empty"))]) == {}


def test_an_arm_at_an_edge_does_not_clearly_trail(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arms = text.arms(StudyCells(study), "digits")
    monkeypatch.setattr(Cell, "ends", lambda cell, budget=None: {"low"} if cell is arms["FP"] else set())
    assert text.gain(arms["FP"], arms["UP"])[0] == "makes no clear difference"
    assert text.gain(arms["FP"], arms["UP"], 1e-3)[0] == "loses"


def test_answers_of_the_arms_have_their_intervals(study: Path, tmp_path: Path) -> None:
    arms = text.arms(StudyCells(study), "digits")
    tuned, of_lu, plane, pretrained = text.answers(arms)
    number = r"points, [+-]\d+\.\d to [+-]\d+\.\d\)"
    gain, against = rf"\([+-]\d+\.\d {number}", "against training all weights, and"
    assert re.fullmatch(
        r"Each at its own learning rate: frozen \d\d\.\d%, all weights trained \d\d\.\d%, trained from scratch "
        rf"\d\d\.\d%\. Freezing loses {gain} {against} \w[\w ]* {gain} against training from scratch\.",
        tuned,
    )
    seen = gain.replace(r"\)", r"; \d\d\.\d% against \d\d\.\d%\)")
    assert re.match(rf"At 1e-3, the rate of Lu et al\., freezing loses {seen} {against} \w[\w ]* {seen}", of_lu)
    assert f"{arms['FP'].values(1e-3).mean():.1%} against {arms['UP'].values(1e-3).mean():.1%})" in of_lu
    assert plane.startswith("With one rate for both: of ")
    assert re.fullmatch(rf"Among frozen models, pretraining gains {gain} against random weights\.", pretrained)
    same = text.answers(arms | {"UP": arms["FP"], "UR": arms["FP"], "FR": arms["FP"]})
    assert [each.count("makes no clear difference (+0.0 points") for each in same] == [2, 2, 0, 1]
    none = text.arms(StudyCells(synthetic.workspace(tmp_path)), "digits")
    assert text.answers(none) == text.answers({}) == ["Not decided yet: not all of the arms were run."]


def test_a_verdict_in_words_has_its_scale_setting_and_whether_it_was_asked() -> None:
    one = _verdict(("digits", SUPPORTED))
    assert text.verdict_words([one]) == "supported, at reduced scale (tiny-lm, 400 steps)"
    asked = replace(one, asked=CHANGED, exploratory=True)
    assert text.verdict_words([asked]).endswith("400 steps, rule changed since), exploratory")
    paper = replace(one, study="big", scale="paper", setting="gpt2, 400,000 steps", word=CONTRADICTED)
    words = "supported in tiny-lm, 400 steps; contradicted in gpt2, 400,000 steps"
    words = f"depends on scale, at paper and reduced scale ({words})"
    assert text.verdict_words([one, paper]) == words
    open_ = replace(one, study="open", setting="gpt2, 10 steps", word=INCONCLUSIVE)
    words = "supported in part, at reduced scale (tiny-lm, 400 steps, asked before the runs; inconclusive in open)"
    assert text.verdict_words([open_, replace(one, asked=ASKED)]).startswith(words)
    several = [replace(open_, study=name, asked=asked) for name, asked in (("x", ASKED), ("y", ""), ("z", ASKED))]
    words = "inconclusive, at reduced scale (in x and z, asked before the runs; in y)"
    assert text.verdict_words(several) == words
    assert text.verdict_words([Verdict("R-21", SUPPORTED)]) == SUPPORTED


def _test(place: int) -> Paired:
    return paired(pd.Series([0.8, 0.9, 0.85]), pd.Series([0.7, 0.75, 0.77 + place / 1000]))


def _verdict(*words: tuple[str, str], exploratory: bool = False) -> Verdict:
    p = {SUPPORTED: (0.01, 1.0), CONTRADICTED: (1.0, 0.01)}
    parts = tuple(
        Part(task, f"UP - FP {place}", _test(place), word, "", *p.get(word, (0.5, 0.5)))
        for place, (task, word) in enumerate(words)
    )
    return Verdict("P-04", words[0][1], "laptop", setting="tiny-lm, 400 steps", parts=parts, exploratory=exploratory)


def test_the_score_counts_what_the_papers_say_and_not_what_is_said_about_them() -> None:
    found = {"R-01": [_verdict(("digits", SUPPORTED))], "R-21": [Verdict("R-21", SUPPORTED)], "R-29": []}
    about = {"O-01": [Verdict("O-01", SUPPORTED)], "P-01": [_verdict(("digits", CONTRADICTED))]}
    assert text.score(found | about) == (
        "The papers make 3 claims. Runs tested 1 of them at reduced scale: supported 1 (by chance alone, "
        "about 0.1 of the 1 verdicts of single studies behind them would be decided). Without runs: "
        "supported 1, not tested 1."
    )
    assert text.score({}) == "The papers make 0 claims. Runs tested 0 of them. Without runs: none."
    assert text.tally(about) == "supported 1, contradicted 1"
