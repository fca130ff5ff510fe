# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,mystnb,-all
#     formats: ipynb,py:percent
#     notebook_metadata_filter: jupytext,kernelspec,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # An audit without our code
#
# A word of the book comes from runs by way of contrasts (`contrasts.csv`) and of what claims make of them
# (`claims.csv`). This notebook goes that way again with pandas, NumPy and SciPy, and imports nothing of ours. It takes
# twenty contrasts, at equal distances in the file so that nobody chose them, and computes them from `result.json` and
# the parquet files. Then it derives every word from the two files. `runs/README.md` says what the columns mean.

# %% tags=["parameters"]
runs = "runs"  # from the folder above, or from this one
how_many = 20

# %%
import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

runs = next((place for place in (Path(runs), Path("..", runs)) if place.is_dir()), Path(runs))
contrasts, claims = (pd.read_csv(runs / f"{name}.csv", dtype={"id": str}) for name in ("contrasts", "claims"))
COLLECTIONS = {"digits": 1797, "digits-lra": 1797}  # images of which each seed tests a part, on these tasks alone
COMPARED = ["seeds", "estimate", "seed_variance", "test_variance", "low", "high"]

# %% [markdown]
# ## From runs to contrasts
#
# A seed's rate is the one with the best mean validation accuracy over the *other* seeds, so no run chooses for itself.
# A rate at which another seed diverged is not chosen. A mean difference has two variances. That of the seeds is their
# spread's, or where it is larger that of a jackknife, which chooses all rates anew without each seed: one seed may move
# the rates of all others. The other is p (1 - p) / m of each accuracy p on the m images that all seeds share; there is
# none on training data, and where each seed has images made for it. Ratios of rates and steps, losses and attention are
# not done here.


# %%
def plane(rows, name):
    return rows.pivot(index="seed", columns="learning_rate", values=name)


@cache
def read(study, sweep):
    folder = runs / study / "published" / sweep
    tables = [pd.read_parquet(folder / f"{name}.parquet") for name in ("runs", "curves")]
    return json.loads((folder / "result.json").read_text()), *tables


def values(study, sweep, of, at, budget, without):
    """The quantity `of` by seed, at a rate or tuned, and its variance by images that all seeds share; `without`: of all
    seeds but this one."""
    record, end, curves = read(study, sweep)
    end, curves = (table[table["seed"] != without] for table in (end, curves))
    lost = plane(end, "diverged_at").le(budget).fillna(False).astype(bool)
    validation, test = plane(end, "validation_accuracy").mask(lost), plane(end, "test_accuracy")
    if budget < record["spec"]["steps"]:  # a run at a constant rate holds every shorter one
        until = curves[curves["step"] <= budget].groupby(["seed", "learning_rate"])["validation_accuracy"].max()
        validation = until.unstack().mask(lost)
        test = plane(curves[curves["step"] == budget], "test_accuracy").fillna(test.where(lost))
    means = {seed: validation.drop(seed).mean(skipna=False).round(12) for seed in validation.index}
    rates = {seed: mean.idxmax() if at == "tuned" else float(at) for seed, mean in means.items()}
    if of == "training accuracy":
        test = plane(end, "train_accuracy_last")
    at_own = pd.Series({seed: test.at[seed, rate] for seed, rate in rates.items()})
    fresh = record["test"]["drawn_by_seed"] or of == "training accuracy"
    size = COLLECTIONS.get(record["spec"]["task"], np.inf if fresh else record["test"]["size"])
    images = 0 if of == "training accuracy" else at_own.mean() * (1 - at_own.mean()) / size
    return at_own, images


def difference(row, without=None):
    """By seed, in points, and its variance by images."""
    ats, points, images = (row.at.split(" and ") * 2)[:2], 0.0, 0.0
    for sign, at, side in ((1, ats[0], row.first), (-1, ats[1], row.second)):
        sweeps = side.split(" + ") if isinstance(side, str) else []
        for sweep in dict.fromkeys(sweeps):
            by_seed, of_images = values(row.study, sweep, row.of, at, row.budget, without)
            times = sweeps.count(sweep)
            points, images = points + sign * times * 100 * by_seed, images + times**2 * 1e4 * of_images
    return points.dropna(), images


