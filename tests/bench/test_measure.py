"""The bench: clock and memory gauge, cells, and the file it writes."""

import operator
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from processes import all_gone, command_line, descendants, ending, eventually, kill

from fpt.bench import cost, measure
from fpt.bench.cost import Bench
from fpt.bench.measure import cell, cells, clock, in_turns, peak_memory
from fpt.errors import DataError, FptError, SpecError
from fpt.models import layers
from fpt.tasks import TASKS, Entry
from fpt.tasks.images import digits

RATES = {"float32_flop_per_second": 1e12, "bfloat16_flop_per_second": 1e12}
EMPTY = Bench.model_validate({"device": "a processor", "kind": "cpu", "threads": 1, "ceiling": RATES, "rows": []})
CPU = torch.device("cpu")
FILES = Path(__file__).parents[1] / "data"


def test_the_clock_counts_the_calls() -> None:
    calls: list[int] = []
    assert clock(lambda: calls.append(1), 3, CPU) > 0
    assert len(calls) == 3


def test_sides_take_turns() -> None:
    calls: list[str] = []
    sides: list[Callable[[], object]] = [lambda: calls.append("fleet"), lambda: calls.append("reference")]
    turns = in_turns(sides, 3, 0.0, CPU)
    assert calls == ["fleet", "reference"] * 5  # prepared, counted, three rounds of one call each
    assert [len(turn) for turn in turns] == [2, 2, 2]


def test_the_memory_gauge_sees_what_was_held_for_a_moment() -> None:
    with peak_memory(CPU) as peak:
        for _ in range(10):  # 400 MB, touched: they become resident
            torch.ones(100_000_000)
    assert 0.2 * 2**30 < peak[0] < 2**30


def test_the_memory_gauge_stops_with_an_error_inside() -> None:
    with pytest.raises(ZeroDivisionError), peak_memory(CPU):
        1 / 0  # noqa: B018


# --- cells


@pytest.mark.parametrize("kind", ["quick", "cpu", "cuda"])
def test_a_cell_is_a_grid_whose_fleet_has_so_many_runs(kind: str) -> None:
    for text in cells(kind == "quick", kind == "cuda"):
        spec = cell(text)
        assert len(spec.learning_rates) * len(spec.seeds) == int(text.split("/")[3])


def test_a_cell_names_layers_and_number_type() -> None:
    plain, whole = cell("minilm/mnist/frozen-random/9"), cell("minilm:2/mnist/frozen-random/9/float32+compiled")
    assert (plain.compute_type, plain.backbone_options) == ("auto", {})
    assert (whole.compute_type, whole.backbone_options) == ("float32", {"layers": 2})


@pytest.mark.parametrize("how", ["float16", "", "+", "+compiled", "float32compiled", "float32+"])
def test_how_a_cell_is_timed_is_a_number_type_or_compiled_or_both(how: str) -> None:
    with pytest.raises(SpecError, match="HOW"):
        cell(f"tiny-lm/digits/frozen-random/3/{how}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tiny-lm/digits", "must be BACKBONE"),
        ("gpt-2/digits/frozen-random/3", r"unknown backbone 'gpt-2' .*Did you mean 'gpt2'"),
        ("gpt2/mnist:relased/frozen-random/3", "unknown variant of mnist 'relased'"),
        ("gpt2/mnist/frozzen/3", "unknown arm 'frozzen'"),
    ],
)
def test_bad_cells_are_refused_before_anything_is_measured(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=message):
        measure.bench([text], True, tmp_path, print)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_cannot_be_written_is_refused_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "apart", lambda *_: pytest.fail("something was measured"))
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "bench").touch()  # not a folder
    for folder in (Path("/proc"), tmp_path / "nowhere", tmp_path / "file"):  # the kernel refuses /proc to everybody
        with pytest.raises(FptError, match=f"{folder}.* cannot be written: "):
            measure.bench([], True, folder, print)


# --- from end to end


