"""Made-up studies speak for the pairs of the real list, after the real ones."""

import pytest

from fpt.claims import judge
from fpt.results.pairs import pairs


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    real, made = pairs(), ("long", "made", "short", "planned")
    found = {name: pair.model_copy(update={"speaks": (*pair.speaks, *made)}) for name, pair in real.pairs.items()}
    monkeypatch.setattr(judge, "pairs", lambda: real.model_copy(update={"pairs": found}))
