"""Guards: the statements that hold a page's sentences to the results, checked without building the book.

A guard in a code cell is `leads(NAME=VALUE)`, `trails(NAME=VALUE)` or `open_(NAME=VALUE)` (fpt.show.said): it holds the
sentences that show the number, and those of whose phrases stand before it. What is no interval has
`assert CONDITION, "a phrase of the page"`.
`python -m fpt.show.guards book/*.md` runs the cells of each page and lists every sentence whose guard no longer holds,
and every phrase and number of a guard that no longer stands on its page.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from fpt.errors import FptError
from fpt.show.said import GuardError, collected

CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = re.compile(r"\A(?:---\n.*?\n---\n|(?::[\w-]+:[^\n]*\n)*)", re.DOTALL)
# What a cell may raise beside a guard, so that one page which cannot be run does not hide what is broken on others.
RAISED = (FptError, NameError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
ROLE = re.compile(r"\{glue:text\}`([^`]+)`")
# Where a paragraph, a heading, an item or a row of a table begins; and within it a sentence.
BLOCK = re.compile(r"\n\s*\n|^#.*\n|\n(?=\||[-*] |\d+\. )", re.MULTILINE)
SENTENCE = re.compile(r"(?<=[.!?])[*_)]*\s+(?=[A-Z*_(\[{])")
SHOWING = ("leads", "trails", "open_")


@dataclass(frozen=True)
class Broken:
    """A guard that does not hold: the page, the sentence or phrase that it guards, and why."""

    page: str
    phrase: str
    why: str


def cells(text: str) -> list[str]:
    """The code of a page's cells, in their order."""
    return [OPTIONS.sub("", match["code"], count=1) for match in CELL.finditer(text)]


def prose(text: str) -> str:
    """The page without its code, with single spaces."""
    return " ".join(CELL.sub("", text).split())


def sentences(text: str, name: str) -> list[str]:
    """The sentences and rows of tables of a page that show a number under this name, or a part of it."""
    found = [each for block in BLOCK.split(CELL.sub("", text)) for each in SENTENCE.split(" ".join(block.split()))]
    return [each for each in found if name in {role.partition(".")[0] for role in ROLE.findall(each)}]


def guards(code: str) -> Iterator[tuple[list[str], list[str]]]:
    """Of each `assert`, `leads`, `trails` and `open_` of a cell, the phrases and the names of numbers that it holds."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Assert):
            yield _texts([node.msg]), []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SHOWING:
            yield _texts(node.args), [each.arg for each in node.keywords if each.arg]


def _texts(nodes: Sequence[ast.expr | None]) -> list[str]:
    return [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def astray(text: str) -> Iterator[tuple[str, str]]:
    """What guards hold and the page has not: a phrase, or a number that no sentence shows; and why it is listed."""
    shown = prose(text)
    for phrases, names in (guard for code in cells(text) for guard in guards(code)):
        yield from ((each, "the page has no such phrase") for each in phrases if " ".join(each.split()) not in shown)
        yield from ((each, "no sentence shows this number") for each in names if not sentences(text, each))


def check(path: Path) -> tuple[list[Broken], dict[str, str]]:
    """What is broken on a page, and what it glues: name -> text. It runs the page's code, in this process."""
    text = path.read_text(encoding="utf-8")
    broken = [Broken(path.name, *each) for each in astray(text)]
    space: dict[str, Any] = {"__name__": "__main__"}
    with collected() as glued:
        for statement in (each for code in cells(text) for each in ast.parse(code).body):
            try:
                exec(compile(ast.Module([statement], []), path.name, "exec"), space)
            except (AssertionError, *RAISED) as error:
                broken += [Broken(path.name, *each) for each in _stopped(error, statement, text, glued)]
    for name in dict.fromkeys(ROLE.findall(CELL.sub("", text))):
        if name not in glued:
            broken.append(Broken(path.name, name, "no cell says this name"))
    return broken, glued


def _stopped(error: Exception, statement: ast.stmt, text: str, glued: dict[str, str]) -> Iterator[tuple[str, str]]:
    """What an error in a statement breaks, and why: the sentences of a guard, or the statement for want of a result."""
    code = " ".join(ast.unparse(statement).split())  # in one line, as the list of what is broken has them
    if isinstance(error, GuardError):
        for name, why in error.failed.items():
            yield from ((filled(each, glued), f"{name} is {why}") for each in sentences(text, name))
        yield from ((phrase, str(error)) for phrase in error.phrases)
    elif isinstance(error, AssertionError):
        yield str(error), code
    else:
        yield code[:80], f"{type(error).__name__}: {error}"


def filled(text: str, glued: dict[str, str]) -> str:
    """Prose with its numbers."""
    return ROLE.sub(lambda found: glued.get(found[1], f"[{found[1]}]"), text)


def preview(path: Path, glued: dict[str, str]) -> str:
    """The page's prose with its numbers, as a reader meets it."""
    return filled(CELL.sub("", path.read_text(encoding="utf-8")), glued)


def main(pages: list[Path], show: bool = False) -> None:
    """List what is broken on these pages; with --show, print their prose with its numbers. Exit code 1 if any is."""
    count = 0
    for path in pages:
        broken, glued = check(path)
        count += len(broken)
        if show:
            typer.echo(preview(path, glued))
        for each in broken:
            typer.echo(f"{each.page}: {each.phrase!r}: {each.why}")
    typer.echo(f"{count} broken guards on {len(pages)} pages", err=True)
    raise typer.Exit(min(count, 1))


if __name__ == "__main__":
    typer.run(main)
