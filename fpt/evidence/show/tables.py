"""Tables: results per sweep, a paper's table beside ours, claims and verdicts, yours beside the published."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fpt.evidence.attention import maps_of, scores
from fpt.evidence.cells import AT_PAPERS_RATE, NOT_RUN, TUNED, Cell, StudyCells, every_study
from fpt.evidence.runs import SweepTables, find_study, load_runs, rate_text, same_rate, sweeps_table
from fpt.evidence.show import text
from fpt.evidence.show.html import Table
from fpt.evidence.show.numbers import difference, interval, percent, points, title
from fpt.evidence.stats import mean_interval, paired
from fpt.evidence.verdicts import LEFT_OUT, Verdict, overall
from fpt.papers import claims, paper_of
from fpt.papers.schema import Table as PaperTable
from fpt.sweeps import selection
from fpt.sweeps.ledger import PUBLISHED
from fpt.sweeps.study import load_study

ByClaim = Mapping[str, Sequence[Verdict]]


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per sweep of `load_runs`: the rates that the seeds choose for each other, how flat the optimum is, and
    the tuned test accuracy with its 95% interval."""
    rows = []
    for (task, label, _), sweep in runs.groupby(["task", "label", "sweep"], sort=False):
        tuned = sweep[sweep["selected"].astype(bool)]
        flat = selection.within_one_se(selection.by_seed(sweep))
        rows.append(
            {
                "task": task,
                "arm": label,
                "learning rate": _chosen(tuned) or "none eligible",
                "edge of grid": "yes" if sweep["at_edge"].any() else "",
                "within one SE": ", ".join(map(rate_text, flat)),
                "test accuracy (95% interval)": _spread(tuned["test_accuracy"].astype(float)),
                "seeds": sweep["seed"].nunique(),
                "diverged runs": int(sweep["diverged_at"].notna().sum()),
            }
        )
    return pd.DataFrame(rows)


def _chosen(tuned: pd.DataFrame) -> str:
    """The rates that the seeds choose for each other, with their number of seeds where there are several."""
    counts = tuned["learning_rate"].value_counts().sort_index()
    several = len(counts) > 1
    return ", ".join(rate_text(rate) + (f" ({n} seed{'s' * (n > 1)})" if several else "") for rate, n in counts.items())


def steps_table(shown: PaperTable, studies: Sequence[StudyCells]) -> pd.DataFrame:
    """The gradient steps that the paper allows on the tasks of a table, and those of each study that stands in."""
    allowed = {task: int(fields["steps"]) for task, fields in paper_of(shown.paper).tasks.items()}
    rows = [(title(task), "the paper", "", "", f"{steps:,}", "") for task, steps in allowed.items()]
    for study in studies:
        for cells in study.by_task(shown).values():
            cell, spec = next((cell, cell.spec) for cell in cells.values() if cell.spec)
            share = f"{spec.steps / allowed[cell.stands_for[0]]:.2%}"
            grid = f"{len(cell.rates)} x {len(spec.seeds)}"
            rows.append((title(spec.task), study.name, spec.backbone, grid, f"{spec.steps:,}", share))
    return pd.DataFrame(rows, columns=["task", "of", "model", "rates x seeds", "steps", "share of the paper's"])


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
        base = {"claim": verdict.claim, "study": verdict.study, "scale": verdict.scale, "setting": verdict.setting}
        if not verdict.parts:
            untried.setdefault(verdict.note or verdict.word, []).append(verdict.claim)
        for part in verdict.parts:
            shown = {"task": title(part.task), "comparison": part.comparison, "verdict": part.word}
            shown["difference (95% interval)"] = difference(part)
            rate = "" if verdict.at == TUNED else "the paper's"
            note = "; ".join(filter(None, (part.note, part.seeds)))
            rows.append(base | {"rate": rate, **shown, "seeds": str(part.test.n or ""), "note": note})
    rows += [{"claim": ", ".join(dict.fromkeys(names)), "verdict": why} for why, names in untried.items()]
    return Table(pd.DataFrame(rows).fillna(""), caption)


def claims_table(found: ByClaim, others: ByClaim, caption: str = "") -> Table:
    """A row a claim with its anchor: the verdict over all studies, its scale, every study, and the other reading.

    `found` as the claim says, `others` at the paper's rate where it says tuned.
    """
    rows = [
        {
            "id": name,
            "verdict": overall(verdicts),
            "scale": text.scale_words(verdicts),
            "studies": "; ".join(f"{v.study}: {_of_study(v)}" for v in verdicts if v.study and v.word not in LEFT_OUT),
            "at the paper's rate": overall(others[name]) if others.get(name) else "",
            "claim": claims()[name].says,
            "where": claims()[name].where,
            "note": _notes(verdicts),
        }
        for name, verdicts in found.items()
    ]
    return Table(pd.DataFrame(rows), caption, anchors="id")


def _of_study(verdict: Verdict) -> str:
    """The word of one study, where it holds, and whether it was asked before."""
    return ", ".join(filter(None, [verdict.word, verdict.setting, verdict.asked]))


def _notes(verdicts: Sequence[Verdict]) -> str:
    """The notes of all studies, each with the studies that make it where not all do."""
    owners: dict[str, list[str]] = {}
    for verdict in verdicts:
        for note in filter(None, dict.fromkeys(verdict.note.split("; "))):
            owners.setdefault(note, []).append(verdict.study)
    every = len(verdicts)
    return "; ".join(note if len(by) == every else f"{', '.join(by)}: {note}" for note, by in owners.items())


