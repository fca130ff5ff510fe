"""How fast: fleets beside the reference (fpt.training.reference), and both beside what the device can do.

The unit is run-steps per second: steps x runs / wall seconds. Both sides of a cell run in one process, by turns, and
the ratio is that of their medians over the rounds. Nothing is downloaded: data are stood in for in their shape
(fpt.sweeps.flop); weights are random unless the cell says pretrained.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import psutil
import torch

from fpt import models
from fpt.errors import FptError, SpecError
from fpt.files import write_json
from fpt.sweeps import speeds
from fpt.sweeps.engines.local import KEEP_MEMORY
from fpt.sweeps.flop import needed_flop, shaped_task
from fpt.sweeps.provenance import device_name, software
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.training import features, resources
from fpt.training.evaluate import score
from fpt.training.fleet import Fleet, stack
from fpt.training.reference import COMPARABLE, Reference

T = TypeVar("T")
# The words of a cell, BACKBONE/TASK[:VARIANT]/ARM/RUNS, each with its alternatives; a fleet that does not fit in
# memory is cut to what does.
SHORT = "bit-xor mnist:released mnist digits-lra cifar10 bit-memory"  # 10, 49, 64, 64, 64, 120 tokens; digits: 16
LONG = "listops:released cifar10-lra listops"  # 512, 1,024, 2,000
QUICK = (("tiny-lm", "digits", "21 3"), ("tiny-lm", "mnist", "21"))
ON_CPU = (("tiny-lm", "digits", "21 9 3 1"), ("tiny-lm", f"{SHORT} {LONG}", "21"), ("gpt2", "mnist bit-xor", "9"),
          ("minilm lstm", "mnist", "9"))  # fmt: skip
OUTPUT_ONLY = "gpt2/mnist/output-random/9"  # on features that are computed once
ON_GPU = (("tiny-lm", "digits", "21"), ("gpt2", "mnist", "9 3 1"), ("gpt2", f"digits {SHORT} {LONG}", "27"))


def cells(quick: bool, cuda: bool) -> list[str]:
    """The cells of a whole bench of this kind of device, or of the short one."""
    words = [(b, t, r) for several, some, runs in (QUICK if quick else ON_GPU if cuda else ON_CPU)
             for b in several.split() for t in some.split() for r in runs.split()]  # fmt: skip
    arms = ("frozen-random", "unfrozen-random")
    return [f"{b}/{t}/{arm}/{r}" for b, t, r in words for arm in arms] + ([] if quick else [OUTPUT_ONLY])


def cell(text: str) -> SweepSpec:
    """BACKBONE/TASK[:VARIANT]/ARM/RUNS as the grid of a sweep. Raises SpecError for what does not exist."""
    if not re.fullmatch(r"[^/]+/[^/]+/[^/]+/0*[1-9][0-9]{0,3}", text):
        example = "tiny-lm/digits/frozen-random/21"
        raise SpecError(f"cell {text!r}: must be BACKBONE/TASK[:VARIANT]/ARM/RUNS, as in {example} (fpt bench)")
    backbone, task, arm, runs = text.split("/")
    name, _, variant = task.partition(":")
    seeds = 3 if int(runs) % 3 == 0 and int(runs) > 3 else 1
    rates = [1e-6 * (1 + number) for number in range(int(runs) // seeds)]  # small: no run diverges
    fields: dict[str, Any] = {"backbone": backbone, "task": name, "variant": variant or "paper", "arm": arm}
    # cached features are those of a model without dropout
    fields |= {"dropout": 0.0} if arm.startswith("output-") else {}
    return resolve(fields | {"learning_rates": rates, "selection_seeds": list(range(seeds))}, f"cell {text!r}")


def measure(spec: SweepSpec, rounds: int = 5, seconds: float = 2.0, compared: bool = True) -> dict[str, Any]:
    """One row: the fleet of the spec's selection stage beside the reference, in turns of about `seconds`.

    `seconds`, `reference_seconds`: of a run-step; `evaluation_seconds`: of an example and run; `ratios`: of each
    round; `steps`: that were timed. A row that is not `compared`, or whose backbone is of a family that the reference
    does not run, has no reference and no ratio. Raises FptError where not even one run fits in memory.
    """
    compared = compared and models.BACKBONES[spec.backbone].family in COMPARABLE
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    task, held, inputs = shaped_task(spec)
    options: dict[str, Any] = dict(spec.backbone_options)
    template = models.build(task, spec.backbone, spec.init, spec.trainable, "matched", 1.0, **options)
    rates, seeds = resources.split(
        template, spec.recipe, list(spec.learning_rates), list(spec.selection_seeds), device
    )[0]
    with peak_memory(device) as peak:
        fleet = features.fleet(task, template, spec.recipe, rates, seeds, device)
        numbers, runs = count(1), len(rates) * len(seeds)
        sides: list[Callable[[], object]] = [lambda: fleet.step(next(numbers))]
        once = [[clock(sides[0], 1, device) for _ in range(2)][1]]  # the first step prepares
    if compared:
        sides.append(Reference(template, spec.recipe, rates[0], seeds[0], device).step)
        once.append([clock(sides[1], 1, device) for _ in range(2)][1])
    counts = [max(1, min(200, round(seconds / each))) for each in once]
    turns = [[clock(side, many, device) for side, many in zip(sides, counts, strict=True)] for _ in range(rounds)]
    own, *other = (median(times) for times in zip(*turns, strict=True))
    row = {"arm": spec.arm, **speeds.cost_of(spec), "tokens": task.tokens, "runs": runs, "inputs": inputs, "held": held}
    row |= {"compute_type": str(fleet.compute_type).removeprefix("torch."), "threads": torch.get_num_threads()}
    row |= {"steps": rounds * counts[0], "seconds": own / runs, "evaluation_seconds": evaluation_seconds(fleet)}
    row |= {"peak_gib": round(peak[0] / 2**30, 3), "flop": needed_flop(template, spec.batch_size)}
    row |= {"trainable_parameters": fleet.parameters.shape[1]}
    ratios = [round(runs * turn[1] / turn[0], 2) for turn in turns] if compared else []
    return row | (
        {"reference_seconds": other[0], "ratio": round(runs * other[0] / own, 2), "ratios": ratios} if compared else {}
    )


@contextmanager
def peak_memory(device: torch.device) -> Iterator[list[int]]:
    """Yields a list whose one entry, at the end, is the most memory that what ran inside held at once, in bytes.

    On a GPU torch.cuda.max_memory_allocated; on a CPU the largest resident memory of this process, sampled every 5 ms,
    less what was resident before. `fpt bench` gives every cell a fresh process, so nothing freed earlier is reused.
    """
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
    if device.type == "cuda":  # since the process began: it measures one cell
        found[0] = torch.cuda.max_memory_allocated(device)


def clock(call: Callable[[], object], count: int, device: torch.device) -> float:
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


def ceiling(seconds: float) -> dict[str, Any]:
    """The device, and the best that it was seen to do in turns of `seconds`: FLOP per second of square products in
    float32 and bfloat16, bytes per second (read and written) of a copy."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size, length = (8192, 2**30) if device.type == "cuda" else (2048, 2**27)

    def best(call: Callable[[], object]) -> float:
        return min(clock(call, 1, device) for _ in range(max(3, min(50, round(seconds / clock(call, 1, device))))))

    found = {}
    for name, kind in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        square, out = (torch.ones(size, size, dtype=kind, device=device) for _ in range(2))
        found[f"{name}_flop_per_second"] = 2 * size**3 / best(partial(torch.mm, square, square, out=out))
    source, target = (torch.ones(length // 4, device=device) for _ in range(2))
    found["bytes_per_second"] = 2 * length / best(partial(target.copy_, source))
    name = device_name(device.type)
    slug = "-".join(re.findall(r"[a-z0-9]+", re.sub(r"nvidia|geforce|tesla", "", name.lower())))
    kind_of_device = slug if device.type == "cuda" else "cpu"
    return {"device": name, "kind": kind_of_device, "threads": torch.get_num_threads(), "ceiling": found}


def apart(call: Callable[..., T], *arguments: Any) -> T:
    """`call` in a fresh process: nothing of an earlier cell is left there, and running out of memory ends only it.

    Memory is kept as in the worker of a sweep. Raises FptError where the process was killed.
    """
    os.environ.update(KEEP_MEMORY)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(call, *arguments).result()
        except (BrokenProcessPool, torch.OutOfMemoryError) as error:
            raise FptError(f"not measured, probably for want of memory: {error}") from None


def attempt(spec: SweepSpec, effort: tuple[int, float], told: Callable[[str], None]) -> dict[str, Any] | None:
    """The row of a cell, with half the learning rates, and half again, where it fails; None where one does, too."""
    try:
        return apart(measure, spec, *effort)
    except FptError as error:
        told(str(error))
    half = spec.learning_rates[: len(spec.learning_rates) // 2]
    return attempt(spec.model_copy(update={"learning_rates": half}), effort, told) if half else None


def bench(names: Sequence[str], quick: bool, runs: Path, told: Callable[[str], None]) -> speeds.Bench:
    """Measure the cells (all of this device's where none is named), and write runs/bench/KIND.json after each.

    Rows that the same code measured on the same device before are kept, others are dropped. A cell for which memory
    does not suffice is told, and measured with fewer runs or left out. Raises SpecError for a bad cell, before anything
    is measured, and DataError where the file that is there is not of `fpt bench`.
    """
    wanted = {name: cell(name) for name in names}
    result = {**apart(ceiling, 0.3 if quick else 1.0), **software(), "rows": []}
    path = runs / speeds.FOLDER / f"{result['kind']}.json"
    path.parent.mkdir(exist_ok=True)
    before = speeds.read(path) if path.is_file() else result
    if all(before.get(k) == result[k] for k in ("device", "threads", "git", "version", "versions")):
        changed = (result["git"] or {}).get("dirty", False)  # then nobody knows what the code was
        result["rows"] = [] if changed else before["rows"]
    result["measured_utc"] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    wanted = wanted or {name: cell(name) for name in cells(quick, result["kind"] != "cpu")}
    for number, (name, spec) in enumerate(wanted.items(), start=1):
        told(f"{number} of {len(wanted)}: {name}")
        row = attempt(spec, (3, 0.5) if quick else (5, 2.0), told)
        if row is None:
            continue
        rate = result["ceiling"][f"{row['compute_type']}_flop_per_second"]
        row |= {"utilisation": round(row["flop"] / row["seconds"] / rate, 4)}
        same = [*speeds.COST, "arm", "runs"]
        result["rows"] = [old for old in result["rows"] if any(old[k] != row[k] for k in same)] + [row]
        write_json(path, result)
    return result
