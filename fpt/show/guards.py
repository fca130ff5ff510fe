"""Guards: the statements that hold a page's sentences to the results, checked without building the book.

A guard is `assert CONDITION, "a phrase of the page"` in a code cell. `python -m fpt.show.guards book/*.md` runs the
cells of each page and lists every guard that no longer holds, and every phrase that no longer stands on its page.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from fpt.errors import FptError
from fpt.show.said import collected

CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = re.compile(r"\A(?:---\n.*?\n---\n|(?::[\w-]+:[^\n]*\n)*)", re.DOTALL)
# What a cell may raise beside a guard, so that one page which cannot be run does not hide what is broken on others.
RAISED = (FptError, NameError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
ROLE = re.compile(r"\{glue:text\}`([^`]+)`")


@dataclass(frozen=True)
class Broken:
    """A guard that does not hold: the page, the phrase that it guards, and why."""

    page: str
    phrase: str
    why: str


def cells(text: str) -> list[str]:
    """The code of a page's cells, in their order."""
    return [OPTIONS.sub("", match["code"], count=1) for match in CELL.finditer(text)]


def prose(text: str) -> str:
    """The page without its code, with single spaces."""
    return " ".join(CELL.sub("", text).split())


def guards(code: str) -> Iterator[ast.Assert]:
    """The `assert` statements of a cell."""
    yield from (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Assert))


def phrase_of(guard: ast.Assert) -> str:
    """The phrase that a guard names; empty where it names none as a plain text."""
    message = guard.msg
    return message.value if isinstance(message, ast.Constant) and isinstance(message.value, str) else ""


def check(path: Path) -> tuple[list[Broken], dict[str, str]]:
    """What is broken on a page, and what it glues: name -> text. It runs the page's code, in this process."""
    text = path.read_text(encoding="utf-8")
    shown, broken = prose(text), list[Broken]()
    space: dict[str, Any] = {"__name__": "__main__"}
    with collected() as glued:
        for code in cells(text):
            for phrase in map(phrase_of, guards(code)):
                if " ".join(phrase.split()) not in shown:
                    broken.append(Broken(path.name, phrase, "the page has no such phrase"))
            for statement in ast.parse(code).body:
                broken += _run(path.name, statement, space)
    for name in dict.fromkeys(ROLE.findall(CELL.sub("", text))):
        if name not in glued:
            broken.append(Broken(path.name, name, "no cell says this name"))
    return broken, glued


def _run(page: str, statement: ast.stmt, space: dict[str, Any]) -> Iterator[Broken]:
    """What stops a statement: a guard in it that fails, a result that is not there, or anything for want of one."""
    code = compile(ast.Module([statement], []), page, "exec")
    try:
        exec(code, space)
    except AssertionError as error:
        yield Broken(page, str(error), ast.unparse(statement))
    except RAISED as error:
        yield Broken(page, ast.unparse(statement)[:80], f"{type(error).__name__}: {error}")


def preview(path: Path, glued: dict[str, str]) -> str:
    """The page's prose with its numbers, as a reader meets it."""
    return ROLE.sub(lambda found: glued.get(found[1], f"[{found[1]}]"), CELL.sub("", path.read_text(encoding="utf-8")))


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
