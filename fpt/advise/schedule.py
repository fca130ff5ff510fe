"""How many steps and seeds fit into the time: a few steps of each arm are timed, then the coarse grid says more."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fpt.bench.cost import Measurement, seconds_of
from fpt.errors import SpecError
from fpt.sweeps.selection import beyond
from fpt.sweeps.spec import SweepSpec

COARSE = (3e-5, 3e-4, 3e-3, 3e-2)  # a decade apart: the fine grid, in half decades, lies around the best
BELOW, ABOVE = 2, 1  # half decades of the fine grid: longer training wants smaller rates
PILOT_SEEDS = (900, 901, 902, 903)  # of the coarse grid; the fine one has seeds that chose nothing before
SEEDS = (16, 8, 4)  # the most of which every run has ENOUGH steps, else the fewest
ENOUGH, LEAST, LEAST_PILOT = 1000, 50, 20  # steps
MOST_STEPS = 50_000
PILOT_SHARE = 0.2  # of the time that is left after timing
KEPT_BACK, REPORT = 0.04, 12.0  # a share of the time, and seconds, for the verdict and the page
OVERHEAD = 14.0  # seconds of a sweep beside its runs: a process, a notebook, imports. The coarse grid measures it


@dataclass(frozen=True)
class Machine:
    """Where sweeps run: so many at once, each with so many threads; seconds of a sweep beside its runs; and, by arm,
    seconds that its sweep took over those that were predicted."""

    slots: int
    threads: int
    overhead: float = OVERHEAD
    factors: Mapping[str, float] | None = None

    def wall(self, specs: Sequence[SweepSpec], rows: Mapping[str, Measurement]) -> float:
        """Seconds of all sweeps, the longest first, each on the slot that is free first."""
        return makespan([self.overhead + self.seconds(spec, rows[spec.arm]) for spec in specs], self.slots)

    def seconds(self, spec: SweepSpec, row: Measurement) -> float:
        """Of one sweep's runs."""
        factor = (self.factors or {}).get(spec.arm, 1.0)
        return factor * seconds_of(spec, row.held, row.seconds, row.evaluation_seconds)


def makespan(seconds: Sequence[float], slots: int) -> float:
    """When the last of these ends, the longest first, on so many slots."""
    ends = [0.0] * slots
    for each in sorted(seconds, reverse=True):
        ends[ends.index(min(ends))] += each
    return max(ends)


def most_steps(wall: Callable[[int], float], budget: float) -> int:
    """The most steps, a multiple of 10 where they are many, whose `wall` is within the budget; 0 where none is."""
    most = bisect_right(range(1, MOST_STEPS + 1), budget, key=wall)
    return most // 10 * 10 if most >= 100 else most


def with_steps(specs: Sequence[SweepSpec], steps: int, **samples: int) -> list[SweepSpec]:
    """The sweeps with so many steps, and with other evaluations where `samples` names some."""
    return [spec.changed(**samples, steps=steps) for spec in specs]


def fine_rates(best: float) -> tuple[float, ...]:
    """Half decades around the best rate of the coarse grid."""
    rates = [best]
    for _ in range(BELOW):
        rates.insert(0, beyond(rates, "low"))
    for _ in range(ABOVE):
        rates.append(beyond(rates, "high"))
    return tuple(rates)


def seeds_and_steps(fit: Callable[[int], int]) -> tuple[int, int]:
    """How many seeds, and steps: `fit(seeds)` gives the steps that fit. More seeds once every run has enough steps."""
    for seeds in SEEDS:
        if (steps := fit(seeds)) >= ENOUGH:
            return seeds, steps
    return SEEDS[-1], fit(SEEDS[-1])


def check_time(steps: int, needed: float, minutes: float, backbone: str) -> None:
    """SpecError where fewer than LEAST steps fit. `needed`: seconds of the shortest schedule."""
    if steps < LEAST:
        raise SpecError(
            f"--minutes {minutes:g}: {steps} steps of {backbone} fit, and {LEAST} are the least that tell anything; "
            f"give about {needed / 60 + 1:.0f} minutes, or a smaller model, fewer arms or shorter data"
        )
