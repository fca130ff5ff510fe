"""What the runs of a study tell a reader: levels, what can be told apart, the recommendation, as data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import pandas as pd

from fpt.advise.request import Request
from fpt.advise.work import read_baselines
from fpt.bench.step import sweep_cost
from fpt.errors import DataError
from fpt.results.baselines import LINEAR, MAJORITY
from fpt.results.cells import TUNED, TableCell, compared
from fpt.results.contrasts import ACCURACY, interval_of
from fpt.results.runs import SweepTables, load_sweeps
from fpt.results.stats import POINT, SIGNIFICANCE, Paired, mean_interval, paired, sampling_noise, seeds_needed
from fpt.sweeps.labels import labels
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import load_study

Reason = Literal["nothing", "baseline", "cheapest", "best and cheapest", "clear", "open", "open, more data"]


@dataclass(frozen=True)
class Finished:
    """A finished sweep of the study: its tables, and the arm as the figures read it."""

    tables: SweepTables
    cell: TableCell

    @property
    def spec(self) -> SweepSpec:
        return self.tables.spec


@dataclass(frozen=True)
class ArmResult:
    """An arm at its tuned rates. Accuracies in percent with a 95% interval; `usable`: the rates whose validation
    accuracy is within the tolerance of the best; FLOP of a step and bytes of one run, counted. Where every rate
    diverged, `seeds` is 0 and accuracies are nan."""

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
class Pair:
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
class Advice:
    """Everything that is said. `advised`: an arm or a baseline, empty where nothing can be told. `other`: what it is
    compared with; `lost`: points that it may lose against that; `needed`: seeds that would tell."""

    study: str
    task: str
    backbone: str
    steps: int
    seeds: int
    tolerance: float
    arms: tuple[ArmResult, ...]
    baselines: dict[str, float]
    pairs: tuple[Pair, ...]
    reason: Reason
    advised: str
    other: str
    lost: float
    needed: int | None
    beats_linear: bool
    winner: str = ""  # the folder of what was kept; empty where every rate lost a seed
    leaked: int = 0  # test examples that are training examples as well

    def arm(self, name: str) -> ArmResult:
        return next(each for each in self.arms if each.arm == name)

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


def sweeps_of(wanted: Request) -> dict[str, Finished]:
    """The finished sweeps of the study, by arm. Raises DataError where there are fewer than two."""
    study = load_study(wanted.study)
    names = labels(study.sweeps)
    found = {}
    for folder, sweep in load_sweeps(study, "own").items():
        spec = sweep.spec
        cell = TableCell(ACCURACY, names[folder], spec.task, spec=spec, tables=sweep, study=study.folder.name)
        found[spec.arm] = Finished(sweep, cell)
    if len(found) < 2:
        raise DataError(f"{wanted.study} has results of {len(found)} arms: run fpt advise again")
    return found


def advice(wanted: Request, sweeps: Mapping[str, Finished]) -> Advice:
    """What the study of a request says; `sweeps` are its arms. Raises DataError where every run of all of them
    diverged."""
    arms = sorted((_arm(name, sweep, wanted.tolerance) for name, sweep in sweeps.items()), key=_cost)
    names = [each.arm for each in arms if each.seeds]
    if not names:
        raise DataError(
            f"{wanted.study}: every rate of every arm diverged. Look for huge values in {wanted.task}, or lower "
            f"learning_rates in {wanted.study}/study.yaml and start again"
        )
    cells = {name: sweeps[name].cell for name in names}
    pairs = [_pair(one, other, cells, wanted.tolerance) for one, other in combinations(names, 2)]
    seeds = sorted(set.union(*({*cell.values().index} for cell in cells.values())))
    known = read_baselines(wanted.study, range(max(seeds) + 1)).loc[seeds]
    leads = {str(name): _beats(sweeps, known[name]) for name in known}
    found: dict[str, Any] = {
        "study": wanted.study.name,
        "task": wanted.task,
        "backbone": wanted.backbone,
        "steps": sweeps[names[0]].spec.steps,
        "seeds": len(seeds),
        "tolerance": wanted.tolerance,
        "arms": tuple(arms),
        "baselines": {str(name): 100 * float(values.mean()) for name, values in known.items()},
        "pairs": tuple(pairs),
        "beats_linear": leads[LINEAR],
    }
    return Advice(**found, **recommendation(arms, pairs, found["baselines"], leads, wanted.tolerance))


def recommendation(
    arms: list[ArmResult], pairs: list[Pair], known: Mapping[str, float], leads: Mapping[str, bool], tolerance: float
) -> dict[str, Any]:
    """`reason`, `advised`, `other`, `lost`, `needed`: the cheapest arm whose loss against the best is ruled out above
    the tolerance. `arms` by cost; `leads`: whether some arm is shown to beat each baseline."""
    best = most_accurate(arms)
    said = {"advised": best.arm, "other": "", "lost": 0.0, "needed": None}
    if not leads[MAJORITY]:
        return said | {"reason": "nothing", "advised": ""}
    simple = max((name for name in known if name != MAJORITY), key=lambda name: known[name])
    if known[simple] >= best.accuracy and not leads[simple]:
        return said | {"reason": "baseline", "advised": simple, "other": best.arm}
    cheaper = [each for each in arms[: arms.index(best)] if each.seeds]
    if not cheaper:
        return said | {"reason": "best and cheapest"}
    losses = {each.arm: _loss(each.arm, best.arm, pairs) for each in cheaper}
    for arm, loss in losses.items():
        if loss.high <= tolerance:
            return said | {"reason": "cheapest", "advised": arm, "other": best.arm, "lost": max(0.0, loss.high)}
    open_ones = {arm: loss for arm, loss in losses.items() if not loss.told}
    if not open_ones:
        nearest = min(losses, key=lambda arm: losses[arm].mean)
        return said | {"reason": "clear", "other": nearest, "lost": losses[nearest].mean}
    arm, loss = next(iter(open_ones.items()))
    reason = "open" if loss.settles else "open, more data"
    return said | {"reason": reason, "other": arm, "lost": loss.high, "needed": loss.settles}


def most_accurate(arms: Sequence[ArmResult]) -> ArmResult:
    """The best of the arms that have values."""
    return max((each for each in arms if each.seeds), key=lambda each: each.accuracy)


def _cost(arm: ArmResult) -> tuple[int, int]:
    return arm.flop, arm.memory


def _loss(arm: str, best: str, pairs: list[Pair]) -> Pair:
    """The best arm minus this one."""
    pair = next(each for each in pairs if {each.first, each.second} == {arm, best})
    if pair.first == best:
        return pair
    return replace(pair, first=best, second=arm, mean=-pair.mean, low=-pair.high, high=-pair.low)


def _arm(name: str, sweep: Finished, tolerance: float) -> ArmResult:
    cell, tables = sweep.cell, sweep.tables
    values, noise = cell.values(), cell.test_noise()
    mean, low, high = (each / POINT for each in mean_interval(values, noise))
    means = tables.validation().dropna(axis=1).mean()
    usable = tuple(float(rate) for rate in means.index[means >= means.max() - tolerance * POINT - 1e-12])
    cost = sweep_cost(sweep.spec)
    memory = cost.run_bytes + cost.seed_bytes + cost.once_bytes
    ends, diverged = tuple(sorted(cell.ends())), int(tables.runs["diverged_at"].notna().sum())
    letters = cell.row.partition(" ")[0]
    return ArmResult(
        arm=name,
        letters=letters,
        rate=cell.best_rate,
        usable=usable,
        accuracy=mean,
        low=low,
        high=high,
        seeds=len(values),
        flop=cost.flop,
        memory=memory,
        ends=ends,
        rising=_rising(cell),
        diverged=diverged,
    )


def _rising(cell: TableCell) -> bool:
    """Whether the second half of the steps gained, paired by seed. Fewer test examples count before the last budget."""
    if len(cell.budgets) < 2:
        return False
    gain = paired(cell.values(), cell.values(budget=cell.budgets[-2]))
    return gain.low > 0 or (gain.exact and gain.mean > 0)


def _pair(first: str, second: str, cells: Mapping[str, TableCell], tolerance: float) -> Pair:
    test = compared([(cells[first], TUNED, None)], [(cells[second], TUNED, None)])
    low, high = interval_of(test)
    mean = test.mean / POINT
    needed, settles = (
        seeds_needed(points * POINT, test.sd, test.noise) if math.isfinite(test.sd) else None
        for points in (tolerance, tolerance / 2)
    )
    told = low > 0 or high < 0
    return Pair(first, second, mean, low=low / POINT, high=high / POINT, told=told, needed=needed, settles=settles)


def _beats(sweeps: Mapping[str, Finished], baseline: "pd.Series[float]") -> bool:
    """Whether some arm is shown to be above a baseline, on the same test examples: one-sided, corrected over arms."""
    limit = SIGNIFICANCE / 2 / len(sweeps)
    return any(_against(sweep, baseline).above(0) < limit for sweep in sweeps.values())


def _against(sweep: Finished, baseline: "pd.Series[float]") -> Paired:
    cell = sweep.cell
    noise = cell.test_noise() + sampling_noise(float(baseline.mean()), sweep.tables.sampled_from)
    return paired(cell.values(), baseline, bool(cell.collapsed().any()), noise)
