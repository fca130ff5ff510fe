"""Pairs of a backbone and a task, in which evidence is counted, with the date on which each was listed (pairs.yaml)."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from fpt.documents import read_model

FILE = Path(__file__).with_name("pairs.yaml")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Pair(_Strict):
    """When a pair was listed, and when its first sweep began."""

    listed: datetime
    by: str  # the study that named it first
    started: datetime | None = None  # None: not run yet

    @property
    def counts(self) -> bool:
        """Whether it was listed before any of its results."""
        return self.started is None or self.listed <= self.started


class Families(_Strict):
    """Other names of a checkpoint, and of a task, that make no pair of their own."""

    backbones: Mapping[str, str] = Field(default_factory=dict)
    tasks: Mapping[str, str] = Field(default_factory=dict)


class Pairs(_Strict):
    """The file: pairs by name (backbone/task), and what belongs to one family."""

    families: Families = Families()
    pairs: Mapping[str, Pair]

    def name(self, backbone: str, task: str) -> str:
        """The pair to which a backbone on a task belongs: "tiny-lm/digits", listed or not."""
        family = self.families.backbones.get(backbone, backbone)
        return f"{family}/{self.families.tasks.get(task, task)}"

    def counts(self, name: str) -> bool:
        """Whether the pair is listed, and was so before its results."""
        return name in self.pairs and self.pairs[name].counts


@cache
def pairs(file: Path = FILE) -> Pairs:
    """The list of pairs. Raises SpecError, with the line, for a file that is not as its head describes."""
    found, _ = read_model(Pairs, file, f"fpt/results/{file.name}")
    return found
