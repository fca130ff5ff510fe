"""Sweeps that keep their weights, sweeps that start from them, and what else a sweep can be asked to measure."""

import math
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import synthetic
import torch
from safetensors.torch import load_file

import fpt.models
import fpt.tasks
from fpt.errors import SpecError, WeightsError
from fpt.files import sha256
from fpt.sweeps import engines, ledger, run_sweep
from fpt.sweeps import run as execute
from fpt.sweeps.checks import check_all
from fpt.sweeps.record import RESULT
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.sweeps.study import load_study
from fpt.training.fleet import Fleet

STUDY = """
defaults: {backbone: small-gpt2, steps: 4, batch_size: 4, evaluations: 2, evaluation_examples: 20,
           learning_rates: [1e-3, 1e-2], extend: 1, seeds: [10, 11], budget_examples: 20, test_examples: 20,
           compute_type: float32}
tasks: {bit-memory: {task_options: {strings: 2, length: 16, patch: 8}}}
sweeps:
  - {task: bit-memory, arm: unfrozen-random, keep_as: bits, measures: [attention]}
  - {task: bit-xor, arm: frozen-pretrained, pretrained_by: bits, measures: [attention]}
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


def test_names_become_folders_and_enter_the_hash(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fpt.tasks.TASKS, "my_task", fpt.tasks.TASKS["bit-memory"])  # with an underscore
    text = STUDY.replace("bit-memory", "my_task")
    (study / "study.yaml").write_text(text)
    keeper, user = sweeps(study)
    assert (keeper.task, keeper.measures) == ("my_task", ("attention", "weights"))
    assert user.pretrained_by == keeper.folder_name
    before = user.hash
    (study / "study.yaml").write_text(text.replace("steps: 4", "steps: 6"))
    assert sweeps(study)[1].pretrained_by != user.pretrained_by
    assert sweeps(study)[1].hash != before


def test_the_backbone_starts_from_what_was_kept(study: Path) -> None:
    keeper, user = sweeps(study)
    with pytest.raises(WeightsError, match=r"run that sweep of the study first"):
        run_sweep(user, study / user.folder_name)
    first = run_sweep(keeper, study / keeper.folder_name)
    kept = load_file(first.folder / ledger.KEPT_WEIGHTS)
    task = fpt.tasks.load("bit-xor")
    template = fpt.models.build(task, "small-gpt2", weights=str(first.folder / ledger.KEPT_WEIGHTS))
    assert template.weights == first.folder / ledger.KEPT_WEIGHTS
    values = template.initialise(5)
    for name, value in values.items():
        if name.startswith("backbone.") and "wpe" not in name:
            assert torch.equal(value, kept[name]), name
    # bit-memory has 6 tokens, bit-xor 10: the other rows are new
    assert torch.equal(values["backbone.wpe.weight"][:6], kept["backbone.wpe.weight"])
    second = run_sweep(user, study / user.folder_name)
    assert second.info["weights_checksum"] == sha256(first.folder / ledger.KEPT_WEIGHTS)


def test_weights_that_a_killed_process_had_moved_are_found(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, _ = sweeps(study)
    whole = run_sweep(keeper, study / "whole").folder
    write = execute.write_json

    def killed(path: Path, content: dict[str, Any]) -> None:
        if path.name == RESULT:
            raise KeyboardInterrupt
        write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(execute, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(keeper, study / keeper.folder_name)
    monkeypatch.setattr(Fleet, "step", lambda *_: pytest.fail("trained again"))
    again = run_sweep(keeper, study / keeper.folder_name).folder
    for name in (ledger.KEPT_WEIGHTS, "runs.parquet", "curves.parquet", "attention.parquet"):
        assert (again / name).read_bytes() == (whole / name).read_bytes(), name


def test_weights_are_kept_whole_where_only_the_output_layer_trains_on_features(study: Path) -> None:
    text = STUDY.replace("arm: unfrozen-random", "arm: output-random")
    (study / "study.yaml").write_text(text.replace("defaults: {", "defaults: {dropout: 0.0, "))
    keeper, user = sweeps(study)
    run_sweep(keeper, study / keeper.folder_name)
    assert len(run_sweep(user, study / user.folder_name).runs) >= 4


def test_attention_adds_up_and_tells_what_matters(study: Path) -> None:
    keeper, _ = sweeps(study)
    folder = run_sweep(keeper, study / keeper.folder_name).folder
    table = pd.read_parquet(folder / "attention.parquet")
    runs = pd.read_parquet(folder / "runs.parquet")
    runs_of_both = [set(each[["learning_rate", "seed"]].itertuples(index=False, name=None)) for each in (table, runs)]
    assert runs_of_both[0] == runs_of_both[1]  # an extension of the grid too
    assert len(runs_of_both[1]) > 4
    assert set(table["trained"]) == {True, False}
    keys = ["learning_rate", "seed", "trained", "query"]
    sums = table.groupby(keys)[["weight", "relevant", "chance"]].sum()
    assert sums["weight"].sub(1).abs().max() < 1e-5
    assert (sums["relevant"] < sums["weight"]).all()
    # Two strings of two tokens, hardly ever alike: at place 4 a causal query sees 5 keys, and needs 2 of them
    times = 2 * len(runs)  # before and after training
    assert sums["chance"].xs(4, level="query").to_list() == pytest.approx([2 / 5] * times, abs=1e-6)
    assert sums["chance"].xs(5, level="query").to_list() == pytest.approx([2 / 6] * times, abs=1e-6)


def test_who_needs_weights_comes_after_who_keeps_them(study: Path) -> None:
    order: list[str] = []

    def engine(specs: Any, folder: Path) -> list[engines.Failure]:
        for spec in specs:
            order.append(spec.task)
            (folder / spec.folder_name).mkdir()
            (folder / spec.folder_name / ledger.KEPT_WEIGHTS).touch()
        return []

    keeper, user = sweeps(study)
    (failure,) = engines.in_order(lambda *_: [], [keeper, user], study)  # which trains nothing
    assert failure.spec == user
    assert keeper.folder_name in failure.reason
    assert engines.in_order(engine, [user, keeper], study) == []
    assert order == ["bit-memory", "bit-xor"]


PROBE = """
defaults: {backbone: small-gpt2, steps: 4, batch_size: 4, learning_rates: [1e-3], seeds: [0, 1], compute_type: float32}
sweeps:
  - {task: bit-xor, arm: FIRST, keep_as: probe}
  - {task: bit-xor, arm: SECOND, pretrained_by: probe}
