"""What the machine can give: memory for a fleet, the faster number type, threads, and whether compiling pays."""

import functools
import os
import platform
import resource
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
import torch

from fpt.errors import FptError
from fpt.files import cache_folder, read_json, write_json
from fpt.models.template import Template
from fpt.training.recipe import Recipe

FLOAT = 4  # bytes
STATES = 7  # parameters, gradient, two Adam moments, best so far; weights and gradient in the compute type, passing by
KEPT_PER_LAYER = 29  # floats a token and unit of width that one block keeps for its backward pass
KEPT_BY_ADAPTERS = 20  # more of them with adapters: chosen to lie above what tiny-lm was measured to take, not derived
KEPT_PER_RECURRENT_LAYER = 46  # four gates a step, and their norms
KEPT_PER_SCORE = 3.5  # floats an attention score: softmax, what is left of it, gradients passing by
MASKS_PER_LAYER, MASKS_PER_SCORE = 2.5, 1.25  # floats of dropout masks and their bits
CONTAINER = Path("/sys/fs/cgroup")  # version 2
SHARE = 0.8  # of the free memory that a fleet may take
BFLOAT16_PAYS = 1.5  # bfloat16 must be so many times as fast to be chosen
COMPILING_PAYS = 1e13  # multiplications of the forward passes, six to ten minutes of one core

# In errors of memory that have no type of their own: on a CPU, of cuBLAS, and of CUDA outside torch's allocator
SHORT = ("DefaultCPUAllocator", "CUBLAS_STATUS_ALLOC_FAILED", "CUDA error: out of memory")

FleetGrid = tuple[list[float], list[int]]  # the learning rates and the seeds of one fleet
T = TypeVar("T")


def run_bytes(template: Template, recipe: Recipe) -> int:
    """Predicted bytes of one run: trainable state and activations."""
    trainable = sum(template.shapes[name].numel() for name in template.trainable)
    kept = KEPT_PER_RECURRENT_LAYER if "recurrent" in template.groups.values() else KEPT_PER_LAYER
    kept += KEPT_BY_ADAPTERS if template.adapters else 0
    return int(FLOAT * (STATES * trainable + per_block(template, recipe, kept, KEPT_PER_SCORE)))


def seed_bytes(template: Template, recipe: Recipe) -> int:
    """Bytes that all runs of one seed share: dropout masks, and frozen tensors that the seed draws. Pretrained ones are
    held once."""
    masks = per_block(template, recipe, MASKS_PER_LAYER, MASKS_PER_SCORE) if recipe.dropout else 0
    frozen = (shape.numel() for name, shape in template.shapes.items() if name not in template.trainable)
    return int(FLOAT * (masks + (0 if template.init == "pretrained" else sum(frozen))))


def per_block(template: Template, recipe: Recipe, of_width: float, of_score: float) -> float:
    """Numbers in proportion to tokens and width, and to attention scores, of all blocks."""
    scores = template.module.heads * template.module.reach
    return recipe.batch_size * template.task.tokens * template.layers * (of_width * template.width + of_score * scores)


def free_bytes(device: torch.device) -> int:
    """Bytes free on the device; of main memory, within the limits of a container and of this process, the part of one
    of FPT_WORKERS."""
    if device.type == "cuda":  # what torch keeps of freed tensors counts as taken there
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    shared: int = min(psutil.virtual_memory().available, container_bytes())
    return min(shared // int(os.environ.get("FPT_WORKERS", "1")), process_bytes())


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
    template: Template, recipe: Recipe, rates: list[float], seeds: list[int], device: torch.device, kept: int = 0
) -> list[FleetGrid]:
    """Fleets that each fit: all rates of as many seeds as fit, else single seeds with as many rates as fit.

    `kept`: bytes that a fleet keeps of each seed beside those of `seed_bytes`. Raises FptError where not even one run
    fits.
    """
    run, shared = run_bytes(template, recipe), seed_bytes(template, recipe) + kept
    free = int(SHARE * free_bytes(device))
    if free < shared + run:
        raise FptError(
            f"one run of {template.backbone!r} on {template.task.name!r} at batch size {recipe.batch_size} needs about "
            f"{(shared + run) / 2**30:.1f} GiB, {free / 2**30:.1f} GiB may be used: take a smaller backbone, task or "
            "batch_size"
        )
    if most := free // (shared + len(rates) * run):
        return [(rates, some) for some in chunks(seeds, most)]
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


def dtype(compute_type: str, device: torch.device) -> torch.dtype:
    """`auto` becomes bfloat16 where its matmul is at least 1.5 times as fast as float32's, else float32.

    Measured once per machine, and remembered in the cache.
    """
    if compute_type == "auto":
        compute_type = remembered(device)
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[compute_type]


