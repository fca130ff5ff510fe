"""Tables: results per arm, Rothermel et al.'s Table 1, ours beside the paper's, yours beside ours."""

import math
from pathlib import Path
from typing import Any

import pandas as pd

from fpt.evidence.claims import claim, points
from fpt.evidence.runs import SHORT, find_study, load_runs, rate_text, studies
from fpt.evidence.show.figures import BUDGETS
from fpt.evidence.show.html import Table
from fpt.evidence.stats import mean_interval, paired, sem
from fpt.sweeps.ledger import PUBLISHED
from fpt.sweeps.study import load_study

TABLE_1 = "R-01"  # Rothermel et al. 2021, Table 1
PAPER_TASKS = {"listops": "ListOps", "mnist": "MNIST", "cifar10": "CIFAR-10", "cifar10_lra": "CIFAR-10 LRA"}
ROWS = ("frozen-random", "frozen-pretrained", "unfrozen-random", "unfrozen-pretrained")  # the paper's order


def percent(value: float, digits: int = 1) -> str:
    """A fraction as percent text; "-" for nan."""
    return "-" if math.isnan(value) else f"{100 * value:.{digits}f}"


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per sweep: selected rate, how flat the optimum is, test accuracy with its 95% interval."""
    from fpt.sweeps.selection import select

    rows: list[dict[str, Any]] = []
    for (task, label, _), sweep in runs.groupby(["task", "label", "sweep"], sort=False):
        chosen = select(sweep[sweep["stage"] == "selection"])
        confirmed = _confirmed(sweep)["test_accuracy"].astype(float)
        mean, low, high = mean_interval(confirmed)
        near = ", ".join(map(rate_text, chosen.within_one_se))
        rows.append(
            {
                "task": task,
                "arm": label,
                "learning rate": "none eligible" if chosen.rate is None else rate_text(chosen.rate),
                "edge of grid": "yes" if chosen.at_edge else "",
                "within one SE": near,
                "test accuracy": percent(mean),
                "95% interval": "-" if math.isnan(low) else f"{percent(low)} to {percent(high)}",
                "seeds": int(confirmed.count()),
                "diverged runs": int(sweep["diverged_at"].notna().sum()),
            }
        )
    return pd.DataFrame(rows)


def protocol_table(root: Path | None = None) -> pd.DataFrame:
    """What differs between the studies that have published results: a row for every study, model, task and recipe."""
    rows: list[dict[str, Any]] = []
    for study in (load_study(find_study(name, root)) for name in studies(root)):
        for spec in study.sweeps:
            rates = [rate_text(rate) for rate in spec.learning_rates]
            row = {
                "study": study.folder.name,
                "model": spec.backbone,
                "task": spec.task,
                "steps": f"{spec.steps:,}",
                "rates": f"{len(rates)}, {rates[0]} to {rates[-1]}",
                "reference": ", ".join(map(rate_text, spec.reference_rates)),
                "seeds": f"{len(spec.selection_seeds)} + {len(spec.confirmation_seeds)}",
                "evaluations": f"{spec.evaluations} on {spec.evaluation_examples or 'all'}",
            }
            if (study.folder / PUBLISHED / spec.folder_name).is_dir():
                rows.append(row)
    table: Any = pd.DataFrame(rows).drop_duplicates()
    for name in ("model", "task") if rows else ():  # what shares a recipe shares a row
        rest = table.columns.drop(name).tolist()
        table = table.groupby(rest, sort=False, as_index=False)[name].agg(", ".join)
    return pd.DataFrame(table.reindex(columns=list(rows[0]) if rows else []))


def budget_table(curves: pd.DataFrame) -> pd.DataFrame:
    """One row per arm: mean validation accuracy of its confirmation runs at the selected rate after 25, 50 and 100% of
    the steps, and what the second half gained (paired by seed). "still rises": the interval of that lies above 0.
    """
    rows: list[dict[str, Any]] = []
    for label, arm in _confirmed(curves).groupby("label", sort=False):
        seeds = arm.pivot_table("validation_accuracy", "step", "seed")
        # where nothing was evaluated yet, there is nothing
        at = seeds.reindex([share * seeds.index.max() for share in BUDGETS], method="ffill")
        gain = paired(at.iloc[2], at.iloc[1])
        row = {"arm": label}
        row |= {f"after {s:.0%}": percent(float(at.iloc[place].mean())) for place, s in enumerate(BUDGETS)}
        row["gain of the second half"] = points(gain.mean) or "-"
        row["95% interval"] = "-" if math.isnan(gain.low) else f"{points(gain.low)} to {points(gain.high)}"
        rows.append(row | {"still rises": "yes" if gain.low > 0 else "not shown"})
    return pd.DataFrame(rows)


def table_one(runs: pd.DataFrame, caption: str = "") -> Table:
    """Arms x tasks as Rothermel et al.'s Table 1: mean +- standard error of the mean, best mean bold."""
    cells = {}
    for (task, arm), group in _confirmed(_plain(runs)).groupby(["task", "arm"], sort=False):
        values = group["test_accuracy"].astype(float)
        cells[(str(task), str(arm))] = (100 * float(values.mean()), 100 * sem(values))
    return _arms_by_tasks(cells, caption)


