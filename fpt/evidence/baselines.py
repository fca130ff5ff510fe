"""What can be had without learning much: the scores that a result must be read against."""

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt.errors import SpecError
from fpt.tasks import data_folder, entry

if TYPE_CHECKING:
    from fpt.tasks.task import Task


def baseline_scores(
    task: str, variant: str = "paper", data_dir: str | Path | None = None, **options: Any
) -> dict[str, float]:
    """Exact test accuracies (fractions) of trivial strategies, weakest first.

    Guessing; Bit Memory: copying the visible half and guessing the rest; ListOps: a ladder of exact readers instead;
    images and homology: always naming the commonest class of the training set, scored on the test set.
    Raises what `fpt.tasks.load` raises.
    """
    from fpt.tasks import load

    loaded = load(task, data_dir, variant, **options)
    if task.startswith("listops"):
        from fpt.tasks.listops import listops_ladder

        return listops_ladder(loaded)
    guessing = {"chance": 1 / loaded.classes}
    if task == "bit-memory":
        return guessing | {"copy the visible bits": 0.75}
    return guessing if task == "bit-xor" else guessing | {"majority class": _majority(loaded)}


def chance(task: str) -> float:
    """The accuracy of guessing; nan for a task whose number of classes is in its data alone."""
    classes = entry(task).classes
    return 1 / classes if classes else math.nan


def missing_data(task: str) -> str:
    """That the data of the task would have to be downloaded first; empty where they are there."""
    files = entry(task).files
    there = not files or any((data_folder() / file).exists() for file in files)
    return "" if there else f"the data of {task} are not on this machine"


@cache
def linear_score(task: str, data_dir: str | Path | None = None) -> float:
    """Test accuracy (a fraction) of a logistic regression on the raw inputs, trained on the training rows of seed 0.

    Raises what `fpt.tasks.load` raises, and SpecError for a stream of data, which has no training set.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from fpt.tasks import load

    loaded = load(task, data_dir)
    split = loaded.split(0)
    if split.train_size is None:
        raise SpecError(f"task {task!r} is a stream: it has no training set for a linear classifier")
    seen = split.train_sample(None)
    pairs = [(loaded.encode(part.inputs).flatten(1).numpy(), part.targets[:, 0].numpy()) for part in (seen, split.test)]
    (x, y), (x_test, y_test) = pairs
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return float(model.fit(x, y).score(x_test, y_test))


def _majority(task: "Task") -> float:
    split = task.split(0)
    commonest = split.train_sample(None).targets.flatten().mode().values
    return float((split.test.targets == commonest).double().mean())
