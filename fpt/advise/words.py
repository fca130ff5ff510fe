"""What is said, a sentence for each outcome. Written by hand; the data choose among them."""

import math
from typing import TYPE_CHECKING

from fpt import models
from fpt.advise.request import PROBE
from fpt.errors import SpecError

if TYPE_CHECKING:
    from fpt.advise.verdict import Advice, Further

RECOMMENDED = {
    "nothing": "Nothing can be told: nothing is shown to beat naming the commonest class ({majority:.1f}%). "
    "Check the labels first.",
    "cheapest": "Use {advised}: it has {score:.1f}%, it is cheaper than {other}, and a loss above {tolerance:g} points "
    "against that is ruled out (at most {lost:.1f}).",
    "best and cheapest": "Use {advised}: it has {score:.1f}%, nothing is better, and nothing is cheaper.",
    "clear": "Use {advised}: it has {score:.1f}%, and everything cheaper loses against it, {other} by {lost:.1f} "
    "points.",
    "open": "Too close to call: {other} is cheaper than {advised} and may lose up to {lost:.1f} points. {needed} seeds "
    "would tell a loss of {tolerance:g} (--seeds). Until then use {advised}, which has {score:.1f}%.",
    "open, more data": "Too close to call: {other} is cheaper than {advised} and may lose up to {lost:.1f} points. "
    "Seeds alone cannot tell a loss of {tolerance:g} on so few examples: more labels would. Until then use {advised}, "
    "which has {score:.1f}%.",
}
NO_BOUND = (
    "Too close to call: {other} is cheaper than {advised}, and so few seeds give its loss no bound, since a run "
    "collapsed. Six seeds or more would give one (--seeds). Until then use {advised}, which has {score:.1f}%."
)
UNTRIED = (
    "{arm} was not tried on fresh seeds: a whole training of {of:,} steps takes about {hours} in all (--minutes "
    "{minutes}). To be worth that it would have to reach {goal:.1f}%, {tolerance:g} points above what is there "
    "without it."
)
UNFINISHED = (
    "{arm} has {steps:,} of the {of:,} steps of a whole training, and gains {low:+.1f} to {high:+.1f} points over the "
    "probe by now. A whole one takes about {hours} in all (--minutes {minutes}). To be worth that it would have to "
    "reach {goal:.1f}%, {tolerance:g} points above what is there without it."
)
UNPROMISING = (
    "{arm} has {steps:,} of the {of:,} steps of a whole training, and by now gains {high:+.1f} points over the probe "
    "at most. Only more steps could change that: a whole one takes about {hours} in all (--minutes {minutes})."
)
END = "{arm}: {rate:g}, which the tuning seeds chose, is an end of the grid. A better one may lie beyond it."
DIVERGED = "{arm}: runs diverged, so that it is compared with nothing."
UNEVEN = (
    "The classes are uneven: the commonest has {commonest:.0f}% of the test examples, and accuracy may hide that rare "
    "ones are missed. Read macro F1 and balanced accuracy, or decide by one of them: --metric macro-f1."
)
LEAKED = "{count:,} examples repeat another one, and may be in test and in training. They favour what memorises."


def label(arm: str) -> str:
    """The probe, an arm as a figure names it, or a baseline by its own name."""
    if arm == PROBE:
        return "the probe"
    try:
        return models.arm(arm).label
    except SpecError:
        return arm


def recommended(advice: "Advice") -> str:
    """The recommendation with its reason."""
    text = RECOMMENDED[advice.reason]
    if advice.reason.startswith("open") and not math.isfinite(advice.lost):
        text = NO_BOUND
    return text.format(
        advised=label(advice.advised),
        other=label(advice.other),
        tolerance=advice.tolerance,
        lost=advice.lost,
        needed=advice.needed,
        majority=advice.majority,
        score=advice.score(advice.advised) if advice.advised else math.nan,
    )


def further(advice: "Advice") -> list[str]:
    """Of each arm whose training is not whole: what it would take, and what it would have to gain."""
    return [_further(advice, each) for each in advice.further]


def _further(advice: "Advice", each: "Further") -> str:
    text = UNPROMISING if each.high <= advice.tolerance else UNFINISHED
    text = text if math.isfinite(each.high) else UNTRIED
    hours = f"{each.minutes / 60:.1f} hours" if each.minutes >= 90 else f"{each.minutes} minutes"
    return text.format(
        arm=label(each.arm),
        steps=each.steps,
        of=each.of,
        low=each.low,
        high=each.high,
        hours=hours,
        minutes=each.minutes,
        tolerance=advice.tolerance,
        goal=advice.goal,
    )


def warnings(advice: "Advice") -> list[str]:
    """What should make a reader doubt."""
    found = [LEAKED.format(count=advice.leaked)] if advice.leaked else []
    found += [UNEVEN.format(commonest=advice.commonest)] if advice.uneven and advice.metric == "accuracy" else []
    for each in advice.candidates:
        found += [END.format(arm=label(each.name), rate=each.rate)] if each.ends else []
        found += [DIVERGED.format(arm=label(each.name))] if each.diverged else []
    return found
