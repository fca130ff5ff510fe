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
# # Pretraining tiny-lm
#
# A byte-level causal language model in GPT-2's architecture, trained on English novels that are in the public
# domain. Its weights ship with the package, so that the study needs no download. The defaults below train a
# few steps on a short extract; the shipped model was made by the same notebook with `corpus`, `corpus_name`,
# `held_out_from` and `steps` set.
#
# Is it language that a result comes from, or any pretraining? With `order`, the model is trained instead on a text that
# is drawn from the statistics of the corpus: characters that are independent (`order` 0), or each drawn given the
# `order` characters before it. With another `seed`, the model starts from other weights and sees other windows.

# %% tags=["parameters"]
corpus = "../tests/data/novel.txt"  # UTF-8 text
corpus_name = "an extract of one novel"  # for the model card
held_out_from = 40_000  # byte offset: what follows is never trained on
order = None  # None: the corpus itself; 0 to 3: a text drawn from its statistics
steps = 3
batch_size = 4
seed = 0
output = None  # folder for the weights; None: a fresh temporary folder

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from tqdm import tqdm

from fpt.training.pretrain import PretrainRecipe, bits_per_character, pretrain, read_corpus, save

text = read_corpus(corpus, held_out_from, order)
recipe = PretrainRecipe(steps=steps, batch_size=batch_size, seed=seed)
print(f"{len(text.train):,} bytes to train on, {len(text.held_out):,} held out")

# %%
with tqdm(total=recipe.steps, mininterval=10, unit="step") as bar:

    def progress(step: int, loss: float) -> None:
        bar.set_postfix(nats_per_byte=f"{loss:.3f}", refresh=False)
        bar.update(step - bar.n)

    model, curve = pretrain(text, recipe, progress)

# %% mystnb={"image": {"alt": "Training loss in nats a byte against the step; it falls steeply at first, then slowly."}}
figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(*zip(*curve, strict=True))
axes.set(xlabel="step", ylabel="training loss (nats a byte)")
figure.tight_layout()

# %%
bits = bits_per_character(model, text.held_out, recipe.context)
print(f"{bits:.3f} bits a character on held-out text")

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
save(model, card, folder)

# %%
# What must hold at any scale (nbval runs this): files written, curve complete, a finite score.
assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors", "model_card.json"}
assert curve[-1][0] == recipe.steps
assert 0 < bits < 12
