"""The backbone that a name means: a row of the catalogue, or any model of the transformers library by its config.json.

`hub:owner/name@REVISION` is a model of the Hugging Face hub at a commit; `hub:PATH` is a folder that holds config.json
and model.safetensors. No torch here, and nothing of a model is ever executed but the library's own code.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fpt.errors import SpecError, WeightsError, check_known
from fpt.files import from_workspace, known_sha256
from fpt.models.catalogue import BACKBONES, WIDTHS, Backbone
from fpt.models.families import family
from fpt.tasks import BYTES

HUB = "hub:"
CONFIG, WEIGHTS = FILES = ("config.json", "model.safetensors")
INSTEAD = {  # files of a folder that cannot be used, and what to do
    "model.safetensors.index.json": " (in several files they are not read: save the model with a max_shard_size above "
    "its size)",
    "pytorch_model.bin": " (pytorch_model.bin is not read: load the model and save it again with save_pretrained)",
    "adapter_config.json": " (it holds an adapter: merge it with peft's merge_and_unload, and save the whole model)",
}
PINNED = re.compile(r"([\w.-]+/[\w.-]+)@([0-9a-f]{40})")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
MOST_LAYERS, MOST_WIDTH = 1_000, 100_000  # a damaged number would otherwise be built until the memory is full
REFUSED = {
    "auto_map": "its config.json has auto_map: it needs code from its own folder, which is never executed",
    "is_encoder_decoder": "it is an encoder and a decoder, and a backbone is one stack",
    "quantization_config": "its weights are quantised; give the folder of the weights in full precision",
}


def backbone(name: str, source: str = "") -> Backbone:
    """The backbone `name`, looked up where a study file, a parameter or a command is read; from there on it is carried.

    Raises SpecError for one that does not exist, WeightsError where the hub is not reached.
    """
    if isinstance(name, str) and name.startswith(HUB) and name not in BACKBONES:
        try:
            return _found(name)
        except SpecError as error:
            raise SpecError(f"{error} (backbone {name!r}{f', {source}' if source else ''})") from error
    check_known("backbone", name, [*BACKBONES, "hub:owner/name@REVISION", "hub:PATH"], source)
    return replace(BACKBONES[name], name=name)


def slug(name: str) -> str:
    """The name as one part of a path: that of a row of the catalogue stays as it is."""
    return re.sub(r"[^\w.@-]+", "-", name)


def path_of(name: str) -> Path | None:
    """The folder that `hub:PATH` names; None for every other name."""
    inside = name.removeprefix(HUB)
    return None if inside == name or PINNED.fullmatch(inside) else from_workspace(inside)


def checksum(folder: Path) -> str:
    """SHA-256 of config.json and of model.safetensors, one after the other: what a backbone is, wherever it lies."""
    return "-".join(known_sha256(folder / name) for name in FILES)


def _found(name: str) -> Backbone:
    """A backbone by its config.json."""
    if (folder := path_of(name)) is None:
        repository, revision = name.removeprefix(HUB).split("@")
        return _described(name, _fetched(name, repository, revision), {"hub": repository, "revision": revision})
    if not os.path.isdir(folder):  # of a name that is too long it says no
        raise SpecError(
            f"there is no folder {folder}; give hub: and a folder that holds {' and '.join(FILES)}, or a model of the "
            "hub with its revision, hub:owner/name@REVISION, where REVISION is a commit of 40 hexadecimal digits (the "
            "hub shows them in the history of the model's files)"
        )
    if lacking := [file for file in FILES if not (folder / file).is_file()]:
        advice = next((words for file, words in INSTEAD.items() if (folder / file).is_file()), "")
        raise SpecError(f"the folder {folder} lacks {' and '.join(lacking)}{advice}")
    return _described(name, folder / CONFIG, {"folder": folder})


def _fetched(name: str, hub: str, revision: str) -> Path:
    """config.json of a model of the hub: $FPT_WEIGHTS, the hub's cache, the hub. Raises WeightsError."""
    root = os.path.expanduser(os.environ.get("FPT_WEIGHTS", ""))
    if root and (own := Path(root, slug(name), CONFIG)).is_file():
        return own
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(hub, CONFIG, revision=revision))
    except failures() as error:
        raise WeightsError(
            f"backbone {name!r}: {CONFIG} is not on this machine and could not be downloaded ({error}). Either connect "
            f"to the network once, or set FPT_WEIGHTS to a folder that holds {slug(name)}/{CONFIG} and "
            f"{slug(name)}/{WEIGHTS}"
        ) from error


def failures() -> tuple[type[Exception], ...]:
    """What the hub's client raises where a file cannot be had: no connection, an address that is none (HF_ENDPOINT), a
    proxy for which a package is missing."""
    # of its HTTP library, which depends on its version
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

    return OSError, ValueError, RuntimeError, ImportError, HTTPError


def _described(name: str, path: Path, home: Mapping[str, Any]) -> Backbone:
    """The backbone of this config.json; SpecError for one that cannot be used, whatever the task."""
    from fpt.models.foreign import measured

    try:
        config = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise SpecError(f"{path} holds no JSON object: {error}") from error
    for key, why in REFUSED.items():
        if config.get(key):
            raise SpecError(f"{why} ({path})")
    kind, title = config.get("model_type"), name.removeprefix(HUB)
    layers, width = _first(config, LAYERS), _first(config, WIDTHS)
    if not isinstance(kind, str) or type(layers) is not int or type(width) is not int:
        raise SpecError(
            f"{path} must say model_type, the number of layers ({', '.join(LAYERS)}) and the width "
            f"({', '.join(WIDTHS)}) of one model; it has {kind!r}, {layers!r} and {width!r}"
        )
    if not 1 <= layers <= MOST_LAYERS:
        raise SpecError(f"{path} announces {layers} layers: 1 to {MOST_LAYERS:,} are allowed")
    if not 1 <= width <= MOST_WIDTH:
        raise SpecError(f"{path} announces the width {width}: 1 to {MOST_WIDTH:,} are allowed")
    title = f"{title}, {kind} architecture, {layers} layers of width {width}"
    return measured(Backbone("library", config, layers, title=title, name=name, measured={}, **home))


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The value of the first of the keys that there is, else None."""
    return next((config[key] for key in keys if key in config), None)


def tiny(whole: Backbone) -> Backbone:
    """A model of the same architecture and name with 2 layers of width 16, without weights of its own, for tests."""
    symbols = {"vocab_size": BYTES} if whole.predicts_bytes else {}  # it reads and predicts them by its own table
    return replace(
        whole,
        config=family(whole).reduced(whole) | symbols,
        layers=2,
        hub=None,
        revision=None,
        package=None,
        folder=None,
        sha256=None,
        title=f"2 layers of width 16 in the architecture of {whole.name}",
    )
