"""Tables: results per sweep, a paper's table beside ours, claims and verdicts, yours beside the published."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fpt.evidence.attention import maps_of, scores
from fpt.evidence.cells import (
    AT_PAPERS_RATE,
    CONFIRMATION,
    NOT_AT_THIS_SCALE,
    NOT_RUN,
    SELECTION,
    TUNED,
    Cell,
    StudyCells,
)
from fpt.evidence.runs import find_study, load_runs, rate_text, studies, sweeps_table
from fpt.evidence.show import text
from fpt.evidence.show.figures import BUDGETS
from fpt.evidence.show.html import Table
from fpt.evidence.show.text import interval, percent, points, title
from fpt.evidence.stats import mean_interval, paired, sem
from fpt.evidence.verdicts import LEFT_OUT, Verdict, overall
from fpt.papers import Printed, claims, paper_of
from fpt.papers import Table as PaperTable
from fpt.sweeps.ledger import PUBLISHED
from fpt.sweeps.study import load_study

EDGE_MARK, DIVERGED_MARK, ABSENT = "†", "‡", "–"
GAP_COLUMNS = {  # both accuracies are those of the last step, as the train-mode one is
    "training": "train_accuracy_last",
    "training, as released": "train_accuracy_train_mode",
    "test": "test_accuracy_last",
}
WHAT = {
    "accuracy": "test accuracy in percent, mean ± standard error over seeds",
    "steps": "median over seeds of the first evaluated step at which validation accuracy reached the goal",
    "gap": "accuracy in percent after the last step, on training data without dropout, on training batches as the "
    "released code measures it, and on test data (the paper: training / test)",
}
Panels = Mapping[str, Mapping[str, Cell]]  # task -> row -> cell


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per sweep of `load_runs`: selected rate, how flat the optimum is, test accuracy with its 95% interval."""
    from fpt.sweeps.selection import select

    rows: list[dict[str, Any]] = []
    for (task, label, _), sweep in runs.groupby(["task", "label", "sweep"], sort=False):
        chosen = select(sweep[sweep["stage"] == SELECTION])
        confirmed = _confirmed(sweep)["test_accuracy"].astype(float)
        mean, low, high = mean_interval(confirmed)
        rows.append(
            {
                "task": task,
                "arm": label,
                "learning rate": "none eligible" if chosen.rate is None else rate_text(chosen.rate),
                "edge of grid": "yes" if chosen.at_edge else "",
                "within one SE": ", ".join(map(rate_text, chosen.within_one_se)),
                "test accuracy": percent(mean),
                "95% interval": "-" if math.isnan(low) else f"{percent(low)} to {percent(high)}",
                "seeds": int(confirmed.count()),
                "diverged runs": int(sweep["diverged_at"].notna().sum()),
            }
        )
    return pd.DataFrame(rows)


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
        row |= {"gain of the second half": points(gain.mean) or "-", "95% interval": interval(gain)}
        rows.append(row | {"still rises": "yes" if gain.low > 0 else "not shown"})
    return pd.DataFrame(rows)


def beside_paper(table: PaperTable, found: Sequence[StudyCells]) -> Table:
    """A paper's table: rows x tasks as the studies have them, tuned / at the paper's rate, then as it is printed.

    Every study, and every setup of it, has columns of its own: nothing is averaged over setups.
    """
    columns: dict[str, list[str]] = {"row": []}
    panels = {study.name: study.by_task(table) for study in found}
    columns["row"] = [_row_name(table, row, panels.values()) for row in table.rows]
    for study, tasks in panels.items():
        for task, cells in tasks.items():
            head = title(task) if len(found) == 1 else f"{title(task)} ({study})"
            columns |= {f"{head}{part}": column for part, column in _ours(table, cells).items()}
    run_here = dict.fromkeys(task for tasks in panels.values() for task in tasks)
    columns |= {f"{title(task)} (paper)": _printed(table, task) for task in run_here if any(_printed(table, task))}
    every = [cell for tasks in panels.values() for cells in tasks.values() for cell in cells.values()]
    return Table(pd.DataFrame(columns), _caption(table, every))


def printed_table(table: PaperTable, without: Sequence[str] = ()) -> Table:
    """The paper's numbers, but for the tasks `without`."""
    tasks = dict.fromkeys(task for row in table.rows.values() for task in row.printed if task not in without)
    labels = [paper_of(table.paper).label(row) for row in table.rows]
    columns = {"row": labels} | {title(task): _printed(table, task) for task in tasks}
    frame = pd.DataFrame(columns)
    frame = frame[(frame.drop(columns="row") != "").any(axis=1)]
    quoted = [
        f"{row} on {title(task)}: {printed.literature}"
        for row, entry in table.rows.items()
        for task, printed in entry.printed.items()
        if printed.literature and task in tasks
    ]
    from_others = f" Quoted from others: {'; '.join(quoted)}." if quoted else ""
    return Table(frame, f"{table.where or table.title}, as printed; ± is a standard error of the mean.{from_others}")


