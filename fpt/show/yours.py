"""A reader's own numbers beside the published ones."""

import pandas as pd

from fpt.results.arm import Arm
from fpt.results.cells import StudyCells
from fpt.results.estimate import percent
from fpt.results.runs import arms_in
from fpt.results.stats import mean_of, paired
from fpt.show.html import Table
from fpt.show.tables import chosen

CAPTION = (
    "Tuned test accuracy in percent, and yours minus published in points (95% interval over paired seeds). Another "
    "processor changes the last digits, and training enlarges them: where the interval holds 0, the two agree. Where "
    "two rates are nearly as good, yours may choose the other; then compare at one rate."
)


def yours_beside_ours(study: StudyCells) -> pd.DataFrame:
    """A row a sweep that has both own and published results; no row where there are none.

    Runs are paired by seed. `equal seeds`: how many have the same accuracy to the last digit. Where all do, or where
    there are fewer than three, the difference has no interval.
    """
    published = arms_in(study.folder, "published")
    own = arms_in(study.folder, "own") if published else {}
    both = [(arm, published[sweep]) for sweep, arm in own.items() if sweep in published]
    return pd.DataFrame([{"task": arm.task, "arm": arm.name, **_row(arm, ours)} for arm, ours in both])


def yours_table(study: StudyCells) -> Table | None:
    """The same for a page; None where there are no own results beside published ones."""
    rows = yours_beside_ours(study)
    return None if rows.empty else Table(rows, CAPTION)


def _row(own: Arm, published: Arm) -> dict[str, str]:
    row: dict[str, str] = {}
    tuned = {}
    for whose, arm in (("your", own), ("published", published)):
        tuned[whose] = arm.tuned()
        row |= {f"{whose} rate": chosen(arm.choices()) or "-", f"{whose} accuracy": percent(tuned[whose].mean())}
    test = paired(tuned["your"], tuned["published"], without=own.without() - published.without())
    apart = (tuned["your"] - tuned["published"]).dropna()
    alone = mean_of(apart).in_points.texts(signed=True)[0]
    row["difference"] = test.in_points.cell if test.by_seed and not test.flips else alone
    return row | {"equal seeds": f"{int((apart == 0).sum())} of {len(apart)}"}
