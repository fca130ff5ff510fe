"""A sweep that is killed at any moment, extension of its grid included, ends with the same bytes."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Where a process is killed: the n-th call of a function, before it does its work. Of a write, when the file is there
# under its partial name.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from fpt import files
from fpt.sweeps import run as execute
from fpt.sweeps.spec import resolve
from fpt.training import checkpoint, fleet, loop

folder, moment, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
checkpoint.EVERY, checkpoint.SHARE = 0.0, 1.0  # after every step
places = {"training": (fleet.Fleet, "step"), "evaluation": (loop, "score"), "checkpoint": (files.os, "replace"),
          "extension": (execute.training, "train_fleet"), "writing": (execute, "write_atomically")}
if moment in places:
    owner, name = places[moment]
    original, left = getattr(owner, name), [count]
    def killing(*arguments, **options):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **options)
    setattr(owner, name, killing)
# Rates far too small for so few steps: the grid is extended upwards as often as it may be.
spec = resolve({"task": "digits", "arm": "frozen-random", "backbone_options": {"layers": 1}, "compute_type": "float32",
                "learning_rates": [1e-4, 3e-4], "seeds": [0, 1], "extend": 2, "steps": 24, "evaluations": 3,
                "evaluation_examples": 40, "budget_examples": 20, "test_examples": 60})
result = execute.run_sweep(spec, folder)
print(len(result.info["grid"]))
"""
# The largest number of calls of which one is chosen: a process that is not killed makes more of each.
MOMENTS = {"training": 60, "evaluation": 30, "checkpoint": 60, "extension": 3, "writing": 2}


def attempt(folder: Path, moment: str = "", count: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(folder), moment, str(count)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same sweep, never killed."""
    folder = tmp_path_factory.mktemp("whole") / "sweep"
    assert int(attempt(folder).stdout) > 2, "two rates, and those by which the grid was extended"
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


@pytest.mark.parametrize("kills", [5, pytest.param(30, marks=pytest.mark.soak)])
def test_killed_again_and_again_it_ends_with_the_same_bytes(tmp_path: Path, whole: Path, kills: int) -> None:
    """Each kind of moment in turn; a sweep that ends between two kills makes room for another."""
    draw, killed, number = random.Random(7), 0, 0
    while killed < kills:
        moment = list(MOMENTS)[killed % len(MOMENTS)]
        ended = attempt(tmp_path / str(number), moment, draw.randint(1, MOMENTS[moment]))
        if ended.returncode == -signal.SIGKILL:
            killed += 1
            continue
        assert ended.returncode == 0, ended.stderr
        assert contents(tmp_path / str(number)) == contents(whole)
        number += 1
    last = attempt(tmp_path / str(number))
    assert last.returncode == 0, last.stderr
    assert contents(tmp_path / str(number)) == contents(whole)
    assert {path.name for path in (tmp_path / str(number)).iterdir()} == {path.name for path in whole.iterdir()}