def _row_name(table: PaperTable, row: str, panels: Any) -> str:
    """The row as printed; a row without any sweep says so once, and not in every cell."""
    cells = [cells[row] for tasks in panels for cells in tasks.values() if row in cells]
    label = paper_of(table.paper).label(row)
    return label if any(cell.spec for cell in cells) else f"{label}: {NOT_AT_THIS_SCALE}"


def _ours(table: PaperTable, cells: Mapping[str, Cell]) -> dict[str, list[str]]:
    parts = {f": {part}": name for part, name in GAP_COLUMNS.items()} if table.kind == "gap" else {"": ""}
    steps = [cell.spec.steps for cell in cells.values() if cell.spec]
    usual = max(steps, key=steps.count, default=0)
    return {
        part: [_cell(cells[row], column, usual) if row in cells else ABSENT for row in table.rows]
        for part, column in parts.items()
    }


def _cell(cell: Cell, column: str, usual: int) -> str:
    """Both readings, once where they are the same; with the steps, where they are not the `usual` ones."""
    if cell.problem or cell.spec is None:
        return NOT_RUN if cell.problem == NOT_RUN else ABSENT
    readings = [_reading(cell, at, column) for at in (TUNED, AT_PAPERS_RATE) if at == TUNED or len(cell.values(at))]
    words = " / ".join(dict.fromkeys(readings))
    return words if cell.spec.steps == usual else f"{words} ({cell.spec.steps:,} steps)"


def _reading(cell: Cell, at: str, column: str) -> str:
    """One number of a cell with its standard error, marked where its rate ends the grid or a run diverged."""
    if at == TUNED and cell.best_rate is None:
        return "diverged"
    marks = EDGE_MARK * (at == TUNED and cell.at_edge) + DIVERGED_MARK * bool(cell.diverged(at))
    if column:
        return percent(cell.at(at).reindex(columns=[column])[column].astype(float).mean()) + marks
    middle, error = text.middle(cell, at), sem(cell.values(at)) if cell.table.kind == "accuracy" else math.nan
    around = "" if math.isnan(error) else f" ± {100 * error:.1f}"
    return text.number(cell, middle) + (around + marks if math.isfinite(middle) else "")


def _printed(table: PaperTable, task: str) -> list[str]:
    return [printed_text(row.printed.get(task)) for row in table.rows.values()]


def printed_text(printed: Printed | None) -> str:
    """A number as the paper prints it, with its mark and its standard error."""
    if printed is None or printed.value is None:
        return ""
    values = printed.value if isinstance(printed.value, tuple) else (printed.value,)
    digits = "g" if printed.sem is None else ".1f"
    shown = [each if isinstance(each, str) else format(each, ",.0f" if each >= 500 else digits) for each in values]
    error = "" if printed.sem is None else f" ± {printed.sem:.1f}"
    return " / ".join(shown) + printed.mark + error


def _caption(table: PaperTable, cells: Sequence[Cell]) -> str:
    tried = [cell for cell in cells if not cell.problem]
    words = [f"{table.where or table.title}: {WHAT.get(table.kind, '')}."]
    if any(cell.papers_rate is not None for cell in tried):
        words.append(
            f"Tuned / at the paper's rate ({text.papers_rates(tried)}); one number: the same, or not run at it."
        )
    goals = {title(c.task): f"{100 * c.spec.threshold:g}%" for c in tried if c.spec and c.spec.threshold}
    if table.kind == "steps" and goals:
        words.append(f"Thresholds: {', '.join(f'{task} {goal}' for task, goal in goals.items())}.")
    words += [f"{ABSENT}: no sweep of the study."] if any(cell.spec is None for cell in cells) else []
    words += [f"{EDGE_MARK} the tuned rate ends the grid."] if any(cell.at_edge for cell in tried) else []
    if any(cell.diverged(at) for cell in tried for at in (TUNED, AT_PAPERS_RATE)):
        words.append(f"{DIVERGED_MARK} runs diverged there; their last finite accuracy counts.")
    return " ".join(words)


def attention_table(cells: Mapping[str, Cell], caption: str) -> Table:
    """Attention on the needed tokens in percent of all: after training at both rates, before it, and by chance."""
    rows = []
    for cell in cells.values():
        if maps_of(cell).empty:
            rows.append({"weights": cell.label, TUNED: cell.problem or "not measured"})
            continue
        after, before = scores(maps_of(cell)), scores(maps_of(cell, trained=False))
        at_paper = maps_of(cell, AT_PAPERS_RATE)
        line = {"weights": cell.label, TUNED: _spread(after["mass"])}
        line[f"at {text.papers_rates([cell])}"] = _spread(scores(at_paper)["mass"]) if len(at_paper) else NOT_RUN
        line |= {"untrained": _spread(before["mass"]), "even spread": percent(before["chance"].mean())}
        if after["lead"].notna().any():
            line |= {"least lead": _spread(after["lead"]), "least lead, untrained": _spread(before["lead"])}
        rows.append(line)
    return Table(pd.DataFrame(rows).fillna(""), caption)


