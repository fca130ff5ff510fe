"""Every family of backbones against the library's own forward pass, what is taken from pretrained files, and counts."""

import copy
import functools
import json
import math
import re

import pytest
import small_models
import torch
from safetensors.torch import load_file, save_file
from torch.func import functional_call
from transformers import AutoModel, T5ForConditionalGeneration

import fpt.models
import fpt.tasks
from fpt.errors import SpecError, WeightsError
from fpt.models import BACKBONES
from fpt.models.families import family
from fpt.models.families.longformer import band_mask
from fpt.models.layers import read_out
from fpt.models.weights import fetch

SMALL = list(small_models.STAND_INS)
OPTIONS = {"listops-short": {"train": 200, "heldout": 50}, "bit-xor": {}, "digits": {}}


def oracle(name, library, weights, tokens):
    """The library's model with its own eager attention, and with the template's position table."""
    kind, config, state = family(BACKBONES[name]), copy.deepcopy(library.config), library.state_dict()
    if kind.config_sets_positions:
        table, spare = weights[f"backbone.{kind.positions}"], 8  # the library pads Longformer's input to its window
        whole = torch.zeros(kind.rows_before + tokens + spare, table.shape[1])
        whole[kind.rows_before :][: len(table)] = table
        config.max_position_embeddings = len(whole)
        state[kind.positions] = whole
    if BACKBONES[name].family == "longformer":
        config.pad_token_id = 1
    config._attn_implementation = "eager"
    model = AutoModel.from_config(config)
    model.load_state_dict(state)
    if kind.new_positions:
        model.embeddings = Embedded(model.embeddings, weights[f"backbone.{kind.positions}"])
    return model.eval()


class Embedded(torch.nn.Module):
    """ViT's embeddings, given in the place of pixels."""

    def __init__(self, original, positions):
        super().__init__()
        self.patch_embeddings, self.positions = original.patch_embeddings, positions

    def forward(self, embedded, **_):
        return embedded + self.positions


def library_hidden(model, embedded, keep):
    if model.config.model_type == "vit":
        return model(embedded, attention_mask=keep).last_hidden_state
    part = model.encoder if model.config.model_type == "t5" else model
    if model.config.model_type == "gpt2":  # causal: padding on the right changes nothing that is read
        keep = None
    return part(inputs_embeds=embedded, attention_mask=keep).last_hidden_state


@pytest.mark.parametrize("layers", [0, 1])
@pytest.mark.parametrize("name", list(OPTIONS))
@pytest.mark.parametrize("backbone", SMALL)
def test_hidden_states_equal_the_librarys(backbone, name, layers, small_backbones):
    """16 tokens read at the last, 10 read at the last 5, and padded ones whose padding is masked."""
    task = fpt.tasks.load(name, **OPTIONS[name])
    template = fpt.models.build(task, backbone, "pretrained", "fpt", layers=layers)
    weights = template.initialise(0)
    if template.module.family.new_positions:
        table = f"backbone.{template.module.family.positions}"
        weights[table] = torch.randn(weights[table].shape, generator=torch.Generator().manual_seed(1))
    examples = task.split(0).validation[:8]
    tokens, lengths = task.encode(examples.inputs), examples.lengths if task.mask_padding else None
    keep = None if lengths is None else (torch.arange(task.tokens) < lengths[:, None]).long()
    library = oracle(backbone, small_backbones[backbone], weights, task.tokens)
    if layers:
        blocks = next(child for child in library.modules() if isinstance(child, torch.nn.ModuleList))
        del blocks[layers:]
    seen = []
    template.module.output_layer.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    with torch.no_grad():
        functional_call(template.module, weights, (tokens, examples.lengths))
        inputs = weights["input_layer.weight"]
        bias = weights.get("input_layer.bias")
        embedded = inputs[tokens] if task.vocabulary else torch.nn.functional.linear(tokens, inputs, bias)
        expected = read_out(library_hidden(library, embedded, keep), task.readout, lengths)
    torch.testing.assert_close(seen[0], expected, rtol=1e-5, atol=1e-5)
    if name == "listops-short":
        assert lengths is not None
        assert len(set(lengths.tolist())) > 3  # otherwise nothing is padded


