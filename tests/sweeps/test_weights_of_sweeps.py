"""Sweeps that keep their weights, sweeps that start from them, and what else a sweep can be asked to measure."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

import fpt.models
import fpt.tasks
from fpt.errors import SpecError, WeightsError
from fpt.sweeps import engines, ledger, run_sweep
from fpt.sweeps.run import check_all
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.sweeps.study import load_study

STUDY = """
defaults: {backbone: small-gpt2, steps: 4, batch_size: 4, evaluations: 2, evaluation_examples: 20,
           learning_rates: [1e-3, 1e-2], selection_seeds: [0], confirmation_seeds: [10, 11]}
tasks: {bit-memory: {task_options: {strings: 2, length: 8, patch: 4}}}
sweeps:
  - {task: bit-memory, arm: unfrozen-random, keep_as: bits, measures: [attention]}
  - {task: bit-xor, arm: frozen-pretrained, pretrained_by: bits, measures: [attention, train-mode]}
"""


@pytest.fixture
def study(tmp_path: Path, small_backbones: dict[str, torch.nn.Module]) -> Path:
    folder = tmp_path / "runs" / "bits"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(STUDY)
    return folder


def sweeps(study: Path) -> tuple[SweepSpec, SweepSpec]:
    keeper, user = load_study(study).sweeps
    return keeper, user


def test_names_become_folders_and_enter_the_hash(study: Path) -> None:
    keeper, user = sweeps(study)
    assert keeper.measures == ("attention", "weights")
    assert user.pretrained_by == keeper.folder_name
    before = user.hash
    (study / "study.yaml").write_text(STUDY.replace("steps: 4", "steps: 6"))
    assert sweeps(study)[1].pretrained_by != user.pretrained_by
    assert sweeps(study)[1].hash != before


def test_the_backbone_starts_from_what_was_kept(study: Path) -> None:
    keeper, user = sweeps(study)
    with pytest.raises(WeightsError, match=r"run that sweep of the study first"):
        run_sweep(user, study / user.folder_name)
    first = run_sweep(keeper, study / keeper.folder_name)
    kept = load_file(first.folder / ledger.WEIGHTS)
    task = fpt.tasks.load("bit-xor")
    template = fpt.models.build(task, "small-gpt2", weights=first.folder / ledger.WEIGHTS)
    values = template.initialise(5)
    for name, value in values.items():
        if name.startswith("backbone.") and "wpe" not in name:
            assert torch.equal(value, kept[name]), name
    # bit-memory has 6 tokens, bit-xor 10: the other rows are new
    assert torch.equal(values["backbone.wpe.weight"][:6], kept["backbone.wpe.weight"])
    second = run_sweep(user, study / user.folder_name)
    assert second.info["weights_checksum"] == fpt.tasks.npz_checksum(first.folder / ledger.WEIGHTS)


def test_the_kept_run_is_the_first_fresh_seed_at_the_selected_rate(study: Path) -> None:
    keeper, _ = sweeps(study)
    result = run_sweep(keeper, study / keeper.folder_name)
    task = fpt.tasks.load("bit-memory", None, "paper", strings=2, length=8, patch=4)
    template = fpt.models.build(task, "small-gpt2", "random", "all", weights=None)
    start, kept = template.initialise(10), load_file(result.folder / ledger.WEIGHTS)
    assert start.keys() == kept.keys()
    assert any(not torch.equal(start[name], kept[name]) for name in start)  # it was trained
    # Adam moves no number by more than about one rate a step
    assert all((start[name] - kept[name]).abs().max() <= 5 * (result.selected_rate or 0) for name in start)


def test_attention_adds_up_and_tells_what_matters(study: Path) -> None:
    keeper, _ = sweeps(study)
    folder = run_sweep(keeper, study / keeper.folder_name).folder
    table = pd.read_parquet(folder / "attention.parquet")
    assert set(table["stage"]) == {"confirmation"}
    assert set(table["trained"]) == {True, False}
    keys = ["learning_rate", "seed", "trained", "query"]
    sums = table.groupby(keys)[["weight", "relevant", "chance"]].sum()
    assert sums["weight"].sub(1).abs().max() < 1e-5
    assert (sums["relevant"] < sums["weight"]).all()
    # two strings of two tokens: a causal query at place 4 sees 5 keys, 2 of them in the string that matches
    assert sums["chance"].xs(4, level="query").to_list() == pytest.approx([2 / 5] * 4, abs=1e-6)
    assert sums["chance"].xs(5, level="query").to_list() == pytest.approx([2 / 6] * 4, abs=1e-6)


def test_accuracy_in_training_mode_is_a_column_of_its_own(study: Path) -> None:
    keeper, user = sweeps(study)
    run_sweep(keeper, study / keeper.folder_name)
    runs = run_sweep(user, study / user.folder_name).runs
    confirmed = runs[runs["stage"] == "confirmation"]
    assert confirmed["train_accuracy_train_mode"].between(0, 1).all()
    assert runs.loc[runs["stage"] == "selection", "train_accuracy_train_mode"].isna().all()


class TestOrder:
    def test_who_needs_weights_comes_after_who_keeps_them(self, study: Path) -> None:
        order: list[str] = []

        def engine(specs: Any, folder: Path) -> list[engines.Failure]:
            for spec in specs:
                order.append(spec.task)
                run_sweep(spec, folder / spec.folder_name)
            return []

        keeper, user = sweeps(study)
        assert engines.in_order(engine, [user, keeper], study) == []
        assert order == ["bit-memory", "bit-xor"]

    def test_without_weights_it_fails_and_says_whose(self, study: Path) -> None:
        keeper, user = sweeps(study)
        (failure,) = engines.in_order(lambda *_: [], [keeper, user], study)
        assert failure.spec == user
        assert keeper.folder_name in failure.reason


@pytest.mark.parametrize("other", ["backbone: small-bert", "backbone_options: {layers: 1}"])
def test_a_keeper_of_another_backbone_is_refused_before_it_is_trained(study: Path, other: str) -> None:
    (study / "study.yaml").write_text(STUDY.replace("keep_as: bits, measures: [attention]", f"keep_as: bits, {other}"))
    keeper, user = sweeps(study)
    with pytest.raises(SpecError, match=rf"{keeper.folder_name} keeps.*must be the same .*{user.folder_name}"):
        check_all([keeper, user], study)
    assert not (study / keeper.folder_name).exists()


def test_the_weights_that_are_there_are_checked(study: Path) -> None:
    keeper, user = sweeps(study)
    check_all([user], study)  # its keeper is still to be trained
    (study / keeper.folder_name).mkdir()
    (study / keeper.folder_name / ledger.WEIGHTS).write_bytes(b"half of it")
    with pytest.raises(WeightsError, match=keeper.folder_name):
        check_all([user], study)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measures": ["weights"]}, "first confirmation seed"),
        ({"measures": ["atention"]}, "Did you mean 'attention'"),
        ({"pretrained_by": "../other"}, "folder name of a sweep"),
        ({"pretrained_by": "digits.output-random-12345678", "arm": "frozen-random"}, "needs init pretrained"),
        ({"input_init": "orthogonl"}, "'orthogonal' or 'default'"),
        ({"threshold": 1.5}, "less than or equal to 1"),
    ],
)
def test_bad_requests(change: dict[str, Any], message: str) -> None:
    fields = {"task": "digits", "learning_rates": [1e-3], "selection_seeds": [0], **change}
    with pytest.raises(SpecError, match=message):
        resolve(fields, "a study")


@pytest.mark.parametrize(
    "trainable", ["fpt-feed-forward-last-attention", ["output", "last_attention"], ["input"], ["output"]]
)
def test_a_notebook_can_say_every_choice_of_groups(trainable: Any) -> None:
    fields = {"task": "digits", "learning_rates": [1e-3], "selection_seeds": [0]}
    spec = resolve({**fields, "init": "random", "trainable": trainable})
    assert resolve(spec.parameters()).hash == spec.hash


def test_two_sweeps_of_one_name(study: Path) -> None:
    (study / "study.yaml").write_text(STUDY.replace("arm: unfrozen-random", "arm: [unfrozen-random, frozen-random]"))
    with pytest.raises(SpecError, match="more than one sweep has this name"):
        load_study(study)


def test_a_name_that_nobody_keeps(study: Path) -> None:
    (study / "study.yaml").write_text(STUDY.replace("pretrained_by: bits", "pretrained_by: bit"))
    with pytest.raises(SpecError, match=r"Did you mean 'bits'"):
        load_study(study)


def test_attention_needs_a_task_that_knows_what_matters() -> None:
    fields = {"task": "digits", "arm": "frozen-random", "learning_rates": [1e-3], "selection_seeds": [0]}
    with pytest.raises(SpecError, match="says which tokens matter"):
        fpt.sweeps.prepare(resolve({**fields, "measures": ["attention"]}))
