"""Which columns of a fleet's parameter matrix, of which every row is a run, are which tensor of the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from fpt.models.layers import Projection
from fpt.models.template import Template
from fpt.training.recipe import HEAD, Recipe

LARGE = 16_384  # numbers of a tensor that is a piece of its own


@dataclass(frozen=True)
class Piece:
    """Columns that lie together: of tensors that train alike."""

    sizes: list[int]  # of its tensors
    dtype: torch.dtype  # that it is computed with in
    head: bool  # it trains at the rate of the head
    decays: bool

    @property
    def size(self) -> int:
        return sum(self.sizes)


class Layout:
    """The trained tensors one after the other: small ones first and together, then the large ones, each a piece of its
    own; so for the tensors of each of the optimizer's groups.

    Gradients are taken piece by piece: one for all columns would copy every gradient once more (Adam's time again, for
    an unfrozen GPT-2), and one for each small tensor would cost 20 µs each and step.
    """

    def __init__(self, template: Template, recipe: Recipe, compute_type: torch.dtype) -> None:
        self.template, self.recipe, self.compute_type = template, recipe, compute_type
        self.names = sorted(template.trainable, key=self._order)
        self.shapes = [template.shapes[name] for name in self.names]
        self.pieces: list[Piece] = []
        for (head, decays, large), group in groupby(self.names, self._order):
            alike = list(group)
            for names in [[name] for name in alike] if large else [alike]:
                dtype = self.dtype(names[0]) if large else torch.float32
                self.pieces.append(Piece([template.shapes[name].numel() for name in names], dtype, head, decays))

    def _order(self, name: str) -> tuple[bool, bool, bool]:
        """Whether a tensor trains at the rate of the head, whether it decays, and whether it is large."""
        group, shape = self.template.groups[name], self.template.shapes[name]
        head = self.recipe.head_rate is not None and group in HEAD
        # The biases of all experts of a mixture are one tensor of two dimensions.
        decays = len(shape) > 1 and group != "layer_norm" and not name.endswith("bias")
        return head, self.recipe.weight_decay > 0 and decays, shape.numel() >= LARGE

    def dtype(self, name: str) -> torch.dtype:
        """The type in which a tensor is computed with: matrices of ours in the compute type, frozen or not. What the
        library multiplies by itself (experts of a mixture) stays float32."""
        module = self.template.module.get_submodule(name.rpartition(".")[0])
        matrix = isinstance(module, Projection) and len(self.template.shapes[name]) > 1
        inside = matrix and self.template.groups[name] in ("attention", "feed_forward", "recurrent")
        return self.compute_type if inside else torch.float32

    def row(self, values: Mapping[str, Tensor]) -> Tensor:
        """The row of a run with these values."""
        return torch.cat([values[name].flatten() for name in self.names])

    def cut(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows (runs, numbers), or one row, in pieces."""
        return torch.split(rows, [piece.size for piece in self.pieces], dim=-1)

    def cast(self, rows: Tensor) -> list[Tensor]:
        """The same, each in the type that it is computed with in: once here, not at every use."""
        pieces = self.cut(rows)
        if self.compute_type == torch.float32:
            return list(pieces)
        return [part.to(piece.dtype) for part, piece in zip(pieces, self.pieces, strict=True)]

    def named(self, pieces: Sequence[Tensor]) -> dict[str, Tensor]:
        """The tensors of one run, by name, from the pieces of its row."""
        tensors = [
            tensor
            for part, piece in zip(pieces, self.pieces, strict=True)
            for tensor in (part.split(piece.sizes) if len(piece.sizes) > 1 else [part])  # else a gradient is copied
        ]
        return {name: part.view(shape) for name, part, shape in zip(self.names, tensors, self.shapes, strict=True)}
