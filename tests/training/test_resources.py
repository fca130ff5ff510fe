"""What the machine gives: memory and its splits, the number type that is measured once, compiling where it pays."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from small_models import short_recipe as recipe

import fpt.models
import fpt.tasks
from fpt.errors import FptError
from fpt.training import loop, resources, train_fleet
from fpt.training.libraries import faster_libraries

CPU = torch.device("cpu")
SLOW = pytest.mark.slow
RATES, SEEDS = [1e-3, 1e-2], [0, 5]


@pytest.fixture
def free(monkeypatch):
    """Sets the bytes of which a fleet may take all."""
    monkeypatch.setattr(resources, "SHARE", 1.0)
    return lambda count: monkeypatch.setattr(resources, "free_bytes", lambda _: count)


def test_fleets_that_do_not_fit_are_split_and_say_so(digits, small_backbones, free):
    template, dropping = fpt.models.build(digits, "small-gpt2", "random"), recipe(dropout=0.1)
    seed, run = resources.seed_bytes(template, dropping), resources.run_bytes(template, dropping)
    free(2 * (seed + 2 * run))
    whole = train_fleet(digits, template, dropping, RATES, SEEDS)
    free(2 * (seed + 2 * run) - 1)
    by_seed = train_fleet(digits, template, dropping, RATES, SEEDS)
    free(seed + 2 * run - 1)
    alone = train_fleet(digits, template, dropping, RATES, SEEDS)
    assert (whole.parts, by_seed.parts, alone.parts) == ([(2, 2)], [(2, 1), (2, 1)], [(1, 1)] * 4)
    for other in (by_seed, alone):
        columns = ["learning_rate", "seed", "test_accuracy"]
        assert other.runs[columns[:2]].equals(whole.runs[columns[:2]])
        assert (other.runs["test_accuracy"] - whole.runs["test_accuracy"]).abs().max() <= 2 / 400
    free(seed + run - 1)
    with pytest.raises(FptError, match=r"needs about .* GiB.*may be used"):
        train_fleet(digits, template, dropping, RATES, SEEDS)


def test_frozen_random_weights_are_counted_once_a_seed(digits, small_backbones, free):
    """As a fleet holds them; counted for every run, a frozen random arm would be split where a pretrained is not."""
    pretrained, random = (fpt.models.build(digits, "small-gpt2", init) for init in ("pretrained", "random"))
    run, rates = resources.run_bytes(pretrained, recipe()), [1e-4, 1e-3, 1e-2]
    assert resources.run_bytes(random, recipe()) == run
    assert resources.seed_bytes(pretrained, recipe()) == 0
    fleet = loop.Fleet(digits, random, recipe(), rates, SEEDS, CPU)
    held = sum(tensor.nbytes for tensor in fleet.per_seed.values())
    assert held == len(SEEDS) * resources.seed_bytes(random, recipe()) > 0
    free(held + len(rates) * len(SEEDS) * run)
    for template in (pretrained, random):
        assert resources.split(template, recipe(), rates, SEEDS, CPU) == [(rates, SEEDS)]


MEASURED = """
import sys
import torch
from fpt import models
from fpt.bench.measure import cell, peak_memory
from fpt.tasks import load
from fpt.training import resources
from fpt.training.evaluate import Best
from fpt.training.fleet import Fleet
torch.set_num_threads(1)
spec = cell(sys.argv[1])
recipe, rates, seeds = spec.recipe.model_copy(update={"compute_type": sys.argv[2]}), spec.learning_rates, spec.seeds
task = load(spec.task)
template = models.build(task, spec.backbone, spec.init, spec.trainable)
run, seed = resources.run_bytes(template, recipe), resources.seed_bytes(template, recipe)
with peak_memory(torch.device("cpu")) as peak:
    fleet = Fleet(task, template, recipe, rates, seeds, torch.device("cpu"))
    best = Best(fleet)
    for step in (1, 2):  # the optimizer's moments are there from the second on
        fleet.step(step)
print(len(seeds) * (seed + len(rates) * run) / peak[0])
"""


@pytest.mark.parametrize(("kind", "runs"), [("float32", 21), pytest.param("bfloat16", 6, marks=SLOW)])  # emulated
@pytest.mark.parametrize(
    "arm", ["frozen-random", *(pytest.param(arm, marks=SLOW) for arm in ("unfrozen-random", "lora-random"))]
)
def test_memory_is_predicted_and_not_much_more_than_is_measured(arm, kind, runs):
    """Too little would end in the system's killer; a fleet of a random frozen arm takes the least of its prediction."""
    command = [sys.executable, "-c", MEASURED, f"tiny-lm/digits-lra/{arm}/{runs}", kind]
    found = subprocess.run(command, env=os.environ | faster_libraries(), capture_output=True, text=True, check=True)
    assert 1 <= float(found.stdout) <= 1.75


