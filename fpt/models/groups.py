"""Which parameter belongs to which group: one explicit table per family of backbones.

Lu et al. 2021, section 2.2 (what an FPT trains); the released code matched substrings of names instead, in an order
that decided the result. Here every parameter matches exactly one pattern, and a test goes through all of them.
"""

import re

TRANSFER = (
    (r"input_layer\..+", "input"),
    (r"output_layer\..+", "output"),
)

FAMILIES: dict[str, tuple[tuple[str, str], ...]] = {
    "gpt2": (
        (r"backbone\.wpe\.weight", "positions"),
        (r"backbone\.(h\.\d+\.ln_[12]|ln_f)\.(weight|bias)", "layer_norm"),
        (r"backbone\.h\.\d+\.attn\.(c_attn|c_proj)\.(weight|bias)", "attention"),
        (r"backbone\.h\.\d+\.mlp\.(c_fc|c_proj)\.(weight|bias)", "feed_forward"),
    ),
    "bert": (
        (r"backbone\.embeddings\.(position|token_type)_embeddings\.weight", "positions"),
        (r"backbone\.embeddings\.LayerNorm\.(weight|bias)", "layer_norm"),
        (r"backbone\.encoder\.layer\.\d+\.(attention\.)?output\.LayerNorm\.(weight|bias)", "layer_norm"),
        # _global: Longformer's
        (r"backbone\.encoder\.layer\.\d+\.attention\.self\.(query|key|value)(_global)?\.(weight|bias)", "attention"),
        (r"backbone\.encoder\.layer\.\d+\.attention\.output\.dense\.(weight|bias)", "attention"),
        (r"backbone\.encoder\.layer\.\d+\.(intermediate|output)\.dense\.(weight|bias)", "feed_forward"),
    ),
    "t5": (
        (r"backbone\.encoder\.block\.0\.layer\.0\.SelfAttention\.relative_attention_bias\.weight", "positions"),
        (r"backbone\.encoder\.(block\.\d+\.layer\.[01]\.layer_norm|final_layer_norm)\.weight", "layer_norm"),
        (r"backbone\.encoder\.block\.\d+\.layer\.0\.SelfAttention\.[qkvo]\.weight", "attention"),
        (r"backbone\.encoder\.block\.\d+\.layer\.1\.DenseReluDense\.w[io]\.weight", "feed_forward"),
    ),
    "vit": (
        (r"backbone\.embeddings\.position_embeddings", "positions"),
        (r"backbone\.(layers\.\d+\.layernorm_(before|after)|layernorm)\.(weight|bias)", "layer_norm"),
        (r"backbone\.layers\.\d+\.attention\.[qkvo]_proj\.(weight|bias)", "attention"),
        (r"backbone\.layers\.\d+\.mlp\.fc[12]\.(weight|bias)", "feed_forward"),
    ),
    "lstm": (
        (r"backbone\.positions\.weight", "positions"),
        (r"backbone\.layers\.\d+\.norm_(i2h|h2h|cell)\.(weight|bias)", "layer_norm"),
        (r"backbone\.layers\.\d+\.(i2h|h2h)\.(weight|bias)", "recurrent"),
    ),
}
FAMILIES["longformer"] = FAMILIES["bert"]

# Projections that write into the residual stream; the GPT-2 paper scales them by 1/sqrt(2 layers).
RESIDUAL = {
    "gpt2": r"backbone\.h\.\d+\.(attn|mlp)\.c_proj\.weight",
    "bert": r"backbone\.encoder\.layer\.\d+\.(attention\.)?output\.dense\.weight",
    "t5": r"backbone\.encoder\.block\.\d+\.layer\.(0\.SelfAttention\.o|1\.DenseReluDense\.wo)\.weight",
    "vit": r"backbone\.layers\.\d+\.(attention\.o_proj|mlp\.fc2)\.weight",
}
RESIDUAL["longformer"] = RESIDUAL["bert"]

# The module below the backbone that returns its attention weights second; only with two layers, since the last one
# computes no more than what is read out.
FIRST_ATTENTION = {"gpt2": "h.0.attn", "bert": "encoder.layer.0.attention.self"}


def group_of(family: str, name: str) -> str:
    """The one group of parameter `name`; raises LookupError where the family's table does not decide."""
    groups = [group for pattern, group in TRANSFER + FAMILIES[family] if re.fullmatch(pattern, name)]
    if len(groups) != 1:
        raise LookupError(f"parameter {name!r} of family {family!r} is in {len(groups)} groups {groups}, not in one")
    return groups[0]


def layer_of(name: str) -> int | None:
    """The number of the layer that parameter `name` is in, from 0; None outside the layers."""
    found = re.search(r"\.(\d+)\.", name)
    return int(found[1]) if found else None
