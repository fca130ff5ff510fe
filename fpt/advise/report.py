"""The advice as tables and as one HTML page, and everything that the end of the command writes."""

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

import pandas as pd

from fpt.advise import words
from fpt.advise.keep import keep_winner
from fpt.advise.request import Request, prepared
from fpt.advise.verdict import Advice, Finished, Pair, advice, most_accurate, sweeps_of
from fpt.advise.work import leaked
from fpt.files import write_atomically
from fpt.results.contrasts import interval_text
from fpt.results.runs import load_runs, rate_text
from fpt.show.figures import budget_figure, learning_rate_figure
from fpt.show.html import CaptionedFigure, Displayable, Page, Table, paragraph
from fpt.show.leads import compute_figure
from fpt.show.numbers import two_digits
from fpt.show.planes import captioned_plane
from fpt.show.provenance import record_table
from fpt.show.report_page import BUDGETS, RATES, document

COMPUTE = "Accuracy over compute: the unit is a step of the dearest arm. Bars are 95% intervals."
ARMS = "Each arm at its own rates: accuracy on test data with 95% interval, cost of a step and memory of one run."
PAIRS = "One arm minus another, in points. The last column: seeds that would find a difference of the tolerance."
BASELINES = "Without training of ours, on the same test examples."
MANY, NONE = "more than 1,000", "none"


def finished(wanted: Request) -> Advice:
    """Read the finished study of a request, keep the winner, and write the page `report.html` beside study.yaml."""
    sweeps = sweeps_of(wanted)
    found = advice(wanted, sweeps)
    best = sweeps[found.advised if found.advised in sweeps else most_accurate(found.arms).arm]
    task, templates = prepared(replace(wanted, arms=(best.spec.arm,)), best.spec.compute_type)
    winner = ""
    if best.cell.best_rate is not None:  # where every rate lost a seed, no run is the best one
        winner = keep_winner(best, templates[best.spec.arm], wanted.study).as_posix()
    found = replace(found, winner=winner, leaked=leaked(task))
    write_atomically(wanted.study / "report.html", page(found, sweeps, wanted.study).encode())
    return found


def arms_frame(advice: Advice) -> pd.DataFrame:
    """A row an arm, as text, the cheapest first."""
    rows = []
    for arm in advice.arms:
        usable = [rate_text(rate) for rate in arm.usable] or [NONE]
        row = {
            "arm": words.label(arm.arm),
            "best rate": rate_text(arm.rate) if arm.rate else NONE,
            "usable": usable[0] if len(usable) == 1 else " to ".join([*usable[:1], *usable[-1:]]),
            "accuracy, %": interval_text(arm.accuracy, max(0.0, arm.low), min(100.0, arm.high)) if arm.seeds else NONE,
            "GFLOP a step": two_digits(arm.flop / 1e9),
            "memory, MiB": f"{arm.memory / 2**20:,.0f}",
        }
        rows.append(row)
    return pd.DataFrame(rows)


def pairs_frame(advice: Advice) -> pd.DataFrame:
    """A row for each two arms, as text."""
    rows = [
        {
            "first - second": f"{words.label(pair.first)} - {words.label(pair.second)}",
            "points": interval_text(pair.mean, pair.low, pair.high),
            "told apart": "yes" if pair.told else "no",
            f"seeds to find {advice.tolerance:g}": _seeds(pair),
        }
        for pair in advice.pairs
    ]
    return pd.DataFrame(rows)


def _seeds(pair: Pair) -> str:
    return MANY if pair.needed is None else str(pair.needed)


def page(advice: Advice, sweeps: Mapping[str, Finished], study: Path) -> str:
    """One HTML document that needs no other file: the advice, curves, the plane, arms over compute, provenance."""
    shown = [arm for arm in advice.arms if arm.seeds]
    named = {arm.letters: sweeps[arm.arm].cell for arm in shown}
    dearest = max(arm.flop for arm in advice.arms)
    shares = {arm.letters: arm.flop / dearest for arm in shown}
    baselines = pd.DataFrame([{"baseline": name, "%": f"{score:.1f}"} for name, score in advice.baselines.items()])
    parts: list[Displayable | str] = [
        f"<h1>{escape(advice.study)}</h1>",
        f"<p><b>{escape(words.recommended(advice))}</b></p>",
        *(paragraph(line) for line in words.warnings(advice)),
        Table(arms_frame(advice), ARMS),
        Table(pairs_frame(advice), PAIRS),
        Table(baselines, BASELINES),
        "<h2>Accuracy over the learning rate</h2>",
        CaptionedFigure(learning_rate_figure(load_runs(study, "own")), RATES),
        "<h2>Accuracy over the budget</h2>",
        CaptionedFigure(budget_figure(named), BUDGETS),
        "<h2>Accuracy over compute</h2>",
        CaptionedFigure(compute_figure(named, shares), COMPUTE),
    ]
    if {"FP", "UP"} <= named.keys():
        parts += ["<h2>Learning rate and budget</h2>", captioned_plane(named["FP"], named["UP"])]
    parts += ["<h2>Where this comes from</h2>", record_table(study)]
    return document(advice.study, Page(parts))
