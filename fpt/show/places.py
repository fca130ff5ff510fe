"""Two arms beside each other over several studies: the lead of one at a shared rate and tuned, and the rates to try."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from fpt.claims.planes import plane_table, plane_tests, sign_of
from fpt.results.arm import Arm
from fpt.results.baselines import LINEAR, floor, known_scores
from fpt.results.contrasts import Contrast, Level, arms_of, contrast, find_arm, level
from fpt.results.estimate import percent
from fpt.results.runs import rate_text
from fpt.show.charts import cells_of
from fpt.show.html import Table
from fpt.sweeps.ledger import PUBLISHED, RESULT, workspace

NONE = "\N{EN DASH}"


@dataclass(frozen=True)
class Place:
    """Where arms are compared: a study, one of its tasks, and what its tables add to the name of an arm."""

    study: str
    task: str
    more: str = ""  # as "layers 4"

    def arm(self, letters: str) -> str:
        """The name of an arm in the study's tables."""
        return f"{letters} ({self.more})" if self.more else letters

    def cell(self, arm: str) -> Arm:
        """`fpt.results.contrasts.find_arm` of an arm here, with its errors."""
        return find_arm(self.study, self.arm(arm), task=self.task)

    def cells(self, *arms: str) -> dict[str, Arm]:
        """Those of the arms that are published, by their letters."""
        found = arms_of(self.study)
        named = {letters: (self.task, self.arm(letters)) for letters in arms}
        return {letters: found[key] for letters, key in named.items() if key in found}

    def contrast(self, first: str, second: str, **how: Any) -> Contrast:
        """`fpt.results.contrast` of two arms here, with its arguments and errors."""
        return contrast(self.study, self.arm(first), self.arm(second), task=self.task, **how)

    def level(self, arm: str, **how: Any) -> Level:
        """`fpt.results.level` of an arm here, with its arguments and errors."""
        return level(self.study, self.arm(arm), task=self.task, **how)

    def leads_at(self, first: str, second: str) -> list[int]:
        """The budgets, in steps, at which the first arm leads the second: each tuned there, each interval alone."""
        budgets = self.cells(first)[first].budgets
        return [budget for budget in budgets if self.contrast(first, second, budget=budget).low > 0]

    def corrected(self, first: str, second: str) -> Mapping[tuple[float, int], float]:
        """p by rate and budget, both arms at that rate, corrected for all cells of the map (Holm)."""
        rows = plane_table(plane_tests(self.cell(first), self.cell(second)))
        return dict(zip(zip(rows["rate"], rows["budget"], strict=True), rows["corrected"], strict=True))


PAIRS = {  # the longest published training of all four arms on each task and model
    "MNIST, MiniLM, 1,600": Place("plane-minilm", "mnist"),
    "CIFAR-10, MiniLM, 800": Place("minilm-cifar10", "cifar10"),
    "digits by pixel, tiny-lm, 1,500": Place("laptop-rothermel2021", "digits-lra"),
    "MNIST, tiny-lm, 3,000": Place("plane-mnist", "mnist"),
    "MNIST, SmolLM2, 400": Place("smollm2", "mnist", "layers 4"),
    "ListOps, tiny-lm, 1,500": Place("laptop-rothermel2021", "listops-short"),
    "digits, tiny-lm, 6,000": Place("plane-digits", "digits"),
}


def to_beat(place: Place, arms: Iterable[str]) -> str:
    """In percent: a linear classifier where there is one, else the best guess that reads only a part of the input."""
    variant = next((cell.variant for cell in place.cells(*arms).values()), "paper")
    known = known_scores(place.task, variant)
    return percent(known[LINEAR].share if LINEAR in known else floor(place.task, variant))


def rates_table(
    places: Mapping[str, Place], arms: Mapping[str, str], caption: str, more: Iterable[Mapping[str, str]] = ()
) -> Table:
    """A row a place: layers of the model, examples in a batch, and the rate that does best of each arm (`arms`: arm ->
    what the table calls it) over all seeds; in brackets the one after an eighth of the steps, where it differs.

    An arm that is not published leaves its rate empty. `more`: further rows, under the same columns."""
    rows = []
    for name, place in places.items():
        cells = place.cells(*arms)
        cell = next(iter(cells.values()))
        row = {"task, model, steps": name, "layers": str(cell.layers), "batch": str(cell.fields["batch_size"])}
        rows.append(row | {head: _best_rates(cells[arm]) for arm, head in arms.items() if arm in cells})
    return Table(pd.DataFrame([*rows, *more]).fillna(NONE), caption)


def _best_rates(cell: Arm) -> str:
    """The rate at the end, and in brackets the one after an eighth of the steps, where it is another."""
    early = [budget for budget in cell.budgets if budget <= cell.steps / 8]
    last, before = cell.best_rate(), cell.best_rate(early[-1]) if early else None
    told = [rate_text(rate) for rate in (last, before) if rate is not None]
    return " (".join(dict.fromkeys(told)) + ")" * (len(set(told)) > 1) or NONE


def signs(study: str, first: str, second: str, *, task: str = "") -> dict[float, str]:
    """By rate that both arms have, a sign a budget in ascending order: + where the 95% interval of the first minus the
    second lies above 0, - where below, 0 where it holds 0. Errors as those of `fpt.results.contrast`."""
    cells = cells_of(study, (first, second), task)
    found: dict[float, str] = {}
    for (rate, _), test in plane_tests(cells[first], cells[second]).items():
        found[rate] = found.get(rate, "") + sign_of(test)
    return found


def newest(root: Path | None = None) -> str:
    """The day of the newest published result, as 26 November 2026; empty where nothing is published."""
    records = (workspace(root) / "runs").glob(f"*/{PUBLISHED}/*/{RESULT}")
    days = [date.fromisoformat(json.loads(each.read_bytes())["finished_utc"][:10]) for each in records]
    return f"{max(days):%-d %B %Y}" if days else ""
