"""A made-up study with results, for the rooms that read them."""

from pathlib import Path

import pandas as pd
import pytest
import synthetic


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete study; tests only read it."""
    return synthetic.finish(synthetic.workspace(tmp_path_factory.mktemp("workspace")))


@pytest.fixture(scope="session")
def runs(study: Path) -> pd.DataFrame:
    from fpt.results import load_runs

    return load_runs(study)
