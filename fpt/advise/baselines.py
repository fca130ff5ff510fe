"""The numbers to beat: the commonest class, a linear classifier and, on tables, boosted trees. No training of ours.

What a fit costs is bounded by what is fitted, not by a clock: the same data have the same numbers on every machine.
Bounds are such that a fit takes at most some 5 seconds of one core.
"""

import time
import warnings
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from fpt import tasks
from fpt.results.baselines import LINEAR, MAJORITY

if TYPE_CHECKING:
    from fpt.tasks.arrays import Examples
    from fpt.tasks.task import Task

TREES = "boosted trees"
MOST_ROWS = 10_000  # of the training set, a stratified sample
MOST_PRODUCTS = 4e8  # rows x numbers of an example x classes (10 at least), of the linear classifier of numbers
MOST_SYMBOLS = 1_000_000  # of all texts together
MOST_PLANES = 100  # classes, each with a plane of its own; beyond it counting alone is quick enough
ROUNDS, FEWEST_ROUNDS = 100, 10  # of boosting; a round grows a tree for each class, of two classes one tree
MOST_TREES = 30_000  # trees x (columns + COLUMNS_OF_TREE)
COLUMNS_OF_TREE = 30  # so many columns cost what a tree costs beside its columns
SECONDS = "seconds"  # of each baseline a seed: among the `attrs` of the table


def baselines(
    task: "Task", seeds: Sequence[int], test_examples: int | None = None, names: Collection[str] = ()
) -> pd.DataFrame:
    """Test accuracy (a fraction), seeds x baselines: each seed's own training and test examples, as our runs have.

    names: of the baselines that are wanted; none: all. The `attrs` of the table hold the SECONDS of each a seed.
    """
    models = {name: model for name, model in _models(task).items() if name in names or not names}
    rows, seconds = {}, dict.fromkeys(models, 0.0)
    for seed in seeds:
        split = task.split(seed)
        seen, asked = split.train_sample(_most_rows(task)), split.test_sample(test_examples)
        x, y, x_test = _inputs(task, seen), seen.targets[:, 0].numpy(), _inputs(task, asked)
        found = {}
        for name, model in models.items():
            fresh = model() if len(np.unique(y)) > 1 else _majority()  # the sample may lack a rare class
            began = time.monotonic()  # imports are over
            with warnings.catch_warnings(), threadpool_limits(1):  # threads that wait for a busy core cost minutes
                warnings.simplefilter("ignore")  # a classifier that ends with its iterations says so: that is its rule
                answers = fresh.fit(x, y).predict(x_test)
            found[name] = float(np.mean(answers == asked.targets[:, 0].numpy()))
            seconds[name] += (time.monotonic() - began) / len(seeds)
        rows[seed] = found
    table = pd.DataFrame(rows).T.rename_axis("seed")
    table.attrs[SECONDS] = seconds
    return table


def names_of(task: "Task") -> list[str]:
    """The baselines that a task has."""
    return list(_models(task))


def _models(task: "Task") -> dict[str, Callable[[], Any]]:
    from fpt.tasks.own import ColumnPatches

    found: dict[str, Callable[[], Any]] = {MAJORITY: _majority, LINEAR: partial(_linear, task)}
    trees = 1 if task.classes == 2 else task.classes
    rounds = MOST_TREES // (trees * (_numbers(task) + COLUMNS_OF_TREE))
    if isinstance(task.encode, ColumnPatches) and rounds >= FEWEST_ROUNDS:
        found[TREES] = partial(_trees, min(ROUNDS, rounds))
    return found


def _numbers(task: "Task") -> int:
    """How many numbers, or symbols, an example has."""
    return task.tokens * (task.width or 1)


def _most_rows(task: "Task") -> int:
    """Of the training examples: as many as are fitted in seconds."""
    if task.vocabulary:
        return min(MOST_ROWS, max(1, MOST_SYMBOLS // task.tokens))
    return min(MOST_ROWS, max(1, int(MOST_PRODUCTS / (_numbers(task) * max(task.classes, 10)))))


def _inputs(task: "Task", examples: "Examples") -> Any:
    """What the models read: the numbers of an example (n, numbers), or a text without its padding.

    Bytes are text again; other symbols are written as numbers, a word each.
    """
    from fpt.tasks.texts import texts_of

    if not task.vocabulary:
        return task.encode(examples.inputs).flatten(1).numpy()
    if _holds_bytes(task):
        return texts_of(examples)
    lengths = [task.tokens] * len(examples) if examples.lengths is None else examples.lengths.tolist()
    rows = (row[:length].tolist() for row, length in zip(examples.inputs, lengths, strict=True))
    return [" ".join(map(str, row)) for row in rows]


def _holds_bytes(task: "Task") -> bool:
    return tasks.own_kind(task.name) == tasks.CSV and not task.own_table


def _majority() -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier()


def _linear(task: "Task") -> Any:
    """A logistic regression on the standardised numbers; of texts, planes through the shares of their words, or tokens,
    and of characters, each alone and with its neighbours."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import ComplementNB
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    if not task.vocabulary:
        return make_pipeline(StandardScaler(), LogisticRegression())
    of_bytes = _holds_bytes(task)
    how = {"lowercase": False, "sublinear_tf": True, "dtype": np.float32}
    # A text of blanks alone is one word: else texts without any word would be refused.
    shares = [TfidfVectorizer(ngram_range=(1, 2 if of_bytes else 3), token_pattern=r"\S+|^\s+$", **how)]
    shares += [TfidfVectorizer(analyzer="char", ngram_range=(1, 2), **how)] if of_bytes else []
    return make_pipeline(make_union(*shares), LinearSVC() if task.classes <= MOST_PLANES else ComplementNB())


def _trees(rounds: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=rounds, random_state=0)