def test_a_tiny_cell_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_backbones: dict[str, torch.nn.Module]
) -> None:
    monkeypatch.setattr(measure, "apart", lambda call, **_: call())  # it knows the small model
    monkeypatch.setattr(measure, "ceiling", lambda seconds: EMPTY)
    monkeypatch.setattr(measure, "measure", partial(lambda once, spec, *_, **__: once(spec, 2, 0.01), measure.measure))
    lines: list[str] = []
    names = [f"small-gpt2/bit-xor/{arm}/2" for arm in ("frozen-random", "unfrozen-random")]
    for name in (*names, names[0]):  # the last one replaces the first, the second is kept
        made = measure.bench([name], False, tmp_path, lines.append)
    written = f"written: {tmp_path / 'bench/cpu.json'}"
    assert lines == [line for name in (*names, names[0]) for line in (f"1 of 1: {name}", written)]
    assert cost.benches(tmp_path) == [made]
    assert [row.arm for row in made.rows] == ["unfrozen-random", "frozen-random"]
    for row in made.rows:
        assert (row.runs, row.tokens, row.held, len(row.ratios)) == (2, 10, (2000, 2000), 2)
        assert min(row.seconds, row.ratio or 0, row.evaluation_seconds, row.flop) > 0
    monkeypatch.setattr(measure, "ceiling", lambda seconds: EMPTY.model_copy(update={"version": "1"}))
    assert len(measure.bench(names[:1], False, tmp_path, lines.append).rows) == 1  # other code: rows are not kept


def test_a_fleet_on_cached_features_is_not_compiled_and_its_row_says_so(small_backbones: Any) -> None:
    row = measure.measure(cell("small-gpt2/digits/output-random/2"), 1, 0.01, compared=False, compiled=True)
    assert not row.compiled


def test_without_a_reference_it_is_timed_alone(monkeypatch: pytest.MonkeyPatch, small_backbones: Any) -> None:
    """A backbone that the reference does not run, and where none is asked for; on the data of a task of yours."""
    monkeypatch.setitem(TASKS, "mine", Entry(digits, "Mine"))
    for backbone, compared in (("small-t5", True), ("small-gpt2", False)):
        row = measure.measure(cell(f"{backbone}/mine/frozen-random/2"), 1, 0.01, compared=compared)
        assert (row.tokens, row.held, row.ratio, row.ratios) == (16, (300, 400), None, [])
        assert row.seconds > 0


def test_adapters_are_timed_as_the_sweep_has_them() -> None:
    one, both = (
        cell("tiny-lm/digits/lora-random/1").changed(rank=rank, targets=targets, batch_size=1)
        for rank, targets in ((1, "attention"), (16, "both"))
    )
    assert measure.measure(one, 1, 0.01).flop < measure.measure(both, 1, 0.01).flop


