"""What the verdicts say, as pages show it: a finding over its pairs, all findings in one table, claims as cards.

Everything is read from runs/contrasts.csv and runs/claims.csv, which `fpt judge` writes.
"""

import html
import math
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import pandas as pd

from fpt.claims.asked import PLANNED
from fpt.claims.judge import quantifier
from fpt.claims.verdicts import DECADES, FLOORED, ROBUSTNESS, SPEAKS, read
from fpt.claims.words import HOLDS, HOLDS_NOT
from fpt.errors import check_known
from fpt.papers import claim, finding, findings, paper_of, printed_ranges, table
from fpt.papers.schema import KINDS, Claim, Finding, Rule
from fpt.results.arm import published_arms
from fpt.results.estimate import EXPONENT, MINUS, NATS, POINTS, TIMES, Estimate, rounded
from fpt.results.runs import find_study
from fpt.show import plot
from fpt.show.html import CaptionedFigure, Page, Table, explained
from fpt.show.names import model, title
from fpt.show.said import Word
from fpt.sweeps.ledger import workspace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = Mapping[Any, Any]  # of the table of verdicts
# Small marks with caps: on an axis that one pair makes long, the intervals of the others stay in sight.
COUNTED = {"marker": "o", "markersize": 5, "capsize": 3, "color": plot.INK}
LOOK: Mapping[str, dict[str, Any]] = {  # by what the legend says of a row
    "counted, planned": COUNTED,
    "counted, not planned": COUNTED | {"markerfacecolor": "none"},
    "not counted: robustness": {"marker": "o", "markersize": 3, "color": plot.GREY, "markerfacecolor": "none"},
    "not counted: at floor": {"marker": "x", "markersize": 5, "color": plot.GREY},
}
LONGEST = {POINTS: 100.0, DECADES: 3.0, NATS: 10.0, EXPONENT: 3.0}  # an interval without an end is drawn to here
AXIS = {POINTS: "points", DECADES: "log10 of the ratio", NATS: "nats a byte", EXPONENT: "exponent"}
# How a rule goes over pairs, where it names a quantifier; the page says once what decides where it names none.
OVER_PAIRS = {"": "", "all": "On every pair.", "most": "On most pairs.", "some": "On one pair at least."}
FAR, FLAT = 4.0, 1.5  # an interval so many times the median is long; an axis so many times the others' reach is, too
ROOM = 0.25  # that is left beside what others reach, as a share of it
ACCURACY = "test accuracy"  # what a contrast may be of
WIDEST = 24  # characters of a row's name in one line
MADE_FOR = "made for it"  # planned, exploratory, or changed after results
LINE = 0.16  # inches that a line of a row's name takes
MARKS = {HOLDS: "yes", HOLDS_NOT: "no"}
STEPS_MATTER = "depends on steps"  # of a word that other studies of its pair do not give, after other steps


def verdict_rows() -> pd.DataFrame:
    """The verdicts of the workspace, as fpt.claims.verdicts reads them. Raises DataError where there are none."""
    return read(workspace() / "runs")


def word(name: str, rows: pd.DataFrame | None = None) -> Word:
    """The verdict on a claim ("R-03") or a finding ("train-all"), from `verdict_rows` or from `rows` of that kind.

    Raises SpecError for a name that is neither.
    """
    found = verdicts_by_id(verdict_rows() if rows is None else rows)
    check_known("claim or finding", name, found)
    return found[name]


def verdicts_by_id(rows: pd.DataFrame) -> dict[str, Word]:
    """The verdict on every claim and every finding, by its id."""
    shown = rows[rows["pair"] == ""]
    names = shown["claim"].where(shown["claim"] != "", shown["finding"])
    return {name: Word(*each) for name, *each in zip(names, shown["word"], shown["note"], strict=True)}


