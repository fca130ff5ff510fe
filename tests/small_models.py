"""Small random models saved to disk: the real loading code on weights that need no network."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model

import fpt.tasks
from fpt.models import BACKBONES, TRANSFORMER, Backbone
from fpt.tasks.arrays import Task

SMALL = {
    "small-gpt2": Backbone(
        "gpt2", {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 24, "vocab_size": 11}, 2, TRANSFORMER
    ),
    "small-bert": Backbone(
        "bert",
        {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
         "max_position_embeddings": 24, "vocab_size": 11},
        2,
        TRANSFORMER,
    ),
}  # fmt: skip


@pytest.fixture
def small_backbones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, torch.nn.Module]:
    """Registers small-gpt2 and small-bert with random weights under FPT_WEIGHTS; returns the library's own models."""
    models: dict[str, torch.nn.Module] = {}
    for name, entry in SMALL.items():
        monkeypatch.setitem(BACKBONES, name, entry)
        special = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            if entry.family == "gpt2":
                model = GPT2Model(GPT2Config(**entry.config, **special))
            else:
                model = BertModel(BertConfig(**entry.config, **special))
            for parameter in model.parameters():  # biases and layer norms too, so that a swapped one shows
                torch.nn.init.normal_(parameter, std=0.3)
        model.save_pretrained(tmp_path / name)
        models[name] = model.eval()
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path))
    return models


@pytest.fixture
def small_lstms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers small-lstm and small-lstm-released: two layers of width 16."""
    for name in ("lstm", "lstm-released"):
        entry = replace(BACKBONES[name], config={**BACKBONES[name].config, "hidden_size": 16}, layers=2)
        monkeypatch.setitem(BACKBONES, f"small-{name}", entry)


@pytest.fixture
def shaped_task(tmp_path: Path) -> Callable[[str, str], Task]:
    """Loads a task in its real shape from the committed fixtures, or few generated examples."""

    def load(name: str, variant: str) -> Task:
        if name == "listops":
            return fpt.tasks.load(name, tmp_path, variant, train=60, heldout=20)
        return fpt.tasks.load(name, Path(__file__).parent / "data", variant)

    return load
