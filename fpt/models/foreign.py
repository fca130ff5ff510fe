"""A foreign model, of the library and without a row in the catalogue: whether it can be a backbone. A small one of its
architecture is built, and computed for two runs at once, before anything is trained.

What does not equal the library's own forward pass is refused. What is measured: the groups of its parameters, its table
of positions, and its table of tokens, where that alone says what the layers read of a token.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from transformers import AutoModel

from fpt.errors import SpecError
from fpt.files import check_fits
from fpt.models.catalogue import Backbone
from fpt.models.families import family
from fpt.models.families.library import (
    BROKEN,
    FAMILY,
    FEW_TOKENS,
    HEADS,
    LENGTHS,
    WINDOWS,
    Family,
    any_layer,
    broken,
    check_window,
    token_tables,
)
from fpt.models.layers import Projection

DEPTH = 8  # layers of it: kinds of layers take turns of 8 at most
TOKENS, RUNS = 7, 2
PADDED = (7, 4, 1)  # lengths of the padded examples
COPIES = 64  # bytes of a parameter of the small model: eight tensors of 8 bytes
TOLERANCE = 1e-4  # relative; the library computes norms and angles in float32
# A field of a config.json -> what kind of model has it, for a message.
KINDS = {
    "mamba|ssm_|state_size|conv_kernel|linear_key|linear_conv|rwkv|lru_": "recurrent in part",
    "experts|moe_": "a mixture of experts",
}


@cache
def measured(backbone: Backbone) -> Backbone:
    """The backbone with the groups and the fields of its family that were measured.

    Raises SpecError with the reason where it cannot be used, and DataError where even the small model does not fit into
    memory, because of sizes that stay as they are.
    """
    given = backbone.config
    if wrong := [f"{name} {size}" for name in HEADS if isinstance(size := given.get(name), int) and size < 1]:
        raise SpecError(f"{backbone.title} cannot be a backbone: {' and '.join(wrong)} must be 1 or more")
    room = _room(backbone, (*WINDOWS, *LENGTHS), TOKENS)
    errors: list[Exception] = []
    for attention in ("fpt", "eager"):
        kind = replace(FAMILY, attention=attention)
        try:
            small = replace(backbone, layers=min(backbone.layers, DEPTH), config=kind.reduced(backbone) | room)
            with torch.device("cpu"), torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                groups, fields = _measure(kind, small)
                return replace(backbone, groups=groups, measured=fields)
        except (SpecError, *BROKEN) as error:
            errors.append(error)
    ours, librarys = errors
    failure = librarys if "'fpt'" in str(ours) else ours  # the first says that it takes no attention but the library's
    kind_of = next((f"{kind}: " for fields, kind in KINDS.items() if re.search(fields, json.dumps({**given}))), "")
    said = [line.strip() for line in str(failure).strip().splitlines()[:2]]  # libraries say the field first, then why
    why = f"no {said[0]} is known" if isinstance(failure, KeyError) else " ".join(said) or type(failure).__name__
    raise SpecError(f"{backbone.title} cannot be a backbone: {kind_of}{why}") from failure


def _room(backbone: Backbone, fields: Iterable[str], tokens: int) -> dict[str, int]:
    """The sizes of windows and tables, large enough for `tokens`: a task's length is compared with the real model's."""
    sizes = {name: backbone.config.get(name) for name in fields}
    return {name: max(size, 4 * tokens) for name, size in sizes.items() if type(size) is int and size > 0}


@cache
def check_length(backbone: Backbone, tokens: int) -> None:
    """Refuse (SpecError) a task that is longer than a table of positions that is no parameter.

    A small model of the architecture, with the tables of the real one, computes one sequence of the task's length.
    """
    kind = family(backbone)
    try:
        with torch.device("cpu"), torch.random.fork_rng(devices=[]), torch.no_grad():
            config = kind.reduced(backbone) | _room(backbone, WINDOWS, tokens)  # checked before
            model = kind.build(replace(backbone, layers=min(backbone.layers, 2), config=config), tokens)
            kind.forward(model, torch.zeros(1, tokens, model.config.hidden_size), None, lambda hidden: hidden)
    except BROKEN as error:
        raise broken(backbone, tokens, error) from error


def longest(backbone: Backbone, most: int) -> int:
    """How many tokens, up to `most`, a sequence of this model can have."""
    config = family(backbone).configuration(backbone)

    def too_long(tokens: int) -> bool:
        try:
            check_window(backbone, config, tokens)
            check_length(backbone, tokens)
        except SpecError:
            return True
        return False

    return bisect_left(range(1, most), True, key=too_long) if too_long(most) else most


def _measure(kind: Family, small: Backbone) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Groups, and fields of the family."""
    config = kind.configuration(small)
    config._experts_implementation = "eager"
    with torch.device("meta"):  # counted without being allocated: a damaged number may be any
        sizes: Any = AutoModel.from_config(config)
    count = sum(tensor.numel() for tensor in (*sizes.parameters(), *sizes.buffers()))
    check_fits(COPIES * count, f"a small model of {small.title}")
    library: Any = AutoModel.from_config(config, attn_implementation="eager").double().eval()
    zeros = {any_layer(name) for name, value in library.named_parameters() if not value.any()}
    for parameter in library.parameters():
        nn.init.normal_(parameter, std=0.2)
    model = kind.build(small, TOKENS).double()
    for module in model.modules():
        if isinstance(module, Projection):
            module.compute_type = torch.float64
    groups = {name: kind.group_of(model, name) for name, _ in model.named_parameters()}
    values = dict(library.named_parameters())
    weights = []
    for run in range(RUNS):
        weights.append({name: values[name].detach() * (1 + run / 10) for name in groups})
    padded = torch.tensor(PADDED)
    x = torch.randn(len(PADDED), TOKENS, library.get_input_embeddings().weight.shape[1], dtype=torch.float64)
    for lengths in (None, padded):
        ours = _at_once(model, weights, x, lengths)
        for of_run, computed in zip(weights, ours, strict=True):
            theirs = _last(library, of_run, x, lengths)
            if computed.shape != theirs.shape or not torch.allclose(computed, theirs, TOLERANCE, TOLERANCE):
                how = "without padding" if lengths is None else "with padding"
                raise ValueError(f"several runs at once {how} do not give what the library's own forward pass gives")
    order = ("input", "output", *dict.fromkeys(groups.values()))
    fields = _positions(model, groups, weights[0], x) | _table(library)
    # Norms that multiply by 1 + weight: the library starts them from zeros, as no other norm.
    norms = {any_layer(name) for name, group in groups.items() if group == "layer_norm" and name.endswith("weight")}
    if zero_norms := sorted(norms & zeros):
        fields |= {"zero_norms": zero_norms}
    return order, {"attention": kind.attention, **fields}


