"""A table of a paper on a page: its claims with their verdicts, what was run, ours beside the printed, and a figure."""

import html
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from fpt.evidence.attention import attention_maps
from fpt.evidence.cells import Cell, StudyCells
from fpt.evidence.show import text
from fpt.evidence.show.beside import beside_paper, printed_table
from fpt.evidence.show.figures import budget_figure
from fpt.evidence.show.html import Folded, Page, Picture, Shown, paragraph
from fpt.evidence.show.numbers import title
from fpt.evidence.show.planes import crossing_figure, plane_figure
from fpt.evidence.show.strips import attention_figure, seeds_of, strip_figure
from fpt.evidence.show.tables import attention_table, verdict_table
from fpt.evidence.verdicts import Verdict, other_reading, overall, verdicts
from fpt.papers import claim, claims, table
from fpt.papers.schema import Table

QUANTITY = {
    "accuracy": "test accuracy (%)",
    "steps": "steps to the goal",
    "gap": "training minus test accuracy (points)",
    "attention": "part of the attention (%)",
}
DOTS = "A dot a seed, above where the rate is tuned, below at the paper's; the bar is their mean."
CURVES = "Test accuracy over the budget, each seed at the rate that the others choose for it. Dotted: the goal."
ATTENTION = (
    "percent of the first layer's attention that lies on the tokens that the answer needs, mean over queries, heads "
    "and examples; 95% interval over seeds."
)
MAPS = "tuned, mean over heads, examples and seeds; darker is more, on one scale. Dots mark what the answer needs."
PLANE = (
    "Test accuracy of the frozen pretrained arm minus that of the unfrozen pretrained one, in points, by learning rate "
    "and budget: blue where freezing is ahead, orange where training all is. Bold with a star: sure after correction "
    "for all pairs. Hatched: the winner may change here."
)
CROSSING = (
    "The same two arms, each seed at the rate that the others choose for this budget. Left: both. Right: the "
    "difference, a dot a seed, with its 95% interval; + and - are sure for all budgets together, 0 is open, ? rests on "
    "an arm at an end of its grid. Shaded: the two may cross here."
)
USUAL = ("FPT", "random")  # rows of nearly every table of Lu et al.


def claims_of(*tables: str) -> list[str]:
    """The ids of the claims that these tables decide, in the papers' order."""
    return [name for name, each in claims().items() if {rule.table for rule in each.rule} & set(tables)]


def verdicts_on(names: Iterable[str], studies: Sequence[StudyCells]) -> list[Verdict]:
    """What each of the studies says on each of the claims."""
    return [verdict for name in names for verdict in verdicts(claim(name), studies)]


def at_papers_rate(names: Iterable[str], studies: Sequence[StudyCells]) -> list[Verdict]:
    """The same where all models have the rate that the paper prints, of the claims that are read tuned."""
    both = [(claim(name), study) for name in names for study in studies]
    return [verdict for each, study in both if (verdict := other_reading(each, study)) is not None]


def claim_list(names: Iterable[str], studies: Sequence[StudyCells]) -> Page:
    """Each claim as a sentence, with its verdict as it says it, and at the paper's rate where it says tuned."""
    items = []
    for name in names:
        each, found, other = claim(name), verdicts_on([name], studies), at_papers_rate([name], studies)
        words = text.verdict_words(found)
        if other and overall(other) != overall(found):
            words += f"; at the paper's rate {text.verdict_words(other)}"
        link = f'<a href="claims.html#{name.lower()}">{html.escape(f"{name}: {each.where}")}</a>'
        word, rest = overall(found), words.removeprefix(overall(found))
        verdict = f"<strong>{word}</strong>{html.escape(rest)}"
        items.append(f"<li>{html.escape(each.says)} <em>({link})</em> {verdict}.</li>")
    return Page([f"<ul>{''.join(items)}</ul>"])


