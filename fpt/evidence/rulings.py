"""Verdicts on claims of Lu et al. 2021 that the rows of a table decide, read twice: tuned and at the paper's rate."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fpt.evidence.baselines import linear_score
from fpt.evidence.claims import CONTRADICTED, DIVERGED, EDGE, INCONCLUSIVE, SUPPORTED
from fpt.evidence.experiments import (
    FIXED,
    NOT_AT_THIS_SCALE,
    NOT_RUN,
    RATE,
    READINGS,
    TUNED,
    Cell,
    Experiment,
    Results,
    is_exploratory,
)
from fpt.evidence.results import rate_text
from fpt.evidence.stats import MINIMUM_PAIRS, POINT, Paired, paired

UNSTABLE = 0.1  # so far below its tuned accuracy a model is called unstable at a rate
TROUBLES = (NOT_AT_THIS_SCALE, NOT_RUN, DIVERGED)  # which decides where rows have different ones


@dataclass(frozen=True)
class Ruling:
    """What the rows of one table say about a claim, on one task, at one reading of the learning rate."""

    claim: str  # id in claims.yaml
    experiment: str
    kind: str  # greater, order, close, ...
    statement: str  # what is tested: "language above random"
    task: str = ""
    reading: str = TUNED
    rates: str = ""  # of the reading `fixed`
    verdict: str = NOT_AT_THIS_SCALE
    tests: tuple[Paired, ...] = ()
    scale: str = ""  # backbone and steps
    exploratory: bool = False
    note: str = ""

    @property
    def word(self) -> str:
        """The verdict, marked where it comes from seeds that also chose the rate."""
        return f"{self.verdict} (exploratory)" if self.exploratory else self.verdict

    @property
    def how(self) -> str:
        return "each at its own rate" if self.reading == TUNED else f"at {self.rates or 'the rate of the paper'}"

    @property
    def sentence(self) -> str:
        where = f"On {self.task} ({self.scale}), {self.how}" if self.task else "On none of its tasks"
        return f"{where}: {self.statement}: {self.word}."


Values = list["pd.Series[float]"]  # one series by seed for each row that the claim names


def directional(test: Paired, above: float = 0.0) -> str:
    """By the interval alone: wholly above, wholly below, or neither."""
    if test.n < MINIMUM_PAIRS:
        return INCONCLUSIVE
    return SUPPORTED if test.low > above else CONTRADICTED if test.high < above else INCONCLUSIVE


def below(test: Paired, limit: float) -> str:
    word = directional(test, limit)
    return {SUPPORTED: CONTRADICTED, CONTRADICTED: SUPPORTED}.get(word, word)


def equivalent(test: Paired, _: float = POINT) -> str:
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


def _within_reach(test: Paired, _: float) -> str:
    """Whether the interval, one point wider on either side, holds the printed number."""
    if test.n < MINIMUM_PAIRS:
        return INCONCLUSIVE
    return SUPPORTED if test.low - POINT <= 0 <= test.high + POINT else CONTRADICTED


@dataclass(frozen=True)
class Kind:
    """How a kind of claim is worded, what is tested, and how the interval decides against `limit`."""

    says: str  # {0} and {1}: the rows named; {by}, {level}: of the claim
    tests: Callable[[Values], list[Paired]]
    word: Callable[[Paired, float], str] = directional
    limit: Callable[[Mapping[str, Any]], float] = lambda claim: 0.0


KINDS = {
    "greater": Kind("{0} above {1}", _first_above, limit=lambda claim: claim.get("by", 0) / 100),
    "order": Kind("{order}", _rising),
    "best": Kind("{0} above {others}", _first_above),
    "jump": Kind("the step from {0} to {1} is the largest", _jumps),
    "rates": Kind("{0} better at its first rate than at its second", _first_above),
    "near": Kind("{0} is where the paper has it", _first_above, _within_reach),
    "linear": Kind("{0} within 1 point of a linear classifier on the inputs", _first_above, equivalent),
    "close": Kind("{0} within 1 point of {1}", _first_above, equivalent),
    # reached counts as reached: the limit is the largest number below it
    "reaches": Kind("{0} reaches {level:g}%", _itself, limit=lambda claim: math.nextafter(claim["level"] / 100, 0)),
    "faster": Kind("{0} in fewer steps than {1}", _second_above),
    "gap": Kind("{0}: training accuracy less than 1 point above test accuracy", _itself, below, lambda claim: POINT),
    "smaller-gap": Kind("smaller gap of {0} than of {1}", _second_above),
    "unstable": Kind("{0} is unstable at this rate", _first_above, limit=lambda claim: UNSTABLE),
}


def says(claim: Mapping[str, Any]) -> str:
    """What is tested, in words."""
    kind, labels, by = _kind(claim), _labels(claim), claim.get("by", 0)
    words = {"order": " < ".join(labels), "others": " and ".join(labels[1:]), "level": claim.get("level", 0)}
    margin = f" by more than {by:g} points" if by > 0 else f", or no more than {-by:g} point below" if by else ""
    return KINDS[kind].says.format(*labels, **words) + margin


def rulings(experiment: Experiment, results: Results) -> list[Ruling]:
    """Every claim of the table, on every task that was tried, tuned and at the paper's rate."""
    return [ruling for claim in experiment.claims for ruling in _rulings(experiment, claim, results)]


