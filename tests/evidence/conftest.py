"""Made-up results for the whole folder."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest


def _load() -> ModuleType:
    path = Path(__file__).with_name("synthetic.py")
    spec = importlib.util.spec_from_file_location("synthetic", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["synthetic"] = module
    spec.loader.exec_module(module)
    return module


_load()  # importlib import mode puts no folder on sys.path


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete study; tests only read it."""
    import synthetic

    return synthetic.finish(synthetic.workspace(tmp_path_factory.mktemp("workspace")))


@pytest.fixture(scope="session")
def runs(study: Path) -> pd.DataFrame:
    from fpt.evidence import load_runs

    return load_runs(study)
