"""The explorer: arms over learning rate, and who leads over rate and budget, for the reader to choose from. What its
script (book/_static/explorer.js) draws and says is computed here, by the functions of the tables and figures. The
script also reads a choice from the address, and writes it there: map.html#study=plane-digits&arms=UR,FP&rate=3e-3."""

import json
import math
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from typing import Any

from fpt.claims.planes import AHEAD, BEHIND, crossing_of, plane_table, plane_tests
from fpt.models import Treatment
from fpt.results.arm import Arm
from fpt.results.baselines import LINEAR, Score, floor, known_scores
from fpt.results.cells import StudyCells
from fpt.results.estimate import Estimate
from fpt.results.runs import SETUP, rate_text
from fpt.results.stats import SIGNIFICANCE
from fpt.show.html import CaptionedFigure, Page, paragraph
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.words import SHORT, arm_of, model_name, task_name, with_options, words, words_apart
from fpt.tasks import entry

Looks = Mapping[str, Treatment]  # arm (FP, ...) -> what it is called and drawn as, where that is not its own
Setup = tuple[str, str]  # in words: the task; and the model, with what else tells it apart, and the study
Setups = Mapping[Setup, Mapping[str, Arm]]  # setup -> arm (FP, ...) -> its results
SURE, HOLDS_ZERO = "sure", "open"  # after Holm's correction over the plane; the 95% interval holds 0
UNCORRECTED = "1"  # sure for this budget, but not for all budgets together
ORDER = ("UP", "UR", "FP", "FR")  # of two arms the earlier comes first: full minus frozen, pretrained minus random
START = ("UP", "FP")  # the pair that is shown first
WITHOUT = "Moving the rate needs a script, and scripts are off."


def setups(studies: Iterable[StudyCells], every: bool = False) -> dict[Setup, dict[str, Arm]]:
    """Every model on every task of these studies that has results of two arms or more: of each of the four arms of
    Rothermel et al. its first sweep, one of matched scale before others; with `every` each sweep, by its name.

    Arms are together where all that must be equal to compare them is. A name says so much of it that the setups of a
    study are distinct.
    """
    found: dict[Setup, dict[str, Arm]] = {}
    for study in studies:
        several = {words: arms for words, arms in _grouped(study, every).items() if len(arms) > 1}
        found |= {(task, f"{model} ({study.name})"): several[words] for words, (task, model) in _named(several).items()}
    return found


def _grouped(study: StudyCells, every: bool) -> dict[tuple[str, ...], dict[str, Arm]]:
    """The arms of a study by name, those together whose setup has the same words."""
    groups: dict[tuple[str, ...], dict[str, Arm]] = {}
    told = words_apart(arm.spec for arm in study.results.values()) if every else {}
    for arm in sorted(study.results.values(), key=_place):
        name = arm.name if every else SHORT.get(arm.fields["arm"])
        if name is None:
            continue
        groups.setdefault(_setup_words(arm.spec, told.get(arm.spec.folder_name, {})), {}).setdefault(name, arm)
    return groups


def _place(arm: Arm) -> tuple[int, bool]:
    """Where an arm stands among those that it is compared with: by ORDER, others last; and matched weights first."""
    letters = SHORT.get(arm.fields["arm"])
    return ORDER.index(letters) if letters else len(ORDER), arm.fields["random_init"] != "matched"


def _named(setups: Collection[tuple[str, ...]]) -> dict[tuple[str, ...], Setup]:
    """A name for each setup of a study: task and model, and the words that not all of this task and model share."""
    names = {}
    for task, model, *more in setups:
        shared = set.intersection(*(set(words) for words in setups if words[:2] == (task, model)))
        names[task, model, *more] = task, ", ".join([model, *(word for word in more if word not in shared)])
    return names


def _setup_words(spec: SweepSpec, told: Mapping[str, str]) -> tuple[str, ...]:
    """Task, model with what tells sweeps apart, and all that must be equal to be compared, options and fields.

    What the name of the arm says is `told`, and not said again.
    """
    again = {"task", "arm", "backbone", *told} | ({"random_init"} if spec.random_init == "fixed" else set())
    details = [word for field, word in words(spec).items() if field not in again]
    model = ", ".join([with_options(model_name(spec.backbone), spec.backbone_options), *details])
    fields = {name: getattr(spec, name) for name in SETUP}
    values = [*(entry(spec.task).options | fields.pop("task_options")).items(), *fields.items()]
    more = (f"{field.replace('_', ' ')} {'all' if value is None else value}" for field, value in values)
    return task_name(spec.task), model, *more


