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
def test_a_notebook_is_one_run_from_top_to_bottom_that_names_no_environment(source: Path) -> None:
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])].count("parameters") == 1
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    kinds = [output.output_type for cell in code for output in cell.outputs]
    assert kinds
    assert "error" not in kinds
    for cell in code:  # a picture has words in its place
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            assert cell.metadata.get("mystnb", {}).get("image", {}).get("alt"), cell.source
