"""What the runs of a study tell a reader: levels, what can be told apart, the recommendation, as data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import pandas as pd
from scipy import special

from fpt.advise.request import Request
from fpt.advise.work import read_baselines
from fpt.bench.step import sweep_cost
from fpt.errors import DataError
from fpt.results.arm import TUNED, Arm
from fpt.results.baselines import LINEAR, MAJORITY
from fpt.results.cells import paired_difference
from fpt.results.estimate import PERCENT, Estimate
from fpt.results.runs import arms_in
from fpt.results.stats import POINT, SIGNIFICANCE, paired, sampling_noise, seeds_needed

Reason = Literal["nothing", "baseline", "cheapest", "best and cheapest", "clear", "open", "open, more data"]


@dataclass(frozen=True)
class ArmResult:
    """An arm at its tuned rates. Accuracies in percent with a 95% interval; `usable`: the rates whose validation
    accuracy is within the tolerance of the best; FLOP of a step and bytes of one run, counted. Where every rate lost
    a seed, `rate` is None and the arm is compared with no other one."""

    arm: str
    letters: str
    rate: float | None
    usable: tuple[float, ...]
    accuracy: float
    low: float
    high: float
    seeds: int
    flop: int
    memory: int
    ends: tuple[str, ...]  # of the grid, that a tuned rate is
    rising: bool  # from half of the steps to all of them
    diverged: int


@dataclass(frozen=True)
class Difference:
    """One arm minus another, in points. `told`: its interval does not hold 0. `needed`: seeds that would find a
    difference of the tolerance; `settles`: of half of it, so that either 0 or the tolerance is ruled out, whatever the
    difference is. None: no number up to 1,000."""

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
    """What is advised, and why. `advised`: an arm or a baseline, empty where nothing can be told. `other`: what it is
    compared with; `lost`: points that it may lose against that; `needed`: seeds that would tell."""

    reason: Reason
    advised: str
    other: str = ""
    lost: float = 0.0
    needed: int | None = None


@dataclass(frozen=True)
class Advice:
    """Everything that is said: the fields of a Recommendation, and what it rests on."""

    study: str
    task: str
    backbone: str
    steps: int
    seeds: int
    tolerance: float
    arms: tuple[ArmResult, ...]
    baselines: dict[str, float]
    pairs: tuple[Difference, ...]
    reason: Reason
    advised: str
    other: str
    lost: float
    needed: int | None
    beats_linear: bool
    winner: str = ""  # the folder of what was kept
    leaked: int = 0  # examples that may be test and training examples at once
    read: str = ""  # which examples, classes and inputs the data have

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; null for what is not known, or has no bound."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cells_of(wanted: Request) -> dict[str, Arm]:
    """The finished sweeps of the study, by arm. Raises DataError where there are fewer than two."""
    found = {arm.fields["arm"]: arm for arm in arms_in(wanted.study, "own").values()}
    if len(found) < 2:
        raise DataError(f"{wanted.study} has results of {len(found)} arms: run fpt advise again")
    return found


def advice(wanted: Request, cells: Mapping[str, Arm]) -> Advice:
    """What the study of a request says; `cells` are its arms. Raises DataError where all of them lost a seed at every
    rate."""
    found = (_arm(name, cell, wanted.tolerance) for name, cell in cells.items())
    arms = sorted(found, key=lambda arm: (arm.flop, arm.memory))
    names = [each.arm for each in arms if each.rate is not None]
    if not names:
        raise DataError(
            f"{wanted.study}: every rate of every arm diverged, or lost a seed. Look for huge values in {wanted.task}, "
            f"or lower learning_rates in {wanted.study}/study.yaml and start again"
        )
    compared = [cells[name] for name in names]
    pairs = [_pair(one, other, cells, wanted.tolerance) for one, other in combinations(names, 2)]
    seeds = sorted(set.union(*({*cell.values().index} for cell in compared)))
    by_seed = read_baselines(wanted.study, range(max(seeds) + 1)).loc[seeds]
    baselines = {str(name): 100 * float(values.mean()) for name, values in by_seed.items()}
    limit = SIGNIFICANCE / 2 / len(cells)  # one-sided, corrected over arms
    beaten = {str(name): _beats(compared, values, limit) for name, values in by_seed.items()}
    recommended = recommendation(arms, pairs, baselines, beaten, wanted.tolerance)
    return Advice(
        study=wanted.study.name,
        task=wanted.task,
        backbone=wanted.backbone,
        steps=compared[0].steps,
        seeds=len(seeds),
        tolerance=wanted.tolerance,
        arms=tuple(arms),
        baselines=baselines,
        pairs=tuple(pairs),
        reason=recommended.reason,
        advised=recommended.advised,
        other=recommended.other,
        lost=recommended.lost,
        needed=recommended.needed,
        beats_linear=beaten[LINEAR],
    )


def recommendation(
    arms: Sequence[ArmResult],
    pairs: Sequence[Difference],
    baselines: Mapping[str, float],
    beaten: Mapping[str, bool],
    tolerance: float,
) -> Recommendation:
    """The cheapest arm whose loss against the best is ruled out above the tolerance, in points. `arms` by cost;
    `baselines`: accuracies in percent; `beaten`: whether some arm is shown to beat each baseline."""
    best = most_accurate(arms)
    if not beaten[MAJORITY]:
        return Recommendation("nothing", "")
    simple = max((name for name in baselines if name != MAJORITY), key=lambda name: baselines[name])
    if baselines[simple] >= best.accuracy and not beaten[simple]:
        return Recommendation("baseline", simple, best.arm)
    cheaper = [each for each in arms[: arms.index(best)] if each.rate is not None]
    if not cheaper:
        return Recommendation("best and cheapest", best.arm)
    losses = {each.arm: _loss(each.arm, best.arm, pairs) for each in cheaper}
    for arm, loss in losses.items():
        if loss.high <= tolerance:
            return Recommendation("cheapest", arm, best.arm, max(0.0, loss.high))
    open_ones = {arm: loss for arm, loss in losses.items() if not loss.told}
    if not open_ones:
        nearest = min(losses, key=lambda arm: losses[arm].mean)
        return Recommendation("clear", best.arm, nearest, losses[nearest].mean)
    arm, loss = next(iter(open_ones.items()))
    reason: Reason = "open" if loss.settles else "open, more data"
    return Recommendation(reason, best.arm, arm, loss.high, loss.settles)


def most_accurate(arms: Sequence[ArmResult]) -> ArmResult:
    """The best of the arms that are compared."""
    return max((each for each in arms if each.rate is not None), key=lambda each: each.accuracy)


def _loss(arm: str, best: str, pairs: Sequence[Difference]) -> Difference:
    """The best arm minus this one."""
    pair = next(each for each in pairs if {each.first, each.second} == {arm, best})
    if pair.first == best:
        return pair
    return replace(pair, first=best, second=arm, mean=-pair.mean, low=-pair.high, high=-pair.low)


def _arm(name: str, cell: Arm, tolerance: float) -> ArmResult:
    rate = cell.best_rate()
    level = Estimate(unit=PERCENT) if rate is None else cell.estimate().in_percent
    means = cell.validation().dropna(axis=1).mean()
    usable = tuple(float(rate) for rate in means.index[means >= means.max() - tolerance * POINT - 1e-12])
    cost = sweep_cost(cell.spec)
    memory = cost.run_bytes + cost.seed_bytes + cost.once_bytes
    ends, diverged = tuple(sorted(cell.ends())), int(cell.runs["diverged_at"].notna().sum())
    return ArmResult(
        arm=name,
        letters=cell.letters,
        rate=rate,
        usable=usable,
        accuracy=level.value,
        low=level.low,
        high=level.high,
        seeds=len(cell.values()),
        flop=cost.flop,
        memory=memory,
        ends=ends,
        rising=_rising(cell),
        diverged=diverged,
    )


def _rising(cell: Arm) -> bool:
    """Whether the second half of the steps gained, paired by seed. Fewer test examples count before the last budget."""
    if len(cell.budgets) < 2:
        return False
    before = cell.budgets[-2]
    gain = paired(cell.values(), cell.values(budget=before), without=cell.without() - cell.without(budget=before))
    return gain.low > 0 or (bool(gain.flips) and gain.value > 0)


def _pair(first: str, second: str, cells: Mapping[str, Arm], tolerance: float) -> Difference:
    test = paired_difference([(cells[first], TUNED, None)], [(cells[second], TUNED, None)])
    apart = test.in_points
    needed, settles = (
        seeds_needed(points, apart.sd, apart.test_variance) if math.isfinite(apart.sd) else None
        for points in (tolerance, tolerance / 2)
    )
    told = not apart.open
    return Difference(first, second, apart.value, apart.low, apart.high, told, needed, settles)


def _beats(cells: Sequence[Arm], baseline: "pd.Series[float]", limit: float) -> bool:
    """Whether some arm is shown to be above a baseline, on the same test examples, with p below the limit."""
    return any(is_above(_against(cell, baseline), limit) for cell in cells)


def is_above(test: Estimate, limit: float) -> bool:
    """Whether a difference is shown to be above 0, with p below the limit. Where all seeds agree, sign flips of a few
    seeds never come so low; the noise of the test examples alone decides then."""
    if not (test.flips and test.seed_variance == 0 and 2.0**-test.n >= limit):
        return test.above(0) < limit
    noise = math.sqrt(test.test_variance or math.ulp(1.0))
    return test.value > 0 and float(special.ndtr(-test.value / noise)) < limit


def _against(cell: Arm, baseline: "pd.Series[float]") -> Estimate:
    noise = cell.test_noise() + sampling_noise(float(baseline.mean()), cell.sampled_from)
    return paired(cell.values(), baseline, bool(cell.collapsed().any()), noise, cell.without() - baseline)
