"""What the papers say: one YAML file per paper, with its rows, tables, printed numbers and claims with their rules."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from fpt.documents import line_of, read_document, read_model
from fpt.errors import SpecError, check_known, unknown
from fpt.papers.schema import ALONE, ARITHMETIC, ATTENDS, BASELINES, PAIRS, Claim, Number, Paper, Printed, Rule, Table

MOST_PRIMARY = 6
GAP = ("train", "test")  # the places of what a gap prints
FOLDERS = [Path(__file__).parent]  # every .yaml file in them is a paper


def load_paper(path: Path, label: str = "") -> Paper:
    """Read and check one paper. Raises SpecError with file and line for everything in it that does not fit together;
    `papers` does so for the numbers that claims compare, which may stand in another paper."""
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
                yield place, f"row {row!r} stands on no task of the paper: name the `tasks` on which it is run"
            for task in {*entry.printed, *entry.drawn, *entry.tasks} - set(paper.tasks):
                yield place, str(unknown("task", task, paper.tasks))
        if table.until != "threshold" and table.until not in table.rows:
            yield ["tables", name, "until"], str(unknown("row", table.until, table.rows))
    for name, claim in paper.claims.items():
        if claim.arithmetic and claim.arithmetic not in ARITHMETIC:
            yield ["claims", name, "arithmetic"], str(unknown("function", claim.arithmetic, ARITHMETIC))
        for rule in claim.rule:
            yield from ((["claims", name, "rule"], message) for message in _rule_contradictions(paper, claim, rule))


def _rule_contradictions(paper: Paper, claim: Claim, rule: Rule) -> Iterator[str]:
    yield from (str(unknown("task", task, paper.tasks)) for task in rule.tasks if task not in paper.tasks)
    names = {"attends": ATTENDS, "baseline": BASELINES}.get(rule.kind)
    if names and rule.level not in names:
        yield str(unknown(f"level of {rule.kind}", rule.level, names))
    if rule.to <= rule.by:
        yield f"to = {rule.to:g} must be above by = {rule.by:g}"
    if rule.kind == "baseline":
        if not rule.tasks:
            yield "a baseline names its tasks"
        if not isinstance(claim.numbers, dict) or "accuracy" not in claim.numbers:
            yield f"a baseline is compared with an accuracy among the claim's numbers; numbers = {claim.numbers!r}"
        return
    if rule.table not in paper.tables:
        yield str(unknown("table", rule.table, paper.tables))
        return
    rows = paper.tables[rule.table].rows
    yield from (str(unknown(f"row of {rule.table}", row, rows)) for row in rule.rows if row not in rows)
    needed = 1 if rule.kind in ALONE else 3 if rule.kind == "jump" else 2
    named = f"the rule names {', '.join(rule.rows) or 'no row'}"
    if len(set(rule.rows)) < needed:
        yield f"{rule.kind} needs {needed} different rows; {named}"
    if rule.kind in PAIRS and len(rule.rows) > 2:
        yield f"{rule.kind} compares two rows; {named}"
    if rule.kind == "larger_difference" and len(rule.rows) != 4:
        yield f"{rule.kind} compares four rows; {named}"
    if rule.kind == "reaches" and isinstance(rule.level, str):
        yield f"reaches needs a level in percent, level = {rule.level!r} is none"
    if rule.kind == "drop" and isinstance(rule.level, str) and rule.level:
        yield f"drop leads to a learning rate, level = {rule.level!r} is none"


def _unprinted(paper: Paper, found: Sequence[Paper]) -> Iterator[tuple[list[Any], str]]:
    """(place, message) of every number that a claim compares with another and that none of the papers prints."""
    known = {name: each for other in found for name, each in (other.claims | other.tables).items()}
    for name, claim in paper.claims.items():
        for number, compared in enumerate(claim.printed):
            for place, task in product(compared.of, compared.tasks):
                try:
                    check_known("claim or table", place.claim or place.table, known)
                    printed_at(place, known[place.claim or place.table], task)
                except SpecError as error:
                    yield ["claims", name, "printed", number], str(error)


@cache
def papers() -> dict[str, Paper]:
    """Every paper by name, in the order in which they are shown. Raises SpecError for a name that stands in two, and
    for a number that a claim compares and that none of them prints."""
    paths = [path for folder in FOLDERS for path in sorted(folder.glob("*.yaml"))]
    read = [(load_paper(path, label), path, label) for path in paths for label in [f"fpt/papers/{path.name}"]]
    found = sorted((paper for paper, *_ in read), key=lambda paper: paper.place)
    owners: dict[str, str] = {}
    for paper in found:
        for name in (paper.name, *paper.tables, *paper.claims):
            if name in owners:
                raise SpecError(f"{name!r} stands in two papers, {owners[name]!r} and {paper.title!r}: rename one")
            owners[name] = paper.title
    primary = [name for paper in found for name, claim in paper.claims.items() if claim.primary]
    if len(primary) > MOST_PRIMARY:
        raise SpecError(f"primary: {', '.join(primary)}; all papers together have at most {MOST_PRIMARY} such claims")
    for paper, path, label in read:
        for place, message in _unprinted(paper, found):
            raise SpecError(f"{label}, line {line_of(read_document(path, label)[1], place)}: {message}")
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


def rule_hash(claim: Claim) -> str:
    """Twelve hex digits over what decides a claim: its rules, the tables that they read, what the rows there mean and
    print, and the paper's rates. Not what is said of a rule (`part`)."""
    parts: list[Any] = [[rule.model_dump(mode="json", exclude={"part"}), *_read_by(rule)] for rule in claim.rule]
    text = json.dumps([parts, claim.numbers if not claim.rule or claim.rule[0].kind == "baseline" else None])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _read_by(rule: Rule) -> Iterator[Any]:
    """The table of a rule and the rows that it names, as plain values."""
    if not rule.table:
        return
    read = table(rule.table)
    paper = paper_of(read.paper)
    yield [read.kind, read.until, paper.defaults, paper.rates]
    for row in dict.fromkeys([*rule.rows, *([read.until] if read.until in read.rows else [])]):
        yield [row, paper.rows[row].fields, read.rows[row].model_dump(mode="json", exclude={"ours", "reading"})]


def table(name: str) -> Table:
    """One table by id, e.g. lu-table-2. Raises SpecError for an unknown id."""
    tables = {key: each for paper in papers().values() for key, each in paper.tables.items()}
    check_known("table", name, tables)
    return tables[name]


def printed_at(place: Number, source: Table | Claim, task: str) -> list[float]:
    """The number printed there for a task, several where a claim has them. Raises SpecError where there is none."""
    try:
        if isinstance(source, Claim):
            found = source.numbers[place.number]
            return [float(each) for each in (found if isinstance(found, list) else [found])]
        for row in (place.row, *place.minus):
            check_known(f"row of {source.id}", row, source.rows)
        first, *others = (_in_cell(source.rows[row].printed[task], place.of) for row in (place.row, *place.minus))
        return [round(first - max(others, default=0), 6)]
    except (LookupError, TypeError, ValueError):
        given = place.model_dump(exclude_defaults=True)
        raise SpecError(f"no number is printed on {task or 'no task'} at {given}") from None


def _in_cell(cell: Printed, of: str) -> Any:
    value: Any = cell.value
    return value[GAP.index(of)] if of in GAP else getattr(cell, of)
