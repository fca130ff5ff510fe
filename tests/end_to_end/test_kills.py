"""A sweep that is killed at any moment, extension of its grid included, ends with the same bytes, and keeps the
same weights."""

import os
import random
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from forked import attempt

from fpt import files
from fpt.sweeps import run as execute
from fpt.sweeps.ledger import KEPT_WEIGHTS
from fpt.sweeps.spec import resolve
from fpt.training import checkpoint, fleet, loop

# Where a process is killed: the n-th call of a function, before it does its work. Of a write, when the file is there
# under its partial name.
PLACES: dict[str, tuple[Any, str]] = {
    "training": (fleet.Fleet, "step"),
    "evaluation": (loop, "score"),
    "checkpoint": (files.os, "replace"),
    "extension": (execute.training, "train_fleet"),
    "writing": (execute, "write_atomically"),
}
# The largest number of calls of which one is chosen: a process that is not killed makes more of each.
MOMENTS = {"training": 60, "evaluation": 30, "checkpoint": 60, "extension": 3, "writing": 2}
# Rates far too small for so few steps: the grid is extended upwards as often as it may be.
SPEC = {
    "task": "digits", "arm": "frozen-random", "backbone_options": {"layers": 1}, "compute_type": "float32",
    "learning_rates": [1e-4, 3e-4], "seeds": [0, 1], "extend": 2, "steps": 24, "evaluations": 3,
    "evaluation_examples": 40, "budget_examples": 20, "test_examples": 60, "measures": ["weights"],
}  # fmt: skip


def kill_at(moment: str, count: int) -> None:
    """From now on, the n-th call of this moment's function ends this process."""
    owner, name = PLACES[moment]
    original, left = getattr(owner, name), [count]

    def killing(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)

    setattr(owner, name, killing)


def sweep(folder: Path, moment: str = "", count: int = 0) -> None:
    """In a process of its own: it is killed if a moment is given."""
    checkpoint.EVERY, checkpoint.SHARE = 0.0, 1.0  # after every step
    if moment:
        kill_at(moment, count)
    execute.run_sweep(resolve(SPEC), folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same sweep, never killed."""
    folder = tmp_path_factory.mktemp("whole") / "sweep"
    assert attempt(sweep, folder) == 0
    rates = pd.read_parquet(folder / "runs.parquet")["learning_rate"].nunique()
    assert rates > 2, "two rates, and those by which the grid was extended"
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (*folder.glob("*.parquet"), folder / KEPT_WEIGHTS)}


@pytest.mark.parametrize("kills", [1, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_again_and_again_it_ends_with_the_same_bytes(tmp_path: Path, whole: Path, kills: int) -> None:
    """Each kind of moment in turn; a sweep that ends between two kills makes room for another."""
    draw, killed, number = random.Random(7), 0, 0
    while killed < kills:
        moment = list(MOMENTS)[killed % len(MOMENTS)]
        ended = attempt(sweep, tmp_path / str(number), moment, draw.randint(1, MOMENTS[moment]))
        if ended == -signal.SIGKILL:
            killed += 1
            continue
        assert ended == 0
        assert contents(tmp_path / str(number)) == contents(whole)
        number += 1
    assert attempt(sweep, tmp_path / str(number)) == 0
    assert contents(tmp_path / str(number)) == contents(whole)
    assert {path.name for path in (tmp_path / str(number)).iterdir()} == {path.name for path in whole.iterdir()}
