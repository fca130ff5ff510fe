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
# # Which architectures of the library can be a backbone
#
# `hub:PATH` takes a model of the transformers library by its config.json, and refuses what it cannot compute. Here a
# tiny random model of each architecture is saved to disk and taken as a backbone. What is tried: that the hidden
# states are those of the library's own model, with and without padding; that frozen tensors stay what they are to the
# last bit; that a fleet computes what its runs compute one at a time; that a training that is loaded from a checkpoint
# goes on as if it had not stopped. The defaults are four architectures, of which one is to be refused, in
# seconds. All of the installed library's causal and masked language models, written where the page of the models reads
# them:
#
# ```sh
# papermill notebooks/architectures.ipynb out.ipynb -p output runs/architectures/table.json -y 'names: []'
# ```

# %% tags=["parameters"]
names = ["llama", "gpt_neox", "modernbert", "mamba"]  # model types of the library; empty: all of them
layers = 4  # of a tiny model; kinds of layers take turns
limit = 120  # seconds for one architecture
output = ""  # a path to write to; empty: nothing is written

# %%
from fpt.sweeps import check_parameters

check_parameters(
    globals(),
    names=list[str], layers=int, limit=float, output=str,
)  # fmt: skip

import json
import multiprocessing
import re
import tempfile
import warnings
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy, embedding, linear

import fpt
from fpt.errors import FptError
from fpt.files import write_json
from fpt.models import Backbone
from fpt.models.families import family
from fpt.models.families.library import BROKEN
from fpt.models.layers import read_out
from fpt.models.weights import quiet_library
from fpt.training.checkpoint import Folder
from fpt.training.fleet import Fleet
from fpt.training.loop import Training

torch.set_num_threads(1)
RATES, SEED, STEPS = [1e-3, 1e-2], 0, 3

# %%
# After fpt, which keeps the hub's client from asking for widgets.

from transformers import CONFIG_MAPPING, AutoModel
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

KINDS = {"causal": MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, "masked": MODEL_FOR_MASKED_LM_MAPPING_NAMES}
ALL = sorted({*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *MODEL_FOR_MASKED_LM_MAPPING_NAMES})
TASKS = {  # without padding, and with it
    "digits": fpt.tasks.load("digits"),
    "listops-short": fpt.tasks.load("listops-short", train=100, heldout=20),
}
RECIPE = fpt.training.Recipe(
    steps=STEPS, batch_size=4, dropout=0.1, compute_type="float32",
    evaluations=1, evaluation_examples=4, budget_examples=4, test_examples=4,
)  # fmt: skip


@dataclass
class Found:
    """An architecture, and what was found of it: `works`, or why not."""

    architecture: str
    kind: str
    state: str = "works"  # works, refused (by fpt, with the reason), not built (by the library), no answer, or failed
    why: str = ""
    groups: str = ""
    dropout: str = ""
    parity: float | None = None  # largest difference from the library's hidden states, as a share of the largest
    frozen: bool | None = None
    fleet: bool | None = None
    resume: bool | None = None


# %% [markdown]
# ## One architecture


