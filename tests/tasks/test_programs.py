"""Text: windows of programs, the model's own table of bytes, and the library's own loss."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import GPT2LMHeadModel

import fpt
from fpt.errors import DataError, SpecError
from fpt.sweeps.run import run_sweep
from fpt.sweeps.spec import resolve
from fpt.tasks import programs
from fpt.training import measures
from fpt.training.evaluate import Best, score
from fpt.training.fleet import Fleet, stack
from fpt.training.recipe import Recipe

FOLDER = Path(fpt.__file__).parent / "models/tiny_lm"
CPU = torch.device("cpu")
GRID = {"learning_rates": [1e-3], "seeds": [0]}


@pytest.fixture(scope="module")
def task():
    return fpt.tasks.load("text")


def test_a_target_is_the_byte_after_its_place(task):
    split = task.split(0)
    for part in (split.train_sample(50), split.validation, split.test):
        assert part.inputs.shape[1:] == part.targets.shape[1:] == (64,)
        assert torch.equal(part.inputs[:, 1:].long(), part.targets[:, :-1])


def test_the_parts_are_whole_modules_and_none_is_in_two(task):
    parts = programs.read()
    assert all(programs.windows(parts[part]).inputs[0].numpy().tobytes() == parts[part][:64] for part in parts)
    train = {bytes(window.tolist()) for window in task.split(0).train_sample(None).inputs}
    for part in ("validation", "test"):
        rows = [bytes(window.tolist()) for window in getattr(task.split(0), part).inputs]
        assert sum(row in train for row in rows) < 0.01 * len(rows)  # lines of asterisks and the like
    assert torch.equal(task.split(0).validation.inputs, task.split(1).validation.inputs)


def test_an_altered_archive_is_refused(tmp_path):
    copy = Path(shutil.copy(programs.ARCHIVE, tmp_path))
    for spoil, word in ((lambda: copy.write_bytes(copy.read_bytes()[:-1]), "SHA-256"), (copy.unlink, "cannot be read")):
        spoil()
        with pytest.raises(DataError, match=word):
            programs.read(copy)


def test_the_loss_is_that_of_the_librarys_own_causal_model(task):
    template = fpt.models.build(task, "tiny-lm", arm="unfrozen-pretrained")
    fleet = Fleet(task, template, Recipe(dropout=0.0, compute_type="float32"), [1e-3], [0], CPU)
    examples = fleet.splits[0].test[:40]
    ours = score(fleet, fleet.parameters, stack([examples]))
    library = GPT2LMHeadModel.from_pretrained(FOLDER, dtype=torch.float32).eval()
    whole = torch.cat([examples.inputs.long(), examples.targets[:, -1:]], dim=1)
    with torch.no_grad():
        found = library(whole, labels=whole)
    assert ours.loss.item() == pytest.approx(found.loss.item(), rel=1e-5)
    right = (found.logits[:, :-1].argmax(-1) == whole[:, 1:]).double().mean()
    assert ours.accuracy.item() == pytest.approx(right.item(), abs=1e-12)


def test_a_random_table_has_the_width_of_the_model(task):
    template = fpt.models.build(task, "tiny-lm", "random", "all")
    first, second = (template.initialise(seed)["backbone.wte.weight"] for seed in (0, 1))
    assert first.shape == (256, 128)
    assert first.std().item() == pytest.approx(0.02 * (768 / 128) ** 0.5, rel=0.02)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("backbone", ["minilm", "gpt2", "none"])
def test_another_backbone_than_a_causal_model_of_bytes_is_refused_before_anything_is_loaded(task, backbone):
    fields = {"task": "text", "backbone": backbone, "init": "random", "trainable": "all", **GRID}
    with pytest.raises(SpecError, match=r"tiny-lm.*mine/study\.yaml"):
        resolve(fields, "mine/study.yaml")
    with pytest.raises(SpecError, match=backbone):
        fpt.models.build(task, backbone, "random", "all")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"task": "text", "trainable": ["input", "attention"]}, "input"),  # it has no new layers
        ({"task": "text", "arm": "lora-pretrained", "head_rate": 1e-3}, "head_rate"),
        ({"task": "digits", "trainable": ["embedding"]}, "embedding"),  # it reads no table
    ],
)
def test_what_a_task_has_not_cannot_be_asked_for(fields, named):
    with pytest.raises(SpecError, match=named):
        resolve({**fields, **GRID})


SMALL = {
    "task": "text", "learning_rates": [3e-4, 1e-3], "seeds": [0, 1, 2], "extend": 0, "steps": 4, "batch_size": 2,
    "dropout": 0.0, "compute_type": "float32", "evaluation_examples": 24, "budget_examples": 8, "test_examples": 16,
    "backbone_options": {"layers": 1}, "measures": ["windows"],
}  # fmt: skip


def test_the_losses_of_windows_are_those_of_the_curves(tmp_path):
    spec = resolve({**SMALL, "arm": "lora-pretrained"})
    result = run_sweep(spec, tmp_path / spec.folder_name)
    windows = pd.read_parquet(result.folder / "windows.parquet")
    sizes = windows.groupby(["learning_rate", "seed", "part"]).size().unstack()
    assert len(sizes) == 6
    assert (sizes["validation"] == 24).all()
    assert (sizes["test"] == 16).all()
    means = windows[windows["part"] == "validation"].groupby(["learning_rate", "seed"])["loss"].mean()
    last = result.curves[result.curves["step"] == 4].set_index(["learning_rate", "seed"])["validation_loss"]
    np.testing.assert_allclose(means, last.reindex(means.index), rtol=1e-6)


def test_a_run_that_diverged_has_no_losses(task):
    template = fpt.models.build(task, "tiny-lm", arm="unfrozen-pretrained")
    recipe = Recipe(dropout=0.0, compute_type="float32", evaluation_examples=2, test_examples=3)
    fleet = Fleet(task, template, recipe, [1e-3, 1e-2], [0], CPU)
    fleet.mark_diverged(1, torch.tensor([True, False]))
    found = measures.windows(fleet, Best(fleet))
    assert found.groupby("learning_rate")["loss"].count().tolist() == [5, 0]
