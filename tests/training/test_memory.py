"""Memory: what a fleet is predicted to take, what is free, and the fleets that fit."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from small_models import short_recipe as recipe

import fpt.models
from fpt.errors import FptError, SpecError
from fpt.training import loop, memory, train_fleet
from fpt.training.libraries import faster_libraries

CPU = torch.device("cpu")
RATES, SEEDS = [1e-3, 1e-2], [0, 5]


@pytest.fixture
def free(monkeypatch):
    """Sets the bytes of which a fleet may take all."""
    monkeypatch.setattr(memory, "SHARE", 1.0)
    return lambda count: monkeypatch.setattr(memory, "free_bytes", lambda _: count)


def test_fleets_that_do_not_fit_are_split_and_say_so(digits, small_backbones, free):
    template, dropping = fpt.models.build(digits, "small-gpt2", "random"), recipe(dropout=0.1)
    seed, run = memory.seed_bytes(template, dropping), memory.run_bytes(template, dropping)
    by_seed = [(RATES, [one]) for one in SEEDS]
    alone = [([rate], [one]) for one in SEEDS for rate in RATES]
    for bytes_free, parts in (
        (2 * (seed + 2 * run), [(RATES, SEEDS)]),
        (2 * (seed + 2 * run) - 1, by_seed),
        (seed + 2 * run - 1, alone),
    ):
        free(bytes_free)
        assert memory.split(template, dropping, RATES, SEEDS, CPU) == parts
    free(seed + run - 1)
    with pytest.raises(FptError, match=r"needs about .* GiB.*may be used"):
        train_fleet(digits, template, dropping, RATES, SEEDS)


def test_on_a_gpu_what_all_runs_share_is_a_copy_more(digits, small_backbones, free):
    """Frozen pretrained tensors, and the module itself, whose values mean nothing; in main memory both are there."""
    template = fpt.models.build(digits, "small-gpt2")
    fleet = loop.Fleet(digits, template, recipe(), [1e-3], [0], CPU)
    held = [sum(tensor.nbytes for tensor in part) for part in (fleet.shared.values(), template.module.parameters())]
    assert memory.once_bytes(template) == held[0] > 0
    run, gpu = memory.run_bytes(template, recipe()), torch.device("cuda")
    free(run)
    assert memory.split(template, recipe(), [1e-3], [0], CPU) == [([1e-3], [0])]
    free(sum(held) + run)
    assert memory.split(template, recipe(), [1e-3], [0], gpu) == [([1e-3], [0])]
    free(sum(held) + run - 1)
    with pytest.raises(FptError, match="may be used"):
        memory.split(template, recipe(), [1e-3], [0], gpu)


def test_where_workers_share_the_memory_the_error_names_fewer_of_them(digits, small_backbones, free, monkeypatch):
    free(0)
    for workers, named in (("1", False), ("16", True)):
        monkeypatch.setenv("FPT_WORKERS", workers)
        with pytest.raises(FptError) as error:
            memory.split(fpt.models.build(digits, "small-gpt2"), recipe(), RATES, SEEDS, CPU)
        assert ("--threads" in str(error.value)) is named


def test_frozen_random_weights_are_counted_once_a_seed(digits, small_backbones, free):
    """As a fleet holds them; counted for every run, a frozen random arm would be split where a pretrained is not."""
    pretrained, random = (fpt.models.build(digits, "small-gpt2", init) for init in ("pretrained", "random"))
    run, rates = memory.run_bytes(pretrained, recipe()), [1e-4, 1e-3, 1e-2]
    assert memory.run_bytes(random, recipe()) == run
    assert memory.seed_bytes(pretrained, recipe()) == 0
    fleet = loop.Fleet(digits, random, recipe(), rates, SEEDS, CPU)
    held = sum(tensor.nbytes for tensor in fleet.per_seed.values())
    assert held == len(SEEDS) * memory.seed_bytes(random, recipe()) > 0
    free(held + len(rates) * len(SEEDS) * run)
    for template in (pretrained, random):
        assert memory.split(template, recipe(), rates, SEEDS, CPU) == [(rates, SEEDS)]


MEASURED = """
import sys
import torch
from fpt import models
from fpt.bench.measure import cell, peak_memory
from fpt.tasks import load
from fpt.training import memory
from fpt.training.evaluate import Best
from fpt.training.fleet import Fleet
torch.set_num_threads(1)
spec = cell(sys.argv[1])
recipe, rates, seeds = spec.recipe.model_copy(update={"compute_type": sys.argv[2]}), spec.learning_rates, spec.seeds
task = load(spec.task)
template = models.build(task, spec.backbone, spec.init, spec.trainable)
run, seed = memory.run_bytes(template, recipe), memory.seed_bytes(template, recipe)
with peak_memory(torch.device("cpu")) as peak:
    fleet = Fleet(task, template, recipe, rates, seeds, torch.device("cpu"))
    best = Best(fleet)
    for step in (1, 2):  # the optimizer's moments are there from the second on
        fleet.step(step)
print(len(seeds) * (seed + len(rates) * run) / peak[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("arm", ["frozen-random", "unfrozen-random", "lora-random"])
@pytest.mark.parametrize(("backbone", "runs"), [("tiny-lm", 21), ("minilm", 4)])
def test_memory_is_predicted_and_not_much_more_than_is_measured(backbone, runs, arm, kind):
    """Too little would end in the system's killer, were it more than the fifth of free memory that is left alone. A
    fleet of a random frozen arm takes the least of its prediction."""
    command = [sys.executable, "-c", MEASURED, f"{backbone}/digits-lra/{arm}/{runs}", kind]
    found = subprocess.run(command, env=os.environ | faster_libraries(), capture_output=True, text=True, check=True)
    assert 0.9 <= float(found.stdout) <= 1.75


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
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: SimpleNamespace(available=machine))
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    monkeypatch.delenv("FPT_WORKERS", raising=False)
    if workers:
        monkeypatch.setenv("FPT_WORKERS", str(workers))
    if container:
        most, taken, cached = container
        for name, text in (("max", most), ("current", taken), ("stat", f"active_file 40\ninactive_file {cached}")):
            (tmp_path / f"memory.{name}").write_text(f"{text}\n")
    assert memory.free_bytes(CPU) == free


@pytest.mark.parametrize("workers", ["0", "two", "-1", "1.5", ""])
def test_a_number_of_workers_that_is_none_is_refused(workers, monkeypatch):
    monkeypatch.setenv("FPT_WORKERS", workers)
    with pytest.raises(SpecError, match=f"FPT_WORKERS = '{workers}': must be a whole number from 1"):
        memory.free_bytes(CPU)


def test_memory_that_torch_keeps_on_a_gpu_is_free(monkeypatch):
    sizes = {"mem_get_info": (100, 1000), "memory_reserved": 700, "memory_allocated": 450}
    for name, found in sizes.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, found=found: found)
    assert memory.free_bytes(torch.device("cuda")) == 350


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
    assert memory.ran_out(error) is short
