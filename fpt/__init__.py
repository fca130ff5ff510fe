"""Do frozen language models compute? A replication study of three papers, two of which contradict each other.

The rooms, each of which imports only from those before it: `papers` (what the papers say), `tasks` (the data), `models`
(what is trained), `training` (how), `sweeps` (which runs there are), `results` (what came out), `claims` (what it
shows), `show` (how it looks), `bench` (how fast they are), `advise` (what to do with your own data) and `cli` (the
command). They load on first use, and none of them imports torch before, so that `import fpt` is fast.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fpt import advise, bench, claims, models, papers, results, show, sweeps, tasks, training

__version__ = "0.3.0"
__all__ = ["advise", "bench", "claims", "models", "papers", "results", "show", "sweeps", "tasks", "training"]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'fpt' has no attribute {name!r}")
    return import_module(f"fpt.{name}")
