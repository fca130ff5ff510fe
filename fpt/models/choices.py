"""What can be chosen of a model: its groups of parameters, what of them trains, and what goes together. No torch."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fpt.errors import SpecError, check_known, check_options
from fpt.models.arms import ADAPTER, EMBEDDING, INITS, NAMES, POLICIES, Adapters, Targets, adapted, part
from fpt.models.catalogue import BACKBONES, Backbone
from fpt.tasks import READS, OwnTable

# The linear input layer. `default`: PyTorch's weights (Lu et al. 2021, section 3.12). Both have a bias of 0. `biased`:
# orthogonal, with a random bias, so that a token of zeros is no vector of zeros (fpt/models/initialise.py).
INPUT_INITS = ("orthogonal", "default", "biased")
DEEPEST = 48  # layers: GPT-2 XL's
WIDEST = 4096  # of options that set a width
RANDOM_INITS = ("matched", "fixed", "scaled")


def groups_of(
    backbone: Backbone, options: Mapping[str, Any] | None = None, own_table: OwnTable = ""
) -> tuple[str, ...]:
    """The groups that the backbone has with these options; one with the name of a group switches it on.

    own_table: on a task whose symbols its own table reads (fpt.tasks.own_table): the table is a group then. Raises
    SpecError where it must predict them, too, and the backbone is no causal language model of bytes.
    """
    options = {**backbone.options, **(options or {})}
    groups = tuple(group for group in backbone.groups if options.get(group, True))
    if not own_table:
        return groups
    if own_table == READS:
        return (EMBEDDING, *(group for group in groups if group != "input"))
    if not backbone.predicts_bytes:
        able = ", ".join(name for name, row in BACKBONES.items() if row.predicts_bytes)
        raise SpecError(
            f"backbone {backbone.name!r}: the task predicts the next byte by the model's own table, so it must be a "
            f"causal language model of bytes; these are: {able}"
        )
    return (EMBEDDING, *(group for group in groups if group not in ("input", "output")))


def trainable_groups(
    trainable: str | Sequence[str],
    backbone: Backbone,
    options: Mapping[str, Any] | None = None,
    own_table: OwnTable = "",
) -> tuple[str, ...]:
    """The groups that a policy name, or a list of groups, trains in `backbone` with these options.

    A policy takes those of its groups that the backbone has: of `none`, whose groups are `input` and `output`, `fpt`
    and `all` train these two. A list means every group it names. own_table: as of `groups_of`; a table that reads alone
    stays frozen, unless a list names it, or a policy the part `token_table`.
    Raises SpecError for an unknown policy or group, for a group or layers named by hand that the backbone does not
    have, and for a policy that leaves nothing to train.
    """
    has = groups_of(backbone, options, own_table)
    if adapted(trainable):
        has += (ADAPTER,)
    if isinstance(trainable, str):
        check_known("trainable policy", trainable, POLICIES)
        existing = tuple(group for group in POLICIES[trainable] if {*part(group).groups} & {*has})
        existing = tuple(group for group in existing if own_table != READS or group != EMBEDDING)
        if not existing:
            groups = ", ".join(POLICIES[trainable])
            raise SpecError(
                f"policy {trainable!r} trains {groups}, but backbone {backbone.name!r} has {', '.join(has)}"
            )
        return existing
    if not trainable:
        raise SpecError(f"trainable is an empty list; name at least one of {has}")
    layers = (options or {}).get("layers") or backbone.layers
    for group in trainable:
        wanted = part(group)
        if not {*wanted.groups} & {*has}:
            switch = f" (option {group})" if group in backbone.groups else ""
            listed = ", ".join(has)
            raise SpecError(f"backbone {backbone.name!r} has no parameter group {group!r}{switch}; it has {listed}")
        if wanted.deepest > layers:
            raise SpecError(f"backbone {backbone.name!r} has {layers} layers, too few for {group!r}")
    return tuple(dict.fromkeys([*(group for group in NAMES if group in trainable), *sorted(trainable)]))


def check_model(
    backbone: Backbone,
    options: Mapping[str, Any] | None = None,
    init: str = "pretrained",
    trainable: str | Sequence[str] = "fpt",
    targets: Targets = Adapters.targets,
    own_table: OwnTable = "",
) -> tuple[str, ...]:
    """The groups that train. Refuses an unknown option, initialisation, policy or group before anything is loaded
    (SpecError).

    targets: of adapters, read where the groups hold some. own_table: as of `groups_of`.
    """
    if sys.flags.optimize > 1:
        raise SpecError(
            "Python runs without docstrings (-OO, PYTHONOPTIMIZE=2), and transformers needs them: leave it out"
        )
    name, options = backbone.name, options or {}
    check_options(f"backbone {name!r}", options, backbone.options)
    layers, width = options.get("layers", 0), options.get("width", 1)
    check_known("init", init, INITS)
    if init != "random" and not backbone.pretrained:
        raise SpecError(f"backbone {name!r} has no pretrained weights; use init 'random'")
    deepest = max(DEEPEST, backbone.layers) if init == "random" else backbone.layers  # random weights: of any depth
    if not 0 <= layers <= deepest:
        raise SpecError(
            f"layers={layers}: backbone {name!r} has {backbone.layers} layers; with init {init!r} give 1 to {deepest}"
        )
    if not 1 <= width <= WIDEST:
        raise SpecError(f"width={width}: must be 1 to {WIDEST}")
    groups = groups_of(backbone, options)
    if options.get("zero_positions") and "positions" not in groups:
        raise SpecError(f"zero_positions: backbone {name!r} has positions only with option positions")
    lacking = [group for group in Adapters(targets=targets).groups if group not in groups]
    if adapted(trainable) and lacking:
        raise SpecError(
            f"backbone {name!r} has no group {lacking[0]}, whose matrices adapters are for; it has {', '.join(groups)}"
        )
    return trainable_groups(trainable, backbone, options, own_table)
