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
# # Pretraining tiny-lm
#
# A byte-level causal language model in GPT-2's architecture, trained on English novels that are in the public
# domain. Its weights ship with the package, so that the study `laptop` needs no download. The defaults below train a
# few steps on a short extract. The shipped model was made by the same notebook with `corpus`, `corpus_name` and
# `held_out_from` set, 5,000 `steps`, and a `batch_size` of 16.
#
# Is it language that a result comes from, or any pretraining? With `order`, the model is trained instead on a text that
# is drawn from the statistics of the corpus: characters that are independent (`order` 0), or each drawn given the
# `order` characters before it. With another `seed`, the model starts from other weights and sees other windows. With
# another `width`, heads of the same width 32 read and write wider or narrower hidden states; everything else stays.

# %% tags=["parameters"]
corpus = "tests/data/novel.txt"  # UTF-8 text
corpus_name = "an extract of one novel"  # for the model card
held_out_from = 48_000  # byte offset: what follows is never trained on
order = None  # None: the corpus itself; 0 to 3: a text drawn from its statistics
width = 128  # of the hidden states, a multiple of 32: one head for every 32
steps = 3
batch_size = 4
seed = 0
output = None  # folder for the weights; None: a fresh temporary folder

# %%
from fpt.sweeps import check_parameters

check_parameters(
    globals(),
    corpus=str, corpus_name=str, held_out_from=int, order=int | None,
    width=int, steps=int, batch_size=int, seed=int, output=str | None,
)  # fmt: skip

import hashlib
import json
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from fpt.errors import DataError
from fpt.files import from_workspace
from fpt.models.weights import quiet_library
from fpt.seeds import generator, stream

BYTES = 256  # the vocabulary: every byte of UTF-8 text is one token
CONTEXT = 256  # tokens of a window
HEAD = 32  # width of an attention head, at every width of the model
ORDERS = (0, 1, 2, 3)  # of a text drawn from statistics: how many characters the next one depends on

from transformers import GPT2Config, GPT2LMHeadModel  # after fpt, which keeps the library from asking for widgets

# %% [markdown]
# ## The recipe
#
# What decides the weights. The defaults are those of the model that ships.


# %%
class PretrainRecipe(BaseModel, frozen=True, extra="forbid"):
    layers: int = Field(4, ge=1)
    width: int = Field(128, ge=HEAD, multiple_of=HEAD)
    context: int = Field(CONTEXT, ge=2)  # tokens (bytes)
    steps: int = Field(5_000, ge=1)
    batch_size: int = Field(16, ge=1)  # windows of `context` bytes a step
    learning_rate: float = Field(2e-3, gt=0)  # peak; linear warm-up over 2% of the steps, cosine to a tenth
    weight_decay: float = Field(0.1, ge=0)
    seed: int = Field(0, ge=0)


recipe = PretrainRecipe(width=width, steps=steps, batch_size=batch_size, seed=seed)

# %% [markdown]
# ## The text


# %%
@dataclass(frozen=True)
class Corpus:
    """Text as bytes, cut once: what comes before `held_out_from` trains, the rest is never trained on."""

    train: Tensor  # (bytes,) uint8
    held_out: Tensor  # (bytes,) uint8
    sha256: str


def read_corpus(path: str | Path, held_out_from: int, order: int | None = None) -> Corpus:
    """Read UTF-8 text; `held_out_from` is a byte offset (the beginning of a novel in the shipped models' corpus).

    With an `order`, a text drawn from its statistics takes its place (`drawn_text`). Raises DataError for another order
    than ORDERS, where the file is missing or no text, or where either part is shorter than two windows.
    """
    if order is not None and order not in ORDERS:
        raise DataError(f"order={order!r} of the drawn text: allowed are {ORDERS}, or None for the text itself")
    path = Path(path)
    if not path.is_file():
        raise DataError(f"corpus {path} does not exist; give the path of a UTF-8 text file")
    raw = path.read_bytes()
    if order is not None:
        try:
            raw = drawn_text(raw.decode(), order).encode()
        except UnicodeDecodeError as error:
            raise DataError(f"corpus {path} is no UTF-8 text: {error}") from None
    if not 2 * CONTEXT <= held_out_from <= len(raw) - 2 * CONTEXT:
        raise DataError(
            f"held_out_from={held_out_from} leaves under {2 * CONTEXT} bytes on one side of the {len(raw)} of {path}"
        )
    data = torch.from_numpy(np.frombuffer(raw, dtype=np.uint8).copy())
    return Corpus(data[:held_out_from], data[held_out_from:], hashlib.sha256(raw).hexdigest())


