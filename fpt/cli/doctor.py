"""What this machine has, for `fpt doctor`: device, memory, data, weights. Looks, and downloads nothing."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from fpt import tasks
from fpt.errors import WeightsError
from fpt.models import BACKBONES
from fpt.models.weights import local_folder, missing, verify

Finding = tuple[str, str, str]  # what, what was found, how to get it


def findings() -> Iterator[Finding]:
    """One row for each thing a study may need."""
    yield from _machine()
    yield from _data(tasks.data_folder())
    for backbone in BACKBONES:
        yield f"weights: {backbone}", *_weights(backbone)


def _machine() -> Iterator[Finding]:
    import torch

    from fpt.sweeps.provenance import device_name

    devices = [device_name(f"cuda:{index}") for index in range(torch.cuda.device_count())]
    lacking = "" if devices else "no GPU; the laptop studies need none"
    yield "device", ", ".join(devices) or device_name("cpu"), lacking
    yield "cores", str(psutil.cpu_count()), ""
    memory = psutil.virtual_memory()
    yield "memory", f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free", ""
    lacking = "" if os.access("runs", os.W_OK) else "not writable"
    yield "results folder", f"{shutil.disk_usage('runs').free / 2**30:.1f} GiB free", lacking


def _data(folder: Path) -> Iterator[Finding]:
    yield "data folder", str(folder), "" if "FPT_DATA" in os.environ else "set FPT_DATA to use another"
    for task, entry in tasks.TASKS.items():
        found = next((name for name in entry.files if (folder / name).exists()), None)
        if not entry.files:
            yield f"data: {task}", "a file of yours" if task == tasks.NPZ else "needs no download", ""
        elif found:
            yield f"data: {task}", found, ""
        else:
            fetched = f"downloaded at first use; with no network, put {entry.files[0]} into the data folder"
            yield f"data: {task}", "not here", entry.advice or fetched


def _weights(backbone: str) -> tuple[str, str]:
    hub, revision = BACKBONES[backbone].hub, BACKBONES[backbone].revision
    if not BACKBONES[backbone].pretrained:
        return "none exist", ""
    if folder := local_folder(backbone):
        try:
            verify(backbone, folder)
        except WeightsError as error:
            return "altered", str(error)
        return str(folder), ""
    pinned = f"{hub}, revision {revision[:8]}" if revision else f"{hub}, revision not pinned"
    return "not here", f"downloaded from {pinned} at first use" if hub else missing(backbone)
