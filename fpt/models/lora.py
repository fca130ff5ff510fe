"""LoRA's adapters (Hu et al. 2021): attached to a backbone, initialised, merged into its matrices, kept as peft's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from fpt.errors import SpecError
from fpt.files import replaced, write_json
from fpt.models.arms import ADAPTER_FILES, Adapters
from fpt.models.families.library import Family
from fpt.models.initialise import uniform
from fpt.models.layers import Projection
from fpt.models.weights import PREFIX

A, B = ".adapter_a", ".adapter_b"  # ends of parameter names


def is_adapter(name: str) -> bool:
    """Whether a parameter of this name is an adapter's."""
    return name.endswith((A, B))


def attach(model: nn.Module, family: Family, backbone: str, adapters: Adapters) -> None:
    """Put an adapter beside every matrix of the targets in the library's model.

    Raises SpecError for a rank above a matrix, and for matrices that are multiplied outside our layers, as those of
    experts are.
    """
    for name, parameter in model.named_parameters():
        if parameter.dim() > 2 and family.group_of(model, name) in adapters.groups:
            raise SpecError(
                f"backbone {backbone!r}: {name} has the shape {tuple(parameter.shape)}, a mixture of experts, which "
                f"take no adapters; targets = {adapters.targets!r} would leave it as it is"
            )
    for name, module in model.named_modules():
        if not isinstance(module, Projection) or family.group_of(model, f"{name}.weight") not in adapters.groups:
            continue
        if adapters.rank > min(module.weight.shape):
            raise SpecError(
                f"rank = {adapters.rank}: {name} of backbone {backbone!r} is a matrix of "
                f"{' x '.join(map(str, module.weight.shape))}, and its rank is at most {min(module.weight.shape)}"
            )
        module.attach(adapters.rank, adapters.alpha / adapters.rank)


def initial(adapters: Adapters, name: str, shape: torch.Size, seed: int) -> Tensor:
    """One of both zero, so that the model is the backbone at first; the other uniform within 1/sqrt(fan-in). Where B is
    zero, that is peft's rule, with our own draws."""
    zero = A if adapters.zero == "A" else B
    return torch.zeros(shape) if name.endswith(zero) else uniform(shape, shape[1] ** -0.5, seed, name)


def merged(model: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All weights of a run, every W + scale B A in the place of W, and no adapters any more."""
    result = {name: tensor for name, tensor in weights.items() if not is_adapter(name)}
    for name in weights:
        if name.endswith(B):
            matrix = name.removesuffix(B)
            layer: Any = model.get_submodule(matrix)
            change = layer.scale * weights[name] @ weights[matrix + A]
            result[f"{matrix}.weight"] = result[f"{matrix}.weight"] + (change.t() if layer.transposed else change)
    return result


def save(model: nn.Module, adapters: Adapters, base: str, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Keep the adapters of a run in the two ADAPTER_FILES, from which peft loads them onto the library's model.

    `weights` are those of the run, by the names of its `model`; `base` is the library's name of what was adapted.
    """
    inside = {name.removeprefix(PREFIX): tensor.contiguous() for name, tensor in weights.items() if is_adapter(name)}
    layers = sorted({name.removesuffix(A).removesuffix(B) for name in inside})
    names = {A: ".lora_A.weight", B: ".lora_B.weight"}
    tensors = {f"base_model.model.{layer}{names[part]}": inside[layer + part] for layer in layers for part in (A, B)}
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": base,
        "inference_mode": True,
        "r": adapters.rank,
        "lora_alpha": adapters.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": layers,
        "fan_in_fan_out": any(getattr(module, "transposed", False) for module in model.modules()),
    }
    config_file, tensors_file = (folder / name for name in ADAPTER_FILES)
    with replaced(tensors_file) as partial:
        save_file(tensors, partial, {"format": "pt"})
    write_json(config_file, config)
