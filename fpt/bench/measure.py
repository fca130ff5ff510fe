"""Speed: fleets against the reference (fpt.bench.reference), and both against what the device can do.

The unit is run-steps per second: steps x runs / wall seconds. Both sides of a cell run in one process, by turns, and
the ratio is that of their medians over the rounds. Weights are random unless the cell says pretrained.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import count, product
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar
from unittest.mock import patch

import numpy as np
import psutil
import torch

from fpt import models, tasks
from fpt.bench.cost import FOLDER, Bench, Ceiling, Measurement, Workload, read
from fpt.bench.reference import Reference, comparable
from fpt.bench.step import step_cost
from fpt.errors import DataError, FptError, SpecError
from fpt.files import check_writable, write_json
from fpt.models import layers
from fpt.sweeps.provenance import device_name, now, software
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.sweeps.words import title
from fpt.tasks.task import Task
from fpt.training import features, memory
from fpt.training.evaluate import score
from fpt.training.fleet import Fleet, stack
from fpt.training.libraries import faster_libraries
from fpt.training.loop import find_device

T = TypeVar("T")
Call = Callable[[], object]
# The words of a cell, BACKBONE[:LAYERS]/TASK[:VARIANT]/ARM/RUNS[/HOW], each with its alternatives; a fleet that does
# not fit in memory is cut to what does. HOW: a number type (else the faster one), compiled, or both joined by +.
CELL = re.compile(
    r"(?P<backbone>[^/:]+)(:(?P<layers>[1-9][0-9]?))?/(?P<task>[^/]+)/(?P<arm>[^/]+)/(?P<runs>0*[1-9][0-9]{0,3})"
    r"(/((?P<type>float32|bfloat16)(\+compiled)?|compiled))?"
)
SHORT = "bit-xor mnist:released mnist digits-lra cifar10 bit-memory"  # 10, 49, 64, 64, 64, 120 tokens; digits: 16
LONG = "listops:released cifar10-lra listops"  # 512, 1,024, 2,000
QUICK = (("tiny-lm", "digits", "21 3"), ("tiny-lm", "digits-lra", "21"))
ON_CPU = (
    ("tiny-lm", "digits", "21 9 3 1 21/float32 21/compiled 21/float32+compiled"),
    ("gpt2", "mnist bit-xor", "9"),
    ("tiny-lm", f"{SHORT} {LONG}", "21"),
    ("gpt2", "mnist", "9/compiled"),
    ("minilm:2", "mnist", "9 9/float32"),
    ("minilm lstm", "mnist", "9"),
)
IMAGES = {"mnist": ((60_000, 10_000), (28, 28)), "cifar10": ((50_000, 10_000), (32, 32, 3))}  # train and test
OUTPUT_ONLY = "gpt2/mnist/output-random/9"  # on features that are computed once
ON_GPU = (("tiny-lm", "digits", "21"), ("gpt2", "mnist", "9 3 1"), ("gpt2", f"digits {SHORT} {LONG}", "27"))


def cells(quick: bool, cuda: bool) -> list[str]:
    """The cells of a whole bench of this kind of device, or of the short one."""
    blocks: Sequence[tuple[str, str, str]] = ON_GPU if cuda else ON_CPU
    if quick:
        blocks = QUICK
    words = [cell for block in blocks for cell in product(*map(str.split, block))]
    arms = ("frozen-random", "unfrozen-random")
    return [f"{b}/{t}/{arm}/{r}" for b, t, r in words for arm in arms] + ([] if quick else [OUTPUT_ONLY])


def cell(text: str) -> SweepSpec:
    """The words of a cell as the grid of a sweep. Raises SpecError for what does not exist."""
    words = CELL.fullmatch(text)
    if words is None:
        form = "BACKBONE[:LAYERS]/TASK[:VARIANT]/ARM/RUNS[/HOW]"
        example = "tiny-lm/digits/frozen-random/21 or minilm:2/mnist/unfrozen-random/9/float32+compiled"
        raise SpecError(f"cell {text!r}: must be {form}, as in {example} (fpt bench)")
    name, _, variant = words["task"].partition(":")
    runs = int(words["runs"])
    seeds = 3 if runs % 3 == 0 and runs > 3 else 1
    fields: dict[str, Any] = {
        "backbone": words["backbone"],
        "task": name,
        "variant": variant or "paper",
        "arm": words["arm"],
        "compute_type": words["type"] or "auto",
        "learning_rates": [1e-6 * (1 + number) for number in range(runs // seeds)],  # small: no run diverges
        "seeds": list(range(seeds)),
    }
    if words["layers"]:
        fields["backbone_options"] = {"layers": int(words["layers"])}
    if words["arm"].startswith("output-"):
        fields["dropout"] = 0.0  # cached features are those of a model without dropout
    return resolve(fields, f"cell {text!r}")


def measure(spec: SweepSpec, rounds: int, seconds: float, compared: bool = True, compiled: bool = False) -> Measurement:
    """The fleet of the spec's grid beside the reference, in turns of about `seconds`.

    A row that is not `compared`, or whose arm, task or family of backbones the reference does not run, has no reference
    and no ratio. Raises FptError where not even one run fits in memory.
    """
    device = find_device()
    workload, recipe = Workload.of(spec), spec.recipe
    task, inputs = load(spec)
    template = models.build(task, spec.means.backbone, spec.init, spec.trainable, **spec.model_options)
    rates, seeds = memory.split(template, recipe, list(spec.learning_rates), list(spec.seeds), device)[0]
    runs, steps = len(rates) * len(seeds), count(1)
    flop = step_cost(template, recipe).flop
    with peak_memory(device) as peak:
        fleet = features.fleet(task, template, recipe, rates, seeds, device, compiled)
        sides: list[Call] = [lambda: fleet.step(next(steps))]
        for _ in range(2):  # the optimizer's moments are there from the second on
            sides[0]()
    if compared and comparable(template):
        sides.append(Reference(template, recipe, rates[0], seeds[0], device).step)
    turns = in_turns(sides, rounds, seconds, device)
    fleet_time, *reference_time = (median(times) for times in zip(*turns, strict=True))
    split = fleet.splits[0]
    return Measurement(
        **workload.model_dump(),
        arm=spec.arm,
        inputs=inputs,
        compiled=fleet.compiled,
        compute_type=str(fleet.compute_type).removeprefix("torch."),
        tokens=task.tokens,
        runs=runs,
        held=(len(split.validation), len(split.test)),
        seconds=fleet_time / runs,
        evaluation_seconds=evaluation_seconds(fleet),
        peak_gib=round(peak[0] / 2**30, 3),
        flop=flop,
        reference_seconds=reference_time[0] if reference_time else None,
        ratios=[round(runs * turn[1] / turn[0], 2) for turn in turns] if reference_time else [],
    )


def load(spec: SweepSpec) -> tuple[Task, Literal["real", "random"]]:
    """The spec's task; where the files of MNIST or CIFAR-10 are missing, on random images, as many and of the same
    shape: that takes the same time. Raises DataError where other data are missing."""
    options: dict[str, Any] = dict(spec.task_options)
    try:
        return models.load_task(spec.task, spec.means.backbone, None, spec.variant, **options), "real"
    except DataError:
        name = spec.task.partition("-")[0]
        if name not in IMAGES:
            raise
    (train, test), shape = IMAGES[name]
    arrays: dict[str, Any] = {}
    source = np.random.default_rng(0)
    for part, size in (("train", train), ("test", test)):
        arrays[f"x_{part}"] = source.integers(0, 256, (size, *shape), dtype=np.uint8)
        arrays[f"y_{part}"] = np.arange(size, dtype=np.uint8) % 10
    with TemporaryDirectory() as folder:
        np.savez(Path(folder, f"{name}.npz"), **arrays)
        return tasks.load(spec.task, folder, spec.variant, **options), "random"


def in_turns(calls: Sequence[Call], rounds: int, seconds: float, device: torch.device) -> list[list[float]]:
    """Seconds that each of the calls takes, one list per round; a turn repeats one call for about `seconds`."""
    for call in calls:  # the first one prepares
        call()
    counts = [max(1, min(200, round(seconds / clock(call, 1, device)))) for call in calls]
    found = []
    for _ in range(rounds):
        found.append([clock(call, times, device) for call, times in zip(calls, counts, strict=True)])
    return found


@contextmanager
def peak_memory(device: torch.device) -> Iterator[list[int]]:
    """Yields a list whose one entry, at the end, is the most memory that what ran inside held at once, in bytes.

    On a GPU torch.cuda.max_memory_allocated; on a CPU the largest resident memory of this process, sampled every 5 ms,
    less what was resident before. `fpt bench` gives every cell a fresh process, so nothing freed earlier is reused.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    stop, process = threading.Event(), psutil.Process()
    found, before = [0], process.memory_info().rss

    def watch() -> None:
        while not stop.wait(0.005):
            found[0] = max(found[0], process.memory_info().rss - before)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        stop.set()
        watcher.join()
    if device.type == "cuda":
        found[0] = torch.cuda.max_memory_allocated(device)


