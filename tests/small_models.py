"""Small random models saved to disk: the real loading code on weights that need no network."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import fpt.tasks
from fpt.models import BACKBONES, tiny
from fpt.models.weights import save_random
from fpt.tasks.task import Task


def stand_ins() -> dict[str, str]:
    """{small-FAMILY: a pretrained backbone of the family}, of every family that has one."""
    return {f"small-{entry.family}": name for name, entry in BACKBONES.items() if entry.pretrained}


@pytest.fixture
def small_backbones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, torch.nn.Module]:
    """Registers small-gpt2, small-bert, ... with random weights under FPT_WEIGHTS; returns the library's own models."""
    models: dict[str, torch.nn.Module] = {}
    for name, backbone in stand_ins().items():
        entry = tiny(backbone)
        monkeypatch.setitem(BACKBONES, name, entry)
        model = save_random(entry, tmp_path / name)
        models[name] = model.eval()
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path))
    return models


@pytest.fixture
def small_lstms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers small-lstm and small-lstm-released: two layers of width 16."""
    for name in ("lstm", "lstm-released"):
        entry = replace(BACKBONES[name], config={**BACKBONES[name].config, "width": 16}, layers=2)
        monkeypatch.setitem(BACKBONES, f"small-{name}", entry)


@pytest.fixture
def shaped_task(tmp_path: Path) -> Callable[[str, str], Task]:
    """Loads a task in its real shape from the committed fixtures, or few generated examples."""

    def load(name: str, variant: str) -> Task:
        if name == "listops":
            return fpt.tasks.load(name, tmp_path, variant, train=60, heldout=20)
        return fpt.tasks.load(name, Path(__file__).parent / "data", variant)

    return load
