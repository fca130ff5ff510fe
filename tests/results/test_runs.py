"""Tidy tables: which folders are read, and what a row says."""

import math
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import synthetic

from fpt.errors import SpecError
from fpt.papers import table
from fpt.results import find_study, load_runs, studies, sweeps_table
from fpt.results.arm import at_own, picked
from fpt.results.cells import StudyCells, every_study
from fpt.results.runs import arm_alone, arms_in, rate_text
from fpt.sweeps import load_study, run_sweep
from fpt.sweeps.selection import macro_by_seed
from fpt.sweeps.spec import resolve
from fpt.training.recipe import Recipe

ON_FILES = """
defaults: {steps: 400, learning_rates: [1e-3], seeds: [0], compute_type: float32, arm: frozen-random}
sweeps:
  - {task: "npz:mine.npz"}
  - {task: digits, backbone: "hub:model"}
"""
KEYS = ("seed", "learning_rate")


def test_one_row_per_run_with_its_spec(study: Path, runs: pd.DataFrame) -> None:
    grid, seeds = 4, 8
    assert len(runs) == 6 * grid * seeds
    assert set(runs["label"]) == {"FP", "FR", "UP", "UR", "FR fixed", "UR fixed"}
    assert set(runs["study"]) == {"laptop"}
    assert set(runs["origin"]) == {"own"}
    assert runs["setup"].nunique() == 1
    assert runs[runs["selected"]].groupby(["label", "seed"]).size().eq(1).all()
    assert runs["selected"].sum() == 6 * seeds
    assert set(runs.loc[runs["selected"] & (runs["label"] == "FP"), "learning_rate"]) == {1e-2}
    assert not {"stage", "reference"} & {*runs}
    assert set(runs["sampled_from"]) == {10**9}
    assert not runs.duplicated(["sweep", "learning_rate", "seed"]).any()


def test_curves_carry_the_same_columns(study: Path, runs: pd.DataFrame) -> None:
    curves = load_runs(study, table="curves")
    steps = Recipe(steps=400).evaluation_steps()
    assert len(curves) == len(steps) * len(runs)
    only_runs = {"best_step", "diverged_at", "train_accuracy_last", "test_accuracy_last"}
    assert {*runs} - {*curves} == only_runs
    assert set(curves.loc[curves["test_accuracy"].notna(), "step"]) == set(Recipe(steps=400).budgets())