@pytest.mark.parametrize(
    ("machine", "workers", "container", "free"),
    [
        (900, 3, None, 300),  # shared with other workers
        (900, 3, ("max", 100, 0), 300),
        (900, 3, ("700", 100, 0), 200),  # within a container
        (10_000, None, ("1000", 900, 600), 700),  # whose page cache is free
    ],
)
def test_memory_that_is_free(machine, workers, container, free, monkeypatch, tmp_path):
    monkeypatch.setattr(resources.psutil, "virtual_memory", lambda: SimpleNamespace(available=machine))
    monkeypatch.setattr(resources, "CONTAINER", tmp_path)
    monkeypatch.delenv("FPT_WORKERS", raising=False)
    if workers:
        monkeypatch.setenv("FPT_WORKERS", str(workers))
    if container:
        most, taken, cached = container
        for name, text in (("max", most), ("current", taken), ("stat", f"active_file 40\ninactive_file {cached}")):
            (tmp_path / f"memory.{name}").write_text(f"{text}\n")
    assert resources.free_bytes(CPU) == free


def test_auto_is_measured_once_and_remembered(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    calls = []
    monkeypatch.setattr(resources, "faster", lambda device: calls.append(device) or "bfloat16")
    assert resources.dtype("auto", CPU) == resources.dtype("auto", CPU) == torch.bfloat16
    assert len(calls) == 1
    assert list(json.loads((tmp_path / "cache/fpt/compute_type.json").read_text()).values()) == ["bfloat16"]
    (tmp_path / "cache/fpt/compute_type.json").write_text('{"cut')
    assert resources.dtype("auto", CPU) == torch.bfloat16
    assert len(calls) == 2
    assert resources.dtype("float32", CPU) == torch.float32


def test_a_home_that_cannot_be_written_is_no_error(monkeypatch, tmp_path):
    (tmp_path / ".cache").write_text("a file where a folder should be")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(resources, "faster", lambda device: "float32")
    assert resources.dtype("auto", CPU) == torch.float32


def test_the_best_time_of_each_number_type_counts(monkeypatch):
    """Types take turns; the clock is asked before and after."""
    durations = iter([6.0, 3.0, 4.0, 9.0, *(8.0, 2.0) * 5])
    times = (time for duration in durations for time in (0.0, duration))
    monkeypatch.setattr(resources, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    assert resources.speedup(CPU, 64, 64) == 2.0


@pytest.mark.parametrize(
    ("few", "many", "answer", "asked"),
    [(0.02, 9.0, "float32", [64]), (0.5, 1.4, "float32", [64, 2048]), (0.5, 1.6, "bfloat16", [64, 2048])],
)
def test_few_rows_show_a_processor_without_bfloat16(few, many, answer, asked, monkeypatch):
    seen = []
    monkeypatch.setattr(resources, "speedup", lambda _, size, rows: seen.append(rows) or (few if rows == 64 else many))
    assert resources.faster(CPU) == answer
    assert seen == asked


def test_only_what_takes_long_is_compiled(digits, small_backbones, monkeypatch) -> None:
    monkeypatch.setattr(resources, "can_compile", lambda: True)
    template = fpt.models.build(digits, "small-gpt2", "random")
    assert not resources.compiling_pays(template, recipe(), 21, CPU)
    assert resources.compiling_pays(template, recipe(steps=10**9), 21, CPU)
    assert not resources.compiling_pays(template, recipe(steps=10**9), 21, torch.device("cuda"))
    monkeypatch.setattr(resources, "can_compile", lambda: False)
    assert not resources.compiling_pays(template, recipe(steps=10**9), 21, CPU)


def test_without_a_compiler_fleets_are_not_compiled_and_say_why(monkeypatch) -> None:
    def refuse(_: object) -> object:
        raise RuntimeError("no C++ compiler here")

    monkeypatch.setattr(torch, "compile", refuse)
    with pytest.warns(UserWarning, match=r"not compiled.*no C\+\+ compiler here"):
        assert not resources.can_compile.__wrapped__()
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")
    assert not resources.can_compile.__wrapped__()


def test_fleets_on_cached_features_are_not_compiled(digits, small_backbones, monkeypatch):
    monkeypatch.setattr(resources, "compiling_pays", lambda *_: True)
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
        with pytest.raises(ValueError, match="inside"), resources.computing(1):
            raise ValueError("inside")
        assert subnormal() is not before
    finally:
        torch.set_flush_denormal(False)


def test_memory_that_torch_keeps_on_a_gpu_is_free(monkeypatch):
    sizes = {"mem_get_info": (100, 1000), "memory_reserved": 700, "memory_allocated": 450}
    for name, found in sizes.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, found=found: found)
    assert resources.free_bytes(torch.device("cuda")) == 350


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
    ],
)
def test_errors_that_say_memory_was_short(error, short):
    assert resources.ran_out(error) is short


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
    with pytest.raises(ValueError, match="inside"), resources.own_modes(CPU):
        raise ValueError("inside")
    assert precision() == "high"


def test_number_types_are_compared_in_products_of_float32(precision, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    seen = []
    monkeypatch.setattr(resources, "faster", lambda device: seen.append(precision()) or "float32")
    resources.dtype("auto", CPU)
    assert seen == ["highest"]


@pytest.mark.skipif(not hasattr(torch.backends.mkldnn, "matmul"), reason="this torch has no fp32_precision")
def test_torchs_newer_setting_of_the_precision_counts_too():
    matmul = torch.backends.cuda.matmul
    try:
        matmul.fp32_precision = "tf32"
        with resources.own_modes(CPU):
            assert matmul.fp32_precision == "ieee"
        assert matmul.fp32_precision == "tf32"
    finally:
        torch.set_float32_matmul_precision("highest")
