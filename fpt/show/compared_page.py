"""What `fpt compare --page` writes: the curves over the rate, the contrasts, and two sentences for an appendix."""

import math
from collections.abc import Mapping
from itertools import cycle
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd

import fpt
from fpt.results.compare import (
    COMMON,
    Compared,
    chosen_text,
    difference_text,
    leads_text,
    level_text,
    pair_text,
    score_text,
)
from fpt.results.table import MOST_LEFT_OUT
from fpt.show import plot
from fpt.show.html import CaptionedFigure, Displayable, Page, Table, document, heading, paragraph

MOST_PANELS = 12  # of a figure; a table has all groups
MOST_DOTS = 3000  # of a panel: a page with more is slow
CURVES = "Every dot is a run, the line joins the means. Outlined: the runs that are read, each at its seed's choice."
DOTS = "Every dot is a run, the mark is their mean."
BARS = "Bars are 95% intervals."
LINE, TICK = 28, 16  # letters of a line of a name in a figure, and below an axis; the tables have the whole name


def compared_page(compared: Compared, name: str) -> str:
    """The comparison as one HTML document that needs no other file and no network. `name`: of the table."""
    named = compared.columns
    title = f"{score_text(compared)} by {named.by}"
    parts: list[Displayable | str] = [
        paragraph(f"From {name}, {len(compared.runs):,} runs."),
        heading("Runs"),
        CaptionedFigure(_curves(compared), CURVES if named.tune else DOTS),
    ]
    parts += [heading("Contrasts"), CaptionedFigure(_forest(compared), BARS), Table(contrasts_table(compared))]
    if len(compared.joined):
        parts += [heading(f"Over {', '.join(named.within)}"), Table(compared.joined.drop(columns="within"))]
    if named.tune:
        parts += [heading(f"At one {', '.join(named.tune)}"), *_at_one(compared)]
        parts += [heading(f"Each {named.by}"), Table(arms_table(compared))]
    parts += [heading("To be known"), *map(paragraph, compared.notes)]
    parts += [heading("For an appendix"), *map(paragraph, appendix(compared))]
    parts.append(paragraph(f"Written by fpt compare, version {fpt.__version__}."))
    return document(title, Page(parts))


def appendix(compared: Compared) -> tuple[str, str]:
    """Two sentences that name every choice: how settings were chosen, and how arms were compared."""
    named, rules = compared.columns, compared.rules
    pair = ", ".join(named.pair) or "run"
    chosen = f"{_rows(compared)} were compared as they are, by {score_text(compared)}"
    if named.tune:
        better = "lowest" if rules.choose_lower else "highest"
        chosen = (
            f"{_rows(compared)} were read, for each {named.by} and {pair}, at the {', '.join(named.tune)} with the "
            f"{better} mean {named.choose or named.score} over the other values of {pair} ({_grids(compared)}; ties to "
            f"the smaller), and {score_text(compared)} is reported"
        )
    test = "Welch's t-test" if rules.unpaired else f"t-intervals of the differences paired by {pair}"
    if named.tune and compared.arms["seeds"].min() <= MOST_LEFT_OUT:
        test += ", or where it is wider the interval of a jackknife that chooses anew without each of them"
    if rules.collapse is not None:
        test += f", or by sign flips where a run lies more than {rules.collapse:g} behind the median of its setting"
    told = f"Intervals are 95% {test}{_noise(compared)}; p-values are corrected by Holm over {_tests(compared)}"
    if rules.margin is not None:
        told += f", and less than {rules.margin:g} apart is shown by two one-sided tests"
    return f"{chosen}{_diverged(compared)}.", f"{told}."


def _rows(compared: Compared) -> str:
    """Which runs: those with the values that were asked for, in each group apart."""
    wanted = [f"{name} {' or '.join(map(str, values))}" for name, values in compared.rules.where.items()]
    runs = f"The runs with {' and '.join(wanted)}" if wanted else "The runs"
    return runs + (f" of each {', '.join(compared.columns.within)} apart" if compared.columns.within else "")


def _diverged(compared: Compared) -> str:
    if compared.rules.diverged is not None:
        return f"; a run without a finite score counts as {compared.rules.diverged:g}, and no other chooses its setting"
    if compared.arms["diverged"].any():
        return "; a setting at which a run has no finite score was chosen by no other"
    return ""


