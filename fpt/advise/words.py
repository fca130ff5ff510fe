"""What is said, a sentence for each outcome. Written by hand; the data choose among them."""

from typing import TYPE_CHECKING

from fpt import models
from fpt.errors import SpecError
from fpt.results.baselines import LINEAR, MAJORITY

if TYPE_CHECKING:
    from fpt.advise.verdict import Advice

RECOMMENDED = {
    "nothing": "Nothing can be told: no arm is shown to beat naming the commonest class ({majority:.1f}%). "
    "Check the labels first.",
    "baseline": "Use the {advised}: it has {simple:.1f}%, no arm is shown to beat it, and it trains in seconds.",
    "cheapest": "Choose {advised}: it is cheaper than {other}, and a loss above {tolerance:g} points is ruled out "
    "(at most {lost:.1f}).",
    "best and cheapest": "Choose {advised}: no arm is more accurate, and none is cheaper.",
    "clear": "Choose {advised}: every cheaper arm loses against it, {other} by {lost:.1f} points.",
    "open": "Too close to call: {other} is cheaper than {advised} and may lose up to {lost:.1f} points. {needed} seeds "
    "would tell a loss of {tolerance:g}. Until then choose {advised}.",
    "open, more data": "Too close to call: {other} is cheaper than {advised} and may lose up to {lost:.1f} points. "
    "More seeds alone cannot tell a loss of {tolerance:g} on so few examples. Until then choose {advised}.",
}
NO_BOUND = (
    "Too close to call: {other} is cheaper than {advised}, and so few seeds give its loss no bound, since some runs "
    "collapsed or all seeds agree. Six seeds or more would give one. Until then choose {advised}."
)
NOT_LINEAR = "No arm is shown to beat the linear classifier ({linear:.1f}%)."
END = "{arm}: its best rate is an end of the grid. A better one may lie beyond it."
RISING = "{arm}: accuracy still rose in the second half of the steps. Train longer before you believe this."
DIVERGED = "{arm}: {count} runs diverged."
LATE = (
    "The coarse grid took longer than planned. {steps:,} steps are the fewest that tell anything: they end about "
    "{minutes:.1f} minutes late."
)
LEAKED = "{count:,} examples repeat another one, and may be in test and in training. They favour what memorises."


def label(arm: str) -> str:
    """An arm as a figure names it; a baseline by its own name."""
    try:
        return models.arm(arm).label
    except SpecError:
        return arm


def recommended(advice: "Advice") -> str:
    """The recommendation with its reason."""
    text = RECOMMENDED[advice.reason]
    if advice.reason.startswith("open") and advice.lost == float("inf"):
        text = NO_BOUND
    return text.format(
        advised=label(advice.advised),
        other=label(advice.other),
        tolerance=advice.tolerance,
        lost=advice.lost,
        needed=advice.needed,
        majority=advice.baselines[MAJORITY],
        simple=advice.baselines.get(advice.advised, 0.0),
    )


def warnings(advice: "Advice") -> list[str]:
    """What should make a reader doubt."""
    found = [LEAKED.format(count=advice.leaked)] if advice.leaked else []
    found += [] if advice.beats_linear else [NOT_LINEAR.format(linear=advice.baselines[LINEAR])]
    for arm in advice.arms:
        found += [END.format(arm=label(arm.arm))] if arm.ends else []
        found += [RISING.format(arm=label(arm.arm))] if arm.rising else []
        found += [DIVERGED.format(arm=label(arm.arm), count=arm.diverged)] if arm.diverged else []
    return found
