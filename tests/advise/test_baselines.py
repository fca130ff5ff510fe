"""The numbers to beat, on the same test examples as our runs."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fpt.advise.baselines import FEWEST_ROUNDS, MOST_ROWS, TFIDF, TREES, _most_rows, answers, models
from fpt.advise.metrics import accuracy
from fpt.results.baselines import LINEAR, MAJORITY
from fpt.tasks import load
from fpt.tasks.task import Task

from .conftest import table


def baselines(task: Task, seeds: Iterable[int]) -> pd.DataFrame:
    """Accuracy, seeds x baselines."""
    rows = {}
    for seed in seeds:
        found = answers(task, seed).groupby("baseline")
        rows[seed] = {name: accuracy(each["target"].to_numpy(), each["predicted"].to_numpy()) for name, each in found}
    return pd.DataFrame(rows).T


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


def test_boosted_trees_grow_no_more_than_take_seconds(tmp_path: Path) -> None:
    """Fewer rounds where there are many classes or columns, and none where too few rounds would be left."""
    rounds = []
    for classes, columns in ((2, 3), (10, 60), (20, 400)):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(20 * classes, columns))).add_prefix("c")
        frame.assign(label=np.arange(len(frame)) % classes).to_csv(tmp_path / "wide.csv", index=False)
        fits = models(load(f"csv:{tmp_path / 'wide.csv'}"))
        rounds.append(fits[TREES]().max_iter if TREES in fits else 0)
    assert rounds[0] == 100
    assert FEWEST_ROUNDS <= rounds[1] < 100
    assert rounds[2] == 0


def test_what_fits_see_is_bounded_by_the_size_of_an_example(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": [f"{row} words " * 300 for row in range(60)], "label": np.arange(60) % 2})
    frame.to_csv(tmp_path / "texts.csv", index=False)
    long, short = (load(f"csv:{tmp_path / 'texts.csv'}", bytes=most) for most in (2000, 40))
    assert _most_rows(long) < _most_rows(short) == MOST_ROWS
    np.savez(tmp_path / "images.npz", x_train=np.full((40, 64, 64, 3), 255, np.uint8), y_train=np.arange(40) % 2)
    assert _most_rows(load(f"npz:{tmp_path / 'images.npz'}")) < MOST_ROWS


@pytest.mark.parametrize("texts", [["   ", " ", "\t"], ["\u6570\u636e", "\u00e9t\u00e9 \U0001f600", "a"]])
def test_any_text_has_a_baseline(tmp_path: Path, texts: list[str]) -> None:
    frame = pd.DataFrame({"text": texts * 20, "label": [0, 1, 1] * 20})
    frame.to_parquet(tmp_path / "texts.parquet")
    assert baselines(load(f"csv:{tmp_path / 'texts.parquet'}", bytes=5), [0])[TFIDF].notna().all()


def test_upper_case_and_the_order_of_words_are_seen(tmp_path: Path) -> None:
    rows = [("The end", 0), ("THE END", 1), ("not good but bad", 2), ("not bad but good", 3)] * 20
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(tmp_path / "texts.csv", index=False)
    assert baselines(load(f"csv:{tmp_path / 'texts.csv'}"), [0])[TFIDF].item() == 1


def test_more_classes_than_planes_are_told_apart_by_counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fpt.advise.baselines.MOST_PLANES", 3)
    rows = [(f"word{row % 8} and {row}", row % 8) for row in range(160)]
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(tmp_path / "texts.csv", index=False)
    assert baselines(load(f"csv:{tmp_path / 'texts.csv'}"), [0])[TFIDF].item() > 0.9


def test_texts_are_read_by_their_symbols(tmp_path: Path) -> None:
    words = ["good", "fine", "bad", "ugly"] * 30
    frame = pd.DataFrame({"text": [f"this is {word}, {number}" for number, word in enumerate(words)]})
    frame.assign(label=["plus", "plus", "minus", "minus"] * 30).to_csv(tmp_path / "texts.csv", index=False)
    found = baselines(load(f"csv:{tmp_path / 'texts.csv'}"), range(2)).mean()
    assert found[TFIDF] > 0.9
    assert TREES not in found


def test_texts_are_read_as_they_were_written_whatever_a_model_keeps_of_them(tmp_path: Path) -> None:
    rows = [(f"the very same beginning of a text, and then {word}", word) for word in ("good", "bad")] * 20
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(tmp_path / "texts.csv", index=False)
    assert baselines(load(f"csv:{tmp_path / 'texts.csv'}", bytes=8), [0])[TFIDF].item() == 1
