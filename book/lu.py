"""One experiment of Lu et al. on a page: what they say, what was run, table, figure, verdicts. One template for all."""

import html
from dataclasses import dataclass
from functools import cache
from typing import Any

from fpt.evidence import (
    Picture,
    Results,
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

STUDY = "laptop-lu2021"  # the study that every page of this part shows
DOTS = (
    "Every dot is a seed: filled at the sweep's own learning rate, open at the rate of the paper; the bar is the mean. "
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


def show(name: str) -> Page:
    """One table of the paper, e.g. "lu-table-2"."""
    entry, found = experiment(name), results()
    parts: list[Any] = [
        _claims(dict.fromkeys(each["id"] for each in entry.claims)),
        _paragraph(what_was_run(entry, found)),
    ]
    parts.append(experiment_table(entry, found))
    figure = experiment_figure(entry, found)
    if figure.axes:
        parts.append(Picture(figure, f"{entry.title}. {DOTS}"))
    parts.append(ruling_table(rulings(entry, found), VERDICTS[entry.kind]))
    return Page(parts)


def show_attention(*tasks: str) -> Page:
    """Figures 3 to 5."""
    found = results()
    verdicts = attention_rulings(found)
    parts: list[Any] = [_claims(dict.fromkeys(ruling.claim for ruling in verdicts))]
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


def _claims(names: dict[str, None]) -> str:
    items = []
    for name in names:
        said, where = (html.escape(str(claim(name)[key])) for key in ("statement", "where"))
        items.append(f"<li>{said} <em>({name}: Lu et al. 2021, {where})</em></li>")
    return f"<p>What they say:</p><ul>{''.join(items)}</ul>"


def _paragraph(text: str) -> str:
    return f"<p><strong>What was run.</strong> {html.escape(text)}</p>"
