"""What answers are worth: scikit-learn's numbers, and the rate that tuning seeds choose."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score

from fpt.advise import metrics


def test_metrics_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    target, predicted = rng.choice(4, 300, p=[0.7, 0.2, 0.05, 0.05]), rng.integers(0, 4, 300)
    assert metrics.macro_f1(target, predicted) == pytest.approx(f1_score(target, predicted, average="macro"))
    assert metrics.balanced_accuracy(target, predicted) == pytest.approx(balanced_accuracy_score(target, predicted))


def test_a_class_that_nobody_asks_for_costs_no_more_than_the_answer() -> None:
    target, predicted = np.array([0, 0, 1, 1]), np.array([0, -1, 1, 7])
    assert metrics.accuracy(target, predicted) == metrics.balanced_accuracy(target, predicted) == 0.5
    assert metrics.macro_f1(target, predicted) == pytest.approx(2 / 3)


def test_a_rate_is_chosen_on_validation_by_the_metric_and_never_one_that_diverged() -> None:
    rows = []
    answers = {1e-3: [0, 0, 0, 0, 0, 1], 1e-2: [0, 0, 0, 0, 0, 0], 1e-1: [0, 0, 0, 0, 1, -1]}
    for rate, predicted in answers.items():
        for example, (target, each) in enumerate(zip([0, 0, 0, 0, 0, 1], predicted, strict=True)):
            rows += [(rate, 900, "validation", example, target, each), (rate, 900, "test", example, target, 0)]
    frame = pd.DataFrame(rows, columns=["learning_rate", "seed", "part", "example", "target", "predicted"])
    assert metrics.best_rate(frame, metrics.MACRO_F1) == 1e-3
    assert metrics.best_rate(frame[frame["learning_rate"] == 1e-1], metrics.ACCURACY) is None
