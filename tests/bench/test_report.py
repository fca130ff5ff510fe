"""Tables of a bench: text, in order, with the targets of its kind of device."""

from pathlib import Path
from typing import Any

from fpt.bench.cost import Bench, benches
from fpt.bench.report import bench_table, bench_targets

FROZEN: dict[str, Any] = {
    "backbone": "gpt2", "task": "mnist", "variant": "paper", "task_options": {}, "backbone_options": {"layers": 0},
    "trainable": "fpt", "batch_size": 8, "dropout": 0.1, "arm": "frozen-random", "tokens": 64, "runs": 9,
    "held": (10_000, 10_000), "compute_type": "bfloat16", "seconds": 0.25, "reference_seconds": 1.0,
    "ratios": [3.9, 4.2], "evaluation_seconds": 1e-3, "peak_gib": 1.5, "flop": 2 * 10**11,
}  # fmt: skip
UNFROZEN = FROZEN | {
    "arm": "unfrozen-random", "trainable": "all", "reference_seconds": 0.6,
    "compute_type": "float32", "flop": 10**10,
}  # fmt: skip


def bench(kind: str = "cpu", **changes: Any) -> Bench:
    """Two cells of GPT-2 on MNIST, hand-made."""
    ceiling = {"float32_flop_per_second": 1e11, "bfloat16_flop_per_second": 1e12}
    rows = [FROZEN, UNFROZEN, {**FROZEN, "runs": 3, "reference_seconds": 0.25}]
    top = {"device": "a device", "kind": kind, "threads": 2, "ceiling": ceiling, "rows": rows}
    return Bench.model_validate(top | changes)


def test_a_row_a_cell_in_order_of_size() -> None:
    table = bench_table(bench())
    assert list(table["runs"]) == ["3", "9", "9"]
    row = table.iloc[1]
    assert (row["task"], row["tokens"], row["arm"], row["ratio"]) == ("mnist", "64", "FR", "4.00")
    assert (row["range"], row["utilisation"]) == ("3.90 to 4.20", "80.0%")
    assert (row["fleet"], row["reference"]) == ("250.0", "1,000.0")


def test_a_row_without_a_reference_has_dashes() -> None:
    row = bench_table(bench(rows=[FROZEN | {"reference_seconds": None, "ratios": []}])).iloc[0]
    assert (row["ratio"], row["range"], row["reference"], row["fleet"]) == ("-", "-", "-", "250.0")


def test_targets_are_held_against_the_largest_fleet_however_it_does_best() -> None:
    rows = [FROZEN, UNFROZEN, FROZEN | {"compiled": True, "reference_seconds": 1.3}, FROZEN | {"runs": 3}]
    table = bench_targets(bench(rows=rows)).set_index(["backbone", "arm"])
    frozen, unfrozen = table.loc[("gpt2", "frozen")], table.loc[("gpt2", "unfrozen")]
    assert (frozen["at least"], frozen["measured"], frozen["met"], frozen["runs"]) == ("5.00", "5.20", "yes", "9")
    assert (unfrozen["at least"], unfrozen["measured"], unfrozen["met"]) == ("3.00", "2.40", "no")
    assert set(table.loc["tiny-lm"]["met"]) == {"not measured"}
    gpu = bench_targets(bench("h200"))
    assert set(gpu["met"]) == {"not measured"}  # of 27 runs none was measured


def test_nothing_measured_is_no_rows(tmp_path: Path) -> None:
    assert bench_table(bench(rows=[])).empty
    assert benches(tmp_path) == []
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/h200.json").write_text(bench("h200").model_dump_json())
    (tmp_path / "bench/cpu.json").write_text(bench().model_dump_json())
    assert [found.kind for found in benches(tmp_path)] == ["cpu", "h200"]
