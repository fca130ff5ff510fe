"""The recommendation: the cheapest arm whose loss against the best is ruled out above the tolerance."""

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from fpt.advise.report import arms_frame
from fpt.advise.verdict import Advice, ArmResult, Difference, Recommendation, is_above, recommendation
from fpt.advise.words import RECOMMENDED, label, recommended, warnings
from fpt.results.stats import paired
from fpt.show import plot

FROZEN, LORA, FULL = "frozen-pretrained", "lora-pretrained", "unfrozen-pretrained"
KNOWN = {"majority class": 10.0, "linear classifier": 50.0, "boosted trees": 40.0}


def arm(name: str, accuracy: float, cost: int, **change: Any) -> ArmResult:
    fields = {"rate": 1e-3, "usable": (1e-3,), "low": accuracy - 1, "high": accuracy + 1, "seeds": 4, "memory": 1}
    fields |= {"ends": (), "rising": False, "diverged": 0}
    return ArmResult(arm=name, letters="X", accuracy=accuracy, flop=cost, **fields | change)


def pair(first: str, second: str, mean: float, reach: float, needed: int | None = 20) -> Difference:
    return Difference(first, second, mean, mean - reach, mean + reach, abs(mean) > reach, needed, needed)


def said(
    frozen: float, full: float, reach: float, needed: int | None = 20, beaten: tuple[str, ...] = tuple(KNOWN)
) -> Recommendation:
    arms = [arm(FROZEN, frozen, 1), arm(FULL, full, 2)]
    which = {name: name in beaten for name in KNOWN}
    return recommendation(arms, [pair(FROZEN, FULL, frozen - full, reach, needed)], KNOWN, which, 1.0)


def test_seeds_that_would_tell_are_those_that_rule_out_a_loss_whatever_it_is() -> None:
    wide = replace(pair(FROZEN, FULL, -0.5, 0.6, 6), settles=40)
    arms = [arm(FROZEN, 80, 1), arm(FULL, 80.5, 2)]
    assert recommendation(arms, [wide], KNOWN, dict.fromkeys(KNOWN, True), 1.0).needed == 40


CASES = [  # frozen, full, reach of the interval, seeds needed, baselines that are beaten; reason, advised, lost
    ((80, 80.2, 0.5, 20, tuple(KNOWN)), "cheapest", FROZEN, 0.7),
    ((80, 81.2, 0.1, 20, tuple(KNOWN)), "clear", FULL, 1.2),
    ((80, 80.5, 0.4, 20, tuple(KNOWN)), "cheapest", FROZEN, 0.9),  # a loss that is told, and small
    ((80, 81, 3, 20, tuple(KNOWN)), "open", FULL, 4.0),
    ((80, 81, 3, None, tuple(KNOWN)), "open, more data", FULL, 4.0),
    ((81, 80, 3, 20, tuple(KNOWN)), "best and cheapest", FROZEN, 0.0),
    ((10, 12, 5, 20, ()), "nothing", "", 0.0),
    ((45, 48, 1, 20, ("majority class",)), "baseline", "linear classifier", 0.0),
    ((49, 50.5, 1, 20, ("majority class",)), "clear", FULL, 1.5),  # not below the linear classifier: a warning alone
]


@pytest.mark.parametrize(("given", "reason", "advised", "lost"), CASES)
def test_what_is_recommended(given: Any, reason: str, advised: str, lost: float) -> None:
    found = said(*given)
    assert (found.reason, found.advised) == (reason, advised)
    assert found.lost == pytest.approx(lost)


def test_the_order_of_a_pair_changes_nothing() -> None:
    arms = [arm(FROZEN, 80, 1), arm(FULL, 80.2, 2)]
    beaten = dict.fromkeys(KNOWN, True)
    one, other = pair(FROZEN, FULL, -0.2, 0.5), pair(FULL, FROZEN, 0.2, 0.5)
    assert recommendation(arms, [one], KNOWN, beaten, 1.0) == recommendation(arms, [other], KNOWN, beaten, 1.0)


def test_of_two_cheaper_arms_the_cheapest_that_loses_little_is_taken() -> None:
    arms = [arm(FROZEN, 70, 1), arm(LORA, 80, 2), arm(FULL, 80.1, 3)]
    pairs = [pair(FROZEN, LORA, -10, 1), pair(FROZEN, FULL, -10.1, 1), pair(LORA, FULL, -0.1, 0.5)]
    found = recommendation(arms, pairs, KNOWN, dict.fromkeys(KNOWN, True), 1.0)
    assert (found.reason, found.advised, found.other) == ("cheapest", LORA, FULL)


