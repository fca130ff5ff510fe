"""Where printed accuracies stand on the ladder of ListOps: readers that understand more and more of a list, counted by
notebooks/ladder.ipynb."""

import re
from collections.abc import Mapping

import pandas as pd

from fpt.evidence.arithmetic import GAP
from fpt.evidence.baselines import Score, known_scores
from fpt.papers import claim, paper_of, papers
from fpt.papers.schema import LEVELS
from fpt.tasks import TASKS

DIGITS = "operator and direct digits"
TASK = "listops"
TESTED = TASKS[TASK].options["heldout"]  # lists in Long Range Arena's test file: what a printed accuracy rests on


def place(accuracy: float, rungs: Mapping[str, Score], of: int = TESTED) -> str:
    """Where an accuracy (a fraction) on `of` lists stands: at the nearest rung within its 95% interval, else above
    one and below the next."""
    low, high = Score(accuracy, of).interval
    near = {name: abs(rung.share - accuracy) for name, rung in rungs.items() if low <= rung.share <= high}
    if near:
        return f"at: {min(near, key=near.__getitem__)}"
    below = [f"above {name}" for name, rung in rungs.items() if rung.share < low]
    above = [f"below {name}" for name, rung in rungs.items() if rung.share > high]
    return ", ".join([*below[-1:], *above[:1]])


def rungs(task: str = TASK, variant: str = "paper") -> dict[str, Score]:
    """The ladder as published, lowest rung first; without the reader that takes the whole list for a typical one, which
    is all but the outermost operator's."""
    scores = {name: score for name, score in known_scores(task, variant).items() if name != LEVELS[0]}
    return dict(sorted(scores.items(), key=lambda each: each[1].share))


def placed() -> pd.DataFrame:
    """Every accuracy on ListOps that a paper prints, once for a row, highest first.

    `paper`, `where` (in which tables), `row`, `data` (the variant that the paper trains on), `accuracy` (percent; of a
    gap that on test data), and its place `on the ladder` of these data.
    """
    rows = []
    for table in (table for paper in papers().values() for table in paper.tables.values()):
        paper = paper_of(table.paper)
        by, data = paper.authors.partition(",")[0].split(" ")[-1], paper.tasks.get(TASK, {}).get("variant", "paper")
        for row, entry in table.rows.items() if table.kind in ("accuracy", "gap") else ():
            if (cell := entry.printed.get(TASK)) is None or cell.value is None:
                continue
            value = cell.value[GAP.index("test")] if isinstance(cell.value, tuple) else cell.value
            label = paper.label(row) + f" ({cell.literature})" * bool(cell.literature)
            rows += [(f"{by} et al.", name, label, data, value) for name in re.findall(r"Table \d+", table.where)]
    rows.append(("Tay et al.", "Table 1", "Transformer", "paper", claim("O-08").numbers["tay_listops"]))
    columns = ["paper", "where", "row", "data", "accuracy"]
    frame = pd.DataFrame(rows, columns=columns).drop_duplicates()
    frame = (
        frame.groupby(["paper", "row", "data", "accuracy"], sort=False)["where"].agg(", ".join).reset_index()[columns]
    )
    each = zip(frame["accuracy"] / 100, frame["data"], strict=True)
    frame["on the ladder"] = [place(accuracy, rungs(TASK, data)) for accuracy, data in each]
    return frame.sort_values("accuracy", ascending=False, kind="stable", ignore_index=True)
