"""Whether a model of the library that nobody wrote a row for can be a backbone: a small one of its architecture is
built, and computed for two runs at once, before anything is trained.

What does not equal the library's own forward pass is refused. What is found: the groups of its parameters, and its
table of positions.
"""

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor, nn
from torch.func import functional_call, vmap
from transformers import AutoModel

from fpt.errors import SpecError
from fpt.models.catalogue import Backbone
from fpt.models.families.library import FAMILY, Family
from fpt.models.layers import Projection
from fpt.models.weights import quiet_library as quiet

DEPTH = 8  # layers that are tried: kinds of layers take turns of 8 at most
TOKENS, EXAMPLES, RUNS = 7, 3, 2
LENGTHS = (7, 4, 1)
TOLERANCE = 1e-4  # relative; the library computes norms and angles in float32
# What the library raises for configs and calls that it cannot take.
BROKEN = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError,
    ValueError, StrictDataclassError,
)  # fmt: skip
# A field of a config.json -> what kind of model has it, for a message.
KINDS = {
    '"[a-z_]*(experts|moe)[a-z_]*"': "a mixture of experts",
    '"[a-z_]*(mamba|ssm|state_size|conv_kernel|linear_key|linear_conv|rwkv|lru)[a-z_]*"': "recurrent in part",
}
Named = dict[str, Tensor]


@dataclass(frozen=True)
class Trial:
    """What is known of an architecture once a small model of it was computed."""

    family: Family
    groups: tuple[str, ...]


def tried(entry: Backbone) -> Trial:
    """The trial of a backbone that has no row. Raises SpecError with the reason where it cannot be used."""
    return _tried(json.dumps({**entry.config}, sort_keys=True), entry.layers, entry.title)


@cache
def _tried(config: str, layers: int, title: str) -> Trial:
    entry = Backbone("library", json.loads(config), layers, groups=None, title=title)
    errors: list[Exception] = []
    for attention in ("fpt", "eager"):
        family = replace(FAMILY, attention=attention)
        try:
            with torch.device("cpu"), torch.random.fork_rng(devices=[]), quiet():
                torch.manual_seed(1)
                return _try(family, replace(entry, config=family.reduced(entry), layers=min(layers, DEPTH)))
        except (SpecError, *BROKEN) as error:
            errors.append(error)
    error = errors["'fpt'" in str(errors[0])]  # it takes no attention but the library's own
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    raise SpecError(f"backbone {title!r} cannot be used: {_kind(config)}{first}") from error


def _kind(config: str) -> str:
    """What is known to stand in the way of an architecture, by the fields of its config."""
    return next((f"{kind}: " for field, kind in KINDS.items() if re.search(field, config)), "")


def _try(family: Family, entry: Backbone) -> Trial:
    config = family.configuration(entry)
    config._experts_implementation = "eager"
    library: Any = AutoModel.from_config(config, attn_implementation="eager").double().eval()
    if (table := library.get_input_embeddings()) is None:
        raise ValueError("it has no table of tokens that an input layer could replace")
    for parameter in library.parameters():
        nn.init.normal_(parameter, std=0.2)
    model = family.build(entry, TOKENS).double()
    for module in model.modules():
        if isinstance(module, Projection):
            module.compute_type = torch.float64
    groups = {name: family.group_of(model, name) for name, _ in model.named_parameters()}
    x = torch.randn(EXAMPLES, TOKENS, table.weight.shape[1], dtype=torch.float64)
    whole = dict(library.named_parameters())
    weights = [{name: whole[name].detach() * (1 + run / 10) for name in groups} for run in range(RUNS)]
    for lengths in (None, torch.tensor(LENGTHS)):
        ours = _at_once(model, weights, x, lengths)
        for run in range(RUNS):
            with torch.no_grad():
                theirs = _last(functional_call(library, weights[run], (), _inputs(x, lengths)), lengths)
            if ours[run].shape != theirs.shape or not torch.allclose(ours[run], theirs, TOLERANCE, TOLERANCE):
                padded = "without padding" if lengths is None else "with padding"
                raise ValueError(f"several runs at once {padded} do not give what the library's own forward pass gives")
    if found := _positions(model, groups, weights[0], x):
        family = replace(family, positions=found[0], leading=found[1])
    return Trial(family, ("input", "output", *dict.fromkeys(groups.values())))


def _inputs(x: Tensor, lengths: Tensor | None) -> dict[str, Any]:
    mask = torch.ones(x.shape[:2]) if lengths is None else torch.arange(TOKENS) < lengths[:, None]
    return {"inputs_embeds": x, "attention_mask": mask.long()}


def _last(output: Any, lengths: Tensor | None) -> Tensor:
    """(examples, width) at the last real token."""
    hidden: Tensor = output.last_hidden_state
    return hidden[:, -1] if lengths is None else hidden[torch.arange(len(hidden)), lengths - 1]


def _at_once(model: nn.Module, weights: list[Named], x: Tensor, lengths: Tensor | None) -> Tensor:
    """(runs, examples, width) at the last real token, as a fleet computes it."""

    def one(named: Named) -> Tensor:
        return functional_call(_Forward(model), {f"model.{name}": value for name, value in named.items()}, (x, lengths))

    stacked = {name: torch.stack([run[name] for run in weights]).requires_grad_() for name in weights[0]}
    computed = vmap(one)(stacked)
    gradients = torch.autograd.grad(computed.sum(), list(stacked.values()), allow_unused=True)
    if not all(gradient is None or gradient.isfinite().all() for gradient in gradients):
        raise ValueError("its gradients are not finite")
    return computed.detach()


class _Forward(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        def rows(hidden: Tensor) -> Tensor:
            if lengths is None:
                return hidden[:, -1]
            return hidden.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, hidden.shape[-1]))[:, 0]

        return FAMILY.forward(self.model, x, lengths, rows)


def _positions(model: nn.Module, groups: dict[str, str], weights: Named, x: Tensor) -> tuple[str, int] | None:
    """The table with one row for each token, and how many rows lie before the first token's; None: there is none."""
    tables = [name for name, group in groups.items() if group == "positions" and weights[name].dim() == 2]
    leaves = [weights[name].clone().requires_grad_() for name in tables]
    named = {f"model.{name}": value for name, value in {**weights, **dict(zip(tables, leaves, strict=True))}.items()}
    if not tables:
        return None
    hidden = functional_call(_Forward(model), named, (x, None))
    for name, gradient in zip(
        tables, torch.autograd.grad(hidden.square().sum(), leaves, allow_unused=True), strict=True
    ):
        rows = [] if gradient is None else gradient.ne(0).any(1).nonzero().flatten().tolist()
        if len(rows) == TOKENS:
            return name, rows[0]
    return None
