"""The committed fixtures: real images in the layouts that users have."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return Path(__file__).parents[1] / "data"
