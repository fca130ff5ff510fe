"""Library models, prepared for transfer: no token table, a position table of the task's length, our layers inside.

The architectures are the transformers library's own; this file only removes what the input layer replaces, loads the
pretrained values, and counts what is left out. How the blocks run is in fpt.models.families.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers.utils import logging as library_logging

from fpt.errors import WeightsError
from fpt.models import BACKBONES, Backbone
from fpt.models.families import FAMILIES
from fpt.models.layers import replace_layers
from fpt.models.weights import fetch

# The library's defaults name ids of GPT-2's own vocabulary; a model that reads no ids has none.
NO_SPECIAL_TOKENS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None, "sep_token_id": None}


def library_model(backbone: str, tokens: int, layers: int = 0, **options: Any) -> nn.Module:
    """The library's model with `tokens` rows of positions and the first `layers` layers (0: all), untrained values.

    Other options of the backbone are fields of its config.
    """
    entry = BACKBONES[backbone]
    family = FAMILIES[entry.family]
    sizes = {family.depth: layers or entry.layers} | ({family.context: tokens} if family.context else {})
    config = family.config(**{**entry.config, **family.fixed, **NO_SPECIAL_TOKENS, **sizes, **options})
    config._attn_implementation = "fpt"
    model = family.model(config)
    for path in family.replaced:
        parent, _, name = path.rpartition(".")
        delattr(model.get_submodule(parent), name)
    if family.prepare:
        family.prepare(model, tokens)
    replace_layers(model)
    return model


def pretrained_state(backbone: str) -> dict[str, Tensor]:
    """The pretrained weights as float32, under the library's names.

    Raises WeightsError where there are none, or where the file lacks some of what the library's model has.
    """
    folder = fetch(backbone)
    try:
        with quiet_library():
            model, found = FAMILIES[BACKBONES[backbone].family].load(
                folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True
            )
    except (OSError, ValueError, LookupError, RuntimeError, SafetensorError) as error:
        raise WeightsError(f"the weights of backbone {backbone!r} in {folder} cannot be read: {error}") from error
    # The library draws at random what it does not find; only a pooler, which nothing here reads, may be missing.
    if lacking := sorted(name for name in found["missing_keys"] if not name.startswith("pooler.")):
        raise WeightsError(
            f"the weights of backbone {backbone!r} in {folder} cannot be read: {len(lacking)} of the tensors that "
            f"{type(model).__name__} has are not in the file, {lacking[0]} for one"
        )
    return dict(model.state_dict())


def kept_state(path: Path) -> dict[str, Tensor]:
    """The backbone's weights that a sweep kept, under the library's names; raises WeightsError if it cannot be read."""
    try:
        kept = load_file(path)
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"{path}: no weights that a sweep kept can be read there: {error}") from error
    prefix = "backbone."
    return {name.removeprefix(prefix): tensor for name, tensor in kept.items() if name.startswith(prefix)}


def save_random(entry: Backbone, folder: Path) -> nn.Module:
    """Save the library's whole model of `entry` with random values in every tensor, to stand in for pretrained ones."""
    family = FAMILIES[entry.family]
    with torch.random.fork_rng(devices=[]), quiet_library():
        torch.manual_seed(1)
        model = family.whole(family.config(**{**NO_SPECIAL_TOKENS, **entry.config}))
        for parameter in model.parameters():  # biases and layer norms too, so that a swapped one shows
            nn.init.normal_(parameter, std=0.3)
        cast(Any, model).save_pretrained(folder)
    return model


@contextmanager
def quiet_library() -> Iterator[None]:
    """No progress bar or advice on the library's part while a model loads; errors still show."""
    level, bars = library_logging.get_verbosity(), library_logging.is_progress_bar_enabled()
    library_logging.set_verbosity_error()
    library_logging.disable_progress_bar()
    try:
        yield
    finally:
        library_logging.set_verbosity(level)
        if bars:
            library_logging.enable_progress_bar()


def unused_parameters(backbone: str, tokens: int, layers: int) -> dict[str, int]:
    """Parameters of the full library model that transfer never uses: {what: count}, counted on the meta device."""
    entry = BACKBONES[backbone]
    family = FAMILIES[entry.family]
    if not entry.pretrained:
        return {}
    with torch.device("meta"):
        model: Any = family.whole(family.config(**{**entry.config, **NO_SPECIAL_TOKENS}))
    sizes = {id(parameter): parameter.numel() for parameter in model.parameters()}  # tied ones count once
    counts = {path: sum(sizes.pop(id(part), 0) for part in parameters_of(model, path)) for path in family.unused}
    if family.positions and not family.new_positions:
        rows, width = model.get_parameter(family.positions).shape
        first = family.first_position
        counts |= {"positions before the first token's": first * width} if first else {}
        counts["positions beyond the task's tokens"] = max(0, rows - first - tokens) * width
    if layers < entry.layers:
        blocks = next(child for child in model.modules() if isinstance(child, nn.ModuleList))
        counts["layers beyond the first"] = sum([p.numel() for block in blocks[layers:] for p in block.parameters()])
    return counts


def parameters_of(model: nn.Module, path: str) -> list[nn.Parameter]:
    """The parameters of the module, or the one parameter, that `path` names."""
    parent, _, name = path.rpartition(".")
    part = getattr(model.get_submodule(parent), name)
    return [part] if isinstance(part, nn.Parameter) else list(part.parameters())
