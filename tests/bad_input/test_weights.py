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


def edited(change: Callable[[State], State]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / "model.safetensors"
        state = {name: tensor.clone() for name, tensor in load_file(file).items()}
        save_file(change(state), file, {"format": "pt"})

    return edit


def configured(**fields: Any) -> Callable[[Path], None]:
    def configure(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return configure


def typed(dtype: torch.dtype, name: str = "") -> Callable[[State], State]:
    return lambda state: {each: (tensor * 100).to(dtype) if name in each else tensor for each, tensor in state.items()}


def filled(name: str, value: float) -> Callable[[State], State]:
    return lambda state: state | {name: torch.full_like(state[name], value)}


def added(name: str, tensor: Tensor) -> Callable[[State], State]:
    return lambda state: state | {name: tensor}


def without(name: str) -> Callable[[State], State]:
    return lambda state: {each: tensor for each, tensor in state.items() if each != name}


def study(task: str = "digits") -> str:
    of_model = PLAIN.replace("tiny-lm", '"hub:model"').replace("task: digits", f"task: {task}")
    return of_model.replace("frozen-pretrained", "unfrozen-pretrained")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (edited(filled(MATRIX, float("nan"))), (MATRIX, "not finite")),
        (edited(typed(torch.int8, MATRIX)), ("I8", MATRIX)),
        (edited(typed(torch.float8_e4m3fn, MATRIX)), ("F8_E4M3", MATRIX)),
        (edited(typed(torch.complex64, MATRIX)), (MATRIX,)),
        (edited(added("h.0.attn.lora_A.weight", torch.zeros(32, 4))), ("h.0.attn.lora_A.weight",)),
        (edited(added("h.2.ln_1.weight", torch.ones(32))), ("h.2.ln_1.weight",)),
        (edited(added("wpe.weight", torch.zeros(32, 32))), ("wpe.weight", "(32, 32)", "(64, 32)")),
        (edited(without(MATRIX)), (MATRIX, "lack")),
        (configured(n_layer=1), ("h.1.", "layers")),
        (configured(n_layer=3), ("h.2.", "lack")),
        (configured(n_head=3), ("n_head 3", "n_embd 32")),
        (configured(n_positions=32), ("wpe.weight", "(64, 32)", "(32, 32)")),
    ],
)
def test_weights_and_a_configuration_that_do_not_fit(spoil, named, here):
    spoil(save("gpt2", **GPT2))
    workspace(here, study())
    refused("run", "mine", named=("model", *named))


@pytest.mark.parametrize(("model_type", "limit"), [("gptj", "n_positions 16"), ("mpt", "max_seq_len 16")])
def test_a_task_longer_than_the_model_reaches(model_type, limit, here):
    save(model_type, **LONG[model_type])
    workspace(here, study("digits-lra"))
    refused("run", "mine", named=(limit, "64"))


def test_a_dry_run_does_not_reach_further(here, root):
    save("mpt", **LONG["mpt"])
    (here / "tests").mkdir()
    (here / "tests" / "data").symlink_to(root / "tests" / "data")
    workspace(here, study("digits-lra"))
    done = CliRunner().invoke(app, ["run", "mine", "--smoke"])
    assert done.exit_code != 0
    assert "max_seq_len 16" in " ".join(done.output.split())


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation"])
def test_the_attention_that_a_file_asks_for_is_ours_anyway(key, here, digits):
    configured(**{key: "flash_attention_2"})(save("llama", **LLAMA))
    assert all(value.isfinite().all() for value in build(digits, "hub:model").initialise(0).values())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_and_unused_heads_are_read(dtype, here, digits):
    save("gpt2", **GPT2)
    edited(typed(dtype))(Path("model"))
    edited(added("score.weight", torch.zeros(3, 32)))(Path("model"))
    mask = torch.ones(1, 1, 64, 64, dtype=torch.uint8)  # of older versions of the library
    edited(added("h.0.attn.bias", mask))(Path("model"))
    template = build(digits, "hub:model", layers=1)
    assert all(value.isfinite().all() for value in template.initialise(0).values())


def test_models_lists_a_folder(here):
    save("gpt2", **GPT2)
    done = CliRunner().invoke(app, ["models", "--backbone", "hub:model"])
    assert done.exit_code == 0, done.output
