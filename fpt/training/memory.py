"""Will a fleet fit? Predicted before the start; a fleet that would not is split into smaller ones."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import psutil
import torch

from fpt.errors import FptError
from fpt.models.template import Template
from fpt.training.recipe import Recipe

FLOAT = 4  # bytes
STATES = 6  # parameters, gradient, two Adam moments, best so far; weights and their gradient in the compute type
KEPT_PER_LAYER = 34  # floats a token and unit of width that one block keeps for its backward pass
KEPT_PER_SCORE = 4.5  # floats an attention score: softmax, mask and its bits, their product, a gradient passing by
CONTAINER = Path("/sys/fs/cgroup")  # version 2
SHARE = 0.8  # of the free memory that a fleet may take

Part = tuple[list[float], list[int]]
T = TypeVar("T")


def run_bytes(template: Template, recipe: Recipe) -> int:
    """Predicted bytes of one run: trainable state, activations, and frozen tensors where the seed draws them."""
    trainable = sum(template.shapes[name].numel() for name in template.trainable)
    frozen = sum(shape.numel() for shape in template.shapes.values()) - trainable
    drawn = frozen if template.init != "pretrained" else 0  # pretrained tensors are held once, whatever the fleet
    tokens = recipe.batch_size * template.task.tokens
    scores = template.module.heads * template.module.reach
    activations = tokens * template.layers * (KEPT_PER_LAYER * template.width + KEPT_PER_SCORE * scores)
    return int(FLOAT * (STATES * trainable + activations + drawn))


def free_bytes(device: torch.device) -> int:
    """Bytes free on the device; of main memory, within the limit of a container, the part of one of FPT_WORKERS."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    free: int = psutil.virtual_memory().available
    try:
        limit, used = (int((CONTAINER / f"memory.{name}").read_text()) for name in ("max", "current"))
        free = min(free, limit - used)
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        pass
    return free // int(os.environ.get("FPT_WORKERS", "1"))


def split(template: Template, recipe: Recipe, rates: list[float], seeds: list[int], device: torch.device) -> list[Part]:
    """Fleets that each fit: all rates of as many seeds as fit, else single seeds with as many rates as fit.

    Raises FptError where not even one run fits.
    """
    need, free = run_bytes(template, recipe), int(SHARE * free_bytes(device))
    most = free // need
    if most < 1:
        raise FptError(
            f"one run of {template.backbone!r} on {template.task.name!r} at batch size {recipe.batch_size} needs about "
            f"{need / 2**30:.1f} GiB, {free / 2**30:.1f} GiB may be used: take a smaller backbone, task or batch_size"
        )
    if most >= len(rates):
        return [(rates, some) for some in chunks(seeds, most // len(rates))]
    return [(some, [seed]) for seed in seeds for some in chunks(rates, most)]


def halve(part: Part) -> list[Part]:
    """Two fleets in the place of one that ran out of memory; raises FptError where one run alone did."""
    rates, seeds = part
    if len(seeds) > 1:
        return [(rates, some) for some in chunks(seeds, (len(seeds) + 1) // 2)]
    if len(rates) > 1:
        return [(some, seeds) for some in chunks(rates, (len(rates) + 1) // 2)]
    raise FptError("one run alone ran out of memory: take a smaller backbone, task or batch_size")


def chunks(values: Sequence[T], size: int) -> list[list[T]]:
    """`values` in lists of `size`, the last one shorter."""
    return [list(values[start : start + size]) for start in range(0, len(values), size)]
