"""What pages of the book and notebooks define for themselves: what nothing else needs."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[1]
CELL = re.compile(r"^```\{code-cell\}.*?\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
OPTIONS = re.compile(r"^---\n.*?^---$|^:\w+:.*?$", flags=re.DOTALL | re.MULTILINE)  # of a cell
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef)


def definitions(path: str) -> SimpleNamespace:
    """The functions, imports and constants (in capitals) of a page or of a notebook's .py half, and nothing else."""
    text = (ROOT / path).read_text(encoding="utf-8")
    code = text if path.endswith(".py") else OPTIONS.sub("", "\n".join(CELL.findall(text)))
    names: dict[str, Any] = {}
    body = [node for node in ast.parse(code).body if isinstance(node, KEPT) or _is_constant(node)]
    exec(compile(ast.Module(body, []), path, "exec"), names)
    return SimpleNamespace(**names)


def _is_constant(node: ast.stmt) -> bool:
    targets = [part for to in node.targets for part in ast.walk(to)] if isinstance(node, ast.Assign) else []
    return any(isinstance(part, ast.Name) and part.id.isupper() for part in targets)
