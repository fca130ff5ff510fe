"""First-layer attention is the library's own; what the bit tasks call relevant is what their targets depend on."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from small_models import short_recipe
from torch.func import functional_call

import fpt.models
import fpt.tasks
from fpt.errors import SpecError
from fpt.tasks.arrays import Finite, hold_out
from fpt.tasks.task import Task
from fpt.training import check_recipe, features, measures, train_fleet
from fpt.training.evaluate import Best
from fpt.training.fleet import Fleet
from fpt.training.recipe import Recipe, weights_file

RECIPE = Recipe(steps=4, batch_size=4, compute_type="float32")


def fleet_of(backbone: str, task_name: str = "bit-xor", **options: int) -> Fleet:
    task = fpt.tasks.load(task_name, **options)
    return Fleet(task, fpt.models.build(task, backbone), RECIPE, [1e-3, 1e-2], [3, 4], torch.device("cpu"))


@pytest.mark.parametrize("backbone", ["small-gpt2", "small-bert"])
def test_the_attention_is_the_librarys(backbone: str, small_backbones: dict[str, torch.nn.Module]) -> None:
    fleet = fleet_of(backbone)
    weights = fleet.template.initialise(3)
    examples = fleet.splits[0].test_sample(7)
    found = measures.first_layer(fleet, weights, examples)
    library = small_backbones[backbone]
    library.set_attn_implementation("eager")
    embedded = fleet.task.encode(examples.inputs) @ weights["input_layer.weight"].T + weights["input_layer.bias"]
    with torch.no_grad():
        theirs = library(inputs_embeds=embedded, output_attentions=True).attentions[0].mean(1)
    torch.testing.assert_close(found, theirs, atol=1e-5, rtol=1e-5)


def test_the_weights_of_a_run_are_its_own(small_backbones: dict[str, torch.nn.Module]) -> None:
    fleet = fleet_of("small-gpt2")
    fleet.step(1)
    for row, (seed, moved) in enumerate(zip([3, 3, 4, 4], [1e-3, 1e-2] * 2, strict=True)):
        start, end = fleet.template.initialise(seed), measures.run_weights(fleet, row, fleet.parameters)
        assert torch.equal(start["backbone.h.0.mlp.c_fc.weight"], end["backbone.h.0.mlp.c_fc.weight"])
        step = (start["output_layer.weight"] - end["output_layer.weight"]).abs().max().item()
        assert step == pytest.approx(moved, rel=0.01)  # Adam's first step is the rate


def test_chance_is_what_the_untrained_model_may_see(small_backbones: dict[str, torch.nn.Module]) -> None:
    """Trained attention that is rounded to 0 is still allowed."""
    fleet = fleet_of("small-gpt2", "bit-memory")
    best = Best(fleet)
    best.parameters *= 1e4
    found = measures.attention(fleet, best)
    assert (found.loc[found["trained"], "weight"] == 0).sum() > (found.loc[~found["trained"], "weight"] == 0).sum()
    chance = found.pivot_table(index=["learning_rate", "seed", "query", "key"], columns="trained", values="chance")
    assert (chance[False] == chance[True]).all()


@given(st.integers(2, 4), st.integers(1, 6), st.integers(0, 2**31))
def test_the_xor_of_relevant_bits_is_the_target(strings: int, length: int, seed: int) -> None:
    task = fpt.tasks.load("bit-xor", strings=strings, length=length)
    examples = task.split(seed).batch(0, 5)
    needed = task.relevant(examples)
    bits = task.encode(examples.inputs)[:, :, 0]
    assert torch.equal((bits[:, None] * needed).sum(2).long() % 2, examples.targets)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(3, 6), st.integers(0, 2**31))
def test_the_relevant_string_is_the_target(strings: int, tokens: int, patch: int, seed: int) -> None:
    task = fpt.tasks.load("bit-memory", strings=strings, length=tokens * patch, patch=patch)
    examples = task.split(seed).batch(0, 5)
    needed = task.relevant(examples)
    assert needed.shape == (5, tokens, (strings + 1) * tokens)
    assert not needed[:, :, strings * tokens :].any()  # the query itself is masked
    for row, encoded in enumerate(task.encode(examples.inputs)):
        chosen = encoded[: strings * tokens].view(strings, -1)[needed[row, 0, : strings * tokens : tokens]]
        assert len(chosen) >= 1  # two strings may be alike
        assert (chosen > 0).long().eq(examples.targets[row]).all()


def halved(task: Task) -> Task:
    """With an official test set, of which half is every seed's validation."""
    data: Any = task.data
    return replace(task, data=Finite(data.train[:300], data.train[300:500], None))


def official(task: Task) -> Task:
    """With an official test set, and validation that the seed draws."""
    return replace(task, data=replace(halved(task).data, divide=partial(hold_out, count=100)))


CASES = {"drawn by the seed": lambda task: task, "official": official, "half of it is validation": halved}


