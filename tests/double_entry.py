"""Double entry: the numbers of every claim as first transcribed, against what `fpt/papers` states now.

`tests/data/claims.yaml` maps a claim's id to its numbers, nested by names and tasks in any order. The same numbers
must come out of the claim's `numbers` and of the cells to which its `reports` point, none more and none fewer.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fpt.documents import read_document
from fpt.papers.schema import Claim, Paper, Printed

DATA = Path(__file__).parent / "data" / "claims.yaml"
GAP = ("train", "test", "difference")
Names = frozenset[str]  # the names on the way to a number
Column = Mapping[str, Printed | None]  # what a table prints on one task, by row


def transcribed() -> dict[str, Any]:
    """The numbers of each claim by its id; None: it has none."""
    content: dict[str, Any] = read_document(DATA, DATA.name)[0]
    return content


def all_differences(paper: Paper, papers: Mapping[str, Paper]) -> list[str]:
    """One line for each number of `paper` that is not the same in both places; `papers` hold all tables."""
    first = transcribed()
    lines = [f"{name}: was never transcribed" for name in paper.claims if name not in first]
    return lines + [
        line
        for name, claim in paper.claims.items()
        if name in first
        for line in differences(claim, first[name], papers)
    ]


def differences(claim: Claim, reported: Any, papers: Mapping[str, Paper]) -> list[str]:
    """One line for each number of a claim that is not the same in both places."""
    first, now = dict(_leaves(reported)), _stated(claim, papers)
    lines = []
    for names, value in first.items():
        # a word transcribed for a whole row holds for each of its tasks
        found = {n: v for n, v in now.items() if n == names or (isinstance(value, str) and names < n)}
        lines += [] if found else [f"{claim.id}, {_path(names)}: {value!r} was transcribed and is not stated"]
        for known, stated in found.items():
            if not _same(value, stated):
                lines.append(f"{claim.id}, {_path(known)}: {stated!r} was transcribed as {value!r}")
        now = {n: v for n, v in now.items() if n not in found}
    # a claim that was transcribed without numbers may state some
    return lines + [f"{claim.id}, {_path(n)}: {v!r} was not transcribed" for n, v in now.items() if first]


def _same(value: Any, stated: Any) -> bool:
    """A transcribed number may lack its standard error, or have it second in a list."""
    if isinstance(stated, dict):
        pair = [stated["mean"], stated["sem"]]
        return bool(value in (stated, pair) if isinstance(value, dict | list) else value == pair[0])
    if isinstance(stated, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(stated)
            and all(_same(a, b) for a, b in zip(value, stated, strict=True))
        )
    return bool(value == stated)


def _leaves(value: Any, names: Names = frozenset()) -> list[tuple[Names, Any]]:
    """Every number with its names. A list is one, and so is a mean with its standard error."""
    if value is None:
        return []
    if not isinstance(value, dict) or set(value) == {"mean", "sem"}:
        return [(names, value)]
    return [leaf for key, part in value.items() for leaf in _leaves(part, names | {_name(key)})]


def _stated(claim: Claim, papers: Mapping[str, Paper]) -> dict[Names, Any]:
    leaves = [*_leaves(claim.numbers), *_resolved(claim.reports, frozenset(), claim, papers)]
    stated = dict(leaves)
    assert len(stated) == len(leaves), f"{claim.id}: a number is stated twice"
    return stated


def _resolved(value: Any, names: Names, claim: Claim, papers: Mapping[str, Paper]) -> list[tuple[Names, Any]]:
    """What `reports` points to, by names: a reference without `task` gives a number for each task of its row."""
    if isinstance(value, list):
        return [(names, [leaf for part in value for _, leaf in _resolved(part, names, claim, papers)])]
    if "rates" in value:
        return [(names, papers[claim.paper].rates[value["rates"]])]
    if isinstance(field := value.get("tasks"), str):
        return [(names | {task}, fields[field]) for task, fields in papers[claim.paper].tasks.items()]
    if "table" not in value:
        parts = [_resolved(part, names | {_name(key)}, claim, papers) for key, part in value.items()]
        return [leaf for part in parts for leaf in part]
    rows = next(paper.tables[value["table"]] for paper in papers.values() if value["table"] in paper.tables).rows

    def column(task: str) -> Column:
        return {name: row.printed.get(task) for name, row in rows.items()}

    if "mark" in value:
        return [(names, _marked(value, column(value["task"]), claim))]
    if "task" in value:
        return [(names, _number(value, column(value["task"])))]
    first = value["row"] if isinstance(value["row"], str) else value["row"][0]
    tasks = value.get("tasks", rows[first].printed)
    return [(names | {task}, _number(value, column(task))) for task in tasks]


def _marked(reference: dict[str, Any], column: Column, claim: Claim) -> str:
    """`NAME TASK` of a cell that carries the mark; NAME is what the claim's `reports` call its row."""
    cell = column[reference["row"]]
    assert cell is not None, f"{claim.id}: nothing is printed at {reference}"
    assert cell.mark == reference["mark"], f"{claim.id}: {reference} has another mark"
    named = {part["row"]: name for name, part in claim.reports.items() if isinstance(part, dict) and "row" in part}
    return f"{named[reference['row']]} {reference['task']}"


def _number(reference: dict[str, Any], column: Column) -> Any:
    """What a reference means on one task: a printed number, or a difference or ratio of two."""
    of = reference.get("of")
    value = _best(reference["row"], column, of)
    if "minus" in reference:
        return round(value - _best(reference["minus"], column, of), 6)
    if "over" in reference:
        return round(value / _best(reference["over"], column, of), 6)
    cell = column[reference["row"]] if isinstance(reference["row"], str) else None
    return value if cell is None or cell.sem is None else {"mean": value, "sem": cell.sem}


def _best(rows: str | list[str], column: Column, of: str | None) -> Any:
    """The number of a row, or the largest of several."""
    cells = [column[row] for row in ([rows] if isinstance(rows, str) else rows)]
    values = [cell.value for cell in cells if cell is not None]
    assert len(values) == len(cells), f"{rows}: the table prints nothing there"
    picked: list[Any] = [value[GAP.index(of)] if of and isinstance(value, tuple) else value for value in values]
    return picked[0] if len(picked) == 1 else max(picked)


def _name(key: object) -> str:
    return str(key).replace("_", "-")


def _path(names: Names) -> str:
    return ", ".join(sorted(names)) or "its number"
