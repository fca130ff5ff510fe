"""Layers of ours against what they stand for."""

import pytest
import torch
from torch import nn

from fpt.models import layers
from fpt.models.layers import Masks, Projection

CPU = torch.device("cpu")
SHAPES = [torch.Size([50, 40]), torch.Size([1000])]


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_masks_keep_the_mean(rate):
    """0 with probability `rate`, else 1/(1 - rate)."""
    first, second = Masks(rate, CPU).draw(SHAPES, range(20), 3)
    assert (first.shape, second.shape) == ((20, 50, 40), (20, 1000))
    for mask in (first, second):
        assert mask.unique().tolist() == pytest.approx([0, 1 / (1 - rate)])
        assert mask.mean().item() == pytest.approx(1, abs=0.03)
        assert (mask == 0).double().mean().item() == pytest.approx(rate, abs=0.02)


def test_masks_are_of_the_seed_and_the_step_and_of_nothing_else():
    masks = Masks(0.5, CPU)
    first = [mask.clone() for mask in masks.draw(SHAPES, [0, 5, 7], 3)]
    for mask in first:
        assert not any(torch.equal(mask[one], mask[other]) for one, other in ((0, 1), (0, 2), (1, 2)))
    for mask, later in zip(first, masks.draw(SHAPES, [0, 5, 7], 4), strict=True):
        assert not any(map(torch.equal, mask, later))
    for seeds, places in (([5], [1]), ([7, 0], [2, 0]), ([0, 5, 7], [0, 1, 2])):  # after other draws, beside others
        for again in (masks, Masks(0.5, CPU)):
            for mask, whole in zip(again.draw(SHAPES, seeds, 3), first, strict=True):
                assert torch.equal(mask, whole[places])


@pytest.mark.parametrize("own", [False, True])  # multiplied by torch's bfloat16, and in float32
def test_products_in_bfloat16_are_the_exact_ones_rounded(own, monkeypatch):
    """Forward and backward: half a unit in the last of 8 bits is lost, and little by adding up."""
    monkeypatch.setattr(layers, "OWN_BFLOAT16", own)
    source = torch.Generator().manual_seed(0)
    x, weight, gradient = (torch.randn(*shape, generator=source) for shape in ((3, 5, 64), (16, 64), (3, 5, 16)))
    layer = Projection(nn.Parameter(weight), None, transposed=False)
    layer.compute_type = torch.bfloat16
    output = layer(x.requires_grad_())
    output.backward(gradient)
    rounded = [part.detach().bfloat16().double() for part in (x, weight, gradient)]
    exact_x, exact_weight, exact_gradient = rounded
    exact = {
        "output": (output, exact_x @ exact_weight.T),
        "x": (x.grad, exact_gradient @ exact_weight),
        "weight": (layer.weight.grad, exact_gradient.flatten(0, 1).T @ exact_x.flatten(0, 1)),
    }
    for name, (found, wanted) in exact.items():
        assert found.dtype == torch.float32
        assert torch.equal(found, found.bfloat16().float()), name
        torch.testing.assert_close(found.double(), wanted, rtol=2**-8, atol=1e-4, msg=name)
