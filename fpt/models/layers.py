"""Layers put in the place of the library's: the same functions, with the precision of products and the random stream
of dropout made explicit.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, softmax
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask
from transformers.pytorch_utils import Conv1D

from fpt.seeds import generator, stream

# Whether this processor multiplies bfloat16: oneDNN, torch's library of products, does so from AVX-512 on. Elsewhere
# torch's own loops take more than 50 times as long as a product in float32, measured.
OWN_BFLOAT16: bool = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def multiplied_in(kind: torch.dtype, device: torch.device) -> torch.dtype:
    """The type in which numbers rounded to `kind` are multiplied on this device: `kind`, or float32 in its place."""
    lacking = kind == torch.bfloat16 and device.type == "cpu" and not OWN_BFLOAT16
    return torch.float32 if lacking else kind


def product(x: Tensor, weight: Tensor, kind: torch.dtype) -> Tensor:
    """`x @ weight.T` of numbers rounded to `kind`, rounded to it again.

    x (..., in), weight (out, in) -> (..., out). Processors that multiply bfloat16 add up in float32. So one that does
    not computes the same in float32, but for the order of its sums.
    """
    multiplied = multiplied_in(kind, x.device)
    return linear(x.to(kind).to(multiplied), weight.to(kind).to(multiplied)).to(kind)


class Projection(nn.Module):
    """`x @ weight + bias` with the product in `compute_type`, its bias and result in the type of `x` (float32).

    Replaces the library's Linear (weight (out, in)) and Conv1D (weight (in, out)); parameter names stay the same.
    T5's have no bias. With an adapter attached, `scale * (x @ A.T) @ B.T` is added, a product in float32.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, transposed: bool) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias
        self.transposed = transposed  # Conv1D keeps (in, out)
        self.compute_type = torch.float32
        self.scale = 0.0  # of the adapter; 0: there is none

    def attach(self, rank: int, scale: float) -> None:
        """Put an adapter beside the matrix: parameters `adapter_a` (rank, in) and `adapter_b` (out, rank)."""
        wide, high = self.weight.shape if self.transposed else self.weight.shape[::-1]
        self.adapter_a = nn.Parameter(torch.empty(rank, wide))
        self.adapter_b = nn.Parameter(torch.empty(high, rank))
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.t() if self.transposed else self.weight
        output = product(x, weight, self.compute_type).to(x.dtype)
        if self.bias is not None:
            output = output.add_(self.bias)
        if self.scale:
            inside = linear(x.to(self.adapter_a.dtype), self.adapter_a)  # T5 hands on its hidden values in bfloat16
            output = output + self.scale * linear(inside, self.adapter_b).to(output.dtype)
        return output


class Dropout(nn.Module):
    """Dropout by masks of 0 and 1/(1 - rate) that are drawn outside the model, one after the other from `masks`."""

    def __init__(self) -> None:
        super().__init__()
        self.masks: Iterator[Tensor] | None = None

    @property
    def p(self) -> float:
        """The library's modules hand it on to `attention`, which does without."""
        return 0.0

    def forward(self, x: Tensor) -> Tensor:
        return x if self.masks is None else x * next(self.masks)


class Noise(nn.Module):
    """Standard normal numbers that a forward pass starts from, at evaluation too: drawn outside the model, like masks.

    like (batch, ...) -> (batch, *shape). With none handed in, the same numbers at every call.
    """

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.shape = shape
        self.numbers: Tensor | None = None

    def draw(self, batch: int, source: torch.Generator) -> Tensor:
        return torch.randn(batch, *self.shape, generator=source)

    def forward(self, like: Tensor) -> Tensor:
        numbers = self.draw(len(like), generator(0, "noise")) if self.numbers is None else self.numbers
        return numbers.to(like.device, like.dtype)