"""


@pytest.mark.parametrize(
    ("first", "second", "allowed"),
    [
        ("output-pretrained", "unfrozen-pretrained", False),
        ("frozen-pretrained", "unfrozen-pretrained", False),
        ("lora-pretrained", "unfrozen-pretrained", False),
        ("unfrozen-random", "unfrozen-pretrained", False),
        ("frozen-pretrained", "frozen-pretrained", False),
        ("unfrozen-random", "frozen-pretrained", True),  # a paper's own row: other layers on a backbone trained in full
    ],
)
def test_what_would_go_on_with_training_without_the_trained_head_is_refused(
    study: Path, first: str, second: str, allowed: bool
) -> None:
    text = PROBE.replace("FIRST", first).replace("SECOND", second)
    said_twice = text.replace("arm: " + second, f"arm: {second}, task_options: {{length: 5}}")  # which is the default
    for written in (text, said_twice):
        (study / "study.yaml").write_text(written)
        if allowed:
            load_study(study)
            continue
        with pytest.raises(SpecError, match=rf"pretrained_by: bit-xor.*{first}-.*new input and output layers"):
            load_study(study)
    for other in ("task: bit-memory", "task: bit-xor, task_options: {length: 6}"):
        (study / "study.yaml").write_text(text.replace("task: bit-xor, arm: " + first, f"{other}, arm: {first}", 1))
        load_study(study)


@pytest.mark.parametrize("other", ["backbone: small-bert", "backbone_options: {layers: 1}"])
def test_a_keeper_of_another_backbone_is_refused_before_it_is_trained(study: Path, other: str) -> None:
    (study / "study.yaml").write_text(STUDY.replace("keep_as: bits, measures: [attention]", f"keep_as: bits, {other}"))
    keeper, user = sweeps(study)
    with pytest.raises(SpecError, match=rf"{keeper.folder_name} keeps.*must be the same .*{user.folder_name}"):
        check_all([keeper, user], study)
    assert not (study / keeper.folder_name).exists()


def test_a_folder_name_under_which_no_weights_will_be_kept_is_refused_before_training(study: Path) -> None:
    keeper, user = sweeps(study)
    keeps_none = keeper.changed(measures=[])
    later = user.changed(measures=["weights"])  # pretrained itself: sweeps of that kind run together
    for specs in ([user], [keeps_none, user.changed(pretrained_by=keeps_none.folder_name)],
                  [keeper, later, user.changed(pretrained_by=later.folder_name)]):  # fmt: skip
        refused = specs[-1]
        with pytest.raises(SpecError, match=rf"'{refused.pretrained_by}': .*keep_as.*sweep {refused.folder_name}"):
            check_all(specs, study)
    (study / "study.yaml").write_text(STUDY.replace("pretrained_by: bits", f"pretrained_by: {keeper.folder_name}"))
    assert sweeps(study)[1].pretrained_by == keeper.folder_name  # it is one of the study's
    check_all([keeper, user], study)


def test_the_weights_that_are_there_are_checked(study: Path) -> None:
    keeper, user = sweeps(study)
    check_all([keeper, user], study)  # still to be trained
    (study / keeper.folder_name).mkdir()
    (study / keeper.folder_name / ledger.KEPT_WEIGHTS).write_bytes(b"half of it")
    with pytest.raises(WeightsError, match=keeper.folder_name):
        check_all([user], study)


def test_weights_that_are_missing_though_their_sweep_is_done_are_named_with_what_to_remove(study: Path) -> None:
    keeper, user = sweeps(study)
    folder = study / keeper.folder_name
    synthetic.write(keeper, folder)
    for specs in ([keeper, user], [user]):
        with pytest.raises(WeightsError, match=rf"{folder / ledger.KEPT_WEIGHTS} is missing.*remove {folder}"):
            check_all(specs, study)
    check_all([keeper], study)  # nobody else needs them
    shutil.rmtree(folder)
    check_all([keeper, user], study)


def test_a_sweep_that_diverged_and_kept_none_stops_no_other(study: Path) -> None:
    keeper, user = sweeps(study)
    synthetic.write(keeper, study / keeper.folder_name, lambda *_: math.nan)
    assert ledger.read_result(study / keeper.folder_name, keeper)["selected_rate"] is None  # type: ignore[index]
    check_all([keeper, user], study)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measures": ["atention"]}, "Did you mean 'attention'"),
        ({"pretrained_by": "../other"}, "folder name of a sweep"),
        ({"pretrained_by": "digits.output-random-12345678", "arm": "frozen-random"}, "needs init pretrained"),
    ],
)
def test_bad_requests(change: dict[str, Any], message: str) -> None:
    fields = {"task": "digits", "learning_rates": [1e-3], "seeds": [0], **change}
    with pytest.raises(SpecError, match=message):
        resolve(fields, "a study")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("arm: unfrozen-random", "arm: [unfrozen-random, frozen-random]", "more than one sweep has this name"),
        ("pretrained_by: bits", "pretrained_by: bit", "Did you mean 'bits'"),
    ],
)
def test_a_name_that_is_nobodys_or_of_two(study: Path, old: str, new: str, message: str) -> None:
    (study / "study.yaml").write_text(STUDY.replace(old, new))
    with pytest.raises(SpecError, match=message):
        load_study(study)