def paper_table(caption: str = "") -> Table:
    """Rothermel et al.'s Table 1 as printed (three seeds, standard error of the mean)."""
    return _arms_by_tasks(_paper_cells(), caption)


def beside_paper(runs: pd.DataFrame, caption: str = "") -> Table:
    """Our Table 1 with the paper's columns to its right; the column heads say whose numbers they are."""
    ours = table_one(runs)
    paper = paper_table()
    left = ours.frame.rename(columns=lambda name: name if name == "arm" else f"{name} (here)")
    right = paper.frame.drop(columns="arm").rename(columns=lambda name: f"{name} (paper)")
    bold = None
    if ours.bold is not None and paper.bold is not None:
        bold = pd.concat([ours.bold, paper.bold.drop(columns="arm")], axis=1)
    return Table(pd.concat([left, right], axis=1), caption, bold)


def beside_published(study_folder: str | Path) -> pd.DataFrame:
    """The reader's results beside the published ones, per sweep; differences in points, paired by seed.

    Published results come from another machine: runs agree in distribution, not digit by digit.
    """
    own, published = (load_runs(study_folder, origin) for origin in ("own", "published"))
    rows = []
    for sweep in dict.fromkeys([*published["sweep"], *own["sweep"]]):
        mine, theirs = own[own["sweep"] == sweep], published[published["sweep"] == sweep]
        first = (mine if theirs.empty else theirs).iloc[0]
        left, right = (_by_seed(_confirmed(frame)) for frame in (mine, theirs))
        test = paired(left, right)
        rows.append(
            {
                "task": first["task"],
                "arm": first["label"],
                "your rate": _rate(mine),
                "published rate": _rate(theirs),
                "your accuracy": percent(mean_interval(left)[0]),
                "published accuracy": percent(mean_interval(right)[0]),
                "difference": points(test.mean),
                "95% interval": f"{points(test.low)} to {points(test.high)}" if test.n > 2 else "-",
            }
        )
    return pd.DataFrame(rows)


def _plain(runs: pd.DataFrame) -> pd.DataFrame:
    """The four arms as the verdicts mean them: `matched`, gain 1."""
    return runs[runs["label"].isin(SHORT.values())]


def _confirmed(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[(runs["stage"] == "confirmation") & runs["selected"].astype(bool)]


def _by_seed(runs: pd.DataFrame) -> "pd.Series[float]":
    return runs.drop_duplicates("seed").set_index("seed")["test_accuracy"].astype(float)


def _rate(runs: pd.DataFrame) -> str:
    rates = runs["selected_rate"].dropna().unique()
    return rate_text(float(rates[0])) if len(rates) else "-"


def _paper_cells() -> dict[tuple[str, str], tuple[float, float]]:
    reported = claim(TABLE_1)["reported"]
    return {
        (title, arm): (cell["mean"], cell["sem"])
        for key, title in PAPER_TASKS.items()
        for arm in ROWS
        for cell in [reported[arm.replace("-", "_")][key]]
    }


def _arms_by_tasks(cells: dict[tuple[str, str], tuple[float, float]], caption: str) -> Table:
    """`cells`: (task, arm) -> (mean, standard error), percent."""
    tasks = list(dict.fromkeys(task for task, _ in cells))
    frame = pd.DataFrame({"arm": [arm.replace("-", " ") for arm in ROWS]})
    bold = pd.DataFrame({"arm": [False] * len(ROWS)})
    for task in tasks:
        column = [cells.get((task, arm), (math.nan, math.nan)) for arm in ROWS]
        best = max((round(mean, 1) for mean, _ in column if not math.isnan(mean)), default=math.nan)
        frame[task] = [_cell(mean, error) for mean, error in column]
        bold[task] = [round(mean, 1) == best for mean, _ in column]
    return Table(frame, caption, bold)


def _cell(mean: float, error: float) -> str:
    if math.isnan(mean):
        return "-"
    return f"{mean:.1f}" if math.isnan(error) else f"{mean:.1f} ± {error:.1f}"
