"""What this machine has, for `fpt doctor`: device, memory, data and weights. Nothing is downloaded."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from fpt import models, tasks
from fpt.errors import WeightsError
from fpt.models import BACKBONES, Backbone
from fpt.models.weights import local_folder, missing, packaged, verify
from fpt.sweeps.engines.local import cores
from fpt.sweeps.provenance import device_name

Finding = tuple[str, str, str]  # what, what was found, how to get it
MISSING, ALTERED, NONE = "not here", "altered", "none exist"  # what is found of weights, other than their place


def findings() -> Iterator[Finding]:
    """One row for each thing a study may need."""
    yield from _machine()
    yield from _data(tasks.data_folder())
    for backbone in BACKBONES:
        yield f"weights: {backbone}", *weights(models.backbone(backbone))


def _machine() -> Iterator[Finding]:
    import torch

    devices = [device_name(f"cuda:{index}") for index in range(torch.cuda.device_count())]
    yield "device", ", ".join(devices) or device_name("cpu"), "" if devices else "no GPU; the laptop studies need none"
    yield "cores", str(cores()), ""
    memory = psutil.virtual_memory()
    yield "memory", f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free", ""
    runs = Path("runs") if Path("runs").is_dir() else Path()
    lacking = "" if os.access(runs, os.W_OK) else "not writable"
    yield "results folder", f"{shutil.disk_usage(runs).free / 2**30:.1f} GiB free", lacking


def _data(folder: Path) -> Iterator[Finding]:
    yield "data folder", str(folder), "" if "FPT_DATA" in os.environ else "set FPT_DATA to use another"
    for task, entry in tasks.known().items():
        found = entry.found_in(folder)
        if not entry.files:
            yield f"data: {task}", "a file of yours" if entry.path else "needs no download", ""
        elif found:
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            yield f"data: {task}", f"{found[0]}{more}", ""
        else:
            yield f"data: {task}", MISSING, entry.advice


def weights(backbone: Backbone) -> tuple[str, str]:
    """Where this machine has a backbone's pretrained weights, and how to get them if it has not."""
    if not backbone.pretrained:
        return NONE, ""
    if folder := local_folder(backbone):
        try:
            verify(backbone, folder)
        except WeightsError as error:
            return ALTERED, str(error)
        return str(folder), ""
    if backbone.gguf and (file := packaged(backbone)):
        return str(file), "dequantised at first use"
    if not backbone.hub:
        return MISSING, missing(backbone)
    package = f"; or {backbone.install}" if backbone.install else ""
    return MISSING, f"downloaded from {on_hub(backbone)} at first use{package}"


def on_hub(entry: Backbone) -> str:
    """Where on the hub the weights are."""
    return f"{entry.hub}, revision {entry.revision[:8] if entry.revision else 'not pinned'}"
