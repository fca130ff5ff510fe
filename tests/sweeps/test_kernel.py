"""The kernel of a sweep and of a page: which Python it is, and how one talks with it."""

import importlib
import json
import sys
from pathlib import Path
from unittest.mock import Mock

import nbformat
import pytest
from myst_nb.core.execute import direct
from nbclient import NotebookClient

from fpt.sweeps.engines.kernel import OwnPython

EXTENSIONS = Path(__file__).parents[2] / "book/_ext"
INFO = "from ipykernel import get_connection_info\nimport sys\nprint(sys.executable)\nprint(get_connection_info())"
linux = pytest.mark.skipif(sys.platform != "linux", reason="sockets with names of their own are Linux's")


def test_the_kernel_is_this_python(tmp_path, monkeypatch):
    (tmp_path / "kernels/python3").mkdir(parents=True)
    (tmp_path / "kernels/python3/kernel.json").write_text(
        '{"argv": ["/nonexistent/python"], "display_name": "x", "language": "python"}'
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert Path(OwnPython(kernel_name="python3").kernel_spec.argv[0]) == Path(sys.executable)


@pytest.fixture
def notebook() -> nbformat.NotebookNode:
    """One cell that prints its Python and how its kernel is talked with."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(INFO)])


def printed(notebook: nbformat.NotebookNode) -> tuple[Path, str]:
    executable, _, talk = "".join(out.text for out in notebook.cells[0].outputs).partition("\n")
    return Path(executable), json.loads(talk)["transport"]


@linux
def test_kernels_that_start_at_once_cannot_choose_the_same_address(notebook, tmp_path):
    assert len({OwnPython().ip for _ in range(20)}) == 20
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_manager_class=OwnPython, resources=place, timeout=120).execute()
    assert printed(notebook) == (Path(sys.executable), "ipc")
    assert not list(tmp_path.iterdir())  # an address is a name, and no file


@linux
def test_pages_of_the_book_have_such_kernels(notebook, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(EXTENSIONS)
    monkeypatch.setattr(direct, "single_nb_execution", None)
    importlib.import_module("parallel_pages").setup(Mock())
    direct.single_nb_execution(notebook, str(tmp_path), timeout=120, allow_errors=False)
    assert printed(notebook) == (Path(sys.executable), "ipc")
