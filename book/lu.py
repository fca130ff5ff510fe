"""One experiment of Lu et al. on a page: what they say, what was run, table, figure, verdicts. One template for all."""

import html
from collections.abc import Sequence
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
    attention_to_see,
    baseline_scores,
    claim,
    claims_table,
    experiment,
    experiment_figure,
    experiment_table,
    find_study,
    linear_score,
    load_results,
    other_claims_table,
    printed_table,
    ruling_table,
    rulings,
    sweeps_table,
    tally,
    title,
    what_to_see,
    what_was_run,
)
from fpt.evidence.claims import EDGE
from fpt.evidence.exhibits import cells
from fpt.evidence.experiments import TUNED, Experiment
from fpt.evidence.overview import SCALED
from fpt.evidence.rulings import labels_of, overall
from fpt.evidence.runs import rate_text

STUDY = "laptop-lu2021"  # the study that every page of this part shows
KEY = (
    "<strong>How to read this page.</strong> FPT is the frozen pretrained transformer (FP on the other pages), random "
    "the frozen random one (FR), full the one that trains in full from random weights (UR). Two numbers with a stroke: "
    "at the learning rate that each row chose for itself / at the rate that Lu et al. gave to all, scaled to the "
    "width. In the figures every dot is a seed, filled at the own rate, open at the paper's, and the bar is their mean."
)
VERDICTS = {
    "accuracy": "Differences in points of test accuracy, paired by seed.",
    "steps": "How many times the steps of the first the second takes, paired by seed.",
    "gap": "Training minus test accuracy in points, by seed.",
}
USUAL = ("FPT", "random")
CROSSES = "The bar is the median here; a cross is a seed that never reached the threshold, drawn at the last step."


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


def intro() -> Page:
    """What holds for the whole page, said once: whose results, how they were made, and how to read them."""
    return Page([f"<p>{html.escape(provenance())}</p>", f"<p>{KEY}</p>"])


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
    tried = [found.cell(entry, row, task) for row in entry.rows for task in found.tasks]
    return ", ".join(sorted({cell.fixed_words for cell in tried if not cell.problem}))


def show(name: str) -> Page:
    """One table of the paper, e.g. "lu-table-2". Where nothing that it is about was tried, its numbers only."""
    entry, found = experiment(name), results()
    verdicts, printed = _rulings(name), printed_table(entry, found)
    parts: list[Any] = [_claims(verdicts)]
    if _compared(entry, found):
        figure = experiment_figure(entry, found)
        ran = html.escape(what_was_run(entry, found))
        parts += [f"<p><strong>What was run.</strong> {ran}</p>", experiment_table(entry, found)]
        if figure.axes:
            also = f" {CROSSES}" if entry.kind == "steps" else ""
            parts.append(Picture(figure, f"{entry.title}. {what_to_see(entry, found)}{also}"))
        parts.append(_folded("How the verdicts come about", ruling_table(verdicts, VERDICTS[entry.kind])))
    else:
        parts.append("<p>Nothing was run: not tested at this scale, for want of the other weights.</p>")
    return Page(
        [*parts, _folded("What the paper prints for tasks that were not run here", printed)]
        if len(printed.frame.columns) > 1
        else parts
    )


def _compared(entry: Experiment, found: Results) -> bool:
    """Whether the study runs a row that is not in nearly every table, or on one task all the rows of some claim."""
    rows = cells(entry, found).values()
    special = any(cell.sweep is not None for each in rows for label, cell in each.items() if label not in USUAL)
    named = [labels_of(each) for each in entry.claims]
    return special or any(all(each[label].sweep is not None for label in labels) for labels in named for each in rows)


def show_attention(*tasks: str) -> Page:
    """Figures 3 to 5."""
    found = results()
    verdicts = attention_rulings(found)
    parts: list[Any] = [_claims(verdicts)]
    for task in tasks:
        parts.append(attention_table(found, task))
        figure = attention_figure(found, task)
        if figure.axes:
            parts.append(Picture(figure, f"{title(task)}, {MAPS[task]} {attention_to_see(found, task)}"))
    table = ruling_table(verdicts, "Differences in points of attention, paired by seed.")
    return Page([*parts, _folded("How the verdicts come about", table)])


MAPS = {
    "bit-xor": "at the own rate; darker is more, on one scale. The dots mark the two bits that an answer needs: look "
    "whether they lie on the dark cells.",
    "bit-memory": "at the own rate; darker is more, on one scale. Every example's strings are put in order: first the "
    "one that matches (dots), then the mean of the others, then the query itself. If position decided, the second "
    "block would look like the first.",
}


def thresholds() -> str:
    """One sentence: what a threshold on ListOps is worth, beside the best guess from the outermost operator."""
    sweep = next((each for each in results().plan if each["task"] == "listops-short"), None)
    if sweep is None:
        return ""
    return (
        f"On {title(sweep['task'])} the threshold is low: {100 * sweep['threshold']:g}%, where always naming the best "
        f"guess for the outermost operator gives {_percent(_listops()['root operator only'])}."
    )


