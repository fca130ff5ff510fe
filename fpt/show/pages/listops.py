"""The page on ListOps: how much of a list a reader must understand for an accuracy, and where printed ones stand."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from fpt.papers import claim, paper_of, papers
from fpt.papers.schema import GAP, LEVELS, PaperTable
from fpt.results.baselines import DIGITS, MAJORITY, OPERATOR, Score, known_scores
from fpt.results.estimate import PERCENT, number_text
from fpt.show.findings import whose
from fpt.show.html import CaptionedFigure
from fpt.show.plot import GREY, HATCHES, OTHERS, Plot, drawn, panels_of, shared_legend
from fpt.tasks import TASKS

LISTS = "listops"
TESTED = TASKS[LISTS].options["heldout"]  # lists in Long Range Arena's test file: what a printed accuracy rests on
RANGE = (7.5, 88.5)  # percent, drawn with a bar for each whole percent
COLUMNS = ["paper", "where", "row", "data", "accuracy"]
LINES = {  # rungs that the figure draws, as it names them; those above are close together, and nobody stands there
    MAJORITY: "commonest answer",
    OPERATOR: "first symbol",
    DIGITS: "and its digits",
    LEVELS[1]: "outermost list",
    LEVELS[2]: "two levels",
    LEVELS[3]: "three levels",
}


def rungs(variant: str = "paper") -> dict[str, Score]:
    """The scores of the readers by name, lowest first, without the one that takes the whole list for a typical one.

    That reader knows the outermost operator alone, which another does better. Raises what `known_scores` raises.
    """
    scores = [(name, score) for name, score in known_scores(LISTS, variant).items() if name != LEVELS[0]]
    return dict(sorted(scores, key=lambda each: each[1].share))


def standing(accuracy: float, ladder: Mapping[str, Score], of: int = TESTED) -> str:
    """Where an accuracy (a fraction) on `of` lists stands: at the nearest rung within its 95% interval, else above
    one and below the next."""
    low, high = Score(accuracy, of).interval
    near = {name: abs(rung.share - accuracy) for name, rung in ladder.items() if low <= rung.share <= high}
    if near:
        return f"at: {min(near, key=near.__getitem__)}"
    below = [f"above {name}" for name, rung in ladder.items() if rung.share < low]
    above = [f"below {name}" for name, rung in ladder.items() if rung.share > high]
    return ", ".join([*below[-1:], *above[:1]])


def printed_places() -> pd.DataFrame:
    """Every accuracy on ListOps that a paper prints, once for a row, highest first.

    `paper`, `where` (in which tables), `row`, `data` (the variant that the paper trains on), `accuracy` (percent; of a
    gap that on test data), and its place `on the ladder` of these data.
    """
    rows = [line for paper in papers().values() for table in paper.tables.values() for line in _printed(table)]
    rows.append(("Tay et al.", "Table 1", "Transformer", "paper", claim("O-08").numbers["tay_listops"]))
    frame = pd.DataFrame(rows, columns=COLUMNS).drop_duplicates()
    same = [name for name in COLUMNS if name != "where"]
    frame = frame.groupby(same, sort=False)["where"].agg(", ".join).reset_index()[COLUMNS]
    ladders = {data: rungs(data) for data in frame["data"].unique()}
    each = zip(frame["accuracy"] / 100, frame["data"], strict=True)
    frame["on the ladder"] = [standing(accuracy, ladders[data]) for accuracy, data in each]
    return frame.sort_values("accuracy", ascending=False, kind="stable", ignore_index=True)


def _printed(table: PaperTable) -> Iterator[tuple[Any, ...]]:
    """The lines of one table, as `COLUMNS`: one for each place where the row is printed."""
    if table.kind not in ("accuracy", "gap"):
        return
    paper = paper_of(table.paper)
    data = paper.tasks.get(LISTS, {}).get("variant", "paper")
    for row, entry in table.rows.items():
        cell = entry.printed.get(LISTS)
        if cell is None or cell.value is None:
            continue
        value = cell.value[GAP.index("test")] if isinstance(cell.value, tuple) else cell.value
        label = f"{paper.label(row)} ({cell.literature})" if cell.literature else paper.label(row)
        for name in re.findall(r"Table \d+", table.where):
            yield whose(table.paper), name, label, data, value


def printed_ladder(caption: str) -> CaptionedFigure:
    """How many accuracies on ListOps the papers print in each percent, between the rungs of the ladder."""
    return CaptionedFigure(_ladder_figure(), caption)


@drawn
def _ladder_figure() -> Plot:
    frame, known = printed_places(), rungs()
    figure, (axes,) = panels_of(1, 2.9, "")
    for name, words in LINES.items():
        at = 100 * known[name].share
        axes.axvline(at, color=GREY, linewidth=1, zorder=0, linestyle=":" if name in LEVELS else "-")
        axes.annotate(f"{words} {at:.0f}", (at, 1), (0, 3), ("data", "axes fraction"), "offset points", rotation=40)
    by_paper = dict(list(frame.groupby("paper")["accuracy"]))
    look: dict[str, Any] = {"label": list(by_paper), "color": OTHERS[: len(by_paper)], "rwidth": 0.85}
    look |= {"hatch": [3 * hatch for hatch in HATCHES[: len(by_paper)]], "edgecolor": "white", "linewidth": 0}
    axes.hist(list(by_paper.values()), bins=np.arange(*RANGE).tolist(), stacked=True, **look)
    axes.set(xlabel="accuracy on ListOps (%)", ylabel="printed accuracies", xlim=(RANGE[0], RANGE[1]))
    shared_legend(figure, [axes])
    steps = ", ".join(f"{words} {number_text(100 * known[name].share, PERCENT)}" for name, words in LINES.items())
    bars = "; ".join(frame["row"] + frame["accuracy"].map(" {:g}, ".format) + frame["on the ladder"])
    return figure.describe(f"Printed accuracies on the ladder of ListOps. Rungs: {steps}. Printed: {bars}.", frame)
