"""The sweep notebook: its parameters, and what it leaves out. A misspelt one by hand: test_spec.py."""

import ast
from typing import Any

import jupytext
from stand_in import ROOT, spec

from fpt.sweeps import parameters_to_spec
from fpt.sweeps.spec import FIELDS, READING
from fpt.sweeps.study import load_study

NOTEBOOK = jupytext.read(ROOT / "notebooks" / "sweep.py")


def defaults() -> dict[str, Any]:
    cell = next(cell for cell in NOTEBOOK.cells if "parameters" in cell.metadata.get("tags", []))
    names: dict[str, Any] = {}
    for line in ast.parse(cell.source).body:
        assert isinstance(line, ast.Assign)
        assert isinstance(line.targets[0], ast.Name)
        names[line.targets[0].id] = ast.literal_eval(line.value)
    return names


def test_every_field_is_a_parameter() -> None:
    assert set(defaults()) == {*FIELDS, "folder"} - {"init", "trainable"} - READING
    assert set(spec().parameters()) == set(defaults()) - {"folder"}


def test_the_defaults_are_a_sweep_of_the_smoke_kind() -> None:
    names = defaults()
    smoke = load_study(ROOT / "runs" / "smoke").sweeps[0]
    assert names["folder"] is None
    assert parameters_to_spec(names) == smoke.changed(compute_type="auto")


def test_no_labels_since_every_executed_copy_would_repeat_them() -> None:
    for cell in NOTEBOOK.cells:
        assert ")=" not in cell.source or cell.cell_type == "code"
        assert "{glue}" not in cell.source
