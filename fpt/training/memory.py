"""Memory: what a fleet takes, what is free, and fleets that fit into it."""

import os
import re
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import psutil
import torch
from torch.nn import GELU
from transformers.activations import GELUActivation

from fpt.errors import FptError, SpecError
from fpt.models.template import Template
from fpt.training.compute import FLOAT
from fpt.training.features import kept_bytes
from fpt.training.recipe import Recipe

STATES = 7  # parameters, gradient, two Adam moments, best so far; weights and gradient in the compute type, passing by
KEPT_PER_LAYER = 29  # floats a token and unit of width that one block keeps for its backward pass
KEPT_WITH_GELU = 20  # fewer where GELU is one operation, as in BERT, and not the library's formula for GPT-2
KEPT_BY_ADAPTERS = 20  # more of them with adapters: chosen to lie above what tiny-lm was measured to take, not derived
KEPT_PER_RECURRENT_LAYER = 46  # four gates a step, and their norms
KEPT_PER_SCORE = 3.5  # floats an attention score: softmax, what is left of it, gradients passing by
MASKS_PER_LAYER, MASKS_PER_SCORE = 2.5, 1.25  # floats of dropout masks and their bits
CONTAINER = Path("/sys/fs/cgroup")  # version 2
SHARE = 0.8  # of the free memory that a fleet may take

# In errors of memory that have no type of their own: on a CPU, of cuBLAS, and of CUDA outside torch's allocator
SHORT = ("DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED", "CUDA error: out of memory")

FleetGrid = tuple[list[float], list[int]]  # the learning rates and the seeds of one fleet
T = TypeVar("T")


def run_bytes(template: Template, recipe: Recipe) -> int:
    """Predicted bytes of one run: trainable state and activations."""
    trainable, _ = template.sizes
    kept = kept_per_layer(template) + (KEPT_BY_ADAPTERS if template.adapters else 0)
    return int(FLOAT * (STATES * trainable + per_block(template, recipe, kept, KEPT_PER_SCORE)))


def kept_per_layer(template: Template) -> int:
    """Floats a token and unit of width that a block of this model keeps for its backward pass."""
    if template.module.family.recurrent:
        return KEPT_PER_RECURRENT_LAYER
    one_operation = any(isinstance(part, GELUActivation | GELU) for part in template.module.modules())
    return KEPT_WITH_GELU if one_operation else KEPT_PER_LAYER


def seed_bytes(template: Template, recipe: Recipe) -> int:
    """Bytes that all runs of one seed share: dropout masks, frozen tensors that the seed draws, cached features.
    Pretrained tensors are held once."""
    masks = per_block(template, recipe, MASKS_PER_LAYER, MASKS_PER_SCORE) if recipe.dropout else 0
    trainable, every = template.sizes
    drawn = 0 if template.init == "pretrained" else every - trainable
    return int(FLOAT * (masks + drawn)) + kept_bytes(template, recipe)


def once_bytes(template: Template) -> int:
    """Bytes that all runs share: frozen pretrained tensors."""
    trainable, every = template.sizes
    return FLOAT * (every - trainable) if template.init == "pretrained" else 0


def per_block(template: Template, recipe: Recipe, of_width: float, of_score: float) -> float:
    """Numbers in proportion to tokens and width, and to attention scores, of all blocks."""
    tokens = template.task.tokens
    scores = template.module.heads * tokens  # 0 without attention
    return recipe.batch_size * tokens * template.layers * (of_width * template.width + of_score * scores)


def free_bytes(device: torch.device) -> int:
    """Bytes free on the device; of main memory, within the limits of a container and of this process, the part of one
    of FPT_WORKERS."""
    if device.type == "cuda":  # what torch keeps of freed tensors counts as taken there
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    shared: int = min(psutil.virtual_memory().available, container_bytes())
    return min(shared // workers(), process_bytes())


def workers() -> int:
    """How many processes share the memory: FPT_WORKERS, else 1. SpecError for what is no whole number from 1."""
    given = os.environ.get("FPT_WORKERS", "1")
    if not re.fullmatch("0*[1-9][0-9]{0,8}", given):
        raise SpecError(f"FPT_WORKERS = {given!r}: must be a whole number from 1")
    return int(given)


def process_bytes() -> int:
    """Bytes that this process may still take within its own limit (`ulimit -v`)."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(0, limit - int(psutil.Process().memory_info().vms))


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory was short: on a GPU, and on a CPU, where torch has no type for it."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(words in str(error) for words in SHORT)


def container_bytes() -> int:
    """Bytes free within the limit of a container; as many as can be where there is no container, or no limit.

    The page cache counts as used there; what of it is inactive the kernel gives back when memory is needed.
    """
    try:
        limit, used = (int((CONTAINER / f"memory.{name}").read_text()) for name in ("max", "current"))
        statistics = dict(line.split() for line in (CONTAINER / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # without a limit it reads "max"
        return sys.maxsize
    return limit - used + int(statistics.get("inactive_file", 0))


def split(
    template: Template, recipe: Recipe, rates: list[float], seeds: list[int], device: torch.device
) -> list[FleetGrid]:
    """Fleets that each fit: all rates of as many seeds as fit, else single seeds with as many rates as fit. One seed
    alone where batches are cut to their length, which differs from seed to seed.

    Raises FptError where not even one run fits.
    """
    run, shared = run_bytes(template, recipe), seed_bytes(template, recipe)
    free, once = int(SHARE * free_bytes(device)), 0
    if device.type == "cuda":  # copies of what main memory holds already; the module's own values come along
        once = once_bytes(template) + FLOAT * template.sizes[1]
    if free < once + shared + run:
        fewer = ", or fewer sweeps at once (more --threads for each)" if workers() > 1 else ""
        raise FptError(
            f"one run of {template.backbone.name!r} on {template.task.name!r} at batch size {recipe.batch_size} needs "
            f"about {(once + shared + run) / 2**30:.1f} GiB, {free / 2**30:.1f} GiB may be used: take a smaller "
            f"backbone, task or batch_size{fewer}"
        )
    free -= once
    if most := free // (shared + len(rates) * run):
        return [(rates, some) for some in chunks(seeds, 1 if template.task.by_length else most)]
    return [(some, [seed]) for seed in seeds for some in chunks(rates, (free - shared) // run)]


def halve(part: FleetGrid) -> list[FleetGrid]:
    """Two fleets in the place of one that ran out of memory; raises FptError where one run alone did."""
    rates, seeds = part
    if len(seeds) > 1:
        return [(rates, some) for some in chunks(seeds, (len(seeds) + 1) // 2)]
    if len(rates) > 1:
        return [(some, seeds) for some in chunks(rates, (len(rates) + 1) // 2)]
    run = f"learning rate {rates[0]:g}, seed {seeds[0]}"
    raise FptError(f"one run alone ({run}) ran out of memory: take a smaller backbone, task or batch_size")


def chunks(values: Sequence[T], size: int) -> list[list[T]]:
    """`values` in lists of `size`, the last one shorter."""
    return [list(values[start : start + size]) for start in range(0, len(values), size)]
