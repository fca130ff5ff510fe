"""A new model of the library is a row, a new family a file; what is misspelt in either is refused by name."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest
import small_models
import torch
from small_models import short_recipe
from torch.func import functional_call
from torch.nn.functional import cross_entropy, embedding
from transformers import AutoModel

import fpt.models
import fpt.tasks
from fpt.errors import SpecError
from fpt.models import BACKBONES, POLICIES, Backbone, families
from fpt.models.layers import read_out
from fpt.models.template import Template
from fpt.tasks.task import Task
from fpt.training.fleet import Fleet

WITHOUT_POSITIONS = tuple(group for group in fpt.models.TRANSFORMER if group != "positions")
# By architecture: config fields beside the sizes of a small model.
ROWS = {
    "llama": {"num_key_value_heads": 1},  # two heads share a key
    "mistral": {"num_key_value_heads": 2, "sliding_window": 64},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 8},
    "gpt_neox": {},
    "modernbert": {"local_attention": 128},  # bidirectional, its second layer in a window of 64 tokens on each side
}


def row(model_type: str, **changes: object) -> Backbone:
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = {"model_type": model_type, "vocab_size": 11, **sizes, **ROWS[model_type]}
    return Backbone("library", config | changes, layers=2, groups=WITHOUT_POSITIONS)


@pytest.fixture(scope="module")
def listops() -> Task:
    return fpt.tasks.load("listops-short", train=200, heldout=50)  # sequences of different lengths, with padding


def first_loss(task: Task, template: Template, seed: int) -> torch.Tensor:
    batch, weights = task.split(seed).batch(0, 8), template.initialise(seed)
    template.module.drop_with([])
    logits = functional_call(template.module, weights, (task.encode(batch.inputs), batch.lengths))
    return cross_entropy(logits.flatten(0, 1), batch.targets.flatten()).detach()


@pytest.mark.parametrize("model_type", list(ROWS))
def test_a_model_of_the_library_is_a_row(model_type, listops, monkeypatch, tmp_path):
    """Pretrained weights are read, the hidden states are the library's, and fleets compute what single runs do."""
    monkeypatch.setitem(BACKBONES, "mine", row(model_type))
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path))
    library = small_models.save_random(BACKBONES["mine"], tmp_path / "mine").eval()
    library.config._attn_implementation = "eager"
    template = fpt.models.build(listops, "mine")
    weights, examples = template.initialise(0), listops.split(0).validation[:8]
    tokens, lengths = listops.encode(examples.inputs), examples.lengths
    keep = (torch.arange(listops.tokens) < lengths[:, None]).long()
    with torch.no_grad():
        hidden = library(inputs_embeds=embedding(tokens, weights["input_layer.weight"]), attention_mask=keep)
        read = read_out(hidden.last_hidden_state, 1, lengths)
        expected = torch.nn.functional.linear(read, weights["output_layer.weight"], weights["output_layer.bias"])
        actual = functional_call(template.module, weights, (tokens, lengths))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    whole = fpt.models.build(listops, "mine", "random", "all", random_init="scaled")
    fleet = Fleet(listops, whole, recipe(), [1e-3, 1e-2], [0, 1], torch.device("cpu"))
    losses = fleet.step(1)
    torch.testing.assert_close(losses.view(2, 2)[:, 0], torch.stack([first_loss(listops, whole, s) for s in (0, 1)]))
    dropped = Fleet(listops, whole, recipe(dropout=0.5), [1e-3, 1e-2], [0, 1], torch.device("cpu")).step(1)
    assert (dropped != losses).all()  # attention weights, at least


recipe = partial(short_recipe, steps=2, evaluations=1, evaluation_examples=20)


