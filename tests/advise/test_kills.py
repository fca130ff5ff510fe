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

from fpt.advise import keep, report, studies, work
from fpt.advise.work import Work
from fpt.sweeps.ledger import KEPT_WEIGHTS

from .conftest import request_of, small, table

STUDY, PILOT, WINNER = "advise-mine", "advise-mine-pilot", "winner"
# A folder and its file, in the order in which they are written, and for which time by a process that goes on from there
WRITES = (
    (PILOT, studies.ASKED, 1), (STUDY, studies.BASELINES, 1), (STUDY, studies.BASELINES, 2), (PILOT, "study.yaml", 1),
    (STUDY, "study.yaml", 1), (STUDY, "study.yaml", 2), (PILOT, "study.yaml", 1), (PILOT, studies.PLAN, 1),
    (STUDY, "study.yaml", 2), (WINNER, keep.README, 1), (STUDY, "advice.html", 1),
)  # fmt: skip
KEPT = (
    "runs.parquet",
    "curves.parquet",
    "answers.parquet",
    KEPT_WEIGHTS,
    studies.BASELINES,
    studies.ASKED,
    keep.README,
)


def killing(write: Callable[..., None], at: tuple[str, str, int], seen: list[tuple[str, str]]) -> Callable[..., None]:
    def instead(path: Path, content: Any) -> None:
        seen.append((path.parent.name, path.name))
        if (*seen[-1], seen.count(seen[-1])) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        write(path, content)

    return instead


def advise(place: Path, at: tuple[str, str, int] = ("", "", 0)) -> None:
    """In a process of its own: it is killed before it writes this file for this time, if any."""
    os.chdir(place)
    small(pytest.MonkeyPatch())
    seen: list[tuple[str, str]] = []
    for module in (studies, work, keep, report):
        for name in {"write_json", "write_atomically"} & {*vars(module)}:
            setattr(module, name, killing(getattr(module, name), at, seen))
    wanted = request_of(place, arms="full")
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
