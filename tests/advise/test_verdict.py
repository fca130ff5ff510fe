"""The recommendation: the cheapest whose loss against the best is ruled out above the tolerance."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fpt.advise.metrics import ACCURACY, METRICS
from fpt.advise.report import arms_frame
from fpt.advise.request import PROBE
from fpt.advise.verdict import (
    Advice,
    Candidate,
    Difference,
    Further,
    Recommendation,
    difference,
    recommendation,
)
from fpt.advise.words import RECOMMENDED, further, label, recommended, warnings
from fpt.sweeps.words import legends

LINEAR, LORA, FULL = "linear classifier", "lora-pretrained", "unfrozen-pretrained"


def candidate(name: str, score: float, **change: Any) -> Candidate:
    fields = {"rate": None if name == LINEAR else 1e-3, "seeds": 5}
    return Candidate(name, dict.fromkeys(METRICS, (score, score - 1, score + 1)), **fields | change)


def pair(first: str, second: str, mean: float, reach: float, needed: int | None = 20) -> Difference:
    return Difference(first, second, mean, mean - reach, mean + reach, abs(mean) > reach, needed, needed)


def said(probe: float, full: float, reach: float, needed: int | None = 20, beaten: bool = True) -> Recommendation:
    arms = [candidate(PROBE, probe), candidate(FULL, full)]
    return recommendation(arms, [pair(PROBE, FULL, probe - full, reach, needed)], beaten, ACCURACY, 1.0)


def test_seeds_that_would_tell_are_those_that_rule_out_a_loss_whatever_it_is() -> None:
    wide = replace(pair(PROBE, FULL, -0.5, 0.6, 6), settles=40)
    arms = [candidate(PROBE, 80), candidate(FULL, 80.5)]
    assert recommendation(arms, [wide], True, ACCURACY, 1.0).needed == 40


CASES = [  # probe, full, reach of the interval, seeds needed, whether chance is beaten; reason, advised, lost
    ((80, 80.2, 0.5), "cheapest", PROBE, 0.7),
    ((80, 81.2, 0.1), "clear", FULL, 1.2),
    ((80, 80.5, 0.4), "cheapest", PROBE, 0.9),  # a loss that is told, and small
    ((80, 81, 3), "open", FULL, 4.0),
    ((80, 81, 3, None), "open, more data", FULL, 4.0),
    ((81, 80, 3), "best and cheapest", PROBE, 0.0),
    ((10, 12, 5, 20, False), "nothing", "", 0.0),
]


@pytest.mark.parametrize(("given", "reason", "advised", "lost"), CASES)
def test_what_is_recommended(given: Any, reason: str, advised: str, lost: float) -> None:
    found = said(*given)
    assert (found.reason, found.advised) == (reason, advised)
    assert found.lost == pytest.approx(lost)


def test_the_order_of_a_pair_changes_nothing() -> None:
    arms = [candidate(PROBE, 80), candidate(FULL, 80.2)]
    one, other = pair(PROBE, FULL, -0.2, 0.5), pair(FULL, PROBE, 0.2, 0.5)
    assert len({recommendation(arms, [each], True, ACCURACY, 1.0) for each in (one, other)}) == 1


def test_of_two_cheaper_ones_the_cheapest_that_loses_little_is_taken() -> None:
    arms = [candidate(LINEAR, 70), candidate(PROBE, 80), candidate(FULL, 80.1)]
    pairs = [pair(LINEAR, PROBE, -10, 1), pair(LINEAR, FULL, -10.1, 1), pair(PROBE, FULL, -0.1, 0.5)]
    found = recommendation(arms, pairs, True, ACCURACY, 1.0)
    assert (found.reason, found.advised, found.other) == ("cheapest", PROBE, FULL)


def answers(right: float, seeds: int = 5, examples: int = 40) -> pd.DataFrame:
    """Of two classes, this share right, the same examples of each seed."""
    rows = pd.MultiIndex.from_product([range(seeds), range(examples)], names=["seed", "example"]).to_frame(index=False)
    target = rows["example"] % 2
    return rows.assign(target=target, predicted=np.where(rows["example"] < right * examples, target, 1 - target))


def test_examples_on_which_both_agree_add_no_noise_to_a_difference() -> None:
    same = difference(answers(0.5), answers(0.5), ACCURACY, 40)
    assert (same.value, same.test_variance) == (0, 1 / 200 / 40)  # as if they differed on one of 200
    apart = difference(answers(0.8), answers(0.5), ACCURACY, 40)
    assert apart.value == pytest.approx(0.3)
    assert apart.test_variance == pytest.approx(0.3 / 40)


@pytest.mark.parametrize(("examples", "shown"), [(4, False), (400, True)])
def test_where_all_seeds_agree_the_examples_decide(examples: int, shown: bool) -> None:
    apart = difference(answers(1.0, examples=examples), answers(0.5, examples=examples), ACCURACY, examples)
    assert (apart.above(0) < 0.0125) == shown
    assert math.isfinite(apart.low)


def advice(**change: Any) -> Advice:
    fields: dict[str, Any] = {
        "study": "advise-x", "task": "digits", "backbone": "tiny-lm", "metric": ACCURACY, "tolerance": 1.0,
        "candidates": (candidate(LINEAR, 70), candidate(PROBE, 80), candidate(FULL, 81)), "pairs": (),
        "reason": "open", "advised": FULL, "other": PROBE, "lost": 4.0, "needed": 33, "majority": 10.0,
        "uneven": False, "commonest": 50.0, "further": (),
    }  # fmt: skip
    return Advice(**fields | change)


@pytest.mark.parametrize("reason", RECOMMENDED)
def test_every_reason_has_a_sentence_that_names_what_is_advised(reason: Any) -> None:
    advised = "" if reason == "nothing" else PROBE
    text = recommended(advice(reason=reason, advised=advised))
    assert label(advised) in text
    assert "{" not in text
    assert "Six seeds" in recommended(advice(lost=math.inf))


@pytest.mark.parametrize(
    ("low", "high", "steps", "words"),
    [(math.nan, math.nan, 0, "not tried"), (-1.0, 3.0, 20, "20 of the 1,000"), (-2.0, 0.5, 20, "Only more steps")],
)
def test_what_trains_longer_has_minutes_and_a_goal(low: float, high: float, steps: int, words: str) -> None:
    (line,) = further(advice(further=(Further(LORA, 85, steps, 1000, low, high),)))
    assert words in line
    assert "--minutes 85" in line
    assert ("81.0%" in line) == (words != "Only more steps")  # the probe has 80
    assert "nan" not in line


def test_every_arm_has_the_name_that_figures_give_it() -> None:
    fields = [{"task": "digits", "arm": name} for name in (LORA, "fpt-attention-pretrained")]
    assert [label(each["arm"]) for each in fields] == legends(fields)
    assert label("boosted trees") == "boosted trees"


def test_doubts_are_said_and_no_others() -> None:
    assert warnings(advice()) == []
    doubtful = (candidate(PROBE, 80, ends=("low",)), candidate(FULL, 81, diverged=3))
    assert len(warnings(advice(candidates=doubtful, uneven=True, commonest=95.0, leaked=3))) == 4
    assert "95%" in warnings(advice(uneven=True, commonest=95.0))[0]
    assert warnings(advice(uneven=True, metric="macro-f1")) == []


def test_the_metric_that_decides_has_its_interval() -> None:
    shown = arms_frame(advice(metric="macro-f1"))
    assert list(shown["macro-f1, %"]) == ["70.0 (69.0 to 71.0)", "80.0 (79.0 to 81.0)", "81.0 (80.0 to 82.0)"]
    assert list(shown["accuracy, %"]) == ["70.0", "80.0", "81.0"]


def test_json_has_no_numbers_that_json_lacks() -> None:
    found = advice(lost=math.inf, candidates=(candidate(PROBE, math.nan),)).as_json()
    assert found["lost"] is None
    assert found["candidates"][0]["scores"][ACCURACY][0] is None