@pytest.fixture
def family_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Writes the module of a new family into a folder that counts as fpt/models/families."""
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(dedent(text))
        monkeypatch.setitem(BACKBONES, f"{name}-base", Backbone(name, {}, layers=2, groups=WITHOUT_POSITIONS))

    return write


GATED = """
    from torch import nn
    from transformers import PretrainedConfig

    from fpt.models.families.library import Family


    class GatedConfig(PretrainedConfig):
        def __init__(self, hidden_size=32, num_hidden_layers=2, **others):
            super().__init__(**others)
            self.hidden_size, self.num_hidden_layers = hidden_size, num_hidden_layers


    class Mixing(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.weigh, self.drop = nn.LayerNorm(width), nn.Linear(width, width), nn.Dropout()

        def forward(self, hidden):
            return hidden + self.drop(self.weigh(self.norm(hidden)).cumsum(1))


    class Gated(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.config = config
            self.layers = nn.ModuleList([Mixing(config.hidden_size) for _ in range(config.num_hidden_layers)])


    def forward(model, embedded, lengths, rows):
        for layer in model.layers:
            embedded = layer(embedded)
        return rows(embedded)


    FAMILY = Family(
        config=GatedConfig,
        model=Gated,
        forward=forward,
        classes=(("Norm", "layer_norm"), ("Mixing", "MIXING")),
        replaced=(),
        tiny={"hidden_size": 16},
    )
"""


def test_a_family_is_a_file(family_file, listops, monkeypatch):
    family_file("gated", GATED.replace("MIXING", "feed_forward"))
    groups = ("input", "output", "layer_norm", "feed_forward")
    monkeypatch.setitem(BACKBONES, "gated-base", replace(BACKBONES["gated-base"], groups=groups, pretrained=False))
    monkeypatch.setitem(BACKBONES, "small-gated", fpt.models.tiny("gated-base"))
    template = fpt.models.build(listops, "small-gated", "random", "all")
    assert (template.width, template.trainable_groups) == (16, groups)
    fleet = Fleet(listops, template, recipe(dropout=0.1), [1e-3, 1e-2], [0, 1], torch.device("cpu"))
    assert fleet.step(1).isfinite().all()
    assert len(fleet.masks.shapes) == 2


def test_a_misspelt_group_of_a_family_is_refused(family_file, listops):
    family_file("mixed", GATED.replace("MIXING", "feed_foward"))
    with pytest.raises(SpecError, match=r"unknown parameter group 'feed_foward'.*family 'mixed'.*'feed_forward'"):
        fpt.models.build(listops, "mixed-base", "random")


def test_a_parameter_that_no_class_decides_is_refused_by_name(family_file, listops):
    family_file("bare", GATED.replace('("Mixing", "MIXING")', ""))
    with pytest.raises(SpecError, match=r"'layers\.0\.weigh\.weight' of Gated is in no group.*Mixing"):
        fpt.models.build(listops, "bare-base", "random")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (row("llama", hiden_size=16), r"unknown config field 'hiden_size'.*Did you mean 'hidden_size'"),
        (replace(row("llama"), config={"model_type": "lama"}), r"'lama'.*'llama'"),
        (replace(row("llama"), config={}), r"unknown model_type ''"),
        (replace(row("llama"), family="libary"), r"unknown family of backbones 'libary'.*'library'"),
        (replace(row("llama"), groups=("input", "atention")), r"group 'atention' \(backbone 'mine'\).*'attention'"),
        (replace(row("llama"), groups=fpt.models.TRANSFORMER), r"'mine' declares .*positions.*its model has"),
    ],
)
def test_what_is_wrong_in_a_row_is_refused_by_name(entry, message, listops, monkeypatch):
    monkeypatch.setitem(BACKBONES, "mine", entry)
    with pytest.raises(SpecError, match=message):
        fpt.models.build(listops, "mine", "random")


def test_a_misspelt_group_of_a_policy_is_refused(monkeypatch):
    monkeypatch.setitem(POLICIES, "mine", ("input", "ouput"))
    with pytest.raises(SpecError, match=r"unknown parameter group 'ouput' \(policy 'mine'\).*'output'"):
        fpt.models.check("gpt2", trainable="mine")


def test_stand_ins_need_no_backbone_of_the_familys_name(monkeypatch):
    monkeypatch.setitem(BACKBONES, "mine", row("llama"))
    assert BACKBONES[small_models.stand_ins()["small-library"]].family == "library"
    assert "library" not in BACKBONES


def test_the_library_model_of_a_row_is_whole(listops, monkeypatch):
    monkeypatch.setitem(BACKBONES, "mine", row("llama"))
    report = fpt.models.build(listops, "mine", "random", layers=1).report()
    whole = AutoModel.from_config(families.family("library").configuration(BACKBONES["mine"]))
    backbone = report.drop(index=["input", "output"]).to_numpy().sum()
    assert backbone == sum(parameter.numel() for parameter in whole.parameters())
    assert report.loc["embed_tokens", "unused"] == 11 * 16
