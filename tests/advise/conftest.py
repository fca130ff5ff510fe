"""A workspace with a table of the reader's, and what `fpt advise` makes of it with few rates, seeds and steps."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import small_studies

from fpt.advise import schedule
from fpt.advise.request import Request, request
from fpt.advise.work import Work

STEPS = 4


def workspace(folder: Path) -> Path:
    small_studies.workspace(folder, name="another", notebooks=False)
    return folder


def small(patch: pytest.MonkeyPatch) -> None:
    """Two rates, one tuning seed, and two strengths; nothing is timed."""
    patch.setattr(schedule, "TUNING_SEEDS", (900,))
    patch.setattr(schedule, "STRENGTHS", (0.01, 1.0))
    patch.setattr(schedule, "rates_of", lambda arm: (1e-3, 3e-3))
    patch.setattr("fpt.advise.work.timed", lambda *_: schedule.Pace(1e-4, 1e-6))
    patch.setattr(schedule, "fresh_seeds", lambda seconds, left, most, fewest: (sorted(seconds), fewest))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a workspace, in which work is small."""
    monkeypatch.chdir(workspace(tmp_path))
    small(monkeypatch)
    return tmp_path


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace in which the probe and two arms of tiny-lm were trained on a table; tests read it."""
    folder = workspace(tmp_path_factory.mktemp("whole"))
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        small(patch)
        table(folder / "mine.csv")
        carried_out(request_of(folder))
    return folder


@pytest.fixture
def wanted(whole: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    """The request whose studies are finished, its workspace being the working directory."""
    monkeypatch.chdir(whole)
    return request_of(whole)


def table(path: Path, rule: str = "sum", rows: int = 240) -> None:
    """Three columns and a class: the sign of their sum or of a product, or chance."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 3))
    rules = {"sum": x.sum(1) > 0, "product": x[:, 0] * x[:, 1] > 0, "noise": rng.integers(0, 2, rows)}
    frame = pd.DataFrame(x, columns=list("abc")).assign(label=rules[rule].astype(int))
    frame.to_csv(path, index=False)


def request_of(place: Path, arms: str | None = "lora,full", backbone: str = "tiny-lm", **how: Any) -> Request:
    """The request on mine.csv of this workspace, which is the working directory."""
    given = {"options": {"patch": 3}, "steps": STEPS, "seeds": 3} | how
    return request("mine.csv", backbone, arms, root=place, **given)


def carried_out(wanted: Request) -> list[str]:
    """What a call says on its way to the end."""
    said: list[str] = []
    Work(wanted, said.append).run()
    return said
