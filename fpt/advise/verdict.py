"""What the runs of a study tell a reader: levels, what can be told apart, the recommendation, as data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd

from fpt.advise import metrics
from fpt.advise.request import PROBE, Request
from fpt.advise.studies import PLAN, chosen, finished_arms, read_baselines, test_answers
from fpt.bench.step import sweep_cost
from fpt.files import plain, read_json
from fpt.results.arm import COLLAPSE, Arm
from fpt.results.baselines import MAJORITY
from fpt.results.estimate import PERCENT, POINTS, Estimate
from fpt.results.stats import SIGNIFICANCE, mean_of, paired, sampling_noise, seeds_needed

Reason = Literal["nothing", "cheapest", "best and cheapest", "clear", "open", "open, more data"]
UNEVEN = 4  # times as many examples of the commonest class as of the rarest


@dataclass(frozen=True)
class Candidate:
    """A baseline, the probe or an arm on fresh seeds. `scores`: of each metric the value and its 95% interval, in
    percent. `rate`: a strength or rate that tuning seeds chose; `ends`: of the grid, that it is; `seconds` of a run."""

    name: str
    scores: dict[str, tuple[float, float, float]]
    seeds: int
    rate: float | None = None
    ends: tuple[str, ...] = ()
    steps: int = 0
    seconds: float = math.nan
    diverged: int = 0


@dataclass(frozen=True)
class Difference:
    """One candidate minus another, in points of the metric. `told`: its interval does not hold 0. `needed`: seeds that
    would find a difference of the tolerance; `settles`: of half of it, so that either 0 or the tolerance is ruled out,
    whatever the difference is. None: no number up to 1,000."""

    first: str
    second: str
    mean: float
    low: float
    high: float
    told: bool
    needed: int | None
    settles: int | None


@dataclass(frozen=True)
class Recommendation:
    """What is advised, and why. `advised`: a candidate, empty where nothing can be told. `other`: what it is compared
    with; `lost`: points that it may lose against that; `needed`: seeds that would tell."""

    reason: Reason
    advised: str
    other: str = ""
    lost: float = 0.0
    needed: int | None = None


@dataclass(frozen=True)
class Further:
    """An arm whose training is not whole: what a whole one takes in all, in minutes and steps, and what it has gained
    over the probe by now, in points (nan where it has no results)."""

    arm: str
    minutes: int
    steps: int
    of: int
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Advice(Recommendation):
    """Everything that is said: a Recommendation, and what it rests on."""

    study: str
    task: str
    backbone: str
    metric: str
    tolerance: float
    candidates: tuple[Candidate, ...]
    pairs: tuple[Difference, ...]
    majority: float  # of the metric, in percent
    uneven: bool
    commonest: float  # percent of the test examples
    further: tuple[Further, ...]
    winner: str = ""  # the folder of what was kept
    leaked: int = 0  # examples that may be test and training examples at once
    read: str = ""  # which examples, classes and inputs the data have

    def score(self, name: str) -> float:
        """Of a candidate, in percent."""
        return next(each.scores[self.metric][0] for each in self.candidates if each.name == name)

    @property
    def goal(self) -> float:
        """What longer training would have to reach: a tolerance above the best of the baselines and the probe."""
        names = [each.name for each in self.candidates]
        return self.tolerance + max(map(self.score, names[: names.index(PROBE) + 1]))

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; null for what is not known, or has no bound."""
        found: dict[str, Any] = plain(asdict(self))
        return found


def advice(wanted: Request) -> Advice:
    """What the studies of a request say, of which the probe is finished."""
    arms = finished_arms(wanted.study)
    trained = sorted((arm for arm in arms if arm != PROBE), key=lambda arm: sweep_cost(arms[arm].spec).flop)
    answers = {str(name): rows for name, rows in read_baselines(wanted.study).groupby("baseline", sort=False)}
    answers |= {arm: test_answers(arms[arm]) for arm in [PROBE, *trained]}
    examples = arms[PROBE].sampled_from
    majority = answers.pop(MAJORITY)
    found = [candidate(name, rows, examples, arms.get(name), wanted) for name, rows in answers.items()]
    whole = [each for each in found if not each.diverged]
    pairs = [_pair(one.name, other.name, answers, wanted, examples) for one, other in combinations(whole, 2)]
    limit = SIGNIFICANCE / 2 / len(whole)  # one-sided, corrected over candidates
    beaten = any(difference(answers[each.name], majority, wanted.metric, examples).above(0) < limit for each in whole)
    said = recommendation(whole, pairs, beaten, wanted.metric, wanted.tolerance)
    counts = majority.drop_duplicates(["seed", "example"])["target"].value_counts()
    return Advice(
        study=wanted.study.name,
        task=wanted.task,
        backbone=wanted.backbone,
        metric=wanted.metric,
        tolerance=wanted.tolerance,
        candidates=tuple(found),
        pairs=tuple(pairs),
        **vars(said),
        majority=100 * float(metrics.by_seed(majority, wanted.metric).mean()),
        uneven=bool(counts.max() > UNEVEN * counts.min()),
        commonest=100 * float(counts.max() / counts.sum()),
        further=tuple(_further(wanted, arms, pairs)),
    )


