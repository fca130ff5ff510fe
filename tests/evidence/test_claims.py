"""The headline verdicts on made-up runs whose answer is known."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic

from fpt.errors import SpecError
from fpt.evidence import Verdict, claim, headline, load_runs, verdict_table
from fpt.evidence.claims import SOURCES, claims
from fpt.seeds import stream
from fpt.sweeps import SweepSpec

GAINS = """
  - {task: digits, arm: frozen-random, random_gain: [0.5, 2, 4]}
"""


def verdicts(runs: pd.DataFrame) -> dict[str, Verdict]:
    return {verdict.comparison: verdict for verdict in headline(runs)}


def made(tmp_path: Path, accuracy: synthetic.Accuracy, extra: str = "", **options: object) -> pd.DataFrame:
    study = synthetic.workspace(tmp_path, study=synthetic.STUDY + extra)
    return load_runs(synthetic.finish(study, accuracy=accuracy, **options))


def test_every_headline_on_clear_data(runs: pd.DataFrame) -> None:
    found = verdicts(runs)
    assert {name: verdict.verdict for name, verdict in found.items()} == {
        "FP - UP at 1e-3": "contradicted",
        "FP - UR at 1e-3": "contradicted",
        "FP - UP at 1e-2": "supported",
        "FP - UR at 1e-2": "supported",
        "UP - FP tuned": "supported",
        "UR - FP tuned": "supported",
        "FP - FR tuned": "supported",
        "FP - FR fixed tuned": "supported",
        "inversion": "supported",
    }
    tuned = found["UP - FP tuned"]
    assert tuned.test.n == 8
    assert tuned.test.mean == pytest.approx(0.04, abs=0.005)
    assert tuned.test.low < tuned.test.mean < tuned.test.high
    assert tuned.p_adjusted >= tuned.test.p
    assert "tiny-lm, 400 steps" in tuned.sentence


def test_reported_differences_come_from_confirmation_seeds(runs: pd.DataFrame) -> None:
    spoilt = runs.copy()
    spoilt.loc[spoilt["stage"] == "selection", "test_accuracy"] = 0.0
    assert verdicts(spoilt)["UP - FP tuned"].test == verdicts(runs)["UP - FP tuned"].test


def test_noise_gives_inconclusive_and_the_seeds_that_would_decide(tmp_path: Path) -> None:
    def noisy(spec: SweepSpec, rate: float, seed: int) -> float:
        noise = np.random.default_rng(stream(seed, spec.hash, str(rate))).normal(0, 0.02)
        edge = 0.3 if rate in (1e-4, 1e-1) else 0.0
        return 0.8 - edge + noise + (0.01 if spec.init == "pretrained" else 0)

    found = verdicts(made(tmp_path, noisy))["FP - FR tuned"]
    assert found.verdict == "inconclusive"
    assert found.n_needed is None or found.n_needed > 8


def test_equal_arms_without_spread_are_inconclusive_and_comparable(tmp_path: Path) -> None:
    found = verdicts(made(tmp_path, lambda spec, rate, seed: 1.0 if rate == 1e-3 else 0.5))
    assert found["FP - FR tuned"].verdict == "inconclusive"
    assert found["FP - FR tuned"].test.comparable
    assert found["FP - FR tuned"].n_needed is None


def test_constant_differences_are_decided(tmp_path: Path) -> None:
    def constant(spec: SweepSpec, rate: float, seed: int) -> float:
        return (0.75 if spec.init == "random" else 1.0) if rate == 1e-3 else 0.5

    assert verdicts(made(tmp_path, constant))["FP - FR tuned"].verdict == "supported"


def test_a_selected_rate_on_the_edge(tmp_path: Path) -> None:
    def rising(spec: SweepSpec, rate: float, seed: int) -> float:
        if spec.arm == "unfrozen-pretrained":
            return 0.5 + 0.1 * math.log10(rate / 1e-4)  # best at the grid's highest rate
        return synthetic.accuracy(spec, rate, seed)

    found = verdicts(made(tmp_path, rising))
    assert found["UP - FP tuned"].verdict == "inconclusive (edge)"
    assert found["UP - FP tuned"].test.n == 8  # the numbers are shown all the same
    assert found["FP - UP at 1e-2"].verdict == "supported"  # a fixed rate has no edge
    assert found["UR - FP tuned"].verdict == "supported"
    assert found["inversion"].verdict == "supported"  # by the other arm
    assert found["inversion"].note == "UP: inconclusive (edge); UR: supported"


def test_no_eligible_rate(tmp_path: Path) -> None:
    def diverging(spec: SweepSpec, rate: float, seed: int) -> float:
        return math.nan if spec.trainable == "all" else synthetic.accuracy(spec, rate, seed)

    found = verdicts(made(tmp_path, diverging))
    assert found["UP - FP tuned"].verdict == "inconclusive (diverged)"
    assert found["FP - UP at 1e-3"].verdict == "inconclusive (diverged)"
    assert found["inversion"].verdict == "inconclusive (diverged)"
    assert found["FP - FR tuned"].verdict == "supported"


def test_one_seed_that_diverged_before_its_first_evaluation(tmp_path: Path) -> None:
    def once(spec: SweepSpec, rate: float, seed: int) -> float:
        lost = spec.arm == "unfrozen-random" and rate == 1e-2 and seed == 12
        return math.nan if lost else synthetic.accuracy(spec, rate, seed)

    found = verdicts(made(tmp_path, once))["FP - UR at 1e-2"]
    assert (found.test.n, found.note, found.verdict) == (7, "1 seeds without a pair", "supported")


def test_an_arm_that_was_not_run(tmp_path: Path) -> None:
    found = verdicts(made(tmp_path, synthetic.accuracy, skip=("unfrozen-pretrained", "frozen-random")))
    assert found["UP - FP tuned"].verdict == "not tested"
    assert found["FP - FR tuned"].verdict == "not tested"
    assert "FP - FR fixed tuned" not in found
    assert found["UR - FP tuned"].verdict == "supported"
    assert found["inversion"].verdict == "supported"


def test_no_runs_give_no_verdicts(tmp_path: Path) -> None:
    assert headline(load_runs(synthetic.workspace(tmp_path))) == []
    assert verdict_table([]).empty


@pytest.mark.parametrize(("best", "word"), [(2.0, "contradicted"), (4.0, "inconclusive (edge)")])
def test_a_tuned_gain_is_chosen_on_validation(tmp_path: Path, best: float, word: str) -> None:
    def gained(spec: SweepSpec, rate: float, seed: int) -> float:
        bonus = 0.1 if spec.random_gain == best else 0.0
        return min(synthetic.accuracy(spec, rate, seed) + bonus, 1.0)

    found = verdicts(made(tmp_path, gained, extra=GAINS))
    assert found["FP - FR best gain tuned"].verdict == word
    assert f"its best gain, {best:g}" in found["FP - FR best gain tuned"].sentence
    assert found["FP - FR tuned"].verdict == "supported"  # untuned, the same claim gets another verdict


def test_sweeps_of_another_length_are_never_compared(tmp_path: Path) -> None:
    extra = "  - {task: digits, arm: unfrozen-random, steps: 800}\n"
    found = headline(made(tmp_path, synthetic.accuracy, extra=extra))
    long = [verdict for verdict in found if "800 steps" in verdict.scale]
    assert {verdict.verdict for verdict in long} == {"not tested"}


def _flat(frozen: float, unfrozen_fixed: float, unfrozen_best: float) -> Callable[[SweepSpec, float, int], float]:
    def accuracy(spec: SweepSpec, rate: float, seed: int) -> float:
        wiggle = 0.001 * (stream(seed, spec.hash) % 5)
        if rate in (1e-4, 1e-1):
            return 0.1
        if spec.trainable == "fpt":
            return frozen + wiggle
        return (unfrozen_best if rate == 1e-3 else unfrozen_fixed) + wiggle

    return accuracy


@pytest.mark.parametrize(
    ("levels", "word"),
    [
        ((0.8, 0.5, 0.9), "supported"),
        ((0.8, 0.5, 0.7), "contradicted"),  # frozen wins tuned as well
        ((0.8, 0.85, 0.9), "contradicted"),  # frozen wins nowhere
    ],
)
def test_the_ordering_inverts_only_if_both_halves_hold(
    tmp_path: Path, levels: tuple[float, float, float], word: str
) -> None:
    assert verdicts(made(tmp_path, _flat(*levels)))["inversion"].verdict == word


def test_the_table_shows_points(runs: pd.DataFrame) -> None:
    table = verdict_table(headline(runs)).set_index("comparison")
    assert table.loc["UP - FP tuned", "difference"].startswith("+4")
    assert " to " in table.loc["UP - FP tuned", "95% interval"]
    assert (table["verdict"] != "").all()


def test_the_claims_of_the_papers() -> None:
    assert len(claims()) == 131
    assert claim("R-01")["reported"]["unfrozen_pretrained"]["mnist"]["mean"] == 99.0
    assert all(name in claims() for ids in SOURCES.values() for name in ids)
    with pytest.raises(SpecError, match="R-99"):
        claim("R-99")


def test_the_scale_names_what_was_changed_in_the_backbone(tmp_path: Path) -> None:
    study = synthetic.workspace(
        tmp_path, study=synthetic.STUDY.replace("tiny-lm,", "tiny-lm, backbone_options: {layers: 2},")
    )
    found = headline(load_runs(synthetic.finish(study)))
    assert {verdict.scale for verdict in found} == {"tiny-lm (layers 2), 400 steps"}


def test_one_arm_has_one_grid(tmp_path: Path) -> None:
    runs = load_runs(synthetic.finish(synthetic.workspace(tmp_path)))
    other = runs[runs["label"] == "FP"].assign(sweep="digits.frozen-pretrained-00000000")
    with pytest.raises(SpecError, match=r"two sweeps of one arm .*00000000"):
        headline(pd.concat([runs, other]))
