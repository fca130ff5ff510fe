"""Checkpoints: all that a fleet needs to go on as if nothing had happened, whole on the disk or not at all."""

import json
import os
import shutil
import time
import warnings
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from fpt.errors import DataError, FptError
from fpt.files import read_json, remove_partial, replaced, sha256, write_json
from fpt.models.template import Template
from fpt.tasks.task import Task
from fpt.training.compute import FLOAT
from fpt.training.measures import MEASURES
from fpt.training.memory import FleetGrid
from fpt.training.recipe import Recipe

EVERY = 5.0  # seconds between checkpoints at least
SHARE = 0.05  # of the time that writing them may take
COPIES = 4  # of the trainable parameters of a run: they, the best so far, two Adam moments
PLAN = "plan.json"
TABLES = ("runs", "curves", *(name for name, measure in MEASURES.items() if measure.table))
# By what a part goes on, or counts as finished
SIGNS = ("finished-[0-9]*.json", "part-[0-9]*.safetensors")
# What a fleet writes into its folder, and nothing of the user's. The plan is last: while it is there, a process that is
# killed as it removes the others leaves none that another fleet would take for its own.
OURS = (*SIGNS, *(f"{name}-[0-9]*.parquet" for name in TABLES), PLAN)

Tables = dict[str, pd.DataFrame]  # runs, curves, and what was measured besides


@dataclass
class Plan:
    """What is decided when a fleet starts, and holds when it goes on after a crash."""

    identity: dict[str, Any]  # what the fleet is, and by what it is made
    parts: list[FleetGrid]  # fleets that are trained one after the other, where memory does not suffice for all at once
    compute_type: str
    threads: int
    compiled: bool

    @property
    def runs(self) -> list[int]:
        """Of each part."""
        return [len(rates) * len(seeds) for rates, seeds in self.parts]


def identify(task: Task, template: Template, recipe: Recipe, device: torch.device) -> dict[str, Any]:
    """What a checkpoint must have been made for and by, to go on from it."""
    model = ("layers", "options", "init", "random_init", "random_gain", "input_init", "trainable")
    return {
        "versions": {name: version(name) for name in ("fpt", "torch", "transformers")},
        "device": device.type,
        "task": [task.name, task.variant, dict(task.options), task.changes, task.checksum],
        "template": {"backbone": template.backbone.name, **{name: getattr(template, name) for name in model}},
        "adapters": template.adapters and asdict(template.adapters),
        "weights": template.weights_checksum,
        "recipe": recipe.model_dump(),
    }