def _grids(compared: Compared) -> str:
    counts = sorted(set(compared.arms["settings"]))
    return f"{' or '.join(map(str, counts))} settings each"


def _tests(compared: Compared) -> str:
    count = int(compared.contrasts.loc[compared.contrasts["at"] != COMMON, "p"].notna().sum())
    return f"{count:,} contrast" + ("" if count == 1 else "s")


def _noise(compared: Compared) -> str:
    if compared.columns.example:
        return f", with the noise of {compared.columns.example}, paired"
    if compared.rules.test_examples:
        return f", with the noise of {compared.rules.test_examples:,} test examples"
    if compared.rules.test_share:
        return f", corrected for parts of {compared.rules.test_share:g} of the data (Nadeau and Bengio 2003)"
    return ", for the test examples that were used"


def contrasts_table(compared: Compared) -> pd.DataFrame:
    """The contrasts as text."""
    rows = []
    for row in compared.contrasts.to_dict("records"):
        tested = not math.isnan(row["p"])
        shown = {"contrast": pair_text(row), "read": row["at"], "n": row["n"], "difference": difference_text(row)}
        shown |= {"p (Holm)": f"{row['p_holm']:.2g}" if tested else "", "leads, not corrected": leads_text(row)}
        if compared.rules.margin is not None:
            shown[f"p of less than {compared.rules.margin:g} apart"] = f"{row['p_alike']:.2g}" if tested else ""
        seeds = row["seeds"]
        shown[f"seeds to find {compared.rules.point:g}"] = "" if math.isnan(seeds) else f"{seeds:.0f}"
        rows.append(shown)
    return pd.DataFrame(rows)


def arms_table(compared: Compared) -> pd.DataFrame:
    """The arms as text: their choices, levels and the ends of their grids."""
    tune = ", ".join(compared.columns.tune)
    rows = []
    for row in compared.arms.to_dict("records"):
        shown = {"arm": row["arm"], "within": row["within"], f"chosen {tune} (by seeds)": chosen_text(row)}
        shown |= {f"best {tune} of all seeds": row["common"], "level": level_text(row)}
        rows.append(shown | {"end of the grid": "; ".join(row["ends"]), "diverged runs": str(row["diverged"] or "")})
    return pd.DataFrame(rows)


def _at_one(compared: Compared) -> list[Displayable | str]:
    tune = ", ".join(compared.columns.tune)
    rows = [
        {"contrast": pair_text(row), tune: row["at"], "difference": difference_text(row), "leads": leads_text(row)}
        for row in compared.rates.to_dict("records")
    ]
    flips = [
        {"contrast": pair_text(row), "between": f"{row['below']} and {row['above']}", "below": row["leads_below"],
         "above": row["leads_above"], "both leads shown": "yes" if row["shown"] else "no"}
        for row in compared.flips.to_dict("records")
    ]  # fmt: skip
    parts: list[Displayable | str] = [Table(pd.DataFrame(rows), "Not corrected.")] if rows else []
    return [*parts, *([Table(pd.DataFrame(flips), "Between these the order flips.")] if flips else [])]


@plot.drawn
def _curves(compared: Compared) -> plot.Plot:
    groups = list(dict.fromkeys(compared.runs["within"]))
    arms = list(dict.fromkeys(compared.runs["arm"]))
    count = min(len(groups), MOST_PANELS)
    legend = sum(_label(arm).count("\n") + 1 for arm in arms)  # lines, of which a figure has room for six
    figure, panels = plot.panels_of(count, 2.9 + 0.2 * max(0, legend - 6) / math.ceil(count / 2))
    looks = {arm: {"color": colour, "marker": marker} for arm, colour, marker in
             zip(arms, cycle(plot.OTHERS), cycle(("o", "s", "^", "D", *plot.MARKERS)), strict=False)}  # fmt: skip
    ticks = _ticks(compared)
    words = []
    for axes, group in zip(panels, groups, strict=False):
        shown = compared.runs[compared.runs["within"] == group]
        for number, arm in enumerate(arms):
            runs = shown[shown["arm"] == arm]
            if runs.empty:
                continue
            line = _curve(axes, runs, number - (len(arms) - 1) / 2, _label(arm), looks[arm], compared)
            means = ", ".join(f"{mean:.4g} at {at or 'all'}" for at, mean in line.items())
            words.append(f"{group and group + ', '}{arm}: {means}")
        names = [_label(tick, TICK) for tick in ticks]
        axes.set_xticks(range(len(ticks)), names, rotation=45 if len(ticks) > 6 else 0)
        if compared.rules.lower_is_better and 0 < 10 * shown["score"].min() < shown["score"].max():
            axes.set_yscale("log")  # a loss that diverged would hide all others
        axes.set(
            xlabel=_label(", ".join(compared.columns.tune)), ylabel=_label(compared.columns.score), title=_label(group)
        )
    plot.shared_legend(figure, panels[: len(groups)])
    data = compared.runs.drop(columns="place")
    return figure.describe(f"{compared.columns.score}, means over runs. {'. '.join(words)}.", data)


