"""A workspace with a stand-in for the sweep notebook, and a stand-in for training: no torch, no weights."""

import math
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jupytext
import nbformat
import pandas as pd
import pytest
import small_studies
import synthetic

from fpt.sweeps import run as execute
from fpt.sweeps.spec import resolve
from fpt.training.recipe import weights_file

ROOT = Path(__file__).parents[1]
MODULES = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))  # PYTHONPATH wherever the stand-in runs

# The number of steps says what the stand-in does.
QUICK, SLOW, SLOW_ONCE, FAILING, LOST_ONCE = 3, 600, 601, 66, 137
LONG = 1800  # seconds of sleep: longer than any test waits
STAND_IN = f"""
import os, signal, time
from pathlib import Path
import fpt
import synthetic
from fpt import files
from fpt.sweeps import ledger
from fpt.sweeps.record import RESULT

spec = fpt.sweeps.parameters_to_spec(globals())
place = fpt.sweeps.results_folder(folder)
notes = Path.home() / "stand-in" / spec.folder_name  # of all attempts, wherever they work
with ledger.hold(place / ledger.LOCK, spec):
    notes.mkdir(parents=True, exist_ok=True)
    first = not (notes / "pid").exists()
    files.write_atomically(notes / "pid", str(os.getpid()).encode())
    resumed = (place / "checkpoint").exists()
    (place / "checkpoint").touch()
    if spec.steps == {LOST_ONCE} and first:
        os.kill(os.getpid(), signal.SIGKILL)
    if spec.steps == {FAILING}:
        raise ValueError("the loss is a banana")
    if spec.steps == {SLOW} or spec.steps == {SLOW_ONCE} and first:
        files.write_json(place / ledger.PROGRESS, dict(
            grid="as planned", step=1, steps=4, run_steps=25, run_steps_total=100))
        time.sleep({LONG})
    found = (place / RESULT).exists()
    kept = place.parent / str(spec.pretrained_by) / ledger.KEPT_WEIGHTS
    synthetic.write(spec, place, resumed=resumed, found=found, threads=int(os.environ["OMP_NUM_THREADS"]),
        started_from=kept.read_text() if spec.pretrained_by else "",
        gpu=os.environ.get("CUDA_VISIBLE_DEVICES"), workers=os.environ.get("FPT_WORKERS"))
"""


def spec(steps=QUICK, **change):
    """The stand-in's spec; a random arm, so that no weights are looked for."""
    fields = {"task": "digits", "arm": "frozen-random", "learning_rates": [1e-3, 1e-2]}
    return resolve(fields | {"seeds": [0, 1], "extend": 0, "steps": steps} | change)


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """The working directory: runs/mine, and notebooks/sweep.ipynb with the real parameters cell."""
    shutil.rmtree(Path.home() / "stand-in", ignore_errors=True)
    small_studies.workspace(tmp_path, notebooks=False)
    (tmp_path / "notebooks").mkdir()
    notebook = jupytext.read(ROOT / "notebooks" / "sweep.py")
    parameters = next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    notebook.cells = [parameters, nbformat.v4.new_code_cell(STAND_IN)]
    nbformat.write(notebook, tmp_path / "notebooks" / "sweep.ipynb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", MODULES)
    return tmp_path


Accuracy = Callable[[float, int], float]  # of a rate and a seed; nan: the run diverged


def best_at(*peaks):
    """Validation accuracy that falls by 10 points a decade away from the peak of a seed; seeds take turns."""
    return lambda rate, seed: 0.9 - 0.1 * abs(math.log10(rate / peaks[seed % len(peaks)]))


def fleet(rates, seeds, steps, accuracy, evaluated=()):
    """What train_fleet returns; it was evaluated at these steps [the last]."""
    runs = synthetic.runs_of(rates, seeds, steps, accuracy)
    at = pd.DataFrame({"step": evaluated or [steps]})
    keys, values = ["learning_rate", "seed"], ["validation_accuracy", "train_accuracy", "test_accuracy"]
    curves = runs[keys].merge(at, how="cross").merge(runs[keys + values]).assign(validation_loss=1.0)
    return SimpleNamespace(
        tables={"runs": runs, "curves": curves},
        runs=runs,
        compute_type="float32",
        multiplied_in="float32",
        threads=1,
        device="cpu",
        parts=[(len(rates), len(seeds))],
        compiled=False,
    )


@dataclass
class Trained:
    """Training replaced by `fleet`: what the validation accuracies are to be, and the calls it got."""

    accuracy: Accuracy = field(default_factory=lambda: best_at(1e-3))
    calls: list[dict[str, Any]] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None  # what happens while it trains

    @property
    def rates(self):
        """Of every call."""
        return [call["rates"] for call in self.calls]

    def __call__(self, task, template, recipe, learning_rates, seeds, *, progress, checkpoints, keep=None, asked=()):
        checkpoints.mkdir(parents=True)
        self.calls.append({"rates": list(learning_rates), "seeds": list(seeds), "checkpoints": checkpoints.name})
        if keep:
            seed, place = keep
            for rate in learning_rates:
                weights_file(place, rate).write_text(f"seed {seed} at {rate:g}")
        progress(recipe.steps, recipe.steps)
        self.meanwhile()
        return fleet(learning_rates, seeds, recipe.steps, self.accuracy, recipe.evaluation_steps())


@pytest.fixture
def trained(monkeypatch):
    stand_in = Trained()
    task = SimpleNamespace(checksum="sum", test_drawn_by_seed=True, test_size=400, collection=1797, classes=10)
    template = SimpleNamespace(init="random", weights_checksum=None)
    monkeypatch.setattr(execute.training, "train_fleet", stand_in)
    monkeypatch.setattr(execute, "prepare", lambda spec, *_, **__: execute.Prepared(spec, task, template))
    return stand_in
