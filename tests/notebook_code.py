"""What the .py half of a notebook defines: what nothing else needs."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def definitions(path: str) -> SimpleNamespace:
    """Its functions, classes, imports and constants (in capitals), and nothing else."""
    names: dict[str, Any] = {"__name__": __name__}  # as dataclasses want
    whole = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    body = [node for node in whole.body if isinstance(node, KEPT) or _is_constant(node)]
    exec(compile(ast.Module(body, []), path, "exec"), names)
    return SimpleNamespace(**names)


def _is_constant(node: ast.stmt) -> bool:
    targets = [part for to in node.targets for part in ast.walk(to)] if isinstance(node, ast.Assign) else []
    return any(isinstance(part, ast.Name) and part.id.isupper() for part in targets)
