"""`hub:PATH` and `hub:owner/name@REVISION`: any model of the library as a backbone, or a refusal that says why."""

import json
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import contract
import huggingface_hub
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.torch import load_file
from small_models import added, configured, edited, save_model, short_recipe, typed
from small_studies import ONE_ARM, workspace
from torch.func import functional_call
from torch.nn.functional import embedding, linear
from transformers import CONFIG_MAPPING, AutoConfig, AutoModel
from typer.testing import CliRunner

import fpt.models
import fpt.tasks
from fpt.cli import app
from fpt.errors import FptError, SpecError, WeightsError
from fpt.files import sha256
from fpt.models import Backbone, hub, weights
from fpt.models.families import family
from fpt.models.layers import read_out
from fpt.sweeps import run_sweep, smoke
from fpt.sweeps.spec import resolve
from fpt.sweeps.study import load_study
from fpt.training.fleet import Fleet

CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 1e-2], [0, 5]
SIZES = {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40, "vocab_size": 19,
    "pad_token_id": 1, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
}  # fmt: skip
FIELDS = {
    "llama": {"num_key_value_heads": 2},  # two heads share a key
    "gpt_neox": {"hidden_dropout": 0.3, "rotary_pct": 0.5},
    "modernbert": {"embedding_dropout": 0.3},
}
# Beside them those whose table of positions starts in another row, and those that the library describes otherwise
FURTHER = {
    "opt": {"word_embed_proj_dim": 24, "ffn_dim": 40, "max_position_embeddings": 80, "dropout": 0.4},
    "roberta": {"max_position_embeddings": 82, "type_vocab_size": 1},
    "gpt_neo": {"num_layers": 3, "num_heads": 4, "attention_types": [[["global", "local"], 1], [["global"], 1]],
                "max_position_embeddings": 80},
    "gemma2": {"attn_logit_softcapping": 1.0, "head_dim": 8},
    "mistral": {"num_key_value_heads": 2, "sliding_window": 64},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 8},
}  # fmt: skip
POSITIONS = {"opt": 2, "roberta": 2, "gpt_neo": 0}  # rows before the first token's
DROPOUTS = {
    "llama": ("attention",),
    "gpt_neox": ("embeddings", "attention", "residual"),
    "modernbert": ("positions", "attention", "feed_forward"),
    "opt": ("attention",),
}


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Saves a model of a type in the working directory, and gives its name as a backbone."""
    monkeypatch.chdir(tmp_path)

    def write(model_type="llama", **changes):
        fields = {**SIZES, **FIELDS.get(model_type, {}), **FURTHER.get(model_type, {}), **changes}
        save_model(tmp_path / "models" / model_type, model_type, **fields)
        return f"hub:models/{model_type}"

    return write


recipe = partial(short_recipe, evaluations=1, evaluation_examples=20)


@pytest.mark.parametrize("model_type", [*FIELDS, *FURTHER])
@pytest.mark.parametrize("name", ["digits", "listops"])
def test_the_forward_pass_is_the_librarys(model_type, name, saved, digits, listops):
    task, backbone = digits if name == "digits" else listops, saved(model_type)
    template = fpt.models.build(task, backbone)
    library = AutoModel.from_pretrained(f"models/{model_type}", attn_implementation="eager").eval()
    values, examples = template.initialise(0), task.split(0).validation[:8]
    tokens, lengths = task.encode(examples.inputs), examples.lengths if task.mask_padding else None
    keep = None if lengths is None else (torch.arange(task.tokens) < lengths[:, None]).long()
    assert lengths is None or len(set(lengths.tolist())) > 3
    inputs = values["input_layer.weight"]
    embedded = embedding(tokens, inputs) if task.vocabulary else linear(tokens, inputs, values["input_layer.bias"])
    with torch.no_grad():
        hidden = read_out(library(inputs_embeds=embedded, attention_mask=keep).last_hidden_state, 1, lengths)
        expected = linear(hidden, values["output_layer.weight"], values["output_layer.bias"])
        actual = functional_call(template.module, values, (tokens, examples.lengths))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    groups = {"input", "output", "layer_norm", "attention", "feed_forward"}
    assert set(template.groups.values()) - {"positions"} == groups
    assert ("positions" in template.groups.values()) == (model_type in POSITIONS)
    if model_type in POSITIONS:  # of the table the rows that the task uses
        table = values[f"backbone.{template.module.family.positions}"]
        assert len(table) == POSITIONS[model_type] + task.tokens


@pytest.mark.parametrize("model_type", ["gpt_neox", "modernbert"])
def test_a_model_of_the_library_keeps_the_contract(model_type, saved, digits, listops):
    template = fpt.models.build(digits, saved(model_type))
    contract.only_the_named_parameters_change(digits, template, ("input", "output", "layer_norm"))
    whole = fpt.models.build(listops, f"hub:models/{model_type}", "pretrained", "all")
    contract.a_fleet_is_its_runs_one_at_a_time(listops, whole)


def test_experts_of_a_mixture_are_float32_beside_products_in_bfloat16(saved, digits):
    """What no Projection multiplies has no other type."""
    template = fpt.models.build(digits, saved("mixtral", num_key_value_heads=2, num_local_experts=4))
    fleet = Fleet(digits, template, recipe(compute_type="bfloat16"), RATES, SEEDS, CPU)
    assert fleet.step(1).isfinite().all()
    types = {(template.groups[name], value.dtype) for name, value in fleet.shared.items()}
    assert types == {("attention", torch.bfloat16), ("feed_forward", torch.float32)}


def test_what_writes_into_the_residual_stream_of_a_mixture_is_its_experts(saved, digits):
    """And not their router, whose name ends in weight, as theirs do not."""
    name = saved("mixtral", num_key_value_heads=2, num_local_experts=4)
    template = fpt.models.build(digits, name, "random", random_init="scaled")
    assert {each.rpartition(".")[2] for each in template.residual} == {"down_proj", "weight"}
    assert all("o_proj" in each or "experts" in each for each in template.residual)


def test_a_gain_leaves_the_biases_of_experts(saved, digits):
    name = saved("gpt_oss", num_key_value_heads=2, num_local_experts=4, head_dim=8)
    plain, twice = (fpt.models.build(digits, name, "random", random_gain=gain).initialise(0) for gain in (1.0, 2.0))
    biases = [each for each in plain if "experts" in each and each.endswith("bias")]
    assert biases
    assert all(torch.equal(plain[each], twice[each]) for each in biases)
    assert any(torch.allclose(2 * plain[each], twice[each]) for each in plain if "experts" in each)


@pytest.mark.parametrize("model_type", ["olmo_hybrid", "qwen3_moe"])
def test_classes_of_whole_layers_decide_no_group(model_type):
    """OLMo's hybrid layers are called LinearAttentionDecoderLayer, and hold a feed-forward network as well."""
    config = CONFIG_MAPPING[model_type]().to_dict()
    whole = Backbone("library", config, 4, measured={})
    kind = family(whole)
    entry = replace(whole, config=kind.reduced(whole))
    model = kind.build(entry, 8)
    groups = {name: kind.group_of(model, name) for name, _ in model.named_parameters() if ".mlp." in name}
    assert set(groups.values()) == {"feed_forward"}
    if model_type == "olmo_hybrid":
        with pytest.raises(SpecError, match=r"linear_attn\.A_log.*in no group"):
            kind.group_of(model, "layers.0.linear_attn.A_log")


