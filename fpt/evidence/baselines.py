"""What can be had without learning much: the scores that a result must be read against."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fpt.tasks.arrays import Task


def baseline_scores(
    task: str, variant: str = "paper", data_dir: str | Path | None = None, **options: Any
) -> dict[str, float]:
    """Exact test accuracies (fractions) of trivial strategies, weakest first.

    Bits: guessing, and on Bit Memory copying the visible half and guessing the rest. ListOps: a ladder of
    exact readers. Otherwise: always naming the commonest class of the training set, scored on the test set.
    Raises what `fpt.tasks.load` raises.
    """
    from fpt.tasks import load

    loaded = load(task, data_dir, variant, **options)
    if task.startswith("listops"):
        from fpt.tasks.listops import listops_ladder

        return listops_ladder(loaded)
    if task == "bit-memory":
        return {"chance": 0.5, "copy the visible bits": 0.75}
    if task == "bit-xor":
        return {"chance": 0.5}
    return {"majority class": _majority(loaded)}


def _majority(task: "Task") -> float:
    split = task.split(0)
    commonest = split.train_sample(None).targets.flatten().mode().values
    return float((split.test.targets == commonest).double().mean())
