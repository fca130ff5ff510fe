"""What the papers say: one YAML file per paper, with its rows, tables, printed numbers and claims with their rules.

Ours lie beside this file, a reader's own in papers/ of the workspace. They are data: nothing in them is executed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fpt.documents import line_of, read_model
from fpt.errors import SpecError, check_known, unknown
from fpt.files import State, state_of, workspace_around
from fpt.papers.schema import (
    ANY_BOUND,
    BASELINES,
    BOUNDS,
    FUNCTIONS,
    GAP,
    MANY,
    Claim,
    Fields,
    Finding,
    Number,
    Paper,
    PaperTable,
    Rule,
)

FOLDERS = [Path(__file__).parent]  # every .yaml file in them is a paper
OWN = "papers"  # of a workspace
Files = tuple[tuple[Path, State], ...]  # each with its state


def load_paper(path: Path, label: str = "") -> Paper:
    """Read and check one paper. Raises SpecError with file and line for everything that does not fit together, but for
    `printed` and `arithmetic`, which are read when the claim is decided: they may name what is in another paper."""
    label = label or path.name
    paper, node = read_model(Paper, path, label)
    for place, message in _contradictions(paper):
        raise SpecError(f"{label}, line {line_of(node, place)}: {message}")
    return paper.model_copy(update={"source": label})


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
        for rule in claim.rule:
            place = ["claims", name, "rule"]
            yield from ((place, message) for message in _rule_contradictions(paper, rule, claim.numbers))


def _rule_contradictions(paper: Paper, rule: Rule, numbers: Any = None) -> Iterator[str]:
    yield from (str(unknown("task", task, paper.tasks)) for task in rule.tasks if task not in paper.tasks)
    if rule.has_function and rule.kind not in FUNCTIONS:
        yield str(unknown("function of a rule", rule.kind, FUNCTIONS))
    if rule.kind == "baseline" and rule.level not in BASELINES:
        yield str(unknown("level of baseline", rule.level, BASELINES))
    read = BOUNDS.get(rule.kind, ANY_BOUND)
    yield from (
        f"{rule.kind} does not read {bound}, but {' and '.join(read)}"
        for bound in ANY_BOUND
        if bound in rule.model_fields_set and bound not in read
    )
    if rule.to <= rule.by:
        yield f"to = {rule.to:g} must be above by = {rule.by:g}"
    if rule.kind == "baseline":
        if not rule.tasks:
            yield "a baseline names its tasks"
        if not isinstance(numbers, dict) or "accuracy" not in numbers:
            yield f"a baseline is compared with an accuracy among the claim's numbers; numbers = {numbers!r}"
        return
    if rule.table not in paper.tables:
        yield str(unknown("table", rule.table, paper.tables))
        return
    rows = paper.tables[rule.table].rows
    yield from (str(unknown(f"row of {rule.table}", row, rows)) for row in rule.rows if row not in rows)
    yield from _function_contradictions(rule) if rule.has_function else _too_few(rule)


def _too_few(rule: Rule) -> Iterator[str]:
    needed = 1 if rule.kind == "near" else 2
    if len(set(rule.rows)) < needed:
        yield f"{rule.kind} needs {needed} different rows; the rule names {', '.join(rule.rows) or 'no row'}"


def _function_contradictions(rule: Rule) -> Iterator[str]:
    least, most = FUNCTIONS.get(rule.kind, (1, MANY))
    if not least <= len(rule.rows) <= most:  # some read a row twice
        needed = f"{least} rows" if least == most else f"{least} rows or more"
        yield f"{rule.kind} needs {needed}; the rule names {', '.join(rule.rows) or 'no row'}"
    if rule.kind == "reaches" and isinstance(rule.level, str):
        yield f"reaches needs a level, in percent; level = {rule.level!r}"
    if not rule.words:
        yield f"a rule that the function {rule.kind} decides says what it asks: words"


def papers() -> dict[str, Paper]:
    """Every paper by name, ours and those of the workspace around the working directory, in the order in which they are
    shown. Each file is read once for as long as it stays as it is. Raises SpecError for a name that stands in two."""
    return _papers(tuple(file for folder in FOLDERS for file in _files(folder)), own_files())


def own_files() -> Files:
    """The papers of the workspace, each with its state."""
    root = workspace_around(Path.cwd())
    return _files(root / OWN) if root else ()


def arms_of_papers() -> dict[str, tuple[Fields, str]]:
    """By name, the arms that papers of the workspace define, and the file that says so. Raises SpecError for a name
    that stands in two."""
    found: dict[str, tuple[Fields, str]] = {}
    for path, state in own_files():
        paper = _read(path, f"{OWN}/{path.name}", state)
        for name, fields in paper.arms.items():
            if name in found:
                raise SpecError(f"arm {name!r} stands in two papers, {found[name][1]} and {paper.source}: rename one")
            found[name] = (fields, paper.source)
    return found


def _files(folder: Path) -> Files:
    return tuple((path, state_of(path)) for path in sorted(folder.glob("*.yaml")))


@cache
def _read(path: Path, label: str, state: State) -> Paper:
    return load_paper(path, label)


@cache
def _papers(ours: Files, own: Files) -> dict[str, Paper]:
    read = [_read(path, f"fpt/papers/{path.name}", state) for path, state in ours]
    read += [_read(path, f"{OWN}/{path.name}", state) for path, state in own]
    found = sorted(read, key=lambda paper: paper.place)
    owners: dict[str, str] = {}
    for paper in found:
        for name in (paper.name, *paper.tables, *paper.claims, *paper.findings):
            if name in owners:
                raise SpecError(f"{name!r} stands in two papers, {owners[name]!r} and {paper.title!r}: rename one")
            owners[name] = paper.title
    by_name = {paper.name: paper for paper in found}
    for message in _faults_of_findings(by_name):
        raise SpecError(message)
    return by_name


def _faults_of_findings(known: Mapping[str, Paper]) -> Iterator[str]:
    """Every finding that names what does not exist or a claim that another finding has, and every claim that no finding
    has: pages show claims by their findings."""
    owners: dict[str, str] = {}
    for paper in known.values():
        for finding in paper.findings.values():
            source = f"{paper.source}, finding {finding.id}"
            yield from (f"{source}: {message}" for message in _faults_of_finding(finding, known))
            for name in finding.claims:
                if owners.setdefault(name, finding.id) != finding.id:
                    yield f"{source}: claim {name} is in the finding {owners[name]} already"
    for paper in known.values():
        for name in paper.claims:
            if name not in owners:
                yield f"{paper.source}: claim {name} is in no finding; add it to the `claims` of one"


def _faults_of_finding(finding: Finding, known: Mapping[str, Paper]) -> Iterator[str]:
    """The first is to be refused: what follows takes for granted that there is what comes before."""
    tables = {name: table for paper in known.values() for name, table in paper.tables.items()}
    claims = {name: claim for paper in known.values() for name, claim in paper.claims.items()}
    for name in [*finding.claims, *([finding.by] if finding.by else [])]:
        if name not in claims:
            yield str(unknown("claim", name, claims))
    if finding.by and not claims[finding.by].rule:
        yield f"by {finding.by}, a claim without a rule, which no run answers; name one that has a rule"
    for name in [rule.table for rule in finding.rule] + [place.table for place in finding.printed]:
        if name not in tables:
            yield str(unknown("table", name, tables))
    for place in finding.printed:
        for row in {place.row, *place.minus} - {*tables[place.table].rows}:
            yield str(unknown(f"row of {place.table}", row, tables[place.table].rows))
    for rule in finding.rule:
        yield from _rule_contradictions(known[tables[rule.table].paper], rule)


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


def findings() -> dict[str, Finding]:
    """Every finding of every paper by id, in the order in which a reader meets them."""
    return {name: finding for paper in papers().values() for name, finding in paper.findings.items()}


def finding(name: str, source: str = "") -> Finding:
    """One finding by id. Raises SpecError for an unknown id."""
    check_known("finding", name, findings(), source)
    return findings()[name]


def rules_of(finding: Finding) -> tuple[Rule, ...]:
    """The rules of the contrast that answers a finding: its own, or those of the claim that it names; none where no
    run answers it."""
    return claim(finding.by).rule if finding.by else finding.rule


def printed_ranges(finding: Finding) -> dict[str, tuple[float, float]]:
    """By paper: the least and the largest number, over its tasks, that it prints for the contrast of a finding, in
    points of accuracy."""
    found: dict[str, list[float]] = {}
    for place in finding.printed:
        read = table(place.table)
        values = found.setdefault(read.paper, [])
        cells = [read.rows[row].printed for row in (place.row, *place.minus)]
        for task in cells[0]:
            if all(task in each and isinstance(each[task].value, int | float) for each in cells):
                values.append(printed_number(place, task))
    return {paper: (min(values), max(values)) for paper, values in found.items() if values}


def printed_number(place: Number, task: str) -> float:
    """What a table prints there for a task, less the best of `minus`. Raises SpecError where a row has none."""
    printed = {row: entry.printed[task] for row, entry in table(place.table).rows.items() if task in entry.printed}
    for row in (place.row, *place.minus):
        check_known(f"row of {place.table} on {task}", row, printed)

    def number(row: str) -> float:
        cell = printed[row]
        value: Any = cell.sem if place.of == "sem" else cell.value
        if place.of in GAP:
            value = value[GAP.index(place.of)] if isinstance(value, tuple) else None
        if not isinstance(value, int | float):
            raise SpecError(f"{place.table}, {row} on {task}: {place.of} is {value!r}, and a number is needed")
        return value

    return float(round(number(place.row) - max(map(number, place.minus), default=0.0), 6))


def rule_hash(claim: Claim) -> str:
    """Twelve hex digits over what decides a claim: its rules, the tables that they read, what the rows there mean and
    print, and the paper's rates. Not what is said of a rule (`part`, `words`), and not the functions that evaluate it:
    a record has their commit."""
    parts: list[Any] = [
        [rule.model_dump(mode="json", exclude={"part", "words"}), *_read_by(rule)] for rule in claim.rule
    ]
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
        yield [row, paper.rows[row].fields, read.rows[row].model_dump(mode="json", exclude={"ours"})]


def table(name: str) -> PaperTable:
    """One table by id, e.g. lu-table-2. Raises SpecError for an unknown id."""
    tables = {key: each for paper in papers().values() for key, each in paper.tables.items()}
    check_known("table", name, tables)
    return tables[name]
