"""The page on steps: how a tuned lead moves with them, at equal steps and where both arms have cost the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from fpt import models
from fpt.results.contrasts import Contrast, at_equal_compute
from fpt.results.estimate import MINUS, PERCENT, SIGNIFICANCE, number_text
from fpt.results.rate_ratio import RateRatio
from fpt.results.stats import holm
from fpt.show import plot
from fpt.show.figures import MOST_POINTS
from fpt.show.html import CaptionedFigure, Table
from fpt.show.places import NONE, Place, to_beat

FULL, FROZEN = "UP", "FP"
LOOKS = {  # what leads are counted at: colour, marker, and by how much the marks stand apart
    "equal steps": (plot.INK, "o", 0.0),
    "equal compute": (models.arm(FROZEN).colour, "s", 0.12),
}


@dataclass(frozen=True)
class OverSteps:
    """Full training minus frozen layers at a place, in points by budget, each arm tuned at each budget.

    `share`: what a frozen step costs, in steps of full training. A budget counts the frozen model's steps; of the first
    one the lead at equal compute is unknown, since full training is not reported so early.
    """

    place: Place
    share: float

    @cached_property
    def at_equal_steps(self) -> dict[int, Contrast]:
        first, second = (set(self.place.arm(arm).budgets) for arm in (FULL, FROZEN))
        return {budget: self.place.contrast(FULL, FROZEN, budget=budget) for budget in sorted(first & second)}

    @cached_property
    def at_equal_compute(self) -> dict[int, Contrast]:
        study, task = self.place.study, self.place.task
        named = self.place.name(FULL), self.place.name(FROZEN)
        _, *later = self.at_equal_steps
        return {budget: at_equal_compute(study, *named, self.share, task=task, budget=budget) for budget in later}

    @property
    def lines(self) -> dict[str, dict[int, Contrast]]:
        """Both, by what a figure calls them."""
        return dict(zip(LOOKS, (self.at_equal_steps, self.at_equal_compute), strict=True))

    @property
    def end(self) -> Contrast:
        """The lead after the last step."""
        return self.at_equal_steps[max(self.at_equal_steps)]

    @property
    def end_at_equal_compute(self) -> Contrast:
        """The same where full training has cost what the frozen model cost in all of its steps."""
        return self.at_equal_compute[max(self.at_equal_compute)]

    def led(self, sign: int, corrected: bool = False) -> list[int]:
        """The budgets at which full training (`sign` 1) or the frozen model (-1) leads after equally many steps:
        the 95% interval excludes 0, or Holm's correction over the budgets of the place leaves p below 5%."""
        found = self.at_equal_steps
        p_values = dict(zip(found, holm([each.p for each in found.values()]), strict=True))
        return [
            budget
            for budget, each in found.items()
            if sign * each.value > 0 and (p_values[budget] < SIGNIFICANCE if corrected else not each.open)
        ]


def over_steps(places: Mapping[str, OverSteps], caption: str) -> CaptionedFigure:
    """Full training minus frozen layers over the steps, a panel a place, at equal steps and at equal compute, with 95%
    intervals."""
    return CaptionedFigure(over_steps_figure(places), caption)


@plot.drawn
def over_steps_figure(places: Mapping[str, OverSteps]) -> plot.Plot:
    """What `over_steps` shows."""
    figure, panels = plot.panels_of(len(places), 2.0)
    rows = []
    for axes, (name, place) in zip(panels, places.items(), strict=False):
        rows.append(_panel(axes, place).assign(place=name))
        axes.set_title(name)
    plot.shared_legend(figure, panels)
    words = [
        f"{name}: {place.end} after equally many steps, {place.end_at_equal_compute} at equal compute"
        for name, place in places.items()
    ]
    arms = [arm for each in places.values() for arm in each.place.arms(FULL, FROZEN).values()]
    return figure.describe(
        f"Full training minus frozen layers over the steps, each tuned. At the end: {'; '.join(words)}.",
        pd.concat(rows, ignore_index=True),
        plot.runs_of(arms),
    )


def _panel(axes: Any, place: OverSteps) -> pd.DataFrame:
    """Both lines of a place, and what they show: `at` which unit, `steps`, `points` with `low` and `high`."""
    budgets, frames = list(place.at_equal_steps), []
    for unit, (colour, marker, dodge) in LOOKS.items():
        found = plot.frame_of(place.lines[unit], "steps", "points")
        look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": ":" if dodge else "-", "linewidth": 1.6}
        look |= {"label": f"at {unit}", "markersize": 5, "most": MOST_POINTS}
        at = [budgets.index(budget) + dodge for budget in found["steps"]]
        plot.intervals(axes, at, found["points"], found["low"], found["high"], **look)
        frames.append(found.assign(at=unit))
    axes.axhline(0, color=plot.GREY, linewidth=1)
    plot.budget_axis(axes, budgets)
    axes.set(xlabel="steps of the frozen model", ylabel=f"full {MINUS} frozen (points)")
    return pd.concat(frames)


def ends_table(places: Mapping[str, OverSteps], caption: str) -> Table:
    """A row a place: after which steps either arm leads (a star: also corrected for all budgets of the place), the lead
    at the end at equal steps and at equal compute, and the levels there beside what is to beat."""
    rows = []
    for name, each in places.items():
        rows.append(
            {
                "task, model, steps": name,
                "freezing leads after": _starred(each, -1),
                "full training leads after": _starred(each, 1),
                "at the end, full minus frozen, points": each.end.cell,
                "at equal compute, points": each.end_at_equal_compute.cell,
                "full / frozen / to beat, %": _levels(each),
            }
        )
    return Table(pd.DataFrame(rows), caption)


def _starred(each: OverSteps, sign: int) -> str:
    sure = each.led(sign, corrected=True)
    return ", ".join(f"{budget:,}{'*' * (budget in sure)}" for budget in each.led(sign)) or NONE


def _levels(each: OverSteps) -> str:
    levels = (number_text(level, PERCENT) for level in (each.end.first, each.end.second))
    return " / ".join([*levels, to_beat(each.place, (FULL, FROZEN))])


def ratios_table(by_steps: Mapping[int, Mapping[int, RateRatio]], caption: str) -> Table:
    """A row a number of steps, a column a width: how many times the best rate of full training LoRA's is."""
    rows = [
        {"steps": f"{steps:,}"} | {f"width {width}": each.cell for width, each in found.items()}
        for steps, found in by_steps.items()
    ]
    return Table(pd.DataFrame(rows), caption)
