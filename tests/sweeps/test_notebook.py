"""The sweep notebook, as `fpt run` and as papermill by hand use it."""

import ast
from pathlib import Path
from typing import Any

import jupytext
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError
from stand_in import ROOT, spec

from fpt.sweeps import parameters_to_spec
from fpt.sweeps.spec import FIELDS, OF_THE_STUDY
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
    assert set(defaults()) == {*FIELDS, "folder"} - {"init", "trainable"} - OF_THE_STUDY
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


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"step": 4}, "unknown study field 'step'.*notebook parameters.*Did you mean 'steps'"),
        ({"folder": "../elsewhere"}, "folder = '../elsewhere'.*nowhere else"),
    ],
)
def test_papermill_by_hand_gets_the_same_answers(workspace: Path, parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(PapermillExecutionError) as caught:
        papermill.execute_notebook("notebooks/sweep.ipynb", "out.ipynb", parameters, progress_bar=False)
    assert caught.value.ename == "SpecError"
    caught.match(words)
    assert not list(Path("runs/mine").iterdir())


def test_papermill_by_hand_makes_the_same_folder(workspace: Path) -> None:
    parameters = spec().parameters() | {"folder": f"runs/mine/{spec().folder_name}"}
    papermill.execute_notebook("notebooks/sweep.ipynb", "out.ipynb", parameters, progress_bar=False)
    assert (workspace / "runs" / "mine" / spec().folder_name / "result.json").is_file()
