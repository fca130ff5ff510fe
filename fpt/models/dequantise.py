"""Weights that a package carries as a GGUF file of few bits a number: dequantised once, into the user's cache.

A folder there has the SHA-256 of the GGUF file for its name, and holds what the hub would: config.json and
model.safetensors, in float32; beside it the latter's checksum. No torch before a file is read.
"""

import fcntl
import shutil
import struct
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

from safetensors import SafetensorError

from fpt.errors import WeightsError
from fpt.files import cache_folder, check_sha256, sha256
from fpt.models.hub import FILES, WEIGHTS

CHECKSUM = f"{WEIGHTS}.sha256"


def cached(checksum: str) -> Path:
    """Where the weights of the GGUF file with that SHA-256 are, or would be."""
    return cache_folder() / "gguf" / checksum


def dequantised(file: Path, expected: str) -> Path:
    """`cached(expected)`, made from `file` where it is not there. One process makes it, others wait meanwhile.

    Raises WeightsError for a file of another checksum or one that cannot be read, where the package `gguf` is missing,
    and for a cache that cannot be written. Nothing half-written is left as a folder of that name.
    """
    folder = cached(expected)
    if _is_whole(folder):
        return folder
    check_sha256(file, expected, "install its package again", WeightsError)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.parent / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # which the kernel drops with the process
            if not _is_whole(folder):
                _make(file, folder)
    except (OSError, SafetensorError) as error:  # the latter for a full disk
        raise WeightsError(
            f"the weights of {file} cannot be kept in {folder}: {error}; make room there (6 times the file), or set "
            "XDG_CACHE_HOME to another folder"
        ) from error
    return folder


def _is_whole(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (*FILES, CHECKSUM))


def _make(file: Path, folder: Path) -> None:
    """Write the folder, which appears whole or not at all."""
    partial = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    partial.mkdir()
    try:
        _write(file, partial)
        shutil.rmtree(folder, ignore_errors=True)  # where a file was taken out of it
        partial.rename(folder)
    except ImportError as error:
        raise WeightsError(f"{file} is read by the package gguf: pip install -e '.[smollm2]' ({error})") from error
    except (ValueError, LookupError, RuntimeError, struct.error) as error:
        raise WeightsError(f"{file} cannot be read by the installed transformers and gguf: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(file: Path, folder: Path) -> None:
    """The model of a GGUF file as the hub would have it, every number in float32."""
    import torch
    from safetensors.torch import save_file
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    config = AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)  # names of tensors
    with redirect_stderr(StringIO()):  # a progress bar
        tensors = load_gguf_checkpoint(file, return_tensors=True, model_to_load=model)["tensors"]
    config.save_pretrained(folder)
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})
    (folder / CHECKSUM).write_text(sha256(folder / WEIGHTS, WeightsError))


def check_cached(folder: Path) -> None:
    """Refuse (WeightsError) a folder of the cache whose weights changed after they were made."""
    expected = (folder / CHECKSUM).read_text() if (folder / CHECKSUM).is_file() else "none"
    check_sha256(folder / WEIGHTS, expected, f"remove {folder}, and it is made again", WeightsError)
