"""`fpt advise`, killed before each of its writes in turn and started again, ends with what one ends with that was left
alone: both studies, tables, baselines, the winner."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import attempt

from fpt.advise import keep, report, schedule, work
from fpt.advise.work import Work
from fpt.sweeps.ledger import KEPT_WEIGHTS

from .conftest import request_of, table, timed, train_sweeps

STUDY, PILOT, WINNER = "advise-mine", "advise-mine-pilot", "winner"
# A folder and its file, in the order in which they are written.
WRITES = (
    (STUDY, work.ASKED), (STUDY, work.BASELINES), (PILOT, work.ASKED), (PILOT, work.TIMING), (PILOT, "study.yaml"),
    (STUDY, "study.yaml"), (WINNER, keep.README), (STUDY, "report.html"),
)  # fmt: skip
KEPT = ("runs.parquet", "curves.parquet", KEPT_WEIGHTS, work.BASELINES, work.ASKED, keep.README, "model.safetensors")


def train(study: Path, threads: int, bars: Any) -> None:
    train_sweeps(study)


def killing(write: Callable[..., None], at: tuple[str, str]) -> Callable[..., None]:
    def instead(path: Path, content: Any) -> None:
        if (path.parent.name, path.name) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        write(path, content)

    return instead


def advise(place: Path, at: tuple[str, str] = ("", "")) -> None:
    """In a process of its own, with made-up timings: it is killed before it writes this file, if any."""
    os.chdir(place)
    for name, value in {"timed": timed, "train": train, "product_rate": lambda kind: 1e15, "COARSE": (3e-3,)}.items():
        setattr(work, name, value)
    schedule.SEEDS, schedule.LEAST, schedule.LEAST_PILOT = (4,), 4, 4  # type: ignore[assignment,misc]
    for module, name in ((work, "write_json"), (work, "write_atomically"), (keep, "write_atomically"),
                         (report, "write_atomically")):  # fmt: skip
        setattr(module, name, killing(getattr(module, name), at))
    wanted = request_of(place, arms="frozen,full", steps=4)
    Work(wanted, lambda line: None).run()
    report.finished(wanted)


def contents(place: Path) -> dict[str, bytes]:
    runs = place / "runs"
    return {str(path.relative_to(runs)): path.read_bytes() for name in KEPT for path in runs.rglob(name)}


@pytest.mark.slow
def test_whenever_it_is_killed_it_goes_on(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    table(place / "mine.csv")
    alone = tmp_path_factory.mktemp("alone") / "workspace"
    shutil.copytree(place, alone)
    assert attempt(advise, alone) == 0
    for at in WRITES:
        assert attempt(advise, place, at) == -signal.SIGKILL, at
    assert attempt(advise, place) == 0
    found = contents(alone)
    assert {Path(name).name for name in found} == {*KEPT}
    assert contents(place) == found
