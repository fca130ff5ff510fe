"""Tables: what they say agrees with the runs; studies and setups stay apart."""

import math
from pathlib import Path

import pytest
import synthetic
from made_cells import Made, paper
from made_cells import study as study_of

from fpt.papers import table
from fpt.papers.schema import Printed
from fpt.results import StudyCells, load_runs
from fpt.results.stats import mean_interval
from fpt.show import summary
from fpt.show.numbers import row_label
from fpt.show.printed import _ours, printed_text
from fpt.sweeps import SweepSpec


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
