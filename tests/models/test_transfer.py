"""The transfer model on real weights, its padding, its parameter counts against the papers' arithmetic."""

import re

import pytest
import torch
from torch.func import functional_call
from transformers import AutoModel

import fpt.models
import fpt.tasks
from fpt.models.layers import read_out
from fpt.models.template import Template
from fpt.models.weights import fetch


def predict(template: Template, weights: dict, inputs: torch.Tensor, lengths=None) -> torch.Tensor:
    template.module.eval()
    with torch.no_grad():
        return functional_call(template.module, weights, (template.task.encode(inputs), lengths))


@pytest.mark.parametrize("backbone", ["tiny-lm", "minilm"])
def test_logits_equal_the_librarys_on_the_real_weights(backbone, digits):
    template = fpt.models.build(digits, backbone, "pretrained", "fpt")
    weights = template.initialise(0)
    library = AutoModel.from_pretrained(fetch(backbone), dtype=torch.float32).eval()
    batch = digits.split(0).batch(0, 4)
    embedded = torch.nn.functional.linear(
        digits.encode(batch.inputs), weights["input_layer.weight"], weights["input_layer.bias"]
    )
    with torch.no_grad():
        hidden = library(inputs_embeds=embedded).last_hidden_state[:, -1]
    expected = torch.nn.functional.linear(hidden, weights["output_layer.weight"], weights["output_layer.bias"])
    torch.testing.assert_close(predict(template, weights, batch.inputs)[:, 0], expected, rtol=1e-4, atol=1e-4)


def test_padding_is_masked_as_the_library_masks_it(small_backbones):
    task = fpt.tasks.load("listops-short", train=200, heldout=50)
    template = fpt.models.build(task, "small-bert", "pretrained", "fpt")
    weights = template.initialise(0)
    rows = task.split(0).validation[:8]
    library = AutoModel.from_config(template.module.backbone.config, attn_implementation="eager")
    state = {name.removeprefix("backbone."): value for name, value in weights.items() if "backbone." in name}
    assert not library.load_state_dict(state, strict=False).unexpected_keys
    keep = torch.arange(task.tokens) < rows.lengths[:, None]
    embedded = torch.nn.functional.embedding(task.encode(rows.inputs), weights["input_layer.weight"])
    with torch.no_grad():
        hidden = library.eval()(inputs_embeds=embedded, attention_mask=keep.long()).last_hidden_state
    last = hidden[torch.arange(8), rows.lengths - 1]
    expected = torch.nn.functional.linear(last, weights["output_layer.weight"], weights["output_layer.bias"])
    actual = predict(template, weights, rows.inputs, rows.lengths)[:, 0]
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backbone", ["small-gpt2", "small-bert", "small-t5", "small-longformer", "small-vit"])
def test_a_row_alone_equals_the_row_in_a_padded_batch(backbone, small_backbones):
    task = fpt.tasks.load("listops-short", train=200, heldout=50)
    template = fpt.models.build(task, backbone, "random", "fpt")
    weights = template.initialise(0)
    rows = task.split(0).validation[:16]
    together = predict(template, weights, rows.inputs, rows.lengths)
    assert len(set(rows.lengths.tolist())) > 3  # otherwise nothing is padded
    for i, length in enumerate(rows.lengths.tolist()):
        padding = torch.zeros_like(rows.inputs[i : i + 1])
        padding[:, :length] = rows.inputs[i : i + 1, :length]
        padding[:, length:] = 3  # other values in the padding change nothing
        alone = predict(template, weights, padding, rows.lengths[i : i + 1])
        torch.testing.assert_close(alone[0], together[i], rtol=1e-4, atol=1e-5)


def test_read_out_counts_from_the_last_real_token():
    hidden = torch.arange(2 * 5).float().view(2, 5, 1)
    assert read_out(hidden, 2, None)[:, :, 0].tolist() == [[3, 4], [8, 9]]
    assert read_out(hidden, 2, torch.tensor([3, 5]))[:, :, 0].tolist() == [[1, 2], [8, 9]]


