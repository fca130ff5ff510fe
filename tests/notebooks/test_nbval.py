"""What the tests change in nbval, which checks the notebooks."""

import inspect
from pathlib import Path
from types import SimpleNamespace

import nbval.plugin
import pytest
from nbval.plugin import IPyNbCell

CONFTEST = Path(__file__).parents[1] / "conftest.py"


def test_late_output_of_a_notebook_is_waited_for(request: pytest.FixtureRequest) -> None:
    assert "self.output_timeout = 5" in inspect.getsource(IPyNbCell.__init__)  # and no option for it
    cell = SimpleNamespace(output_timeout=5, get_closest_marker=lambda _: None)
    conftest = request.config.pluginmanager.get_plugin(str(CONFTEST))
    conftest.pytest_collection_modifyitems(request.config, [cell])
    assert cell.output_timeout >= 60


def test_nbval_still_needs_a_pytest_below_10() -> None:
    """Where this fails, the bound in pyproject.toml can go, and this test with it."""
    assert ".fspath" in inspect.getsource(nbval.plugin)
