"""How a fleet is computed: the faster number type, threads, torch's modes, and whether compiling pays."""

import functools
import os
import platform
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from fpt.files import cache_folder, read_json, write_json
from fpt.models.layers import multiplied_in
from fpt.models.template import Template
from fpt.training.recipe import Recipe

FLOAT = 4  # bytes
BFLOAT16_PAYS = 1.5  # bfloat16 must be so many times as fast to be chosen
ROWS, SIZE = 2048, 768  # of the products that are timed: tokens of a batch, and the width of GPT-2
COMPILING_PAYS = 2.5e12  # multiplications of the forward passes for each layer: two minutes of one core


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


def faster(device: torch.device) -> str:
    """The number type whose products of (ROWS, SIZE) with (SIZE, SIZE) are faster, measured.

    On a processor that has no bfloat16 its products are computed in float32.
    """
    if multiplied_in(torch.bfloat16, device) != torch.bfloat16:
        return "float32"
    return "bfloat16" if speedup(device) >= BFLOAT16_PAYS else "float32"


def speedup(device: torch.device) -> float:
    """How many times as fast as in float32 a product is in bfloat16: types take turns, and the best of each counts."""
    best = {torch.float32: float("inf"), torch.bfloat16: float("inf")}
    pairs = {}
    for kind in best:
        pairs[kind] = [torch.ones(n, SIZE, dtype=kind, device=device) for n in (ROWS, SIZE)]
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
    weights train; in bfloat16 up to 2.3. Compiling its four layers takes 25 s the first time on a machine, 5 s later,
    when the compiled code is read from the disk; the thirty of SmolLM2 took over 200 s beside another sweep. So the
    bound grows with the layers. Rounding differs from the uncompiled step's, as between two machines. On a CPU alone:
    nothing was measured on a GPU. Not with recurrent layers: their loops over time would be unrolled, and compiling
    take longer than training. Nor with batches that are cut to their length: every length would be compiled anew.
    """
    if device.type != "cpu" or template.module.family.recurrent or template.task.by_length:
        return False
    _, weights = template.sizes
    products = recipe.steps * runs * recipe.batch_size * template.task.tokens * weights
    return products >= COMPILING_PAYS * max(1, template.layers) and can_compile()


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
def own_modes(device: torch.device) -> Iterator[None]:
    """Gradients on, autocast and TF32 off, whatever the caller's modes: the recipe alone says in which type is
    computed. Afterwards as before."""
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast(device.type, enabled=False),
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
