"""A study on a page of its own (`fpt report`): what was run and what it shows, by the functions of the book's pages."""

from collections.abc import Mapping
from itertools import combinations

import pandas as pd

import fpt
from fpt.claims.judge import every_question, judged
from fpt.claims.planes import crossing_of
from fpt.errors import DataError
from fpt.papers import claim
from fpt.results.arm import Arm
from fpt.results.cells import StudyCells
from fpt.results.runs import load_runs
from fpt.show.explore import START, Setups, setups
from fpt.show.figures import budget_figure, learning_rate_figure
from fpt.show.findings import evidence_table, verdicts_by_id
from fpt.show.html import CaptionedFigure, Displayable, Folded, Page, Table, document, heading, paragraph
from fpt.show.planes import CROSSING, captioned_plane, crossing_figure
from fpt.show.tables import recipe_table, record_table, summary, yours_table
from fpt.sweeps.words import SHORT

MOST_ARMS = 8  # of a setup: twice as many have four times as many differences
RATES = (
    "Test accuracy against learning rate, every run after its last step, a panel a setup. Cold hues are frozen, warm "
    "hues train everything. Outlined: the runs at the rate that the other seeds chose, whose mean is the tuned "
    "accuracy. x: a run that diverged. Dotted: the trivial baseline, where one is known."
)
BUDGETS = "Test accuracy over the budget, each seed at the rate that the others choose for it; bars are 95% intervals."
TUNED = "Each seed at the rate that the others choose: tuned test accuracy in percent."
PAIRS = (
    "The same after the last step, an arm minus another: points of test accuracy, paired by seed. The sign is + or - "
    "where it is significant for all budgets together, 0 where it is not, ? where the arm that trails is at an end of "
    "its grid."
)


def report(study: StudyCells) -> str:
    """The study as one HTML document that needs no other file and no network.

    Raises DataError where the study has no results.
    """
    if not study.results:
        raise DataError(f"the study {study.name} has no results yet; the command fpt run {study.name} makes them")
    found, name = compared_arms(study), study.study.name
    parts: list[Displayable | str] = [
        paragraph(_what_is_shown(study)),
    ]
    if yours := yours_table(study):
        parts += [heading("Your numbers beside the published ones"), yours]
    parts += [
        heading("What was run"),
        Table(recipe_table([study]).drop(columns="study"), "A row a model, task and recipe."),
    ]
    parts += [heading("Accuracy over the learning rate"), *_rates(study)]
    parts += [heading("Tuned"), *_tuned(found)] if found else []
    for of, arms in found.items():
        parts += [heading(f"Learning rate and budget: {', '.join(of)}"), *_plane(*_first_two(arms))]
    parts += [heading("Claims that this study tests"), *_verdicts(study)]
    parts += [heading("Where this comes from"), record_table(study.folder, study.origin)]
    parts.append(paragraph(f"Written by fpt report, version {fpt.__version__}."))
    return document(name, Page(parts))


def compared_arms(study: StudyCells) -> Setups:
    """The arms of every setup; where they are many, the four of Rothermel et al. that it has."""
    found = setups([study], every=True).items()
    few = {of: arms if len(arms) <= MOST_ARMS else _four(arms) for of, arms in found}
    return {of: arms for of, arms in few.items() if len(arms) > 1}


def _four(arms: Mapping[str, Arm]) -> dict[str, Arm]:
    return {name: arm for name, arm in arms.items() if name in SHORT.values()}


def _first_two(arms: Mapping[str, Arm]) -> list[Arm]:
    """Full and frozen training, where a setup has both; else its first two arms."""
    named = {arm.fields["arm"]: arm for arm in reversed(list(arms.values()))}  # the first of several variants
    wanted = sorted((name for name in SHORT if SHORT[name] in START), key=lambda name: START.index(SHORT[name]))
    return [named[name] for name in wanted] if set(wanted) <= set(named) else list(arms.values())[:2]


def _rates(study: StudyCells) -> list[Displayable | str]:
    runs = load_runs(study.folder, study.origin)
    return [CaptionedFigure(learning_rate_figure(runs), RATES), Table(summary(runs), TUNED)]


def _tuned(found: Setups) -> list[Displayable | str]:
    """The arms of every setup over the budget, and every two of them after the last step."""
    return [CaptionedFigure(budget_figure(*found.values()), BUDGETS), Table(pairs_table(found), PAIRS)]


def pairs_table(found: Setups) -> pd.DataFrame:
    """A row a setup and two of its arms: the tuned difference after the last budget that both have."""
    rows = []
    for name, arms in found.items():
        for one, other in combinations(arms, 2):
            crossing = crossing_of(arms[one], arms[other])
            if not crossing.tests:
                continue
            budget, test = list(crossing.tests.items())[-1]
            row = {"setup": ", ".join(name), "arms": f"{one} - {other}", "steps": f"{budget:,}", "seeds": test.n}
            row |= dict(zip(("difference", "95% interval"), test.in_points.texts(signed=True), strict=True))
            rows.append(row | {"sign": crossing.signs[budget] if test.by_seed else ""})
    return pd.DataFrame(rows)


def _what_is_shown(study: StudyCells) -> str:
    """Whose results these are, and how many sweeps have some."""
    origins = [arm.origin for arm in study.results.values()]
    counts = ", ".join(f"{origins.count(each)} {each}" for each in dict.fromkeys(origins))
    return f"Results of {len(origins)} of its {len(study.study.sweeps)} sweeps: {counts}."


def _plane(first: Arm, second: Arm) -> list[Displayable | str]:
    """The first arm minus the second: over rate and budget, at one rate for both, then each at its own rate."""
    return [captioned_plane(first, second), CaptionedFigure(crossing_figure(first, second), CROSSING)]


def _verdicts(study: StudyCells) -> list[Displayable | str]:
    """The claims that this study tests, by this study alone, and the contrasts behind them."""
    rows = judged([study], every_question(by_runs=True), alone=True)
    said, tested = verdicts_by_id(rows), rows[(rows["claim"] != "") & (rows["pair"] != "")]
    if tested.empty:
        return [paragraph("None: no rule of a claim finds its rows among these sweeps.")]
    lines, parts = [], list[Displayable | str]()
    for name, contrasts in tested.groupby("claim", sort=False):
        lines.append(
            {
                "claim": name,
                "says": claim(str(name)).says,
                "verdict": said[str(name)].word,
                "pairs": said[str(name)].counts,
            }
        )
        parts.append(Folded(f"The contrasts of {name}", evidence_table(contrasts)))
    return [Table(pd.DataFrame(lines), "By this study alone, whatever its pairs and its number of seeds."), *parts]