def test_a_policy_takes_the_groups_that_there_are_and_the_others_are_named(saved, digits):
    template = fpt.models.build(digits, saved("llama"))
    assert template.absent == ("positions",)
    assert template.trainable_groups == ("input", "output", "layer_norm")
    assert fpt.models.build(digits, saved("opt")).absent == ()
    with pytest.raises(SpecError, match=r"no parameter group 'positions'"):
        fpt.models.build(digits, "hub:models/llama", "pretrained", ["output", "positions"])


@pytest.mark.parametrize("model_type", DROPOUTS)
def test_the_report_says_where_a_model_drops_out(model_type, saved, digits):
    assert fpt.models.build(digits, saved(model_type)).dropouts == ("input", *DROPOUTS[model_type])


def test_the_report_says_where_a_model_of_the_papers_drops_out(digits):
    of_a_paper = fpt.models.build(digits, "tiny-lm", "random")
    assert of_a_paper.dropouts == ("input", "embeddings", "attention", "feed_forward")


def test_the_report_counts_the_whole_model(saved, digits):
    report = fpt.models.build(digits, saved("opt"), layers=2).report()
    library = AutoModel.from_pretrained("models/opt")
    assert report.drop(index=["input", "output"]).to_numpy().sum() == sum(each.numel() for each in library.parameters())
    assert report.loc["positions beyond the task's tokens", "unused"] == (80 - 16) * 24
    assert report.loc["layers beyond the first", "unused"] > 0


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation"])
def test_the_attention_that_a_file_asks_for_is_ours_anyway(key, saved, digits):
    backbone = saved("llama")
    configured(**{key: "flash_attention_2"})(Path("models/llama"))
    assert all(value.isfinite().all() for value in fpt.models.build(digits, backbone).initialise(0).values())


