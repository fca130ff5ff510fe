"""FLOP of a step: the formula against torch's own counter."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from flop import needed_flop
from torch.utils.flop_counter import FlopCounterMode

import fpt.models
import fpt.tasks
from fpt.bench.reference import Reference
from fpt.training import Recipe

CPU = torch.device("cpu")


@pytest.mark.parametrize("trainable", ["fpt", "all", "fpt-attention", "output"])
@pytest.mark.parametrize("task", ["digits", "bit-memory", "listops-short"])
@pytest.mark.parametrize("backbone", ["small-gpt2", "small-bert"])
def test_the_formula_counts_what_the_library_computes(
    backbone: str, task: str, trainable: str, small_backbones: dict[str, torch.nn.Module]
) -> None:
    options: dict[str, Any] = {"train": 60, "heldout": 20} if task == "listops-short" else {}
    loaded = replace(fpt.tasks.load(task, **options), name=task)
    template = fpt.models.build(loaded, backbone, "random", trainable)
    reference = Reference(template, Recipe(batch_size=4), 1e-3, 0, CPU)
    reference.model.backbone.set_attn_implementation("eager")  # products that the counter sees on every device
    reference.step()
    with FlopCounterMode(display=False) as counter:
        reference.step()
    assert counter.get_total_flops() == needed_flop(template, 4, last_rows=loaded.tokens)


def test_what_is_needed_is_less_by_the_rows_that_nobody_reads(small_backbones: dict[str, torch.nn.Module]) -> None:
    task = fpt.tasks.load("digits")  # 16 tokens, read at the last one
    template = fpt.models.build(task, "small-gpt2", "random")
    width, batch, tokens = 16, 4, 16
    # queries, attention's output and the feed-forward layer, forward and gradient; and scores with their two gradients
    unread = batch * (tokens - 1) * (2 * 2 * (2 + 8) * width**2 + 3 * 2 * 2 * tokens * width)
    assert needed_flop(template, batch, tokens) - needed_flop(template, batch) == unread
    frozen, unfrozen = (needed_flop(fpt.models.build(task, "gpt2", "random", kind), 8) for kind in ("fpt", "all"))
    assert 1.3 < unfrozen / frozen < 1.5  # a third product where weights train
