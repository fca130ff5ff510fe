"""What a run starts from: pairing between arms, the three random recipes, the gain."""

import math

import pytest
import torch

import fpt.models
import fpt.tasks
from fpt.models.initialise import matrix_std

MATRIX = "backbone.h.0.mlp.c_fc.weight"
RESIDUAL = "backbone.h.1.mlp.c_proj.weight"


@pytest.fixture(scope="module")
def digits():
    return fpt.tasks.load("digits")


def test_all_arms_of_a_seed_share_their_input_and_output_layers(digits, small_backbones):
    weights = [fpt.models.build(digits, "small-gpt2", *arm).initialise(3) for arm in fpt.models.ARMS.values()]
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


def test_pretrained_tensors_are_shared_by_all_seeds(digits, small_backbones):
    template = fpt.models.build(digits, "small-gpt2", "pretrained")
    first, other = template.initialise(1), template.initialise(2)
    assert first[MATRIX] is other[MATRIX]
    assert first["backbone.wpe.weight"] is other["backbone.wpe.weight"]
    assert torch.equal(first["backbone.wpe.weight"], small_backbones["small-gpt2"].wpe.weight[:16])


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


def test_matched_is_gpt2s_own_at_its_own_width():
    assert matrix_std(768, 12, "matched", 1.0, residual=False) == 0.02


def test_input_layers(digits):
    weight = fpt.models.build(digits, "tiny-lm", "random").initialise(0)["input_layer.weight"]  # (128, 4)
    torch.testing.assert_close(weight.T @ weight, 1.41**2 * torch.eye(4))
    listops = fpt.tasks.load("listops-short", train=200, heldout=50)
    table = fpt.models.build(listops, "tiny-lm", "random").initialise(0)["input_layer.weight"]
    assert table.shape == (listops.vocabulary, 128)
    assert table.std().item() == pytest.approx(1, rel=0.05)


def test_output_layer_is_uniform_within_its_bound(digits):
    values = fpt.models.build(digits, "tiny-lm", "random").initialise(0)
    bound = 1 / math.sqrt(128)
    for name in ("output_layer.weight", "output_layer.bias"):
        assert values[name].abs().max() <= bound
    assert values["output_layer.weight"].std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