def computed(row):
    """What is compared of a contrast, in points."""
    points, images = difference(row)
    left_out = [difference(row, seed)[0].mean() for seed in points.index]
    mean, seeds = points.mean(), max(points.var() / len(points), (len(points) - 1) * np.var(left_out))
    reach = stats.t.ppf(0.975, len(points) - 1) * np.sqrt(seeds + images)
    return pd.Series([len(points), mean, seeds, images, mean - reach, mean + reach], COMPARED)


accuracies = contrasts[contrasts["of"].isin(["test accuracy", "training accuracy"]) & contrasts["df"].notna()]
accuracies = accuracies[~accuracies["second"].str.contains("linear|printed", na=False)]  # a score, and no sweep
chosen = accuracies.iloc[:: len(accuracies) // how_many]
again = pd.DataFrame([computed(row) for row in chosen.itertuples()], index=chosen.index)
shown = chosen[["study", "of", "at", "budget", "estimate", "low", "high"]]
print(shown.join(again[["estimate", "low", "high"]].add_suffix(" here")).round(2).to_string(index=False))

# %% [markdown]
# ## From contrasts to words
#
# A contrast is *for* a claim if it lies between the claim's limits, and *against* if it lies outside. Most p-values at
# the limits follow from the contrast alone. Others are 1 because an end of the grid bounds nothing, or are those of
# a search over rates, budgets or steps. On a pair all contrasts of a claim must be for it; one suffices against it.
# Over k pairs, one has to survive Bonferroni's correction; *all*, *most* and *some* ask for as many as they say.

# %%
rows = claims.merge(contrasts.drop(columns=["planned", "digest"]), on="id").fillna({"claim": "", "finding": ""})
error, middle = np.sqrt(rows["seed_variance"] + rows["test_variance"]), rows["sign"] * rows["estimate"]
above = stats.t.sf((middle - rows["least"]) / error, rows["df"])
below = stats.t.cdf((middle - rows["most"]) / error, rows["df"])
expected = np.minimum(1, np.where(rows["sided"] == "one", 1, 2) * np.maximum(above, below))
follows = np.isclose(rows["p_for"], expected, rtol=1e-6) | (rows["p_for"] == 1) | rows["df"].isna()
searching = set(rows.loc[~follows, "claim"]) - {""}
print(f"p-values follow from one contrast in {follows.sum()} of {len(rows)} rows; {sorted(searching)} search")


def word_of(rows, quantifier):
    """The word of a claim, with the counts, from its rows that speak."""
    of_pair = rows.groupby("pair").agg({"p_for": "max", "p_against": "min", "id": "size", "lacking": "count"})
    p_for, k = of_pair["p_for"].mask(of_pair["lacking"] > 0, 1), len(of_pair)
    p_against = of_pair["p_against"] * of_pair["id"]
    needed = {"all": (k, 1), "most": (k // 2 + 1, k - k // 2), "some": (1, k)}.get(quantifier, (1, 1))
    both = zip((p_for, p_against), needed, strict=True)  # of all k, each is read without a correction
    said = tuple(sorted(p)[least - 1] * (1 if least == k else k) < 0.05 for p, least in both)
    words = {(True, True): "mixed", (True, False): "holds here", (False, True): "does not hold here"}
    n_for, n_against = (p_for < 0.05).sum(), (p_against < 0.05).sum()
    return words.get(said, "too close to call"), f"{n_for} for, {n_against} against, {k - n_for - n_against} open"


speaking = rows[(rows["role"] == "speaks") & rows["pair_word"].notna()].groupby(["claim", "finding"])
summaries = claims[claims["id"].isna()].fillna({"claim": "", "finding": ""}).set_index(["claim", "finding"])
found = {key: word_of(mine, summaries["quantifier"][key]) for key, mine in speaking}
words = summaries.loc[list(found), ["word", "note"]]
words[["word here", "counts here"]] = list(found.values())
print(words["word"].value_counts().to_string())

# %%
# What must hold (nbval runs this).
np.testing.assert_allclose(again[COMPARED], chosen[COMPARED], rtol=1e-6, atol=1e-9)
assert len(chosen) >= how_many
assert chosen["study"].nunique() >= 8
assert searching <= {"P-01", "P-02", "R-12", "R-13", "R-31"}  # the rules that search
assert (words["word here"] == words["word"]).all()
assert all(note.startswith(counts) for note, counts in zip(words["note"], words["counts here"], strict=True))
assert not {"holds here", "does not hold here", "mixed"} & set(summaries.drop(index=words.index)["word"])
