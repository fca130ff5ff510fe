"""What a run starts from: pairing between arms, the three random recipes, the gain."""

import math
from functools import partial

import pytest
import torch
from safetensors.torch import save_file
from torch.func import functional_call
from torch.nn.functional import cross_entropy

import fpt.models
import fpt.tasks
from fpt.seeds import generator

MATRIX = "backbone.h.0.mlp.c_fc.weight"
RESIDUAL = "backbone.h.1.mlp.c_proj.weight"
INPUTS = ("orthogonal", "biased")


def test_all_arms_of_a_seed_share_their_input_and_output_layers(digits, small_backbones):
    weights = [fpt.models.build(digits, "small-gpt2", arm=arm).initialise(3) for arm in fpt.models.FOUR]
    for name in ("input_layer.weight", "input_layer.bias", "output_layer.weight", "output_layer.bias"):
        assert all(torch.equal(values[name], weights[0][name]) for values in weights)
    assert not torch.equal(weights[0][MATRIX], weights[1][MATRIX])  # pretrained, random
    assert torch.equal(weights[1][MATRIX], weights[3][MATRIX])  # frozen-random, unfrozen-random


def test_seeds_differ_and_repeat(digits):
    template = fpt.models.build(digits, "tiny-lm", "random")
    first, again, other = template.initialise(1), template.initialise(1), template.initialise(2)
    for name, value in first.items():
        assert torch.equal(value, again[name])
        constant = name.endswith("bias") and "output_layer" not in name
        assert torch.equal(value, other[name]) == (constant or ".ln_" in name)


