"""Two arms beside each other over several studies: the lead of one at a shared rate and tuned, and the rates to try."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from fpt.claims.planes import plane_table, plane_tests, sign_of
from fpt.claims.sensitivity import usable
from fpt.results.arm import TUNED, Arm
from fpt.results.baselines import LINEAR, floor, known_scores
from fpt.results.cells import NOT_RUN_YET
from fpt.results.contrasts import Contrast, Level, arms_of, cell_of, contrast, level
from fpt.results.estimate import POINTS, number_text, percent
from fpt.results.runs import rate_text
from fpt.results.stats import POINT
from fpt.show import plot
from fpt.show.charts import cells_of
from fpt.show.html import CaptionedFigure, Table
from fpt.sweeps.ledger import PUBLISHED, RESULT, workspace

NONE = "\N{EN DASH}"
WITHIN = 5  # points below its tuned accuracy that leave a rate usable


@dataclass(frozen=True)
class Place:
    """Where arms are compared: a study, one of its tasks, and what its tables add to the name of an arm."""

    study: str
    task: str
    more: str = ""  # as "layers 4"

    def arm(self, letters: str) -> str:
        """The name of an arm in the study's tables."""
        return f"{letters} ({self.more})" if self.more else letters

    def cell(self, arm: str) -> Arm:
        """`fpt.results.contrasts.cell_of` of an arm here, with its errors."""
        return cell_of(self.study, self.arm(arm), task=self.task)

    def cells(self, *arms: str) -> dict[str, Arm]:
        """Those of the arms that are published, by their letters."""
        found = arms_of(self.study)
        named = {letters: (self.task, self.arm(letters)) for letters in arms}
        return {letters: found[key] for letters, key in named.items() if key in found}

    def contrast(self, first: str, second: str, **how: Any) -> Contrast:
        """`fpt.results.contrast` of two arms here, with its arguments and errors."""
        return contrast(self.study, self.arm(first), self.arm(second), task=self.task, **how)

    def level(self, arm: str, **how: Any) -> Level:
        """`fpt.results.level` of an arm here, with its arguments and errors."""
        return level(self.study, self.arm(arm), task=self.task, **how)

    def leads_at(self, first: str, second: str) -> list[int]:
        """The budgets, in steps, at which the first arm leads the second: each tuned there, each interval alone."""
        budgets = self.cells(first)[first].budgets
        return [budget for budget in budgets if self.contrast(first, second, budget=budget).low > 0]

    def corrected(self, first: str, second: str) -> Mapping[tuple[float, int], float]:
        """p by rate and budget, both arms at that rate, corrected for all cells of the map (Holm)."""
        rows = plane_table(plane_tests(self.cell(first), self.cell(second)))
        return dict(zip(zip(rows["rate"], rows["budget"], strict=True), rows["corrected"], strict=True))


PAIRS = {  # the longest published training of all four arms on each task and model
    "MNIST, MiniLM, 1,600": Place("plane-minilm", "mnist"),
    "CIFAR-10, MiniLM, 800": Place("minilm-cifar10", "cifar10"),
    "digits by pixel, tiny-lm, 1,500": Place("laptop-rothermel2021", "digits-lra"),
    "MNIST, tiny-lm, 3,000": Place("plane-mnist", "mnist"),
    "MNIST, SmolLM2, 400": Place("smollm2", "mnist", "layers 4"),
    "ListOps, tiny-lm, 1,500": Place("laptop-rothermel2021", "listops-short"),
    "digits, tiny-lm, 6,000": Place("plane-digits", "digits"),
}


def leads_table(places: Mapping[str, Place], arms: Mapping[str, str], rate: float, caption: str) -> Table:
    """A row a place: the levels of two arms and the lead, both at one rate and each at its own; and what to beat.

    `arms`: the two arms and what the table calls them. Percent and points of test accuracy after the last step. An arm
    that is not published leaves its level empty. To beat: a linear classifier where there is one, else the best guess
    that reads only a part of the input.
    """
    words = " / ".join(arms.values())
    rows = []
    for name, place in places.items():
        row = {"task, model, steps": name}
        for at, head in ((rate, f"at {rate_text(rate)}"), (TUNED, "tuned")):
            row |= {f"{words} {head}, %": _levels(place, arms, at), f"leads {head}, points": _lead(place, arms, at)}
        rows.append(row | {"to beat, %": _to_beat(place, arms)})
    return Table(pd.DataFrame(rows), caption)


def _to_beat(place: Place, arms: Iterable[str]) -> str:
    variant = next((cell.variant for cell in place.cells(*arms).values()), "paper")
    known = known_scores(place.task, variant)
    return percent(known[LINEAR].share if LINEAR in known else floor(place.task, variant))


def _levels(place: Place, arms: Iterable[str], at: str | float) -> str:
    found = place.cells(*arms)
    shown = [percent(found[arm].values(at).mean()) if arm in found else NONE for arm in arms]
    return " / ".join(shown)


