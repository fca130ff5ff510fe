"""Layers of ours against what they stand for."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.func import vmap
from torch.nn.functional import linear

from fpt.models import layers
from fpt.models.layers import Dropout, Masks, Projection, attention, product

CPU = torch.device("cpu")
SHAPES = [torch.Size([50, 40]), torch.Size([1000])]


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_masks_keep_the_mean(rate):
    """0 with probability `rate`, else 1/(1 - rate)."""
    first, second = Masks(SHAPES, rate, CPU).draw(range(20), 3)
    assert (first.shape, second.shape) == ((20, 50, 40), (20, 1000))
    for mask in (first, second):
        assert mask.unique().tolist() == pytest.approx([0, 1 / (1 - rate)])
        assert mask.mean().item() == pytest.approx(1, abs=0.03)
        assert (mask == 0).double().mean().item() == pytest.approx(rate, abs=0.02)


def test_masks_are_of_the_seed_and_the_step_and_of_nothing_else():
    masks = Masks(SHAPES, 0.5, CPU)
    first = [mask.clone() for mask in masks.draw([0, 5, 7], 3)]
    for mask in first:
        assert not any(torch.equal(mask[one], mask[other]) for one, other in ((0, 1), (0, 2), (1, 2)))
    for mask, later in zip(first, masks.draw([0, 5, 7], 4), strict=True):
        assert not any(map(torch.equal, mask, later))
    for seeds, places in (([5], [1]), ([7, 0], [2, 0]), ([0, 5, 7], [0, 1, 2])):  # after other draws, beside others
        for again in (masks, Masks(SHAPES, 0.5, CPU)):
            for mask, whole in zip(again.draw(seeds, 3), first, strict=True):
                assert torch.equal(mask, whole[places])


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(("of_seeds", "of_rates"), [(0, 0), (0, None), (None, None)])  # a run's, a seed's, everybody's
def test_products_of_runs_are_those_of_torch(of_seeds, of_rates, transposed, biased):
    source = torch.Generator().manual_seed(0)
    lead = [size for size, at in ((3, of_seeds), (4, of_rates)) if at is not None]
    x = torch.randn(3, 4, 5, 6, 7, generator=source, requires_grad=True)
    weight = torch.randn(*lead, *((7, 2) if transposed else (2, 7)), generator=source, requires_grad=True)
    bias = torch.randn(*lead, 2, generator=source, requires_grad=True) if biased else None
    leaves = [x, weight, bias] if biased else [x, weight]

    def both(layer_of: Any) -> list[torch.Tensor]:
        def one(x, weight, bias):
            return layer_of(x, weight.mT if transposed else weight, bias)

        inner = vmap(one, in_dims=(0, of_rates, of_rates if biased else None))
        result = vmap(inner, in_dims=(0, of_seeds, of_seeds if biased else None))(x, weight, bias)
        return [result, *torch.autograd.grad(result.sin().sum(), leaves)]

    def ours(x, weight, bias):
        return product(x.reshape(-1, 7), weight, bias).view(*x.shape[:-1], 2)

    for actual, expected in zip(both(ours), both(linear), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("shared", "by_onednn"), [(True, True), (False, False)])
def test_large_float32_products_that_runs_share_go_to_onednn(shared, by_onednn, monkeypatch):
    seen = []
    monkeypatch.setattr(layers, "product", lambda *factors: seen.append(1) or product(*factors))
    layer = Projection(torch.ones(128, 128), torch.zeros(128), transposed=False)
    layer.shared = shared
    assert layer(torch.ones(2, 3, 128)).shape == (2, 3, 128)
    assert bool(seen) == (by_onednn and layers.ONEDNN)
    layer.compute_type = torch.bfloat16
    layer(torch.ones(2, 3, 128))
    assert len(seen) == (by_onednn and layers.ONEDNN)


def test_one_key_serves_several_heads():
    source, module = torch.Generator().manual_seed(0), SimpleNamespace(dropout=Dropout())
    query, key, value = (torch.randn(2, heads, 5, 3, generator=source) for heads in (4, 2, 2))
    actual, _ = attention(module, query, key, value, None, 0.5)
    for head in range(4):
        weights = (0.5 * query[:, head] @ key[:, head // 2].mT).softmax(-1)
        torch.testing.assert_close(actual[:, :, head], weights @ value[:, head // 2])
