"""The parameters of a notebook: a sweep's as its spec, and those of every other checked by their types."""

import ast
import os
import re
from collections.abc import Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

from pydantic import ConfigDict, ValidationError, create_model

from fpt.documents import explained
from fpt.errors import SpecError, check_known
from fpt.files import NAME, STUDY_FILE, workspace
from fpt.sweeps.record import PUBLISHED
from fpt.sweeps.spec import FIELDS, SweepSpec, resolve

FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # of a sweep: an arm may join groups by +
WITHOUT_POINT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
PAPERMILL = {  # how lists and mappings are handed to the notebook
    "tuple_type": " (papermill takes lists with -y, as in -y '{learning_rates: [1e-3]}')",
    "dict_type": " (papermill takes mappings with -y, as in -y '{task_options: {length: 5}}')",
}


def parameters_to_spec(names: Mapping[str, Any]) -> SweepSpec:
    """The spec in a notebook's parameters, `names` being its globals() right after the parameters cell.

    Reading the globals is what catches a misspelt parameter: papermill only warns of one, then defines it. In a
    kernel only what its cells assign counts: start-up files of IPython may define anything.
    """
    plain = (bool, int, float, str, list, tuple, dict)
    by_cells = _assigned(names, before="parameters_to_spec")
    fields = {
        name: value
        for name, value in names.items()
        if not name.startswith("_") and name not in ("In", "Out", "folder")
        if name in by_cells or not by_cells
        if name in FIELDS or value is None or isinstance(value, plain)
    }
    return resolve(fields, "notebook parameters", PAPERMILL)


def results_folder(folder: str | None) -> Path | None:
    """A notebook's `folder` parameter as a path: runs/<study>/<sweep> of the workspace, nothing outside."""
    if folder is None:
        return None
    root = workspace()
    inside = Path(os.path.abspath(root / str(folder)))  # a number that papermill read is no such path either
    study, sweep = inside.parent, inside.name
    # A study may be a link to where there is room, as runs/ may be; a sweep, and what is no study, may not.
    ours = study.parent.resolve() == (root / "runs").resolve() and inside.resolve() == study.resolve() / sweep
    ours = ours and (not study.is_symlink() or (study / STUDY_FILE).is_file())
    if not ours or sweep == PUBLISHED or not (NAME.fullmatch(study.name) and FOLDER.fullmatch(sweep)):
        raise SpecError(f"folder = {folder!r}: results go to runs/<study>/<sweep> in the workspace, and nowhere else")
    return inside.relative_to(Path.cwd()) if inside.is_relative_to(Path.cwd()) else inside


def _assigned(names: Mapping[str, Any], before: str) -> set[str]:
    """The names that the executed cells of a notebook assign before the first that makes this call: a notebook that is
    used has run cells again, and those below."""
    cells = takewhile(lambda cell: f"{before}(" not in cell, names.get("In") or [])
    nodes = (node for cell in cells for node in _nodes(cell))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _nodes(cell: str) -> Iterable[ast.AST]:
    try:
        return ast.walk(ast.parse(cell))
    except SyntaxError:  # it never ran
        return ()


def check_parameters(names: dict[str, Any], /, **declared: Any) -> None:
    """SpecError for a parameter that a notebook does not declare, and for a value that its type does not allow.

    `names` are the globals() right after the parameters cell; `declared` the types of its parameters. Where one holds
    floats, numbers such as 1e-3 that papermill took for text become numbers there, as `parameters_to_spec` reads them.
    """
    # without a history of cells it is a plain program, or nbval
    wanted = sorted(_assigned(names, before="check_parameters")) or declared
    given = {name: names[name] for name in wanted if name in names}
    for name in given:
        check_known("parameter", name, declared, "notebook parameters")
    floats = [name for name in given if float in (declared[name], *get_args(declared[name]))]
    given |= {name: _as_number(given[name]) for name in floats}
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in declared.items()}
    try:
        create_model("Parameters", __config__=ConfigDict(strict=True), **fields)(**given)
    except ValidationError as error:
        findings = [f"{explained(found)} (notebook parameters)" for found in error.errors(include_url=False)]
        raise SpecError("\n".join(dict.fromkeys(findings))) from None
    names.update({name: given[name] for name in floats})


def _as_number(value: Any) -> Any:
    """YAML 1.1, in which papermill takes parameters, has a point in every float: to it 1e-3 is text."""
    if isinstance(value, list):
        return [_as_number(each) for each in value]
    return float(value) if isinstance(value, str) and WITHOUT_POINT.fullmatch(value) else value