def _spread(values: "pd.Series[float]") -> str:
    mean, low, high = mean_interval(values)
    return percent(mean) if math.isnan(low) else f"{percent(mean)} ({percent(low)} to {percent(high)})"


def verdict_table(verdicts: Sequence[Verdict], caption: str = "") -> Table:
    """A row a comparison of a claim; claims that no study can decide share the last rows."""
    rows, untried = [], dict[str, list[str]]()  # why not -> claims
    for verdict in verdicts:
        base = {"claim": verdict.claim, "study": verdict.study, "setting": verdict.setting}
        if not verdict.parts:
            untried.setdefault(verdict.note or verdict.word, []).append(verdict.claim)
        for part in verdict.parts:
            shown = {"task": title(part.task), "comparison": part.comparison, "verdict": part.word}
            shown["difference (95% interval)"] = text.difference(part)
            rate = "" if verdict.at == TUNED else "the paper's"
            note = "; ".join(filter(None, (part.note, part.seeds)))
            rows.append(base | {"rate": rate, **shown, "seeds": str(part.test.n or ""), "note": note})
    rows += [{"claim": ", ".join(dict.fromkeys(names)), "verdict": why} for why, names in untried.items()]
    return Table(pd.DataFrame(rows).fillna(""), caption)


def claims_table(
    found: Mapping[str, Sequence[Verdict]], others: Mapping[str, Sequence[Verdict]], caption: str = ""
) -> Table:
    """A row a claim with its anchor: the verdict over all studies, its scale, every study, and the other reading.

    `found` and `others`: claim -> verdicts, as the claim says, and at the paper's rate where it says tuned.
    """
    rows = [
        {
            "id": name,
            "verdict": overall(verdicts),
            "scale": text.scale_words(verdicts),
            "studies": "; ".join(f"{v.study}: {v.word}" for v in verdicts if v.study and v.word not in LEFT_OUT),
            "at the paper's rate": overall(others[name]) if others.get(name) else "",
            "claim": claims()[name].says,
            "where": claims()[name].where,
            "note": "; ".join(dict.fromkeys(note for v in verdicts for note in v.note.split("; "))),
        }
        for name, verdicts in found.items()
    ]
    return Table(pd.DataFrame(rows), caption, anchors="id")


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
                "95% interval": interval(test),
            }
        )
    return pd.DataFrame(rows)


def status_table(name: str) -> Table:
    """All that is known of a study's sweeps; a column with one value throughout is named in the caption."""
    known = sweeps_table(find_study(name)).reindex(columns=list(STATUS))
    titles = {spec.folder_name: spec.title for spec in load_study(find_study(name)).sweeps}
    known["hash"] = known["sweep"].str[-8:]
    known["sweep"] = known["sweep"].map(titles)
    known["wall_seconds"] = known["wall_seconds"].round()
    for column, length in (("finished_utc", 10), ("data_checksum", 8)):
        known[column] = known[column].str[:length]
    known["git"] = known["git"].map(_commit, na_action="ignore")
    known["versions"] = known["versions"].map(_libraries, na_action="ignore")
    shown = known.rename(columns=STATUS)
    same = [column for column in shown.columns[1:] if shown[column].nunique() == 1]
    words = "; ".join(f"{column} {shown[column].dropna().iloc[0]}" for column in same)
    about = f"{text.whose(find_study(name))} Hash: how the name of the folder ends; data: checksum."
    return Table(shown.drop(columns=same), f"{about} For every sweep: {words}.")


STATUS = {  # fields of result.json, and the columns that show them
    "sweep": "sweep", "steps": "steps", "status": "status", "runs": "runs", "diverged": "diverged",
    "wall_seconds": "seconds", "finished_utc": "finished", "hash": "hash", "version": "fpt", "git": "commit",
    "data_checksum": "data", "compute_type": "precision", "threads": "threads", "versions": "libraries",
}  # fmt: skip


def _commit(value: str) -> str:
    git = json.loads(value)
    return "" if git is None else git["commit"][:8] + (" + changes" if git["dirty"] else "")


def _libraries(value: str) -> str:
    return " ".join(f"{name} {number}" for name, number in json.loads(value).items())


def _confirmed(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[(runs["stage"] == CONFIRMATION) & runs["selected"].astype(bool)]


def _by_seed(runs: pd.DataFrame) -> "pd.Series[float]":
    return runs.drop_duplicates("seed").set_index("seed")["test_accuracy"].astype(float)


def _rate(runs: pd.DataFrame) -> str:
    rates = runs["selected_rate"].dropna().unique()
    return rate_text(float(rates[0])) if len(rates) else "-"
