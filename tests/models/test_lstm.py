"""The LSTMs of Lu et al. 2021 against cells written out step by step; their groups, values and options."""

import math

import pytest
import torch
from torch.func import functional_call

import fpt.models

pytestmark = pytest.mark.usefixtures("small_lstms")

WIDTH = 16
BOTH = ["small-lstm", "small-lstm-released"]


def perturbed(template, seed=0) -> dict[str, torch.Tensor]:
    """Initial weights with layer norms away from 1 and 0, so that a swapped one shows."""
    source = torch.Generator().manual_seed(9)
    weights = template.initialise(seed)
    return {
        name: value + 0.3 * torch.randn(value.shape, generator=source) if ".norm_" in name else value
        for name, value in weights.items()
    }


def one_norm(x, weight, bias, released):
    """A layer norm of one vector, by its definition."""
    centred = x - x.sum() / len(x)
    variance = (centred**2).sum() / (len(x) - 1 if released else len(x))
    return centred / torch.sqrt(variance + (1e-6 if released else 1e-5)) * weight + bias


def one_example(weights, tokens, layers, released, residual, masks, states):
    """Hidden states (tokens, width) of one example: a loop over layers, time, and nothing else at once.

    masks (layers, tokens, width), states (layers, 2, width).
    """
    sequence = [weights["input_layer.weight"] @ token + weights["input_layer.bias"] for token in tokens]
    if "backbone.positions.weight" in weights:
        sequence = [one + row for one, row in zip(sequence, weights["backbone.positions.weight"], strict=True)]
    for layer in range(layers):
        part = {
            name.removeprefix(f"backbone.layers.{layer}."): value
            for name, value in weights.items()
            if name.startswith(f"backbone.layers.{layer}.")
        }
        h, c = states[layer]
        outputs = []
        for step, x in enumerate(sequence):
            from_x = part["i2h.weight"] @ x + part["i2h.bias"]
            from_h = part["h2h.weight"] @ h + part["h2h.bias"]
            gates = one_norm(from_x, part["norm_i2h.weight"], part["norm_i2h.bias"], released)
            gates = gates + one_norm(from_h, part["norm_h2h.weight"], part["norm_h2h.bias"], released)
            into, keep, out, new = gates.chunk(4)
            cell = torch.sigmoid(keep) * c + torch.sigmoid(into) * torch.tanh(new)
            normalised = one_norm(cell, part["norm_cell.weight"], part["norm_cell.bias"], released)
            seen = torch.sigmoid(out) * torch.tanh(normalised)
            dropped = seen * masks[layer][step]
            h, c = (dropped, normalised) if released else (seen, cell)
            outputs.append(x + dropped if residual else dropped)
        sequence = outputs
    return torch.stack(sequence)


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("options", [{}, {"residual": True}, {"residual": True, "positions": True, "layers": 3}])
@pytest.mark.parametrize("backbone", BOTH)
def test_logits_equal_the_cell_written_out(backbone, options, dropped, digits):
    template = fpt.models.build(digits, backbone, "random", "fpt", **options)
    weights, released = perturbed(template), backbone.endswith("released")
    tokens = digits.encode(digits.split(0).batch(0, 3).inputs)
    layers, source = options.get("layers", 2), torch.Generator().manual_seed(4)
    masks = (torch.rand(layers, 3, digits.tokens, WIDTH, generator=source) > 0.3).float() / 0.7
    noise = torch.randn(3, layers, 2, WIDTH, generator=source)
    if not dropped:
        masks = torch.ones_like(masks)
    with torch.no_grad():
        input_mask = torch.ones(3, digits.tokens, WIDTH)
        template.module.drop_with([input_mask, *masks] if dropped else [], noise if released else None)
        actual = functional_call(template.module, weights, (tokens,))
        for example in range(3):
            states = noise[example] * math.sqrt(2 / (2 * WIDTH)) if released else torch.zeros(layers, 2, WIDTH)
            hidden = one_example(
                weights, tokens[example], layers, released, options.get("residual", False), masks[:, example], states
            )
            expected = weights["output_layer.weight"] @ hidden[-1] + weights["output_layer.bias"]
            torch.testing.assert_close(actual[example, 0], expected, rtol=1e-4, atol=1e-5)