class Folder:
    """The checkpoints of one fleet: its plan, a file for the part at work, the tables of every finished part."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir(parents=True, exist_ok=True)
        remove_partial(self.path)  # which may be as large as the checkpoint
        self.next = time.monotonic() + EVERY

    def plan(self, identity: dict[str, Any]) -> Plan | None:
        """What was decided at the start, if it was decided for the same `identity`; else our files are removed. Without
        a plan these are signs alone: nothing shows that a table is ours."""
        plan = read_json(self.path / PLAN) or {}
        if plan.get("identity") == json.loads(json.dumps(identity)):
            return Plan(**plan)
        patterns = OURS if (self.path / PLAN).is_file() else SIGNS
        found = [file for each in patterns for name in (each, f"{each}.damaged") for file in self.path.glob(name)]
        if found:
            warnings.warn(
                f"{self.path}: its plan is missing, or cannot be read, or was made for another fleet, by another "
                "version, or on another kind of device; this fleet starts over",
                stacklevel=2,
            )
        for file in found:
            file.unlink()
        return None

    def write_plan(self, plan: Plan) -> None:
        write_json(self.path / PLAN, asdict(plan))

    def tables(self, part: int) -> Tables | None:
        """The tables of a finished part. A damaged one is put aside with a warning, and the part starts over."""
        sign = self._sign(part)
        if not sign.is_file():
            return None
        sums = {self.path / name: expected for name, expected in (read_json(sign) or {}).items()}
        try:
            damaged = [file for file, expected in sums.items() if sha256(file) != expected] if sums else [sign]
        except DataError:  # a table is missing
            damaged = [sign]
        for file in damaged:
            self._put_aside(file, "its checksum is wrong, or that of a table is missing")
        if damaged:
            sign.unlink(missing_ok=True)
            return None
        return {file.name.partition("-")[0]: pd.read_parquet(file) for file in sums}

    def finish(self, part: int, tables: Tables) -> None:
        """Keep the tables of a part in the place of its checkpoint; their checksums, written last, are the sign."""
        sums = {}
        for name, table in tables.items():
            file = self.path / f"{name}-{part}.parquet"
            with replaced(file) as partial:
                table.to_parquet(partial, index=False)
            sums[file.name] = sha256(file)
        write_json(self._sign(part), sums)
        self.drop(part)

    def _sign(self, part: int) -> Path:
        return self.path / f"finished-{part}.json"

    def drop(self, part: int) -> None:
        """Remove the checkpoint of a part, if there is one."""
        self._file(part).unlink(missing_ok=True)

    def _file(self, part: int) -> Path:
        return self.path / f"part-{part}.safetensors"

    def due(self) -> bool:
        return time.monotonic() >= self.next

    def save(self, part: int, tensors: dict[str, Tensor]) -> None:
        """Write a checkpoint; the next is due in EVERY seconds, or when writing will take SHARE of the time.

        Raises FptError where it cannot be written, with the number of bytes that it takes.
        """
        began = time.monotonic()
        tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
        try:
            with replaced(self._file(part)) as partial:
                save_file(tensors, partial, {"crc32": str(checksum(tensors))})
        except (OSError, SafetensorError) as error:
            size = sum(tensor.nbytes for tensor in tensors.values())
            raise FptError(f"a checkpoint of {size:,} bytes cannot be written to {self.path}: {error}") from error
        ended = time.monotonic()
        self.next = ended + max(EVERY, (ended - began) / SHARE)

    def load(self, part: int, like: dict[str, Tensor]) -> dict[str, Tensor] | None:
        """The last checkpoint of a part, with the names of `like`; a damaged one is put aside with a warning and the
        part starts over."""
        file = self._file(part)
        if not file.is_file():
            return None
        try:
            with safe_open(file, "pt") as opened:
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (no dict)
                expected = (opened.metadata() or {}).get("crc32")
            if expected != str(checksum(tensors)) or tensors.keys() != like.keys():
                raise SafetensorError("its checksum is wrong, or it holds other tensors")
        except (OSError, SafetensorError) as error:
            self._put_aside(file, str(error))
            return None
        return tensors

    def _put_aside(self, file: Path, reason: str) -> None:
        aside = file.with_name(f"{file.name}.damaged")
        os.replace(file, aside)
        warnings.warn(f"{file} cannot be used, {reason}; it is now {aside.name}, this part starts over", stacklevel=3)


def checksum(tensors: dict[str, Tensor]) -> int:
    """CRC-32 over names and bytes."""
    total = 0
    for name in sorted(tensors):
        content = tensors[name].contiguous().flatten().view(torch.uint8).numpy()
        total = zlib.crc32(content.data, zlib.crc32(name.encode(), total))
    return total


def check_disk(template: Template, runs: int, folder: Path, kept: int = 0) -> None:
    """Refuse (FptError) a disk on which a fleet's old and new checkpoint do not fit side by side, with all weights of
    `kept` runs beside them.

    Checkpoints and weights that lie below the folder already are room that a fleet which goes on has. A folder that
    does not exist yet will be on the disk of the nearest one above it that does.
    """
    trainable, whole = template.sizes
    there = next(each for each in (folder, *folder.parents) if each.is_dir())
    need, free = FLOAT * (2 * COPIES * trainable * runs + whole * kept), shutil.disk_usage(there).free
    with suppress(FileNotFoundError):  # another process has just finished with one
        free += sum(file.stat().st_size for file in folder.rglob("*-*.safetensors"))
    if need > free:
        beside = f" and weights of {kept} runs" if kept else ""
        raise FptError(
            f"checkpoints of {runs} runs of {template.backbone.name!r}{beside} need {need / 2**20:,.1f} MiB, "
            f"{free / 2**20:,.1f} MiB are free at {folder}: make room, or take fewer rates or seeds"
        )
