"""What is measured of rows at their own rates: accuracies, by themselves and above a score, and training accuracy."""

from collections.abc import Sequence

import pandas as pd

from fpt.claims.case import Case, Comparison, of_test
from fpt.results.arm import TUNED, Arm
from fpt.results.baselines import LINEAR, Score, known_scores
from fpt.results.stats import paired
from fpt.sweeps.selection import tuned_without


def accuracy(case: Case, plus: Sequence[str], minus: Sequence[str]) -> list[Comparison]:
    """Test accuracy, or its gap to training accuracy. A difference of differences is named (a - b) - (c - d)."""
    label = ""
    if len(plus) > 1:
        both = (plus[0], minus[0]), (minus[1], plus[1])
        label = " - ".join(f"({case.label(above)} - {case.label(under)})" for above, under in both)
    return [case.compared(plus, minus, label=label)]


def above_linear(case: Case, plus: Sequence[str], minus: Sequence[str]) -> list[Comparison]:
    """Test accuracy above that of a linear classifier on the inputs."""
    score = known_scores(case.task, case.any_cell.arm.variant).get(LINEAR)
    if score is None:
        return [case.untested(f"no {LINEAR} was fitted")]
    return [case.compared(plus, minus, less=score, score=f"{LINEAR} ({100 * score.share:.1f})")]


def above_printed(case: Case, plus: Sequence[str], minus: Sequence[str]) -> list[Comparison]:
    """Test accuracy, or its gap, above what the paper prints for the row."""
    (row,) = plus
    printed = [each.value for each in case.rows[row].printed.values()]
    numbers = [value[0] - value[1] if isinstance(value, tuple) else value for value in printed]
    return [
        case.compared(plus, minus, less=Score(number / 100), score=f"{number:g} as printed")
        for number in numbers
        if isinstance(number, int | float)
    ]


def training_accuracy(case: Case, plus: Sequence[str], minus: Sequence[str]) -> list[Comparison]:
    """Training accuracy after the last step, tuned."""
    (above,), (under,) = plus, minus
    (one, one_without), (two, two_without) = (_training(case.arms[row]) for row in (above, under))
    found = paired(one, two, without=one_without - two_without)
    return [
        Comparison(
            f"training accuracy of {case.label(above)} - {case.label(under)}",
            found,
            note=of_test(found),
            of="training accuracy",
            plus=case.sweeps(plus),
            minus=case.sweeps(minus),
            levels=(float(one.mean()), float(two.mean())),
        )
    ]


def _training(arm: Arm) -> tuple["pd.Series[float]", pd.DataFrame]:
    """By seed, and the same without each seed; a run that was never finite has none."""
    plane = arm.plane(column="train_accuracy_last")
    return arm.at(TUNED)["train_accuracy_last"].astype(float), tuned_without(arm.validation(), plane)
