"""A study that `fpt advise` wrote, killed at random five times and started again, ends with the bytes of one that was
left alone: tables and kept weights."""

import os
import random
import shutil
import signal
from pathlib import Path

import pytest
from forked import attempt

from fpt.advise import work
from fpt.sweeps import load_study, run_sweep
from fpt.sweeps.ledger import WEIGHTS
from fpt.training import checkpoint, fleet

from .conftest import request_of, table

KILLS, STEPS = 5, 40
KEPT = ("runs.parquet", "curves.parquet", WEIGHTS)
STUDY = Path("runs/advise-mine")


def sweeps(place: Path, steps: int = 0) -> None:
    """In a process of its own: what is left of the study; it is killed after so many gradient steps, if any."""
    os.chdir(place)
    checkpoint.EVERY, checkpoint.SHARE = 0.0, 1.0  # after every step
    original, left = fleet.Fleet.step, [steps]

    def step(self: fleet.Fleet, *arguments: object) -> object:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, *arguments)  # type: ignore[arg-type]

    fleet.Fleet.step = step  # type: ignore[assignment,method-assign]
    for spec in load_study(STUDY).sweeps:
        run_sweep(spec, STUDY / spec.folder_name)


def contents(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes() for name in KEPT for path in place.glob(f"{STUDY}/*/{name}")
    }


@pytest.mark.slow
def test_five_kills_change_no_byte(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    table(place / "mine.csv")
    wanted = request_of(place, arms="frozen,full")
    specs = [wanted.spec(arm, [1e-3], range(4), STEPS, "float32") for arm in wanted.arms]
    work.write_study(wanted, wanted.study, specs, [], dict.fromkeys(wanted.arms, work.WHOLE))
    alone = tmp_path_factory.mktemp("alone") / "workspace"
    shutil.copytree(place, alone)
    assert attempt(sweeps, alone) == 0
    source = random.Random(0)
    for _ in range(KILLS):
        assert attempt(sweeps, place, source.randint(1, 2 * STEPS // KILLS)) == -signal.SIGKILL
    assert attempt(sweeps, place) == 0
    assert len(contents(alone)) == len(wanted.arms) * len(KEPT)
    assert contents(place) == contents(alone)
