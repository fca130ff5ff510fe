"""The page on pretraining: what a finding compares, on every pair that is counted."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import pandas as pd

from fpt.claims.asked import PLANNED
from fpt.claims.verdicts import SPEAKS
from fpt.papers import finding, printed_ranges
from fpt.papers.schema import Finding
from fpt.results.arm import published_arms
from fpt.results.estimate import MINUS, POINTS, number_text
from fpt.results.runs import find_study
from fpt.show import plot
from fpt.show.figures import MOST_POINTS
from fpt.show.findings import estimate_of, row_name, verdict_rows, whose
from fpt.show.html import CaptionedFigure
from fpt.sweeps.words import legends

WIDEST = 24  # characters of a row's name in one line
LINE = 0.16  # inches that a line of a row's name takes
# Small marks with caps: the intervals of short rows stay in sight.
COUNTED = {"marker": "o", "markersize": 5, "capsize": 3, "color": plot.INK, "ls": "none"}
LOOK: dict[bool, dict[str, Any]] = {  # by whether the runs were made for the question
    True: COUNTED | {"label": "planned"},
    False: COUNTED | {"markerfacecolor": "none", "label": "not planned"},
}
SHOWN = ["pair", "study", "contrast", "at", "estimate", "low", "high", "seeds", "steps", "planned"]


def forest(finding_id: str, caption: str) -> CaptionedFigure:
    """The contrast of a finding in points, a row a pair that is counted, with 95% intervals, the largest at the top.

    Filled where the runs were made for the question. Bands: from the least to the largest number that a paper prints
    for this contrast. Raises SpecError for an unknown finding.
    """
    return CaptionedFigure(forest_figure(finding(finding_id), verdict_rows()), caption)


def counted(finding: Finding, rows: pd.DataFrame) -> pd.DataFrame:
    """Of the table of verdicts the contrasts of a finding itself, without those of its claims, on counted pairs."""
    own = (rows["claim"] == "") & (rows["finding"] == finding.id)
    shown = rows[own & (rows["role"] == SPEAKS) & rows["estimate"].notna()]
    return shown.sort_values("estimate", ascending=False, kind="stable", ignore_index=True)


@plot.drawn
def forest_figure(finding: Finding, rows: pd.DataFrame) -> plot.Plot:
    """The figure of `forest`, from the table of verdicts."""
    shown = counted(finding, rows)
    if shown.empty:
        return plot.nothing()
    records = shown.to_dict("records")
    names = [row_name(row) for row in records]
    wrapped = [fill(name, WIDEST, break_on_hyphens=False) for name in names]
    lines = 1 + max(name.count("\n") for name in wrapped)
    figure, (axes,) = plot.panels_of(1, 0.5 + (0.12 + LINE * max(2, lines)) * len(shown), "x")
    for y, row in enumerate(records):
        look = LOOK[row["planned"] == PLANNED]
        plot.intervals(axes, y, row["estimate"], row["low"], row["high"], across=True, most=MOST_POINTS, **look)
    axes.axvline(0, color=plot.GREY, linewidth=1)
    looks = zip(plot.OTHERS, plot.HATCHES, strict=False)
    for (paper, (low, high)), (colour, hatch) in zip(printed_ranges(finding).items(), looks, strict=False):
        said = f"{whose(paper)} print {number_text(low, POINTS)} to {number_text(high, POINTS)}"
        area: dict[str, Any] = {"facecolor": (colour, 0.2), "edgecolor": plot.INK, "hatch": hatch, "lw": 0}
        axes.axvspan(low, high, zorder=0, label=said, **area)
    axes.set_yticks(range(len(shown)), wrapped)
    arms, _ = published_arms(find_study(records[0]["study"]))
    first, second = legends([arms[records[0][name]].fields for name in ("first", "second")])
    axes.set(ylim=(len(shown) - 0.5, -0.5), xlabel=fill(f"{first} {MINUS} {second} (points)", 40))
    plot.shared_legend(figure, [axes])
    return figure.describe(_in_words(finding, names, shown, f"{first} - {second}"), shown[SHOWN])


def _in_words(finding: Finding, names: Sequence[str], shown: pd.DataFrame, contrast: str) -> str:
    above, below = int((shown["low"] > 0).sum()), int((shown["high"] < 0).sum())
    found = f"Of {len(shown)} counted pairs, {above} above 0, {below} below, {len(shown) - above - below} open."
    told = [f"{name} {estimate_of(row).cell}" for name, row in zip(names, shown.to_dict("records"), strict=True)]
    return f"{finding.question} {found} {contrast}, points with 95% intervals: {'; '.join(told)}."
