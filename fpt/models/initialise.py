"""The values a run starts from: pretrained tensors, and random ones drawn by name from the run's seed.

The recipes are ours and explicit, because the library's default changed between versions and decides the result.
Every tensor has a random stream named after it, so all arms of a seed share their input and output layers.
"""

import math

import torch
from torch import Tensor

from fpt.seeds import generator

ORTHOGONAL_GAIN = 1.41  # released code of Lu et al. 2021
STANDARD_DEVIATION = 0.02  # GPT-2's
REFERENCE_WIDTH = 768  # GPT-2 base's: `matched` keeps a layer's gain equal to its at every width


def normal(shape: torch.Size, std: float, seed: int, name: str) -> Tensor:
    """N(0, std) from the stream of (seed, name); float32."""
    return torch.empty(shape).normal_(0.0, std, generator=generator(seed, "weights", name))


def input_layer(shape: torch.Size, kind: str, seed: int, name: str) -> Tensor:
    """Weight (width, features) of a linear layer, PyTorch's `default` or orthogonal with gain 1.41; N(0, 1) for an
    `embedding` table (symbols, width)."""
    if kind == "embedding":
        return normal(shape, 1.0, seed, name)
    if kind == "default":
        return linear(shape, shape[1], seed, name)
    weight = torch.empty(shape)
    return torch.nn.init.orthogonal_(weight, ORTHOGONAL_GAIN, generator=generator(seed, "weights", name))


def input_bias(shape: torch.Size, kind: str, seed: int, name: str) -> Tensor:
    """Bias (width,) of a linear layer: 0, and N(0, 0.02) where `kind` is `biased`.

    With a bias of 0, a token of zeros (a black patch) is a vector of zeros. In a causal model that adds no positions it
    stays one in every layer if all before it are black, too. There RMSNorm multiplies a gradient by 1/sqrt(epsilon), in
    every layer: on digits the gradient of SmolLM2 overflows float32 after 14 of its 30 layers. The bias is as large as
    GPT-2's new positions.
    """
    return normal(shape, STANDARD_DEVIATION, seed, name) if kind == "biased" else torch.zeros(shape)


def linear(shape: torch.Size, fan_in: int, seed: int, name: str) -> Tensor:
    """PyTorch's default for a linear layer: uniform within 1/sqrt(fan_in), weight and bias alike."""
    return uniform(shape, 1 / math.sqrt(fan_in), seed, name)


def uniform(shape: torch.Size, bound: float, seed: int, name: str) -> Tensor:
    """Uniform within `bound`, from the stream of (seed, name); float32."""
    return torch.empty(shape).uniform_(-bound, bound, generator=generator(seed, "weights", name))


def matrix_std(width: int, layers: int, recipe: str, gain: float, residual: bool) -> float:
    """Standard deviation of an attention or feed-forward matrix, `residual` if it writes into the residual stream.

    `fixed`: 0.02 at any width; `matched`: 0.02 sqrt(768/width); `scaled`: matched, and the residual projections times
    1/sqrt(2 layers) (Radford et al. 2019, section 2.3). `gain` multiplies all of them.
    """
    std = STANDARD_DEVIATION * gain
    if recipe != "fixed":
        std *= math.sqrt(REFERENCE_WIDTH / width)
    if recipe == "scaled" and residual:
        std /= math.sqrt(2 * layers)
    return std


def extended_positions(table: Tensor, rows: int, std: float, seed: int, name: str) -> Tensor:
    """A pretrained table of `rows` rows; those beyond the given ones are drawn from N(0, std)."""
    return torch.cat([table, normal(torch.Size((rows - len(table), table.shape[1])), std, seed, name)])


def with_statistics(table: Tensor, shape: torch.Size, seed: int, name: str) -> Tensor:
    """Gaussian with the mean and standard deviation of a pretrained tensor (Lu et al. 2021, section 3.8)."""
    return table.mean() + normal(shape, table.std(correction=0).item(), seed, name)
