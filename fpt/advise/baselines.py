"""The numbers to beat: the commonest class, a linear classifier, TF-IDF of texts, boosted trees of tables. No model.

What a fit costs is bounded by what is fitted, not by a clock: the same data have the same numbers on every machine.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from fpt.results.baselines import LINEAR, MAJORITY

if TYPE_CHECKING:
    from fpt.tasks.arrays import Examples
    from fpt.tasks.task import Task

TREES, TFIDF = "boosted trees", "TF-IDF with a linear SVM"
BLANK = "\N{OPEN BOX}"  # stands for a text of blanks alone: without any word it would be refused
MOST_ROWS = 20_000  # of the training set, a stratified sample
MOST_PRODUCTS = 4e8  # rows x numbers of an example x classes (10 at least), of the linear classifier of numbers
MOST_SYMBOLS = 2_000_000  # of all sequences together
MOST_PLANES = 200  # classes, each with a plane of its own; beyond it counting alone is quick enough
ROUNDS, FEWEST_ROUNDS = 100, 10  # of boosting; a round grows a tree for each class, of two classes one tree
MOST_TREES = 30_000  # trees x (columns + COLUMNS_OF_TREE)
COLUMNS_OF_TREE = 30  # so many columns cost what a tree costs beside its columns


def names_of(task: "Task") -> list[str]:
    """The baselines that a task has, the cheapest first."""
    return list(models(task))


def answers(task: "Task", seed: int, test_examples: int | None = None) -> pd.DataFrame:
    """What each baseline predicts for a seed's test examples, those of our runs, after it saw the seed's training
    examples: columns baseline, seed, example, target and predicted, as fpt.training.measures.answers has them."""
    from fpt.training.measures import numbered

    asked = numbered(task.split(seed)).test_sample(test_examples)
    x, y, x_test, y_test = data_of(task, seed, test_examples)
    frames = []
    for name, model in models(task).items():
        fresh = model() if len(np.unique(y)) > 1 else _majority()  # the sample may lack a rare class
        with warnings.catch_warnings(), threadpool_limits(1):  # threads that wait for a busy core cost minutes
            warnings.simplefilter("ignore")  # a classifier that ends with its iterations says so: that is its rule
            predicted = fresh.fit(x, y).predict(x_test)
        columns = {"baseline": name, "seed": seed, "example": asked.inputs.numpy(), "target": y_test}
        frames.append(pd.DataFrame(columns | {"predicted": predicted}))
    return pd.concat(frames, ignore_index=True)


def data_of(task: "Task", seed: int, test_examples: int | None = None) -> tuple[Any, Any, Any, Any]:
    """What models read of a seed's training examples, as many as are fitted in seconds, and their classes; the same of
    its test examples."""
    from fpt.training.measures import numbered

    split, most = task.split(seed), _most_rows(task)
    twin = numbered(split)
    seen, asked = split.train_sample(most), split.test_sample(test_examples)
    x = _inputs(task, seen, twin.train_sample(most), False)
    x_test = _inputs(task, asked, twin.test_sample(test_examples), not task.test_drawn_by_seed)
    return x, seen.targets[:, 0].numpy(), x_test, asked.targets[:, 0].numpy()


def models(task: "Task") -> dict[str, Callable[[], Any]]:
    """The baselines of a task, the cheapest first: what makes each, a classifier of scikit-learn."""
    from fpt.tasks.own.table import ColumnPatches

    linear = {TFIDF: partial(_tfidf, task.classes)} if task.texts else {LINEAR: partial(_linear, task)}
    found: dict[str, Callable[[], Any]] = {MAJORITY: _majority, **linear}
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


def _inputs(task: "Task", examples: "Examples", numbers: "Examples", official: bool) -> Any:
    """What the models read: the numbers of an example (n, numbers), a text as it was read, or a sequence of symbols as
    words. `numbers`: in place of inputs, which of the training examples, or of an `official` test set, these are."""
    if task.texts:
        first = len(task.data.train) if official else 0  # type: ignore[union-attr]
        texts = [task.texts[first + number] for number in numbers.inputs.tolist()]
        return [text if text.strip() else BLANK for text in texts]
    if not task.vocabulary:
        return task.encode(examples.inputs).flatten(1).numpy()
    lengths = [task.tokens] * len(examples) if examples.lengths is None else examples.lengths.tolist()
    rows = (row[:length].tolist() for row, length in zip(examples.inputs, lengths, strict=True))
    return [" ".join(map(str, row)) for row in rows]


def _majority() -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier()


def _tfidf(classes: int) -> Any:
    """Planes through the shares of words, alone and in pairs, and of two to four characters within words."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    how = {"sublinear_tf": True, "dtype": np.float32}
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\S+", **how)
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), lowercase=False, **how)
    return _planes(classes, make_union(words, letters))


def _linear(task: "Task") -> Any:
    """A logistic regression on the standardised numbers; of symbols, planes through the shares of one to three."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if not task.vocabulary:
        return make_pipeline(StandardScaler(), LogisticRegression())
    return _planes(task.classes, TfidfVectorizer(ngram_range=(1, 3), token_pattern=r"\S+", sublinear_tf=True))


def _planes(classes: int, shares: Any) -> Any:
    from sklearn.naive_bayes import ComplementNB
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    return make_pipeline(shares, LinearSVC() if classes <= MOST_PLANES else ComplementNB())


def _trees(rounds: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=rounds, random_state=0)