# Written without the classes of modules by which the package finds them.
GROUPS_OF = {
    "gpt2": {
        "positions": r"wpe\.weight",
        "layer_norm": r"(h\.\d+\.ln_[12]|ln_f)\.(weight|bias)",
        "attention": r"h\.\d+\.attn\.(c_attn|c_proj)\.(weight|bias)",
        "feed_forward": r"h\.\d+\.mlp\.(c_fc|c_proj)\.(weight|bias)",
    },
    "bert": {
        "positions": r"embeddings\.(position|token_type)_embeddings\.weight",
        "layer_norm": r"(embeddings|encoder\.layer\.\d+\.(attention\.)?output)\.LayerNorm\.(weight|bias)",
        "attention": r"encoder\.layer\.\d+\.attention\.(self\.\w+|output\.dense)\.(weight|bias)",
        "feed_forward": r"encoder\.layer\.\d+\.(intermediate|output)\.dense\.(weight|bias)",
    },
    "t5": {
        "positions": r"encoder\.block\.0\.layer\.0\.SelfAttention\.relative_attention_bias\.weight",
        "layer_norm": r"encoder\.(block\.\d+\.layer\.[01]\.layer_norm|final_layer_norm)\.weight",
        "attention": r"encoder\.block\.\d+\.layer\.0\.SelfAttention\.[qkvo]\.weight",
        "feed_forward": r"encoder\.block\.\d+\.layer\.1\.DenseReluDense\.w[io]\.weight",
    },
    "vit": {
        "positions": r"embeddings\.position_embeddings",
        "layer_norm": r"(layers\.\d+\.layernorm_(before|after)|layernorm)\.(weight|bias)",
        "attention": r"layers\.\d+\.attention\.[qkvo]_proj\.(weight|bias)",
        "feed_forward": r"layers\.\d+\.mlp\.fc[12]\.(weight|bias)",
    },
    "lstm": {
        "positions": r"positions\.weight",
        "layer_norm": r"layers\.\d+\.norm_(i2h|h2h|cell)\.(weight|bias)",
        "recurrent": r"layers\.\d+\.(i2h|h2h)\.(weight|bias)",
    },
}
GROUPS_OF["longformer"] = GROUPS_OF["bert"]
GROUPS_OF["library"] = {  # Llama's, the one architecture of the catalogue in this family
    "layer_norm": r"(layers\.\d+\.(input|post_attention)_layernorm|norm)\.weight",
    "attention": r"layers\.\d+\.self_attn\.[qkvo]_proj\.weight",
    "feed_forward": r"layers\.\d+\.mlp\.(gate|up|down)_proj\.weight",
}
GROUPS_OF["none"] = {}


@pytest.mark.parametrize("backbone", list(fpt.models.BACKBONES))
def test_every_parameter_is_in_exactly_one_group(backbone, digits):
    entry = fpt.models.BACKBONES[backbone]
    switches = {group: True for group in fpt.models.GROUPS if group in entry.options}
    with torch.device("meta"):
        groups = fpt.models.build(digits, backbone, "random", **switches).groups
    assert set(groups.values()) == set(entry.groups)
    patterns = {"input": r"input_layer\..+", "output": r"output_layer\..+"}
    patterns |= {group: r"backbone\." + pattern for group, pattern in GROUPS_OF[entry.family].items()}
    for name, found in groups.items():
        assert [group for group, pattern in patterns.items() if re.fullmatch(pattern, name)] == [found], name


# GPT-2 base: (input, output, layer norm, positions used, effective total, total with the whole position table).
# The arithmetic of Lu et al. 2021, section 2.2 and appendix B, corrected for biases, ln_f and the released shapes.
COUNTS = {
    ("bit-memory", "paper"): (39_168, 76_900, 38_400, 92_160, 246_628, 940_900),
    ("bit-xor", "paper"): (1_536, 1_538, 38_400, 7_680, 49_154, 827_906),
    ("listops", "released"): (11_520, 7_690, 38_400, 393_216, 450_826, 844_042),
    ("listops", "paper"): (12_288, 7_690, 38_400, 1_536_000, 1_594_378, 1_594_378),
    ("mnist", "released"): (13_056, 7_690, 38_400, 37_632, 96_778, 845_578),
    ("mnist", "paper"): (13_056, 7_690, 38_400, 49_152, 108_298, 845_578),
    ("cifar10", "paper"): (37_632, 7_690, 38_400, 49_152, 132_874, 870_154),
    ("cifar10", "gray16"): (13_056, 7_690, 38_400, 49_152, 108_298, 845_578),
    ("cifar10-lra", "paper"): (1_536, 7_690, 38_400, 786_432, 834_058, 834_058),
    ("homology", "paper"): (19_200, 918_955, 38_400, 786_432, 1_762_987, 1_762_987),
    ("homology", "released"): (23_040, 922_800, 38_400, 786_432, 1_770_672, 1_770_672),
}


@pytest.mark.parametrize(("name", "variant"), list(COUNTS))
def test_parameter_counts_of_gpt2(name, variant, shaped_task):
    task = shaped_task(name, variant)
    with torch.device("meta"):
        report = fpt.models.build(task, "gpt2", "random", "fpt").report()
    trainable = report["trainable"]
    row = [int(trainable[group]) for group in ("input", "output", "layer_norm", "positions")]
    spare = int(report["unused"].get("positions beyond the task's tokens", 0))
    assert (*row, sum(row), sum(row) + spare) == COUNTS[name, variant]
    assert int(report.loc["attention", "frozen"]) == 12 * 2_362_368
    assert int(report.loc["feed_forward", "frozen"]) == 12 * 4_722_432
    if task.tokens <= 1024:  # the printed total, with what the input layer replaces
        library = report.values.sum() - row[0] - row[1]
        assert library == 124_439_808


@pytest.mark.parametrize("backbone", ["tiny-lm", "minilm"])
def test_the_report_of_a_truncated_model_adds_up(backbone, digits):
    whole, part = (fpt.models.build(digits, backbone, "random", layers=layers).report() for layers in (0, 2))
    assert part.to_numpy().sum() == whole.to_numpy().sum()
    assert part.loc["layers beyond the first", "unused"] > 0


def test_unfrozen_gpt2_trains_the_body_without_the_token_table(digits):
    with torch.device("meta"):
        report = fpt.models.build(digits, "gpt2", "random", "all").report()
    body = report["trainable"].drop(["input", "output", "positions"]).sum()
    assert body == 12 * 7_087_872 + 1_536
    assert report.loc["wte", "unused"] == 50_257 * 768
    assert report["frozen"].sum() == 0
