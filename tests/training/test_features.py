"""Output-only training on cached features: the same runs, and none of the work below the output layer."""

from functools import partial

import pytest
import torch
from small_models import short_recipe
from threadpoolctl import threadpool_limits

import fpt.models
import fpt.tasks
from fpt.tasks.arrays import Examples, sixths
from fpt.tasks.task import FiniteSplit
from fpt.training import features, memory, train_fleet

RATES, SEEDS = [1e-3, 1e-2], [0, 5]

recipe = partial(short_recipe, evaluation_examples=60)


@pytest.mark.parametrize(
    ("backbone", "init"),
    [("small-gpt2", "pretrained"), *((f"small-{each}", "random") for each in ("bert", "t5", "longformer", "vit"))],
)
def test_cached_features_train_the_same_runs(backbone, init, digits, listops, small_backbones, monkeypatch):
    task = digits if init == "pretrained" else listops  # longer than the pretrained positions
    template = fpt.models.build(task, backbone, init, "output")
    how = recipe(schedule="cosine", weight_decay=0.5) if init == "pretrained" else recipe()
    cached = train_fleet(task, template, how, RATES, SEEDS)
    monkeypatch.setattr(features, "constant", lambda *_: False)
    plain = train_fleet(task, template, how, RATES, SEEDS)
    keys = ["learning_rate", "seed", "step"]
    assert cached.curves[keys].equals(plain.curves[keys])
    losses = (torch.tensor(result.curves["validation_loss"]) for result in (cached, plain))
    torch.testing.assert_close(*losses, rtol=1e-5, atol=1e-6)
    assert (cached.runs["test_accuracy"] - plain.runs["test_accuracy"]).abs().max() <= 1 / 50 + 1e-9


def test_the_backbone_runs_once_for_each_example_and_seed(digits, small_backbones, monkeypatch):
    template = fpt.models.build(digits, "small-gpt2", "pretrained", "output")
    rows = []
    template.module.backbone.h[0].register_forward_pre_hook(lambda _, arguments: rows.append(len(arguments[0])))
    train_fleet(digits, template, recipe(), RATES, SEEDS)
    assert sum(rows) == len(SEEDS) * (1397 + 400)


@pytest.mark.parametrize("name", ["digits", "listops"])  # a number of test examples, and a test set of its own
def test_what_is_kept_is_counted(name, request, small_backbones):
    task = request.getfixturevalue(name)
    template = fpt.models.build(task, "small-t5", "random", "output")
    kept = features.fleet(task, template, recipe(), RATES, SEEDS, torch.device("cpu")).task.of_seeds[5]
    examples = [kept.train] if isinstance(kept.test, int) else [kept.train, kept.test]
    assert sum(each.inputs.nbytes for each in examples) == features.kept_bytes(template, recipe())
    assert features.kept_bytes(template, recipe(dropout=0.1)) == 0


def test_a_fleet_is_split_where_its_features_do_not_fit(digits, small_backbones, monkeypatch):
    template = fpt.models.build(digits, "small-gpt2", "random", "output")
    need = memory.seed_bytes(template, recipe()) + len(RATES) * memory.run_bytes(template, recipe())
    kept = features.kept_bytes(template, recipe())
    monkeypatch.setattr(memory, "free_bytes", lambda _: (2 * need - kept) / memory.SHARE)
    assert train_fleet(digits, template, recipe(steps=2, evaluations=1), RATES, SEEDS).parts == [(2, 1), (2, 1)]


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
    for variant, cached in (("released", False), ("paper", True)):
        task = shaped_task("cifar10", variant)
        template = fpt.models.build(task, "small-gpt2", "random", "output")
        assert features.constant(task, template, recipe()) is cached


def test_a_probe_never_names_a_class_that_its_seed_holds_out() -> None:
    rows = torch.randn(30, 1, 4, generator=torch.Generator().manual_seed(0))
    for labels in (torch.tensor([0, 2]), torch.tensor([1])):  # of three classes
        targets = labels.repeat(30 // len(labels))[:, None]
        head = features.probe_of(Examples(rows, targets), 3, 1.0)
        logits = rows[:, 0] @ head["output_layer.weight"].T + head["output_layer.bias"]
        assert {*logits.argmax(-1).tolist()} <= {*labels.tolist()}


@pytest.mark.parametrize("dead", [0.0, 1e-33, 1e-9])
def test_a_feature_that_hardly_varies_gets_no_huge_weight(dead) -> None:
    inputs, targets = torch.randn(60, 1, 4, generator=torch.Generator().manual_seed(0)), torch.arange(60)[:, None] % 3
    inputs[:, :, 3] *= dead
    head = features.probe_of(Examples(inputs, targets), 3, strength=1.0)
    without = features.probe_of(Examples(inputs[:, :, :3], targets), 3, strength=1.0)
    assert head["output_layer.weight"].abs().max() < 10
    torch.testing.assert_close(head["output_layer.weight"][:, :3], without["output_layer.weight"], rtol=1e-2, atol=1e-3)


def test_probes_are_the_same_bits_whatever_the_threads() -> None:
    rows = torch.randn(3000, 1, 64, generator=torch.Generator().manual_seed(0))
    data = sixths(Examples(rows, torch.arange(3000)[:, None] % 20))
    splits, before, found = [FiniteSplit(data, seed) for seed in SEEDS], torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        with threadpool_limits(threads, "blas"):
            found.append(features.probes_of(splits, 20, [0.01, 1.0]))
    torch.set_num_threads(before)
    assert len(found[0]) == 4
    for one, other in zip(*found, strict=True):
        assert all(torch.equal(one[name], other[name]) for name in one)
