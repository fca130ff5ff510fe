"""Tables of a bench: text, in order, with the targets of its kind of device."""

import json
from typing import Any

import made_rows
from made_rows import fields

from fpt.bench.cost import Bench
from fpt.bench.report import bench_table, bench_targets, frozen_shares
from fpt.sweeps.spec import resolve

SPEC = {"task": "mnist", "backbone": "gpt2", "arm": "frozen-random", "learning_rates": [1e-3], "seeds": [0]}
FROZEN = fields(
    resolve(SPEC), runs=9, compute_type="bfloat16", seconds=0.25, reference_seconds=1.0, ratios=[3.9, 4.2],
    flop=2 * 10**11,
)  # fmt: skip
UNFROZEN = fields(resolve(SPEC | {"arm": "unfrozen-random"}), runs=9, seconds=0.25, reference_seconds=0.6)
ROWS = (FROZEN, UNFROZEN, {**FROZEN, "runs": 3, "reference_seconds": 0.25})


def bench(*rows: dict[str, Any], kind: str = "cpu") -> Bench:
    return Bench.model_validate_json(json.dumps(made_rows.bench(*rows, kind=kind)))


def test_a_row_a_cell_in_order_of_size() -> None:
    table = bench_table(bench(*ROWS))
    assert list(table["runs"]) == ["3", "9", "9"]
    row = table.iloc[1]
    assert (row["task"], row["tokens"], row["arm"], row["ratio"]) == ("mnist", "64", "FR", "4.00")
    assert (row["range"], row["utilisation"]) == ("3.90 to 4.20", "80.0%")
    assert (row["fleet"], row["reference"]) == ("250.0", "1,000.0")


def test_a_row_without_a_reference_has_dashes() -> None:
    row = bench_table(bench(FROZEN | {"reference_seconds": None, "ratios": []})).iloc[0]
    assert (row["ratio"], row["range"], row["reference"], row["fleet"]) == ("-", "-", "-", "250.0")


def test_targets_are_held_against_the_largest_fleet_however_it_does_best() -> None:
    compiled = FROZEN | {"compiled": True, "reference_seconds": 1.3}
    table = bench_targets(bench(*ROWS, compiled)).set_index(["backbone", "arm"])
    frozen, unfrozen = table.loc[("gpt2", "frozen")], table.loc[("gpt2", "unfrozen")]
    assert (frozen["at least"], frozen["measured"], frozen["met"], frozen["runs"]) == ("5.00", "5.20", "yes", "9")
    assert (unfrozen["at least"], unfrozen["measured"], unfrozen["met"]) == ("3.00", "2.40", "no")
    assert set(table.loc["tiny-lm"]["met"]) == {"not measured"}
    cut = compiled | {"backbone_options": {"layers": 1}, "reference_seconds": 9.0}  # of one layer: no target is its own
    assert bench_targets(bench(*ROWS, compiled, cut)).equals(bench_targets(bench(*ROWS, compiled)))
    gpu = bench_targets(bench(*ROWS, kind="h200"))
    assert set(gpu["met"]) == {"not measured"}  # of 27 runs none was measured


def test_nothing_measured_is_no_rows() -> None:
    assert bench_table(bench()).empty


def test_a_frozen_step_is_held_against_one_of_full_training_in_the_same_number_type() -> None:
    full = UNFROZEN | {"compute_type": "bfloat16", "flop": 4 * 10**11, "seconds": 0.5}
    found = frozen_shares(bench(*ROWS, full, full | {"runs": 3, "flop": 1}))
    assert found.to_dict("records") == [{"model": "gpt2", "flop": 0.5, "seconds": 0.5}]
    assert frozen_shares(bench(*ROWS)).empty
