"""Fixtures of the stand-ins for notebook and training."""

from stand_in import trained, workspace

__all__ = ["trained", "workspace"]