def forest(finding_id: str, caption: str, rows: pd.DataFrame | None = None) -> CaptionedFigure:
    """The contrast of a finding, a row a pair, with 95% intervals, in points.

    Large: pairs that are counted, filled where the runs were made for the question. Small and grey: robustness, and
    pairs at floor. Bands: from the least to the largest number that a paper prints for this contrast.
    Raises SpecError for an unknown finding.
    """
    rows = verdict_rows() if rows is None else rows
    return CaptionedFigure(_forest(finding(finding_id), pairs_of(finding_id, rows)), caption)


def pairs_of(finding_id: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The contrast of a finding, a row a pair and study: counted ones first, the largest effect at the top.

    Where a finding compares an arm with several others, the row is the contrast with the smallest estimate.
    """
    shown = _of_finding(finding_id, rows)
    shown = shown[shown["estimate"].notna()].sort_values("estimate", kind="stable")
    several = shown["study"].where(shown["role"] != SPEAKS, "")  # a pair is counted once, its other studies are shown
    shown = shown.assign(several=several).drop_duplicates(["pair", "role", "several"])
    shown = shown.assign(place=shown["role"].map([SPEAKS, ROBUSTNESS, FLOORED].index))
    return shown.sort_values(["place", "estimate"], ascending=[True, False], kind="stable", ignore_index=True)


def _of_finding(name: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The contrasts of a finding itself, without those of its claims."""
    return rows[(rows["claim"] == "") & (rows["finding"] == name) & (rows["pair"] != "")]


def row_name(row: Row) -> str:
    """A pair in words, "MNIST, MiniLM"; where it is not counted with its study, which tells it apart."""
    words = f"{title(row['task'])}, {model(row['backbone'])}"
    return words if row["role"] == SPEAKS else f"{words} ({row['study']})"


@plot.drawn
def _forest(finding: Finding, rows: pd.DataFrame) -> plot.Plot:
    if rows.empty:
        return plot.nothing()
    names = [row_name(row) for row in rows.to_dict("records")]
    wrapped = [fill(name, WIDEST, break_on_hyphens=False) for name in names]
    lines = 1 + max(name.count("\n") for name in wrapped)
    figure, (axes,) = plot.panels_of(1, 0.5 + (0.12 + LINE * max(2, lines)) * len(rows), "x")
    drawn: set[str] = set()
    low, high = _reach(rows)
    for y, row in enumerate(rows.to_dict("records")):
        kind = _kind(row)
        around = plot.bar(row["estimate"], row["low"], row["high"], LONGEST[row["unit"]])
        axes.errorbar(row["estimate"], y, xerr=around, label="" if kind in drawn else kind, ls="none", **LOOK[kind])
        drawn.add(kind)
        _leave(axes, y, row, low, high)
    axes.axvline(0, color=plot.GREY, linewidth=1)
    _bands(axes, finding)
    if math.isfinite(low):
        axes.set_xlim(low, high)
    axes.set_yticks(range(len(rows)), wrapped)
    contrasts, unit = list(dict.fromkeys(rows["contrast"])), str(rows["unit"].iloc[0])
    if len(contrasts) == 1:
        contrasts = [_in_words(rows.iloc[0].to_dict())]
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=_axis(contrasts, unit))
    plot.shared_legend(figure, [axes])
    columns = ["pair", "role", "study", "contrast", "at", "estimate", "low", "high", "seeds", "steps", "planned"]
    return figure.describe(_forest_words(finding, names, rows, "; ".join(contrasts)), rows[columns])


def _forest_words(finding: Finding, names: Sequence[str], rows: pd.DataFrame, contrast: str) -> str:
    """What a forest shows, then its rows."""
    counted = rows[rows["role"] == SPEAKS]
    above, below = int((counted["low"] > 0).sum()), int((counted["high"] < 0).sum())
    found = f"Of {len(counted)} counted pairs, {above} above 0, {below} below, {len(counted) - above - below} open."
    told = zip(names, rows.to_dict("records"), strict=True)
    words = "; ".join(f"{name} {_in_a_column(row)}, {_kind(row)}" for name, row in told)
    return f"{finding.question} {found} {contrast}, {AXIS[rows['unit'].iloc[0]]} with 95% intervals: {words}."


