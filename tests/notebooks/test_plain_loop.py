"""The experiment on one page gives what a fleet gives."""

from pathlib import Path
from typing import Any

import jupytext
import pandas as pd
import pytest
import torch

import fpt.models
import fpt.tasks
from fpt.training import Recipe, train_fleet
from fpt.training.fleet import Fleet

ROOT = Path(__file__).parents[2]
RATES, SEEDS, STEPS, BATCH = [3e-4, 3e-3], [5], 12, 8
ARMS = {"frozen": "frozen-pretrained", "all trained": "unfrozen-pretrained"}
KEYS = ["learning_rate", "seed"]


@pytest.fixture(scope="module")
def plain() -> pd.DataFrame:
    """The table of runs of the notebook, with parameters of ours."""
    given = {"learning_rates": RATES, "seeds": SEEDS, "steps": STEPS, "batch_size": BATCH}
    names: dict[str, Any] = {}
    for cell in jupytext.read(ROOT / "notebooks" / "plain_loop.py").cells:
        if cell.cell_type == "code" and "runs" not in names:
            exec(cell.source, names)
        if "parameters" in cell.metadata.get("tags", []):
            names |= given | {"weights": str(ROOT / "fpt" / "models" / "tiny_lm")}
    return names["runs"].rename(columns={"learning rate": "learning_rate"})


@pytest.mark.parametrize("arm", ARMS)
def test_the_plain_loop_gives_what_a_fleet_gives(arm: str, plain: pd.DataFrame) -> None:
    task = fpt.tasks.load("digits")
    template = fpt.models.build(task, "tiny-lm", arm=ARMS[arm])
    recipe = Recipe(steps=STEPS, batch_size=BATCH, dropout=0.0, evaluations=1, compute_type="float32")
    ours = plain[plain["arm"] == arm].sort_values(KEYS, ignore_index=True)
    found = train_fleet(task, template, recipe, RATES, SEEDS).runs.sort_values(KEYS, ignore_index=True)
    assert ours[KEYS].equals(found[KEYS])
    for sample, images in (("validation", 300), ("test", 400)):
        differences = (ours[f"{sample} accuracy"] - found[f"{sample}_accuracy"]).abs() * images
        assert differences.max() < 1.5, f"more than one image of {images}"

    fleet = Fleet(task, template, recipe, RATES, SEEDS, torch.device("cpu"))
    losses = [fleet.step(step) for step in range(1, STEPS + 1)][-1]
    assert ours["last loss"].to_list() == pytest.approx(losses.tolist(), rel=1e-3)
    assert ours["last loss"].nunique() == len(ours)
