"""A workspace with a stand-in for the sweep notebook, and a stand-in for training: no torch, no weights."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jupytext
import nbformat
import pandas as pd
import pytest

from fpt.sweeps import SweepSpec
from fpt.sweeps import run as execute
from fpt.sweeps.spec import resolve

ROOT = Path(__file__).parents[1]

# The number of steps says what the stand-in does.
QUICK, SLOW, SLOW_ONCE, FAILING, LOST_ONCE, LOST = 3, 600, 601, 66, 137, 138
LONG = 1800  # seconds of sleep: longer than any test waits
STAND_IN = f"""
import os, signal, time
from pathlib import Path
import fpt
from fpt import files
from fpt.sweeps import ledger

spec = fpt.sweeps.parameters_to_spec(globals())
place = fpt.sweeps.results_folder(folder)
notes = Path.home() / "stand-in" / spec.folder_name  # of all attempts, wherever they work
with ledger.hold(place / ledger.LOCK, spec):
    notes.mkdir(parents=True, exist_ok=True)
    first = not (notes / "pid").exists()
    files.write_atomically(notes / "pid", str(os.getpid()).encode())
    resumed = (place / "checkpoint").exists()
    (place / "checkpoint").touch()
    if spec.steps == {LOST} or spec.steps == {LOST_ONCE} and first:
        os.kill(os.getpid(), signal.SIGKILL)
    if spec.steps == {FAILING}:
        raise ValueError("the loss is a banana")
    if spec.steps == {SLOW} or spec.steps == {SLOW_ONCE} and first:
        files.write_json(place / ledger.PROGRESS, dict(
            stage="selection", step=1, steps=4, run_steps=25, run_steps_total=100))
        time.sleep({LONG})
    found = (place / ledger.RESULT).exists()
    files.write_json(place / ledger.RESULT, dict(
        hash=spec.hash, selected_rate=1e-3, at_edge=True, wall_seconds=90, device="a machine", resumed=resumed,
        found=found, threads=os.environ["OMP_NUM_THREADS"], gpu=os.environ.get("CUDA_VISIBLE_DEVICES"),
        workers=os.environ.get("FPT_WORKERS")))
    for name in ("runs", "curves"):
        (place / (name + ".parquet")).touch()
"""


def spec(steps: int = QUICK, **change: Any) -> SweepSpec:
    """The stand-in's spec; a random arm, so that no weights are looked for."""
    fields: dict[str, Any] = {"task": "digits", "arm": "frozen-random", "learning_rates": [1e-3, 1e-2]}
    return resolve(fields | {"selection_seeds": [0], "confirmation_seeds": [10], "steps": steps} | change)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: runs/mine, and notebooks/sweep.ipynb with the real parameters cell."""
    shutil.rmtree(Path.home() / "stand-in", ignore_errors=True)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    notebook = jupytext.read(ROOT / "notebooks" / "sweep.py")
    parameters = next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    notebook.cells = [parameters, nbformat.v4.new_code_cell(STAND_IN)]
    nbformat.write(notebook, tmp_path / "notebooks" / "sweep.ipynb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def fleet(rates: Sequence[float], seeds: Sequence[int], steps: int, diverged: float | None = None) -> Any:
    """What train_fleet returns, best at 1e-3; the rate `diverged` turned non-finite."""
    runs = pd.DataFrame(
        {
            "learning_rate": rate,
            "seed": seed,
            "best_step": steps,
            "validation_accuracy": 0.9 if rate == 1e-3 else 0.8,
            "train_accuracy": 0.9,
            "test_accuracy": 0.9,
            "test_accuracy_exact": 0.9,
            "test_accuracy_last": 0.9,
            "train_accuracy_last": 0.9,
            "diverged_at": 2 if rate == diverged else None,
        }
        for seed in seeds
        for rate in rates
    ).astype({"diverged_at": "Int64"})
    curves = runs[["learning_rate", "seed"]].assign(step=steps, train_loss=1.0, train_accuracy=0.9)
    curves = curves.assign(validation_loss=1.0, validation_accuracy=0.9)
    return SimpleNamespace(
        runs=runs,
        curves=curves,
        attention=None,
        compute_type="float32",
        threads=1,
        device="cpu",
        parts=[(len(rates), len(seeds))],
        compiled=False,
    )


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Training replaced by `fleet`; the calls it got."""
    calls: list[dict[str, Any]] = []

    def train_fleet(
        task: Any,
        template: Any,
        recipe: Any,
        learning_rates: Sequence[float],
        seeds: Sequence[int],
        *,
        test_examples: int | None = None,
        progress: Callable[[int, int], None],
        checkpoints: Path,
        **_: Any,
    ) -> Any:
        checkpoints.mkdir(parents=True)
        calls.append({"rates": list(learning_rates), "seeds": list(seeds), "test_examples": test_examples})
        progress(recipe.steps, recipe.steps)
        return fleet(learning_rates, seeds, recipe.steps)

    monkeypatch.setattr(execute.training, "train_fleet", train_fleet)
    monkeypatch.setattr(execute, "prepare", lambda *_, **__: (SimpleNamespace(checksum="sum"), None))
    return calls
