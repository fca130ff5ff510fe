"""Models that are named by their folder and do not hold what they announce: refused before any training."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from refusal import refused
from safetensors.torch import load_file, save_file
from small_models import save_model
from small_studies import PLAIN, workspace
from torch import Tensor
from typer.testing import CliRunner

from fpt.cli import app
from fpt.models import build
from fpt.tasks import load

SIZES = {"vocab_size": 20, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
LLAMA = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40}
LONG = {
    "gptj": {"n_embd": 32, "n_layer": 2, "n_head": 2, "rotary_dim": 4, "n_positions": 16},
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 2, "max_seq_len": 16},
}
MATRIX = "h.1.mlp.c_fc.weight"
State = dict[str, Tensor]


def save(model_type: str, **fields: Any) -> Path:
    """A small model of the library, in the folder `model`."""
    save_model(Path("model"), model_type, **SIZES | fields)
    return Path("model")


def edit(folder: Path, change: Callable[[State], State]) -> None:
    file = folder / "model.safetensors"
    state = {name: tensor.clone() for name, tensor in load_file(file).items()}
    save_file(change(state), file, {"format": "pt"})


def configure(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def typed(dtype: torch.dtype, name: str = "") -> Callable[[State], State]:
    return lambda state: {each: (tensor * 100).to(dtype) if name in each else tensor for each, tensor in state.items()}


def filled(name: str, value: float) -> Callable[[State], State]:
    return lambda state: state | {name: torch.full_like(state[name], value)}


def added(name: str, tensor: Tensor | None = None) -> Callable[[State], State]:
    return lambda state: state | {name: torch.zeros(32, 4) if tensor is None else tensor}


def without(name: str) -> Callable[[State], State]:
    return lambda state: {each: tensor for each, tensor in state.items() if each != name}


def study(task: str = "digits", arm: str = "unfrozen-pretrained") -> str:
    return (
        PLAIN.replace("tiny-lm", '"hub:model"')
        .replace("task: digits", f"task: {task}")
        .replace("frozen-pretrained", arm)
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (filled(MATRIX, float("nan")), (MATRIX, "not finite")),
        (typed(torch.int8, MATRIX), ("I8", MATRIX)),
        (typed(torch.float8_e4m3fn, MATRIX), ("F8_E4M3", MATRIX)),
        (typed(torch.complex64, MATRIX), (MATRIX,)),
        (added("h.0.attn.lora_A.weight"), ("h.0.attn.lora_A.weight",)),
        (added("h.2.ln_1.weight", torch.ones(32)), ("h.2.ln_1.weight",)),
        (added("wpe.weight", torch.zeros(32, 32)), ("wpe.weight", "(32, 32)", "(64, 32)")),
        (without(MATRIX), (MATRIX, "lack")),
    ],
)  # fmt: skip
def test_weights_that_are_not_what_is_announced(change, named, here):
    edit(save("gpt2", **GPT2), change)
    workspace(here, study())
    refused("run", "mine", named=("model", *named))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"n_layer": 1}, ("h.1.", "layers")),
        ({"n_layer": 3}, ("h.2.", "lack")),
        ({"n_head": 3}, ("n_head 3", "n_embd 32")),
        ({"n_positions": 32}, ("wpe.weight", "(64, 32)", "(32, 32)")),
    ],
)
def test_a_configuration_that_the_weights_do_not_fit(fields, named, here):
    configure(save("gpt2", **GPT2), **fields)
    workspace(here, study())
    refused("run", "mine", named=("model", *named))


@pytest.mark.parametrize(
    ("model_type", "task", "named"),
    [
        ("gptj", "digits-lra", ("n_positions 16", "64")),
        ("mpt", "digits-lra", ("max_seq_len 16", "64")),
    ],
)
def test_a_task_longer_than_the_model_reaches(model_type, task, named, here):
    save(model_type, **LONG[model_type])
    workspace(here, study(task))
    refused("run", "mine", named=named)


def test_a_dry_run_does_not_reach_further(here, root):
    save("mpt", **LONG["mpt"])
    (here / "tests").mkdir()
    (here / "tests" / "data").symlink_to(root / "tests" / "data")
    workspace(here, study("digits-lra"))
    done = CliRunner().invoke(app, ["run", "mine", "--smoke"])
    assert done.exit_code != 0
    assert "max_seq_len 16" in " ".join(done.output.split())


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation"])
def test_the_attention_that_a_file_asks_for_is_ours_anyway(key, here):
    folder = save("llama", **LLAMA)
    expected = build(load("digits"), "hub:model").initialise(0)
    configure(folder, **{key: "flash_attention_2"})
    assert build(load("digits"), "hub:model").initialise(0).keys() == expected.keys()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_and_unused_heads_are_read(dtype, here):
    edit(
        save("gpt2", **GPT2),
        lambda state: {
            **{name: tensor.to(dtype) for name, tensor in state.items()},
            "score.weight": torch.zeros(3, 32),
            "h.0.attn.bias": torch.ones(1, 1, 64, 64, dtype=torch.uint8),  # a mask of older versions of the library
        },
    )
    template = build(load("digits"), "hub:model", layers=1)
    assert all(value.isfinite().all() for value in template.initialise(0).values())


def test_models_lists_a_folder(here):
    save("gpt2", **GPT2)
    done = CliRunner().invoke(app, ["models", "--backbone", "hub:model"])
    assert done.exit_code == 0, done.output
