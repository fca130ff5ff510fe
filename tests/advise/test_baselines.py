"""The numbers to beat, on the same test examples as our runs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fpt.advise.baselines import TREES, baselines
from fpt.results.baselines import LINEAR, MAJORITY
from fpt.tasks import load
from fpt.tasks.task import Task

from .conftest import table


def task_of(folder: Path, rule: str) -> Task:
    table(folder / "mine.csv", rule, rows=300)
    return load(f"csv:{folder / 'mine.csv'}")


@pytest.mark.parametrize(("rule", "best", "least"), [("sum", LINEAR, 0.95), ("product", TREES, 0.85)])
def test_what_is_best_on_a_table(tmp_path: Path, rule: str, best: str, least: float) -> None:
    found = baselines(task_of(tmp_path, rule), range(3)).mean()
    assert found.idxmax() == best
    assert found[best] > least


def test_noise_is_not_learned(tmp_path: Path) -> None:
    found = baselines(task_of(tmp_path, "noise"), range(4)).mean()
    assert found.between(0.35, 0.65).all()


def test_a_sample_may_lack_a_rare_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpt.advise.baselines.MOST_ROWS", 10)
    rows = np.arange(400)
    pd.DataFrame({"a": rows % 7, "label": (rows < 3).astype(int)}).to_csv(tmp_path / "rare.csv", index=False)
    assert (baselines(load(f"csv:{tmp_path}/rare.csv"), [0]) > 0.9).all(axis=None)


def test_the_majority_class_is_that_of_the_training_examples(tmp_path: Path) -> None:
    task = task_of(tmp_path, "sum")
    found = baselines(task, [7])
    split = task.split(7)
    commonest = split.train_sample(None).targets.flatten().mode().values
    assert found.loc[7, MAJORITY] == pytest.approx(float((split.test.targets == commonest).double().mean()))


def test_texts_are_read_by_their_symbols(tmp_path: Path) -> None:
    words = ["good", "fine", "bad", "ugly"] * 30
    frame = pd.DataFrame({"text": [f"this is {word}, {number}" for number, word in enumerate(words)]})
    frame.assign(label=["plus", "plus", "minus", "minus"] * 30).to_csv(tmp_path / "texts.csv", index=False)
    found = baselines(load(f"csv:{tmp_path / 'texts.csv'}"), range(2)).mean()
    assert found[LINEAR] > 0.9
    assert TREES not in found
