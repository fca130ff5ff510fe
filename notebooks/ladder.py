# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,mystnb,-all
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Baselines and the ladder of ListOps
#
# What can be had without learning much, counted on the data: always naming the commonest class, a logistic regression
# on the pixels, and for ListOps a ladder of exact readers that understand more and more of a list. The defaults need
# no download and take seconds. With `output` the numbers are written where pages and verdicts read them:
#
# ```sh
# papermill notebooks/ladder.ipynb out.ipynb -p output fpt/evidence/baselines.json \
#     -y 'tasks: [digits, digits-lra, mnist, cifar10, cifar10-lra, listops-short, listops, listops:released]'
# ```
#
# MNIST and CIFAR-10 are downloaded then, and long lists generated.

# %% tags=["parameters"]
tasks = ["digits", "digits-lra", "listops-short"]  # task, or task:variant
options = {  # lists from which the lookup tables are made, and lists for each of validation and test
    "listops": {"train": 80_000, "heldout": 10_000},
    "listops-short": {"train": 20_000, "heldout": 10_000},
}
data_dir = None  # else $FPT_DATA, else ~/.cache/fpt
output = ""  # a path to write to; empty: nothing is written

# %%
from dataclasses import asdict
from pathlib import Path

import pandas as pd

import fpt
from fpt.evidence import baseline_scores, counted, linear_score
from fpt.evidence.baselines import LINEAR, Score, lines, write
from fpt.evidence.ladder import left

PIXELS = ("digits", "mnist", "cifar10")


def shown(found):
    """Percent with Wilson's 95% interval, a row a line."""
    rows = []
    for line in found:
        low, high = Score(line.share, line.of).interval
        share = f"{100 * line.share:.2f}% ({100 * low:.2f} to {100 * high:.2f})"
        rows.append({"task": line.task, "variant": line.variant, "what": line.what, "share": share, "of": line.of})
    return pd.DataFrame(rows)


# %% [markdown]
# ## Accuracies
#
# On the test examples of seed 0, with what was learned from its training examples.

# %%
scores, remains = [], []
for name in tasks:
    task, _, variant = name.partition(":")
    chosen = {"variant": variant or "paper", "data_dir": data_dir, **options.get(task, {})}
    loaded = fpt.tasks.load(task, **chosen)
    found = baseline_scores(task, **chosen)
    if task.startswith(PIXELS):
        found[LINEAR] = linear_score(task, data_dir)
    scores += lines(loaded, found)
    if task.startswith("listops") and not variant:
        remains += lines(loaded, left(loaded))
shown(scores)

# %% [markdown]
# ## What dropping the brackets and cutting the lists leaves
#
# As the released code of Lu et al. does. *Right* is what a reader gets who evaluates what is left as it stands: where
# brackets are lost every nested list runs to the end of the text, and where the end is lost all open lists end there.
# *Certain* lists have one possible answer, whatever is missing.

# %%
shown(remains)

# %%
if output:
    write(Path(output), scores, remains)

# %%
# What must hold at any scale (nbval runs this).
for name in {line.task for line in scores if line.task.startswith("listops") and line.variant == "paper"}:
    ladder = [line.share for line in scores if line.task == name and line.what.startswith("exact")]
    assert ladder == sorted(ladder), name
    assert ladder[-1] == 1, name
# What was published is what comes out, wherever the same was counted on the same data.
fresh = {(line.task, line.variant, line.what, line.data_checksum): asdict(line) for line in scores + remains}
published = {
    (line.task, line.variant, line.what, line.data_checksum): asdict(line) for line in counted() + counted("left")
}
for key in fresh.keys() & published.keys():
    assert abs(fresh[key]["share"] - published[key]["share"]) <= (0.005 if LINEAR in key else 0), key
print(f"{len(fresh.keys() & published.keys())} of {len(fresh)} lines were published before, and are the same.")
