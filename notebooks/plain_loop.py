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
# # The experiment on one page
#
# One transformer that has read novels, on handwritten digits: frozen, or trained in full. Model and training are plain
# PyTorch and transformers. `fpt` lends the digits, the random streams and a file of weights; none of its training code
# runs. Without dropout, the study's own fleets give the same numbers: a test compares them.

# %% tags=["parameters"]
weights = "fpt/models/tiny_lm"  # of GPT-2's kind: 4 layers of width 128
learning_rates = [3e-4, 3e-3]
seeds = [0]
steps = 60  # enough for both arms to learn; 200 take a minute
batch_size = 8

# %%
from fpt.sweeps import check_parameters

check_parameters(
    globals(),
    weights=str, learning_rates=list[float], seeds=list[int], steps=int, batch_size=int,
)  # fmt: skip

import warnings

import pandas as pd
import torch
from torch import nn
from torch.nn.functional import cross_entropy

with warnings.catch_warnings(action="ignore"):  # the library asks for widgets
    from transformers import GPT2Model, logging

import fpt.tasks
from fpt.files import from_workspace
from fpt.seeds import generator

logging.disable_progress_bar()
torch.set_num_threads(1)  # a model this small gains nothing from more
digits = fpt.tasks.load("digits")  # 16 tokens an image, each of 2 x 2 pixels


class Model(nn.Module):
    """A new input layer, the pretrained layers, and a new output layer that reads the last token."""

    def __init__(self, frozen, seed):
        super().__init__()
        self.backbone = GPT2Model.from_pretrained(
            from_workspace(weights), dtype=torch.float32
        ).eval()  # eval: no dropout
        width = self.backbone.config.n_embd
        self.input_layer, self.output_layer = nn.Linear(digits.width, width), nn.Linear(width, digits.classes)
        nn.init.orthogonal_(self.input_layer.weight, 1.41, generator(seed, "weights", "input_layer.weight"))
        nn.init.zeros_(self.input_layer.bias)
        for name, value in self.output_layer.named_parameters():
            source = generator(seed, "weights", f"output_layer.{name}")
            nn.init.uniform_(value, -(width**-0.5), width**-0.5, source)
        for name, value in self.backbone.named_parameters():  # frozen: all but layer norms and positions
            value.requires_grad_(not frozen or "ln_" in name or "wpe" in name)

    def forward(self, images):
        hidden = self.backbone(inputs_embeds=self.input_layer(digits.encode(images))).last_hidden_state
        return self.output_layer(hidden[:, -1])


@torch.no_grad()
def accuracy(model, examples):
    return (model(examples.inputs).argmax(-1) == examples.targets[:, 0]).double().mean().item()


def train(arm, rate, seed):
    """One run: Adam at a constant rate; at each budget a look at the validation images, which keeps the best."""
    model, split = Model(arm == "frozen", seed), digits.split(seed)
    trainable = [value for value in model.parameters() if value.requires_grad]
    optimizer, budgets = torch.optim.Adam(trainable, lr=rate), [max(1, round(steps / 2**k)) for k in range(6)]
    best = {"validation accuracy": -1.0}
    for step in range(1, steps + 1):
        batch = split.batch(step - 1, batch_size)
        loss = cross_entropy(model(batch.inputs), batch.targets[:, 0])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        if step in budgets and (found := accuracy(model, split.validation)) > best["validation accuracy"]:
            best = {"validation accuracy": found, "test accuracy": accuracy(model, split.test), "best step": step}
    return {"arm": arm, "learning rate": rate, "seed": seed, "last loss": loss.item(), **best}


arms = ["frozen", "all trained"]
runs = pd.DataFrame([train(arm, rate, seed) for arm in arms for rate in learning_rates for seed in seeds])
runs.round(3)

# %% [markdown]
# ## Both arms at one rate
#
# Test accuracy in percent, by learning rate.

# %%
by_rate = 100 * runs.pivot_table("test accuracy", "learning rate", "arm")
by_rate.round(1)

# %% [markdown]
# ## Each arm at its own rate
#
# The rate with the best validation accuracy. The study itself chooses a seed's rate by the *other* seeds.

# %%
validation = runs.pivot_table("validation accuracy", "learning rate", "arm")
tuned = pd.Series({arm: by_rate.loc[validation[arm].idxmax(), arm] for arm in arms}, name="test accuracy, %")
tuned.round(1)

# %%
# What must hold (nbval runs this): both arms learn. Chance is 10%.
assert (tuned > 30).all()