# %%
def save(name, folder):
    """The library's model of an architecture with few layers and random values, saved as the library saves it."""
    whole = CONFIG_MAPPING[name]()
    if not hasattr(whole, "num_hidden_layers"):
        raise ValueError("its config holds those of several models; the language model is an architecture of its own")
    foreign = Backbone("library", whole.to_dict(), layers, measured={})
    kind = family(foreign)
    config = kind.configuration(replace(foreign, config=kind.reduced(foreign)))
    with quiet_library():
        torch.manual_seed(1)
        model = AutoModel.from_config(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
        model.save_pretrained(folder)


def parity(template, task, folder):
    """The largest difference of what is read out from the library's own forward pass, relative to the largest."""
    with quiet_library():
        library = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    weights, examples = template.initialise(SEED), task.split(SEED).validation[:4]
    tokens, lengths = task.encode(examples.inputs), examples.lengths if task.mask_padding else None
    keep = None if lengths is None else (torch.arange(task.tokens) < lengths[:, None]).long()
    inputs = weights["input_layer.weight"]
    embedded = embedding(tokens, inputs) if task.vocabulary else linear(tokens, inputs, weights["input_layer.bias"])
    seen = []
    handle = template.module.output_layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        hidden = library(inputs_embeds=embedded, attention_mask=keep).last_hidden_state
        expected = read_out(hidden, task.readout, lengths)
        template.module.drop_with([])
        functional_call(template.module, weights, (tokens, examples.lengths))
    handle.remove()
    return float((seen[0] - expected).abs().max() / expected.abs().max())


def alone(template, task, rate):
    """The losses of one run, as anybody would write it."""
    weights = {name: value.clone() for name, value in template.initialise(SEED).items()}
    leaves = [weights[name].requires_grad_() for name in template.trainable]
    optimizer, losses = torch.optim.Adam(leaves, lr=rate), []
    template.module.drop_with([])
    for step in range(STEPS):
        batch = task.split(SEED).batch(step, RECIPE.batch_size)
        logits = functional_call(template.module, weights, (task.encode(batch.inputs), batch.lengths))
        loss = cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(leaves, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def training(template, task, **changes):
    recipe = RECIPE.model_copy(update=changes)
    return Training(Fleet(task, template, recipe, RATES, [SEED], torch.device("cpu")))


def resumed(template, task, folder):
    """Whether frozen tensors stay what they are, and whether a loaded training goes on bit for bit."""
    whole, first, second = (training(template, task) for _ in range(3))
    frozen = {name: value.clone() for name, value in whole.fleet.shared.items()}
    for each, steps in ((whole, STEPS), (first, STEPS - 1)):
        for _ in range(steps):
            each.step()
    Folder(folder).save(0, first.state())
    second.load(Folder(folder).load(0, second.state()))
    second.step()
    same = all(torch.equal(value, whole.fleet.shared[name]) for name, value in frozen.items())
    return same, all(torch.equal(tensor, second.state()[name]) for name, tensor in whole.state().items())


def examine(name, folder, found):
    """Fill in what is found; raises where the library or fpt refuses."""
    backbone = f"hub:{folder / 'model'}"
    templates = {task: fpt.models.build(TASKS[task], backbone, "pretrained", "fpt") for task in TASKS}
    template, task = templates["digits"], TASKS["digits"]
    found.groups = ", ".join(sorted({*template.groups.values()} - {"input", "output"}))
    found.dropout = ", ".join(template.dropouts)
    found.parity = max(parity(templates[each], TASKS[each], folder / "model") for each in TASKS)
    found.frozen, found.resume = resumed(template, task, folder)
    runs = training(template, task, dropout=0.0).fleet
    losses = torch.stack([runs.step(step) for step in range(1, STEPS + 1)]).T
    expected = torch.tensor([alone(template, task, rate) for rate in RATES])
    found.fleet = torch.allclose(losses, expected, rtol=1e-4, atol=1e-5)


# %% [markdown]
# ## Each by itself
#
# In a process of its own with a limit of time: what one architecture breaks, the others do not notice.


# %%
def reason(error, folder):
    """The first lines of an error, without the paths of this machine."""
    text = " ".join(str(error).split()).split(": none of the classes")[0] or type(error).__name__
    text = re.sub(r"^.* cannot be a backbone: | \(backbone 'hub.*\)$", "", text.replace(f"{folder}/model", "model"))
    text = re.sub(r"(?<![\w.])/\S+/", ".../", text)
    return text[:237] + "..." if len(text) > 240 else text


def one(name, connection):
    """Sends what was found of an architecture."""
    warnings.simplefilter("ignore")
    kind = " and ".join(kind for kind, mapping in KINDS.items() if name in mapping)
    found = Found(name, kind)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            save(name, folder / "model")
        except BROKEN as error:
            found.state, found.why = "not built", reason(error, folder)
        else:
            try:
                examine(name, folder, found)
            except FptError as error:
                found.state, found.why = "refused", reason(error, folder)
            except BROKEN as error:
                found.state, found.why = "failed", reason(error, folder)
    if found.state == "works" and not (found.parity < 1e-3 and found.frozen and found.fleet and found.resume):
        found.state, found.why = "failed", "it was not refused, and a check does not hold"
    connection.send(asdict(found))


def tried(name):
    """What was found of an architecture within the limit."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=one, args=(name, sending))
    with warnings.catch_warnings(action="ignore"):  # of threads that the fork leaves behind: they are the kernel's
        process.start()
    sending.close()
    try:
        answer = receiving.recv() if receiving.poll(limit) else None
        why = f"no answer within {limit} seconds"
    except EOFError:
        answer, why = None, "its process ended without an answer"
    process.kill()
    process.join()
    kind = " and ".join(kind for kind, mapping in KINDS.items() if name in mapping)
    return answer or asdict(Found(name, kind, "no answer", why))


records = []
for name in names or ALL:
    records.append(tried(name))
    if output:
        write_json(Path(output), {"transformers": version("transformers"), "torch": version("torch"), "layers": layers,
                                  "architectures": records})  # fmt: skip
table = pd.DataFrame(records)
table

# %%
table["state"].value_counts().sort_index()

# %%
# What must hold of any architectures (nbval runs this).
assert "failed" not in set(table["state"])  # what is not refused holds every check
assert (table.loc[table["state"] != "works", "why"] != "").all()
states = dict(zip(table["architecture"], table["state"], strict=True))
assert {"works"} >= {states[name] for name in ("llama", "gpt_neox", "modernbert") if name in states}
assert states.get("mamba", "refused") == "refused"
assert not output or len(json.loads(Path(output).read_text())["architectures"]) == len(table)