def _last(model: nn.Module, weights: Mapping[str, Tensor], x: Tensor, lengths: Tensor | None) -> Tensor:
    """(examples, width) at the last real token of x (examples, tokens, width)."""
    shown = None if lengths is None else torch.arange(TOKENS) < lengths[:, None]
    output = functional_call(model, dict(weights), (), {"inputs_embeds": x, "attention_mask": shown})
    hidden: Tensor = output.last_hidden_state
    places = torch.full((len(x),), TOKENS) if lengths is None else lengths
    return hidden.gather(1, (places - 1)[:, None, None].expand(-1, 1, hidden.shape[-1]))[:, 0]


def _at_once(model: nn.Module, weights: list[dict[str, Tensor]], x: Tensor, lengths: Tensor | None) -> Tensor:
    """(runs, examples, width), as a fleet computes it, gradients included."""
    stacked = {}
    for name in weights[0]:
        stacked[name] = torch.stack([run[name] for run in weights]).requires_grad_()
    computed: Tensor = vmap(lambda named: _last(model, named, x, lengths))(stacked)
    gradients = torch.autograd.grad(computed.sum(), list(stacked.values()), allow_unused=True)
    if not all(gradient is None or gradient.isfinite().all() for gradient in gradients):
        raise ValueError("its gradients are not finite")
    return computed.detach()


def _positions(model: nn.Module, groups: dict[str, str], weights: dict[str, Tensor], x: Tensor) -> dict[str, Any]:
    """The table of which each token uses one row, and how many rows lie before the first token's, if there is one."""
    tables = [name for name, group in groups.items() if group == "positions" and weights[name].dim() == 2]
    if not tables:
        return {}
    leaves = {name: weights[name].clone().requires_grad_() for name in tables}
    loss = _last(model, {**weights, **leaves}, x, None).square().sum()
    for name, gradient in zip(tables, torch.autograd.grad(loss, list(leaves.values()), allow_unused=True), strict=True):
        rows = [] if gradient is None else gradient.ne(0).any(1).nonzero().flatten().tolist()
        if len(rows) == TOKENS:
            return {"positions": name, "rows_before": rows[0], "cut_in_build": True}
    return {}


def _table(library: Any) -> dict[str, Any]:
    """The table of tokens, if the library makes of ids what it makes of their rows in it: some models add to these."""
    table, pad = library.get_input_embeddings(), getattr(library.config, "pad_token_id", None)
    # Not that of padding: where RoBERTa sees it, no position is counted.
    ids = torch.tensor([[number for number in range(FEW_TOKENS) if number != pad][:TOKENS]])
    try:
        with torch.no_grad():
            of_rows = library(inputs_embeds=table(ids)).last_hidden_state
            of_ids = library(input_ids=ids).last_hidden_state
    except BROKEN:
        return {}
    alike = torch.allclose(of_rows, of_ids, TOLERANCE, TOLERANCE)
    return {"symbol_table": f"{token_tables(library)[0]}.weight"} if alike else {}
