"""Every choice of trainable groups in `lu2021` changes exactly the parameters that it names, as GPT-2 names them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import fpt.models
import fpt.tasks
from fpt.sweeps.study import load_study
from fpt.training.fleet import Fleet
from fpt.training.measures import run_weights
from fpt.training.recipe import Recipe

STUDY = load_study(Path(__file__).parents[2] / "runs" / "lu2021")
CHOICES = sorted({(str(spec.trainable), spec.init): spec for spec in STUDY.sweeps}.items())
RECIPE = Recipe(steps=2, batch_size=4, compute_type="float32")

# Written without the package: what GPT-2 calls the parameters of a group.
MEMBERS: dict[str, Callable[[str], bool]] = {
    "input": lambda name: name.startswith("input_layer."),
    "output": lambda name: name.startswith("output_layer."),
    "layer_norm": lambda name: ".ln_" in name,
    "positions": lambda name: ".wpe." in name,
    "attention": lambda name: ".attn." in name,
    "last_attention": lambda name: ".h.1.attn." in name,
    "feed_forward": lambda name: ".mlp." in name,
}
FPT = ("input", "output", "layer_norm", "positions")
NAMED = {
    "fpt": FPT,
    "output": ("output",),
    "fpt-feed-forward": (*FPT, "feed_forward"),
    "fpt-attention": (*FPT, "attention"),
    "fpt-feed-forward-last-attention": (*FPT, "feed_forward", "last_attention"),
    "all": (*FPT, "attention", "feed_forward"),
}


@pytest.mark.parametrize(("trainable", "init"), [key for key, _ in CHOICES])
def test_exactly_the_named_parameters_change(
    trainable: str, init: str, small_backbones: dict[str, torch.nn.Module]
) -> None:
    spec = dict(CHOICES)[trainable, init]
    groups = NAMED[spec.trainable] if isinstance(spec.trainable, str) else spec.trainable
    task = fpt.tasks.load("digits")
    template = fpt.models.build(task, "small-gpt2", init, spec.trainable)
    fleet = Fleet(task, template, RECIPE, [1e-2], [3], torch.device("cpu"))
    for step in (1, 2):
        fleet.step(step)
    start, end = template.initialise(3), run_weights(fleet, 0, fleet.parameters)
    changed = {name for name in start if not torch.equal(start[name], end[name])}
    assert changed == {name for name in start if any(MEMBERS[group](name) for group in groups)}


def test_statistics_only_keeps_mean_and_deviation_of_every_tensor(small_backbones: dict[str, torch.nn.Module]) -> None:
    task = fpt.tasks.load("digits")
    kept = fpt.models.build(task, "small-gpt2").initialise(0)
    drawn = fpt.models.build(task, "small-gpt2", "statistics").initialise(0)
    for name, tensor in kept.items():
        if name.startswith(("input_layer", "output_layer")):
            assert torch.equal(drawn[name], tensor)  # they are new in every arm
            continue
        assert not torch.equal(drawn[name], tensor), name
        error = tensor.std().item() * 4 / tensor.numel() ** 0.5
        assert abs(drawn[name].mean() - tensor.mean()) < error, name
        if tensor.numel() > 200:
            assert drawn[name].std() == pytest.approx(tensor.std().item(), rel=0.2), name


def test_another_seed_draws_other_numbers_with_the_same_statistics(small_backbones: dict[str, torch.nn.Module]) -> None:
    template = fpt.models.build(fpt.tasks.load("digits"), "small-gpt2", "statistics")
    first, second = template.initialise(0), template.initialise(1)
    assert not torch.equal(first["backbone.h.0.attn.c_attn.weight"], second["backbone.h.0.attn.c_attn.weight"])


def test_the_default_input_layer_is_pytorchs_and_not_orthogonal() -> None:
    task = fpt.tasks.load("mnist", Path(__file__).parents[1] / "data")
    weights = {
        kind: fpt.models.build(task, "tiny-lm", "random", input_init=kind).initialise(0)["input_layer.weight"]
        for kind in fpt.models.INPUT_INITS
    }
    gram = weights["orthogonal"].T @ weights["orthogonal"]
    torch.testing.assert_close(gram, 1.41**2 * torch.eye(16), atol=1e-4, rtol=0)
    assert weights["default"].abs().max() <= 1 / 4  # uniform within 1/sqrt(16)
    assert weights["default"].std() == pytest.approx(0.25 / 3**0.5, rel=0.05)