def slips_table(found: Mapping[str, Verdict], caption: str = "") -> Table:
    """A row a claim that no run decides: how we read it, where it stands, the quotation, and what was computed or read.
    The ids lead to the page of all claims."""
    rows = [
        {"id": name, "as we read it": each.says, "where": each.where, "quotation": each.quote and f"“{each.quote}”",
         "what shows it": f"read: {verdict.note}" if each.documentary else verdict.note}
        for name, verdict in found.items()
        for each in [claims()[name]]
    ]  # fmt: skip
    return Table(pd.DataFrame(rows), caption, links=[f"claims.html#{name.lower()}" for name in found])


def protocol_table(root: Path | None = None) -> pd.DataFrame:
    """What differs between the studies that have results: a row for every study, model, task and recipe."""
    rows = [
        {
            "study": study.name,
            "model": sweep.spec.backbone,
            "task": sweep.spec.task,
            "steps": f"{sweep.spec.steps:,}",
            "rates": ", ".join(map(rate_text, sweep.spec.learning_rates)),
            "extended to": ", ".join(map(rate_text, _further(sweep))),
            "seeds": str(len(sweep.spec.seeds)),
            "evaluations": f"{sweep.spec.evaluations} on {sweep.spec.evaluation_examples or 'all'}",
            "tests": f"{sweep.spec.budget_examples or 'all'}, at the end {sweep.spec.test_examples or 'all'}",
        }
        for study in every_study(root)
        for sweep in study.results.values()
    ]
    return pd.DataFrame(rows).drop_duplicates()


def _further(sweep: SweepTables) -> list[float]:
    """The rates by which the grid was extended."""
    return [rate for rate in sweep.rates if not same_rate(sweep.spec.learning_rates, rate).any()]


def beside_published(study_folder: str | Path) -> pd.DataFrame:
    """The reader's results beside the published ones, per sweep; differences in points, paired by seed.

    Published results come from another machine: runs agree in distribution, not digit by digit.
    """
    own, published = (load_runs(study_folder, origin) for origin in ("own", "published"))
    rows = []
    for sweep in dict.fromkeys([*published["sweep"], *own["sweep"]]):
        sides = {side: runs[runs["sweep"] == sweep] for side, runs in (("your", own), ("published", published))}
        row = next(runs for runs in sides.values() if len(runs))[["task", "label"]].iloc[0].to_dict()
        for side, runs in sides.items():
            row[f"{side} rate"] = _chosen(runs[runs["selected"].astype(bool)]) or "-"
            row[f"{side} accuracy"] = percent(_tuned(runs).mean())
        test = paired(_tuned(sides["your"]), _tuned(sides["published"]))
        rows.append(row | {"difference": points(test.mean), "95% interval": interval(test)})
    return pd.DataFrame(rows).rename(columns={"label": "arm"})


def status_table(name: str) -> Table:
    """All that is known of a study's sweeps; a column with one value throughout is named in the caption.

    The names of published sweeps lead to their executed notebooks, which lie beside the built pages.
    """
    study = find_study(name)
    known = sweeps_table(study).reindex(columns=list(STATUS))
    notebooks = [Path("runs", name, PUBLISHED, sweep, "notebook.ipynb") for sweep in known["sweep"]]
    links = [f"../{path.as_posix()}" if (study.parents[1] / path).is_file() else "" for path in notebooks]
    known["hash"] = known["sweep"].str[-8:]
    known["sweep"] = known["sweep"].map({spec.folder_name: spec.title for spec in load_study(study).sweeps})
    known["wall_seconds"] = known["wall_seconds"].round()
    known["finished_utc"] = known["finished_utc"].str[:10]
    known["data_checksum"] = known["data_checksum"].str[:8]
    known["git"] = known["git"].map(_commit, na_action="ignore")
    known["versions"] = known["versions"].str.replace(r'[{}":]', "", regex=True)
    shown = known.rename(columns=STATUS)
    same = [column for column in shown.columns[1:] if shown[column].nunique() == 1]
    words = "; ".join(f"{column} {shown[column].dropna().iloc[0]}" for column in same)
    about = f"{text.whose(study)} Hash: how the name of the folder ends; data: checksum."
    return Table(shown.drop(columns=same), f"{about} For every sweep: {words}.", links=links)


STATUS = {  # fields of result.json, and the columns that show them
    "sweep": "sweep", "steps": "steps", "status": "status", "runs": "runs", "diverged": "diverged",
    "wall_seconds": "seconds", "finished_utc": "finished", "hash": "hash", "version": "fpt", "git": "commit",
    "data_checksum": "data", "compute_type": "precision", "threads": "threads", "versions": "libraries",
}  # fmt: skip


def _commit(value: str) -> str:
    git = json.loads(value)
    return "" if git is None else git["commit"][:8] + (" + changes" if git["dirty"] else "")


def _tuned(runs: pd.DataFrame) -> "pd.Series[float]":
    """By seed: test accuracy at the rate that the other seeds choose."""
    return runs[runs["selected"].astype(bool)].set_index("seed")["test_accuracy"].astype(float)
