"""What every model keeps to, whatever its family and arm: checks that tests/training/test_contract.py makes of all
that are registered, and tests/models/test_hub.py of models of the library."""

import re
from pathlib import Path

import torch
from plain_loop import plain_run
from small_models import short_recipe
from torch import Tensor

from fpt.models import part as part_of
from fpt.models.families import layer_of
from fpt.models.layers import Projection
from fpt.models.template import Template
from fpt.tasks.task import Task
from fpt.training.checkpoint import Folder
from fpt.training.fleet import Fleet
from fpt.training.loop import Training

CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 3e-3], [0, 5]
WILD = 1e30  # a rate at which every run diverges
# Written without the package: what the libraries call the parameters of a group. The first that fits counts.
NAMES = {
    "adapter": r"\.adapter_[ab]$",
    "input": r"^input_layer\.",
    "output": r"^output_layer\.",
    "embedding": r"\bwte\b|embed_tokens|word_embeddings",
    "positions": r"\bwpe\b|position|token_type|relative_attention_bias",
    "layer_norm": r"\bln_|norm",
    "recurrent": r"\b[ih]2h\b",
    "attention": r"attn|attention",
    "feed_forward": r"mlp|densereludense|intermediate|output\.dense",
}


def group_of(name: str) -> str:
    return next(group for group, pattern in NAMES.items() if re.search(pattern, name.lower()))


def trains(name: str, groups: tuple[str, ...], layers: int) -> bool:
    """Whether a parameter of this name belongs to the groups, or to a part of one."""
    group, layer = group_of(name), layer_of(name)
    for part in filter(None, map(part_of, groups)):
        numbers = [None, *range(layers)] if part.layers is None else list(range(layers))[part.layers]
        if group in part.groups and layer in numbers and re.search(part.names, name):
            return True
    return group in groups


def named_in(template: Template, groups: tuple[str, ...]) -> set[str]:
    return {name for name in template.shapes if trains(name, groups, template.layers)}


def fleet_of(task: Task, template: Template, **changes: object) -> Fleet:
    return Fleet(task, template, short_recipe(**changes), RATES, SEEDS, CPU)


def frozen_of(fleet: Fleet) -> dict[str, Tensor]:
    return {**fleet.shared, **fleet.per_seed}


def the_named_parameters_train(template: Template, groups: tuple[str, ...]) -> set[str]:
    """Those of the groups, and no others; their names."""
    named = named_in(template, groups)
    assert set(template.trainable) == named
    return named


def only_the_named_parameters_change(task: Task, template: Template, groups: tuple[str, ...]) -> None:
    """And each of them, in every run. Longformer's global projections have no gradient: no token attends globally."""
    named = the_named_parameters_train(template, groups)
    fleet = fleet_of(task, template, dropout=0.1)
    start, frozen = fleet.parameters.clone(), {name: value.clone() for name, value in frozen_of(fleet).items()}
    for step in (1, 2):
        fleet.step(step)
    assert set(fleet.layout.names) == named
    assert named.isdisjoint(frozen)
    assert named | frozen.keys() == template.shapes.keys()
    assert all(torch.equal(value, frozen[name]) for name, value in frozen_of(fleet).items())
    moved = [fleet.layout.named(fleet.layout.cut(row)) for row in fleet.parameters != start]
    still = {name for name in named if not all(run[name].any() for run in moved)}
    assert still == {name for name in named if "_global." in name}


def a_fleet_is_its_runs_one_at_a_time(task: Task, template: Template, steps: int = 3) -> None:
    """No library's batching rule, and no run beside it, changes a loss. The middle two of four runs would tell a fleet
    whose rows are the other way round: by seed, then by rate."""
    fleet, short = fleet_of(task, template), short_recipe(steps=steps)
    together = torch.stack([fleet.step(step) for step in range(1, steps + 1)]).T
    alone = [plain_run(task, template, short, RATES[1 - n], SEEDS[n])[1] for n in (0, 1)]
    torch.testing.assert_close(together[1:3], torch.tensor(alone), rtol=1e-4, atol=1e-5)


def going_on_gives_the_same_bytes(task: Task, template: Template, folder: Path) -> None:
    """From a checkpoint on the disk, past an evaluation at which a run that had diverged left. All state is the
    fleet's, so a few models stand for the others."""

    def training() -> Training:
        few = dict.fromkeys(("evaluation_examples", "test_examples", "budget_examples"), 10)
        how = short_recipe(dropout=0.1, schedule="cosine", weight_decay=0.1, **few)
        return Training(Fleet(task, template, how, [*RATES, WILD], SEEDS, CPU))

    whole, first, second = training(), training(), training()
    for each, steps in ((whole, 6), (first, 4)):
        for _ in range(steps):
            each.step()
    assert len(first.fleet.active.row_numbers) == len(RATES) * len(SEEDS)
    Folder(folder).save(0, first.state())
    state = Folder(folder).load(0, second.state())
    assert state is not None
    second.load(state)
    for _ in range(2):
        second.step()
    for name, tensor in whole.state().items():
        torch.testing.assert_close(second.state()[name], tensor, rtol=0, atol=0, equal_nan=True, msg=name)


def bfloat16_follows_float32(task: Task, template: Template) -> None:
    """Not the same computation, and close to it: products with matrices of the blocks alone are in bfloat16."""
    losses = {}
    for kind in ("float32", "bfloat16"):
        fleet = fleet_of(task, template, compute_type=kind)
        losses[kind] = torch.stack([fleet.step(step) for step in (1, 2)])
    inside = [name for name in template.shapes if group_of(name) in ("attention", "feed_forward", "recurrent")]
    matrices = [name for name in inside if len(template.shapes[name]) > 1]
    for name, value in frozen_of(fleet).items():
        assert value.dtype == (torch.bfloat16 if name in matrices else torch.float32), name
    products = [module for module in template.module.modules() if isinstance(module, Projection)]
    assert {module.compute_type for module in products} <= {torch.bfloat16}
    assert fleet.parameters.dtype == torch.float32
    assert losses["bfloat16"].dtype == torch.float32
    difference = (losses["float32"] - losses["bfloat16"]).abs().max()
    assert difference < 0.15
    assert bool(difference) == bool(matrices)
