"""Output-only training on cached features: the same runs, and none of the work below the output layer."""

from functools import partial

import pytest
import torch
from small_models import short_recipe

import fpt.models
import fpt.tasks
from fpt.training import features, train_fleet
from fpt.training.fleet import Fleet

RATES, SEEDS = [1e-3, 1e-2], [0, 5]


recipe = partial(short_recipe, steps=150, evaluation_examples=60)


@pytest.mark.parametrize("init", ["pretrained", "random"])
@pytest.mark.parametrize("name", ["digits", "listops-short"])
def test_cached_features_train_the_same_runs(name, init, small_backbones, monkeypatch):
    options = {"train": 200, "heldout": 60} if name == "listops-short" else {}
    task = fpt.tasks.load(name, **options)  # listops: an embedding table, lengths, a padding mask
    template = fpt.models.build(task, "small-bert", "random" if name == "listops-short" else init, "output")
    cached = train_fleet(task, template, recipe(), RATES, SEEDS)
    monkeypatch.setattr(features, "constant", lambda *_: False)
    plain = train_fleet(task, template, recipe(), RATES, SEEDS)
    keys = ["learning_rate", "seed", "step"]
    assert cached.curves[keys].equals(plain.curves[keys])
    losses = (torch.tensor(result.curves["validation_loss"]) for result in (cached, plain))
    torch.testing.assert_close(*losses, rtol=1e-5, atol=1e-6)
    assert (cached.runs["test_accuracy"] - plain.runs["test_accuracy"]).abs().max() <= 1 / 60 + 1e-9
    assert (cached.runs["validation_accuracy"] > 0).all()


def test_the_backbone_runs_once_for_each_example_and_seed(small_backbones, monkeypatch):
    task = fpt.tasks.load("digits")
    template = fpt.models.build(task, "small-gpt2", "pretrained", "output")
    rows = []
    template.module.backbone.h[0].register_forward_pre_hook(lambda _, arguments: rows.append(len(arguments[0])))
    train_fleet(task, template, recipe(steps=300), RATES, SEEDS)
    assert sum(rows) == len(SEEDS) * (1397 + 400)


@pytest.mark.parametrize(
    ("change", "policy", "name"),
    [({"dropout": 0.1}, "output", "digits"), ({}, ["input", "output"], "digits"), ({}, "output", "bit-xor")],
)
def test_what_changes_from_step_to_step_is_not_cached(change, policy, name, small_backbones):
    task = fpt.tasks.load(name, **({"length": 3} if name == "bit-xor" else {}))
    template = fpt.models.build(task, "small-gpt2", "random", policy)
    assert not features.constant(task, template, recipe(**change))
    fleet = features.fleet(task, template, recipe(**change), RATES, SEEDS, torch.device("cpu"))
    assert fleet.task is task


def test_augmented_images_are_not_cached(small_backbones, shaped_task):
    task = shaped_task("cifar10", "released")
    template = fpt.models.build(task, "small-gpt2", "random", "output")
    assert not features.constant(task, template, recipe())
    plain = shaped_task("cifar10", "paper")
    assert features.constant(plain, fpt.models.build(plain, "small-gpt2", "random", "output"), recipe())


def test_output_only_with_dropout_learns_too(small_backbones):
    task = fpt.tasks.load("digits")
    template = fpt.models.build(task, "small-gpt2", "pretrained", "output")
    runs = train_fleet(task, template, recipe(dropout=0.1, steps=4, evaluations=1), RATES, SEEDS).runs
    assert runs["test_accuracy"].notna().all()
    fleet = Fleet(task, template, recipe(dropout=0.5), RATES, [0], torch.device("cpu"))
    losses = fleet.step(1)
    assert losses[0] == losses[1]  # the same weights, and a mask that is the seed's
    assert fleet.step(1)[0] != losses[0]  # which have moved
