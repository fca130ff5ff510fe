"""The advice as tables and as one HTML page, and everything that the end of the command writes."""

from dataclasses import replace
from html import escape

import pandas as pd

from fpt.advise import words
from fpt.advise.baselines import names_of
from fpt.advise.keep import keep_baseline, keep_winner
from fpt.advise.request import PROBE, Request, task_and_model
from fpt.advise.studies import finished_arms
from fpt.advise.verdict import Advice, Candidate, advice
from fpt.advise.work import leaked
from fpt.files import write_atomically
from fpt.results.estimate import PERCENT, POINTS, Estimate
from fpt.results.runs import load_runs, rate_text
from fpt.show.figures import learning_rate_figure
from fpt.show.html import CaptionedFigure, Displayable, Page, Table, document, heading, paragraph
from fpt.show.tables import record_table

PAGE = "advice.html"  # `fpt report` writes report.html
CANDIDATES = "The cheapest first, on fresh seeds: percent with 95% interval. A rate is one that tuning seeds chose."
PAIRS = "One minus another, in points. The last column: seeds that would find a difference of the tolerance."
RATES = (
    "The tuning seeds: test accuracy against the strength of the probe, or the learning rate. x: a run that diverged."
)
MANY = "more than 1,000"


def finished(wanted: Request) -> Advice:
    """Read the finished studies of a request, keep the winner, and write the page `advice.html` beside study.yaml."""
    found, arms = advice(wanted), finished_arms(wanted.study)
    task, _ = task_and_model(arms[PROBE].spec)
    if found.advised in names_of(task):
        winner = keep_baseline(found.advised, task, wanted)
    else:
        best = arms[found.advised or PROBE]
        winner = keep_winner(best, task_and_model(best.spec, task)[1], wanted.study)
    found = replace(found, winner=winner.as_posix(), leaked=leaked(task), read=task.read)
    write_atomically(wanted.study / PAGE, page(found, wanted).encode())
    return found


def arms_frame(advice: Advice) -> pd.DataFrame:
    """A row a baseline, the probe or an arm, as text, the cheapest first."""
    return pd.DataFrame([_row(each, advice.metric) for each in advice.candidates])


def _row(each: Candidate, metric: str) -> dict[str, str]:
    value, low, high = each.scores[metric]
    others = {f"{name}, %": f"{each.scores[name][0]:.1f}" for name in each.scores if name != metric}
    return {
        "what": words.label(each.name),
        f"{metric}, %": Estimate(value, unit=PERCENT, ends=(low, high)).cell,
        **others,
        "rate": "" if each.rate is None else rate_text(each.rate),
        "steps": f"{each.steps:,}" if each.steps > 1 else "",
        "seeds": str(each.seeds),
    }


def pairs_frame(advice: Advice) -> pd.DataFrame:
    """A row for each two, as text."""
    rows = [
        {
            "first - second": f"{words.label(pair.first)} - {words.label(pair.second)}",
            f"points of {advice.metric}": Estimate(pair.mean, unit=POINTS, ends=(pair.low, pair.high)).cell,
            "told apart": "yes" if pair.told else "no",
            f"seeds to find {advice.tolerance:g}": MANY if pair.needed is None else str(pair.needed),
        }
        for pair in advice.pairs
    ]
    return pd.DataFrame(rows)


def page(advice: Advice, wanted: Request) -> str:
    """One HTML document that needs no other file: the advice, tables, the rates that were tried, provenance."""
    lines = [*filter(None, [advice.read]), *words.further(advice), *words.warnings(advice)]
    parts: list[Displayable | str] = [
        f"<p><b>{escape(words.recommended(advice))}</b></p>",
        *map(paragraph, lines),
        Table(arms_frame(advice), CANDIDATES),
        Table(pairs_frame(advice), PAIRS),
        heading("Accuracy over the rate"),
        CaptionedFigure(learning_rate_figure(load_runs(wanted.pilot, "own")), RATES),
        heading("Where this comes from"),
        record_table(wanted.study),
    ]
    return document(advice.study, Page(parts))
