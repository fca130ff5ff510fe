"""What a file of weights must hold that no known SHA-256 vouches for: a foreign one, and one that a sweep kept.

First its header is compared with the shapes that are announced, before memory is taken for these; then what the library
found of names; at last the values. Each refusal (WeightsError) names the file and the tensor.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import safe_open

from fpt.errors import WeightsError

if TYPE_CHECKING:
    from torch import Tensor

FLOATS = ("F16", "BF16", "F32", "F64")  # number types of weights, as safetensors writes them
INDICES = ("BOOL", "U8", "I32", "I64")  # of masks and ids
STACK = re.compile(r"(.*?)\.\d+\.")  # the list of layers that a tensor is in


def check_header(file: Path, shapes: Mapping[str, Sequence[int]], any_rows: str | None = None) -> None:
    """Refuse numbers that would be read as other ones, and shapes other than those of the parameters; `any_rows` names
    the one that may have any number of rows.

    Integers and 8-bit floats have scales elsewhere. Masks and ids that older versions of the library saved beside the
    parameters are integers, and are not read. Raises SafetensorError for a file of another kind.
    """
    with safe_open(file, "pt") as opened:
        for name in opened.keys():  # noqa: SIM118 - no mapping
            tensor = opened.get_slice(name)
            kind, shape, announced = tensor.get_dtype(), tuple(tensor.get_shape()), shapes.get(name)
            skip = int(name == any_rows)
            if kind not in FLOATS and (kind not in INDICES or announced is not None):
                raise WeightsError(
                    f"{file}: tensor {name} holds numbers of type {kind}, but weights are read in {', '.join(FLOATS)}; "
                    "save the model in one of these"
                )
            if announced is not None and shape[skip:] != tuple(announced)[skip:]:
                raise _misshapen(file, name, shape, announced)


def _misshapen(file: Path, name: str, given: Sequence[int], announced: Sequence[int]) -> WeightsError:
    return WeightsError(f"{file}: tensor {name} has the shape {tuple(given)}, but its model takes {tuple(announced)}")


def check_names(file: Path, names: Iterable[str], found: Mapping[str, Any]) -> None:
    """Refuse a file whose tensors the library did not place in its model, which has parameters of these names.

    `found` is its `output_loading_info`. Heads and masks may be left over.
    """
    for name, given, expected in sorted(found["mismatched_keys"]):  # under names of an older version
        raise _misshapen(file, name, given, expected)
    unexpected = sorted(found["unexpected_keys"])
    if prefix := _prefix(unexpected, found["missing_keys"]):
        raise WeightsError(
            f"{file}: the names of its tensors begin with {prefix} and the library looks for them without it. Save the "
            "model inside by its own save_pretrained, or take this prefix off every name"
        )
    stacks = {stack[1] for name in names if (stack := STACK.match(name))}
    for name in unexpected:
        stack = STACK.match(name)
        if stack and any(f".{stack[1]}".endswith(f".{known}") for known in stacks) and not _is_mask(file, name):
            raise WeightsError(
                f"{file}: tensor {name} lies in the layers, but config.json announces no such tensor. Correct "
                "config.json; option layers takes the first layers of a model"
            )


def _prefix(unexpected: Sequence[str], missing: Iterable[str]) -> str:
    """What stands before the names of the tensors that a file seems to lack, where it has them under longer names."""
    found = {each.removesuffix(name) for name in missing for each in unexpected if each.endswith(f".{name}")}
    return found.pop() if len(found) == 1 else ""


def _is_mask(file: Path, name: str) -> bool:
    """Whether a tensor says who attends to whom, or is the value that hides a token: constants, which older versions of
    the library saved beside the parameters. A mask is square and has two values; no trained matrix has."""
    with safe_open(file, "pt") as opened:
        tensor = opened.get_tensor(name)
    if tensor.numel() == 1:
        return name.endswith(".masked_bias")
    square = tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2]
    return square and len(tensor.unique()) == 2


def check_values(file: Path, state: "Mapping[str, Tensor]", wanted: Collection[str]) -> None:
    """Refuse weights without a tensor that is wanted, or whose numbers nobody trained: some that are not finite, or a
    layer without any matrix that is not all zeros, of which a copy broke off. A single matrix of zeros is none: some
    models begin, and some end, with one."""
    if lacking := sorted({*wanted} - state.keys()):
        raise WeightsError(f"{file}: these weights lack {len(lacking)} tensors of the backbone, {lacking[0]} for one")
    alive: dict[str, bool] = {}
    for name in wanted:
        tensor, layer = state[name], STACK.match(name)
        if not tensor.isfinite().all():
            raise WeightsError(f"{file}: tensor {name} has values that are not finite")
        if layer and tensor.dim() > 1:
            alive[layer[0]] = alive.get(layer[0], False) or bool(tensor.any())
    if dead := [layer for layer, any_value in alive.items() if not any_value]:
        raise WeightsError(
            f"{file}: all matrices below {min(dead).rstrip('.')} are zeros: these weights are not trained, or their "
            "file is not whole. Save or download it again"
        )
