"""What fits into the time beside the probe: arms and steps, by the pace of a few steps of each."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from fpt import models

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0)  # of the probe, scikit-learn's C
# Half decades of the rate, around what single models of each kind have their best at
ADAPTED, FROZEN, WHOLE = (3e-4, 1e-3, 3e-3, 1e-2), (1e-3, 3e-3, 1e-2, 3e-2), (3e-5, 1e-4, 3e-4, 1e-3)
TUNING_SEEDS = (900, 901, 902, 903)  # they choose; fresh ones report
TUNED_ROWS = 10_000  # training examples of the probes that choose, a seed each; with few examples more seeds choose
EPOCHS, SHORTEST = 5, 1000  # of a whole training: so many, and at least so many steps
WHOLE_TUNING = 2  # tuning seeds of a whole training
LEAST = 50  # steps; fewer tell nothing
SHARE = 0.85  # of the time that is left is planned: machines are not always as idle as while they were timed
MOST_STEPS = 50_000


@dataclass(frozen=True)
class Pace:
    """Seconds of one run: of a step, of an example that is evaluated, and of the probe that it starts from."""

    step: float
    example: float
    start: float = 0.0

    def seconds(self, steps: int, examples: int) -> float:
        """Of a run of so many steps, which evaluates so many examples."""
        return self.start + steps * self.step + examples * self.example


@dataclass(frozen=True)
class Schedule:
    """The arms that train, the cheapest first, for how many steps, and how many tuning seeds choose their rates."""

    arms: tuple[str, ...]
    steps: int
    tuning: int


def rates_of(arm: str) -> tuple[float, ...]:
    """The learning rates that are tried of an arm."""
    groups = models.arm(arm).groups
    if models.ADAPTER in groups:
        return ADAPTED
    return WHOLE if {"attention", "feed_forward"} & {*groups} else FROZEN


def probe_seeds(rows: int) -> tuple[int, ...]:
    """The tuning seeds of probes of so many training examples."""
    return TUNING_SEEDS[: max(1, min(len(TUNING_SEEDS), TUNED_ROWS // rows))]


def whole_steps(rows: int, batch: int) -> int:
    """Steps of a whole training on so many examples."""
    return max(EPOCHS * -(-rows // batch), SHORTEST)


def planned(paces: Mapping[str, Pace], left: float, whole: int, seeds: int, examples: int) -> Schedule:
    """As many arms as have LEAST steps in `left` seconds, the cheapest first, and as many steps as fit, `whole` at
    most; then more tuning seeds. `seeds`: fresh ones. `examples`: evaluated of a run."""
    arms = sorted(paces, key=lambda arm: paces[arm].step)

    def seconds(steps: int, tuning: int) -> float:
        return sum(cost(arm, paces[arm], steps, tuning, seeds, examples) for arm in arms)

    while arms:
        fitting = bisect_right(range(1, whole + 1), SHARE * left, key=lambda steps: seconds(steps, 1))
        if fitting >= min(LEAST, whole):
            steps = fitting // 10 * 10 if 100 <= fitting < whole else fitting
            tuning = [count for count in range(1, len(TUNING_SEEDS)) if seconds(steps, count) <= SHARE * left]
            return Schedule(tuple(arms), steps, max(tuning, default=1))
        arms.pop()
    return Schedule((), 0, 0)


def cost(arm: str, pace: Pace, steps: int, tuning: int, seeds: int, examples: int) -> float:
    """Seconds of an arm's tuning runs, so many seeds at each rate, and of its fresh seeds."""
    return (len(rates_of(arm)) * tuning + seeds) * pace.seconds(steps, examples)


def fresh_seeds(seconds: Mapping[str, float], left: float, most: int, fewest: int) -> tuple[list[str], int]:
    """The arms, the cheapest first, of which so many seeds fit into `left` seconds, and how many do: `most`, or as many
    as are above `fewest`. `seconds`: of one run of each."""
    arms = sorted(seconds, key=lambda arm: seconds[arm])
    while arms:
        count = min(most, int(SHARE * left / sum(seconds[arm] for arm in arms)))
        if count >= fewest:
            return arms, count
        arms.pop()
    return [], 0