class Masks:
    """Dropout masks of seeds at a step, a function of both and of the kind of device: 16 random bits for each element.

    They are drawn on the device, and a GPU's generator gives other numbers than a CPU's. All other draws are made on
    the host and are the same everywhere.

    torch's own dropout takes a call of the global generator an element, five times as long on a CPU. The memory
    is kept: masks of one step are overwritten by those of the next.
    """

    def __init__(self, rate: float, device: torch.device) -> None:
        self.rate = rate
        self._source = torch.Generator(device)
        self._floats = torch.empty(0, device=device)
        self._words = torch.empty(0, dtype=torch.int64, device=device)

    def draw(self, shapes: Sequence[torch.Size], seeds: Sequence[int], step: int) -> list[Tensor]:
        """A mask (seeds, ...) for each shape; at one step of a seed the same, whatever other seeds there are."""
        sizes = [shape.numel() for shape in shapes]
        total, words = sum(sizes), (sum(sizes) + 3) // 4
        if self._floats.numel() < len(seeds) * total:
            self._floats = self._floats.new_empty(len(seeds) * total)
        if self._words.numel() < words:
            self._words = self._words.new_empty(words)
        drawn = self._floats[: len(seeds) * total].view(len(seeds), total)
        for seed, floats in zip(seeds, drawn, strict=True):
            self._source.manual_seed(stream(seed, "dropout", step))
            bits = self._words[:words].random_(-(2**63), None, generator=self._source).view(torch.int16)[:total]
            # Compared into floats: torch.where and products with booleans take three to six times as long on a CPU.
            torch.ge(bits, round(self.rate * 2**16) - 2**15, out=floats).mul_(1 / (1 - self.rate))
        parts = drawn.split(sizes, dim=1)
        return [part.view(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """The library's eager attention with our dropout.

    query (batch, heads, rows, width of a head), key and value (batch, heads or a divisor, tokens, width of a head),
    mask (batch or 1, 1, rows or 1, tokens), position_bias (batch or 1, heads, rows, tokens; T5's), softcap (Gemma 2's
    largest score), s_aux (heads; GPT-OSS's score of attending to nothing) -> (batch, rows, heads, width of a head),
    (batch, heads, rows, tokens). Eager, because the fused kernels have no batching rule for
    vmap in eval mode on the CPU.
    """
    if (shared := query.shape[1] // key.shape[1]) > 1:  # grouped-query attention: keys serve several heads
        key, value = key.repeat_interleave(shared, dim=1), value.repeat_interleave(shared, dim=1)
    scores = (query * scaling) @ key.transpose(-1, -2)
    if position_bias is not None:
        scores = scores + position_bias
    if softcap is not None:
        scores = softcap * (scores / softcap).tanh()
    if mask is not None:
        scores = scores + mask
    if s_aux is not None:
        nothing = s_aux.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat([scores, nothing], dim=-1)
    dropout = module.attn_dropout if hasattr(module, "attn_dropout") else module.dropout
    weights = softmax(scores, dim=-1)[..., : key.shape[-2]]
    return (dropout(weights) @ value).transpose(1, 2), weights


def attention_mask(attention_mask: Tensor | None = None, **call: Any) -> Tensor | None:
    """The library's mask for eager attention; whether one is needed is decided without a look at the values, as vmap
    demands: a bidirectional one needs none where no padding mask (batch, tokens) is given. A causal one is needed
    always."""
    call["allow_is_bidirectional_skip"] = attention_mask is None and call.get("allow_is_bidirectional_skip", False)
    mask: Tensor | None = eager_mask(attention_mask=attention_mask, **call)
    return mask


AttentionInterface.register("fpt", attention)
AttentionMaskInterface.register("fpt", attention_mask)


def padding_mask(hidden: Tensor, lengths: Tensor | None) -> Tensor | None:
    """(batch, 1, 1, tokens) hiding what lies at or beyond each length; None where nothing is padded."""
    if lengths is None:
        return None
    padded = torch.arange(hidden.shape[1], device=hidden.device) >= lengths[:, None]
    return (padded * torch.finfo(hidden.dtype).min)[:, None, None]


def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, heads: int) -> Tensor:
    """Attention of (batch, rows, width) over (batch, tokens, width): (batch, rows, width)."""
    query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value))
    scaling = getattr(module, "scaling", query.shape[-1] ** -0.5)
    return attention(module, query, key, value, mask, scaling)[0].flatten(2)


def read_out(hidden: Tensor, count: int, lengths: Tensor | None) -> Tensor:
    """The last `count` positions of (batch, tokens, ...), counted from each row's last real token."""
    if lengths is None:
        return hidden[:, -count:]
    positions = (lengths - count)[:, None] + torch.arange(count, device=hidden.device)
    positions = positions.reshape(*positions.shape, *[1] * (hidden.dim() - 2))
    return hidden.gather(1, positions.expand(-1, -1, *hidden.shape[2:]))


def mean_over(hidden: Tensor, lengths: Tensor | None) -> Tensor:
    """The mean over the real tokens of (batch, tokens, width): (batch, 1, width)."""
    if lengths is None:
        return hidden.mean(1, keepdim=True)
    real = (torch.arange(hidden.shape[1], device=hidden.device) < lengths[:, None]).to(hidden.dtype)
    return (real[:, None] @ hidden) / lengths[:, None, None].to(hidden.dtype)


def replace_layers(module: nn.Module) -> None:
    """Every Linear and Conv1D below `module` becomes a Projection with the same parameters, every Dropout ours.

    Attention modules that hold no more than a rate get a Dropout for `attention`.
    """
    for name, child in module.named_children():
        if isinstance(child, Conv1D | nn.Linear):
            setattr(module, name, Projection(child.weight, child.bias, transposed=isinstance(child, Conv1D)))
        elif isinstance(child, nn.Dropout):
            setattr(module, name, Dropout())
        else:
            replace_layers(child)
    held = [getattr(module, name, None) for name in ("attn_dropout", "dropout")]
    if "Attention" in type(module).__name__ and not any(isinstance(layer, Dropout) for layer in held):
        module.attn_dropout = Dropout()
