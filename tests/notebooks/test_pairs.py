"""Each notebook is a pair: a .py half, the source, and an .ipynb half with the outputs of its defaults."""

from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
KEPT = ("tags", "mystnb")  # what jupytext.toml keeps of a cell's metadata


def cells(notebook: Any) -> list[tuple[str, str, dict[str, Any]]]:
    kept = [{key: cell.metadata[key] for key in KEPT if key in cell.metadata} for cell in notebook.cells]
    return [(cell.cell_type, cell.source, extra) for cell, extra in zip(notebook.cells, kept, strict=True)]


def test_there_are_notebooks_and_every_one_has_a_source() -> None:
    assert {path.stem for path in SOURCES} == {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {"sweep", "pretrain"} <= {path.stem for path in SOURCES}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_halves_of_a_pair_agree(source: Path) -> None:
    executed = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    assert cells(jupytext.read(source)) == cells(executed), "see CONTRIBUTING.md, Notebooks"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_carries_the_outputs_of_one_run_from_top_to_bottom(source: Path) -> None:
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    kinds = [output.output_type for cell in code for output in cell.outputs]
    assert kinds
    assert "error" not in kinds


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_has_one_parameters_cell_and_names_no_user_environment(source: Path) -> None:
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
    assert tags.count("parameters") == 1
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_picture_in_a_notebook_has_a_text_in_its_place(source: Path) -> None:
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    for cell in notebook.cells:
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])):
            assert cell.metadata.get("mystnb", {}).get("image", {}).get("alt"), cell.source