def test_other_floats_and_unused_heads_are_read(saved, digits):
    backbone, folder = saved("gpt2", n_positions=64), Path("models/gpt2")
    for dtype, part in ((torch.float16, "c_attn"), (torch.bfloat16, "c_fc"), (torch.float64, "c_proj")):
        edited(typed(dtype, part))(folder)
    edited(added("score.weight", torch.zeros(3, 24)))(folder)
    mask = torch.ones(1, 1, 64, 64, dtype=torch.uint8)  # of older versions of the library
    edited(added("h.0.attn.bias", mask))(folder)
    written, values = load_file(folder / "model.safetensors"), fpt.models.build(digits, backbone).initialise(0)
    for name in written.keys() - {"score.weight", "h.0.attn.bias", "wte.weight", "wpe.weight"}:
        assert torch.equal(values[f"backbone.{name}"], written[name].float())


MASK = torch.ones(80, 80).tril()[None, None]


@pytest.mark.parametrize(
    ("model_type", "name", "tensor"),
    [
        ("gpt2", "h.{}.attn.masked_bias", torch.tensor(-1e4)),
        ("gpt_neo", "h.{}.attn.attention.bias", MASK),
        ("gpt_neo", "h.{}.attn.attention.bias", (MASK - MASK.tril(-8)).bool()),  # of local attention
        ("gpt_neo", "h.{}.attn.attention.masked_bias", torch.tensor([-1e9])),
        ("llama", "layers.{}.self_attn.causal_mask", (1 - MASK) * -1e4),
    ],
)
def test_constant_masks_of_older_versions_of_the_library_are_left(model_type, name, tensor, saved, digits):
    backbone, folder = saved(model_type), Path("models", model_type)
    before = fpt.models.build(digits, backbone).initialise(0)
    for layer in range(3):
        edited(added(name.format(layer), tensor))(folder)
    after = fpt.models.build(digits, backbone).initialise(0)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[each], after[each]) for each in before)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("h.0.attn.gate", torch.tensor(0.3)),
        ("h.1.attn.more.weight", torch.randn(24, 24)),
        ("h.1.more.bias", torch.ones(24)),
    ],
)
def test_what_the_layers_hold_besides_and_no_mask_does_is_refused(name, tensor, saved, digits):
    backbone = saved("gpt2", n_positions=64)
    edited(added(name, tensor))(Path("models/gpt2"))
    with pytest.raises(WeightsError, match=rf"{name} .*config\.json announces no such tensor"):
        fpt.models.build(digits, backbone)


@pytest.mark.parametrize("prefix", ["0.auto_model.", "model.", "base_model.model.", "module.transformer."])
def test_a_foreign_prefix_is_named(prefix, saved, digits):
    backbone = saved("gpt2", n_positions=64)
    edited(lambda state: {prefix + name: tensor for name, tensor in state.items()})(Path("models/gpt2"))
    with pytest.raises(WeightsError, match=rf"begin with {re.escape(prefix)} .*prefix"):
        fpt.models.build(digits, backbone)


@pytest.mark.parametrize("zero", [lambda name: True, lambda name: name.startswith("h.1.")])
def test_layers_of_zeros_are_refused(zero, saved, digits):
    backbone = saved("gpt2", n_positions=64)
    edited(lambda state: {name: tensor * (not zero(name)) for name, tensor in state.items()})(Path("models/gpt2"))
    with pytest.raises(WeightsError, match="zeros"):
        fpt.models.build(digits, backbone)


def test_one_matrix_of_zeros_is_none(saved, digits):
    backbone = saved("gpt2", n_positions=64)  # a new layer of a model that was made deeper is the identity at first
    edited(lambda state: {name: tensor * ("c_proj" not in name) for name, tensor in state.items()})(Path("models/gpt2"))
    fpt.models.build(digits, backbone)


# --- wherever a backbone's name does


def spec_of(backbone, **fields):
    few = {"steps": 2, "evaluations": 1, "evaluation_examples": 4, "budget_examples": 4, "test_examples": 4}
    return resolve({"task": "digits", "backbone": backbone, "learning_rates": [1e-3], "seeds": [0], **few, **fields})


