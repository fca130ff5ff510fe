"""Tidy tables: which folders are read, and what a row says."""

import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import synthetic

from fpt.errors import DataError, SpecError
from fpt.evidence import find_study, load_curves, load_runs, studies, sweeps_table
from fpt.evidence.runs import label, load_sweeps, rate_text
from fpt.sweeps import SweepSpec, load_study


def test_one_row_per_run_with_its_spec(study: Path, runs: pd.DataFrame) -> None:
    grid, references, selection, confirmation = 4, 2, 3, 8
    assert len(runs) == 6 * (grid * selection + references * confirmation)
    assert set(runs["label"]) == {"FP", "FR", "UP", "UR", "FR fixed", "UR fixed"}
    assert set(runs["study"]) == {"laptop"}
    assert set(runs["origin"]) == {"own"}
    assert runs["setup"].nunique() == 1
    confirmed = runs[(runs["stage"] == "confirmation") & runs["selected"]]
    assert confirmed.groupby("label").size().eq(confirmation).all()
    assert set(runs.loc[runs["reference"], "learning_rate"]) == {1e-3, 1e-2}
    assert not runs.loc[runs["learning_rate"] == 1e-4, "reference"].any()
    assert not runs.duplicated(["sweep", "stage", "learning_rate", "seed"]).any()


def test_curves_carry_the_same_columns(study: Path, runs: pd.DataFrame) -> None:
    curves = load_curves(study)
    assert len(curves) == 20 * len(runs)
    only_runs = {"best_step", "diverged_at", "train_accuracy_last"}
    assert {name for name in {*runs} - {*curves} if not name.startswith("test_accuracy")} == only_runs


def test_no_results_give_the_columns_and_no_rows(tmp_path: Path) -> None:
    study = synthetic.workspace(tmp_path)
    empty = load_runs(study)
    assert empty.empty
    assert {"label", "selected", "learning_rate", "origin"} <= set(empty.columns)
    assert list(sweeps_table(study)["status"]) == ["waiting"] * 6
    assert load_curves(study).empty


def test_own_results_only_when_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path), skip=("unfrozen-random",))
    assert set(load_runs(study)["origin"]) == {"own"}  # nothing published: better than nothing
    synthetic.finish(study, inside="published")
    assert set(load_runs(study)["origin"]) == {"published"}
    assert load_runs(study)["label"].nunique() == 6
    assert load_runs(study, "own")["label"].nunique() == 4
    for spec in load_study(study).sweeps:
        if spec.arm == "unfrozen-random":
            synthetic.write(spec, study / spec.folder_name)
    assert set(load_runs(study)["origin"]) == {"own"}
    monkeypatch.setenv("FPT_ORIGIN", "published")
    assert set(load_runs(study)["origin"]) == {"published"}
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


def test_a_sweep_is_cut_once_by_stage_and_rate(study: Path) -> None:
    sweep = next(iter(load_sweeps(load_study(study)).values()))
    cut = sweep.at("runs", "confirmation", 1e-3 * (1 + 1e-9))  # rates went through text
    rows = sweep.runs[(sweep.runs["stage"] == "confirmation") & (sweep.runs["learning_rate"] == 1e-3)]
    pd.testing.assert_series_equal(cut["test_accuracy"], rows.set_index("seed")["test_accuracy"])
    assert sweep.at("runs", "confirmation", 1e-3 * (1 + 1e-9)) is cut
    assert list(sweep.at("curves", "confirmation", 1e-3)) == list(cut.index)
    assert sweep.at("runs", "confirmation", math.nan).empty


def test_status_and_provenance_of_every_sweep(study: Path) -> None:
    table = sweeps_table(study)
    assert list(table["status"]) == ["done"] * 6
    assert {"device", "data_checksum", "threads", "compute_type", "wall_seconds", "git"} <= set(table.columns)
    assert table["runs"].eq(28).all()
    assert table["hash"].is_unique


def test_studies_are_found_from_inside_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = synthetic.workspace(tmp_path)
    monkeypatch.chdir(study)
    assert studies() == ["laptop"]
    assert find_study("laptop") == study
    with pytest.raises(SpecError, match=r"laptpo.*laptop"):
        find_study("laptpo")


def test_bad_arguments_are_named(study: Path) -> None:
    with pytest.raises(SpecError, match=r"origin 'mine'.*auto, own, published"):
        load_runs(study, "mine")
    with pytest.raises(SpecError, match=r"nowhere/study\.yaml"):
        load_runs(study.parent / "nowhere")


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"arm": "frozen-pretrained"}, "FP"),
        ({"arm": "unfrozen-random", "random_init": "fixed"}, "UR fixed"),
        ({"arm": "frozen-random", "random_gain": 2.0}, "FR x2"),
        ({"arm": "output-pretrained"}, "output-pretrained"),
    ],
)
def test_labels(fields: dict[str, Any], name: str) -> None:
    plain = {"task": "digits", "random_init": "matched", "learning_rates": [1e-3], "selection_seeds": [0]}
    assert label(SweepSpec(**plain | fields)) == name


def test_rates_are_written_as_in_the_papers() -> None:
    assert [rate_text(rate) for rate in (1e-3, 3e-5, 0.03, 1.0, 2.5e-4)] == [
        "1e-3",
        "3e-5",
        "3e-2",
        "1e0",
        "2.5e-4",
    ]


def test_importing_it_does_not_import_torch() -> None:
    code = "import sys, fpt.evidence; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_own_results_that_are_not_published_are_not_done_where_published_ones_are_wanted(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path))
    assert set(sweeps_table(study, "published")["status"]) == {"not published"}
    assert set(sweeps_table(study, "own")["status"]) == {"done"}


@pytest.mark.parametrize("damage", ["another", "cut"])
def test_tables_that_are_not_the_sweeps_own_are_refused(tmp_path: Path, damage: str) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path))
    first, second = sorted(path for path in study.iterdir() if path.is_dir())[:2]
    if damage == "another":
        shutil.copyfile(first / "runs.parquet", second / "runs.parquet")
    else:
        (second / "runs.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=f"{second.name}.*remove .* and run the study"):
        load_runs(study)
