"""What an answer is worth: measures of the classes that were predicted for test examples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fpt.sweeps import selection

Classes = NDArray[np.int64]  # of examples, from 0; -1: no answer
ACCURACY, MACRO_F1, BALANCED = "accuracy", "macro-f1", "balanced-accuracy"


def accuracy(target: Classes, predicted: Classes) -> float:
    """The share of the examples whose class is predicted."""
    return float(np.mean(target == predicted))


def macro_f1(target: Classes, predicted: Classes) -> float:
    """The mean over the classes of the examples of each one's F1."""
    from sklearn.metrics import f1_score

    return float(f1_score(target, predicted, labels=np.unique(target), average="macro", zero_division=0))


def balanced_accuracy(target: Classes, predicted: Classes) -> float:
    """The mean over the classes of the examples of the share of each that is predicted."""
    right = pd.Series(target == predicted)
    return float(right.groupby(target).mean().mean())


METRICS: dict[str, Callable[[Any, Any], float]] = {
    ACCURACY: accuracy, MACRO_F1: macro_f1, BALANCED: balanced_accuracy,
}  # fmt: skip


def by_seed(answers: pd.DataFrame, metric: str) -> "pd.Series[float]":
    """A metric of every seed's answers. `answers`: a row for each seed and example, with target and predicted."""
    found = {
        seed: METRICS[metric](rows["target"].to_numpy(), rows["predicted"].to_numpy())
        for seed, rows in answers.groupby("seed")
    }
    return pd.Series(found, dtype=float).rename_axis("seed")


def best_rate(answers: pd.DataFrame, metric: str) -> float | None:
    """The rate with the best mean of a metric over seeds on validation examples, ties to the smaller; None where some
    run diverged at every rate. `answers` of a sweep, as fpt.training.measures.answers gives them."""
    by_rate = answers[answers["part"] == "validation"].groupby("learning_rate")
    found = {rate: by_seed(rows, metric) for rate, rows in by_rate if (rows["predicted"] >= 0).all()}
    return selection.best_rate(pd.DataFrame(found))
