"""A workspace with a table of the reader's, and a small study on it as `fpt advise` writes one, trained in this
process."""

import contextlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fpt.advise import work
from fpt.advise.baselines import baselines
from fpt.advise.request import Request, request
from fpt.files import write_json
from fpt.models import load_task
from fpt.sweeps import load_study, run_sweep

ROOT = Path(__file__).parents[2]


def workspace(folder: Path) -> Path:
    (folder / "runs").mkdir()
    shutil.copytree(ROOT / "notebooks", folder / "notebooks")
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a workspace."""
    monkeypatch.chdir(workspace(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which three arms of tiny-lm were trained on a table; tests read it."""
    folder = workspace(tmp_path_factory.mktemp("whole"))
    with contextlib.chdir(folder):
        train(folder)
    return folder


@pytest.fixture
def wanted(whole: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    """The request whose study is finished, its workspace being the working directory."""
    monkeypatch.chdir(whole)
    return request_of(whole)


def table(path: Path, noise: bool = False, rows: int = 240) -> None:
    """Three columns and a class: the sign of their sum, or chance."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3))
    label = rng.integers(0, 2, rows) if noise else (x.sum(1) > 0).astype(int)
    pd.DataFrame(x, columns=list("abc")).assign(label=label).to_csv(path, index=False)


def request_of(
    place: Path,
    arms: str = "frozen,lora,full",
    backbone: str = "tiny-lm",
    minutes: float = 10,
    steps: int | None = None,
) -> Request:
    """The request on mine.csv of this workspace, which is the working directory."""
    return request("mine.csv", backbone, arms, minutes, 1.0, None, {"patch": 3}, place, steps)


def train(place: Path, noise: bool = False, steps: int = 6, seeds: int = 4, **given: Any) -> Request:
    """Writes mine.csv and the study of a request, and trains it."""
    table(place / "mine.csv", noise)
    return carried_out(request_of(place, **given), steps, seeds)


def carried_out(wanted: Request, steps: int = 6, seeds: int = 4) -> Request:
    """Writes the study of a request, and trains it."""
    specs = [wanted.spec(arm, [1e-3, 1e-2], range(seeds), steps, "float32") for arm in wanted.arms]
    measures = {spec.arm: work.ADAPTED if "lora" in spec.arm else work.WHOLE for spec in specs}
    work.write_study(wanted, wanted.study, specs, ["for a test"], measures)
    found = baselines(load_task(wanted.task, wanted.backbone, **wanted.options), range(seeds))
    scores = {str(name): list(values) for name, values in found.items()}
    write_json(wanted.study / work.BASELINES, {work.BY_SEED: scores})
    for spec in load_study(wanted.study).sweeps:
        run_sweep(spec, wanted.study / spec.folder_name)
    return wanted
