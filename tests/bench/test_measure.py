"""The bench: clock and memory gauge, cells, and the file it writes."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from fpt.sweeps.flop import shaped_task

from fpt import bench
from fpt.bench import clock, peak_memory
from fpt.errors import FptError, SpecError
from fpt.sweeps import SweepSpec, speeds

RATES = {"float32_flop_per_second": 1e12, "bfloat16_flop_per_second": 1e12, "bytes_per_second": 1e10}
HEAD = {"device": "a processor", "kind": "cpu", "threads": 1, "ceiling": RATES}
CPU = torch.device("cpu")


def test_the_clock_counts_the_calls() -> None:
    calls: list[int] = []
    assert clock(lambda: calls.append(1), 3, CPU) > 0
    assert len(calls) == 3


def test_the_memory_gauge_sees_what_was_held_for_a_moment() -> None:
    with peak_memory(CPU) as peak:
        for _ in range(10):  # 400 MB, touched: they become resident
            torch.ones(100_000_000)
    assert 0.2 * 2**30 < peak[0] < 2**30


def test_the_memory_gauge_stops_with_an_error_inside() -> None:
    with pytest.raises(ZeroDivisionError), peak_memory(CPU):
        1 / 0  # noqa: B018


# --- cells


def test_a_cell_is_a_grid_whose_fleet_has_so_many_runs() -> None:
    for text in (*bench.cells(True, False), *bench.cells(False, False), *bench.cells(False, True)):
        spec = bench.cell(text)
        assert len(spec.learning_rates) * len(spec.selection_seeds) == int(text.split("/")[3])
    whole = [bench.cell(text) for text in bench.cells(False, True)]
    shapes = {10, 16, 49, 64, 120, 512, 1024, 2000}
    seen = {shaped_task(spec)[0].tokens for spec in whole if spec.backbone == "gpt2" and spec.trainable == "fpt"}
    assert seen == shapes
    assert "tiny-lm/digits/unfrozen-random/21" in bench.cells(True, False)
    assert not [text for text in bench.cells(True, False) if text.startswith("gpt2/")]
    backbones = {text.split("/")[0] for text in bench.cells(False, False)}
    assert backbones == {"tiny-lm", "minilm", "gpt2", "lstm"}  # several widths, and a recurrent one: for estimates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tiny-lm/digits", "must be BACKBONE/TASK"),
        ("tiny-lm/digits/frozen-random/none", "must be BACKBONE/TASK"),
        ("tiny-lm/digits/frozen-random/0", "must be BACKBONE/TASK"),
        ("gpt-2/digits/frozen-random/3", r"unknown backbone 'gpt-2' .*Did you mean 'gpt2'"),
        ("gpt2/mnits/frozen-random/3", "unknown task 'mnits'"),
        ("gpt2/mnist:relased/frozen-random/3", "unknown variant of mnist 'relased'"),
        ("gpt2/mnist/frozen/3", "unknown arm 'frozen'"),
    ],
)
def test_bad_cells_are_refused_before_anything_is_measured(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=message):
        bench.bench([text], True, tmp_path, print)
    assert not list(tmp_path.iterdir())


# --- from end to end


def test_a_tiny_cell_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_backbones: dict[str, torch.nn.Module]
) -> None:
    monkeypatch.setattr(bench, "apart", lambda call, *arguments: call(*arguments))  # it knows the small model
    monkeypatch.setattr(
        bench, "software", lambda: {"version": "0", "git": {"commit": "a", "dirty": False}, "versions": {}}
    )
    monkeypatch.setattr(bench, "ceiling", lambda seconds: HEAD)
    quick = partial(bench.measure, rounds=2, seconds=0.01)
    monkeypatch.setattr(bench, "measure", lambda spec, rounds, seconds: quick(spec))
    told: list[str] = []
    names = [f"small-gpt2/bit-xor/{arm}/2" for arm in ("frozen-random", "unfrozen-random")]
    for name in (*names, names[0]):  # the last one replaces the first, the second is kept
        made = bench.bench([name], False, tmp_path, told.append)
    assert told == [f"1 of 1: {name}" for name in (*names, names[0])]
    assert speeds.benches(tmp_path) == [made]
    assert [row["arm"] for row in made["rows"]] == ["unfrozen-random", "frozen-random"]
    for row in made["rows"]:
        assert set(row) == set(speeds.ROW)
        assert (row["runs"], row["tokens"], row["held"], len(row["ratios"])) == (2, 10, [2000, 2000], 2)
        assert min(row["seconds"], row["reference_seconds"], row["evaluation_seconds"], row["flop"]) > 0
        assert row["ratio"] == pytest.approx(row["reference_seconds"] / row["seconds"], abs=0.01)
        assert row["utilisation"] == pytest.approx(row["flop"] / row["seconds"] / 1e12, abs=1e-4)
    monkeypatch.setattr(bench, "software", lambda: {"version": "1", "git": None, "versions": {}})
    assert len(bench.bench(names[:1], False, tmp_path, told.append)["rows"]) == 1  # other code: its rows are not kept


def test_a_backbone_that_the_reference_does_not_run_is_timed_alone(small_backbones: dict[str, torch.nn.Module]) -> None:
    row = bench.measure(bench.cell("small-t5/digits/frozen-random/2"), 1, 0.01)
    assert set(row) | {"utilisation"} == set(speeds.ROW) - set(speeds.COMPARED)
    assert row["seconds"] > 0


def test_a_cell_that_cannot_be_measured_is_told_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(call: Callable[..., Any], *arguments: Any) -> Any:
        if call is bench.measure:
            raise FptError("killed")
        return HEAD

    monkeypatch.setattr(bench, "apart", apart)
    told: list[str] = []
    assert bench.bench([], True, tmp_path, told.append)["rows"] == []
    assert told[:5] == [
        "1 of 6: tiny-lm/digits/frozen-random/21",
        *["killed"] * 3,
        "2 of 6: tiny-lm/digits/unfrozen-random/21",
    ]


def test_a_cell_that_does_not_fit_is_measured_with_fewer_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(call: Callable[..., Any], spec: SweepSpec, *arguments: Any) -> dict[str, int]:
        if len(spec.learning_rates) > 3:
            raise FptError("killed")
        return {"runs": len(spec.learning_rates) * len(spec.selection_seeds)}

    monkeypatch.setattr(bench, "apart", apart)
    assert bench.attempt(bench.cell("gpt2/mnist/frozen-random/27"), (1, 0.1), print) == {"runs": 6}


def test_a_process_that_is_killed_is_an_error_of_ours() -> None:
    with pytest.raises(FptError, match="want of memory"):
        bench.apart(os._exit, 9)


def test_the_ceiling_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(bench, "clock", lambda call, calls, device: 0.5)
    found = bench.ceiling(0.1)
    assert set(found) == {"device", "kind", "threads", "ceiling"}
    assert found["kind"] == "cpu"
    rates = {"float32_flop_per_second": 4 * 2048**3, "bfloat16_flop_per_second": 4 * 2048**3}
    assert found["ceiling"] == rates | {"bytes_per_second": 2**29}
