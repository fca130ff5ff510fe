"""One sweep from spec to results folder: the function that the notebook calls."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpt import models, tasks, training
from fpt.errors import DataError, SpecError, WeightsError
from fpt.files import remove_partial, replaced, write_atomically, write_json
from fpt.sweeps import ledger, selection
from fpt.sweeps.provenance import Beginning, provenance
from fpt.sweeps.record import ALWAYS, RESULT, TABLES, read_table, sealed
from fpt.sweeps.spec import SweepSpec, contents_of
from fpt.sweeps.words import title
from fpt.training.recipe import KEEP_ADAPTER, KEEP_WEIGHTS, weights_file

if TYPE_CHECKING:
    import pandas as pd

    from fpt.models.template import Template
    from fpt.tasks.task import Task
    from fpt.training.loop import FleetResult, Leader
    from fpt.training.recipe import Recipe

CHECKPOINTS = "checkpoint"


@dataclass(frozen=True)
class Result:
    """A finished sweep as it lies in its folder: tidy runs and curves, and what result.json records."""

    spec: SweepSpec
    folder: Path
    runs: "pd.DataFrame"
    curves: "pd.DataFrame"
    info: dict[str, Any]


@dataclass(frozen=True)
class Prepared:
    """What a sweep is trained on and with, loaded and fitted to each other."""

    spec: SweepSpec
    task: "Task"
    template: "Template"


def prepare(spec: SweepSpec, folder: Path | None = None, study: Path | None = None) -> Prepared:
    """Task and template of a sweep; refuses all that can be refused before training (an FptError).

    With a folder, its disk must have room for the checkpoints. `study`: the folder of the study, where a sweep that is
    pretrained by another one finds the weights.
    """
    loaded = models.load_task(spec.task, spec.means.backbone, None, spec.variant, **spec.task_options)
    check_contents(spec, loaded)
    prepared = fitted(spec, loaded, kept_weights(spec, study))
    # Fleets that extend the grid are no larger than the first, whose checkpoint is gone by then; kept weights stay.
    weight_files = len(spec.learning_rates) + 2 * spec.extend if spec.keeps else 0
    training.check_room(prepared.template, spec.recipe, spec.runs, folder, weight_files)
    return prepared


def fitted(spec: SweepSpec, task: "Task", kept: Path | None, backbone: models.Backbone | None = None) -> Prepared:
    """The task as the sweep trains on it, and its template; refuses what does not fit together (an FptError).

    kept: the file of the weights that another sweep kept for this one. backbone: a smaller one of the same
    architecture, in the place of that of the spec.
    """
    task = task.shuffled() if spec.shuffle_tokens else task
    task = task.reduced(spec.data_fraction)
    task.split(spec.seeds[0]).batch(0, spec.batch_size)  # refuses a batch larger than the split
    template = models.build(
        task,
        backbone or spec.means.backbone,
        spec.init,
        spec.trainable,
        random_init=spec.random_init,
        random_gain=spec.random_gain,
        input_init=spec.input_init,
        weights=kept,
        **spec.model_options,
    )
    training.check_recipe(template, spec.recipe, spec.measures)
    return Prepared(spec, task, template)


def kept_weights(spec: SweepSpec, study: Path | None) -> Path | None:
    """The file of the weights that another sweep of the study kept for this one; WeightsError where it is not."""
    if spec.pretrained_by is None:
        return None
    path = (study or Path()) / spec.pretrained_by / ledger.KEPT_WEIGHTS
    if study is None or not path.is_file():
        raise WeightsError(
            f"{title(spec)}: its pretrained weights are those that the sweep {spec.pretrained_by} keeps, and there is "
            f"no {path}; run that sweep of the study first, and give this one a folder of the same study"
        )
    return path


def run_sweep(
    spec: SweepSpec,
    folder: Path | str | None = None,
    prepared: Prepared | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Result:
    """Train the grid, extend it until no tuned rate is its end, write the folder (a fresh temporary one if None).

    prepared: what `prepare` returned for this spec, to load nothing twice. watch(run_steps, of_all) is called while a
    fleet trains; what it raises ends the call, and the same call goes on later. A folder that is done is read, not
    trained again; one left unfinished goes on from its last checkpoint. Raises LockedError if another process still
    writes it, or if it holds another spec; SpecError for what was prepared for another spec; DataError where your
    own data changed since they were read.
    """
    if prepared:
        check_prepared(spec, prepared)
    if folder is None:
        prepared = prepared or prepare(spec)  # before there is a folder: a sweep that is refused leaves none
        folder = Path(tempfile.mkdtemp(prefix="fpt-"), spec.folder_name)
    folder = Path(folder)
    info = ledger.read_result(folder, spec)
    if info is None:
        prepared = prepared or prepare(spec, study=folder.parent)
        with ledger.hold(folder / ledger.LOCK, spec):
            # another process may have finished it meanwhile
            info = ledger.read_result(folder, spec) or _train(prepared, folder, watch)
            _clean(folder)
    elif (folder / CHECKPOINTS).exists() or (folder / ledger.PROGRESS).exists():
        with ledger.hold(folder / ledger.LOCK, spec):  # its process was killed after the result
            _clean(folder)
    runs, curves = (read_table(folder, name).copy() for name in ALWAYS)
    return Result(spec, folder, runs, curves, info)


def check_prepared(spec: SweepSpec, prepared: Prepared) -> None:
    """Refuse (SpecError) what was prepared for another sweep, as in a notebook whose first cells alone are run again;
    DataError where your own data changed since they were read."""
    if prepared.spec.hash != spec.hash:
        raise SpecError(
            f"prepared for the sweep {prepared.spec.folder_name}, and {spec.folder_name} is to be run; give what "
            "fpt.sweeps.prepare returns for this spec"
        )
    check_contents(spec, prepared.task)


def check_contents(spec: SweepSpec, task: "Task") -> None:
    """Refuse (DataError) results of other files than those after which the sweep is named: of your own data, your own
    model or a tokenizer, as they were read for `task`, and as they are now."""
    asked = spec.means.contents
    now = contents_of(spec.task, spec.means.backbone, spec.means.own_table)
    kind = tasks.own_kind(spec.task)
    if now != asked or (kind and asked["task"] != f"{kind}:{task.checksum}"):
        raise DataError(
            f"the data of {spec.task}, or the files of {spec.backbone}, changed after the sweep {spec.hash} was named "
            "after them: nothing is recorded. Make its spec anew, and run it: it is another sweep, of what is there now"
        )


def _clean(folder: Path) -> None:
    """Remove what only a sweep at work needs. A leftover costs nothing but room."""
    (folder / ledger.PROGRESS).unlink(missing_ok=True)
    remove_partial(folder)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def _train(prepared: Prepared, folder: Path, watch: Callable[[int, int], None] | None) -> dict[str, Any]:
    """The grid and its extensions, and their files; result.json, whose content it returns, is the last one."""
    spec, task, template = prepared.spec, prepared.task, prepared.template
    beginning, checkpoints = Beginning(folder), folder / CHECKPOINTS
    fleets: list[FleetResult] = []
    rates: Sequence[float] = spec.learning_rates
    while rates:
        with _as_first(spec, fleets) as recipe:
            fleets.append(
                training.train_fleet(
                    task, template, recipe, rates, spec.seeds,
                    asked=spec.measures,
                    keep=(spec.seeds[0], checkpoints) if spec.keeps else None,
                    progress=_progress(spec, folder, fleets, rates, beginning, watch),
                    checkpoints=checkpoints / str(len(fleets)),
                )
            )  # fmt: skip
        rates = further_rates(spec, selection.by_seed(_joined(fleets, "runs")))
    tables = {name: _joined(fleets, name) for name in TABLES if name in fleets[0].tables}
    check_contents(spec, task)
    best = selection.best_rate(selection.by_seed(tables["runs"]))
    if spec.keeps and best is not None:
        keep(spec, template, weights_file(checkpoints, best), folder)
    checksums = {}
    for name, table in tables.items():
        table.insert(0, "sweep", spec.folder_name)
        content = parquet(table)
        checksums[name] = hashlib.sha256(content).hexdigest()
        write_atomically(folder / f"{name}.parquet", content)
    info = provenance(
        spec,
        tables["runs"],
        tables=checksums,
        task=task,
        template=template,
        fleets=fleets,
        beginning=beginning,
    )
    write_json(folder / RESULT, sealed(info))
    return info


@contextmanager
def _as_first(spec: SweepSpec, fleets: "Sequence[FleetResult]") -> Iterator["Recipe"]:
    """The recipe of the next fleet, with the number type and the threads of the first one: a sweep that was killed may
    go on elsewhere, and its record names one of each."""
    if not fleets:
        yield spec.recipe
        return
    with training.compute.computing(fleets[0].threads):
        yield spec.recipe.model_copy(update={"compute_type": fleets[0].compute_type})


def further_rates(spec: SweepSpec, validation: "pd.DataFrame") -> list[float]:
    """One rate beyond each end of the grid that some tuned rate is, while fewer than `extend` were added there.

    `validation` as fpt.sweeps.selection has it, of the grid as it was trained so far.
    """
    grid = sorted(float(rate) for rate in validation.columns)
    added = {
        "low": sum(rate < spec.learning_rates[0] for rate in grid),
        "high": sum(rate > spec.learning_rates[-1] for rate in grid),
    }
    found = selection.ends(selection.choices(validation), validation)
    return sorted(selection.beyond(grid, end) for end in found if added[end] < spec.extend)


def _joined(fleets: "Sequence[FleetResult]", name: str) -> "pd.DataFrame":
    """A table of all fleets of a sweep."""
    import pandas as pd

    joined: pd.DataFrame = pd.concat([fleet.tables[name] for fleet in fleets], ignore_index=True)
    return joined


def parquet(frame: "pd.DataFrame") -> bytes:
    """The table as parquet: equal tables give equal bytes, whatever the clock and the machine."""
    return frame.to_parquet(engine="pyarrow", index=False, compression="zstd")


def keep(spec: SweepSpec, template: "Template", file: Path, folder: Path) -> None:
    """What the sweep is asked to keep, from the file of all weights of its best run: adapters as peft's, and whole
    weights of the plain backbone, into which adapters are merged."""
    if not file.is_file():  # a process that was killed has moved it already
        return
    if not models.adapted(spec.trainable):
        os.replace(file, folder / ledger.KEPT_WEIGHTS)
        return
    from safetensors.torch import load_file, save_file

    from fpt.models import lora

    tensors = load_file(file)
    if KEEP_ADAPTER in spec.measures and template.adapters:
        lora.save(template.module, template.adapters, template.backbone.hub or template.backbone.name, tensors, folder)
    if KEEP_WEIGHTS in spec.measures:
        with replaced(folder / ledger.KEPT_WEIGHTS) as partial:
            save_file(lora.merged(template.module, tensors), partial)
    file.unlink()  # last: a process that is killed before does it all again


def _progress(
    spec: SweepSpec,
    folder: Path,
    before: "Sequence[FleetResult]",
    rates: Sequence[float],
    beginning: Beginning,
    watch: Callable[[int, int], None] | None,
) -> Callable[[int, int, "Leader | None"], None]:
    """A callback that keeps progress.json up to date, counted in run-steps; an extension adds to the total."""
    runs, done_before = len(rates) * len(spec.seeds), sum(len(fleet.runs) for fleet in before)
    content = {"grid": "extension" if before else "as planned", "steps": spec.steps}

    def write(run_steps: int, of_all: int, leader: "Leader | None" = None) -> None:
        done = run_steps * spec.steps / of_all  # steps of a run, in the mean over all
        counts = {
            "step": round(done),
            "run_steps": done_before * spec.steps + round(runs * done),
            "run_steps_total": (done_before + runs) * spec.steps,
        }
        known = {"started_utc": beginning.started_utc, "asked": beginning.asked, "seconds": round(beginning.seconds, 1)}
        known |= {"leader": leader}
        write_json(folder / ledger.PROGRESS, content | counts | known)
        if watch:
            watch(run_steps, of_all)

    write(0, spec.steps)
    return write