def _reach(rows: pd.DataFrame) -> tuple[float, float]:
    """From where to where the axis goes where one or two intervals would make it so long that the others would be
    points: so far as the others go, with room for a number; else without ends."""
    ends = rows[["low", "high"]].astype(float)
    widths = ends["high"] - ends["low"]
    short = ends[widths <= FAR * widths.median()]
    low, high = min(0.0, short["low"].min()), max(0.0, short["high"].max())
    room = ROOM * (high - low)
    whole = max(0.0, ends["high"].max()) - min(0.0, ends["low"].min())
    return (-math.inf, math.inf) if whole <= FLAT * (high - low) else (low - room, high + room)


def _leave(axes: "Axes", y: int, row: Row, low: float, high: float) -> None:
    """Where an interval goes beyond the axis, an arrow at that end, and the numbers in print."""
    left, right = row["low"] < low, row["high"] > high
    for beyond, end, marker in ((left, low, "<"), (right, high, ">")):
        if beyond:
            axes.plot(end, y, marker=marker, color=plot.INK, markersize=7, clip_on=False)
    if left or right:
        at: dict[str, Any] = {"xytext": (-8, 3), "textcoords": "offset points", "ha": "right"}
        axes.annotate(_in_a_column(row), (high, y), **at)


def _kind(row: Row) -> str:
    counted, robust, floor = "counted", "not counted: robustness", "not counted: at floor"
    if row["role"] == SPEAKS:
        return f"{counted}, {'planned' if row['planned'] == PLANNED else 'not planned'}"
    return floor if row["role"] == FLOORED else robust


def _in_words(row: Row) -> str:
    """A contrast of two arms by the names that figures give them; any other as its rule calls it."""
    arms, _ = published_arms(find_study(row["study"])) if row["of"] == ACCURACY else ({}, {})
    pair = [arms[row[name]] for name in ("first", "second") if row[name] in arms]
    return " - ".join(plot.words_of(plot.fields_of(pair))) if len(pair) == 2 else str(row["contrast"])


def _axis(contrasts: Sequence[str], unit: str) -> str:
    words = contrasts[0].replace(" - ", f" {MINUS} ") if len(contrasts) == 1 else "the contrast least in favour"
    return fill(f"{words} ({AXIS[unit]})", 40)


def _bands(axes: "Axes", finding: Finding) -> None:
    """What the papers print, from the least to the largest."""
    looks = zip(plot.OTHERS, plot.HATCHES, strict=False)
    for (paper, (low, high)), (colour, hatch) in zip(printed_ranges(finding).items(), looks, strict=False):
        said = f"{whose(paper)} print {rounded(low, 1)} to {rounded(high, 1)}"
        look: dict[str, Any] = {"facecolor": (colour, 0.2), "edgecolor": plot.INK, "hatch": hatch, "lw": 0}
        axes.axvspan(low, high, zorder=0, label=said, **look)


def _estimate(row: Row) -> Estimate:
    """Of a row of the file, where a ratio is in log10."""
    unit, ends = row["unit"], [row[name] for name in ("estimate", "low", "high")]
    if unit == DECADES:
        unit, ends = TIMES, [10.0**each for each in ends]
    return Estimate(ends[0], unit=unit, ends=(ends[1], ends[2]))


def _in_a_column(row: Row) -> str:
    """The estimate with its interval: points as a number alone, and a ratio as "3.2 times (1 to 10)"."""
    return _estimate(row).cell if row["unit"] == POINTS else str(_estimate(row))


def whose(paper: str) -> str:
    """A paper as a sentence names it: Lu et al."""
    authors = paper_of(paper).authors.split(", ")
    return f"{authors[0].split()[-1]}{' et al.' * (len(authors) > 1)}" if authors[0] else paper_of(paper).title