def recommendation(
    candidates: Sequence[Candidate], pairs: Sequence[Difference], beaten: bool, metric: str, tolerance: float
) -> Recommendation:
    """The cheapest candidate whose loss against the best is ruled out above the tolerance, in points. `candidates` by
    cost; `beaten`: whether some candidate is shown to beat naming the commonest class."""
    if not beaten:
        return Recommendation("nothing", "")
    best = max(candidates, key=lambda each: each.scores[metric][0])
    cheaper = list(candidates[: candidates.index(best)])
    if not cheaper:
        return Recommendation("best and cheapest", best.name)
    losses = {each.name: _loss(each.name, best.name, pairs) for each in cheaper}
    for name, loss in losses.items():
        if loss.high <= tolerance:
            return Recommendation("cheapest", name, best.name, max(0.0, loss.high))
    open_ones = {name: loss for name, loss in losses.items() if not loss.told}
    if not open_ones:
        nearest = min(losses, key=lambda name: losses[name].mean)
        return Recommendation("clear", best.name, nearest, losses[nearest].mean)
    name, loss = next(iter(open_ones.items()))
    reason: Reason = "open" if loss.settles else "open, more data"
    return Recommendation(reason, best.name, name, loss.high, loss.settles)


def _loss(name: str, best: str, pairs: Sequence[Difference]) -> Difference:
    """The best candidate minus this one."""
    pair = next(each for each in pairs if {each.first, each.second} == {name, best})
    if pair.first == best:
        return pair
    return replace(pair, first=best, second=name, mean=-pair.mean, low=-pair.high, high=-pair.low)


def candidate(name: str, answers: pd.DataFrame, examples: float, arm: Arm | None, wanted: Request) -> Candidate:
    scores = {}
    for metric in metrics.METRICS:
        values = metrics.by_seed(answers, metric)
        level = mean_of(values, sampling_noise(float(values.mean()), examples)).scaled(100, PERCENT).within(0, 100)
        scores[metric] = (level.value, level.low, level.high)
    seeds = answers["seed"].nunique()
    if arm is None:
        return Candidate(name, scores, seeds)
    tuned, rate = finished_arms(wanted.pilot).get(name), arm.rates[0]
    grid = tuned.rates if tuned and chosen(wanted, name) == rate else []
    ends = [end for end, at in (("low", grid[:1]), ("high", grid[-1:])) if rate in at]
    return Candidate(
        name,
        scores,
        seeds,
        rate=rate,
        ends=tuple(ends),
        steps=arm.steps,
        seconds=float(arm.result["wall_seconds"]) / len(arm.runs),
        diverged=int(arm.runs["diverged_at"].notna().sum()),
    )


def difference(first: pd.DataFrame, second: pd.DataFrame, metric: str, examples: float) -> Estimate:
    """One candidate's metric minus another's, paired by seed. The test examples that all seeds draw from, or share, add
    the noise of those of them on which the two differ, of one at least; where all seeds agree it is all there is."""
    one, other = (metrics.by_seed(rows, metric) for rows in (first, second))
    both = first.merge(second, on=["seed", "example"])
    right = [(both[f"predicted_{side}"] == both[f"target_{side}"]).astype(float) for side in ("x", "y")]
    noise = max(float(((right[0] - right[1]) ** 2).mean()), 1 / len(both)) / examples
    collapsed = any(bool((values < values.median() - COLLAPSE).any()) for values in (one, other))
    found = paired(one, other, collapsed, noise)
    return found if collapsed or not found.flips else replace(found, flips=(), df=examples - 1)


def _pair(first: str, second: str, answers: Mapping[str, pd.DataFrame], wanted: Request, examples: float) -> Difference:
    apart = difference(answers[first], answers[second], wanted.metric, examples).scaled(100, POINTS)
    needed, settles = (
        seeds_needed(points, apart.sd, apart.test_variance) if math.isfinite(apart.sd) else None
        for points in (wanted.tolerance, wanted.tolerance / 2)
    )
    return Difference(first, second, apart.value, apart.low, apart.high, not apart.open, needed, settles)


def _further(wanted: Request, arms: Mapping[str, Arm], pairs: Sequence[Difference]) -> list[Further]:
    """The arms whose training is not whole yet, those first that may still gain most over the probe."""
    plan = read_json(wanted.pilot / PLAN) or {"needed": {}, "whole": 0}
    found = []
    for arm, minutes in plan["needed"].items():
        steps = arms[arm].steps if arm in arms else 0
        gain = next((_loss(PROBE, arm, pairs) for each in pairs if {each.first, each.second} == {PROBE, arm}), None)
        low, high = (gain.low, gain.high) if gain else (math.nan, math.nan)
        if steps < plan["whole"]:
            found.append(Further(arm, minutes, steps, plan["whole"], low, high))
    return sorted(found, key=lambda each: -np.nan_to_num(each.high, nan=math.inf))