def drawn_text(text: str, order: int, chains: int = 1024) -> str:
    """As many characters as `text` has, drawn by their frequencies in it: independently (`order` 0), or each given the
    `order` characters before it. The same in every call.

    `chains` Markov chains of equal length, joined end to end. Each starts at a random place of `text`, and goes on with
    what follows one of the places where the last `order` characters are the same, each as likely as the others. The
    beginning of `text` counts as following its end, so that no chain gets stuck.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    characters, symbols = np.unique(codes, return_inverse=True)
    contexts = np.zeros_like(symbols)  # of each place: the characters before it, as one number
    for back in range(1, order + 1):
        contexts = contexts * len(characters) + np.roll(symbols, back)
    places = np.argsort(contexts, kind="stable")  # those of one context side by side
    counts = np.bincount(contexts)
    first = np.cumsum(counts) - counts
    random = np.random.default_rng(stream(0, "pretrain", "text", order))
    drawn = np.empty((len(codes) // chains + 1, chains), dtype=np.int64)
    context = contexts[random.integers(len(codes), size=chains)]
    for row in drawn:
        row[:] = places[first[context] + (random.random(chains) * counts[context]).astype(np.int64)]
        context = contexts[(row + 1) % len(codes)]
    return codes[drawn.T.ravel()[: len(codes)]].tobytes().decode("utf-32-le")


text = read_corpus(from_workspace(corpus), held_out_from, order)
print(f"{len(text.train):,} bytes to train on, {len(text.held_out):,} held out")

# %% [markdown]
# ## The model and its training


# %%
def language_model(recipe: PretrainRecipe) -> GPT2LMHeadModel:
    """A fresh model; matrices N(0, 0.02 sqrt(768/width)), so that a layer's gain is GPT-2 base's."""
    config = GPT2Config(
        vocab_size=BYTES, n_positions=recipe.context,
        n_embd=recipe.width, n_layer=recipe.layers, n_head=recipe.width // HEAD,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, bos_token_id=None, eos_token_id=None,
        initializer_range=0.02 * math.sqrt(768 / recipe.width),
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):  # the library draws from torch's global generator
        torch.manual_seed(stream(recipe.seed, "pretrain", "weights"))
        return GPT2LMHeadModel(config)


def next_byte_loss(model: GPT2LMHeadModel, windows: Tensor) -> Tensor:
    """Mean loss in nats a byte over `windows` (batch, context); matmuls in bfloat16, loss in float32."""
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(windows).logits
    return cross_entropy(logits[:, :-1].flatten(0, 1).float(), windows[:, 1:].flatten())


def rate_factor(step: int, steps: int) -> float:
    """Linear warm-up over the first 2% of the steps, then a cosine down to a tenth."""
    warmup = max(1, steps // 50)
    if step < warmup:
        return (step + 1) / warmup
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


# %%
model = language_model(recipe)
optimizer = torch.optim.AdamW(
    model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=recipe.weight_decay, fused=True
)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_factor(step, recipe.steps))
windows = generator(recipe.seed, "pretrain", "windows")
offsets = torch.arange(recipe.context)
curve = []  # (step, loss in nats a byte)
with tqdm(range(1, recipe.steps + 1), mininterval=10, unit="step") as bar:
    for step in bar:
        starts = torch.randint(len(text.train) - recipe.context, (recipe.batch_size, 1), generator=windows)
        loss = next_byte_loss(model, text.train[starts + offsets].long())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        curve.append((step, loss.item()))
        bar.set_postfix(nats_per_byte=f"{loss.item():.3f}", refresh=False)

# %% mystnb={"image": {"alt": "Training loss in nats a byte against the step; it falls steeply at first, then slowly."}}
figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(*zip(*curve, strict=True))
axes.set(xlabel="step", ylabel="training loss (nats a byte)")
figure.tight_layout()

# %% [markdown]
# ## The held-out text


# %%
@torch.no_grad()
def bits_per_character(model: GPT2LMHeadModel, text: Tensor, context: int, most: int = 1_000_000) -> float:
    """Bits a character over the first `most` bytes of `text`, in windows of their own (no context carried over)."""
    count = min(len(text), most) // context
    windows = text[: count * context].view(count, context).long()
    nats = math.fsum(next_byte_loss(model, part).item() * len(part) for part in windows.split(64)) / count
    characters = len(bytes(text[: count * context].tolist()).decode("utf-8", errors="ignore"))
    return nats / math.log(2) * (count * context) / characters


bits = bits_per_character(model, text.held_out, recipe.context)
print(f"{bits:.3f} bits a character on held-out text")

# %% [markdown]
# ## The weights
#
# Beside them lies a card: what a reader must know of them, and their checksum.

# %%
card = {
    "corpus": corpus_name,
    "corpus_sha256": text.sha256,
    "markov_order": order,
    "held_out_from": held_out_from,
    "steps": recipe.steps,
    "batch_size": recipe.batch_size,
    "context": recipe.context,
    "learning_rate": recipe.learning_rate,
    "seed": recipe.seed,
    "training_bytes": recipe.steps * recipe.batch_size * recipe.context,
    "bits_per_character": round(bits, 4),
}
folder = Path(output or tempfile.mkdtemp())
folder.mkdir(parents=True, exist_ok=True)
with quiet_library():
    model.transformer.half().save_pretrained(folder)  # in float16, without the tied output layer
card["weights_sha256"] = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
(folder / "model_card.json").write_text(json.dumps(card, indent=2) + "\n")

# %%
# What must hold at any scale (nbval runs this): files written, curve complete, a finite score.
assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors", "model_card.json"}
assert curve[-1][0] == recipe.steps
assert 0 < bits < 12
