"""A table of a paper on a page: its claims with their verdicts, what was run, ours beside the printed, and a figure."""

from collections.abc import Iterable, Mapping, Sequence

from fpt.claims.verdicts import STRENGTH, Verdict, other_reading, overall, verdicts
from fpt.papers import claim, claims, table
from fpt.papers.schema import Table
from fpt.results.attention import attention_maps
from fpt.results.cells import Cell, StudyCells
from fpt.show import text
from fpt.show.figures import budget_figure
from fpt.show.html import Folded, Page, Picture, Shown, explained, paragraph
from fpt.show.numbers import layers_in_words, title
from fpt.show.planes import crossing_figure, plane_figure
from fpt.show.plot import arm_of, long_name
from fpt.show.printed import beside_paper, printed_table
from fpt.show.strips import attention_figure, strip_figure
from fpt.show.tables import attention_table, verdict_table

QUANTITY = {
    "accuracy": "test accuracy (%)",
    "steps": "steps to the goal",
    "gap": "training minus test accuracy (points)",
    "attention": "part of the attention (%)",
}
PAIRED = "Compared by seed; accuracies and attention in points. Matches and comparable allow for the claim's margin."
DOTS = "Each dot is one seed: above where the rate is tuned, below at the paper's rate. The bar is their mean."
CURVES = (
    "Test accuracy over the budget; each seed has the rate that the other seeds choose. The dotted line is the goal."
)
ATTENTION = (
    "percent of the first layer's attention that lies on the tokens that the answer needs: the mean over queries, "
    "heads and examples, with its 95% interval over seeds."
)
MAPS = (
    "tuned: mean attention over heads, examples and seeds. Darker means more, on one scale for all maps. Dots mark the "
    "tokens that the answer needs."
)
PLANE = (
    "Test accuracy of the {} arm minus that of the {} arm, in points, by learning rate and budget. Blue: the first is "
    "ahead. Orange: the second is ahead. Bold with a star: significant after correction for all pairs. "
    "Hatched: the 95% interval of the pair holds 0. Neither: significant for this pair alone."
)
CROSSING = (
    "The same two arms, tuned: at each budget, each seed has the rate that the other seeds choose. First: both arms. "
    "Second: their difference, one dot for each seed, with its 95% interval. +, -: significant after correction for "
    "all budgets. 0: not so. ?: depends on an arm at an end of its grid. Shaded: the arms may cross here."
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


def claim_list(names: Iterable[str], studies: Sequence[StudyCells], page: str = "claims.html") -> Page:
    """Each claim as a sentence, with its verdict as it says it, and at the paper's rate where it says tuned.

    It leads to its place on the page of all claims; where `page` is empty, to none.
    """
    items = []
    for name in names:
        each, found, other = claim(name), verdicts_on([name], studies), at_papers_rate([name], studies)
        words = text.verdict_words(found)
        if other and overall(other) != overall(found):
            words += f"; at the paper's rate {text.verdict_words(other)}"
        link = explained(f"{name}: {each.where}")
        link = f'<a href="{page}#{name.lower()}">{link}</a>' if page else link
        tested = "; ".join(dict.fromkeys(rule.part for rule in each.rule if rule.part))
        rest = explained(f"{words.removeprefix(overall(found))}.{tested and f' As tested: {tested}.'}")
        items.append(f"<li>{explained(each.says)} <em>({link})</em> <strong>{overall(found)}</strong>{rest}</li>")
    return Page([f"<ul>{''.join(items)}</ul>"])


def judged(names: Sequence[str], studies: Sequence[StudyCells], page: str = "claims.html") -> Page:
    """Claims with their verdicts over these studies and, folded, the tests behind them at both rates."""
    parts: list[Shown | str] = [claim_list(names, studies, page)]
    if any(study.results for study in studies):
        found = [*verdicts_on(names, studies), *at_papers_rate(names, studies)]
        parts.append(Folded("How the verdicts come about", verdict_table(found, PAIRED)))
    return Page(parts)


def finding(names: Iterable[str], studies: Sequence[StudyCells]) -> str:
    """One line: the claims by their verdict over these studies, as "Supported: L-05. Not run yet: L-01 and L-02."."""
    found = {name: overall(verdicts_on([name], studies)) for name in names}
    words = sorted(dict.fromkeys(found.values()), key=lambda word: STRENGTH.index(word) if word in STRENGTH else 0)
    claims_with = {word: [name for name in found if found[name] == word] for word in words}
    return " ".join(f"{word.capitalize()}: {text.listed(claims_with[word])}." for word in words)


def plane_exhibit(study: StudyCells) -> Page:
    """The frozen and the unfrozen pretrained arm over rate and budget (P-01, P-02) on every task of the study: figures,
    words and verdicts; one line where nothing was run."""
    parts: list[Shown | str] = [paragraph(f"{text.whose(study.folder)} {text.design(study)}")]
    for cells in study.by_task(table("ours-plane")).values():
        frozen, unfrozen = cells["FP"], cells["UP"]
        if not (frozen.problem or unfrozen.problem):
            parts += plane_of(frozen, unfrozen)
    if study.results:
        parts.append(judged(claims_of("ours-plane"), [study]))
    return Page(parts)


def plane_of(first: Cell, second: Cell) -> list[Shown | str]:
    """Two arms that were run, over rate and budget, at one rate for both; then each at its own, the second minus the
    first: figures and words."""
    return [
        plane_picture(first, second),
        paragraph(text.plane(first, second)),
        Picture(crossing_figure(second, first), CROSSING),
        paragraph(text.crossing(second, first)),
    ]


def plane_picture(first: Cell, second: Cell) -> Picture:
    """The plane of two arms with the caption that says what to see."""
    return Picture(plane_figure(first, second), PLANE.format(*(long_name(arm_of(cell)) for cell in (first, second))))


def exhibit(name: str, study: StudyCells, every: Sequence[StudyCells] = (), task: str = "") -> Page:
    """One table of a paper, e.g. "lu-table-2", on all tasks of the study or on one; its claims by the verdicts of
    `every` study, or of this one.

    Where nothing of it was tried or run yet, it is a line that says so, and the printed numbers.
    """
    shown, own = table(name), claims_of(name)
    panels = {ran: cells for ran, cells in study.by_task(shown).items() if task in ("", ran)}
    done = any(not cell.problem for cells in panels.values() for cell in cells.values())
    parts: list[Shown | str] = ["<p>The claims, as we read them:</p>", judged(own, every or [study])] if own else []
    if not _compares(panels) and shown.kind != "attention":
        parts.append(paragraph("Nothing was run: not tested at this scale, because the other weights are not here."))
    elif not done:
        parts.append(paragraph(f"Nothing was run yet. Planned: {text.what_was_run(panels)}"))
    elif shown.kind == "attention":
        parts += [part for cells in panels.values() for part in _attention(cells)]
    else:
        parts += [paragraph(f"What was run. {text.what_was_run(panels)}"), beside_paper(shown, study)]
        parts += _strips(shown, panels)
    printed = printed_table(shown, without=list(panels) if done else [])
    if len(printed.frame.columns) > 1 and len(printed.frame):
        parts.append(Folded("What the paper prints for tasks that were not run here", printed))
    return Page(parts)


def _attention(cells: Mapping[str, Cell]) -> list[Shown | str]:
    """The first layer's attention on one task: a table and the maps."""
    name = title(next(iter(cells.values())).task)
    scores = attention_table(cells, f"{name}: {ATTENTION}")
    if not attention_maps(cells.values()):
        return [scores]
    words = [", ".join(f"{column} {value}" for column, value in row.items()) for row in scores.frame.to_dict("records")]
    alt = f"Attention of the first layer on {name}, percent on the needed tokens: {'; '.join(words)}."
    return [scores, Picture(attention_figure(cells.values(), alt), f"{name}, {MAPS}")]


def _compares(panels: Mapping[str, Mapping[str, Cell]]) -> bool:
    """Whether the study runs a row of this table's own, or two rows on one task."""
    tried = [[row for row, cell in cells.items() if cell.spec] for cells in panels.values()]
    return any(len(rows) > 1 or set(rows) - set(USUAL) for rows in tried)


def _strips(shown: Table, panels: Mapping[str, Mapping[str, Cell]]) -> list[Picture]:
    """The table as a figure; nothing where no sweep has results."""
    done = [cell for cells in panels.values() for cell in cells.values() if not cell.problem]
    about = " ".join(filter(None, [f"{shown.title}.", layers_in_words(done)]))  # a paper's title may name other layers
    if shown.kind == "steps":
        return [Picture(budget_figure(*panels.values()), f"{about} {CURVES}")]
    return [Picture(strip_figure(done, QUANTITY[shown.kind]), f"{about} {DOTS}")]
