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
# # One sweep
#
# One task and one arm. First every learning rate of the grid is trained with the selection seeds, and the
# rate with the best mean validation accuracy is selected. Then fresh seeds confirm it, at the selected rate
# and at the reference rates. Reported numbers come from the confirmation runs.
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
pretrained_by = None  # the folder name of a sweep of the same study that kept its weights
measures = []  # any of attention, train-mode, weights
learning_rates = [1e-3, 1e-2]
selection_seeds = [0]
confirmation_seeds = [10]
reference_rates = [1e-3]
steps = 3
batch_size = 8
clip = 1.0
dropout = 0.1
evaluations = 3
evaluation_examples = 100  # None: all
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
data, model = fpt.sweeps.prepare(spec, study=place and place.parent)
model.report()

# %% [markdown]
# ## The runs
#
# A folder that already holds this sweep's results is read, and nothing is trained again.

# %%
result = fpt.sweeps.run_sweep(spec, place, prepared=(data, model))
runs, curves = result.runs, result.curves

# %% [markdown]
# Every learning rate was trained with every seed, and every run was evaluated at every evaluation step.

# %%
selection = runs[runs["stage"] == "selection"]
confirmation = runs[runs["stage"] == "confirmation"]
confirmed = {*spec.reference_rates, *([] if result.selected_rate is None else [result.selected_rate])}
keys = ["stage", "learning_rate", "seed"]

assert result.info["hash"] == spec.hash
assert len(selection) == len(spec.learning_rates) * len(spec.selection_seeds)
assert set(selection["learning_rate"]) == set(spec.learning_rates)
assert len(confirmation) == len(confirmed) * len(spec.confirmation_seeds)
assert not runs.duplicated(keys).any()
assert curves["step"].between(1, spec.steps).all()
assert set(curves[keys].itertuples(index=False)) == set(runs[keys].itertuples(index=False))
assert runs["test_accuracy"].dropna().between(0, 1).all()

# %% [markdown]
# Mean accuracies over seeds, in percent; `diverged` counts runs that turned non-finite.

# %%
accuracies = ["validation_accuracy", "train_accuracy", "test_accuracy", "test_accuracy_last"]
table = runs.groupby(["stage", "learning_rate"], sort=False)[accuracies].mean().mul(100).round(1)
table["seeds"] = runs.groupby(["stage", "learning_rate"])["seed"].count()
table["diverged"] = runs.groupby(["stage", "learning_rate"])["diverged_at"].count()
table

# %%
from fpt.evidence.runs import SweepTables
from fpt.evidence.show.figures import learning_rate_figure
from fpt.evidence.show.html import Picture

caption = "Every run of this sweep. Small marks are single runs; dashed lines are the reference rates."
Picture(learning_rate_figure(SweepTables(spec, result.folder, result.info, "own").tidy("runs")), caption)

# %% [markdown]
# ## Where this comes from

# %%
provenance = [
    "hash",
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
