"""Pairs of a backbone and a task, in which evidence is counted, with the date on which each was listed (pairs.yaml)."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from fpt.documents import read_model

FILE = Path(__file__).with_name("pairs.yaml")


class Pair(BaseModel, frozen=True, extra="forbid"):
    """When a pair was listed, and when its first sweep began."""

    listed: datetime
    by: str  # the study that named it first
    started: datetime | None = None  # None: not run yet
    speaks: tuple[str, ...] = ()  # studies, in order; none: it is shown and not counted
    every_rate: tuple[str, ...] = ()  # before these, of what is read on the whole grid of rates

    @property
    def counts(self) -> bool:
        """Whether it was listed before any of its results."""
        return self.started is None or self.listed <= self.started


class Pairs(BaseModel, frozen=True, extra="forbid"):
    """The file: pairs by name (backbone/task); and by their family other checkpoints, and tasks, that make no pair."""

    families: Mapping[Literal["backbones", "tasks"], Mapping[str, str]] = {}
    pairs: Mapping[str, Pair]

    def name(self, backbone: str, task: str) -> str:
        """The pair to which a backbone on a task belongs: "tiny-lm/digits", listed or not."""
        backbones, tasks = (self.families.get(of, {}) for of in ("backbones", "tasks"))
        return f"{backbones.get(backbone, backbone)}/{tasks.get(task, task)}"

    def speakers(self, name: str, every_rate: bool = False) -> tuple[str, ...]:
        """The studies that speak for a pair: for a contrast the first of them that has it. `every_rate`: for one that
        is read on the whole grid of rates. None where the pair was not listed before its results."""
        pair = self.pairs.get(name)
        if pair is None or not pair.counts:
            return ()
        return (*(pair.every_rate if every_rate else ()), *pair.speaks)


@cache
def pairs(file: Path = FILE) -> Pairs:
    """The list of pairs. Raises SpecError, with the line, for a file that is not as its head describes."""
    found, _ = read_model(Pairs, file, f"fpt/results/{file.name}")
    return found
