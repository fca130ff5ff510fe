"""What the papers say: one YAML file a paper, with its rows, tables, printed numbers and claims with their rules."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from fpt.documents import line_of, read_model
from fpt.errors import SpecError, check_known, unknown
from fpt.papers.schema import ALONE, PAIRS, Claim, Paper, Rule, Table

FOLDERS = [Path(__file__).parent]  # every .yaml file in them is a paper


def load_paper(path: Path, label: str = "") -> Paper:
    """Read and check one paper. Raises SpecError with file and line for everything that does not fit together."""
    label = label or path.name
    paper, node = read_model(Paper, path, label)
    for place, message in _contradictions(paper):
        raise SpecError(f"{label}, line {line_of(node, place)}: {message}")
    return paper


def _contradictions(paper: Paper) -> Iterator[tuple[list[Any], str]]:
    """(place, message) of every reference to what does not exist, and every row that nothing explains."""
    for name, table in paper.tables.items():
        for row, entry in table.rows.items():
            place = ["tables", name, "rows", row]
            if row not in paper.rows:
                yield place, str(unknown("row", row, paper.rows))
            if not (entry.printed or entry.ours or entry.drawn):
                yield place, f"row {row!r}: the paper prints nothing there; say `ours: why`, or `drawn: [tasks]`"
            elif not (table.any_task or entry.printed or entry.drawn or entry.tasks):
                yield place, f"row {row!r} stands on no task of the paper: say on which `tasks` it is run"
            for task in {*entry.printed, *entry.drawn, *entry.tasks} - set(paper.tasks):
                yield place, str(unknown("task", task, paper.tasks))
        if table.until != "threshold" and table.until not in table.rows:
            yield ["tables", name, "until"], str(unknown("row", table.until, table.rows))
    for name, claim in paper.claims.items():
        for rule in claim.rule:
            yield from ((["claims", name, "rule"], message) for message in _rule_contradictions(paper, rule))


def _rule_contradictions(paper: Paper, rule: Rule) -> Iterator[str]:
    yield from (str(unknown("task", task, paper.tasks)) for task in rule.tasks if task not in paper.tasks)
    if rule.kind == "baseline":
        if not (rule.tasks and rule.level):
            yield "a baseline names its tasks and, as `level`, its score"
        return
    if rule.table not in paper.tables:
        yield str(unknown("table", rule.table, paper.tables))
        return
    rows = paper.tables[rule.table].rows
    yield from (str(unknown(f"row of {rule.table}", row, rows)) for row in rule.rows if row not in rows)
    needed = 1 if rule.kind in ALONE else 2
    named = f"the rule names {', '.join(rule.rows) or 'no row'}"
    if len(set(rule.rows)) < needed:
        yield f"{rule.kind} needs {needed} different rows; {named}"
    if rule.kind in PAIRS and len(rule.rows) > 2:
        yield f"{rule.kind} compares two rows; {named}"
    if rule.kind == "reaches" and isinstance(rule.level, str):
        yield f"reaches needs a level in percent, level = {rule.level!r} is none"


@cache
def papers() -> dict[str, Paper]:
    """Every paper by name, in the order in which they are shown. Raises SpecError for a name that stands in two."""
    paths = [path for folder in FOLDERS for path in sorted(folder.glob("*.yaml"))]
    found = sorted((load_paper(path, f"fpt/papers/{path.name}") for path in paths), key=lambda paper: paper.place)
    owners: dict[str, str] = {}
    for paper in found:
        for name in (paper.name, *paper.tables, *paper.claims):
            if name in owners:
                raise SpecError(f"{name!r} stands in two papers, {owners[name]!r} and {paper.title!r}: rename one")
            owners[name] = paper.title
    return {paper.name: paper for paper in found}


def paper_of(name: str, source: str = "") -> Paper:
    """One paper by name. Raises SpecError for an unknown one."""
    check_known("paper", name, papers(), source)
    return papers()[name]


def claims() -> dict[str, Claim]:
    """Every claim of every paper by id."""
    return {name: claim for paper in papers().values() for name, claim in paper.claims.items()}


def claim(name: str, source: str = "") -> Claim:
    """One claim by id. Raises SpecError for an unknown id."""
    check_known("claim", name, claims(), source)
    return claims()[name]


def table(name: str, source: str = "") -> Table:
    """One table by id, e.g. lu-table-2. Raises SpecError for an unknown id."""
    tables = {key: each for paper in papers().values() for key, each in paper.tables.items()}
    check_known("table", name, tables, source)
    return tables[name]
