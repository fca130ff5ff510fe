"""Fine-tuning on one page, by transformers, peft and PyTorch, gives what a fleet gives, dropout included."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jupytext
import own_tokenizer
import pytest
import torch

import fpt.models
from fpt.training import Recipe
from fpt.training.fleet import Fleet

ROOT = Path(__file__).parents[2]
RATES, SEEDS, BATCH = [1e-3], [4, 5, 6], 8
ARMS = {"full": "whole-pretrained", "LoRA": "lora-pretrained"}


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("arm", ARMS)
def test_the_page_gives_what_a_fleet_gives(arm: str, dropout: float, tmp_path: Path, monkeypatch) -> None:
    """Loss by loss, on batches of unlike length, and the table of embeddings trains in full training."""
    monkeypatch.chdir(tmp_path)
    texts, steps = "csv:texts.csv", 50
    table = own_tokenizer.texts(120).rename(columns={"label": "category"})
    table.to_csv("texts.csv", index=False)
    given = {"texts": texts, "arms": [arm], "learning_rates": RATES, "seeds": SEEDS, "steps": steps, "dropout": dropout}
    names: dict[str, Any] = {}
    for cell in jupytext.read(ROOT / "notebooks" / "plain_text.py").cells:
        if cell.cell_type == "code" and "runs" not in names:
            exec(cell.source, names)
        if "parameters" in cell.metadata.get("tags", []):
            names |= given
    plain = names["runs"].set_index(["seed", "learning rate"])["losses"]

    task = fpt.models.load_task(texts, "minilm", tokenizer="own", tokens=64, target="category")
    task = replace(task, by_length=True, pooling="mean")
    template = fpt.models.build(task, "minilm", arm=ARMS[arm])
    recipe = Recipe(
        steps=steps, batch_size=BATCH, dropout=dropout, warmup=0.1, schedule="cosine", weight_decay=0.01,
        compute_type="float32", report="last",
    )  # fmt: skip
    for seed in SEEDS:
        fleet = Fleet(task, template, recipe, RATES, [seed], torch.device("cpu"))
        losses = torch.stack([fleet.step(step) for step in range(1, steps + 1)])
        lengths = {fleet.splits[0].batch(step, BATCH).inputs.shape[1] for step in range(steps)}
        assert len(lengths) > 1
        for rate, ours in zip(RATES, losses.T.tolist(), strict=True):
            assert ours == pytest.approx(plain[seed, rate], rel=5e-3, abs=5e-4)
