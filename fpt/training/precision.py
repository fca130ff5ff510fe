"""Which compute type is faster here: measured once per machine, remembered in ~/.cache/fpt."""

import json
import platform
import time
from contextlib import suppress
from pathlib import Path

import torch

from fpt.files import write_json

WORTH_IT = 1.5  # bfloat16 must be so many times as fast to be chosen


def resolve(compute_type: str, device: torch.device) -> torch.dtype:
    """`auto` becomes bfloat16 where its matmul is at least 1.5 times as fast as float32's, else float32."""
    if compute_type == "auto":
        compute_type = remembered(device)
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[compute_type]


def remembered(device: torch.device) -> str:
    """The measured answer for this machine; measures and writes it where it is not known yet."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    key = f"{platform.node()} {name} torch {torch.__version__}"
    path = Path("~/.cache/fpt/compute_type.json").expanduser()
    try:
        known = json.loads(path.read_text())
    except (OSError, ValueError):  # not there yet, or cut short: measure again
        known = {}
    if known.get(key) not in ("float32", "bfloat16"):
        known[key] = faster(device)
        with suppress(OSError):  # a home folder that cannot be written only costs a measurement next time
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, known)
    return str(known[key])


def faster(device: torch.device, size: int = 768, rows: int = 2048) -> str:
    """Time products of (rows, size) with (size, size), alternating, and compare the best of each type."""
    best = {torch.float32: float("inf"), torch.bfloat16: float("inf")}
    pairs = {kind: [torch.ones(n, size, dtype=kind, device=device) for n in (rows, size)] for kind in best}
    for _ in range(7):
        for kind, (left, right) in pairs.items():
            start = time.perf_counter()
            for _ in range(3):
                product = left @ right
            product[0, 0].item()  # waits for the device
            best[kind] = min(best[kind], time.perf_counter() - start)
    return "bfloat16" if best[torch.float32] >= WORTH_IT * best[torch.bfloat16] else "float32"
