"""The page of advice: the learning rate that does best, by place and arm."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from fpt import models
from fpt.results.arm import Arm
from fpt.results.runs import rate_text
from fpt.results.texts import tried
from fpt.show.html import Table
from fpt.show.places import NONE, Place

NAME = "task, model, steps"
ON_TEXTS = {"WP": "UP", "LP": "LP"}  # the ways of training there, and the arm under which each one stands


def rates_table(
    places: Mapping[str, Place], arms: Sequence[str], caption: str, more: Iterable[Mapping[str, str]] = ()
) -> Table:
    """A row a place: layers of the model, examples in a batch, and the rate that does best of each arm (by its letters)
    over all seeds; in brackets the one after an eighth of the steps, where it differs.

    An arm that is not published leaves its rate empty. `more`: further rows, with rates by the letters of arms."""
    rows = [*(_row(name, place.arms(*arms)) for name, place in places.items()), *more]
    heads = {letters: models.arm(letters).label for letters in arms}
    return Table(pd.DataFrame(rows).rename(columns=heads).fillna(NONE), caption)


def _row(name: str, arms: Mapping[str, Arm]) -> dict[str, str]:
    first = next(iter(arms.values()))
    row = {NAME: name, "layers": str(first.layers), "batch": str(first.fields["batch_size"])}
    return row | {letters: _best_rates(arm) for letters, arm in arms.items()}


def rates_on_texts(task: str, named: str) -> list[dict[str, str]]:
    """Further rows of `rates_table`: on a task of texts, a row a setting in which ways of training were tried."""
    rows = []
    for setting, ways in tried(task).items():
        first = next(iter(ways.values())).arm
        row = {NAME: f"{named}, {setting}, schedule", "layers": str(first.layers)}
        row["batch"] = str(first.fields["batch_size"])
        rows.append(row | {arm: rate_text(ways[way].rate) for way, arm in ON_TEXTS.items() if way in ways})
    return rows


def _best_rates(arm: Arm) -> str:
    """The rate at the end, and in brackets the one after an eighth of the steps, where it is another."""
    early = [budget for budget in arm.budgets if budget <= arm.steps / 8]
    last, before = arm.best_rate(), arm.best_rate(early[-1]) if early else None
    told = [rate_text(rate) for rate in (last, before) if rate is not None]
    return " (".join(dict.fromkeys(told)) + ")" * (len(set(told)) > 1) or NONE
