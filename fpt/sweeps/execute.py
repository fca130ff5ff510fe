"""One sweep from spec to results folder: the function that the notebook calls."""

import importlib.metadata
import io
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt import models, tasks, training
from fpt.errors import FptError
from fpt.files import write_atomically, write_json
from fpt.models import weights
from fpt.sweeps import ledger
from fpt.sweeps.selection import Selection, select
from fpt.sweeps.spec import PROTOCOL, SweepSpec

if TYPE_CHECKING:
    import pandas as pd

    from fpt.models.transfer import Template
    from fpt.tasks.arrays import Task
    from fpt.training.loop import FleetResult

LIBRARIES = ("fpt", "torch", "transformers", "numpy", "pandas", "pyarrow")
CHECKPOINTS = "checkpoint"
DECIDES = (":/fpt", ":/notebooks")  # uncommitted changes elsewhere in a checkout do not change results


@dataclass(frozen=True)
class Result:
    """A finished sweep as it lies in its folder: tidy runs and curves, and what result.json records."""

    spec: SweepSpec
    folder: Path
    runs: "pd.DataFrame"
    curves: "pd.DataFrame"
    info: dict[str, Any]

    @property
    def selected_rate(self) -> float | None:
        rate = self.info["selected_rate"]
        return None if rate is None else float(rate)


def prepare(spec: SweepSpec, data_dir: str | Path | None = None, folder: Path | None = None) -> "tuple[Task, Template]":
    """Task and template of a sweep; refuses all that can be refused before training (an FptError).

    With a folder, its disk must have room for the checkpoints.
    """
    task = tasks.load(spec.task, data_dir, spec.variant, **spec.task_options)
    for seed in spec.selection_seeds[:1]:
        task.split(seed).batch(0, spec.batch_size)  # refuses a batch larger than the split
    template = models.build(
        task,
        spec.backbone,
        spec.init,
        spec.trainable,
        spec.random_init,
        spec.random_gain,
        **spec.backbone_options,
    )
    training.check_room(template, spec.recipe, max(spec.selection_runs, spec.confirmation_runs), folder)
    return task, template


def check_all(specs: Sequence[SweepSpec], study: Path) -> None:
    """Refuse before any training what would stop a sweep of the list later; downloads data that are missing.

    Raises SpecError, DataError, WeightsError, or FptError if the study's folder cannot be written.
    """
    for backbone in sorted({spec.backbone for spec in specs if spec.init == "pretrained"}):
        models.find_weights(backbone)
    try:
        with tempfile.TemporaryFile(dir=study) as file:
            file.write(b"0")
    except OSError as error:
        raise FptError(f"{study} cannot be written: {error.strerror}") from None
    needs = (
        "task",
        "variant",
        "task_options",
        "batch_size",
        "backbone",
        "backbone_options",
        "init",
        "trainable",
        "selection_runs",
        "confirmation_runs",
    )
    distinct = {str([getattr(spec, name) for name in needs]): spec for spec in specs}
    for spec in distinct.values():
        try:
            prepare(spec, folder=study)
        except FptError as error:
            raise type(error)(f"{error} (sweep {spec.folder_name} of {study})") from error
    if any(spec.compute_type == "auto" for spec in specs):
        import torch

        from fpt.training import precision

        # once, here: two sweeps that measured at the same time could come to different answers
        precision.resolve("auto", torch.device("cuda" if torch.cuda.is_available() else "cpu"))


def run_sweep(spec: SweepSpec, folder: Path | str | None = None, data_dir: str | Path | None = None) -> Result:
    """Select the learning rate, confirm it on fresh seeds, write the folder (a fresh temporary one if None).

    A folder that is done is read, not trained again; one left unfinished goes on from its last checkpoint. Raises
    LockedError if another process still writes it, or if it holds another spec.
    """
    folder = Path(tempfile.mkdtemp(prefix="fpt-")) if folder is None else Path(folder)
    if ledger.read_result(folder, spec) is None:
        task, template = prepare(spec, data_dir)
        with ledger.hold(folder / ledger.LOCK, spec):
            if ledger.read_result(folder, spec) is None:  # another process may have finished it meanwhile
                _train(spec, folder, task, template)
    return read(spec, folder)


def read(spec: SweepSpec, folder: Path) -> Result:
    """The finished sweep in `folder`."""
    import pandas as pd

    info = ledger.read_result(folder, spec)
    if info is None:
        raise FileNotFoundError(f"{folder} holds no finished sweep {spec.hash}")
    runs, curves = (pd.read_parquet(folder / f"{name}.parquet") for name in ("runs", "curves"))
    return Result(spec, folder, runs, curves, info)