@pytest.mark.parametrize("backbone", ["tiny-lm", "minilm"])
def test_logits_equal_the_librarys_on_the_real_weights(backbone, digits):
    template = fpt.models.build(digits, backbone, "pretrained", "fpt")
    weights = template.initialise(0)
    library = AutoModel.from_pretrained(fetch(fpt.models.backbone(backbone)), dtype=torch.float32).eval()
    batch = digits.split(0).batch(0, 4)
    embedded = torch.nn.functional.linear(
        digits.encode(batch.inputs), weights["input_layer.weight"], weights["input_layer.bias"]
    )
    with torch.no_grad():
        hidden = library(inputs_embeds=embedded).last_hidden_state[:, -1]
        actual = functional_call(template.module.eval(), weights, (digits.encode(batch.inputs), None))
    expected = torch.nn.functional.linear(hidden, weights["output_layer.weight"], weights["output_layer.bias"])
    torch.testing.assert_close(actual[:, 0], expected, rtol=1e-4, atol=1e-4)


def test_read_out_counts_from_the_last_real_token():
    hidden = torch.arange(2 * 5).float().view(2, 5, 1)
    assert read_out(hidden, 2, None)[:, :, 0].tolist() == [[3, 4], [8, 9]]
    assert read_out(hidden, 2, torch.tensor([3, 5]))[:, :, 0].tolist() == [[1, 2], [8, 9]]


def test_a_band_hides_padding_and_what_is_far():
    mask = band_mask(torch.zeros(2, 4, 3), 1, torch.tensor([4, 2]))
    near = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]).bool()
    padded = torch.tensor([[False] * 4, [False, False, True, True]])
    assert torch.equal(mask[:, 0] == 0, near & ~padded[:, None])
    assert mask.isfinite().all()


def test_the_encoder_of_a_whole_t5_checkpoint_is_read(digits, small_backbones, tmp_path):
    T5ForConditionalGeneration(small_backbones["small-t5"].config).save_pretrained(tmp_path / "small-t5")
    saved = load_file(tmp_path / "small-t5" / "model.safetensors")
    assert any(name.startswith("decoder.") for name in saved)
    weights = fpt.models.build(digits, "small-t5", "pretrained", "all").initialise(0)
    name = "encoder.block.1.layer.1.DenseReluDense.wo.weight"
    assert torch.equal(weights[f"backbone.{name}"], saved[name])


ORIGINAL = {  # names of ViT in files of older versions of the library
    "attention.o_proj": "attention.output.dense",
    "attention.q_proj": "attention.attention.query",
    "attention.k_proj": "attention.attention.key",
    "attention.v_proj": "attention.attention.value",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
    "layers.": "encoder.layer.",
}


def test_a_vit_file_under_its_original_names_is_read(digits, small_backbones, tmp_path):
    library = small_backbones["small-vit"].state_dict()
    renamed = {
        functools.reduce(lambda new, pair: new.replace(*pair), ORIGINAL.items(), name): value.clone()
        for name, value in library.items()
    }
    assert "encoder.layer.1.attention.attention.key.bias" in renamed
    save_file(renamed, tmp_path / "small-vit" / "model.safetensors", {"format": "pt"})
    weights = fpt.models.build(digits, "small-vit", "pretrained", "all").initialise(0)
    for name in ("layers.1.attention.k_proj.bias", "layers.0.mlp.fc2.weight", "layers.0.attention.o_proj.weight"):
        assert torch.equal(weights[f"backbone.{name}"], library[name])


def test_a_pooler_may_be_missing_and_nothing_else(digits, small_backbones, tmp_path):
    path = tmp_path / "small-bert" / "model.safetensors"
    state = {name: value for name, value in load_file(path).items() if not name.startswith("pooler.")}
    assert len(state) < len(load_file(path))
    save_file(state, path, {"format": "pt"})
    fpt.models.build(digits, "small-bert")
    lacking = next(name for name in state if name.endswith("LayerNorm.weight"))
    del state[lacking]
    save_file(state, path, {"format": "pt"})
    with pytest.raises(WeightsError, match=rf"small-bert: these weights lack 1 tensors.*{re.escape(lacking)}"):
        fpt.models.build(digits, "small-bert")


# --- positions


@pytest.mark.parametrize("backbone", ["small-gpt2", "small-bert", "small-longformer"])
def test_positions_beyond_a_pretrained_table_need_training(backbone, digits, small_backbones):
    task = fpt.tasks.load("digits-lra")  # 64 tokens, 24 pretrained positions
    with pytest.raises(SpecError, match=r"64 tokens.*24 pretrained.*stay random.*a shorter task"):
        fpt.models.build(task, backbone, "pretrained", "output")
    template = fpt.models.build(task, backbone, "pretrained", "fpt")
    kind = template.module.family
    table = template.initialise(0)[f"backbone.{kind.positions}"]
    known = small_backbones[backbone].get_parameter(kind.positions)[kind.rows_before :]
    assert torch.equal(table[:24], known)
    assert table[24:].std().item() == pytest.approx(known.std().item(), rel=0.1)
    short = fpt.models.build(digits, backbone, "pretrained", "output").initialise(0)[f"backbone.{kind.positions}"]
    assert torch.equal(short, known[:16])
    fpt.models.build(task, backbone, "random", "output")


