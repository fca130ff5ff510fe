"""What a page takes from a notebook that was run."""

import json
from pathlib import Path
from typing import Any

import pytest

from fpt.errors import SpecError
from fpt.show import from_notebook


@pytest.fixture
def root(tmp_path: Path) -> Path:
    def cell(tag: str, *outputs: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"tags": [tag]}, "outputs": list(outputs)}

    html = {"data": {"text/html": ["<table>", "</table>"]}}
    cells = [cell("words", {"text": "hello"}), cell("table", {"text": "before"}, html), {"metadata": {}}]
    (tmp_path / "runs").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/one.ipynb").write_text(json.dumps({"cells": cells}))
    return tmp_path


def test_it_is_the_html_of_the_cell_with_the_tag(root: Path) -> None:
    assert from_notebook("one", "table", root)._repr_html_() == "<table></table>"


@pytest.mark.parametrize(
    ("name", "tag", "named"), [("two", "table", "two"), ("one", "tabel", "table"), ("one", "words", "words")]
)
def test_what_is_not_there_is_named(root: Path, name: str, tag: str, named: str) -> None:
    with pytest.raises(SpecError, match=named):
        from_notebook(name, tag, root)
