"""Labelled texts: what each way of training reached at the one rate that a few tuning seeds took together.

Two studies are read: the tuning seeds, which chose their own rates, and fresh seeds at the same rates. Both are
published sweep by sweep. What is here reads those that are there.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fpt.errors import check_known
from fpt.results.arm import Arm, remembered
from fpt.results.baselines import LINEAR, Score, counted, known_scores
from fpt.results.contrasts import Contrast, Level, arms_of
from fpt.results.difference import Reading, difference
from fpt.sweeps.selection import best_rate, chosen_by_few, macro_by_seed

TUNING, FRESH = "intents-rates", "intents"
PROBE = "probe"
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

    Its `rate` and the probe's `strength` have the best mean macro accuracy on the validation texts of the tuning seeds,
    ties to the smaller. What these seeds reach themselves is exploratory, because they chose.
    """

    arm: Arm
    rate: float
    probe: Arm
    strength: float

    def level(self, at: float | None = None) -> Level:
        """Test accuracy in percent at its rate, or another one of its grid."""
        at = self.rate if at is None else at
        return Level.of(self.arm.estimate(at).in_percent, rate=at)

    def over_probe(self, at: float | None = None, left_out: Collection[int] = ()) -> Contrast:
        """Its accuracy, at its rate or another one, minus the probe's at its strength, in points; paired by seed and
        by test text. Without the texts of these numbers."""
        return apart([(self.arm, self.rate if at is None else at)], [(self.probe, self.strength)], left_out)

    def lost_by_few(self, labels: int) -> float:
        """Points that its accuracy would lose in the mean, had so many validation texts a class chosen its rate; of
        tuning seeds (`few_choose`)."""
        shares = few_choose(self.arm, labels)
        return self.level().value - sum(share * self.level(rate).value for rate, share in shares.items())

    @property
    def minutes(self) -> float:
        """Wall time of one run, in minutes; of a probe its share of the features of a seed."""
        return float(self.arm.result["wall_seconds"]) / len(self.arm.runs) / 60


At = tuple[Arm, float]  # an arm, and the rate at which it is read


def apart(plus: Sequence[At], minus: Sequence[At], left_out: Collection[int] = ()) -> Contrast:
    """The accuracies of some arms, each at a rate, minus those of others, in points; paired by seed and by test text.
    Without the texts of these numbers."""
    sides = [[_read(arm, rate, left_out) for arm, rate in side] for side in (plus, minus)]
    shared = set.intersection(*({*each.scores.index} for side in sides for each in side))
    first, second = (100 * sum(float(each.scores[[*shared]].mean()) for each in side) for side in sides)
    return Contrast.of(difference(sides[0], sides[1]).in_points, first=first, second=second)


def _read(arm: Arm, rate: float, left_out: Collection[int]) -> Reading:
    right = arm.right(rate).fillna(arm.guessing)  # of a run that was never finite
    kept = right.loc[:, ~right.columns.get_level_values("example").isin([*left_out])]
    return Reading(kept.mean(axis=1), right=kept, collapsed=bool(arm.collapsed(rate).any()))


def suspicious(task: str) -> list[int]:
    """Numbers of the test texts whose label is not among the three that a linear classifier of words ranks first,
    fitted on the other four fifths of all texts (notebooks/ladder.ipynb). Raises SpecError for a task on which nobody
    counted them."""
    found = counted("suspicious").set_index("task")["examples"]
    check_known("task", task, found.index)
    return [int(number) for number in found[task]]


@remembered
def chosen(arm: Arm) -> float:
    """The rate that the tuning seeds of an arm take together."""
    found = best_rate(macro_by_seed(arm.runs, arm.answers))
    assert found is not None, f"{arm.folder}: some run diverged at every rate"
    return found


@remembered
def few_choose(arm: Arm, labels: int) -> dict[float, float]:
    """What so many validation texts a class would have chosen of the rates of tuning seeds: the share of a thousand
    draws that take each (fpt.sweeps.selection.chosen_by_few)."""
    shares = chosen_by_few(arm.runs, arm.answers, labels).value_counts(normalize=True)
    return dict(zip(shares.index.astype(float), shares.astype(float), strict=True))


def probes(task: str, root: Path | None = None, study: str = TUNING) -> dict[int, Tried]:
    """The published probes of a task of texts by their labels a class (0: all), those at a strength that tuning seeds
    chose."""
    strengths = {labels_of(arm): chosen(arm) for arm in _arms(task, root, TUNING) if arm.letters == PROBE}
    known = {labels_of(arm): arm for arm in _arms(task, root, study) if arm.letters == PROBE}
    found = {labels: arm for labels, arm in known.items() if strengths.get(labels) in arm.rates}
    return {labels: Tried(arm, strengths[labels], arm, strengths[labels]) for labels, arm in found.items()}


def tried(task: str, root: Path | None = None, study: str = TUNING) -> dict[Setting, dict[str, Tried]]:
    """What is published of a task of texts beside the probe: by setting, few labels and few steps first, the ways of
    training by their letters. One whose probe is not published is left out, and of fresh seeds one without a rate that
    tuning seeds chose."""
    known, found = probes(task, root, study), dict[Setting, dict[str, Tried]]()
    rates = {_place(arm): chosen(arm) for arm in _arms(task, root, TUNING)}
    for arm in sorted(_arms(task, root, study), key=lambda arm: [*WAYS].index(arm.letters)):
        rate, probe = rates.get(_place(arm)), known.get(labels_of(arm))
        if arm.letters != PROBE and probe and rate in arm.rates:
            found.setdefault(_place(arm)[0], {})[arm.letters] = Tried(arm, rate, probe.arm, probe.strength)
    return dict(sorted(found.items(), key=lambda each: (each[0].labels or math.inf, each[0].steps)))


def linear(task: str, labels: int = 0) -> Score:
    """The classifier without a model: TF-IDF of words and characters with a linear SVM."""
    return known_scores(task, labels=labels)[LINEAR]


def _arms(task: str, root: Path | None, study: str) -> list[Arm]:
    """The arms that train as the tuning seeds do: not those at a constant rate."""
    arms = [arm for (name, _), arm in arms_of(study, root).items() if name == task and arm.letters in WAYS]
    return [arm for arm in arms if arm.letters == PROBE or arm.recipe.schedule == "cosine"]


def _place(arm: Arm) -> tuple[Setting, str]:
    return Setting(labels_of(arm), arm.steps), arm.letters


def labels_of(arm: Arm) -> int:
    """Labels a class; 0: all."""
    return int(arm.fields["task_options"].get("labels", 0))
