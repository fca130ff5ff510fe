"""Labelled texts: what each way of training reached at the one rate that a few tuning seeds took together.

The study runs/intents-rates is published sweep by sweep. What is here reads those that are there.
"""

import math
from dataclasses import dataclass
from pathlib import Path

from fpt.results.arm import Arm, remembered
from fpt.results.baselines import LINEAR, Score, known_scores
from fpt.results.contrasts import Contrast, Level, arms_of
from fpt.results.difference import paired_difference
from fpt.sweeps.selection import best_rate, macro_by_seed

STUDY, PROBE = "intents-rates", "probe"
WAYS = {  # letters of an arm, from the cheapest on -> what pages call it
    PROBE: "probe",
    "NP": "norms and head",
    "LP": "LoRA",
    "LP probe-first": "probe, then LoRA",
    "WP": "full training",
    "WP probe-first": "probe, then full training",
}


@dataclass(frozen=True)
class Setting:
    """What trains: labels a class (0: all), and steps."""

    labels: int
    steps: int

    def __str__(self) -> str:
        return f"{f'{self.labels} labels a class' if self.labels else 'all labels'}, {self.steps:,} steps"


@dataclass(frozen=True)
class Tried:
    """A way of training in a setting, and beside it the probe with as many labels.

    Its rate (of a probe: its strength) has the best mean macro accuracy on the validation texts of its tuning seeds,
    ties to the smaller. These seeds chose it, so their test accuracy is exploratory.
    """

    arm: Arm
    probe: Arm

    @property
    def rate(self) -> float:
        return chosen(self.arm)

    def level(self, at: float | None = None) -> Level:
        """Test accuracy in percent at its rate, or another one of its grid."""
        at = self.rate if at is None else at
        return Level.of(self.arm.estimate(at).in_percent, rate=at)

    def over_probe(self, at: float | None = None) -> Contrast:
        """Its accuracy, at its rate or another one, minus the probe's at its strength, in points; paired by seed and
        by test text."""
        at = self.rate if at is None else at
        strength = chosen(self.probe)
        found = paired_difference([(self.arm, at, None)], [(self.probe, strength, None)])
        first, second = (100 * float(values.mean()) for values in (self.arm.values(at), self.probe.values(strength)))
        return Contrast.of(found.in_points, first=first, second=second)

    @property
    def minutes(self) -> float:
        """Wall time of one run, in minutes; of a probe its share of the features of a seed."""
        return float(self.arm.result["wall_seconds"]) / len(self.arm.runs) / 60


@remembered
def chosen(arm: Arm) -> float:
    """The rate that the tuning seeds of an arm take together."""
    found = best_rate(macro_by_seed(arm.runs, arm.answers))
    assert found is not None, f"{arm.folder}: some run diverged at every rate"
    return found


def probes(task: str, root: Path | None = None) -> dict[int, Tried]:
    """The published probes of a task of texts by their labels a class (0: all)."""
    return {_labels(arm): Tried(arm, arm) for arm in _arms(task, root) if arm.letters == PROBE}


def tried(task: str, root: Path | None = None) -> dict[Setting, dict[str, Tried]]:
    """What is published of a task of texts beside the probe: by setting, few labels and few steps first, the ways of
    training by their letters. One whose probe is not published is left out."""
    known, found = probes(task, root), dict[Setting, dict[str, Tried]]()
    for arm in sorted(_arms(task, root), key=lambda arm: [*WAYS].index(arm.letters)):
        if arm.letters != PROBE and _labels(arm) in known:
            here = found.setdefault(Setting(_labels(arm), arm.steps), {})
            here[arm.letters] = Tried(arm, known[_labels(arm)].arm)
    return dict(sorted(found.items(), key=lambda each: (each[0].labels or math.inf, each[0].steps)))


def linear(task: str, labels: int = 0) -> Score:
    """The classifier without a model: TF-IDF of words and characters with a linear SVM."""
    return known_scores(task, labels=labels)[LINEAR]


def _arms(task: str, root: Path | None) -> list[Arm]:
    return [arm for (name, _), arm in arms_of(STUDY, root).items() if name == task and arm.letters in WAYS]


def _labels(arm: Arm) -> int:
    return int(arm.fields["task_options"].get("labels", 0))