def test_positions_of_vit_are_new_and_need_training(digits, small_backbones):
    with pytest.raises(SpecError, match=r"16 tokens.*0 pretrained positions.*stay zero.*'positions'.*'random'$"):
        fpt.models.build(digits, "small-vit", "pretrained", "output")
    name = "backbone.embeddings.position_embeddings"
    assert fpt.models.build(digits, "small-vit", "pretrained", "fpt").initialise(0)[name].eq(0).all()
    random = fpt.models.build(digits, "small-vit", "random", "output").initialise(0)[name]
    assert random.shape == (16, 16)
    assert random.std().item() == pytest.approx(0.02, rel=0.2)


def test_t5_takes_sequences_of_any_length_with_its_positions_frozen(small_backbones):
    task = fpt.tasks.load("digits-lra")
    name = "backbone.encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    weights, random = (
        fpt.models.build(task, "small-t5", init, "output").initialise(0)[name] for init in ("pretrained", "random")
    )
    assert torch.equal(weights, small_backbones["small-t5"].get_parameter(name.removeprefix("backbone.")))
    assert random.std().item() == pytest.approx(0.02, rel=0.3)


# --- random weights


@pytest.mark.parametrize("backbone", SMALL)
def test_projections_into_the_residual_stream_are_scaled(backbone, digits, small_backbones):
    """Two a layer, and their standard deviation is that of the others over sqrt(2 layers)."""
    plain, scaled = (
        fpt.models.build(digits, backbone, "random", random_init=how).initialise(0) for how in ("matched", "scaled")
    )
    changed = [name for name, value in plain.items() if not torch.equal(value, scaled[name])]
    assert len(changed) == 2 * 2
    for name in changed:
        torch.testing.assert_close(scaled[name], plain[name] / math.sqrt(2 * 2))


# --- counts

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


TOTALS = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "bert": 109_482_240,
    "t5": 222_903_552,
    "longformer": 148_659_456,
    "vit": 86_389_248,
    "smollm2": 134_515_008,
}


@pytest.mark.parametrize("backbone", TOTALS)
def test_reports_add_up_to_the_librarys_whole_model(backbone, digits):
    entry = BACKBONES[backbone]
    kind = family(entry)
    with torch.device("meta"):
        whole = AutoModel.from_config(kind.configuration(entry))
        reports = [fpt.models.build(digits, backbone, "random", layers=layers).report() for layers in (0, 2)]
    total = sum(parameter.numel() for parameter in whole.parameters())
    assert total == TOTALS[backbone]
    new = reports[0].loc[["input", "output"]].to_numpy().sum()
    new += 16 * 768 if kind.new_positions else 0  # a table of ours
    assert [int(report.to_numpy().sum() - new) for report in reports] == [total, total]


def test_what_is_unused_is_named(digits):
    with torch.device("meta"):
        unused = {
            name: fpt.models.build(digits, name, "random").report()["unused"].loc[lambda counts: counts > 0].to_dict()
            for name in ("t5", "longformer", "vit")
        }
    assert unused["t5"] == {"shared": 32_128 * 768, "decoder": 113_275_008}
    assert unused["longformer"] == {
        "embeddings.word_embeddings": 50_265 * 768,
        "pooler": 768 * 769,
        "positions before the first token's": 2 * 768,
        "positions beyond the task's tokens": (4096 - 16) * 768,
    }
    assert unused["vit"] == {
        "embeddings": (16 * 16 * 3 + 1) * 768 + 768 + 197 * 768,  # patches, CLS token, positions of both
        "pooler": 768 * 769,
    }


@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_a_tiny_one_of_every_backbone(backbone, digits, monkeypatch):
    entry = fpt.models.tiny(fpt.models.backbone(backbone))
    assert (entry.hub, entry.package, entry.sha256) == (None, None, None)
    assert (entry.family, entry.groups) == (BACKBONES[backbone].family, BACKBONES[backbone].groups)
    json.dumps(dict(entry.config))
    monkeypatch.setitem(BACKBONES, "tiny", entry)
    template = fpt.models.build(digits, "tiny", "random")
    assert (template.width, template.layers) == (16, 2)
    assert sum(shape.numel() for shape in template.shapes.values()) < 20_000


def test_where_a_model_drops_out_is_told_wherever_it_lies(listops, small_backbones):
    template = fpt.models.build(listops, "small-bert", "random")
    here = template.dropouts
    del template.dropouts
    template.module.to("meta")  # as after training on a GPU
    assert template.dropouts == here
