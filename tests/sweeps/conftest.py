"""Fixtures of the stand-ins for notebook and training, and of the engines."""

from engine_contract import cluster, engine
from stand_in import trained, workspace

__all__ = ["cluster", "engine", "trained", "workspace"]
