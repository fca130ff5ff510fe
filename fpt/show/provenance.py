"""How results came about, as tables: the recipes of studies, and the record of every sweep."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from fpt.results.arm import Arm, Origin, same_rate
from fpt.results.cells import StudyCells
from fpt.results.runs import rate_text, study_of, sweeps_table
from fpt.show.html import Table
from fpt.sweeps.study import Study
from fpt.sweeps.words import title

RECORD = {  # of sweeps_table, and the columns that show it
    "sweep": "sweep", "steps": "steps", "status": "status", "runs": "runs", "diverged": "diverged",
    "wall_seconds": "seconds", "finished_utc": "finished", "hash": "hash", "version": "fpt", "commit": "commit",
    "data_checksum": "data", "compute_type": "precision", "threads": "threads",
    "wide_products": "MKL wide products", "versions": "libraries",
}  # fmt: skip


def recipe_table(studies: Iterable[StudyCells]) -> pd.DataFrame:
    """What was run, and what differs between studies: a row for every study, model, task and recipe with results."""
    rows = [
        {
            "study": study.name,
            "model": arm.fields["backbone"],
            "task": arm.task,
            "arms": arm.name,
            "steps": f"{arm.steps:,}",
            "rates": ", ".join(map(rate_text, arm.fields["learning_rates"])),
            "extended to": ", ".join(map(rate_text, _further(arm))),
            "seeds": str(arm.seeds),
            "evaluations": f"{arm.recipe.evaluations}, each on {arm.recipe.evaluation_examples or 'all'} examples",
            "tests": f"{arm.recipe.budget_examples or 'all'} at a budget, {arm.recipe.test_examples or 'all'} at last",
        }
        for study in studies
        for arm in study.results.values()
    ]
    recipes = pd.DataFrame(rows).drop_duplicates()
    keys = [name for name in recipes if name != "arms"]
    return recipes.groupby(keys, sort=False)["arms"].agg(", ".join).reset_index() if rows else recipes


def _further(arm: Arm) -> list[float]:
    """The rates by which a grid was extended."""
    return [rate for rate in arm.rates if not same_rate(arm.fields["learning_rates"], rate).any()]


def record_table(study_folder: Path | Study, origin: Origin | None = None) -> Table:
    """All that is known of a study's sweeps, a row each; a column with one value throughout is named in the caption.

    Origins as in `load_runs`.
    """
    study = study_of(study_folder)
    known = sweeps_table(study, origin).reindex(columns=list(RECORD))
    known["hash"] = known["sweep"].str[-8:]
    known["sweep"] = known["sweep"].map({spec.folder_name: title(spec) for spec in study.sweeps})
    # Where nothing ran, values are missing: of some sweeps, or of all.
    counts, words = ["runs", "diverged", "threads", "wall_seconds"], ["finished_utc", "data_checksum", "versions"]
    known[counts] = known[counts].astype(float).round().astype("Int64")
    known[words] = known[words].astype("string")
    known["finished_utc"] = known["finished_utc"].str[:10]
    known["data_checksum"] = known["data_checksum"].str[:8]
    # Results from before fpt 0.4 do not tell.
    told = known["wide_products"].map({True: "on", False: "off"}).astype("string")
    known["wide_products"] = told.mask(told.isna() & known["finished_utc"].notna(), "not recorded")
    known["versions"] = known["versions"].str.replace(r'[{}":]', "", regex=True)
    shown = known.rename(columns=RECORD)
    same = [column for column in shown.columns[1:] if shown[column].nunique() == 1]
    values = "; ".join(f"{column} {shown[column].dropna().iloc[0]}" for column in same)
    every = "every finished sweep" if shown[same].isna().any(axis=None) else "every sweep"
    about = "Hash: how the name of the folder ends; data: checksum."
    return Table(shown.drop(columns=same), f"{about} For {every}: {values}.")
