"""A study that `fpt advise` wrote, killed at random five times and started again, ends with the bytes of one that was
left alone."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fpt.advise import work
from fpt.sweeps import load_study
from fpt.sweeps.ledger import WEIGHTS

from .conftest import ROOT, request_of, table

KILLS = 5
KEPT = ("runs.parquet", "curves.parquet", WEIGHTS)


def start(place: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", "from fpt.cli import app; app()", "run", "advise-mine"]
    return subprocess.Popen(command, cwd=place, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)


def contents(place: Path) -> dict[str, bytes]:
    folders = [place / "runs/advise-mine" / spec.folder_name for spec in load_study(place / "runs/advise-mine").sweeps]
    return {f"{folder.name}/{name}": (folder / name).read_bytes() for folder in folders for name in KEPT}


@pytest.mark.slow
def test_five_kills_change_no_byte(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    table(place / "mine.csv")
    wanted = request_of(place, arms="frozen,full")
    specs = [wanted.spec(arm, [1e-3, 1e-2], range(4), 400, "float32") for arm in wanted.arms]
    work.write_study(wanted, wanted.study, specs, [], dict.fromkeys(wanted.arms, work.WHOLE))
    alone = tmp_path_factory.mktemp("alone") / "workspace"
    shutil.copytree(place, alone)
    began = os.times().elapsed
    assert start(alone).wait() == 0
    whole = os.times().elapsed - began
    source, killed = random.Random(0), 0
    for _ in range(KILLS):
        process = start(place)
        try:
            process.wait(source.uniform(0.2, 0.8) * whole)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
    assert start(place).wait() == 0
    assert killed > 0
    assert contents(place) == contents(alone)
