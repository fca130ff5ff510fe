"""Layers of ours against what they stand for."""

from types import SimpleNamespace

import pytest
import torch

from fpt.models.layers import Dropout, Masks, attention


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_masks_keep_the_mean(rate):
    """0 with probability `rate`, else 1/(1 - rate)."""
    first, second = Masks([torch.Size([50, 40]), torch.Size([1000])], rate, torch.device("cpu"), seed=3).draw(4, 5)
    assert (first.shape, second.shape) == ((4, 5, 50, 40), (4, 5, 1000))
    for mask in (first, second):
        assert mask.unique().tolist() == pytest.approx([0, 1 / (1 - rate)])
        assert mask.mean().item() == pytest.approx(1, abs=0.03)
        assert (mask == 0).double().mean().item() == pytest.approx(rate, abs=0.02)


def test_one_key_serves_several_heads():
    source, module = torch.Generator().manual_seed(0), SimpleNamespace(dropout=Dropout())
    query, key, value = (torch.randn(2, heads, 5, 3, generator=source) for heads in (4, 2, 2))
    actual, _ = attention(module, query, key, value, None, 0.5)
    for head in range(4):
        weights = (0.5 * query[:, head] @ key[:, head // 2].mT).softmax(-1)
        torch.testing.assert_close(actual[:, :, head], weights @ value[:, head // 2])
