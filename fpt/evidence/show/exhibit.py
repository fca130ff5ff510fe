"""A table of a paper on a page: its claims with their verdicts, what was run, ours beside the printed, and a figure."""

import html
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from fpt.evidence.attention import attention_maps
from fpt.evidence.cells import AT_PAPERS_RATE, TUNED, Cell, StudyCells
from fpt.evidence.show import text
from fpt.evidence.show.beside import beside_paper, printed_table
from fpt.evidence.show.html import Folded, Page, Picture, Shown, paragraph
from fpt.evidence.show.numbers import arm_of, title
from fpt.evidence.show.strips import attention_figure, strip_figure
from fpt.evidence.show.tables import attention_table, verdict_table
from fpt.evidence.verdicts import Verdict, other_reading, overall, verdicts
from fpt.papers import claim, claims, table

KEY = (
    "<strong>How to read this page.</strong> FPT is the frozen pretrained transformer (FP on the other pages), random "
    "the frozen random one (FR), full the one that trains in full from random weights (UR). Two numbers with a stroke: "
    "tuned, each row at its own best rate / at the rate that the paper prints. In the figures every dot is a seed, "
    "filled where tuned, open at the paper's rate, and the bar is their mean."
)
VERDICTS = {
    "accuracy": "Differences in points of test accuracy, paired by seed.",
    "steps": "How many times the steps of the first the second takes, paired by seed.",
    "gap": "Training minus test accuracy in points, by seed.",
    "attention": "Differences in points of attention, paired by seed.",
}
ATTENTION = (
    "{}: percent of the first layer's attention that lies on the tokens that the answer needs, mean over queries, "
    "heads and examples; 95% interval over seeds."
)
MAPS = {
    "bit-xor": "tuned; darker is more, on one scale. The dots mark the two bits that an answer needs: look whether "
    "they lie on the dark cells.",
    "bit-memory": "tuned; darker is more, on one scale. Every example's strings are put in order: first the one that "
    "matches (dots), then the mean of the others, then the query itself. If position decided, the second block would "
    "look like the first.",
}
USUAL = ("FPT", "random")  # rows of nearly every table of Lu et al.
CROSSES = "The bar is the median here; a cross is a seed that never reached the goal, drawn at the last step."


def key(study: StudyCells) -> Page:
    """What holds for a page of tables: whose results, how they were made, and how to read them."""
    return Page([paragraph(f"{text.whose(study.folder)} {text.stages(study)}"), f"<p>{KEY}</p>"])


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


def claim_list(names: Iterable[str], studies: Sequence[StudyCells], intervals: bool = False) -> Page:
    """Each claim as a sentence, with its verdict as it says it, and at the paper's rate where it says tuned.

    `intervals`: with every comparison behind it.
    """
    items = []
    for name in names:
        each, found, other = claim(name), verdicts_on([name], studies), at_papers_rate([name], studies)
        words = overall(found)
        if other and overall(other) != words:
            words += f"; at the paper's rate {overall(other)}"
        where = f"{each.id}: {each.where}"
        more = html.escape(" ".join(text.verdict_sentence(verdict) for verdict in found)) if intervals else ""
        link = f'<em>(<a href="claims.html#{each.id.lower()}">{html.escape(where)}</a>)</em>'
        items.append(f"<li>{html.escape(each.says)} {link} <strong>{html.escape(words)}</strong>. {more}</li>")
    return Page([f"<ul>{''.join(items)}</ul>"])


def exhibit(name: str, study: StudyCells) -> Page:
    """One table of a paper, e.g. "lu-table-2". Where nothing that it is about was tried, its numbers only."""
    shown, own = table(name), claims_of(name)
    panels = study.by_task(shown)
    parts: list[Shown | str] = ["<p>Claims, as we read them:</p>", claim_list(own, [study])] if own else []
    printed = printed_table(shown, without=list(panels))
    if shown.kind == "attention":
        parts += _attention(panels)
        parts.append(_behind(own, study, shown.kind))
    elif _compares(panels):
        parts += [paragraph(text.what_was_run(panels), "What was run."), beside_paper(shown, [study])]
        parts += _strips(name, panels)
        parts.append(_behind(own, study, shown.kind))
    else:
        parts.append(paragraph("Nothing was run: not tested at this scale, for want of the other weights."))
    if len(printed.frame.columns) > 1 and len(printed.frame):
        parts.append(Folded("What the paper prints for tasks that were not run here", printed))
    return Page(parts)


def _behind(own: Sequence[str], study: StudyCells, kind: str) -> Folded:
    """Every comparison, as the claims say it and at the other reading."""
    found = [*verdicts_on(own, [study]), *at_papers_rate(own, [study])]
    return Folded("How the verdicts come about", verdict_table(found, VERDICTS[kind]))


def _attention(panels: Mapping[str, Mapping[str, Cell]]) -> list[Shown | str]:
    """The first layer's attention: a table and the maps, a task after the other."""
    parts: list[Shown | str] = []
    for task, cells in panels.items():
        name = title(task)
        parts.append(attention_table(cells, ATTENTION.format(name)))
        maps = attention_maps(cells.values())
        words = text.attention_words(cell for cell in cells.values() if cell.label in maps)
        alt = f"Attention of the first layer on {name}, mean over heads, examples and seeds. {words}"
        if maps:
            parts.append(Picture(attention_figure(maps, alt), f"{name}, {MAPS[task]} {words}"))
    return parts


def _compares(panels: Mapping[str, Mapping[str, Cell]]) -> bool:
    """Whether the study runs a row that is not in nearly every table, or two rows on one task."""
    tried = [[row for row, cell in cells.items() if cell.spec] for cells in panels.values()]
    return any(len(rows) > 1 or set(rows) - set(USUAL) for rows in tried)


def _strips(name: str, panels: Mapping[str, Mapping[str, Cell]]) -> list[Shown | str]:
    """The table as a figure; nothing where no sweep has results."""
    shown = table(name)
    done = {task: {row: cell for row, cell in cells.items() if not cell.problem} for task, cells in panels.items()}
    done = {task: cells for task, cells in done.items() if cells}
    if not done:
        return []
    frame = pd.concat([strip(cell) for cells in done.values() for cell in cells.values()], ignore_index=True)
    words, steps = text.figure_words(done, shown), shown.kind == "steps"
    figure = strip_figure(frame, text.QUANTITY[shown.kind], words, steps)
    return [Picture(figure, f"{shown.title}. {text.what_to_see(done)}{f' {CROSSES}' if steps else ''}")]


def strip(cell: Cell) -> pd.DataFrame:
    """A cell's seeds at both readings, a row each: what `strip_figure` draws."""
    frames = []
    for at in (TUNED, AT_PAPERS_RATE):
        values = cell.values(at).dropna()
        steps = cell.table.kind == "steps"
        last = float(cell.spec.steps) if cell.spec else 0.0
        shown = values.clip(upper=last) if steps else 100 * values
        frames.append(pd.DataFrame({"value": shown, "reached": values.abs() < float("inf"), "tuned": at == TUNED}))
    return pd.concat(frames).assign(task=title(cell.task), row=cell.label, arm=arm_of(cell))
