"""Tables: what they say agrees with the runs; studies and setups stay apart; nothing is left out of the reference."""

import json
import math
from pathlib import Path
from typing import Any

import committed
import pytest
import synthetic
from made_cells import Made, paper
from made_cells import study as study_of

from fpt.errors import SpecError
from fpt.papers import claims, table
from fpt.papers.schema import Printed
from fpt.results import StudyCells, every_study, load_runs
from fpt.results.stats import mean_interval
from fpt.show import from_notebook, recipe_table, record_table, slips_table, summary, task_card
from fpt.show.numbers import row_label
from fpt.show.printed import _ours, printed_text
from fpt.sweeps import SweepSpec, load_study
from fpt.sweeps.study_file import read_study


def test_printed_numbers_with_their_marks() -> None:
    assert printed_text(Printed.model_validate({"is": 98.0, "sem": 0.0})) == "98.0 ± 0.0"
    assert printed_text(Printed.model_validate({"is": 72.1, "mark": "†"})) == "72.1†"
    assert printed_text(Printed.model_validate({"is": [58.1, 57.5]})) == "58.1 / 57.5"
    assert printed_text(Printed.model_validate({"is": 110000})) == "110,000"
    assert printed_text(Printed.model_validate({"is": "never"})) == "never"
    assert printed_text(None) == ""


SHALLOWER = """
paper: lu2021
tables: [lu-section-3-1, lu-table-12]
replace:
  - {where: {backbone: gpt2}, with: {backbone: tiny-lm}}
  - {where: {task: listops}, with: {task: digits}}
  - {where: {task: [mnist, cifar10, cifar10-lra, homology]}, with: null}
  - {where: {layers: 6}, with: null}
  - {where: {layers: 24}, with: {layers: 8}}
defaults: {random_init: matched, compute_type: float32, steps: 400, learning_rates: [1e-3, 1e-2],
           seeds: [0, 1, 2, 3, 4, 5, 6, 7]}
"""


def test_rows_say_the_layers_that_were_trained(tmp_path: Path) -> None:
    folder = synthetic.workspace(tmp_path, "shallower", SHALLOWER)
    found = StudyCells(synthetic.finish(folder, accuracy=lambda *_: 0.5))
    of_lu = [row_label([cell]) for cell in found.cells(table("lu-section-3-1")) if cell.spec]
    assert of_lu[:2] == ["full (here 4 layers)", "full, 3 layers"]
    assert [row_label([cell]) for cell in found.cells(table("lu-table-12")) if cell.spec] == [
        "1 layer",
        "3 layers",
        "output only, no dropout (here 4 layers)",
        "output only, no dropout, random (here 4 layers)",
        "24 layers, random (here 8 layers)",
    ]
    arms = found.by_task(table("ours-arms"))["digits"]  # of this study's own tables, where no row names layers
    assert [row_label([cell]) for cell in arms.values()] == [cell.label for cell in arms.values()]


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
    mean, low, high = mean_interval(values, values.mean() * (1 - values.mean()) / 1000)
    assert wider[spread] == f"{100 * mean:.1f} ({100 * low:.1f} to {100 * high:.1f})" != own[spread]


def test_steps_are_those_of_the_mean_with_their_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = paper(["a", "b", "c"], "steps", until="a")
    rows = {"a": Made(arrives=[200]), "b": Made(arrives=[100]), "c": Made(top=50)}
    made = study_of(monkeypatch, toy, rows)
    shown = {row: _ours(cell) for row, cell in made.tasks["digits"].items()}
    assert shown["a"].startswith("200 (100 to 200), validation ")
    assert shown["b"].startswith("100 (50 to 100), validation ")
    assert shown["c"].startswith("> 400, validation ")


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
        path.write_text(json.dumps(json.loads(path.read_text()) | {"git": git}))
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


@pytest.mark.parametrize("paper", ["lu2021", "rothermel2021"])
def test_every_claim_without_a_rule_is_in_one_table(paper: str) -> None:
    shown = [name for kind in ("oddity", "counted", "read") for name in slips_table(paper, kind, "").frame["id"]]
    expected = [name for name, claim in claims().items() if claim.paper == paper and not claim.rule]
    assert sorted(shown) == sorted(expected)


# --- what a page takes from a notebook that was run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    def cell(tag: str, *outputs: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"tags": [tag]}, "outputs": list(outputs)}

    html = {"data": {"text/html": ["<table>", "</table>"]}}
    cells = [cell("words", {"text": "hello"}), cell("table", {"text": "before"}, html), {"metadata": {}}]
    (tmp_path / "runs").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/one.ipynb").write_text(json.dumps({"cells": cells}))
    return tmp_path


def test_it_is_the_html_of_the_cell_with_the_tag(root: Path) -> None:
    assert from_notebook("one", "table", root)._repr_html_() == "<table></table>"


@pytest.mark.parametrize(
    ("name", "tag", "named"), [("two", "table", "two"), ("one", "tabel", "table"), ("one", "words", "words")]
)
def test_what_is_not_there_is_named(root: Path, name: str, tag: str, named: str) -> None:
    with pytest.raises(SpecError, match=named):
        from_notebook(name, tag, root)
