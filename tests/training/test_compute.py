"""The number type that is measured once, compiling where it pays, and torch's modes while a fleet trains."""

import json
import math
from types import SimpleNamespace

import pytest
import torch
from small_models import short_recipe as recipe

import fpt.models
from fpt.models import layers
from fpt.training import Recipe, compute, train_fleet
from fpt.training.loop import FleetResult

CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 1e-2], [0, 5]


def test_auto_is_measured_once_and_remembered(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    calls = []
    monkeypatch.setattr(compute, "faster", lambda device: calls.append(device) or "bfloat16")
    assert compute.dtype("auto", CPU) == compute.dtype("auto", CPU) == torch.bfloat16
    assert len(calls) == 1
    assert list(json.loads((tmp_path / "cache/fpt/compute_type.json").read_text()).values()) == ["bfloat16"]
    (tmp_path / "cache/fpt/compute_type.json").write_text('{"cut')
    assert compute.dtype("auto", CPU) == torch.bfloat16
    assert len(calls) == 2
    assert compute.dtype("float32", CPU) == torch.float32


def test_a_home_that_cannot_be_written_is_no_error(monkeypatch, tmp_path):
    (tmp_path / ".cache").write_text("a file where a folder should be")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(compute, "faster", lambda device: "float32")
    assert compute.dtype("auto", CPU) == torch.float32


def test_the_best_time_of_each_number_type_counts(monkeypatch):
    """Types take turns; the clock is asked before and after."""
    durations = iter([6.0, 3.0, 4.0, 9.0, *(8.0, 2.0) * 5])
    monkeypatch.setattr(compute, "ROWS", 64)
    times = (time for duration in durations for time in (0.0, duration))
    monkeypatch.setattr(compute, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    assert compute.speedup(CPU) == 2.0


@pytest.mark.parametrize(
    ("own", "times", "answer"), [(True, 1.4, "float32"), (True, 1.6, "bfloat16"), (False, 9.0, "float32")]
)
def test_auto_takes_bfloat16_where_the_processor_has_it_and_it_pays(own, times, answer, monkeypatch):
    monkeypatch.setattr(layers, "OWN_BFLOAT16", own)
    monkeypatch.setattr(compute, "speedup", lambda device: times)
    assert compute.faster(CPU) == answer


@pytest.mark.parametrize(
    ("kind", "device", "own", "multiplied"),
    [
        ("bfloat16", "cpu", True, "bfloat16"),
        ("bfloat16", "cpu", False, "float32"),
        ("bfloat16", "cuda", False, "bfloat16"),
        ("float32", "cpu", True, "float32"),
    ],
)
def test_a_fleet_tells_in_which_type_its_products_were_multiplied(kind, device, own, multiplied, monkeypatch) -> None:
    """A processor without bfloat16 adds up in another order, which changes numbers."""
    monkeypatch.setattr(layers, "OWN_BFLOAT16", own)
    result = FleetResult(tables={}, compute_type=kind, threads=1, device=device, parts=[], compiled=False)
    assert result.multiplied_in == multiplied


def test_only_what_takes_long_is_compiled(digits, small_backbones, small_lstms, monkeypatch) -> None:
    monkeypatch.setattr(compute, "can_compile", lambda: True)
    template, looping = (fpt.models.build(digits, name, "random") for name in ("small-gpt2", "small-lstm"))
    assert not compute.compiling_pays(template, recipe(), 21, CPU)
    assert compute.compiling_pays(template, recipe(steps=10**9), 21, CPU)
    assert not compute.compiling_pays(template, recipe(steps=10**9), 21, torch.device("cuda"))
    assert not compute.compiling_pays(looping, recipe(steps=10**9), 21, CPU)
    monkeypatch.setattr(compute, "can_compile", lambda: False)
    assert not compute.compiling_pays(template, recipe(steps=10**9), 21, CPU)


def test_a_deeper_model_is_compiled_for_longer_fleets_alone(digits, monkeypatch) -> None:
    """Compiling takes as long for each of its layers."""
    monkeypatch.setattr(compute, "can_compile", lambda: True)
    module = SimpleNamespace(family=SimpleNamespace(recurrent=False))
    flat, deep = (
        SimpleNamespace(groups={}, sizes=(1, 10**6), layers=layers, task=digits, module=module) for layers in (2, 20)
    )
    enough = math.ceil(2 * compute.COMPILING_PAYS / (10**6 * 21 * 8 * digits.tokens))
    assert compute.compiling_pays(flat, Recipe(steps=enough), 21, CPU)
    assert not compute.compiling_pays(deep, Recipe(steps=enough), 21, CPU)
    assert compute.compiling_pays(deep, Recipe(steps=10 * enough), 21, CPU)


def test_without_a_compiler_fleets_are_not_compiled_and_say_why(monkeypatch) -> None:
    def refuse(_: object) -> object:
        raise RuntimeError("no C++ compiler here")

    monkeypatch.setattr(torch, "compile", refuse)
    with pytest.warns(UserWarning, match=r"not compiled.*no C\+\+ compiler here"):
        assert not compute.can_compile.__wrapped__()
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")
    assert not compute.can_compile.__wrapped__()


def test_fleets_on_cached_features_are_not_compiled(digits, small_backbones, monkeypatch):
    monkeypatch.setattr(compute, "compiling_pays", lambda *_: True)
    head = fpt.models.build(digits, "small-gpt2", "random", "output")
    assert not train_fleet(digits, head, recipe(), RATES, SEEDS).compiled


@pytest.mark.parametrize("before", [False, True])
def test_subnormal_numbers_are_zero_while_a_fleet_trains_and_only_then(before, digits, small_backbones):
    def subnormal():
        return bool(torch.full((3,), 1e-38).mul(0.1).any())

    if not torch.set_flush_denormal(before):
        pytest.skip("this processor cannot")
    try:
        seen = []
        model = fpt.models.build(digits, "small-gpt2", "random", "output")
        train_fleet(digits, model, recipe(), RATES, SEEDS, progress=lambda *_: seen.append(subnormal()))
        assert seen
        assert not any(seen)
        assert subnormal() is not before
        with pytest.raises(ValueError, match="inside"), compute.computing(1):
            raise ValueError("inside")
        assert subnormal() is not before
    finally:
        torch.set_flush_denormal(False)


@pytest.fixture
def precision():
    """The caller's precision of products is `high`: TF32 on a GPU."""
    torch.set_float32_matmul_precision("high")
    yield torch.get_float32_matmul_precision
    torch.set_float32_matmul_precision("highest")


def test_products_are_float32_while_a_fleet_trains_and_only_then(precision, digits, small_backbones, monkeypatch):
    seen = []
    model = fpt.models.build(digits, "small-gpt2", "random", "output")
    train_fleet(digits, model, recipe(), RATES, SEEDS, progress=lambda *_: seen.append(precision()))
    assert seen
    assert {*seen} == {"highest"}
    assert precision() == "high"
    with pytest.raises(ValueError, match="inside"), compute.own_modes(CPU):
        raise ValueError("inside")
    assert precision() == "high"


def test_number_types_are_compared_in_products_of_float32(precision, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    seen = []
    monkeypatch.setattr(compute, "faster", lambda device: seen.append(precision()) or "float32")
    compute.dtype("auto", CPU)
    assert seen == ["highest"]


@pytest.mark.skipif(not hasattr(torch.backends.mkldnn, "matmul"), reason="this torch has no fp32_precision")
def test_torchs_newer_setting_of_the_precision_counts_too():
    matmul = torch.backends.cuda.matmul
    try:
        matmul.fp32_precision = "tf32"
        with compute.own_modes(CPU):
            assert matmul.fp32_precision == "ieee"
        assert matmul.fp32_precision == "tf32"
    finally:
        torch.set_float32_matmul_precision("highest")
