"""A new model of the library is a row, a new family a file; what is misspelt in either is refused by name."""

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
import torch
from small_models import BERT, save_random, short_recipe

import fpt.models
import fpt.tasks
from fpt.errors import SpecError
from fpt.models import BACKBONES, Backbone, families
from fpt.training.fleet import Fleet

WITHOUT_POSITIONS = tuple(group for group in fpt.models.TRANSFORMER if group != "positions")


def row(**changes: object) -> Backbone:
    return Backbone("library", {"model_type": "llama", **BERT, **changes}, layers=2, groups=WITHOUT_POSITIONS)


def test_a_model_of_the_library_is_a_row(listops, monkeypatch, tmp_path):
    """Its weights are read. What such models compute, and what a report counts of them, is tested in test_hub.py."""
    monkeypatch.setitem(BACKBONES, "mine", row())
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path))
    library = save_random(BACKBONES["mine"], tmp_path / "mine").state_dict()
    values = fpt.models.build(listops, "mine", layers=1).initialise(0)
    read = {name for name in library if name.startswith(("layers.0.", "norm."))}
    assert {name.removeprefix("backbone.") for name in values if name.startswith("backbone.")} == read
    assert all(torch.equal(values[f"backbone.{name}"], library[name]) for name in read)


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
        tiny={"hidden_size": 16},
    )
"""


def test_a_family_is_a_file(family_file, listops, monkeypatch):
    family_file("gated", GATED.replace("MIXING", "feed_forward"))
    groups = ("input", "output", "layer_norm", "feed_forward")
    monkeypatch.setitem(BACKBONES, "gated-base", replace(BACKBONES["gated-base"], groups=groups, pretrained=False))
    monkeypatch.setitem(BACKBONES, "small-gated", fpt.models.tiny(fpt.models.backbone("gated-base")))
    template = fpt.models.build(listops, "small-gated", "random", "all")
    assert (template.width, template.trainable_groups) == (16, groups)
    fleet = Fleet(listops, template, short_recipe(dropout=0.1), [1e-3, 1e-2], [0, 1], torch.device("cpu"))
    assert fleet.step(1).isfinite().all()
    tokens = listops.encode(listops.split(0).batch(0, 2).inputs)
    assert len(template.module.dropout_shapes(tokens, None)) == 2


@pytest.mark.parametrize(
    ("entry", "classes", "error", "message"),
    [
        ("mixed", '("Mixing", "feed_foward")', AssertionError, "its model has .*feed_foward"),
        ("bare", "", SpecError, r"'layers\.0\.weigh\.weight' of Gated is in no group.*Mixing"),
    ],
)
def test_a_family_whose_classes_decide_no_group_is_named(entry, classes, error, message, family_file, listops):
    family_file(entry, GATED.replace('("Mixing", "MIXING")', classes))
    with pytest.raises(error, match=message):
        fpt.models.build(listops, f"{entry}-base", "random")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (row(hiden_size=16), "LlamaConfig would ignore .*hiden_size"),
        (replace(row(), config={"model_type": "lama"}), r"'lama'.*'llama'"),
        (replace(row(), config={}), r"unknown model_type ''"),
        (replace(row(), family="libary"), r"No module named '.*libary'"),
    ],
)
def test_what_is_wrong_in_a_row_is_refused_by_name(entry, message, listops, monkeypatch):
    monkeypatch.setitem(BACKBONES, "mine", entry)
    with pytest.raises(SpecError, match=message):
        fpt.models.build(listops, "mine", "random")
