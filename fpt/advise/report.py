"""The advice as tables and as one HTML page, and everything that the end of the command writes."""

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

import pandas as pd

from fpt.advise import words
from fpt.advise.keep import keep_winner
from fpt.advise.request import Request, prepared
from fpt.advise.verdict import Advice, advice, cells_of, most_accurate
from fpt.advise.work import leaked
from fpt.files import write_atomically
from fpt.results.arm import Arm
from fpt.results.estimate import PERCENT, POINTS, Estimate, two_digits
from fpt.results.runs import load_runs, rate_text
from fpt.show.figures import budget_figure, learning_rate_figure
from fpt.show.html import CaptionedFigure, Displayable, Page, Table, paragraph
from fpt.show.places import compute_figure
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
    cells = cells_of(wanted)
    found = advice(wanted, cells)
    best = cells[found.advised if found.advised in cells else most_accurate(found.arms).arm]
    task, templates = prepared(replace(wanted, arms=(best.spec.arm,)), best.spec.compute_type)
    winner = keep_winner(best, templates[best.spec.arm], wanted.study)
    found = replace(found, winner=winner.as_posix(), leaked=leaked(task), read=task.read)
    write_atomically(wanted.study / "report.html", page(found, cells, wanted.study).encode())
    return found


def arms_frame(advice: Advice) -> pd.DataFrame:
    """A row an arm, as text, the cheapest first."""
    rows = []
    for arm in advice.arms:
        rate, usable, accuracy = NONE, NONE, NONE  # where every rate lost a seed
        if arm.rate is not None:
            rate = rate_text(arm.rate)
            usable = " to ".join(dict.fromkeys(rate_text(end) for end in (arm.usable[0], arm.usable[-1])))
            accuracy = Estimate(arm.accuracy, unit=PERCENT, ends=(arm.low, arm.high)).within(0, 100).cell
        row = {
            "arm": words.label(arm.arm),
            "best rate": rate,
            "usable": usable,
            "accuracy, %": accuracy,
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
            "points": Estimate(pair.mean, unit=POINTS, ends=(pair.low, pair.high)).cell,
            "told apart": "yes" if pair.told else "no",
            f"seeds to find {advice.tolerance:g}": MANY if pair.needed is None else str(pair.needed),
        }
        for pair in advice.pairs
    ]
    return pd.DataFrame(rows)


def page(advice: Advice, cells: Mapping[str, Arm], study: Path) -> str:
    """One HTML document that needs no other file: the advice, curves, the plane, arms over compute, provenance."""
    shown = [arm for arm in advice.arms if arm.rate is not None]
    named = {arm.letters: cells[arm.arm] for arm in shown}
    dearest = max(arm.flop for arm in advice.arms)
    shares = {arm.letters: arm.flop / dearest for arm in shown}
    baselines = pd.DataFrame([{"baseline": name, "%": f"{score:.1f}"} for name, score in advice.baselines.items()])
    parts: list[Displayable | str] = [
        f"<h1>{escape(advice.study)}</h1>",
        f"<p><b>{escape(words.recommended(advice))}</b></p>",
        *(paragraph(line) for line in [*filter(None, [advice.read]), *words.warnings(advice)]),
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
        parts += ["<h2>Learning rate and budget</h2>", captioned_plane(named["UP"], named["FP"])]
    parts += ["<h2>Where this comes from</h2>", record_table(study)]
    return document(advice.study, Page(parts))
