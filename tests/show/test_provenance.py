"""How results came about: recipes and records, a row each."""

import json
from pathlib import Path

import synthetic

from fpt.results import every_study
from fpt.show import recipe_table, record_table
from fpt.sweeps import load_study


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


def test_the_record_of_every_sweep(study: Path) -> None:
    shown = record_table(study)
    assert len(shown.frame) == 6
    assert "steps 400" in shown.caption
    assert "commit 00000000" in shown.caption
    assert shown.frame["hash"].is_unique
    assert "For every sweep: steps 400; status done; runs 32; diverged 0; " in shown.caption


def test_a_commit_says_whether_the_code_had_changes(tmp_path: Path) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path))
    for number, path in enumerate(sorted(study.glob("*/result.json"))):
        git = [None, {"commit": "1234567890", "dirty": True}, {"commit": "0" * 40, "dirty": False}][number % 3]
        path.write_text(json.dumps(json.loads(path.read_text()) | {"git": git}))
    assert set(record_table(study).frame["commit"]) == {"", "12345678 + changes", "00000000"}


def test_the_record_says_of_which_sweeps_it_speaks(tmp_path: Path) -> None:
    study = synthetic.workspace(tmp_path)
    nothing = record_table(study)
    assert len(nothing.frame) == 6
    assert nothing.caption.endswith("For every sweep: steps 400; status waiting.")
    part = record_table(synthetic.finish(study, skip=("unfrozen-random",)))
    assert part.frame["status"].value_counts().to_dict() == {"done": 4, "waiting": 2}
    assert "For every finished sweep: steps 400; runs 32; diverged 0; " in part.caption
