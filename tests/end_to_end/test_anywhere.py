"""Without this repository: the package alone, in a folder that held nothing."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from processes import PATIENCE

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """What a wheel holds, by pyproject.toml, without building one."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for package in wheel["packages"]:
        shutil.copytree(ROOT / package, tmp_path / "site" / package, ignore=shutil.ignore_patterns("__pycache__"))
    for source, place in wheel["force-include"].items():
        shutil.copy(ROOT / source, tmp_path / "site" / place)
    return tmp_path / "site"


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A wheel as pip builds it."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, timeout=PATIENCE, cwd=tmp_path)
    (built,) = tmp_path.glob("*.whl")
    with ZipFile(built) as file:
        file.extractall(tmp_path / "site")
    return tmp_path / "site"


def command(site: Path, folder: Path, *words: str, code: int = 0) -> str:
    """What `fpt` prints, of the package in `site`, in this folder."""
    program = f"import fpt; assert fpt.__file__.startswith({str(site)!r}); from fpt.cli import app; app()"
    environment = os.environ | {"PYTHONPATH": str(site), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


def test_a_workspace_is_begun_planned_and_refused_anywhere(copied: Path, empty: Path) -> None:
    assert "fpt init" in command(copied, empty, "plan", "first", code=2)
    assert "results folder" in command(copied, empty, "doctor")
    assert "fpt run first" in command(copied, empty, "init")
    assert "2 of 2 sweeps to run" in command(copied, empty, "plan", "first")
    assert "first" in command(copied, empty, "init", code=2)  # it is there
    assert "fpt run second" in command(copied, empty, "init", "--name", "second")
    assert {path.name for path in empty.iterdir()} == {"README.md", "runs"}
    assert {"study": "first", "done": 0}.items() <= json.loads(command(copied, empty, "list", "studies", "--json"))[
        0
    ].items()


@pytest.mark.slow  # builds a wheel, and trains
def test_a_wheel_trains_reports_and_advises_in_an_empty_folder(unpacked: Path, empty: Path) -> None:
    command(unpacked, empty, "init")
    study = empty / "runs" / "first" / "study.yaml"
    study.write_text(study.read_text().replace("steps: 200", "steps: 8").replace("seeds: [0, 1, 2, 3]", "seeds: [0]"))
    command(unpacked, empty, "run", "first")
    assert "written" in command(unpacked, empty, "report", "first")
    notebooks = "".join(path.read_text() for path in study.parent.glob("*/notebook.ipynb"))
    assert '"input_path": "notebooks/sweep.ipynb"' in notebooks
    assert not any(str(folder) in notebooks for folder in (unpacked, empty))
    command(unpacked, empty, "judge", "first")


@pytest.mark.slow  # trains for minutes
def test_advice_is_given_where_no_workspace_is(copied: Path, empty: Path) -> None:
    x = np.random.default_rng(0).normal(size=(300, 4))
    pd.DataFrame(x, columns=list("abcd")).assign(label=x.sum(1) > 0).to_csv(empty / "mine.csv", index=False)
    said = command(
        copied, empty, "advise", "mine.csv", "--arms", "frozen,full", "--steps", "50", "--minutes", "30", "--patch", "4"
    )
    assert "fpt-advise-mine" in said
    assert {path.name for path in empty.iterdir()} == {"mine.csv", "fpt-advise-mine"}
    assert (empty / "fpt-advise-mine" / "runs" / "advise-mine" / "advice.html").is_file()
    command(copied, empty / "fpt-advise-mine", "status", "advise-mine")