def _ticks(compared: Compared) -> list[str]:
    """The settings that some arm has, in their order, at equal distances: a grid of rates is even on a log scale."""
    places = compared.runs.drop_duplicates("place").sort_values("place")
    return list(places["setting"])


def _curve(
    axes: Any, runs: pd.DataFrame, dodge: float, name: str, look: Mapping[str, Any], compared: Compared
) -> "pd.Series[float]":
    """The dots of an arm and the line through their means; returns these by setting."""
    order = {setting: x for x, setting in enumerate(_ticks(compared))}
    x = runs["setting"].map(order).to_numpy(float) + 0.06 * dodge
    means = runs.groupby("setting", sort=False)["score"].mean().sort_index(key=lambda index: index.map(order))
    at = np.array([order[setting] for setting in means.index]) + 0.06 * dodge
    axes.plot(at, means, color=look["color"], marker=look["marker"], markersize=5, linewidth=1.8, label=name)
    if len(runs) <= MOST_DOTS:
        axes.scatter(x, runs["score"], s=16, color=look["color"], alpha=0.6, linewidths=0)
        read = runs["chosen"].to_numpy(bool) & bool(compared.columns.tune)
        axes.scatter(x[read], runs["score"][read], s=16, facecolors="none", edgecolors=plot.INK, linewidths=0.8)
    return means


@plot.drawn
def _forest(compared: Compared) -> plot.Plot:
    rows = compared.contrasts[compared.contrasts["low"].notna()].head(5 * MOST_PANELS)
    if rows.empty:
        return plot.nothing()
    names = [f"{_label(pair_text(row))} ({row['at']})" for row in rows.to_dict("records")]
    height, width = (0.48, 1.4) if any("\n" in name for name in names) else (0.32, 1)
    figure, (axes,) = plot.panels_of(1, 0.5 + height * len(rows), "x", width * plot.PANEL_WIDTH)
    axes.locator_params(axis="x", nbins=4)
    lengths = np.ravel([rows["mean"] - rows["low"], rows["high"] - rows["mean"]])
    reach = float(lengths[np.isfinite(lengths)].max(initial=0)) or 1.0  # an interval without an end goes so far
    for y, row in enumerate(rows.to_dict("records")):
        look: dict[str, Any] = {"color": plot.INK, "marker": "D", "markersize": 5, "linewidth": 1.6, "most": reach}
        look |= {"markerfacecolor": "none"} if row["at"] == COMMON else {}
        plot.intervals(axes, y, row["mean"], row["low"], row["high"], across=True, **look)
    axes.axvline(0, color=plot.GREY, linewidth=1)
    axes.set_yticks(range(len(rows)), names)
    axes.set(xlabel=_label(f"difference of {compared.columns.score}"), ylim=(len(rows) - 0.5, -0.5))
    words = [f"{pair_text(row)}, {row['at']}: {difference_text(row)}" for row in rows.to_dict("records")]
    shown = rows[["within", "first", "second", "at", "mean", "low", "high"]]
    return figure.describe(f"Differences with 95% intervals: {'; '.join(words)}.", shown)


def _label(text: str, line: int = LINE) -> str:
    """A name as a figure shows it: a dollar begins no formula, and a long one takes two lines, and is cut there."""
    return "\n".join(wrap(text, line, max_lines=2, placeholder=" …")).replace("$", r"\$")