def dropout() -> str:
    """One sentence: the output layer alone without and with dropout, here on digits and in the paper on ListOps."""
    without, with_it = (
        (experiment(name), experiment(name).row(label))
        for name, label in (("lu-table-10", "output only, no dropout"), ("lu-table-15", "output only"))
    )
    found = [results().cell(entry, row, "digits") for entry, row in (without, with_it)]
    if any(cell.problem for cell in found):
        return "It was not run yet."
    here = [_percent(float(cell.values("tuned").mean())) for cell in found]
    printed = [f"{row.paper['listops']:g}%" for _, row in (without, with_it)]
    return (
        f"On {title('digits')} the output layer alone gives {here[0]} without dropout and {here[1]} with it. The "
        f"paper's own numbers differ too: on ListOps {printed[0]} in its Table 10, without dropout, and {printed[1]} "
        "in its Tables 15 and 18."
    )


def provenance() -> str:
    """Whose results these are, how many of the sweeps are there, where and how they were computed."""
    table = sweeps_table(find_study(STUDY))
    done = table[table["status"] == "done"]
    if done.empty:
        return f"There are no results of the study {STUDY} yet; the command fpt run {STUDY} makes them."
    owner = "your own results" if done["origin"].iloc[0] == "own" else "the published results"
    devices = ", ".join(sorted(set(done["device"].astype(str))))
    runs = pd.concat(results().runs.values())
    chosen = runs[runs["stage"] == "selection"]
    rates = ", ".join(rate_text(rate) for rate in sorted(chosen["learning_rate"].unique()))
    return (
        f"These are {owner} of the study {STUDY}, {len(done)} of its {len(table)} sweeps, computed with "
        f"{results().backbone} on {devices}: learning rates {rates}, {chosen['seed'].nunique()} seeds that choose "
        f"among them{_exploratory()}."
    )


def _exploratory() -> str:
    """Said once a page, and not with every verdict."""
    fresh = sum(bool((runs["stage"] == "confirmation").any()) for runs in results().runs.values())
    without = len(results().runs) - fresh
    return f". Exploratory: in {without} of them the seeds that are shown also chose the rate" if without else ""


def all_claims() -> tuple[Table, str]:
    """Every claim of Lu et al. with its verdict, and how many have which."""
    frame = claims_table(results())
    count = tally(frame)
    for column in ("verdict", SCALED):
        frame[column] = frame[column].str.replace(" (exploratory)", "", regex=False)
    frame = frame[["id", "verdict", "claim", SCALED, "tried on", "where"]]
    return Table(frame, "Every checkable claim of Lu et al. 2021."), count


def other_claims() -> Table:
    """The claims that are not of Lu et al.; the baselines (B) with their numbers, where they can be had here."""
    frame = other_claims_table().set_index("id")
    ladder = _listops()
    for name, said in {
        "B-01": _percent(baseline_scores("bit-memory")["copy the visible bits"]),
        "B-02": _percent(baseline_scores("bit-xor")["chance"]),
        "B-03": f"{_percent(ladder['majority class'])} on {title('listops-short')}",
        "B-04": f"{_percent(ladder['root operator only'])} on {title('listops-short')}",
        "B-06": f"{_percent(linear_score('digits'))} on {title('digits')}",
        "B-07": f"{_percent(baseline_scores('digits')['majority class'])} on {title('digits')}",
    }.items():
        frame.loc[name, "answered"] = said
    frame = frame.reset_index()[["id", "answered", "claim", "where"]]
    return Table(
        frame,
        "R: Rothermel et al. 2021. X: where the papers contradict each other. O: oddities. B: baselines, what can be "
        "had without learning much, and the number that it gives.",
    )


@cache
def _listops() -> dict[str, float]:
    """The ladder of trivial readers on the short ListOps of the study."""
    return baseline_scores("listops-short", heldout=500)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _claims(verdicts: Sequence[Ruling]) -> str:
    """Each claim as a sentence, with its verdict over all tasks at both rates."""
    items = []
    for name in dict.fromkeys(", ".join(ruling.claim for ruling in verdicts).split(", ")):
        said, where = (html.escape(str(claim(name)[key])) for key in ("statement", "where"))
        own = [ruling for ruling in verdicts if name in ruling.claim.split(", ")]
        words = {
            f" at the {rate} rate": overall(ruling.verdict for ruling in own if ruling.reading == reading)
            for reading, rate in (("tuned", "own"), ("fixed", "paper's"))
            if any(ruling.reading == reading for ruling in own)
        }
        each = {*words.values()}
        verdict = each.pop() if len(each) == 1 else "; ".join(word + rate for rate, word in words.items())
        items.append(
            f"<li>{said} <em>({name}: Lu et al. 2021, {where})</em> <strong>{html.escape(verdict)}</strong></li>"
        )
    return f"<p>Claims, as we read them:</p><ul>{''.join(items)}</ul>"


def _folded(summary: str, table: Table) -> str:
    """A table that a reader opens."""
    return f'<details class="fpt"><summary>{summary}</summary>{table._repr_html_()}</details>'
