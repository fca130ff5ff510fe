"""A table of results, a row a sweep."""

import pandas as pd

from fpt.results.runs import rate_text
from fpt.results.stats import mean_of, sampling_noise
from fpt.sweeps import selection


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