@pytest.mark.parametrize("report", ["best", "last"])
@pytest.mark.parametrize("case", CASES)
def test_the_accuracy_of_answers_is_the_one_that_is_reported(case: str, report: str, small_backbones: object) -> None:
    """On both parts; and examples are known by their numbers: among all, the same image has the same class."""
    task = CASES[case](fpt.tasks.load("digits"))
    model = fpt.models.build(task, "small-gpt2", "random", "all")
    recipe = short_recipe(evaluations=6, report=report)
    found = train_fleet(task, model, recipe, [1e-3, 1e-2, 1e30], [3, 4], asked=["answers"])
    answers, runs = found.tables["answers"], found.runs.set_index(["learning_rate", "seed"])
    assert (answers["target"].dtype, answers["predicted"].dtype) == ("int8", "int8")
    lives = answers[answers["learning_rate"] < 1]
    right = lives["predicted"].eq(lives["target"]).groupby([lives[name] for name in ("learning_rate", "seed", "part")])
    shares = right.mean().unstack()
    for part in ("test", "validation"):
        assert shares[part].to_list() == pytest.approx(runs.loc[shares.index, f"{part}_accuracy"].to_list())
    assert answers.loc[answers["learning_rate"] > 1, "predicted"].eq(-1).all()
    data: Any = task.data
    held = data.train if isinstance(data.test, int) else data.test
    test = answers[answers["part"] == "test"]
    assert test["target"].to_list() == held.targets[test["example"].to_list(), 0].tolist()
    for seed in (3, 4):
        sample, rows = task.split(seed).test_sample(recipe.test_examples), test[test["seed"] == seed]
        numbers = rows.loc[rows["learning_rate"] == 1e-3, "example"].to_list()
        assert torch.equal(held.inputs[numbers], sample.inputs)
    assert not answers.duplicated(["learning_rate", "seed", "part", "example"]).any()


def test_answers_on_a_stream_are_numbered_in_the_sample_of_the_seed(small_backbones: object) -> None:
    task = fpt.tasks.load("bit-xor", strings=2, length=1)
    assert task.predictions == 1
    model = fpt.models.build(task, "small-gpt2", "random")
    found = train_fleet(task, model, short_recipe(test_examples=None), [1e-3], [0, 1], asked=["answers"])
    test = found.tables["answers"].query("part == 'test'")
    for seed, rows in test.groupby("seed"):
        assert rows["example"].to_list() == list(range(task.test_size))
        assert rows["target"].to_list() == task.split(seed).test.targets[:, 0].tolist()


@pytest.mark.parametrize(
    ("task", "backbone", "asked", "message"),
    [
        ("bit-xor", "small-gpt2", "answers", "'bit-xor' has 5 predictions"),
        ("digits", "small-gpt2", "attention", "'digits' does not say"),
        ("bit-xor", "small-lstm", "attention", "is of the family 'lstm'"),
        ("digits", "small-gpt2", "adapter", "arm frozen-random has none"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_training(
    task: str, backbone: str, asked: str, message: str, small_backbones: object, small_lstms: object
) -> None:
    with pytest.raises(SpecError, match=message):
        check_recipe(fpt.models.build(fpt.tasks.load(task), backbone, "random"), RECIPE, [asked])


def test_attention_where_features_could_be_cached(small_backbones: object) -> None:
    stream = fpt.tasks.load("bit-xor")
    drawn = stream.split(0).batch(0, 60)
    task = replace(stream, data=Finite(drawn, 10, partial(hold_out, count=10)))
    recipe = RECIPE.model_copy(update={"dropout": 0.0})
    model = fpt.models.build(task, "small-gpt2", "random", "output")
    assert features.constant(task, model, recipe)
    found = train_fleet(task, model, recipe, [1e-3], [0], asked=["attention"]).tables["attention"]
    sums = found.groupby(["trained", "query"])["weight"].sum()
    assert sums.sub(1).abs().max() < 1e-5
    before, after = (found.loc[found["trained"] == trained, "weight"].to_list() for trained in (False, True))
    assert before == after  # the output layer alone was trained


def test_the_weights_that_are_kept_are_those_whose_accuracy_is_reported(
    small_backbones: dict[str, torch.nn.Module], tmp_path: Path
) -> None:
    """Of one seed, here the second, and at every rate: the best of its run, not the last."""
    task = fpt.tasks.load("digits")
    model = fpt.models.build(task, "small-gpt2", "random", "all")
    recipe = short_recipe(evaluations=6)
    keep = (4, tmp_path)
    runs = train_fleet(task, model, recipe, [1e-3, 1e-2], [3, 4], keep=keep).runs
    runs = runs[runs["seed"] == 4].set_index("learning_rate")
    assert (runs["test_accuracy"] != runs["test_accuracy_last"]).any()
    test = task.split(4).test_sample(recipe.test_examples)
    for rate, reported in runs["test_accuracy"].items():
        weights = load_file(weights_file(tmp_path, rate))
        logits = functional_call(model.module, weights, (task.encode(test.inputs), test.lengths))
        assert (logits.argmax(-1) == test.targets).double().mean().item() == pytest.approx(reported)
    assert len(list(tmp_path.glob("weights-*"))) == 2
