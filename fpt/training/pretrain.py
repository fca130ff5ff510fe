"""Language pretraining of tiny-lm: a byte-level causal model in GPT-2's architecture, on English novels.

Kept apart from the fleet: it runs once, and its product ships with the package (`fpt/models/tiny_lm`).
"""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor
from torch.nn.functional import cross_entropy

from fpt.errors import DataError
from fpt.seeds import generator, stream

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

BYTES = 256  # the vocabulary: every byte of UTF-8 text is one token
ORDERS = (0, 1, 2, 3)  # of a text drawn from statistics: how many characters the next one depends on


class PretrainRecipe(BaseModel, frozen=True, extra="forbid"):
    """What decides the weights; the defaults are those of the model that ships."""

    layers: int = Field(4, ge=1)
    width: int = Field(128, ge=1)
    heads: int = Field(4, ge=1)
    context: int = Field(256, ge=2)  # tokens (bytes)
    steps: int = Field(5_000, ge=1)
    batch_size: int = Field(16, ge=1)  # windows of `context` bytes a step
    learning_rate: float = Field(2e-3, gt=0)  # peak; linear warm-up over 2% of the steps, cosine to a tenth
    weight_decay: float = Field(0.1, ge=0)
    seed: int = Field(0, ge=0)


@dataclass(frozen=True)
class Corpus:
    """Text as bytes, cut once: what comes before `held_out_from` trains, the rest is never trained on."""

    train: Tensor  # (bytes,) uint8
    held_out: Tensor  # (bytes,) uint8
    sha256: str


def read_corpus(path: str | Path, held_out_from: int, order: int | None = None) -> Corpus:
    """Read UTF-8 text; `held_out_from` is a byte offset (the beginning of a novel in the shipped models' corpus).

    With an `order`, a text drawn from its statistics takes its place (`drawn_text`). Raises DataError for another order
    than ORDERS, where the file is missing, or where either part is shorter than two windows of 256 bytes.
    """
    if order is not None and order not in ORDERS:
        raise DataError(f"order={order!r} of the drawn text: allowed are {ORDERS}, or None for the text itself")
    path = Path(path)
    if not path.is_file():
        raise DataError(f"corpus {path} does not exist; give the path of a UTF-8 text file")
    raw = path.read_bytes()
    if order is not None:
        raw = drawn_text(raw.decode(), order).encode()
    if not 2 * BYTES <= held_out_from <= len(raw) - 2 * BYTES:
        raise DataError(
            f"held_out_from={held_out_from} leaves under {2 * BYTES} bytes on one side of the {len(raw)} of {path}"
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


def language_model(recipe: PretrainRecipe) -> "GPT2LMHeadModel":
    """A fresh model; matrices N(0, 0.02 sqrt(768/width)), so that a layer's gain is GPT-2 base's."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=BYTES, n_positions=recipe.context, n_embd=recipe.width, n_layer=recipe.layers, n_head=recipe.heads,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, bos_token_id=None, eos_token_id=None,
        initializer_range=0.02 * math.sqrt(768 / recipe.width),
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):  # the library draws from torch's global generator
        torch.manual_seed(stream(recipe.seed, "pretrain", "weights"))
        return GPT2LMHeadModel(config)


def next_byte_loss(model: "GPT2LMHeadModel", windows: Tensor) -> Tensor:
    """Mean loss in nats a byte over `windows` (batch, context); matmuls in bfloat16, loss in float32."""
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(windows).logits
    return cross_entropy(logits[:, :-1].flatten(0, 1).float(), windows[:, 1:].flatten())


@torch.no_grad()
def bits_per_character(model: "GPT2LMHeadModel", text: Tensor, context: int, most: int = 1_000_000) -> float:
    """Bits a character over the first `most` bytes of `text`, in windows of their own (no context carried over)."""
    count = min(len(text), most) // context
    windows = text[: count * context].view(count, context).long()
    nats = math.fsum(next_byte_loss(model, part).item() * len(part) for part in windows.split(64)) / count
    characters = len(bytes(text[: count * context].tolist()).decode("utf-8", errors="ignore"))
    return nats / math.log(2) * (count * context) / characters


def rate_factor(step: int, steps: int) -> float:
    """Linear warm-up over the first 2% of the steps, then a cosine down to a tenth."""
    warmup = max(1, steps // 50)
    if step < warmup:
        return (step + 1) / warmup
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def pretrain(
    corpus: Corpus, recipe: PretrainRecipe, progress: Callable[[int, float], None] | None = None
) -> tuple["GPT2LMHeadModel", list[tuple[int, float]]]:
    """Train; returns the model and the curve [(step, loss in nats a byte)], a point of which goes to `progress`."""
    model = language_model(recipe)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=recipe.weight_decay, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_factor(step, recipe.steps))
    order = generator(recipe.seed, "pretrain", "windows")
    offsets = torch.arange(recipe.context)
    curve: list[tuple[int, float]] = []
    for step in range(1, recipe.steps + 1):
        starts = torch.randint(len(corpus.train) - recipe.context, (recipe.batch_size, 1), generator=order)
        loss = next_byte_loss(model, corpus.train[starts + offsets].long())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        curve.append((step, loss.item()))
        if progress:
            progress(*curve[-1])
    return model, curve


def save(model: "GPT2LMHeadModel", card: dict[str, Any], folder: str | Path) -> None:
    """Write config.json, model.safetensors (float16, without the tied output layer) and model_card.json: what a reader
    must know of the weights, and their checksum."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    from fpt.models.weights import quiet_library

    with quiet_library():
        model.transformer.half().save_pretrained(folder)
    weights = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    (folder / "model_card.json").write_text(json.dumps({**card, "weights_sha256": weights}, indent=2) + "\n")
