"""A workspace with a table of the reader's, and a small study on it as `fpt advise` writes one, trained in this
process."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import made_rows
import numpy as np
import pandas as pd
import pytest
import small_studies

from fpt.advise import work
from fpt.advise.baselines import baselines
from fpt.advise.request import Request, request
from fpt.bench.cost import Measurement
from fpt.files import write_json
from fpt.models import load_task
from fpt.sweeps import SweepSpec, load_study, run_sweep


def workspace(folder: Path) -> Path:
    small_studies.workspace(folder, name="another", notebooks=False)
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


def table(path: Path, rule: str = "sum", rows: int = 240) -> None:
    """Three columns and a class: the sign of their sum or of a product, or chance."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3))
    rules = {"sum": x.sum(1) > 0, "product": x[:, 0] * x[:, 1] > 0, "noise": rng.integers(0, 2, rows)}
    frame = pd.DataFrame(x, columns=list("abc")).assign(label=rules[rule].astype(int))
    frame.to_csv(path, index=False)


def request_of(
    place: Path,
    arms: str = "frozen,lora,full",
    backbone: str = "tiny-lm",
    minutes: float = 10,
    steps: int | None = None,
) -> Request:
    """The request on mine.csv of this workspace, which is the working directory."""
    return request("mine.csv", backbone, arms, root=place, minutes=minutes, options={"patch": 3}, steps=steps)


def row(spec: SweepSpec) -> Measurement:
    return made_rows.row(spec, tokens=1, runs=8, held=(40, 40), seconds=1e-4, evaluation_seconds=1e-5)


def timed(specs: Sequence[SweepSpec], threads: int, compiled: bool = False) -> dict[str, Measurement]:
    """In the place of work.timed: timings that nobody measured."""
    return {spec.arm: row(spec) for spec in specs}


def train_sweeps(study: Path) -> None:
    for spec in load_study(study).sweeps:
        run_sweep(spec, study / spec.folder_name)


def train(place: Path, rule: str = "sum", steps: int = 6, seeds: int = 4, **given: Any) -> Request:
    """Writes mine.csv and the study of a request, and trains it."""
    table(place / "mine.csv", rule)
    return carried_out(request_of(place, **given), steps, seeds)


def carried_out(wanted: Request, steps: int = 6, seeds: int = 4) -> Request:
    """Writes the study of a request, and trains it."""
    specs = [wanted.spec(arm, [1e-3, 1e-2], range(seeds), steps, "float32") for arm in wanted.arms]
    measures = {spec.arm: work.ADAPTED if "lora" in spec.arm else work.WHOLE for spec in specs}
    work.write_study(wanted, wanted.study, specs, ["for a test"], measures)
    found = baselines(load_task(wanted.task, wanted.backbone, **wanted.options), range(seeds))
    scores = {str(name): list(values) for name, values in found.items()}
    write_json(wanted.study / work.BASELINES, {work.BY_SEED: scores})
    train_sweeps(wanted.study)
    return wanted
