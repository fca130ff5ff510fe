"""Tables with a row a pair of model and task, on published results."""

import pytest

from fpt.claims.sensitivity import conclusions
from fpt.results import contrast, level
from fpt.show import Pair, best_of, less_evidence

PAIRS = [Pair("MNIST", "plane-mnist"), Pair("SmolLM2", "smollm2", suffix=" (layers 4)")]


def test_an_arm_stands_with_its_level_and_its_best_rate() -> None:
    shown = best_of(PAIRS, "caption").frame.set_index("pair")
    frozen = level("plane-mnist", "FP")
    assert shown.loc["MNIST", "FP, %"].split(" (")[0] == f"{frozen.mean:.1f}"
    assert shown.loc["SmolLM2", "UR, %"].endswith("(1e-4)")


def test_all_that_less_evidence_says_is_a_share_of_what_all_says() -> None:
    shown = less_evidence(PAIRS, "UP", "FP", "caption").frame.set_index("pair").loc["MNIST"]
    one = [int(each) for each in shown["one rate: UP / FP ahead, %"].split(" / ")]
    assert min(one) > 0
    assert sum(one) <= 100
    ahead, seeds = map(int, shown["seeds with UP ahead"].split(" of "))
    assert (seeds, ahead > seeds / 2) == (contrast("plane-mnist", "UP", "FP").n, True)
    said = conclusions(PAIRS[0].cell("UP"), PAIRS[0].cell("FP")).set_index(["of", "kept"])
    assert float(shown["three seeds say the same, %"]) == pytest.approx(100 * said.loc[("seeds", 3), "same"], abs=0.5)