def test_gates_are_those_of_torchs_cell_when_nothing_is_normalised(digits):
    template = fpt.models.build(digits, "small-lstm", "random", "fpt", layers=1)
    layer = template.module.backbone.layers[0]
    layer.norm_i2h = layer.norm_h2h = layer.norm_cell = torch.nn.Identity()
    cell = torch.nn.LSTMCell(WIDTH, WIDTH)
    ours = torch.cat([torch.arange(2 * WIDTH), torch.arange(3 * WIDTH, 4 * WIDTH), torch.arange(2 * WIDTH, 3 * WIDTH)])
    with torch.no_grad():  # torch's order is i, f, g, o
        for own, name in ((layer.i2h, "ih"), (layer.h2h, "hh")):
            own.weight.copy_(getattr(cell, f"weight_{name}")[ours])
            own.bias.copy_(getattr(cell, f"bias_{name}")[ours])
        x = torch.randn(4, 7, WIDTH, generator=torch.Generator().manual_seed(0))
        h = c = torch.zeros(4, WIDTH)
        expected = []
        for step in range(7):
            h, c = cell(x[:, step], (h, c))
            expected.append(h)
        actual = layer(x, torch.zeros(4, WIDTH), torch.zeros(4, WIDTH))
    torch.testing.assert_close(actual, torch.stack(expected, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backbone", BOTH)
def test_symbols_of_different_lengths(backbone, listops):
    """Read at the last real token: what comes after it changes nothing."""
    template = fpt.models.build(listops, backbone, "random", "fpt")
    weights, rows = template.initialise(0), listops.split(0).validation[:16]
    template.module.drop_with([])
    with torch.no_grad():
        together = functional_call(template.module, weights, (listops.encode(rows.inputs), rows.lengths))
        other = rows.inputs.clone()
        other[torch.arange(listops.tokens) >= rows.lengths[:, None]] = 3
        assert not torch.equal(other, rows.inputs)
        padded = functional_call(template.module, weights, (listops.encode(other), rows.lengths))
    assert torch.equal(together, padded)


@pytest.mark.parametrize("backbone", ["lstm", "lstm-released"])
@pytest.mark.parametrize(("layers", "norms", "total"), [(0, 41_472, 14_215_680), (12, 165_888, 56_862_720)])
def test_parameter_counts(backbone, layers, norms, total, digits):
    """Section 3.3 calls the trainable parameters of 12 layers about as many as a transformer's; GPT-2 has 38,400."""
    with torch.device("meta"):
        template = fpt.models.build(digits, backbone, "random", "fpt", layers=layers, positions=True)
    report = template.report()
    assert template.layers == (layers or 3)
    assert report.loc["layer_norm", "trainable"] == norms == template.layers * 13_824
    assert report.loc["layer_norm", "trainable"] + report.loc["recurrent", "frozen"] == total
    assert report.loc["positions", "trainable"] == digits.tokens * 768
    assert report["unused"].sum() == 0


@pytest.mark.parametrize("backbone", BOTH)
@pytest.mark.parametrize("gain", [1.0, 2.0])
def test_random_values(backbone, gain, digits):
    template = fpt.models.build(digits, backbone, "random", positions=True, random_gain=gain)
    values, again, other = (template.initialise(seed) for seed in (3, 3, 4))
    assert all(torch.equal(value, again[name]) for name, value in values.items())

    def within(name: str, bound: float, least: float = 0.7) -> bool:
        return least * bound < values[f"backbone.layers.0.{name}"].abs().max() <= bound

    for name in ("i2h", "h2h"):
        assert within(f"{name}.weight", gain / math.sqrt(WIDTH), 0.95)
        assert within(f"{name}.bias", 1 / math.sqrt(WIDTH), 0.8)
        weight = f"backbone.layers.0.{name}.weight"
        assert not torch.equal(values[weight], other[weight])
    for name, numbers in (("norm_i2h", 4 * WIDTH), ("norm_h2h", 4 * WIDTH), ("norm_cell", WIDTH)):
        if backbone == "small-lstm":
            assert values[f"backbone.layers.0.{name}.weight"].eq(1).all()
            assert values[f"backbone.layers.0.{name}.bias"].eq(0).all()
        else:
            assert all(within(f"{name}.{part}", 1 / math.sqrt(numbers)) for part in ("weight", "bias"))
    assert values["backbone.positions.weight"].std().item() == pytest.approx(0.02, rel=0.2)
    zero = fpt.models.build(digits, backbone, "random", positions=True, zero_positions=True, random_gain=gain)
    for name, value in zero.initialise(3).items():
        assert torch.equal(value, torch.zeros_like(value) if name == "backbone.positions.weight" else values[name])
    fixed = fpt.models.build(digits, backbone, "random", random_init="fixed").initialise(3)
    assert 0.95 / math.sqrt(768) < fixed["backbone.layers.0.i2h.weight"].abs().max() <= 1 / math.sqrt(768)
