"""One sweep from spec to results folder: the function that the notebook calls."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt import models, tasks, training
from fpt.errors import FptError, SpecError, WeightsError
from fpt.files import check_writable, write_atomically, write_json
from fpt.models import weights
from fpt.models.families import family
from fpt.sweeps import ledger
from fpt.sweeps.fields import canonical, with_options
from fpt.sweeps.provenance import Clock, provenance
from fpt.sweeps.selection import select
from fpt.sweeps.spec import SweepSpec
from fpt.training.recipe import ATTENTION, WEIGHTS

if TYPE_CHECKING:
    import pandas as pd

    from fpt.models.template import Template
    from fpt.tasks.arrays import Task
    from fpt.training.loop import FleetResult

CHECKPOINTS = "checkpoint"
# The fields that `prepare` may refuse: sweeps that differ in others alone are checked once.
DATA = ("task", "variant", "task_options", "batch_size")
MODEL = ("backbone", "backbone_options", "init", "trainable", "pretrained_by")
WORK = ("measures", "selection_runs", "confirmation_runs")


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


def prepare(
    spec: SweepSpec, data_dir: str | Path | None = None, folder: Path | None = None, study: Path | None = None
) -> "tuple[Task, Template]":
    """Task and template of a sweep; refuses all that can be refused before training (an FptError).

    With a folder, its disk must have room for the checkpoints. `study`: the folder of the study, where a sweep that is
    pretrained by another one finds the weights.
    """
    task = tasks.load(spec.task, data_dir, spec.variant, **spec.task_options)
    for seed in spec.selection_seeds[:1]:
        task.split(seed).batch(0, spec.batch_size)  # refuses a batch larger than the split
    options: dict[str, Any] = dict(spec.backbone_options)
    how = (spec.init, spec.trainable, spec.random_init, spec.random_gain, spec.input_init, kept_weights(spec, study))
    template = models.build(task, spec.backbone, *how, **options)
    check_measures(spec, task)
    training.check_room(template, spec.recipe, max(spec.selection_runs, spec.confirmation_runs), folder)
    return task, template


def kept_weights(spec: SweepSpec, study: Path | None) -> Path | None:
    """The file of the weights that another sweep of the study kept for this one; WeightsError where it is not."""
    if spec.pretrained_by is None:
        return None
    path = (study or Path()) / spec.pretrained_by / ledger.WEIGHTS
    if study is None or not path.is_file():
        raise WeightsError(
            f"{spec.title}: its pretrained weights are those that the sweep {spec.pretrained_by} keeps, and there is "
            f"no {path}; run that sweep of the study first, and give this one a folder of the same study"
        )
    return path


def check_measures(spec: SweepSpec, task: "Task") -> None:
    """Refuse (SpecError) what cannot be measured with this task or backbone."""
    if ATTENTION not in spec.measures:
        return
    if task.relevant is None:
        raise SpecError(f"measures: attention needs a task that says which tokens matter; {spec.task!r} does not")
    name = models.BACKBONES[spec.backbone].family
    if family(name).first_attention is None or spec.backbone_options.get("layers") == 1:
        raise SpecError(
            "measures: attention needs two layers or more, and a family that names its first attention module as "
            f"gpt2 and bert do; backbone {spec.backbone!r} is of the family {name!r}"
        )


def check_keeper(spec: SweepSpec, keeper: SweepSpec) -> None:
    """Refuse (SpecError) a sweep whose pretrained weights another backbone, or another form of it, will keep."""
    own, kept = (
        with_options(each.backbone, canonical(each.backbone_options, models.BACKBONES[each.backbone].options))
        for each in (spec, keeper)
    )
    if own != kept:
        raise SpecError(
            f"{spec.title}: it starts from the weights that {keeper.folder_name} keeps, which are of {kept}, "
            f"and its own backbone is {own}; they must be the same"
        )


def check_all(specs: Sequence[SweepSpec], study: Path) -> None:
    """Refuse before any training what would stop a sweep of the list later; downloads data that are missing.

    Raises SpecError, DataError, WeightsError, or FptError if the study's folder cannot be written.
    """
    for backbone in sorted({spec.backbone for spec in specs if spec.init != "random" and not spec.pretrained_by}):
        weights.find(backbone)
    check_writable(study)
    folders = {spec.folder_name: spec for spec in specs}
    for spec in {str([getattr(spec, name) for name in (*DATA, *MODEL, *WORK)]): spec for spec in specs}.values():
        alike = spec
        if spec.pretrained_by and not (study / spec.pretrained_by / ledger.WEIGHTS).is_file():
            # Still to be trained; weights of its own would have the same shapes.
            alike = spec.model_copy(update={"pretrained_by": None, "init": "random"})
        try:
            if spec.pretrained_by in folders:
                check_keeper(spec, folders[spec.pretrained_by])
            prepare(alike, folder=study, study=study)
        except FptError as error:
            raise type(error)(f"{error} (sweep {spec.folder_name} of {study})") from error
    if any(spec.compute_type == "auto" for spec in specs):
        import torch

        from fpt.training import resources

        # once, here: two sweeps that measured at the same time could come to different answers
        resources.dtype("auto", torch.device("cuda" if torch.cuda.is_available() else "cpu"))


def run_sweep(
    spec: SweepSpec,
    folder: Path | str | None = None,
    data_dir: str | Path | None = None,
    prepared: "tuple[Task, Template] | None" = None,
) -> Result:
    """Select the learning rate, confirm it on fresh seeds, write the folder (a fresh temporary one if None).

    prepared: what `prepare` returned for this spec, to load nothing twice. A folder that is done is read, not trained
    again; one left unfinished goes on from its last checkpoint. Raises LockedError if another process still writes it,
    or if it holds another spec.
    """
    study = None if folder is None else Path(folder).parent
    folder = Path(tempfile.mkdtemp(prefix="fpt-"), spec.folder_name) if folder is None else Path(folder)
    if ledger.read_result(folder, spec) is None:
        task, template = prepared or prepare(spec, data_dir, study=study)
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
    """Both stages, and their files; result.json is the last one."""
    clock = Clock(folder)

    def fleet(stage: str, rates: Sequence[float], seeds: Sequence[int], **how: Any) -> "FleetResult":
        how["progress"] = _progress(spec, folder, stage, len(rates) * len(seeds), clock)
        how["checkpoints"] = folder / CHECKPOINTS / stage
        return training.train_fleet(task, template, spec.recipe, rates, seeds, **how)

    fresh, measures = spec.confirmation_seeds, spec.measures
    asked = {"test_examples": spec.evaluation_examples, "asked": () if fresh else measures}
    stages = {"selection": fleet("selection", spec.learning_rates, spec.selection_seeds, **asked)}
    selection = select(stages["selection"].runs)
    rates = sorted({*spec.reference_rates} | ({selection.rate} if selection.rate else set()))
    if rates and fresh:
        kept = WEIGHTS in measures and selection.rate
        keep = (selection.rate, fresh[0], folder / ledger.WEIGHTS) if kept else None
        stages["confirmation"] = fleet("confirmation", rates, fresh, asked=measures, keep=keep)
    for name in ("runs", "curves", "attention"):
        frames = {stage: getattr(result, name) for stage, result in stages.items()}
        if frames := {stage: frame for stage, frame in frames.items() if frame is not None}:
            write_atomically(folder / f"{name}.parquet", parquet(_stacked(spec, frames)))
    write_json(folder / ledger.RESULT, provenance(spec, selection, task, template, stages, clock))
    (folder / ledger.PROGRESS).unlink(missing_ok=True)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)  # a leftover costs nothing but room


def _stacked(spec: SweepSpec, frames: "dict[str, pd.DataFrame]") -> "pd.DataFrame":
    """One table of all stages, the name of sweep and stage in front."""
    import pandas as pd

    for stage, frame in frames.items():
        frame.insert(0, "stage", stage)
        frame.insert(0, "sweep", spec.folder_name)
    return pd.concat(list(frames.values()), ignore_index=True)


def parquet(frame: "pd.DataFrame") -> bytes:
    """The table as parquet: equal tables give equal bytes, whatever the clock and the machine."""
    return frame.to_parquet(engine="pyarrow", index=False, compression="zstd")


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