def plane_exhibit(study: StudyCells, verdicts_too: bool = True) -> Page:
    """The frozen and the unfrozen pretrained arm over rate and budget (P-01, P-02) on every task of the study: figures,
    words and, if asked, verdicts; one line where nothing was run."""
    parts: list[Shown | str] = [paragraph(f"{text.whose(study.folder)} {text.design(study)}")]
    for cells in study.by_task(table("ours-plane")).values():
        frozen, unfrozen = cells["FP"], cells["UP"]
        if not (frozen.problem or unfrozen.problem):
            parts += [Picture(plane_figure(frozen, unfrozen), PLANE), paragraph(text.plane(frozen, unfrozen))]
            parts += [Picture(crossing_figure(unfrozen, frozen), CROSSING), paragraph(text.crossing(unfrozen, frozen))]
    if study.results and verdicts_too:
        asked = claims_of("ours-plane")
        tests = verdict_table(verdicts_on(asked, [study]), "Differences in points of test accuracy, paired by seed.")
        parts += [claim_list(asked, [study]), Folded("How the verdicts come about", tests)]
    return Page(parts)


def exhibit(name: str, study: StudyCells, task: str = "") -> Page:
    """One table of a paper, e.g. "lu-table-2", on all tasks of the study or on one.

    Where nothing that it is about was tried, or nothing of it was run yet, a line that says so and the printed numbers.
    """
    shown, own = table(name), claims_of(name)
    panels = {ran: cells for ran, cells in study.by_task(shown).items() if task in ("", ran)}
    done = any(not cell.problem for cells in panels.values() for cell in cells.values())
    parts: list[Shown | str] = ["<p>Claims, as we read them:</p>", claim_list(own, [study])] if own else []
    if not _compares(panels) and shown.kind != "attention":
        parts.append(paragraph("Nothing was run: not tested at this scale, for want of the other weights."))
    elif not done:
        parts.append(paragraph(f"Nothing was run yet. Planned: {text.what_was_run(panels)}"))
    elif shown.kind == "attention":
        parts += [part for cells in panels.values() for part in _attention(cells)]
    else:
        parts += [paragraph(f"What was run. {text.what_was_run(panels)}"), beside_paper(shown, study)]
        parts += _strips(shown, panels)
    if done and (found := [*verdicts_on(own, [study]), *at_papers_rate(own, [study])]):
        caption = f"Compared by seed: {QUANTITY[shown.kind]}."
        parts.append(Folded("How the verdicts come about", verdict_table(found, caption)))
    printed = printed_table(shown, without=list(panels) if done else [])
    if len(printed.frame.columns) > 1 and len(printed.frame):
        parts.append(Folded("What the paper prints for tasks that were not run here", printed))
    return Page(parts)


def _attention(cells: Mapping[str, Cell]) -> list[Shown | str]:
    """The first layer's attention on one task: a table and the maps."""
    name = title(next(iter(cells.values())).task)
    scores, maps = attention_table(cells, f"{name}: {ATTENTION}"), attention_maps(cells.values())
    if not maps:
        return [scores]
    words = [", ".join(f"{column} {value}" for column, value in row.items()) for row in scores.frame.to_dict("records")]
    alt = f"Attention of the first layer on {name}, percent on the needed tokens: {'; '.join(words)}."
    return [scores, Picture(attention_figure(maps, alt), f"{name}, {MAPS}")]


def _compares(panels: Mapping[str, Mapping[str, Cell]]) -> bool:
    """Whether the study runs a row that is not in nearly every table, or two rows on one task."""
    tried = [[row for row, cell in cells.items() if cell.spec] for cells in panels.values()]
    return any(len(rows) > 1 or set(rows) - set(USUAL) for rows in tried)


def _strips(shown: Table, panels: Mapping[str, Mapping[str, Cell]]) -> list[Picture]:
    """The table as a figure; nothing where no sweep has results."""
    if shown.kind == "steps":
        return [Picture(budget_figure(*panels.values()), f"{shown.title}. {CURVES}")]
    done = [seeds_of(cell) for cells in panels.values() for cell in cells.values() if not cell.problem]
    figure = strip_figure(pd.concat(done, ignore_index=True), QUANTITY[shown.kind])
    return [Picture(figure, f"{shown.title}. {DOTS}")]
