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
# # Fine-tuning on labelled texts, on one page
#
# MiniLM reads short texts with its own tokenizer and learns their classes: trained in full, or with LoRA. Model,
# adapters and training are those of `transformers`, `peft` and PyTorch. `fpt` lends the batches and the random streams,
# and none of its training code runs. The study's fleets give the same numbers, dropout included: a test compares them.
#
# The few texts here are made up. The study reads BANKING77 (`-p task banking77`, with the data of [](../book/data.md)).

# %% tags=["parameters"]
texts = "csv:tests/data/intents/banking77_train.csv"  # or banking77, or clinc150
arms = ["full", "LoRA"]
learning_rates = [3e-4]
seeds = [0]
steps = 20
batch_size = 8
dropout = 0.1

# %%
from fpt.sweeps import check_parameters

check_parameters(
    globals(), texts=str, arms=list[str], learning_rates=list[float], seeds=list[int], steps=int, batch_size=int,
    dropout=float,
)  # fmt: skip

import math
import warnings
from dataclasses import replace
from unittest import mock

import pandas as pd
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoModel, logging

from fpt.files import from_workspace
from fpt.models import backbone, load_task
from fpt.models.layers import Masks
from fpt.models.weights import packaged
from fpt.seeds import generator

logging.disable_progress_bar()
logging.set_verbosity_error()  # the library reports a pooling layer that is not used
torch.set_num_threads(1)
kind, _, path = texts.rpartition(":")
options = {"target": "category"} if kind else {}
task = load_task(f"{kind}:{from_workspace(path)}" if kind else path, "minilm", tokenizer="own", tokens=64, **options)
task = replace(
    task, by_length=True, pooling="mean"
)  # batches of texts of like length; MiniLM is made to be read by means


class Classifier(nn.Module):
    """MiniLM, and a new layer that reads the mean over a text's tokens."""

    def __init__(self, arm, seed):
        super().__init__()
        self.body = AutoModel.from_pretrained(
            packaged(backbone("minilm")), attn_implementation="eager", add_pooling_layer=False
        )
        width = self.body.config.hidden_size
        self.head = nn.Linear(width, task.classes)
        for name, value in self.head.named_parameters():
            source = generator(seed, "weights", f"output_layer.{name}")
            nn.init.uniform_(value, -(width**-0.5), width**-0.5, source)
        if arm == "LoRA":
            everywhere = r".*encoder\.layer\..*(query|key|value|dense)"
            with warnings.catch_warnings(action="ignore"):  # peft asks for what transformers 6 will name otherwise
                self.body = get_peft_model(self.body, LoraConfig(r=8, lora_alpha=32, target_modules=everywhere))
            for name, value in self.body.named_parameters():
                if ".lora_A." in name:  # B starts from zero
                    layer = name.removeprefix("base_model.model.").partition(".lora_A")[0]
                    bound, source = value.shape[1] ** -0.5, generator(seed, "weights", f"backbone.{layer}.adapter_a")
                    nn.init.uniform_(value, -bound, bound, source)

    def forward(self, tokens, lengths):
        real = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
        hidden = self.body(input_ids=tokens, attention_mask=real).last_hidden_state
        return self.head((hidden * real[:, :, None]).sum(1) / lengths[:, None])


def dropped_out(model, batch, draw, seed, step):
    """Logits in training. Dropout masks are those of seed and step: torch's own would hang on every draw before."""
    shapes, place = [], "torch.nn.functional.dropout"

    def note(x, *_, **__):
        shapes.append(x.shape)
        return x

    def drop(x, *_, **__):
        return x * next(drawn)[0]

    with torch.no_grad(), mock.patch(place, note):  # what is dropped out, in which order
        model(batch.inputs, batch.lengths)
    drawn = iter(draw(shapes, [seed], step))
    with mock.patch(place, drop if dropout else note):
        return model(batch.inputs, batch.lengths)


def train(arm, rate, seed):
    """One run: AdamW, a warm-up over a tenth of the steps, then half a cosine down to a tenth of the rate."""
    model, split, masks = Classifier(arm, seed).train(), task.split(seed), Masks(dropout, torch.device("cpu"))
    trainable = {name: value for name, value in model.named_parameters() if value.requires_grad}
    kept = [value for name, value in trainable.items() if value.dim() < 2 or "LayerNorm" in name]
    decaying = [value for name, value in trainable.items() if value.dim() > 1 and "LayerNorm" not in name]
    optimizer = torch.optim.AdamW(
        [{"params": decaying, "weight_decay": 0.01}, {"params": kept, "weight_decay": 0.0}], rate
    )
    warm, losses = steps / 10, []

    def share(done):
        step = done + 1
        return (
            min(1.0, step / warm) if step <= warm else 0.55 + 0.45 * math.cos(math.pi * (step - warm) / (steps - warm))
        )

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    for step in range(1, steps + 1):
        batch = split.batch(step - 1, batch_size)
        loss = cross_entropy(dropped_out(model, batch, masks.draw, seed, step), batch.targets[:, 0])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trainable.values(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    with torch.no_grad():
        test = split.test
        right = model.eval()(test.inputs, test.lengths).argmax(-1) == test.targets[:, 0]
    return {
        "arm": arm,
        "learning rate": rate,
        "seed": seed,
        "test accuracy": right.double().mean().item(),
        "losses": losses,
    }


runs = pd.DataFrame([train(arm, rate, seed) for arm in arms for rate in learning_rates for seed in seeds])
runs.drop(columns="losses").round(3)

# %% [markdown]
# ## The loss of each arm

# %%
means = pd.DataFrame(runs["losses"].to_list(), index=runs["arm"]).groupby(level="arm").mean().T
means.rename_axis("step").iloc[:: max(1, steps // 5)].round(2)

# %%
# What must hold (nbval runs this): both arms learn.
assert (means.tail(3).mean() < means.head(3).mean()).all()
