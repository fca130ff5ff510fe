"""What the verdicts say, as pages show it: words for prose, claims as cards, and the contrasts behind them.

Everything is read from runs/contrasts.csv and runs/claims.csv, which `fpt judge` writes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from fpt.claims.judge import quantifier
from fpt.claims.verdicts import DECADES, FLOORED, ROBUSTNESS, SPEAKS, read
from fpt.claims.words import HOLDS, HOLDS_NOT
from fpt.errors import check_known
from fpt.files import workspace
from fpt.papers import claim, findings, paper_of, table
from fpt.papers.schema import KINDS, Claim, Rule
from fpt.results.estimate import TIMES, Estimate
from fpt.show.html import STEPS_MATTER, Page, Table, rendered
from fpt.show.said import Word
from fpt.sweeps.words import model_name, task_name

Row = Mapping[Any, Any]  # of the table of verdicts
# How a rule goes over pairs, where it names a quantifier; the page says once what decides where it names none.
OVER_PAIRS = {"": "", "all": "On every pair.", "most": "On most pairs.", "some": "On one pair at least."}
MADE_FOR = "made for it"  # planned, exploratory, or changed after results
MARKS = {HOLDS: "yes", HOLDS_NOT: "no"}


def verdict_rows() -> pd.DataFrame:
    """The verdicts of the workspace, as fpt.claims.verdicts reads them. Raises DataError where there are none."""
    return read(workspace() / "runs")


def word(name: str) -> Word:
    """The verdict on a claim ("R-03") or a finding ("train-all"). Raises SpecError for a name that is neither."""
    found = verdicts_by_id(verdict_rows())
    check_known("claim or finding", name, found)
    return found[name]


def verdicts_by_id(rows: pd.DataFrame) -> dict[str, Word]:
    """The verdict on every claim and every finding, by its id."""
    shown = rows[rows["pair"] == ""]
    names = shown["claim"].where(shown["claim"] != "", shown["finding"])
    return {name: Word(*each) for name, *each in zip(names, shown["word"], shown["note"], strict=True)}


def pairs_on(name: str, side: str) -> list[str]:
    """The counted pairs whose word on a claim or a finding is this one: for, against, open. In alphabetical order."""
    rows = verdict_rows()
    asked = (rows["claim"] == name) | ((rows["claim"] == "") & (rows["finding"] == name))
    return sorted(rows.loc[asked & (rows["role"] == SPEAKS) & (rows["pair_word"] == side), "pair"].unique())


def row_name(row: Row) -> str:
    """A pair in words, "MNIST, MiniLM"; where it is not counted with its study, which tells it apart."""
    words = f"{task_name(row['task'])}, {model_name(row['backbone'])}"
    return words if row["role"] == SPEAKS else f"{words} ({row['study']})"


def estimate_of(row: Row) -> Estimate:
    """Of a row of the file, where a ratio is in log10."""
    unit, ends = row["unit"], [row[name] for name in ("estimate", "low", "high")]
    if unit == DECADES:
        unit, ends = TIMES, [10.0**each for each in ends]
    return Estimate(ends[0], unit=unit, ends=(ends[1], ends[2]))


def whose(paper: str) -> str:
    """A paper as a sentence names it: Lu et al."""
    authors = paper_of(paper).authors.split(", ")
    return f"{authors[0].split()[-1]}{' et al.' * (len(authors) > 1)}" if authors[0] else paper_of(paper).title


def cards() -> Page:
    """Every claim as a card to be opened, below the finding to which it belongs, which has the address #finding-ID.
    Headings are of the third level. Raises SpecError for a finding without a verdict."""
    rows = verdict_rows()
    said, shown = verdicts_by_id(rows), []
    for asked in findings().values():
        for name in (asked.id, *asked.claims):
            check_known("claim or finding with a verdict", name, said, "fpt judge writes the verdicts")
        own = rows[(rows["claim"] == "") & (rows["finding"] == asked.id) & (rows["pair"] != "")]
        below = [_card(claim(name), said[name], rows) for name in asked.claims]
        shown.append({"id": asked.id, "question": asked.question, "claims": below} | _marked(said[asked.id], own))
    return Page([rendered("claims", findings=shown, marks=MARKS)])


def _marked(said: Word, contrasts: pd.DataFrame) -> dict[str, str]:
    """A word with its counts; a badge where it depends on steps."""
    return {"word": said.word, "counts": said.counts, "badge": STEPS_MATTER if contrasts["other_steps"].any() else ""}


def _card(shown: Claim, said: Word, rows: pd.DataFrame) -> dict[str, Any]:
    """One claim: its verdict, the quotation and its place, how it is decided, and its contrasts."""
    contrasts = rows[(rows["claim"] == shown.id) & (rows["pair"] != "")]
    tested = len(contrasts) > 0
    entries = {
        "Quotation": Markup("<q>{}</q>").format(shown.quote) if shown.quote else "",
        "Where": shown.where,
        "Remark": shown.note,
        "Rule": _decided(shown.rule, tested),
        "As tested": "; ".join(dict.fromkeys(rule.part for rule in shown.rule if rule.part)),
        "Contrasts": Markup(evidence_table(contrasts)._repr_html_()) if tested else "",
        "What shows it": "" if tested else said.counts,
    }
    card = {"id": shown.id, "says": shown.says, "paper": whose(shown.paper), "entries": entries}
    return card | _marked(said if tested else Word(said.word, ""), contrasts)


def _decided(rules: Sequence[Rule], tested: bool) -> str:
    """What decides a claim: its rules, each once; at which rates, once if all have the same; and on how many pairs."""
    if len({*map(_rates, rules)} - {""}) <= 1:
        said = [*map(rule_words, rules), *map(_rates, rules)]
    else:
        said = [words for rule in rules for words in (rule_words(rule), _rates(rule))]
    over = OVER_PAIRS[quantifier(rules)] if tested else ""
    return " ".join(dict.fromkeys(filter(None, [*said, over])))


def _rates(rule: Rule) -> str:
    """At which learning rates a rule is read, as a sentence; one with a function says it in its own words."""
    if rule.has_function or not rule.table:
        return ""
    return "Each at its own learning rate." if rule.at == "tuned" else "All at the rate that the paper prints."


def rule_words(rule: Rule) -> str:
    """What a rule asks of which rows, as a sentence."""
    if rule.has_function or not rule.table:
        return rule.words
    read = table(rule.table)
    first, *others = (f"“{paper_of(read.paper).label(row)}”" for row in rule.rows)
    words = KINDS[rule.kind].format(
        first=first,
        others=" and ".join(others),
        rows=", ".join([first, *others]),
        more=_bounds(rule, " by {} points", " by more than {} points"),
        times=_bounds(rule, ", {} times as many", ", {} times as many"),
        goal="the goal" if read.until == "threshold" else f"where “{read.until}” ends",
        margin=f"{rule.by:g} points" if rule.by else "the margin",
        level=rule.level,
        least=f"{rule.by:g}",
        most=f"{rule.to:g}".replace("inf", "any number of"),
    )
    return f"{words[0].upper()}{words[1:]}."


def _bounds(rule: Rule, between: str, above: str) -> str:
    """By how much, where a rule says it."""
    if math.isfinite(rule.to):
        return between.format(f"{rule.by:g} to {rule.to:g}")
    return above.format(f"{rule.by:g}") if rule.by else ""


FOLLOWS = {FLOORED: " (at floor)", ROBUSTNESS: " (robustness)"}  # the word of a contrast


def evidence_table(rows: pd.DataFrame) -> Table:
    """Contrasts of a claim, a row each: the pair, what is compared, the estimate with the 95% interval, the word, in
    brackets what the pair counts as where that is another word, and where it depends on steps."""
    lines = []
    for row in rows.to_dict("records"):
        of_pair = "" if row["pair_word"] in ("", row["word"]) else f" (pair: {row['pair_word']})"
        lines.append(
            {
                "pair": row_name(row),
                "contrast": ", ".join(filter(None, [row["contrast"], row["at"]])),
                "estimate (95% interval)": "" if pd.isna(row["estimate"]) else str(estimate_of(row)),
                "word": f"{row['word']}{FOLLOWS.get(row['role'], of_pair)}",
                MADE_FOR: row["planned"],
                "other studies": f"{STEPS_MATTER}: {row['other_steps']}" if row["other_steps"] else "",
            }
        )
    return Table(pd.DataFrame(lines))