def test_a_sweep_records_checksum_and_is_named_by_it(saved, tmp_path):
    backbone = saved()
    spec = spec_of(backbone, compute_type="float32")
    assert "/" not in spec.folder_name
    result = run_sweep(spec, tmp_path / "study" / spec.folder_name)
    checksum = sha256(tmp_path / "models/llama/model.safetensors")
    assert (result.info["weights_checksum"], result.info["weights_revision"]) == (checksum, None)
    assert resolve(spec.parameters()).hash == spec.hash
    named = spec.hash
    shutil.move("models/llama", "elsewhere")
    assert spec_of("hub:elsewhere", compute_type="float32").hash == named  # what lies there decides, not where
    config = json.loads(Path("elsewhere/config.json").read_text())
    Path("elsewhere/config.json").write_text(json.dumps(config | {"rms_norm_eps": 1e-3}))
    assert spec_of("hub:elsewhere", compute_type="float32").hash != named


@pytest.mark.parametrize("fields", [{"init": "statistics"}, {"arm": "unfrozen-random", "layers": 1}])
def test_other_starts_and_depths(fields, saved, digits):
    template = fpt.models.build(digits, saved("modernbert"), **fields)
    assert all(value.isfinite().all() for value in template.initialise(0).values())
    assert template.layers == fields.get("layers", 3)


@pytest.mark.parametrize("model_type", [*FIELDS, "gpt_neo"])
def test_a_tiny_one_stands_in(model_type, saved, tmp_path):
    spec = spec_of(saved(model_type))
    template = smoke.prepared_small(spec, tmp_path, tmp_path / "study" / spec.folder_name).template
    assert (template.width, template.layers, template.backbone.config["model_type"]) == (16, 2, model_type)
    assert template.initialise(0).keys() == template.shapes.keys()


def test_a_study_puts_it_in_the_place_of_another(saved, tmp_path):
    study = ONE_ARM.replace("tiny-lm", f"'{saved()}'").replace("steps: 2", "layers: 2")
    (spec,) = load_study(workspace(tmp_path, study, notebooks=False)).sweeps
    assert (spec.backbone, spec.backbone_options["layers"], spec.task) == ("hub:models/llama", 2, "digits")


def test_it_is_listed(saved):
    done = CliRunner().invoke(app, ["models", "--backbone", saved()])
    assert done.exit_code == 0, done.output


# --- the hub

NAME = "hub:some/model@" + "0123456789" * 4


@pytest.mark.parametrize("cached", [False, True])
def test_a_model_of_the_hub_is_read_from_the_folder_of_weights_or_the_cache(
    cached, saved, tmp_path, monkeypatch, digits
):
    saved()
    revision = NAME.rpartition("@")[2]
    snapshots = tmp_path / "cache" / "some" / "model" / "snapshots"

    def download(repository, name, revision, **_):
        return str(tmp_path / "cache" / repository / "snapshots" / revision / name)

    if cached:
        for name in ("try_to_load_from_cache", "hf_hub_download"):
            monkeypatch.setattr(huggingface_hub, name, download)
    else:
        monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path / "weights"))
    shutil.move("models/llama", snapshots / revision if cached else tmp_path / "weights" / hub.slug(NAME))
    template = fpt.models.build(digits, NAME)
    assert template.initialise(0).keys() == template.shapes.keys()
    assert (template.backbone.hub, template.backbone.revision) == ("some/model", revision)
    assert weights.commit(fpt.models.backbone(NAME)) == (revision if cached else None)
    assert "/" not in spec_of(NAME).folder_name


def test_a_model_that_is_nowhere_is_refused_with_what_helps(monkeypatch, tmp_path):
    def nowhere(*_, **__):
        raise LocalEntryNotFoundError("no network")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", nowhere)
    with pytest.raises(
        WeightsError, match=r"config\.json is not on this machine.*no network.*FPT_WEIGHTS.*hub-some-model@0"
    ):
        fpt.models.backbone(NAME)


# --- refusals


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hub:some/model", r"no folder some/model.*hub:owner/name@REVISION, where REVISION is a commit of 40"),
        ("hub:some/model@main", r"hub:owner/name@REVISION.*40 hexadecimal"),
        ("hub:~/nowhere-at-all", r"no folder /.*nowhere-at-all.*config\.json"),
        ("hub:", r"config\.json and model\.safetensors"),
        ("hubb:x", r"unknown backbone 'hubb:x'.*hub:PATH"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=message):
        fpt.models.backbone(name)