def _lead(place: Place, arms: Mapping[str, str], at: str | float) -> str:
    """Who leads and by how much, in the direction of the one that leads; an open lead has the sign of the first."""
    first, second = arms
    if len(place.cells(first, second)) < len(arms):
        return NOT_RUN_YET
    found = place.contrast(first, second, at=at)
    if found.open:
        return f"open, {found.cell}"
    leader, lead = (first, found) if found.value > 0 else (second, -found)
    return f"{arms[leader]} by {lead.cell}"


def rates_table(places: Mapping[str, Place], arms: Mapping[str, float], caption: str) -> Table:
    """A row a place: for each arm its best rate, how many decades of rates are usable, and what the rate to try first
    (`arms`: arm -> rate) reaches minus what the tuned rate does, in points of the means."""
    rows = []
    for name, place in places.items():
        row = {"task, model, steps": name}
        for arm, cell in place.cells(*arms).items():
            tuned, tried = place.level(arm), place.level(arm, at=arms[arm])
            row |= {
                f"{arm} best at": rate_text(tuned.rate) if tuned.rate else NONE,
                f"{arm} usable, decades": _decades(cell),
                f"{arm} at {rate_text(arms[arm])}, points": number_text(tried.value - tuned.value, POINTS, signed=True),
            }
        rows.append(row)
    return Table(pd.DataFrame(rows).fillna(NONE), caption)


def _decades(cell: Arm) -> str:
    """The width of the usable range; "or more" where it meets an end of the grid."""
    by_seed, at_end = usable(cell, WITHIN * POINT)
    return f"{by_seed.mean():.1f}{' or more' if at_end else ''}"


def signs(study: str, first: str, second: str, *, task: str = "") -> dict[float, str]:
    """By rate that both arms have, a sign a budget in ascending order: + where the 95% interval of the first minus the
    second lies above 0, - where below, 0 where it holds 0. Errors as those of `fpt.results.contrast`."""
    cells = cells_of(study, (first, second), task)
    found: dict[float, str] = {}
    for (rate, _), test in plane_tests(cells[first], cells[second]).items():
        found[rate] = found.get(rate, "") + sign_of(test)
    return found


def by_compute(study: str, arms: Mapping[str, float], caption: str, *, task: str = "") -> CaptionedFigure:
    """Tuned test accuracy over compute, a line an arm with 95% intervals. `arms`: arm -> the FLOP of one of its steps
    as a share of those of the arm that all are measured in. Errors as those of `fpt.results.contrast`."""
    return CaptionedFigure(compute_figure(cells_of(study, arms, task), arms), caption)


@plot.drawn
def compute_figure(cells: Mapping[str, Arm], arms: Mapping[str, float]) -> plot.Plot:
    """What `by_compute` shows, of these cells by arm."""
    figure, (axes,) = plot.panels_of(1)
    rows = []
    for name, share in arms.items():
        for budget in cells[name].budgets:
            found = cells[name].estimate(budget=budget).in_percent
            rows.append([name, budget, budget * share, found.value, *found.interval])
    shown = pd.DataFrame(rows, columns=["arm", "budget", "compute", "accuracy", "low", "high"])
    sweeps = plot.fields_of(cells[name] for name in arms)
    named = dict(zip(arms, plot.words_of(sweeps), strict=True))
    unit = named[min(arms, key=lambda name: abs(arms[name] - 1))]
    for name, look in zip(arms, plot.looks_of(sweeps), strict=True):
        line = shown[shown["arm"] == name]
        around = plot.bar(line["accuracy"], line["low"], line["high"])
        axes.errorbar(line["compute"], line["accuracy"], yerr=around, label=named[name], **look)
    beside = plot.lines_below(axes, sweeps[0])
    ticks = cells[next(iter(arms))].budgets
    axes.set_xscale("log", subs=[])
    axes.set_xticks(ticks, [f"{budget:,}" for budget in ticks])
    axes.minorticks_off()  # powers of ten would lie on them
    axes.set(xlabel=f"compute, in steps of {unit}", ylabel="test accuracy (%), tuned")
    plot.shared_legend(figure, [axes])
    words = [
        f"{named[name]} {accuracy:.1f}% after {compute:,.0f}"
        for name, compute, accuracy in zip(shown["arm"], shown["compute"], shown["accuracy"], strict=True)
    ] + beside
    return figure.describe(
        f"Tuned test accuracy over compute, in steps of {unit}: {'; '.join(words)}.",
        shown,
        plot.runs_of(cells.values()),
    )


def newest(root: Path | None = None) -> str:
    """The day of the newest published result, as 26 November 2026; empty where nothing is published."""
    records = (workspace(root) / "runs").glob(f"*/{PUBLISHED}/*/{RESULT}")
    days = [date.fromisoformat(json.loads(each.read_bytes())["finished_utc"][:10]) for each in records]
    return f"{max(days):%-d %B %Y}" if days else ""
