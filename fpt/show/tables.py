"""Tables of any study: its results, its recipes, the record of every sweep, and a reader's own numbers beside ours."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from fpt.results.arm import Arm, Origin, same_rate
from fpt.results.cells import StudyCells
from fpt.results.runs import arms_in, rate_text, study_of, sweeps_table
from fpt.results.stats import mean_of, paired, sampling_noise
from fpt.show.html import Table
from fpt.sweeps import selection
from fpt.sweeps.study import Study
from fpt.sweeps.words import title

RECORD = {  # of sweeps_table, and the columns that show it
    "sweep": "sweep", "steps": "steps", "status": "status", "runs": "runs", "diverged": "diverged",
    "wall_seconds": "seconds", "finished_utc": "finished", "hash": "hash", "version": "fpt", "commit": "commit",
    "data_checksum": "data", "compute_type": "precision", "threads": "threads",
    "wide_products": "MKL wide products", "versions": "libraries",
}  # fmt: skip
YOURS = (
    "Tuned test accuracy in percent, and yours minus published in points (95% interval over paired seeds). Another "
    "processor changes the last digits, and training enlarges them: where the interval holds 0, the two agree. Where "
    "two rates are nearly as good, yours may choose the other; then compare at one rate."
)


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per sweep of `load_runs`: the rates that the seeds choose for each other, how flat the optimum is, and
    the tuned test accuracy with its 95% interval; a run that was never finite counts as chance."""
    rows = []
    for (task, name, _), sweep in runs.groupby(["task", "name", "sweep"], sort=False):
        tuned = sweep[sweep["selected"].astype(bool)]
        accuracy = tuned.set_index("seed")["test_accuracy"].fillna(sweep["guessing"].iloc[0])
        validation = selection.by_seed(sweep)
        plane = sweep.pivot(index="seed", columns="learning_rate", values="test_accuracy")
        without = selection.tuned_without(validation, plane.fillna(sweep["guessing"].iloc[0]))
        noise = sampling_noise(float(accuracy.mean()), sweep["sampled_from"].iloc[0])
        rows.append(
            {
                "task": task,
                "arm": name,
                "learning rate": rates_in_words(tuned),
                "edge of grid": "yes" if sweep["at_edge"].any() else "",
                "within one SE": ", ".join(map(rate_text, selection.within_one_se(validation))),
                "test accuracy (95% interval)": mean_of(accuracy, noise, without).in_percent.within(0, 100).cell,
                "seeds": sweep["seed"].nunique(),
                "diverged runs": int(sweep["diverged_at"].notna().sum()),
            }
        )
    return pd.DataFrame(rows)


def rates_in_words(tuned: pd.DataFrame) -> str:
    """What `chosen` gives; of a probe, whose rates are strengths of its logistic regression, it says so."""
    what = "strength " if (tuned["solver"] == "logistic").any() else ""
    return what + chosen(tuned["learning_rate"]) if len(tuned) else "none eligible"


def chosen(rates: "pd.Series[float]") -> str:
    """The rates that the seeds choose for each other, with their number of seeds where there are several."""
    counts = rates.value_counts().sort_index()
    several = len(counts) > 1
    return ", ".join(rate_text(rate) + (f" ({n} seed{'s' * (n > 1)})" if several else "") for rate, n in counts.items())


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


def yours_beside_ours(study: StudyCells) -> pd.DataFrame:
    """A row a sweep that has both own and published results; no row where there are none.

    Runs are paired by seed. `equal seeds`: how many have the same accuracy to the last digit. Where all do, or where
    there are fewer than three, the difference has no interval.
    """
    published = arms_in(study.folder, "published")
    own = arms_in(study.folder, "own") if published else {}
    both = [(arm, published[sweep]) for sweep, arm in own.items() if sweep in published]
    return pd.DataFrame([{"task": arm.task, "arm": arm.name, **_own_and_published(arm, ours)} for arm, ours in both])


def yours_table(study: StudyCells) -> Table | None:
    """The same for a page; None where there are no own results beside published ones."""
    rows = yours_beside_ours(study)
    return None if rows.empty else Table(rows, YOURS)


def _own_and_published(own: Arm, published: Arm) -> dict[str, str]:
    row: dict[str, str] = {}
    tuned = {"your": own.values(), "published": published.values()}
    for whose, arm in (("your", own), ("published", published)):
        row[f"{whose} rate"] = chosen(arm.choices()) or "-"
        row[f"{whose} accuracy"], _ = mean_of(tuned[whose]).in_percent.texts()
    test = paired(tuned["your"], tuned["published"], without=own.without() - published.without())
    apart = (tuned["your"] - tuned["published"]).dropna()
    alone, _ = mean_of(apart).in_points.texts(signed=True)
    row["difference"] = test.in_points.cell if test.by_seed and not test.flips else alone
    return row | {"equal seeds": f"{int((apart == 0).sum())} of {len(apart)}"}
