"""The numbers to beat: the commonest class, a linear classifier and, on tables, boosted trees. No training of ours."""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from fpt.results.baselines import LINEAR, MAJORITY

if TYPE_CHECKING:
    from fpt.tasks.arrays import Examples
    from fpt.tasks.task import Task

TREES = "boosted trees"
MOST_ROWS = 10_000  # of the training set, a stratified sample: more would take minutes
MOST_CLASSES = 20  # of boosted trees, which grow one a class in each round: more would take minutes a seed
GRAM = 3  # symbols of a text that the linear classifier sees together


def baselines(task: "Task", seeds: Sequence[int], test_examples: int | None = None) -> pd.DataFrame:
    """Test accuracy (a fraction), seeds x baselines: each seed's own training and test examples, as our runs have."""
    from fpt.tasks.own import Columns

    fits: dict[str, Callable[[Task], Any]] = {MAJORITY: _majority, LINEAR: _linear}
    if isinstance(task.encode, Columns) and task.classes <= MOST_CLASSES:
        fits[TREES] = _trees
    rows = {}
    for seed in seeds:
        split = task.split(seed)
        seen, asked = split.train_sample(MOST_ROWS), split.test_sample(test_examples)
        x, y, x_test = _inputs(task, seen), seen.targets[:, 0].numpy(), _inputs(task, asked)
        found = {}
        for name, model in fits.items():
            with warnings.catch_warnings(), threadpool_limits(1):  # threads that wait for a busy core cost minutes
                warnings.simplefilter("ignore")  # a classifier that ends with its iterations says so: that is its rule
                fitted = model(task) if len(np.unique(y)) > 1 else _majority(task)  # the sample may lack a rare class
                answers = fitted.fit(x, y).predict(x_test)
            found[name] = float(np.mean(answers == asked.targets[:, 0].numpy()))
        rows[seed] = found
    return pd.DataFrame(rows).T.rename_axis("seed")


def _inputs(task: "Task", examples: "Examples") -> Any:
    """What the models read: the numbers of an example (n, numbers), or the symbols of a text, without its padding."""
    if not task.vocabulary:
        return task.encode(examples.inputs).flatten(1).numpy()
    lengths = [task.tokens] * len(examples) if examples.lengths is None else examples.lengths.tolist()
    return [row[:length].tolist() for row, length in zip(examples.inputs, lengths, strict=True)]


def _majority(task: "Task") -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier()


def _linear(task: "Task") -> Any:
    """A logistic regression on the standardised numbers, or on the shares of symbols and of their neighbourhoods."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if task.vocabulary:
        return make_pipeline(HashingVectorizer(analyzer=grams), LogisticRegression(C=100))
    return make_pipeline(StandardScaler(), LogisticRegression())


def grams(symbols: Sequence[int]) -> list[str]:
    """Every one, two and three symbols that follow each other."""
    return [
        " ".join(map(str, symbols[start : start + length]))
        for length in range(1, GRAM + 1)
        for start in range(len(symbols) - length + 1)
    ]


def _trees(task: "Task") -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)
