"""The whole way in a workspace of its own: study.yaml, `fpt run`, papermill, folders of results, evidence."""

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import fpt
from fpt.claims.judge import judged
from fpt.papers import claims
from fpt.sweeps.study import load_study

ROOT = Path(__file__).parents[2]
FPT = Path(sys.executable).with_name("fpt")
ARMS = {"frozen-pretrained", "frozen-random"}


def command(*words: str, root: Path) -> str:
    done = subprocess.run([FPT, *words, "--root", root], capture_output=True, text=True, timeout=850)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the smoke study was run."""
    root = tmp_path_factory.mktemp("workspace")
    shutil.copytree(ROOT / "notebooks", root / "notebooks")
    (root / "runs" / "smoke").mkdir(parents=True)
    shutil.copy(ROOT / "runs" / "smoke" / "study.yaml", root / "runs" / "smoke")
    command("run", "smoke", root=root)
    return root


def folders(workspace: Path) -> list[Path]:
    return sorted(path.parent for path in workspace.glob("runs/smoke/*/result.json"))


def test_every_sweep_of_the_study_is_done(workspace: Path) -> None:
    sweeps = load_study(workspace / "runs" / "smoke").sweeps
    assert [folder.name for folder in folders(workspace)] == sorted(spec.folder_name for spec in sweeps)
    for folder in folders(workspace):
        assert {"notebook.ipynb", "runs.parquet", "curves.parquet"} <= {path.name for path in folder.iterdir()}


def test_the_evidence_reads_them(workspace: Path) -> None:
    runs = fpt.results.load_runs(workspace / "runs" / "smoke")
    assert set(runs["arm"]) == ARMS
    assert set(runs["origin"]) == {"own"}
    assert runs["test_accuracy"].between(0, 1).all()
    assert runs.groupby(["arm", "learning_rate"])["seed"].apply(set).eq({0, 1}).all()
    chosen = {arm: sorted(rows["seed"]) for arm, rows in runs[runs["selected"]].groupby("arm")}
    assert chosen == {arm: [0, 1] for arm in ARMS}  # one rate for each seed
    cells = fpt.results.StudyCells(workspace / "runs" / "smoke")
    assert (judged([cells], [claims()["P-05"]], alone=True)["id"] != "").any()


@pytest.mark.slow  # of a sweep alone: test_kills.py
def test_a_lost_sweep_is_trained_again_to_the_same_bytes(workspace: Path) -> None:
    folder = folders(workspace)[0]
    before = {name: (folder / name).read_bytes() for name in ("runs.parquet", "curves.parquet")}
    shutil.rmtree(folder)
    command("run", "smoke", root=workspace)
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_the_folders_name_neither_machine_nor_place(workspace: Path) -> None:
    for folder in folders(workspace):
        for path in folder.glob("*.*"):
            content = path.read_bytes()
            for trace in (str(workspace), str(ROOT), str(Path.home()), socket.gethostname()):
                assert trace.encode() not in content or len(trace) < 4, f"{path.name} holds {trace}"
        assert json.loads((folder / "result.json").read_text())["spec"]["steps"] == 3
        assert len(pd.read_parquet(folder / "runs.parquet")) > 0