def cards() -> Page:
    """Every claim as a card to be opened, below the finding to which it belongs, which has the address #finding-ID.
    Headings are of the third level. Raises SpecError for a finding without a verdict."""
    rows = verdict_rows()
    said = verdicts_by_id(rows)
    parts = []
    for asked in findings().values():
        for name in (asked.id, *asked.claims):
            check_known("claim or finding with a verdict", name, said, "fpt judge writes the verdicts")
        below = (_card(claim(name), said, rows) for name in asked.claims)
        parts += [_finding(asked, said, rows), *below, "</section>"]
    return Page(['<div class="fpt-claims">', *parts, "</div>"])


def _finding(finding: Finding, said: Mapping[str, Word], rows: pd.DataFrame) -> str:
    """The head of a finding's section, which stays open."""
    marked = _marked(said[finding.id], _of_finding(finding.id, rows))
    return f'<section id="finding-{finding.id}"><h3>{explained(finding.question)}</h3><p>{marked}</p>'


def _marked(said: Word, contrasts: pd.DataFrame) -> str:
    """A word in bold, with its counts, and a colour for those that decide; a badge where it depends on steps."""
    counts = f" <small>{explained(said.counts)}</small>" if said.counts else ""
    badge = f" {explained(STEPS_MATTER)}" if contrasts["other_steps"].any() else ""
    return f'<strong class="{MARKS.get(said.word, "open")}">{explained(said.word)}</strong>{counts}{badge}'


def _card(shown: Claim, said: Mapping[str, Word], rows: pd.DataFrame) -> str:
    """One claim: its verdict, the quotation and its place, how it is decided, and its contrasts."""
    contrasts = rows[(rows["claim"] == shown.id) & (rows["pair"] != "")]
    parts = "; ".join(dict.fromkeys(rule.part for rule in shown.rule if rule.part))
    entries = {
        "Quotation": f"<q>{html.escape(shown.quote)}</q>" if shown.quote else "",
        "Where": explained(shown.where),
        "Remark": explained(shown.note),
        "Rule": explained(_decided(shown.rule, contrasts)),
        "As tested": explained(parts),
        "Contrasts": evidence_table(contrasts)._repr_html_() if len(contrasts) else "",
    }
    body = "".join(f"<dt>{head}</dt><dd>{entry}</dd>" for head, entry in entries.items() if entry)
    verdict, anchor = said[shown.id], shown.id.lower()
    counts = verdict if len(contrasts) else Word(verdict.word, "")
    if contrasts.empty and verdict.counts:
        body += f"<dt>What shows it</dt><dd>{explained(verdict.counts)}</dd>"
    return (
        f'<details class="claim" id="{anchor}" data-paper="{html.escape(whose(shown.paper))}" '
        f'data-verdict="{html.escape(verdict.word)}"><summary><b>{shown.id}</b> {explained(shown.says)} '
        f'<span class="verdict">{_marked(counts, contrasts)}</span></summary><dl>{body}</dl>'
        f'<p><a href="#{anchor}">Address of {shown.id}</a></p></details>'
    )


def _decided(rules: Sequence[Rule], contrasts: pd.DataFrame) -> str:
    """What decides a claim: its rules, each once; at which rates, once if all have the same; and on how many pairs."""
    if len({*map(_rates, rules)} - {""}) <= 1:
        said = [*map(rule_words, rules), *map(_rates, rules)]
    else:
        said = [words for rule in rules for words in (rule_words(rule), _rates(rule))]
    over = OVER_PAIRS[quantifier(rules)] if len(contrasts) else ""
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
                "estimate (95% interval)": "" if pd.isna(row["estimate"]) else str(_estimate(row)),
                "word": f"{row['word']}{FOLLOWS.get(row['role'], of_pair)}",
                MADE_FOR: row["planned"],
                "other studies": f"{STEPS_MATTER}: {row['other_steps']}" if row["other_steps"] else "",
            }
        )
    return Table(pd.DataFrame(lines))
