"""The source of the functions that decide a claim, read as text: `fpt.papers` is a room above `fpt.claims`."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

CLAIMS = Path(__file__).parents[1] / "claims"
FILES = ("rules.py", "by_rate.py", "steps.py", "planes.py", "losses.py")
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@cache
def source_of(kind: str) -> tuple[str, ...]:
    """The function that decides rules of this kind, and whatever of the same files it comes to use: names in order, no
    comments, no docstrings. Empty where there is no such function."""
    known = _known()
    found: set[str] = set()
    left = [kind] if kind in known else []
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [used for used in _names_in(known[name]) if used in known]
    return tuple(ast.unparse(known[name]) for name in sorted(found))


@cache
def _known() -> dict[str, Definition]:
    """Every function, class and constant of the files, by name."""
    known: dict[str, Definition] = {}
    for file in FILES:
        for node in ast.parse((CLAIMS / file).read_text(encoding="utf-8")).body:
            known |= {name: _bare(entry) for name, entry in _named(node)}
    return known


def _named(node: ast.stmt) -> Iterator[tuple[str, Definition]]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name, node
    elif isinstance(node, ast.Assign):
        yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node


def _bare(node: Definition) -> Definition:
    """Without docstrings and decorators."""
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            part.decorator_list = [each for each in part.decorator_list if not _is_entry(each)]
            if ast.get_docstring(part) is not None:
                part.body = part.body[1:] or [ast.Pass()]
    return node


def _is_entry(decorator: ast.expr) -> bool:
    """Whether a decorator enters a function among those that decide, which changes nothing in it."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id in ("decides", "kind")


def _names_in(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