def test_answers_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Of every run of a sweep whose last fleet extended the grid; and none where they were not asked for."""
    small = {"arm": "frozen-random", "steps": 3, "evaluations": 1, "learning_rates": [1e-3, 1e-2], "seeds": [0, 1]}
    spec = resolve({"task": "digits", "backbone_options": {"layers": 1}, "measures": ["answers"], "extend": 1, **small})
    result = run_sweep(spec, tmp_path / spec.folder_name)
    found = arm_alone(spec, result.folder, result.info)
    test = found.answers.query("part == 'test'")
    right = test["predicted"].eq(test["target"]).groupby([test["seed"], test["learning_rate"]]).mean().unstack()
    pd.testing.assert_frame_equal(right, found.plane(), check_exact=False)
    assert len(right.columns) > 2, "the grid was extended"
    assert macro_by_seed(found.runs, found.answers).columns.equals(right.columns)
    assert (found.answers["predicted"].dtype, found.answers["example"].dtype) == ("int8", "int32")
    without = spec.changed(measures=[])
    info = result.info | {"spec": result.info["spec"] | {"measures": []}}
    assert arm_alone(without, result.folder, info).answers.empty
    assert without.hash != spec.hash
    assert without.identity == spec.identity


def test_no_results_give_the_columns_and_no_rows(tmp_path: Path) -> None:
    study = synthetic.workspace(tmp_path)
    empty = load_runs(study)
    assert empty.empty
    assert {"label", "selected", "learning_rate", "origin"} <= set(empty.columns)
    assert list(sweeps_table(study)["status"]) == ["waiting"] * 6
    assert load_runs(study, table="curves").empty


def test_published_results_are_read_where_there_are_some(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path), skip=("unfrozen-random",))
    assert set(load_runs(study)["origin"]) == {"own"}
    assert set(sweeps_table(study, "published")["status"]) == {"not published", "waiting"}
    assert set(sweeps_table(study, "own")["status"]) == {"done", "waiting"}
    synthetic.finish(study, inside="published")
    assert set(load_runs(study)["origin"]) == {"published"}
    assert load_runs(study)["label"].nunique() == 6
    assert load_runs(study, "own")["label"].nunique() == 4
    assert set(load_runs(study, "own")["origin"]) == {"own"}


def test_only_what_the_present_study_resolves_to(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path))
    text = (study / "study.yaml").read_text()
    (study / "study.yaml").write_text(text.replace("steps: 400", "steps: 500"))
    assert load_runs(study).empty
    (study / "study.yaml").write_text(text)
    (first,) = [spec for spec in load_study(study).sweeps if spec.arm == "frozen-pretrained"]
    (study / first.folder_name / "result.json").unlink()  # parquet files alone are no result
    assert first.folder_name not in set(load_runs(study)["sweep"])


def test_a_sweep_is_cut_once_by_the_rates_of_its_seeds(study: Path) -> None:
    arm = next(iter(arms_in(study).values()))
    rates = pd.Series({0: 1e-3 * (1 + 1e-9), 1: 1e-2})  # rates went through text
    cut = arm.runs[at_own(arm.runs, rates)].set_index("seed")["test_accuracy"]
    rows = arm.runs[[pair in [(0, 1e-3), (1, 1e-2)] for pair in zip(*map(arm.runs.get, KEYS), strict=True)]]
    pd.testing.assert_series_equal(cut.sort_index(), rows.set_index("seed")["test_accuracy"].sort_index())
    assert picked(arm.plane(), rates).to_dict() == cut.to_dict()
    assert not at_own(arm.runs, pd.Series({0: math.nan})).any()
    own = arm.at()
    assert picked(arm.plane(column="train_accuracy"), arm.choices()).to_dict() == own["train_accuracy"].to_dict()
    own["test_accuracy"] = 0.0  # somebody's own
    assert (arm.at()["test_accuracy"] > 0).all()


def test_a_table_is_read_once_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, read = synthetic.finish(synthetic.workspace(tmp_path)), []
    parquet = pd.read_parquet
    monkeypatch.setattr(pd, "read_parquet", lambda path: (read.append(path), parquet(path))[1])
    first = load_runs(study)
    for _ in range(3):
        load_runs(study)
        StudyCells(study).cells(table("rothermel-table-1"))[0].arm.values()
    assert len(read) == len(set(read)) == 6
    first["seed"] = 0  # a user's frame is a copy
    assert set(load_runs(study)["seed"]) == set(range(8))
    changed = next(path for path in read if "frozen-pretrained" in str(path))
    os.utime(changed, ns=(0, 0))  # as another one, of the same content
    assert len(load_runs(study)) == len(first)
    assert len(read) == 7


def test_status_and_provenance_of_every_sweep(study: Path) -> None:
    table = sweeps_table(study)
    assert list(table["status"]) == ["done"] * 6
    assert {"device", "data_checksum", "threads", "compute_type", "wall_seconds", "git"} <= set(table.columns)
    assert table["runs"].eq(32).all()
    assert table["hash"].is_unique


def test_studies_are_found_from_inside_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = synthetic.workspace(tmp_path)
    monkeypatch.chdir(study)
    assert studies() == ["laptop"]
    assert find_study("laptop") == study
    with pytest.raises(SpecError, match=r"laptpo.*laptop"):
        find_study("laptpo")


def test_rates_are_written_as_in_the_papers() -> None:
    found = [rate_text(rate) for rate in (1e-3, 3e-5, 0.03, 1.0, 2.5e-4)]
    assert found == ["1e-3", "3e-5", "3e-2", "1e0", "2.5e-4"]


def test_every_study_is_those_with_results_and_those_that_are_planned(tmp_path: Path) -> None:
    synthetic.finish(synthetic.workspace(tmp_path, "done"))
    synthetic.workspace(tmp_path, "waiting")
    assert [each.name for each in every_study(tmp_path)] == ["done"]
    assert [each.name for each in every_study(tmp_path, planned=True)] == ["done", "waiting"]
    assert every_study(tmp_path, origin="published") == []
    synthetic.finish(tmp_path / "runs/done", inside="published")
    (found,) = every_study(tmp_path, origin="published")
    assert {sweep.origin for sweep in found.results.values()} == {"published"}


def test_what_is_planned_in_a_file_that_cannot_be_read_costs_the_others_nothing(tmp_path: Path) -> None:
    """Published results need no study file, but what is planned beside them does."""
    for name in ("good", "bad"):
        synthetic.finish(synthetic.workspace(tmp_path, name), inside="published")
    (tmp_path / "runs/bad/study.yaml").write_text("sweeps: [")
    with pytest.warns(UserWarning, match="bad is left out"):
        assert [each.name for each in every_study(tmp_path, "published", planned=True)] == ["good"]
    assert [each.name for each in every_study(tmp_path, "published")] == ["bad", "good"]


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda: Path("mine.npz").unlink(), "mine.npz"),
        (lambda: Path("runs/mine/study.yaml").write_text("sweeps: ["), "not YAML"),
        (lambda: Path("runs/mine").rename("runs/my own study"), "my own study"),
    ],
)
def test_a_study_that_cannot_be_read_is_named_and_costs_the_others_nothing(
    spoil: Callable[[], object], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    synthetic.finish(synthetic.workspace(tmp_path, "good"))
    Path("mine.npz").write_bytes(b"data")
    Path("model").mkdir()
    Path("model/config.json").write_text('{"model_type": "gpt2", "n_layer": 1, "n_embd": 8}')
    Path("model/model.safetensors").write_bytes(b"weights")
    synthetic.finish(synthetic.workspace(tmp_path, "mine", ON_FILES))
    assert studies() == [each.name for each in every_study()] == ["good", "mine"]
    spoil()
    for read in (studies, lambda: [each.name for each in every_study()]):
        with pytest.warns(UserWarning, match=named) as warned:
            assert read() == ["good"]
        assert len(warned) == 1
