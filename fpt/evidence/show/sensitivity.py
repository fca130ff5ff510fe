"""What the grids of rates show, over all models and tasks: usable ranges, best rates, and fewer rates or seeds."""

import math
from collections.abc import Iterable, Mapping

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from fpt.evidence.cells import Cell, StudyCells
from fpt.evidence.runs import SHORT
from fpt.evidence.sensitivity import conclusions, ratio, usable
from fpt.evidence.show.beside import EDGE_MARK
from fpt.evidence.show.figures import nothing, panels_of, shared_legend
from fpt.evidence.show.html import Table
from fpt.evidence.show.numbers import title
from fpt.evidence.show.text import ARMS
from fpt.evidence.stats import POINT, mean_interval
from fpt.papers import table

Setups = Mapping[str, Mapping[str, Cell]]  # model, task and study in words -> arm (FP, ...) -> its cell
WITHIN = (1, 5)  # points below the tuned accuracy that leave a rate usable
SAME_START = (("UP", "FP"), ("UR", "FR"))  # unfrozen and frozen, of one initialisation
AGAINST_FROZEN = (("UP", "FP"), ("UR", "FP"))


def setups(studies: Iterable[StudyCells]) -> dict[str, dict[str, Cell]]:
    """Every model on every task of these studies that has results of two arms or more: the first sweep of each arm."""
    found: dict[str, dict[str, Cell]] = {}
    for study in studies:
        for tables in study.results.values():
            spec = tables.spec
            details = spec.title.partition(f", {spec.arm}")[2].replace(", fixed", "")
            if arm := SHORT.get(spec.arm):
                cell = Cell(table(ARMS), arm, spec.task, (), spec, tables, study=study.name)
                found.setdefault(f"{title(spec.task)}{details} ({study.name})", {}).setdefault(arm, cell)
    return {name: cells for name, cells in found.items() if len(cells) > 1}


def usable_table(found: Setups, caption: str) -> Table:
    """A row a setup and distance: the width of each arm's usable range in decades, with its 95% interval."""
    rows = [
        {"setup": name, "within": f"{points} point{'s' * (points > 1)}"}
        | {arm: _width(cells[arm], points) for arm in SHORT.values() if arm in cells}
        for name, cells in found.items()
        for points in WITHIN
    ]
    return Table(pd.DataFrame(rows).fillna(""), caption)


def _width(cell: Cell, points: float) -> str:
    width, at_end = usable(cell, points * POINT)
    mean, low, high = mean_interval(width)
    return f"{mean:.2f} ({max(low, 0):.2f} to {high:.2f}){EDGE_MARK * at_end}"


def ratio_table(found: Setups, caption: str) -> Table:
    """A row a setup and initialisation: the best rate of the unfrozen arm over that of the frozen one, a column a
    budget N/32, ..., N."""
    rows = []
    for name, cells in found.items():
        for over, under in (pair for pair in SAME_START if set(pair) <= set(cells)):
            shared = [budget for budget in cells[over].budgets if budget in cells[under].budgets]
            by_budget = {_part(max(shared), each): _ratio(*ratio(cells[over], cells[under], each)) for each in shared}
            rows.append({"setup": name, "arms": f"{over} / {under}", "N (steps)": f"{max(shared):,}"} | by_budget)
    return Table(pd.DataFrame(rows).fillna(""), caption)


def _part(steps: int, budget: int) -> str:
    """N/32, ..., after N steps."""
    return f"after N/{2 ** round(math.log2(steps / budget))}" if budget < steps else "after N"


def _ratio(best: float, *around: float) -> str:
    low, high = (f"{each:.2g}" if math.isfinite(each) else "∞" for each in around)
    return "-" if math.isnan(best) else f"{best:.2g} ({low} to {high})"


def agreement_figure(found: Setups) -> Figure:
    """The share of choices of fewer rates, and of fewer seeds, that says the same as all of them (and the opposite) of
    UP - FP and of UR - FP: a panel each, a line a setup."""
    frames = [
        conclusions(cells[first], cells[second]).assign(setup=name, arms=f"{first} - {second}")
        for name, cells in found.items()
        for first, second in AGAINST_FROZEN
        if {first, second} <= set(cells)
    ]
    if not frames:
        return nothing()
    said = pd.concat(frames).melt(["setup", "arms", "of", "kept"], ["same", "opposite"], "says", "share")
    figure, panels = panels_of(said.groupby(["arms", "of"]).ngroups, sharey=True)
    for axes, ((arms, of), part) in zip(panels, said.groupby(["arms", "of"], sort=False), strict=False):
        part = part.assign(share=100 * part["share"])
        sns.lineplot(part, x="kept", y="share", hue="setup", style="says", markers=True, palette="colorblind", ax=axes)
        axes.set(title=f"{arms}, fewer {of}", xlabel=f"number of {of}", ylabel="share of choices (%)", ylim=(-5, 105))
    shared_legend(figure, panels)
    same = said[said["says"] == "same"].groupby(["setup", "arms", "of"], sort=False)
    words = [
        f"{setup}, {arms}, {of}: "
        + ", ".join(f"{100 * share:.0f}% with {kept}" for kept, share in zip(part["kept"], part["share"], strict=True))
        for (setup, arms, of), part in same
    ]
    figure.set_label(f"How often fewer rates or seeds say the same as all. {'; '.join(words)}.")
    return figure
