"""Small random models saved to disk, the real loading code on weights that need no network, and what spoils them; and
a short recipe."""

import copy
import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CONFIG_MAPPING, AutoModel

import fpt.tasks
from fpt.models import BACKBONES, backbone, tiny
from fpt.models.families import family
from fpt.models.weights import quiet_library
from fpt.training import Recipe

IDS = {"vocab_size": 20, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
BERT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40, **IDS}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64, **IDS}


# small-FAMILY: a pretrained backbone of the family, of every family that has one. Read once, since a test that puts a
# row back puts it at the end.
STAND_INS = {f"small-{entry.family}": name for name, entry in BACKBONES.items() if entry.pretrained}


def short_recipe(**changes):
    """A few steps without dropout in float32, scored on a few examples."""
    fields = {"steps": 6, "evaluations": 3, "evaluation_examples": 50, "budget_examples": 30, "test_examples": 60}
    return Recipe(**fields | {"compute_type": "float32", "dropout": 0.0} | changes)


def save_model(folder, model_type, **fields):
    """The library's model of these config fields, as the library saves it."""
    config = CONFIG_MAPPING[model_type].from_dict(fields)
    return _saved(folder, lambda: AutoModel.from_config(config, attn_implementation="eager"), std=0.2)


def save_random(entry, folder):
    """The library's whole model of `entry`, to stand in for a pretrained one."""
    kind = family(entry)
    return _saved(folder, lambda: AutoModel.from_config(kind.configuration(entry)), std=0.3)


def _saved(folder, make, std):
    """With random values in every tensor: biases and layer norms too, so that a swapped one shows."""
    with torch.random.fork_rng(devices=[]), quiet_library():
        torch.manual_seed(1)
        model = make()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=std)
        model.save_pretrained(folder)
    return model.eval()


def configured(**fields):
    """Writes these fields into the config.json of a folder, and leaves the weights as they are."""

    def configure(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return configure


def edited(change):
    """Writes a folder's weights again, with this change."""

    def edit(folder):
        file = folder / "model.safetensors"
        state = {name: tensor.clone() for name, tensor in load_file(file).items()}
        save_file(change(state), file, {"format": "pt"})

    return edit


def typed(dtype, name=""):
    return lambda state: {each: (tensor * 100).to(dtype) if name in each else tensor for each, tensor in state.items()}


def filled(name, value):
    return lambda state: state | {name: torch.full_like(state[name], value)}


def added(name, tensor):
    return lambda state: state | {name: tensor}


def without(name):
    return lambda state: {each: tensor for each, tensor in state.items() if each != name}


class Copies(dict[str, torch.nn.Module]):
    """Models that a test may change: each access copies one (all six at once would take as long as saving them)."""

    def __getitem__(self, name):
        return copy.deepcopy(super().__getitem__(name))


@pytest.fixture(scope="session")
def saved_backbones(tmp_path_factory):
    """Random weights of every small backbone, saved once (half a second); tests get copies."""
    folder = tmp_path_factory.mktemp("weights")
    return folder, {name: save_random(tiny(backbone(of)), folder / name) for name, of in STAND_INS.items()}


@pytest.fixture
def small_backbones(saved_backbones, tmp_path, monkeypatch):
    """Registers small-gpt2, small-bert, ... with random weights under FPT_WEIGHTS; returns the library's own models."""
    folder, models = saved_backbones
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for name, of in STAND_INS.items():
        monkeypatch.setitem(BACKBONES, name, tiny(backbone(of)))
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path))
    return Copies(models)


@pytest.fixture
def small_lstms(monkeypatch):
    """Registers small-lstm and small-lstm-released: two layers of width 16."""
    for name in ("lstm", "lstm-released"):
        entry = replace(BACKBONES[name], config={**BACKBONES[name].config, "width": 16}, layers=2)
        monkeypatch.setitem(BACKBONES, f"small-{name}", entry)


@pytest.fixture
def shaped_task(tmp_path, made_intents):
    """Loads a task in its real shape from the committed fixtures, or few generated examples."""

    def load(name, variant):
        if name == "listops":
            return fpt.tasks.load(name, tmp_path, variant, train=60, heldout=20)
        return fpt.tasks.load(name, made_intents, variant)

    return load
