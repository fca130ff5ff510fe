"""Verdicts on claims of Lu et al. 2021 that the rows of a table decide, read twice: tuned, and at the paper's rate."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fpt.evidence.baselines import linear_score
from fpt.evidence.claims import CONTRADICTED, DIVERGED, EDGE, INCONCLUSIVE, SUPPORTED
from fpt.evidence.experiments import FIXED, NOT_AT_THIS_SCALE, NOT_RUN, RATE, READINGS, TUNED, Cell, Experiment, Results
from fpt.evidence.runs import rate_text
from fpt.evidence.stats import MINIMUM_PAIRS, POINT, Paired, paired

UNSTABLE = 0.1  # so far below its tuned accuracy a model is called unstable at a rate
TROUBLES = (NOT_AT_THIS_SCALE, NOT_RUN, DIVERGED)  # which decides where rows have different ones


@dataclass(frozen=True)
class Ruling:
    """What the rows of one table say about a claim, on one task, at one reading of the learning rate."""

    claim: str  # id in claims.yaml, or several: L-40, L-43
    experiment: str
    kind: str  # greater, order, close, ...
    statement: str  # what is tested: "language above random"
    task: str = ""
    reading: str = TUNED
    rates: str = ""  # of the reading `fixed`: the paper's, scaled to the width
    verdict: str = NOT_AT_THIS_SCALE
    tests: tuple[Paired, ...] = ()
    scale: str = ""  # backbone and steps
    exploratory: bool = False
    note: str = ""


Values = list["pd.Series[float]"]  # one series by seed for each row that the claim names


def directional(test: Paired, low: float = 0.0, high: float = math.inf) -> str:
    """By the interval alone: wholly between the limits, wholly beyond one of them, or neither."""
    if test.n < MINIMUM_PAIRS:
        return INCONCLUSIVE
    if low < test.low and test.high < high:
        return SUPPORTED
    return CONTRADICTED if test.high < low or test.low > high else INCONCLUSIVE


def equivalent(test: Paired, *_: float) -> str:
    """Within one point by two one-sided tests; contradicted where the interval lies wholly beyond it."""
    if test.n >= MINIMUM_PAIRS and test.comparable:
        return SUPPORTED
    return CONTRADICTED if test.low > POINT or test.high < -POINT else INCONCLUSIVE


def _first_above(values: Values) -> list[Paired]:
    return [paired(values[0], other) for other in values[1:]]


def _rising(values: Values) -> list[Paired]:
    return [paired(above, under) for under, above in pairwise(values)]


def _itself(values: Values) -> list[Paired]:
    return [paired(values[0], 0 * values[0])]


def _second_above(values: Values) -> list[Paired]:
    return [paired(values[1], values[0])]


def _jumps(values: Values) -> list[Paired]:
    """The first of the steps from row to row against each of the others."""
    steps = [above - under for under, above in pairwise(values)]
    return [paired(steps[0], other) for other in steps[1:]]


def _within_reach(test: Paired, *_: float) -> str:
    """Whether the interval, one point wider on either side, holds the printed number."""
    if test.n < MINIMUM_PAIRS:
        return INCONCLUSIVE
    return SUPPORTED if test.low - POINT <= 0 <= test.high + POINT else CONTRADICTED


def _points(claim: Mapping[str, Any]) -> tuple[float, float]:
    return claim.get("by", 0) / 100, claim.get("to", math.inf) / 100


def _ratios(claim: Mapping[str, Any]) -> tuple[float, float]:
    return math.log(claim.get("by", 1)), math.log(claim.get("to", math.inf))


@dataclass(frozen=True)
class Kind:
    """How a kind of claim is worded, what is tested, and how the interval decides against the limits."""

    says: str  # {0} and {1}: the rows named; {by}, {level}: of the claim
    tests: Callable[[Values], list[Paired]]
    word: Callable[..., str] = directional  # of the test and the limits
    limits: Callable[[Mapping[str, Any]], tuple[float, float]] = _points  # of the claim


KINDS = {
    "greater": Kind("{0} above {1}", _first_above),
    "order": Kind("{order}", _rising),
    "best": Kind("{0} above {others}", _first_above),
    "jump": Kind("the step from {0} to {1} is the largest", _jumps),
    "rates": Kind("{0} better at its first rate than at its second", _first_above),
    "near": Kind("{0} is where the paper has it", _first_above, _within_reach),
    "linear": Kind("{0} within 1 point of a linear classifier on the inputs", _first_above, equivalent),
    "close": Kind("{0} within 1 point of {1}", _first_above, equivalent),
    # reached counts as reached: the limit is the largest number below it
    "reaches": Kind(
        "{0} reaches {level:g}%", _itself, limits=lambda c: (math.nextafter(c["level"] / 100, 0), math.inf)
    ),
    "faster": Kind("{0} in fewer steps than {1}", _second_above, directional, _ratios),
    "gap": Kind(
        "{0}: training less than 1 point above test accuracy", _itself, directional, lambda _: (-math.inf, POINT)
    ),
    "smaller-gap": Kind("smaller gap of {0} than of {1}", _second_above),
    "unstable": Kind("{0} is unstable at this rate", _first_above, limits=lambda _: (UNSTABLE, math.inf)),
}
OWN = ("near", "rates", "unstable")  # about the paper's models on its tasks: no other decides them


def says(claim: Mapping[str, Any]) -> str:
    """What is tested, in words."""
    kind, labels, by = _kind(claim), labels_of(claim), claim.get("by", 0)
    words = {"order": " < ".join(labels), "others": " and ".join(labels[1:]), "level": claim.get("level", 0)}
    margin = f" by more than {by:g} points" if by > 0 else f", or no more than {-by:g} point below" if by else ""
    if "to" in claim:
        margin = f", by {by:g} to {claim['to']:g} {'times' if kind == 'faster' else 'points'}"
    return KINDS[kind].says.format(*labels, **words) + margin


def rulings(experiment: Experiment, results: Results) -> list[Ruling]:
    """Every claim of the table, on every task that was tried, at both readings."""
    return [ruling for claim in experiment.claims for ruling in _rulings(experiment, claim, results)]


def _rulings(experiment: Experiment, claim: Mapping[str, Any], results: Results) -> Iterator[Ruling]:
    rows = [experiment.row(label) for label in labels_of(claim)]
    named = claim.get("tasks", experiment.tasks)
    tasks = [task for task in named if task in results.tasks] if claim.get("only_there") else results.tasks_for(named)
    cells = {task: [results.cell(experiment, row, task) for row in rows] for task in tasks}
    tried = {task: some for task, some in cells.items() if all(cell.sweep is not None for cell in some)}
    kind = _kind(claim)
    if kind in OWN:
        tried = {task: some for task, some in tried.items() if some[0].is_the_papers and task in some[0].row.paper}
    base = Ruling(claim["id"], experiment.name, kind, says(claim))
    if not tried:
        yield base
    for task, some in tried.items():
        at_task = base.__dict__ | {"task": task, "scale": scale(some)}
        for reading in (FIXED,) if kind in ("unstable", "rates") else READINGS:
            yield _ruling(at_task | {"reading": reading}, claim, some)


def _ruling(fields: dict[str, Any], claim: Mapping[str, Any], cells: list[Cell]) -> Ruling:
    kind, reading = KINDS[_kind(claim)], fields["reading"]
    if why := _incomparable(cells):
        return Ruling(**fields | {"note": f"not compared: {why}"})
    if trouble := next((word for word in TROUBLES if word in [cell.trouble(reading) for cell in cells]), ""):
        return Ruling(**fields | {"verdict": trouble})
    rates = " and ".join(dict.fromkeys(rate_text(cell.fixed_rate) for cell in cells))
    fields = fields | {"rates": rates, "exploratory": any(cell.is_exploratory for cell in cells)}
    if early := _early(fields["kind"], cells, reading):
        return Ruling(**fields | early)
    tests = tuple(kind.tests(_values(fields["kind"], cells, reading)))
    word = worst(kind.word(test, *kind.limits(claim)) for test in tests)
    notes = [claim["part"]] if "part" in claim else []
    notes += ["too few pairs"] if any(test.n < MINIMUM_PAIRS for test in tests) else []
    if fields["kind"] == "reaches" and word == CONTRADICTED and cells[0].is_narrow:
        word, notes = INCONCLUSIVE, [*notes, "a smaller model in fewer steps does not contradict it"]
    edges = [cell.row.label for cell in cells if cell.at_edge]
    if edges and (reading == TUNED or (fields["kind"] == "unstable" and word == CONTRADICTED)):
        word = EDGE  # beyond the grid it may be better still
        notes.append(f"edge of the grid: {', '.join(edges)}")
    if diverged := [f"{cell.row.label} ({n})" for cell in cells if (n := cell.diverged(reading))]:
        notes.append(f"diverged runs: {', '.join(diverged)}")
    return Ruling(**fields | {"verdict": word, "tests": tests, "note": "; ".join(notes)})


def _incomparable(cells: list[Cell]) -> str:
    """Why no difference between these rows would mean anything, or nothing."""
    if len({cell.sweep["steps"] for cell in cells if cell.sweep}) > 1:
        return "trained for different numbers of steps"
    own = [cell.row.label for cell in cells if cell.row.fields.get("pretrained_by") == cell.task]
    return f"{own[0]} was pretrained on this very task" if own else ""


def _early(kind: str, cells: list[Cell], reading: str) -> dict[str, str]:
    """Verdict and note where there is nothing to put an interval around."""
    if kind == "unstable" and (lost := cells[0].diverged(FIXED)):
        return {"verdict": SUPPORTED, "note": f"{lost} runs diverged"}
    if kind == "unstable" and cells[0].at(TUNED).equals(cells[0].at(FIXED)):
        return {"verdict": INCONCLUSIVE, "note": "its own rate is the paper's: both sides are the same runs"}
    never = [cell.row.label for cell in cells if kind == "faster" and not np.isfinite(cell.values(reading)).any()]
    return {"verdict": INCONCLUSIVE, "note": f"no seed reached the threshold: {', '.join(never)}"} if never else {}


def worst(words: Iterable[str]) -> str:
    """The verdict on a claim that needs several tests: contradicted by any, supported by all."""
    words = list(words)
    return next((word for word in (CONTRADICTED, INCONCLUSIVE) if word in words), SUPPORTED)


def _values(kind: str, cells: list[Cell], reading: str) -> Values:
    """By seed, of the stage that all cells have; steps as logarithms."""
    stage = "confirmation" if {cell.stage for cell in cells} == {"confirmation"} else "selection"
    first = cells[0]
    if kind == "unstable":
        return [first.values(TUNED, stage), first.values(FIXED, stage)]
    if kind == "rates":
        return [first.values(FIXED, stage), first.values(RATE, stage)]
    if kind in ("near", "linear"):
        own = first.values(reading, stage)
        other = first.row.paper[first.task] / 100 if kind == "near" else linear_score(first.task)
        return [own, 0 * own + other]
    values = [cell.values(reading, stage) for cell in cells]
    if kind != "faster":
        return values
    # A seed that never arrived counts as the last step, less than it needs; a pair of which neither did says nothing.
    both = pd.concat(dict(enumerate(values)), axis=1, join="inner")
    last = float(cells[0].curves["step"].max())
    arrived = both[np.isfinite(both).any(axis=1)].clip(upper=last)
    return [arrived[place].map(math.log) for place in arrived.columns]


def overall(words: Iterable[str]) -> str:
    """One verdict for several tasks: contradicted by any of them, supported only by all that were tried."""
    words = list(words)
    tried = [word for word in words if word not in (NOT_AT_THIS_SCALE, NOT_RUN)]
    if not tried:
        return NOT_RUN if NOT_RUN in words else NOT_AT_THIS_SCALE
    if CONTRADICTED in tried:
        return CONTRADICTED
    return SUPPORTED if set(tried) == {SUPPORTED} else INCONCLUSIVE


def difference(ruling: Ruling, test: Paired) -> str:
    """The tested difference with its interval: points, or for steps a ratio."""
    if math.isnan(test.mean):
        return ""
    if ruling.kind == "faster":
        mean, low, high = (f"{math.exp(value):.2f}" for value in (test.mean, test.low, test.high))
        return f"x {mean} ({low} to {high})"
    form = ".1f" if ruling.kind == "reaches" else "+.1f"
    return f"{100 * test.mean:{form}} ({100 * test.low:{form}} to {100 * test.high:{form}})"


def _kind(claim: Mapping[str, Any]) -> str:
    return next(name for name in KINDS if name in claim)


def labels_of(claim: Mapping[str, Any]) -> Sequence[str]:
    named = claim[_kind(claim)]
    return [named] if isinstance(named, str) else list(named)


def scale(cells: Sequence[Cell]) -> str:
    """Backbones and steps: no claim is made beyond them."""
    sweeps = [cell.sweep for cell in cells if cell.sweep is not None]
    steps = " and ".join(f"{int(n):,}" for n in dict.fromkeys(sweep["steps"] for sweep in sweeps))
    return f"{', '.join(dict.fromkeys(str(sweep['backbone']) for sweep in sweeps))}, {steps} steps"