def test_without_its_files_a_cell_is_timed_on_random_images_of_the_same_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shaped_task: Callable[[str, str], Any]
) -> None:
    monkeypatch.setattr(measure, "IMAGES", {"mnist": ((700, 100), (28, 28)), "cifar10": ((700, 100), (32, 32, 3))})
    real = measure.tasks.load

    def missing(name: str, folder: object, *others: Any, **options: Any) -> Any:
        if folder is None:
            raise DataError("nothing here, and no network")
        return real(name, folder, *others, **options)

    monkeypatch.setattr(measure.tasks, "load", missing)
    for name in ("mnist", "cifar10", "cifar10-lra"):
        task, inputs = measure.load(cell(f"tiny-lm/{name}/frozen-random/1"))
        assert inputs == "random"
        assert (task.tokens, task.width, task.classes) == (real(name, FILES).tokens, real(name, FILES).width, 10)
        assert len(task.split(0).batch(0, 8)) == 8
    with pytest.raises(DataError, match="nothing here"):
        measure.load(cell("tiny-lm/homology/frozen-random/1"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be measured, in a process that is killed."""
    seen: list[Any] = []

    def apart(call: Any, wide: bool = True) -> Any:
        if call.func is measure.measure:
            seen.append(call)
            raise FptError("killed")
        return EMPTY

    monkeypatch.setattr(measure, "apart", apart)
    return seen


def test_a_cell_is_compiled_where_its_name_ends_so(tmp_path: Path, asked: list[Any]) -> None:
    names = [f"tiny-lm/digits/frozen-random/3{how}" for how in ("", "/compiled", "/float32", "/bfloat16+compiled")]
    measure.bench(names, True, tmp_path, lambda line: None)
    assert [call.keywords["compiled"] for call in asked] == [False, True, False, True]


@pytest.mark.usefixtures("asked")
def test_a_cell_that_cannot_be_measured_is_logged_and_left_out(tmp_path: Path) -> None:
    lines: list[str] = []
    assert measure.bench([], True, tmp_path, lines.append).rows == []
    first, second = (f"tiny-lm/digits/{arm}/21" for arm in ("frozen-random", "unfrozen-random"))
    assert lines[:3] == [f"1 of 6: {first}", "killed", f"2 of 6: {second}"]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_environment_of_what_was_measured_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "")
    before = dict(os.environ)
    monkeypatch.setattr(measure, "faster_libraries", lambda: {"LD_PRELOAD": "", "FPT_TESTED": "1"})
    assert measure.apart(partial(os.getenv, "FPT_TESTED")) == "1"
    assert dict(os.environ) == before


def test_a_process_that_is_killed_is_an_error_of_ours() -> None:
    with pytest.raises(FptError, match="want of memory"):
        measure.apart(partial(os._exit, 9))


@pytest.mark.slow
def test_a_process_without_memory_is_an_error_of_ours_and_no_other_one_is() -> None:
    with pytest.raises(FptError, match="want of memory"):
        measure.apart(partial(operator.mul, [0], 2**60))
    with pytest.raises(ZeroDivisionError):
        measure.apart(partial(operator.truediv, 1, 0))


@pytest.mark.slow
def test_a_bench_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    script = tmp_path / "bench.py"  # a spawned child imports it
    script.write_text(
        "import time\nfrom functools import partial\nfrom fpt.bench.measure import apart\n\n"
        "if __name__ == '__main__':\n    apart(partial(time.sleep, 600))\n"
    )
    bench = subprocess.Popen([sys.executable, script])

    def measures() -> bool:
        return any("spawn_main" in " ".join(command_line(child)) for child in descendants(bench))

    with ending(bench):
        eventually(lambda: measures() or bench.poll() is not None)
        children = descendants(bench)
        assert children
        bench.kill()
        bench.wait()
        try:
            eventually(lambda: all_gone(children))
        finally:
            kill(children)


@pytest.mark.parametrize(("own", "multiplied"), [(True, torch.bfloat16), (False, torch.float32)])
def test_the_ceiling_is_that_of_the_products_of_a_fleet(own, multiplied, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet would reach more than all of a ceiling that was measured in another way."""
    seen = []
    monkeypatch.setattr(layers, "OWN_BFLOAT16", own)
    monkeypatch.setattr(layers, "linear", lambda x, weight: seen.append((x.dtype, weight.dtype)) or x)
    measure.square_product(8, torch.bfloat16, torch.device("cpu"))()
    assert seen == [(multiplied, multiplied)]


def test_the_ceiling_is_the_best_of_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one also starts the library, and counts for nothing."""
    durations = iter([0.1, 0.4, 0.2, 0.3] * 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(measure, "square_product", lambda *_: lambda: None)
    monkeypatch.setattr(measure, "clock", lambda *_: next(durations))
    found = measure.ceiling(0.1)
    assert (found.kind, found.rows) == ("cpu", [])
    assert found.ceiling.float32_flop_per_second == found.ceiling.bfloat16_flop_per_second == 2 * 2048**3 / 0.2