@pytest.mark.parametrize(("accuracy", "seeds"), [(math.nan, 0), (99.0, 1)])  # of seeds that alone diverged at some rate
@pytest.mark.parametrize("lost", [FROZEN, LORA, FULL])
def test_an_arm_that_lost_a_seed_at_every_rate_is_no_candidate(lost: str, accuracy: float, seeds: int) -> None:
    whole = [arm(FROZEN, 79, 1), arm(LORA, 80, 2), arm(FULL, 80.1, 3)]
    gone = {"rate": None, "usable": (), "accuracy": accuracy, "seeds": seeds}
    arms = [replace(each, **gone) if each.arm == lost else each for each in whole]
    names = [each.arm for each in arms if each.rate is not None]
    found = recommendation(arms, [pair(*names, -0.2, 0.1)], KNOWN, dict.fromkeys(KNOWN, True), 1.0)
    assert (found.reason, found.advised, found.other) == ("cheapest", *names)


@pytest.mark.parametrize(
    ("arm", "noise", "shown"),
    [
        ([1.0] * 4, 1e-3, True),  # perfect in all four seeds: sign flips alone would never say so
        ([1.0] * 4, 0.1, False),  # so few test examples that a coin may do it
        ([0.4] * 4, 1e-3, False),
        ([1.0] * 8, 1e-3, True),
        ([0.9, 1.0, 1.0, 1.0], 1e-5, True),
        ([0.4, 1.0, 1.0, 1.0], 1e-5, False),
    ],
)
def test_arms_that_agree_in_every_seed_can_beat_a_baseline(arm: list[float], noise: float, shown: bool) -> None:
    assert is_above(paired(pd.Series(arm), 0.5, noise=noise), 0.0125) == shown


def advice(**change: Any) -> Advice:
    arms = (arm(FROZEN, 80, 1), arm(FULL, 81, 2))
    fields: dict[str, Any] = {
        "study": "advise-x", "task": "digits", "backbone": "tiny-lm", "steps": 100, "seeds": 4, "tolerance": 1.0,
        "arms": arms, "baselines": KNOWN, "pairs": (), "reason": "open", "advised": FULL, "other": FROZEN, "lost": 4.0,
        "needed": 33, "beats_linear": True,
    }  # fmt: skip
    return Advice(**fields | change)


@pytest.mark.parametrize("reason", RECOMMENDED)
def test_every_reason_has_a_sentence_that_names_what_is_advised(reason: Any) -> None:
    advised = {"nothing": "", "baseline": "boosted trees"}.get(reason, FULL)
    text = recommended(advice(reason=reason, advised=advised))
    assert label(advised) in text
    assert "{" not in text


def test_every_arm_has_the_name_that_figures_give_it() -> None:
    fields = [{"task": "digits", "arm": name} for name in (FROZEN, "fpt-attention-pretrained")]
    assert [label(each["arm"]) for each in fields] == plot.words_of(fields)
    assert label("boosted trees") == "boosted trees"


def test_doubts_are_said_and_no_others() -> None:
    assert warnings(advice()) == []
    doubtful = (arm(FROZEN, 80, 1, ends=("low",), rising=True), arm(FULL, 81, 2, diverged=3))
    found = warnings(advice(arms=doubtful, beats_linear=False))
    assert len(found) == 4
    assert "50.0%" in found[0]
    assert [line.startswith(label(FROZEN)) for line in found[1:]] == [True, True, False]


def test_an_accuracy_has_no_sign_where_its_interval_is_cut_and_of_one_seed_no_interval() -> None:
    arms = (arm(FROZEN, 12.0, 1, low=-6.0, high=30.0), arm(FULL, 99.0, 2, low=math.nan, high=math.nan))
    assert list(arms_frame(advice(arms=arms))["accuracy, %"]) == ["12.0 (0.0 to 30.0)", "99.0"]


def test_json_has_no_numbers_that_json_lacks() -> None:
    found = advice(lost=math.inf, arms=(arm(FROZEN, math.nan, 1),)).as_json()
    assert found["lost"] is None
    assert found["arms"][0]["accuracy"] is None
    assert found["arms"][0]["usable"] == [1e-3]
