"""Bad names, missing and altered weights: a clear error before anything trains."""

import pytest

import fpt.models
import fpt.tasks
from fpt.errors import SpecError, WeightsError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backbone": "gtp2"}, r"unknown backbone 'gtp2'.*Did you mean 'gpt2'"),
        (
            {"backbone": "gpt2", "backbone_options": {"layer": 2}},
            r"option of backbone 'gpt2' 'layer'.*layers",
        ),
        ({"backbone": "gpt2", "backbone_options": {"layers": 13}}, r"layers=13.*12 layers"),
        ({"backbone": "gpt2", "backbone_options": {"layers": "2"}}, r"layers='2'.*int"),
        ({"backbone": "gpt2", "backbone_options": {"layers": True}}, r"layers=True.*int"),
        ({"backbone": "gpt2", "init": "pretraind"}, r"unknown init 'pretraind'.*'pretrained'"),
        ({"backbone": "gpt2", "trainable": "ftp"}, r"unknown trainable policy 'ftp'.*fpt"),
        (
            {"backbone": "gpt2", "trainable": ["input", "atention"]},
            r"unknown parameter group 'atention'.*'attention'",
        ),
        ({"backbone": "gpt2", "trainable": ["recurrent"]}, r"'gpt2' has no parameter group 'recurrent'"),
        ({"backbone": "gpt2", "trainable": []}, r"empty list"),
    ],
)
def test_bad_choices(arguments, message):
    with pytest.raises(SpecError, match=message):
        fpt.models.check(**arguments)


def test_the_source_of_a_bad_choice_is_named():
    with pytest.raises(SpecError, match=r"runs/x/study\.yaml"):
        fpt.models.check("gtp2", source="runs/x/study.yaml")


def test_a_policy_takes_the_groups_that_exist():
    assert "recurrent" not in fpt.models.trainable_groups("all", "gpt2")


def test_missing_weights_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path))
    with pytest.raises(WeightsError, match=r"openai-community/gpt2.*FPT_WEIGHTS.*tiny-lm"):
        fpt.models.find_weights("gpt2")


def test_weights_on_disk_need_no_network(small_backbones, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "small-gpt2" in fpt.models.find_weights("small-gpt2")


def test_tiny_lm_is_in_the_package():
    assert "tiny_lm" in fpt.models.find_weights("tiny-lm")


def test_altered_minilm_is_refused_and_left(monkeypatch, tmp_path):
    folder = tmp_path / "minilm"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"not it")
    monkeypatch.setenv("FPT_WEIGHTS", str(tmp_path))
    with pytest.raises(WeightsError, match=r"expected SHA-256 53aa5117.*found [0-9a-f]{64}"):
        fpt.models.find_weights("minilm")
    assert (folder / "model.safetensors").read_bytes() == b"not it"


@pytest.mark.parametrize("damage", [{"config.json": b"{}"}, {"config.json": b"no"}, {"model.safetensors": b"garbage"}])
def test_damaged_weights_are_named(damage, small_backbones, tmp_path):
    for name, content in damage.items():
        (tmp_path / "small-gpt2" / name).write_bytes(content)
    with pytest.raises(WeightsError, match=r"'small-gpt2' in .*cannot be read"):
        fpt.models.build(fpt.tasks.load("digits"), "small-gpt2")