def explorer(found: Setups, first: str = "") -> Page:
    """What to choose from, as JSON for the script, that of the study `first` before the others, then the setup with
    most runs; a line in its place where scripts are off, and where there are no results."""
    if not found:
        return Page([paragraph("Nothing was run yet.")])

    def place(arms: Mapping[str, Arm]) -> tuple[bool, int]:
        runs = sum(len(arm.rates) * arm.seeds for arm in arms.values())
        return next(iter(arms.values())).study != first, -runs

    ordered = dict(sorted(found.items(), key=lambda each: place(each[1])))
    without = f"<noscript>{paragraph(WITHOUT)}</noscript>"
    return Page(['<div class="fpt-explorer">', _data(ordered, {}), without, "</div>"])


def picture(found: Setups, still: CaptionedFigure, looks: Looks) -> Page:
    """A small explorer for each setup, beside each other: a chart and its sliders. Where scripts are off, and on paper,
    a figure that stands still is in their place. A pair of arms is in the order of its setup."""
    small = (f'<div class="fpt-explorer small">{_data({setup: arms}, looks)}</div>' for setup, arms in found.items())
    return Page(['<div class="fpt-picture">', *small, still, "</div>"])


def _data(found: Setups, looks: Looks) -> str:
    """The setups for the script, escaped, so that nothing in it ends the element."""
    shown = [_setup(*setup, arms, looks) for setup, arms in found.items()]
    data = json.dumps(shown, allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json">{data}</script>'


def _setup(task: str, model: str, arms: Mapping[str, Arm], looks: Looks) -> dict[str, Any]:
    """One model on one task in one study, by arm and by pair of arms."""
    first = next(iter(arms.values()))
    rates = sorted({rate for arm in arms.values() for rate in arm.rates})
    return {
        "study": first.study,  # with the name of the task, what an address calls it by
        "name": first.task,
        "task": task,
        "model": model,
        "about": f"Study {first.study}, {first.origin} results, {first.seeds} seeds. Bands: 95% intervals.",
        "floor": _number(floor(first.task, first.variant)),  # null: own data, of which no baseline is known
        "linear": _number(linear.share) if (linear := _linear(first)) else None,  # a linear classifier's accuracy
        "budgets": sorted({budget for arm in arms.values() for budget in arm.budgets}),
        "rates": [rate_text(rate) for rate in rates],
        "arms": {name: _arm(arm, looks.get(name, arm_of(arm.fields))) for name, arm in arms.items()},
        "pairs": [_pair(arms, *pair) for pair in sorted(combinations(arms, 2), key=lambda pair: pair != START)],
    }


def _linear(arm: Arm) -> Score | None:
    return known_scores(arm.task, arm.variant, arm.fields["task_options"].get("labels", 0)).get(LINEAR)


def _arm(arm: Arm, look: Treatment) -> dict[str, Any]:
    """Name and look of an arm; at each budget and rate: the mean (percent) with the ends of its 95% interval, and all
    three as text."""
    shown = {
        budget: {rate_text(rate): _point(arm.estimate(rate, budget).in_percent) for rate in arm.rates}
        for budget in arm.budgets
    }
    dashed = look.init == "random"
    return {"name": look.label, "colour": look.colour, "marker": look.marker, "dashed": dashed, "points": shown}


def _point(found: Estimate) -> list[Any]:
    """The ends are the mean where there are too few seeds for an interval."""
    low, high = (end if math.isfinite(end) else found.value for end in found.interval)
    value, interval = found.texts(signed=False)
    return [*(_number(each / 100) for each in (found.value, low, high)), f"{value}% ({interval})"]


def _pair(arms: Mapping[str, Arm], one: str, other: str) -> dict[str, Any]:
    """The first arm minus the second in points, with its 95% interval: at one rate for both, by budget and rate, and
    whether it is sure; each at its own rate, by budget, with its sign: that of all budgets together (`Crossing.signs`)
    or UNCORRECTED. Nothing for too few seeds."""
    tests, found = plane_tests(arms[one], arms[other]), crossing_of(arms[one], arms[other])
    rows, plane = plane_table(tests), dict[int, dict[str, list[Any]]]()
    for ((rate, budget), test), p, band in zip(tests.items(), rows["corrected"], rows["band"], strict=True):
        unsure = HOLDS_ZERO if band else ""
        sure = SURE if p < SIGNIFICANCE else unsure
        if (mean := _number(test.value)) is not None:
            plane.setdefault(budget, {})[rate_text(rate)] = [mean, *test.in_points.texts(signed=True), sure]
    alone = [budget for budget, sign in found.signs.items() if sign not in (AHEAD, BEHIND) and budget not in found.band]
    signs = found.signs | dict.fromkeys(alone, UNCORRECTED)
    tuned = {
        budget: [*test.in_points.texts(signed=True), signs[budget]]
        for budget, test in found.tests.items()
        if test.by_seed
    }
    return {"arms": [one, other], "plane": plane, "tuned": tuned}


def _number(fraction: float) -> float | None:
    """In percent, for a place in a figure; null where it is not known."""
    return None if math.isnan(fraction) else round(100 * fraction, 2)