def _train(spec: SweepSpec, folder: Path, task: "Task", template: "Template") -> None:
    clock = Clock(folder)
    stages: dict[str, FleetResult] = {}

    def fleet(stage: str, rates: Sequence[float], seeds: Sequence[int], test_examples: int | None) -> None:
        stages[stage] = training.train_fleet(
            task,
            template,
            spec.recipe,
            rates,
            seeds,
            test_examples=test_examples,
            progress=_progress(spec, folder, stage, len(rates) * len(seeds), clock),
            checkpoints=folder / CHECKPOINTS / stage,
        )

    fleet("selection", spec.learning_rates, spec.selection_seeds, spec.evaluation_examples)
    selection = select(stages["selection"].runs)
    rates = sorted({*spec.reference_rates} | ({selection.rate} if selection.rate else set()))
    if rates and spec.confirmation_seeds:
        fleet("confirmation", rates, spec.confirmation_seeds, None)
    for name in ("runs", "curves"):
        frames = {stage: getattr(result, name) for stage, result in stages.items()}
        write_atomically(folder / f"{name}.parquet", parquet(_stacked(spec, frames)))
    info = _provenance(spec, selection, task, stages["selection"])
    info["fleets"] = {stage: result.parts for stage, result in stages.items()}  # split where memory was short
    info["compiled"] = {stage: result.compiled for stage, result in stages.items()}
    info |= {"started_utc": clock.started_utc, "finished_utc": now(), "wall_seconds": round(clock.seconds, 1)}
    write_json(folder / ledger.RESULT, info)  # last: from here on the sweep is done
    (folder / ledger.PROGRESS).unlink(missing_ok=True)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)  # a leftover costs nothing but room


class Clock:
    """When a sweep was started first, and the seconds of work on it, also those of a process that was killed."""

    def __init__(self, folder: Path) -> None:
        before = ledger.read_json(folder / ledger.PROGRESS) or {}
        self.started_utc = str(before.get("started_utc", now()))
        self._began = time.perf_counter() - float(before.get("seconds", 0))

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _stacked(spec: SweepSpec, frames: "dict[str, pd.DataFrame]") -> "pd.DataFrame":
    """One table of all stages, rows in an order that does not depend on how the fleet was split."""
    import pandas as pd

    labelled = []
    for stage, frame in frames.items():
        keys = [name for name in ("learning_rate", "seed", "step") if name in frame]
        frame = frame.sort_values(keys, ignore_index=True)
        frame.insert(0, "stage", stage)
        frame.insert(0, "sweep", spec.folder_name)
        labelled.append(frame)
    return pd.concat(labelled, ignore_index=True)


def parquet(frame: "pd.DataFrame") -> bytes:
    """The table as parquet: equal tables give equal bytes, whatever the clock and the machine."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, engine="pyarrow", index=False, compression="zstd")
    return buffer.getvalue()


def _progress(spec: SweepSpec, folder: Path, stage: str, runs: int, clock: Clock) -> Callable[[int, int], None]:
    """A callback that keeps progress.json up to date, counted in run-steps over both stages."""
    first = spec.selection_runs
    before, total = (0, first + spec.confirmation_runs) if stage == "selection" else (first, first + runs)

    def write(step: int, steps: int) -> None:
        done = before * steps + runs * step
        content = {
            "stage": stage,
            "step": step,
            "steps": steps,
            "run_steps": done,
            "run_steps_total": total * steps,
            "started_utc": clock.started_utc,
            "seconds": round(clock.seconds, 1),
        }
        write_json(folder / ledger.PROGRESS, content)

    write(0, spec.steps)
    return write


def _provenance(spec: SweepSpec, selection: Selection, task: "Task", fleet: "FleetResult") -> dict[str, Any]:
    chosen = asdict(selection)
    return {
        "spec": spec.resolved() | {"arm": spec.arm},
        "hash": spec.hash,
        "protocol": PROTOCOL,
        "selected_rate": chosen.pop("rate"),
        **chosen,
        "data_checksum": task.checksum,
        "weights_checksum": weights.checksum(spec.backbone) if spec.init == "pretrained" else None,
        "compute_type": fleet.compute_type,
        "threads": fleet.threads,
        "device": device_name(fleet.device),
        **software(),
    }


def software() -> dict[str, Any]:
    """What computed: version of fpt, commit (None outside a checkout), versions of the libraries."""
    versions = {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES[1:]}}
    return {"version": _version("fpt"), "git": git_state(), "versions": versions}


def device_name(device: str) -> str:
    """The model of the processor or GPU: never the name of the host."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def git_state() -> dict[str, Any] | None:
    """Commit and whether tracked files differ from it; None outside a checkout of this package."""
    package = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(package), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != package.parent:
            return None  # installed inside somebody else's checkout
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain", "-uno", "--", *DECIDES))}
    except (OSError, subprocess.SubprocessError):
        return None
