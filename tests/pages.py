"""What pages of the book define for themselves: the exhibits that no other page shows."""

import ast
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef)


def definitions(page: str) -> dict[str, Any]:
    """The functions of a page, with its imports and its constants (in capitals), by name; nothing is shown."""
    code = "\n".join(CELL.findall((ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")))
    code = re.sub(r"^---\n.*?^---$|^:\w+:.*?$", "", code, flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    body = [node for node in ast.parse(code).body if isinstance(node, KEPT) or _is_constant(node)]
    exec(compile(ast.Module(body, []), page, "exec"), names)
    return names


def _is_constant(node: ast.stmt) -> bool:
    """In capitals, and without a call."""
    named = isinstance(node, ast.Assign) and all(isinstance(to, ast.Name) and to.id.isupper() for to in node.targets)
    return named and not any(isinstance(part, ast.Call) for part in ast.walk(node))