def remembered(device: torch.device) -> str:
    """The measured answer for this machine; measures and writes it where it is not known yet."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    key = f"{platform.node()} {name} torch {torch.__version__}"
    path = cache_folder() / "compute_type.json"
    known = read_json(path) or {}
    if known.get(key) not in ("float32", "bfloat16"):
        with own_modes(device):
            known[key] = faster(device)
        with suppress(OSError):  # a home folder that cannot be written only costs a measurement next time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, known)
    return str(known[key])


def faster(device: torch.device, size: int = 768, rows: int = 2048) -> str:
    """The number type whose products of (rows, size) with (size, size) are faster, measured.

    A processor without bfloat16 emulates it, more than 50 times as slow as float32, measured. A few rows show that at
    once; a quarter leaves room for the noise of so short a measurement.
    """
    emulated = speedup(device, size, max(1, rows // 32)) < 1 / 4
    return "bfloat16" if not emulated and speedup(device, size, rows) >= BFLOAT16_PAYS else "float32"


def speedup(device: torch.device, size: int, rows: int) -> float:
    """How many times as fast as in float32 a product is in bfloat16: types take turns, and the best of each counts."""
    best = {torch.float32: float("inf"), torch.bfloat16: float("inf")}
    pairs = {}
    for kind in best:
        pairs[kind] = [torch.ones(n, size, dtype=kind, device=device) for n in (rows, size)]
    for _ in range(7):
        for kind, (left, right) in pairs.items():
            start = time.perf_counter()
            for _ in range(3):
                product = left @ right
            product[0, 0].item()  # waits for the device
            best[kind] = min(best[kind], time.perf_counter() - start)
    return best[torch.float32] / best[torch.bfloat16]


def compiling_pays(template: Template, recipe: Recipe, runs: int, device: torch.device) -> bool:
    """Whether a fleet of so many runs computes for so long that compiling it first saves time, and can be compiled.

    Compiled, the passes over memory between two matrix products (number types, GELU, masks, sums) become one. Measured
    with 84 runs of tiny-lm on one core, in float32: 1.25 times as fast where the blocks are frozen, 1.11 where all
    weights train; in bfloat16 up to 2.3. So a fleet at the bound saves a minute at least; compiling takes 25 s the
    first time on a machine, 5 s later, when the compiled code is read from the disk. Rounding differs from the
    uncompiled step's, as between two machines. On a CPU alone: nothing was measured on a GPU. Not with recurrent
    layers: their loops over time would be unrolled, and compiling take longer than training.
    """
    if device.type != "cpu" or "recurrent" in template.groups.values():
        return False
    weights = sum(shape.numel() for shape in template.shapes.values())
    products = recipe.steps * runs * recipe.batch_size * template.task.tokens * weights
    return products >= COMPILING_PAYS and can_compile()


@functools.cache
def can_compile() -> bool:
    """Whether a small function compiles: it takes a C++ compiler and Python's headers."""
    if os.environ.get("TORCH_COMPILE_DISABLE") == "1":  # torch's own switch
        return False
    try:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(8))
    except (RuntimeError, OSError) as error:
        warnings.warn(f"fleets are not compiled, which would be faster: {str(error).splitlines()[0]}", stacklevel=2)
        return False
    return True


@contextmanager
def own_modes(place: torch.device) -> Iterator[None]:
    """Gradients on, autocast and TF32 off, whatever the caller's modes: the recipe alone says in which type is
    computed. Afterwards as before."""
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast(place.type, enabled=False),
        float32_products(),
    ):
        yield


@contextmanager
def float32_products() -> Iterator[None]:
    """Products of float32 numbers in float32, not in TF32. Afterwards as before."""
    matmul: Any = torch.backends.cuda.matmul
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # the caller set torch's newer fp32_precision, which only that attribute tells
        before, newer = "", matmul.fp32_precision
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        if before:
            torch.set_float32_matmul_precision(before)
        else:
            matmul.fp32_precision = newer


@contextmanager
def computing(threads: int) -> Iterator[None]:
    """So many threads of torch, on which results depend; and numbers below 1.2e-38 (subnormal ones) are taken as zero.
    Afterwards as before.

    The gradients of a saturated model are full of such numbers, and Intel's processors are slow with them: a float32
    step of 56 unfrozen runs takes 1.6 s of one core without them and 3.0 s with them. In threads that torch has started
    before they are not zero, which matters only with more than one.
    """
    before, flushed = torch.get_num_threads(), bool(torch.tensor(1e-39) == 0)  # torch does not tell the latter
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed)
        torch.set_num_threads(before)