def test_initialisation_leaves_the_global_generator_alone(digits):
    before = torch.get_rng_state()
    fpt.models.build(digits, "tiny-lm", "random").initialise(0)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("gain", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(
    ("recipe", "std"), [("fixed", 0.02), ("matched", 0.02 * math.sqrt(6)), ("scaled", 0.02 * math.sqrt(6))]
)
def test_standard_deviation_of_random_matrices(recipe, std, gain, digits):
    weights = fpt.models.build(digits, "tiny-lm", "random", random_init=recipe, random_gain=gain).initialise(0)
    assert weights[MATRIX].std().item() == pytest.approx(std * gain, rel=0.02)
    residual = std / math.sqrt(8) if recipe == "scaled" else std
    assert weights[RESIDUAL].std().item() == pytest.approx(residual * gain, rel=0.02)
    assert weights["backbone.wpe.weight"].std().item() == pytest.approx(0.02, rel=0.05)  # the gain is of matrices alone
    assert weights["backbone.ln_f.weight"].eq(1).all()
    assert weights["backbone.h.0.attn.c_attn.bias"].eq(0).all()


@pytest.mark.parametrize("init", ["pretrained", "statistics"])
@pytest.mark.parametrize("backbone", ["small-gpt2", "small-bert", "small-t5", "small-vit"])
def test_the_gain_multiplies_matrices_and_nothing_else(backbone, init, digits, small_backbones):
    plain, template = (fpt.models.build(digits, backbone, init, random_gain=gain) for gain in (1.0, 2.5))
    before, after, other = plain.initialise(0), template.initialise(0), template.initialise(7)
    library, inside = small_backbones[backbone].state_dict(), ("attention", "feed_forward", "recurrent")
    matrices = {name for name, value in before.items() if template.groups[name] in inside and value.dim() > 1}
    assert {name for name, value in before.items() if not torch.equal(value, after[name])} == matrices
    for name in matrices:
        torch.testing.assert_close(after[name], 2.5 * before[name])
        if init == "pretrained":
            assert torch.equal(before[name], library[name.removeprefix("backbone.")])
            assert after[name] is other[name]  # one tensor object for all seeds


# --- statistics, and positions beyond a table


@pytest.mark.parametrize("backbone", ["small-gpt2", "small-longformer", "small-vit"])
def test_statistics_of_every_tensor(backbone, digits, small_backbones):
    """Of whole tensors: digits use 16 of the 24 positions of small-gpt2."""
    template = fpt.models.build(digits, backbone, "statistics", "all")
    values, other, kind = template.initialise(0), template.initialise(1), template.module.family
    library = small_backbones[backbone].state_dict()
    for name, value in values.items():
        inside = name.removeprefix("backbone.")
        if not name.startswith("backbone."):
            continue
        if inside == kind.positions and kind.new_positions:  # a table of ours starts from zeros
            assert value.eq(0).all()
            continue
        expected = torch.empty_like(value).normal_(generator=generator(0, "weights", inside))
        expected = library[inside].mean() + expected * library[inside].std(correction=0)
        torch.testing.assert_close(value, expected)
        assert not torch.equal(value, other[name])


def test_positions_beyond_a_kept_table_are_what_they_were_at_the_start(small_backbones, tmp_path):
    """A sweep of Bit XOR kept a table that it had trained to another standard deviation."""
    kept = fpt.models.build(fpt.tasks.load("bit-xor"), "small-gpt2", "random", "all").initialise(0)
    kept["backbone.wpe.weight"] = 0.5 * torch.randn(10, 16, generator=generator(0, "kept"))
    path, task = tmp_path / "kept.safetensors", fpt.tasks.load("digits-lra")
    save_file({name: value for name, value in kept.items() if name.startswith("backbone.")}, path)
    table, drawn = (
        fpt.models.build(task, "small-gpt2", init, weights=path).initialise(0)["backbone.wpe.weight"]
        for init in ("pretrained", "statistics")
    )
    assert table.shape == (64, 16)
    assert torch.equal(table[:10], kept["backbone.wpe.weight"])
    assert table[10:].std().item() == pytest.approx(0.02, rel=0.1)
    assert drawn.std().item() == pytest.approx(table[:10].std().item(), rel=0.1)


def test_input_and_output_layers(digits, listops, fixtures):
    mnist = fpt.tasks.load("mnist", fixtures)
    drawn = partial(fpt.models.build, backbone="tiny-lm", init="random")
    table = drawn(listops).initialise(0)["input_layer.weight"]
    assert table.shape == (listops.vocabulary, 128)
    assert table.std().item() == pytest.approx(1, rel=0.05)
    for task, width in ((digits, 4), (mnist, 16)):
        weight = drawn(task).initialise(0)["input_layer.weight"]
        torch.testing.assert_close(weight.T @ weight, 1.41**2 * torch.eye(width), atol=1e-4, rtol=0)
    default = drawn(mnist, input_init="default").initialise(0)["input_layer.weight"]
    values = drawn(digits).initialise(0)
    bounds = (default, 1 / 4), *((values[f"output_layer.{part}"], 128**-0.5) for part in ("weight", "bias"))
    for uniform, bound in bounds:  # PyTorch's own: within 1/sqrt(inputs)
        assert 0.8 * bound < uniform.abs().max() <= bound
    assert default.std().item() == pytest.approx(0.25 / 3**0.5, rel=0.05)
    assert values["output_layer.weight"].std().item() == pytest.approx((128 * 3) ** -0.5, rel=0.05)


def first_gradient(task, input_init):
    """Its norm over all that trains, in the first two layers of SmolLM2 with random weights; nothing drops out."""
    template = fpt.models.build(task, "smollm2", "random", input_init=input_init, layers=2)
    values = template.initialise(0)
    trained = [values[name].requires_grad_() for name in template.trainable]
    batch = task.split(0).batch(0, 8)
    template.module.drop_with([])
    logits = functional_call(template.module, values, (task.encode(batch.inputs),))
    loss = cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
    return torch.stack([part.norm() for part in torch.autograd.grad(loss, trained)]).norm().item()


def test_a_bias_keeps_black_patches_from_leading_the_gradient(digits):
    """Where a model adds no positions, they are vectors of zeros, at which RMSNorm has a slope of 1/sqrt(epsilon)."""
    assert first_gradient(digits, "orthogonal") > 10 * first_gradient(digits, "biased")


def test_only_the_bias_of_a_biased_input_is_another(digits):
    zero, biased = (fpt.models.build(digits, "smollm2", "random", input_init=how, layers=2) for how in INPUTS)
    before, after = zero.initialise(0), biased.initialise(0)
    assert [name for name in before if not torch.equal(before[name], after[name])] == ["input_layer.bias"]
    assert not before["input_layer.bias"].any()
    assert after["input_layer.bias"].std().item() == pytest.approx(0.02, rel=0.2)
    assert not torch.equal(after["input_layer.bias"], biased.initialise(1)["input_layer.bias"])
