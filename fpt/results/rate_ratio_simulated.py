"""The rule of fpt/results/rate_ratio.py on made curves, whose ratio of best rates is known: how often its interval
holds the ratio, and which others it excludes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fpt.results.rate_ratio import TENFOLD, Floats, RateRatio, rate_ratio
from fpt.seeds import stream

SEEDS = 8
RATIOS = (1.0, 2.0, TENFOLD)  # of no scaling, of width / (2 alpha) at width 128 and alpha 32, and of the post


@dataclass(frozen=True)
class Made:
    """Made curves: a valley that is steeper above than below, and its noise.

    curvature: of the score in decades; skew: of its cubic term; of_seed: deviation of a seed's level, shared by both
    arms and all rates; of_run: of every run; of_place: of a seed's best rate, in decades.
    """

    curvature: float
    skew: float
    of_seed: float
    of_run: float
    of_place: float

    def losses(self, place: float, rates: Floats, levels: Floats, random: np.random.Generator) -> pd.DataFrame:
        """Losses (seeds x rates) of an arm whose score is least at 10^place."""
        own = place + self.of_place * random.standard_normal((len(levels), 1))
        away = np.log10(rates) - own
        scores = self.curvature * away**2 + self.skew * np.clip(away, -1.5, 1.5) ** 3 + levels[:, None]
        return pd.DataFrame(np.exp(scores + self.of_run * random.standard_normal(scores.shape)), columns=rates)


def simulated(
    ratio: float, first: Made, second: Made, seeds: int, trials: int, random: np.random.Generator
) -> list[RateRatio]:
    """What the rule says of `trials` made pairs of arms whose best rates have this ratio.

    The grids are quarter decades, three to each side of the place at which a pilot saw the valley; the valley itself is
    anywhere within an eighth of a decade of that place.
    """
    found = []
    for _ in range(trials):
        levels = 0.5 + first.of_seed * random.standard_normal(seeds)
        places = np.array([math.log10(ratio), 0.0]) - 3.0
        shift = random.uniform(-0.125, 0.125, 2)
        grids = [10 ** (place + off + np.arange(-3, 4) / 4) for place, off in zip(places, shift, strict=True)]
        arms = [
            made.losses(place, rates, levels, random)
            for made, place, rates in zip((first, second), places, grids, strict=True)
        ]
        found.append(rate_ratio(*arms))
    return found


# First and second arm. A pilot on text (width 128, 600 steps) found curves like the first: a tenth of a nat lost in a
# decade, runs of one seed within a few thousandths.
SCENARIOS: Mapping[str, tuple[Made, Made]] = {
    "as in the pilot": (Made(0.06, 0.03, 0.006, 0.002, 0.03), Made(0.05, 0.015, 0.006, 0.002, 0.03)),
    "three times the noise": (Made(0.06, 0.03, 0.006, 0.006, 0.05), Made(0.05, 0.015, 0.006, 0.006, 0.05)),
    "half as curved": (Made(0.03, 0.01, 0.006, 0.004, 0.05), Made(0.03, 0.01, 0.006, 0.004, 0.05)),
    "one arm steeper above": (Made(0.06, 0.03, 0.006, 0.002, 0.03), Made(0.05, 0.0, 0.006, 0.002, 0.03)),
}


def table(trials: int = 100) -> pd.DataFrame:
    """A row for each scenario and true ratio; shares of `trials`, the same at every call.

    `covered`: the interval holds the ratio, or is not known; `open`: it is not; `factor`: half an interval, as a factor
    in the median; `excludes 1`, `excludes 2`, `excludes 10`.
    """
    rows = []
    for scenario, (first, second) in SCENARIOS.items():
        for ratio in RATIOS:
            random = np.random.default_rng(stream(0, "rate ratio", scenario, str(ratio)))
            found = simulated(ratio, first, second, SEEDS, trials, random)
            known = [each.high / each.low for each in found if not each.reason]
            row: dict[str, Any] = {
                "scenario": scenario,
                "ratio": ratio,
                "covered": share([not each.excludes(ratio) for each in found]),
                "open": share([bool(each.reason) for each in found]),
                "factor": math.sqrt(float(np.median(known))) if known else math.nan,
            }
            for other in RATIOS:
                row[f"excludes {other:g}"] = share([each.excludes(other) for each in found])
            rows.append(row)
    return pd.DataFrame(rows)


def share(held: list[bool]) -> float:
    """Of trials in which something held."""
    return float(np.mean(held))
