"""One experiment of Lu et al. on a page: what they say, what was run, table, figure, verdicts. One template for all."""

import html
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from fpt.evidence import (
    Picture,
    Results,
    Ruling,
    Table,
    attention_figure,
    attention_rulings,
    attention_table,
    claim,
    claims_table,
    experiment,
    experiment_figure,
    experiment_table,
    find_study,
    load_results,
    ruling_table,
    rulings,
    sweeps_table,
    tally,
    what_was_run,
)
from fpt.evidence.claims import EDGE
from fpt.evidence.experiments import TUNED

STUDY = "laptop-lu2021"  # the study that every page of this part shows
DOTS = (
    "Every dot is a seed: filled at the sweep's own learning rate, open at the paper's, scaled to the width; the bar "
    "is the mean. "
    "Blue is frozen, orange trained in full; dark is pretrained, light is random."
)
VERDICTS = {
    "accuracy": "Verdicts. Differences in points of test accuracy, paired by seed.",
    "steps": "Verdicts. How many times the steps of the first the second takes, paired by seed.",
    "gap": "Verdicts. Training minus test accuracy in points, by seed.",
}


@dataclass
class Page:
    """Paragraphs, tables and pictures, one below the other."""

    parts: list[Any]

    def _repr_html_(self) -> str:
        return "".join(part if isinstance(part, str) else part._repr_html_() for part in self.parts)


@cache
def results() -> Results:
    """The study of this part, read once a page."""
    return load_results(find_study(STUDY))


@cache
def _rulings(name: str) -> list[Ruling]:
    return rulings(experiment(name), results())


def undecided(*tables: int) -> str:
    """One sentence: how many comparisons at the own rates the ends of the grid leave open, in these tables."""
    every = [ruling for number in tables for ruling in _rulings(f"lu-table-{number}")]
    own = [ruling for ruling in every if ruling.reading == TUNED and ruling.rates]
    rates = pd.concat(results().runs.values())["learning_rate"].nunique() if own else 0
    open_ = sum(ruling.verdict == EDGE for ruling in own)
    return (
        f"{open_} of the {len(own)} comparisons on this page at each model's own rate are undecided, because a best "
        f"rate is an end of the grid, which has {rates} rates."
    )


def scaled_rates() -> str:
    """In words: what stands for each of the paper's rates at the width of the study's models."""
    entry, found = experiment("lu-table-1"), results()
    cells = [found.cell(entry, row, task) for row in entry.rows for task in found.tasks]
    return ", ".join(sorted({cell.fixed_words for cell in cells if not cell.problem}))


def show(name: str) -> Page:
    """One table of the paper, e.g. "lu-table-2"."""
    entry, found = experiment(name), results()
    parts: list[Any] = [
        _claims(each["id"] for each in entry.claims),
        _paragraph(what_was_run(entry, found)),
    ]
    parts.append(experiment_table(entry, found))
    figure = experiment_figure(entry, found)
    if figure.axes:
        parts.append(Picture(figure, f"{entry.title}. {DOTS}"))
    parts.append(ruling_table(_rulings(name), VERDICTS[entry.kind]))
    return Page(parts)


def show_attention(*tasks: str) -> Page:
    """Figures 3 to 5."""
    found = results()
    verdicts = attention_rulings(found)
    parts: list[Any] = [_claims(ruling.claim for ruling in verdicts)]
    for task in tasks:
        parts.append(attention_table(found, task))
        figure = attention_figure(found, task)
        if figure.axes:
            caption = "Darker: more attention, mean over heads, examples and seeds, after training at the own rate."
            parts.append(Picture(figure, caption))
    return Page([*parts, ruling_table(verdicts, "Verdicts. Differences in points of attention, paired by seed.")])


def provenance() -> str:
    """One sentence: whose results these are, how many of the sweeps are there, and where they were computed."""
    table = sweeps_table(find_study(STUDY))
    done = table[table["status"] == "done"]
    if done.empty:
        return f"There are no results of the study {STUDY} yet; the command fpt run {STUDY} makes them."
    owner = "your own results" if done["origin"].iloc[0] == "own" else "the published results"
    devices = ", ".join(sorted(set(done["device"].astype(str))))
    return f"These are {owner} of the study {STUDY}, {len(done)} of its {len(table)} sweeps, computed on {devices}."


def all_claims() -> tuple[Table, str]:
    """Every claim of Lu et al. with its verdict, and how many have which."""
    frame = claims_table(results())
    return Table(frame, "Every checkable claim of Lu et al. 2021."), tally(frame)


def _claims(names: Iterable[str]) -> str:
    items = []
    for name in dict.fromkeys(", ".join(names).split(", ")):
        said, where = (html.escape(str(claim(name)[key])) for key in ("statement", "where"))
        items.append(f"<li>{said} <em>({name}: Lu et al. 2021, {where})</em></li>")
    return f"<p>What they say:</p><ul>{''.join(items)}</ul>"


def _paragraph(text: str) -> str:
    return f"<p><strong>What was run.</strong> {html.escape(text)}</p>"
