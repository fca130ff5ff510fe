"""Tables: what they say agrees with the runs; studies and setups stay apart; nothing is left out of the reference."""

import json
import math
from pathlib import Path
from typing import Any

import committed
import pandas as pd
import pytest
import synthetic
from small_studies import workspace

from fpt.papers import claims
from fpt.results import every_study, level, load_runs
from fpt.results.stats import mean_of
from fpt.show import learning_rate_figure, summary
from fpt.show.html import Searchable
from fpt.show.pages.advise import from_notebook
from fpt.show.reference import slips_table, task_card
from fpt.show.tables import recipe_table, record_table
from fpt.sweeps import SweepSpec, load_study
from fpt.sweeps.record import sealed
from fpt.sweeps.study_file import read_study


def test_summary_and_divergence(tmp_path: Path) -> None:
    def never(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if spec.trainable == "all" else synthetic.accuracy(spec, rate, seed)

    rows = summary(load_runs(synthetic.finish(synthetic.workspace(tmp_path), accuracy=never))).set_index("arm")
    assert rows.loc["UP", "learning rate"] == "none eligible"
    assert rows.loc["UP", "test accuracy (95% interval)"] == "-"
    assert rows.loc["FP", "diverged runs"] == 0
    assert rows.loc["FP", "learning rate"] == "1e-2"


def test_the_rates_that_seeds_choose_for_each_other(study: Path) -> None:
    runs = load_runs(study)
    arm = runs[runs["label"] == "FP"]
    other = arm["seed"].isin([0, 1]) & (arm["learning_rate"] == 1e-3)
    kept = ~arm["seed"].isin([0, 1]) & (arm["learning_rate"] == 1e-2)
    (row,) = summary(arm.assign(selected=other | kept)).to_dict("records")
    assert row["learning rate"] == "1e-3 (2 seeds), 1e-2 (6 seeds)"


def test_a_fixed_test_set_widens_the_interval(study: Path) -> None:
    arm = load_runs(study).query("label == 'FP'")
    (own,), (wider,) = (summary(arm.assign(sampled_from=images)).to_dict("records") for images in (math.nan, 1000))
    spread = "test accuracy (95% interval)"
    values = arm.loc[arm["selected"], "test_accuracy"]
    found = mean_of(values, values.mean() * (1 - values.mean()) / 1000)
    assert wider[spread] == f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})" != own[spread]
    (widest,) = summary(arm.assign(sampled_from=1)).to_dict("records")
    assert widest[spread].endswith(" to 100.0)")  # an accuracy goes no further


def test_one_seed_has_no_interval(study: Path) -> None:
    arm = load_runs(study).query("label == 'FP' and seed == 0")
    (row,) = summary(arm).to_dict("records")
    assert row["test accuracy (95% interval)"] == f"{100 * arm.loc[arm['selected'], 'test_accuracy'].iloc[0]:.1f}"


# --- how results came about: recipes and records, a row each


def test_a_row_for_every_recipe_that_has_results(tmp_path: Path) -> None:
    study = synthetic.workspace(tmp_path)
    assert recipe_table(every_study(tmp_path)).empty
    synthetic.finish(study)
    (row,) = recipe_table(every_study(tmp_path)).to_dict("records")
    assert (row["study"], row["model"], row["task"], row["steps"]) == ("laptop", "tiny-lm", "digits", "400")
    assert (row["seeds"], row["tests"]) == ("8", "all at a budget, all at last")
    assert row["arms"].split(", ")[:4] == ["FR", "FP", "UR", "UP"]
    assert "extended to" in row


def test_a_recipe_names_the_rates_by_which_a_grid_was_extended(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path))
    for spec in load_study(study).sweeps:
        if spec.arm == "frozen-random":
            synthetic.write(spec, study / spec.folder_name, added=(0.3,))
    rows = recipe_table(every_study(tmp_path))
    assert dict(zip(rows["extended to"], rows["rates"], strict=True)) == {
        "3e-1": "1e-4, 1e-3, 1e-2, 1e-1", "": "1e-4, 1e-3, 1e-2, 1e-1",
    }  # fmt: skip


