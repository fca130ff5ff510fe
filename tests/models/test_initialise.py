"""What a run starts from: pairing between arms, the three random recipes, the gain."""

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import fpt.models
import fpt.models.weights
import fpt.tasks
from fpt.models.initialise import matrix_std
from fpt.seeds import generator

MATRIX = "backbone.h.0.mlp.c_fc.weight"
RESIDUAL = "backbone.h.1.mlp.c_proj.weight"


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


@pytest.mark.parametrize("backbone", ["small-gpt2", "small-bert", "small-t5", "small-vit"])
def test_the_gain_multiplies_pretrained_matrices_and_nothing_else(backbone, digits, small_backbones):
    plain, template = (fpt.models.build(digits, backbone, "pretrained", random_gain=gain) for gain in (1.0, 2.5))
    before, after, other = plain.initialise(0), template.initialise(0), template.initialise(7)
    changed = {name for name, value in before.items() if not torch.equal(value, after[name])}
    inside = ("attention", "feed_forward", "recurrent")
    assert changed == {name for name, value in before.items() if template.groups[name] in inside and value.dim() > 1}
    assert changed
    for name in changed:
        assert torch.equal(after[name], 2.5 * before[name])
        assert after[name] is other[name]  # one tensor object for all seeds
    library = small_backbones[backbone].state_dict()
    assert all(torch.equal(before[name], library[name.removeprefix("backbone.")]) for name in changed)


@pytest.mark.parametrize("gain", [0.5, 3.0])
def test_the_gain_multiplies_statistics_of_matrices(gain, digits, small_backbones):
    plain, scaled = (
        fpt.models.build(digits, "small-gpt2", "statistics", random_gain=factor).initialise(0) for factor in (1.0, gain)
    )
    torch.testing.assert_close(scaled[MATRIX], gain * plain[MATRIX])
    assert torch.equal(scaled["backbone.wpe.weight"], plain["backbone.wpe.weight"])


# --- statistics, and positions beyond a table


def test_statistics_are_of_whole_tensors():
    """Of tiny-lm's 256 positions, not of the ten that Bit XOR uses, whose standard deviation is a third larger."""
    task = fpt.tasks.load("bit-xor")
    table = fpt.models.weights.pretrained_state("tiny-lm")["wpe.weight"]
    template = fpt.models.build(task, "tiny-lm", "statistics")
    drawn = torch.stack([template.initialise(seed)["backbone.wpe.weight"] for seed in range(20)])
    assert drawn.shape[1:] == (10, 128)
    assert drawn.std().item() == pytest.approx(table.std(correction=0).item(), rel=0.02)
    assert table[:10].std().item() > 1.2 * drawn.std().item()
    assert drawn.mean().item() == pytest.approx(table.mean().item(), abs=0.003)


@pytest.mark.parametrize("backbone", ["small-gpt2", "small-longformer", "small-vit"])
def test_statistics_of_every_tensor(backbone, digits, small_backbones):
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


def kept_file(template, tmp_path, std):
    """A file as a sweep keeps it, whose position table was trained to another standard deviation."""
    weights = {name: value for name, value in template.initialise(0).items() if name.startswith("backbone.")}
    weights["backbone.wpe.weight"] = std * torch.randn(10, 16, generator=generator(0, "kept"))
    save_file(weights, tmp_path / "kept.safetensors")
    return tmp_path / "kept.safetensors"


def test_positions_beyond_a_kept_table_are_what_they_were_at_the_start(small_backbones, tmp_path):
    keeper = fpt.models.build(fpt.tasks.load("bit-xor"), "small-gpt2", "random", "all")
    path = kept_file(keeper, tmp_path, std=0.5)
    task = fpt.tasks.load("digits-lra")
    table = fpt.models.build(task, "small-gpt2", "pretrained", weights=path).initialise(0)["backbone.wpe.weight"]
    assert table.shape == (64, 16)
    assert table[:10].std().item() == pytest.approx(0.5, rel=0.2)
    assert table[10:].std().item() == pytest.approx(0.02, rel=0.1)
    drawn = fpt.models.build(task, "small-gpt2", "statistics", weights=path).initialise(0)["backbone.wpe.weight"]
    assert drawn.std().item() == pytest.approx(table[:10].std().item(), rel=0.1)


def test_matched_is_gpt2s_own_at_its_own_width():
    assert matrix_std(768, 12, "matched", 1.0, residual=False) == 0.02


def test_input_layers(digits, listops):
    weight = fpt.models.build(digits, "tiny-lm", "random").initialise(0)["input_layer.weight"]  # (128, 4)
    torch.testing.assert_close(weight.T @ weight, 1.41**2 * torch.eye(4))
    table = fpt.models.build(listops, "tiny-lm", "random").initialise(0)["input_layer.weight"]
    assert table.shape == (listops.vocabulary, 128)
    assert table.std().item() == pytest.approx(1, rel=0.05)


def test_output_layer_is_uniform_within_its_bound(digits):
    values = fpt.models.build(digits, "tiny-lm", "random").initialise(0)
    bound = 1 / math.sqrt(128)
    for name in ("output_layer.weight", "output_layer.bias"):
        assert values[name].abs().max() <= bound
    assert values["output_layer.weight"].std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


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
