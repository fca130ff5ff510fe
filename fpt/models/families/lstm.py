"""The recurrent backbones of Lu et al. 2021, section 3.3: `lstm`, and `lstm-released` as their code has it.

Both are layer-normalised LSTMs (Ba et al. 2016, "Layer Normalization", appendix): with LN for a layer norm,

    i, f, o, g = LN(i2h x) + LN(h2h h)           (input, forget and output gate, candidate)
    c = sigmoid(f) c + sigmoid(i) tanh(g)
    h = sigmoid(o) tanh(LN(c))

The paper calls its LSTM standard. What it released differs from Ba et al. in five ways, all kept in `lstm-released`:
the normalised c is carried on, not c itself; variances are unbiased; gains and biases of the layer norms start from
uniform numbers instead of 1 and 0; dropout acts on the h that is carried on, with a mask for every step; h and c start
from random numbers at every forward pass, at evaluation too. Fleets draw those from a stream of the run's seed, for
every example of every training step anew; at evaluation for every example, and the same each time.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm
from transformers import PretrainedConfig

from fpt.models import initialise as draw
from fpt.models.families.library import Family, Rows
from fpt.models.layers import Dropout, Noise


class LSTMConfig(PretrainedConfig):
    """Sizes of an LSTM under the names of the library's models; `max_position_embeddings` is the number of tokens."""

    model_type = "layer-norm-lstm"
    num_attention_heads = 0

    def __init__(
        self,
        width: int = 768,
        num_hidden_layers: int = 3,
        max_position_embeddings: int = 0,
        released: bool = False,
        residual: bool = False,
        positions: bool = False,
        zero_positions: bool = False,
        **library: Any,
    ) -> None:
        super().__init__(**library)
        self.hidden_size, self.num_hidden_layers = width, num_hidden_layers
        self.max_position_embeddings = max_position_embeddings
        self.released, self.residual = released, residual
        self.positions, self.zero_positions = positions, zero_positions


class UnbiasedLayerNorm(nn.LayerNorm):
    """Layer norm that divides by sqrt(variance + 1e-6) with the unbiased variance, as the released code does."""

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        # The unbiased variance is n / (n - 1) times what torch's kernel divides by: taken out of the root.
        ratio = 1 - 1 / x.shape[-1]
        return layer_norm(x, self.normalized_shape, self.weight * math.sqrt(ratio), self.bias, self.eps * ratio)


class Layer(nn.Module):
    """One layer over time: x (batch, tokens, width), h and c (batch, width) -> outputs (batch, tokens, width).

    The products are most of a step's time. One frozen run of 3 layers of width 768, 8 examples, on one thread of a busy
    machine: 2.8 s a step at 64 tokens, 39 s at 1,024.
    """

    def __init__(self, width: int, released: bool) -> None:
        super().__init__()
        self.width, self.released = width, released
        norm = UnbiasedLayerNorm if released else nn.LayerNorm  # torch's: eps 1e-5, biased variance
        self.i2h, self.h2h = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width)
        self.norm_i2h, self.norm_h2h, self.norm_cell = norm(4 * width), norm(4 * width), norm(width)
        self.dropout = Dropout()

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        outputs = []
        masks = self.dropout(torch.ones_like(x)).unbind(1) if self.released else ()
        # What the inputs add does not depend on the state: one product for all steps. unbind, because the gradient of
        # an index is as large as the whole.
        for step, inputs in enumerate(self.norm_i2h(self.i2h(x)).unbind(1)):
            gates, candidate = (inputs + self.norm_h2h(self.h2h(h))).split([3 * self.width, self.width], dim=-1)
            let_in, keep, let_out = gates.sigmoid().chunk(3, dim=-1)
            c = keep * c + let_in * candidate.tanh()
            normalised = self.norm_cell(c)
            h = let_out * normalised.tanh()
            if self.released:
                c, h = normalised, h * masks[step]
            outputs.append(h)
        hidden = torch.stack(outputs, dim=1)
        return hidden if self.released else self.dropout(hidden)


class LSTM(nn.Module):
    """Unidirectional layers of one width: embedded (batch, tokens, width) -> hidden (batch, tokens, width)."""

    def __init__(self, config: LSTMConfig) -> None:
        super().__init__()
        self.config, width = config, config.hidden_size
        self.positions = nn.Embedding(config.max_position_embeddings, width) if config.positions else None
        self.layers = nn.ModuleList([Layer(width, config.released) for _ in range(config.num_hidden_layers)])
        self.noise = Noise(config.num_hidden_layers, 2, width) if config.released else None

    def forward(self, embedded: Tensor) -> Tensor:
        hidden = embedded if self.positions is None else embedded + self.positions.weight
        for layer, (h, c) in zip(self.layers, self.initial_states(embedded), strict=True):
            output = layer(hidden, h, c)
            hidden = hidden + output if self.config.residual else output
        return hidden

    def initial_states(self, embedded: Tensor) -> list[tuple[Tensor, Tensor]]:
        """h and c (batch, width) of every layer before the first token."""
        if self.noise is None:
            zero = embedded.new_zeros(len(embedded), self.config.hidden_size)
            return [(zero, zero)] * self.config.num_hidden_layers
        # Xavier's variance, 2 / (inputs + outputs) of a layer: its two widths are the same here
        numbers = self.noise(embedded) / math.sqrt(self.config.hidden_size)
        return [(state[:, 0], state[:, 1]) for state in numbers.unbind(1)]


def forward(model: LSTM, embedded: Tensor, lengths: Tensor | None, rows: Rows) -> Tensor:
    """Every layer needs every step. Padding follows the real tokens, and a token depends on those before it alone."""
    return rows(model(embedded))


def initial_value(
    config: LSTMConfig, name: str, group: str, shape: torch.Size, seed: int, recipe: str, gain: float
) -> Tensor:
    """A random start for parameter `name` of `group`, from the stream of (seed, name).

    Weights and biases are uniform within 1/sqrt(width), which is torch's default for nn.LSTM, what the released code
    draws, and at any width the scale of `matched` (a standard deviation of 0.0208 at width 768). `fixed` keeps 768's
    bound; nothing here writes into a residual stream, so `scaled` is `matched`. `gain` multiplies matrices alone.
    Layer norms take the scale of what they normalise away: a gain changes a product against its bias, no more. The
    biases are random, too, for that reason, and because a layer norm of zeros (the first h2h) has a gradient of 300.
    """
    if group == "positions":
        return torch.zeros(shape) if config.zero_positions else draw.normal(shape, draw.STANDARD_DEVIATION, seed, name)
    if group == "layer_norm":
        if not config.released:
            return torch.ones(shape) if name.endswith("weight") else torch.zeros(shape)
        return draw.uniform(shape, 1 / math.sqrt(shape[0]), seed, name)
    bound = 1 / math.sqrt(draw.REFERENCE_WIDTH if recipe == "fixed" else config.hidden_size)
    return draw.uniform(shape, bound * (gain if name.endswith("weight") else 1), seed, name)


FAMILY = Family(
    config=LSTMConfig,
    model=LSTM,
    forward=forward,
    classes=(("Norm", "layer_norm"), ("Embedding", "positions"), ("Layer", "recurrent")),
    positions="positions.weight",
    initial_value=initial_value,
    recurrent=True,
    needs_fpt=True,
    tiny={"width": 16},
)