def test_a_path_of_one_machine_is_no_name_in_a_study(saved, tmp_path):
    saved()
    fpt.models.backbone(f"hub:{tmp_path / 'models/llama'}")
    with pytest.raises(SpecError, match=r"results record it.*relative to the workspace"):
        spec_of(f"hub:{tmp_path / 'models/llama'}")


def renamed(name):
    return lambda folder: (folder / "model.safetensors").rename(folder / name)


def in_several_files(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text("{}")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (configured(auto_map={"AutoModel": "modeling.Mine"}), r"auto_map.*never executed"),
        (configured(quantization_config={"bits": 4}), r"quantised"),
        (configured(is_encoder_decoder=True), r"an encoder and a decoder"),
        (configured(num_hidden_layers=None), r"number of layers"),
        (configured(hidden_act="none-such"), r"cannot be a backbone.*none-such"),
        (lambda folder: (folder / "config.json").write_text("["), r"config\.json holds no JSON object"),
        (renamed("pytorch_model.bin"), r"lacks model\.safetensors.*save_pretrained"),
        (renamed("adapter_config.json"), r"lacks model\.safetensors.*merge_and_unload"),
        (in_several_files, r"lacks model\.safetensors.*several files.*max_shard_size"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused(spoil, message, saved):
    backbone = saved()
    spoil(Path("models/llama"))
    with pytest.raises(SpecError, match=message):
        fpt.models.backbone(backbone)


@pytest.mark.parametrize(
    ("model_type", "changes", "message"),
    [
        ("mamba", {}, r"recurrent in part"),
        ("electra", {"embedding_size": 8}, r"'embeddings_project\.weight' of ElectraModel is in no group"),
        ("bloom", {}, r"cannot be a backbone.*autograd\.Function"),
    ],
)
def test_what_fleets_cannot_compute_is_refused_with_the_reason(model_type, changes, message, saved):
    with pytest.raises(SpecError, match=message):
        fpt.models.backbone(saved(model_type, **changes))


@pytest.mark.parametrize(
    ("model_type", "changes", "numbers"),
    [
        ("opt", {"max_position_embeddings": 40}, r"40 positions.*64 tokens"),
        ("roberta", {"max_position_embeddings": 42}, r"40 positions.*64 tokens"),
        ("mistral", {"sliding_window": 32}, r"32 tokens.*sliding_window 32.*has 64: .*shorter"),
        ("modernbert", {"local_attention": 64}, r"32 tokens.*local_attention 64.*has 64: .*shorter"),
        ("gpt_neo", {"window_size": 32}, r"32 tokens.*window_size 32.*has 64: .*shorter"),
        ("gptj", {"rotary_dim": 4, "n_positions": 16}, r"64 tokens.*n_positions 16"),
        ("mpt", {"max_seq_len": 16}, r"64 tokens.*max_seq_len 16"),
    ],
)
def test_a_task_that_is_too_long_is_refused_with_both_numbers(model_type, changes, numbers, saved, listops, digits):
    backbone = saved(model_type, **changes)
    with pytest.raises(SpecError, match=numbers):
        fpt.models.build(listops, backbone)
    fpt.models.build(digits, backbone)
    if model_type == "modernbert":  # its first layer attends to all tokens
        fpt.models.build(listops, backbone, layers=1)


def test_what_differs_from_the_library_is_refused(saved, monkeypatch):
    backbone = saved("llama", rms_norm_eps=1e-4)  # a config that was not tried yet
    monkeypatch.setattr("fpt.models.layers.linear", lambda x, weight: 1.01 * linear(x, weight))
    with pytest.raises(FptError, match=r"do not give what the library's own forward pass gives"):
        fpt.models.backbone(backbone)


@pytest.mark.parametrize("model_type", ["llama", "gpt_neox", "gemma2", "gemma3_text"])
def test_random_norms_start_as_the_librarys_do(model_type, saved, digits):
    """Some multiply by their weight, others by one more than it: neither changes what it normalises."""
    template = fpt.models.build(digits, saved(model_type), arm="frozen-random")
    library = AutoModel.from_config(AutoConfig.from_pretrained(f"models/{model_type}"))
    fresh, values = dict(library.named_parameters()), template.initialise(0)
    norms = [name for name, group in template.groups.items() if group == "layer_norm"]
    assert norms
    for name in norms:
        torch.testing.assert_close(values[name], fresh[name.removeprefix("backbone.")])