def test_a_commit_says_whether_the_code_had_changes(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path))
    for number, path in enumerate(sorted(study.glob("*/result.json"))):
        git = [None, {"commit": "1234567890", "dirty": True}, {"commit": "0" * 40, "dirty": False}][number % 3]
        path.write_text(json.dumps(sealed(json.loads(path.read_text()) | {"git": git})))
    assert set(record_table(study).frame["commit"]) == {"", "12345678 + changes", "00000000"}


def test_the_record_of_every_sweep_says_of_which_it_speaks(tmp_path: Path) -> None:
    study = synthetic.workspace(tmp_path)
    nothing = record_table(study)
    assert len(nothing.frame) == 6
    assert nothing.caption.endswith("For every sweep: steps 400; status waiting.")
    part = record_table(synthetic.finish(study, skip=("unfrozen-random",)))
    assert part.frame["status"].value_counts().to_dict() == {"done": 4, "waiting": 2}
    assert "For every finished sweep: steps 400; runs 32; diverged 0; " in part.caption
    whole = record_table(synthetic.finish(study))
    assert "For every sweep: steps 400; status done; runs 32; diverged 0; " in whole.caption
    assert "commit 00000000" in whole.caption
    assert whole.frame["hash"].is_unique


# --- the reference pages


def test_every_study_says_what_it_is() -> None:
    for name, folder in committed.studies().items():
        assert read_study(folder, name).about, name


def test_a_card_has_the_baselines_of_its_task() -> None:
    card = task_card("digits").frame
    properties = dict(zip(card.iloc[:, 0], card.iloc[:, 1], strict=True))
    assert "linear classifier" in properties["baselines"]


def test_every_claim_without_a_rule_is_in_the_table_of_slips() -> None:
    assert set(slips_table().frame["id"]) == {name for name, claim in claims().items() if not claim.rule}


def test_a_searchable_table_has_all_rows_and_their_links_and_fetches_nothing() -> None:
    table = Searchable(pd.DataFrame({"id": ["L-01", "L-02"], "says": ["a < b", "FP"]}), ["x.html#l-01", "x.html#l-02"])
    shown = table._repr_html_()
    for words in ("L-01", "L-02", "x.html#l-02", "a &lt; b"):
        assert words in shown
    assert "https://" not in shown.partition("<script")[2]


# --- what a page takes from a notebook that was run


def test_it_is_the_html_of_the_cell_with_the_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cell(tag: str, *outputs: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"tags": [tag]}, "outputs": list(outputs)}

    html = {"data": {"text/html": ["<table>", "</table>"]}}
    cells = [cell("words", {"text": "hello"}), cell("table", {"text": "before"}, html), {"metadata": {}}]
    workspace(tmp_path, notebooks=False)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/advise.ipynb").write_text(json.dumps({"cells": cells}))
    monkeypatch.chdir(tmp_path)
    assert from_notebook("table")._repr_html_() == "<table></table>"


def test_a_run_that_was_never_finite_counts_as_chance_in_every_table(tmp_path: Path) -> None:
    def lost(spec: SweepSpec, rate: float, seed: int) -> float:
        return float("nan") if seed == 3 and rate == 1e-3 else synthetic.accuracy(spec, rate, seed)

    study = synthetic.finish(synthetic.workspace(tmp_path), "published", accuracy=lost)
    runs = load_runs(study, "published")
    assert runs.loc[runs["selected"], "test_accuracy"].isna().any()
    shown = summary(runs).set_index("arm")["test accuracy (95% interval)"]
    for arm in ("UP", "UR"):
        tuned = level("laptop", arm, task="digits", root=tmp_path)
        assert float(shown[arm].split(" ")[0]) == pytest.approx(tuned.mean, abs=0.051)  # rounded to tenths


def test_what_a_probe_is_tuned_by_is_a_strength(study: Path) -> None:
    runs = load_runs(study)
    for solver, shown in (("adamw", False), ("logistic", True)):
        assert summary(runs.assign(solver=solver))["learning rate"].str.startswith("strength").all() == shown
        assert (learning_rate_figure(runs.assign(solver=solver)).axes[0].get_xlabel() == "strength") == shown