def clock(call: Call, count: int, device: torch.device) -> float:
    """Seconds a call over `count` of them, the device's queue emptied before and after."""

    def now() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    start = now()
    for _ in range(count):
        call()
    return (now() - start) / count


def evaluation_seconds(fleet: Fleet) -> float:
    """Seconds that evaluating one example takes for one run."""
    examples = stack([split.test_sample(max(4, min(128, 8192 // fleet.task.tokens))) for split in fleet.splits])
    times = [clock(partial(score, fleet, fleet.parameters, examples), 1, fleet.device) for _ in range(4)]
    return median(times[1:]) / examples.targets.shape[1] / len(fleet.parameters)


def product_rate(kind: torch.dtype, device: torch.device, seconds: float) -> float:
    """FLOP a second of the best large square product in a number type, of those in so many seconds, three at least."""
    size = 8192 if device.type == "cuda" else 2048
    product = square_product(size, kind, device)
    product()  # the first one also starts the library, which takes longer than it does
    times = max(3, min(50, round(seconds / clock(product, 1, device))))
    return 2 * size**3 / min(clock(product, 1, device) for _ in range(times))


def square_product(size: int, kind: torch.dtype, device: torch.device) -> Call:
    """The product of a matrix (size, size) with its transpose, computed as in a fleet."""
    square = torch.ones(size, size, dtype=kind, device=device)
    return partial(layers.product, square, square, kind)


def ceiling(seconds: float) -> Bench:
    """A bench without rows: the device, what computes, and the best rates of square products in turns of `seconds`."""
    device = find_device()
    kinds = {name: getattr(torch, name) for name in ("float32", "bfloat16")}
    rates = {f"{name}_flop_per_second": product_rate(kind, device, seconds) for name, kind in kinds.items()}
    name, threads = device_name(device.type), torch.get_num_threads()
    slug = "-".join(re.findall(r"[a-z0-9]+", re.sub(r"nvidia|geforce|tesla", "", name.lower())))
    kind = slug if device.type == "cuda" else "cpu"
    made = {"measured_utc": now(), **software()}
    return Bench(device=name, kind=kind, threads=threads, ceiling=Ceiling(**rates), rows=[], **made)


def _end_with_parent() -> None:
    """A process that measures ends when `fpt bench` is killed: its memory and its core are wanted by others."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    if parent := parent_process():
        wait([parent.sentinel])  # ready when the parent has ended, however it did
        os._exit(1)


def apart(call: Callable[[], T], wide: bool = True) -> T:
    """`call` in a fresh process: nothing of an earlier cell is left there, and running out of memory ends only it.

    Its environment is that of the worker of a sweep. But where products are in bfloat16, in which MKL has no part, and
    so not `wide`, nothing is preloaded: the released code would have nothing preloaded either. Raises FptError where
    the process was killed.
    """
    environment = faster_libraries() | ({} if wide else {"LD_PRELOAD": ""})
    with (
        patch.dict(os.environ, environment),
        ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool,
    ):
        try:
            return pool.submit(call).result()
        except (RuntimeError, MemoryError) as error:
            # A broken pool is a RuntimeError, and so is a full memory on a CPU.
            if not isinstance(error, BrokenProcessPool) and not memory.ran_out(error):
                raise
            raise FptError(f"not measured, probably for want of memory: {error}") from None


def bench(names: Sequence[str], quick: bool, runs: Path, log: Callable[[str], None]) -> Bench:
    """Measure the cells (all of this device's where none is named), and write runs/bench/KIND.json after each.

    Rows that the same code measured on the same device before are kept, others are dropped. A cell for which memory
    does not suffice is logged and left out. Raises, before anything is measured, SpecError for a bad cell and FptError
    for a folder that cannot be written; DataError where the file that is there is not of `fpt bench`.
    """
    wanted = [(name, cell(name)) for name in names]
    check_writable(runs / FOLDER if (runs / FOLDER).exists() else runs)
    rounds, seconds = (3, 0.5) if quick else (5, 2.0)
    result = apart(partial(ceiling, seconds / 2))
    path = runs / FOLDER / f"{result.kind}.json"
    rows = read(path).rows_like(result) if path.is_file() else []
    wanted = wanted or [(name, cell(name)) for name in cells(quick, result.kind != "cpu")]
    compiled = [(name, spec, {"compiled": name.endswith("compiled")}) for name, spec in wanted]
    for row in _each_apart(compiled, rounds, seconds, log):
        rows = [old for old in rows if old.key != row.key] + [row]
        path.parent.mkdir(exist_ok=True)
        write_json(path, result.model_copy(update={"rows": rows}).model_dump(mode="json"))
        log(f"written: {path}")
    return result.model_copy(update={"rows": rows})


def measure_here(specs: Sequence[SweepSpec], log: Callable[[str], None]) -> list[Measurement]:
    """Rows made here and now, one for each workload of `specs`, with random weights. A workload for which memory does
    not suffice is logged and left out."""
    of_workloads = {Workload.of(spec): spec for spec in specs}.values()
    alone = [
        (title(spec), spec.changed(init="random", pretrained_by=None), {"compared": False}) for spec in of_workloads
    ]
    return list(_each_apart(alone, 3, 0.5, log))


def _each_apart(
    wanted: Sequence[tuple[str, SweepSpec, dict[str, bool]]], rounds: int, seconds: float, log: Callable[[str], None]
) -> Iterator[Measurement]:
    """What `measure` finds of every spec, by title, called in this way. One that cannot be measured is logged
    instead."""
    for number, (name, spec, how) in enumerate(wanted, start=1):
        log(f"{number} of {len(wanted)}: {name}")
        try:
            yield apart(partial(measure, spec, rounds, seconds, **how), wide=spec.compute_type == "float32")
        except FptError as error:
            log(str(error))
