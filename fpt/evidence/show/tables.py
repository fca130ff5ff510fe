"""Tables: results per sweep, a paper's table beside ours, claims and verdicts, yours beside the published."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fpt.evidence.attention import maps_of, scores
from fpt.evidence.cells import AT_PAPERS_RATE, CONFIRMATION, NOT_RUN, SELECTION, TUNED, Cell, every_study
from fpt.evidence.runs import find_study, load_runs, rate_text, sweeps_table
from fpt.evidence.show import text
from fpt.evidence.show.html import Table
from fpt.evidence.show.numbers import difference, interval, percent, points, title
from fpt.evidence.stats import mean_interval, paired
from fpt.evidence.verdicts import LEFT_OUT, Verdict, overall
from fpt.papers import claims
from fpt.sweeps.study import load_study

ByClaim = Mapping[str, Sequence[Verdict]]


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per sweep of `load_runs`: selected rate, how flat the optimum is, test accuracy with its 95% interval."""
    from fpt.sweeps.selection import select

    rows = []
    for (task, label, _), sweep in runs.groupby(["task", "label", "sweep"], sort=False):
        chosen = select(sweep[sweep["stage"] == SELECTION])
        confirmed = _confirmed(sweep)
        rows.append(
            {
                "task": task,
                "arm": label,
                "learning rate": "none eligible" if chosen.rate is None else rate_text(chosen.rate),
                "edge of grid": "yes" if chosen.at_edge else "",
                "within one SE": ", ".join(map(rate_text, chosen.within_one_se)),
                "test accuracy (95% interval)": _spread(confirmed),
                "seeds": int(confirmed.count()),
                "diverged runs": int(sweep["diverged_at"].notna().sum()),
            }
        )
    return pd.DataFrame(rows)


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
            "studies": "; ".join(f"{v.study}: {v.word}" for v in verdicts if v.study and v.word not in LEFT_OUT),
            "at the paper's rate": overall(others[name]) if others.get(name) else "",
            "claim": claims()[name].says,
            "where": claims()[name].where,
            "note": "; ".join(filter(None, dict.fromkeys(note for v in verdicts for note in v.note.split("; ")))),
        }
        for name, verdicts in found.items()
    ]
    return Table(pd.DataFrame(rows), caption, anchors="id")


def protocol_table(root: Path | None = None) -> pd.DataFrame:
    """What differs between the studies that have results: a row for every study, model, task and recipe."""
    rows = [
        {
            "study": study.name,
            "model": sweep.spec.backbone,
            "task": sweep.spec.task,
            "steps": f"{sweep.spec.steps:,}",
            "rates": ", ".join(map(rate_text, sweep.spec.learning_rates)),
            "seeds": f"{len(sweep.spec.selection_seeds)} + {len(sweep.spec.confirmation_seeds)}",
            "evaluations": f"{sweep.spec.evaluations} on {sweep.spec.evaluation_examples or 'all'}",
        }
        for study in every_study(root)
        for sweep in study.results.values()
    ]
    return pd.DataFrame(rows).drop_duplicates()


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
            rates = runs["selected_rate"].dropna().unique()
            row[f"{side} rate"] = rate_text(rates[0]) if len(rates) else "-"
            row[f"{side} accuracy"] = percent(_confirmed(runs).mean())
        test = paired(_confirmed(sides["your"]), _confirmed(sides["published"]))
        rows.append(row | {"difference": points(test.mean), "95% interval": interval(test)})
    return pd.DataFrame(rows).rename(columns={"label": "arm"})


def status_table(name: str) -> Table:
    """All that is known of a study's sweeps; a column with one value throughout is named in the caption."""
    study = find_study(name)
    known = sweeps_table(study).reindex(columns=list(STATUS))
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
    return Table(shown.drop(columns=same), f"{about} For every sweep: {words}.")


STATUS = {  # fields of result.json, and the columns that show them
    "sweep": "sweep", "steps": "steps", "status": "status", "runs": "runs", "diverged": "diverged",
    "wall_seconds": "seconds", "finished_utc": "finished", "hash": "hash", "version": "fpt", "git": "commit",
    "data_checksum": "data", "compute_type": "precision", "threads": "threads", "versions": "libraries",
}  # fmt: skip


def _commit(value: str) -> str:
    git = json.loads(value)
    return "" if git is None else git["commit"][:8] + (" + changes" if git["dirty"] else "")


def _confirmed(runs: pd.DataFrame) -> "pd.Series[float]":
    """By seed: test accuracy of the confirmation runs at the selected rate."""
    kept = runs[(runs["stage"] == CONFIRMATION) & runs["selected"].astype(bool)]
    return kept.drop_duplicates("seed").set_index("seed")["test_accuracy"].astype(float)
