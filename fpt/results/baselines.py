"""What can be had without learning much: the scores that a result must be read against.

Some are exact. The others are counted on data by notebooks/ladder.ipynb, which writes baselines.json beside this file:
pages and verdicts read them there, without the data.
"""

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from fpt.results.stats import sampling_noise

FILE = Path(__file__).with_name("baselines.json")
CHANCE, LINEAR, MAJORITY = "chance", "linear classifier", "majority class"  # as the files of papers name them
COPYING, OPERATOR = "copy the visible bits", "outermost operator"
BIGRAM = "the byte before"  # of text: the commonest byte after it
UNTOUCHED = "untouched {}"  # of text: a pretrained model of bytes, as it is
DIGITS = "operator and direct digits"  # of ListOps, below those that evaluate
FLOOR = (CHANCE, MAJORITY, COPYING, OPERATOR, BIGRAM)  # what needs no look at most of an example


@dataclass(frozen=True)
class Score:
    """A share (a fraction) that was counted on `of` predictions, one or several an example; exact where `of` is 0."""

    share: float
    of: int = 0

    @property
    def standard_error(self) -> float:
        return math.sqrt(sampling_noise(self.share, self.of or math.nan))

    @property
    def interval(self) -> tuple[float, float]:
        """95%, Wilson's; the share itself where it is exact."""
        from statsmodels.stats.proportion import proportion_confint

        if not self.of:
            return self.share, self.share
        low, high = proportion_confint(round(self.share * self.of), self.of, method="wilson")
        return float(low), float(high)


def baseline_scores(
    task: str, variant: str = "paper", data_dir: str | Path | None = None, **options: Any
) -> dict[str, Score]:
    """Test accuracies of trivial strategies, computed from the data.

    Guessing; Bit Memory: copying the visible half and guessing the rest; else always naming the commonest class of the
    training set, scored on the test set. notebooks/ladder.ipynb adds linear classifiers, and the readers of ListOps.
    Raises what `fpt.tasks.load` raises.
    """
    from fpt.tasks import load

    if task.startswith("bit-"):
        return _exact(task)
    loaded = load(task, data_dir, variant, **options)
    split = loaded.split(0)
    commonest = split.train_sample(None).targets.flatten().mode().values
    answers = split.test.targets
    majority = Score(float((answers == commonest).double().mean()), answers.numel())
    return {CHANCE: Score(1 / loaded.classes), MAJORITY: majority}


def known_scores(task: str, variant: str = "paper", labels: int = 0) -> dict[str, Score]:
    """Test accuracies of all baselines of a task, without its data: those that are exact, and those that were counted
    on this variant, else on the paper's, with so many labels a class (0: all)."""
    found = counted()
    found = found[(found["task"] == task) & (found["options"].map(lambda each: each.get("labels", 0)) == labels)]
    wanted = variant.removeprefix("lra-")  # Long Range Arena's own lists follow the rules of ours
    chosen = found[found["variant"] == (wanted if wanted in set(found["variant"]) else "paper")]
    shares = zip(chosen["what"], chosen["share"], chosen["of"], strict=True)
    return _exact(task) | {str(what): Score(float(share), int(of)) for what, share, of in shares}


def untouched_loss(task: str, backbone: str) -> float | None:
    """The loss of a pretrained model before any training here, in nats a prediction, over the whole test part; None
    where it was not counted."""
    found = counted("losses")
    own = found[(found["task"] == task) & (found["backbone"] == backbone)]
    return float(own["nats"].iloc[0]) if len(own) else None


def best_trivial(task: str, variant: str = "paper") -> Score | None:
    """The best of the strategies that look at little of an example; None where nothing is known of a task."""
    trivial = [score for name, score in known_scores(task, variant).items() if name in FLOOR]
    return max(trivial, key=lambda score: score.share, default=None)


def floor(task: str, variant: str = "paper") -> float:
    """The accuracy of the best of the strategies that look at little of an example; nan where nothing is known of a
    task."""
    found = best_trivial(task, variant)
    return math.nan if found is None else found.share


def chance(task: str) -> float:
    """The accuracy of guessing; nan for a task whose number of classes is in its data alone."""
    from fpt.tasks import entry

    classes = entry(task).classes
    return 1 / classes if classes else math.nan


def counted(part: str = "scores") -> pd.DataFrame:
    """The lines of baselines.json: its `scores`, what is `left` of lists as released, or `losses` of untouched models.

    A line is a `share` of the `of` test examples of seed 0, or the mean over so many `seeds`, learned from `train`
    examples, of a `task` as it was loaded (`variant`, `options`, `data_checksum`).
    """
    return _counted(part).copy(deep=False)  # pandas copies what is written to


@cache
def _counted(part: str) -> pd.DataFrame:
    return pd.DataFrame(json.loads(FILE.read_text(encoding="utf-8"))[part])


def _exact(task: str) -> dict[str, Score]:
    guessing = {} if math.isnan(chance(task)) else {CHANCE: Score(chance(task))}
    return guessing | ({COPYING: Score(0.75)} if task == "bit-memory" else {})