def _rulings(experiment: Experiment, claim: Mapping[str, Any], results: Results) -> Iterator[Ruling]:
    rows = [experiment.row(label) for label in _labels(claim)]
    named = claim.get("tasks", experiment.tasks)
    tasks = [task for task in named if task in results.tasks] if claim.get("only_there") else results.tasks_for(named)
    cells = {task: [results.cell(experiment, row, task) for row in rows] for task in tasks}
    tried = {task: some for task, some in cells.items() if all(cell.sweep is not None for cell in some)}
    kind = _kind(claim)
    if kind == "near":  # printed numbers are those of the paper's models on the paper's tasks
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
    steps = {int(cell.sweep["steps"]) for cell in cells if cell.sweep is not None}
    if len(steps) > 1:  # a longer training is no evidence for a better model
        return Ruling(**fields | {"note": "not compared: trained for different numbers of steps"})
    if trouble := next((word for word in TROUBLES if word in [cell.trouble(reading) for cell in cells]), ""):
        return Ruling(**fields | {"verdict": trouble})
    rates = " and ".join(dict.fromkeys(rate_text(cell.fixed_rate) for cell in cells))
    fields = fields | {"rates": rates, "exploratory": is_exploratory(cells)}
    if fields["kind"] == "unstable" and (lost := cells[0].diverged(FIXED)):
        return Ruling(**fields | {"verdict": SUPPORTED, "note": f"{lost} runs diverged"})
    tests = tuple(kind.tests(_values(fields["kind"], cells, reading)))
    words = [kind.word(test, kind.limit(claim)) for test in tests]
    word = next((w for w in (CONTRADICTED, INCONCLUSIVE) if w in words), SUPPORTED)
    notes = ["too few pairs"] if any(test.n < MINIMUM_PAIRS for test in tests) else []
    edges = [cell.row.label for cell in cells if cell.at_edge]
    if edges and (reading == TUNED or (fields["kind"] == "unstable" and word == CONTRADICTED)):
        word = EDGE  # beyond the grid it may be better still
        notes.append(f"edge of the grid: {', '.join(edges)}")
    if diverged := [f"{cell.row.label} ({n})" for cell in cells if (n := cell.diverged(reading))]:
        notes.append(f"diverged runs: {', '.join(diverged)}")
    return Ruling(**fields | {"verdict": word, "tests": tests, "note": "; ".join(notes)})


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
    if ruling.kind == "reaches":
        return f"{100 * test.mean:.1f} ({100 * test.low:.1f} to {100 * test.high:.1f})"
    return f"{100 * test.mean:+.1f} ({100 * test.low:+.1f} to {100 * test.high:+.1f})"


def _kind(claim: Mapping[str, Any]) -> str:
    return next(name for name in KINDS if name in claim)


def _labels(claim: Mapping[str, Any]) -> Sequence[str]:
    named = claim[_kind(claim)]
    return [named] if isinstance(named, str) else list(named)


def scale(cells: Sequence[Cell]) -> str:
    """Backbones and steps: no claim is made beyond them."""
    sweeps = [cell.sweep for cell in cells if cell.sweep is not None]
    steps = " and ".join(f"{int(n):,}" for n in dict.fromkeys(sweep["steps"] for sweep in sweeps))
    return f"{', '.join(dict.fromkeys(str(sweep['backbone']) for sweep in sweeps))}, {steps} steps"
