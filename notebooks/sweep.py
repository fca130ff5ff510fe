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
# # One sweep
#
# One task and one arm. Every learning rate of the grid is trained with every seed. The tuned rate of a seed is the
# one with the best mean validation accuracy over the *other* seeds, so no run takes part in choosing its own rate.
# The grid is extended where a tuned rate is its end. Runs are tested at several budgets of steps.
#
# The defaults below train a few steps into a fresh temporary folder: they show that everything works, and say
# nothing about the question. `fpt run` executes this notebook with papermill, once for each sweep of a study.

# %% tags=["parameters"]
task = "digits"
variant = "paper"
task_options = {}
backbone = "tiny-lm"
backbone_options = {}
arm = "frozen-pretrained"  # or <trainable>-<init>, such as output-random
random_init = "matched"
random_gain = 1.0
input_init = "orthogonal"
rank = 8  # of adapters (lora-pretrained and its like), as are alpha, targets and zero
alpha = 32.0
targets = "both"  # or attention, feed_forward
zero = "B"  # or A: the matrix that starts from zeros
pretrained_by = None  # the folder name of a sweep of the same study that kept its weights
measures = []  # any of adapter, answers, attention, weights, windows
data_fraction = 1.0  # of the training examples
shuffle_tokens = False
learning_rates = [1e-3, 1e-2]
seeds = [0, 1]
extend = 0  # at most so many further rates at each end of the grid
solver = "adamw"  # or logistic: a probe, whose rates are strengths
probe = None  # strength of the probe from which the output layer starts
steps = 3
batch_size = 8
clip = 1.0
warmup = 0.0  # share of the steps
schedule = "constant"  # or cosine, to a tenth of the rate
head_rate = None  # of the input and output layers; None: that of the rest
weight_decay = 0.0
dropout = 0.1
evaluations = 3
report = "best"  # or last: whose parameters are the results
evaluation_examples = 20  # None: all
budget_examples = 20  # None: all
test_examples = 20  # None: all
compute_type = "auto"
folder = None  # runs/<study>/<sweep>; None: a fresh temporary folder

# %%
import fpt

spec = fpt.sweeps.parameters_to_spec(globals())
print(spec.folder_name)

# %% [markdown]
# ## The model
#
# Parameters by group: which of them this arm trains, and which it keeps frozen. Tables of the library's model
# that the new input layer replaces are counted as unused.

# %%
place = fpt.sweeps.results_folder(folder)
prepared = fpt.sweeps.prepare(spec, study=place and place.parent)
prepared.template.report()

# %% [markdown]
# ## The runs
#
# A folder that already holds this sweep's results is read, and nothing is trained again.

# %%
result = fpt.sweeps.run_sweep(spec, place, prepared=prepared)
runs, curves = result.runs, result.curves

# %% [markdown]
# Every learning rate was trained with every seed, and every run was evaluated at every evaluation step.

# %%
keys = ["learning_rate", "seed"]

assert result.info["hash"] == spec.hash
assert set(result.info["grid"]) >= set(spec.learning_rates)
assert len(runs) == len(result.info["grid"]) * len(spec.seeds)
assert set(runs["learning_rate"]) == set(result.info["grid"])
assert not runs.duplicated(keys).any()
assert set(curves["step"]) == set(spec.evaluation_steps())
assert set(curves[keys].itertuples(index=False)) == set(runs[keys].itertuples(index=False))
assert runs["test_accuracy"].dropna().between(0, 1).all()

# %% [markdown]
# Mean accuracies over seeds, in percent; `diverged` counts runs that turned non-finite, `chosen` the seeds whose tuned
# rate this is.

# %%
accuracies = ["validation_accuracy", "train_accuracy", "test_accuracy", "test_accuracy_last"]
by_rate = runs.groupby("learning_rate")
table = by_rate[accuracies].mean().mul(100).round(1)
table["seeds"], table["diverged"] = by_rate["seed"].count(), by_rate["diverged_at"].count()
table["chosen"] = [list(result.info["choices"].values()).count(rate) for rate in table.index]
table

# %%
from fpt.results.runs import arm_alone, tidy
from fpt.show.figures import learning_rate_figure
from fpt.show.html import CaptionedFigure

caption = "Every run of this sweep, at its last step. A mark is a run, the line goes through the means."
CaptionedFigure(learning_rate_figure(tidy(arm_alone(spec, result.folder, result.info), "runs")), caption)

# %% [markdown]
# ## Where this comes from

# %%
provenance = [
    "hash",
    "grid",
    "selected_rate",
    "at_edge",
    "within_one_se",
    "compute_type",
    "threads",
    "device",
    "version",
    "git",
]
{name: result.info[name] for name in provenance}
