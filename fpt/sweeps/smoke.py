"""Every sweep of a study in seconds: tiny random models of the same classes, small data, three steps, one process.

It shows that a sweep can be prepared, trained, measured and written. Its results are removed at the end; they say
nothing about the question.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Generator, Tensor

from fpt import tasks
from fpt.errors import DataError, FptError, WeightsError
from fpt.files import sha256
from fpt.models import BACKBONES, Adapters, build, load_task, tiny
from fpt.models.families import family
from fpt.models.families.library import BROKEN
from fpt.sweeps.run import Prepared, fitted, kept_weights, run_sweep
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.tasks import READS, intents
from fpt.tasks.arrays import Examples, Finite
from fpt.tasks.task import Task

FIXTURES = Path("tests/data")  # a few real examples of every task that has files
TOKENS = 128  # longer sequences are cut: it is not their length that is tried here
STEPS = 3
SMALL: dict[str, Any] = {
    "batch_size": 2,
    "evaluations": 1,
    "evaluation_examples": 4,
    "budget_examples": 4,
    "test_examples": 4,
    "extend": 0,
    "compute_type": "float32",
}
FEW = {
    "listops": {"train": 80, "heldout": 10},
    "listops-short": {"train": 80, "heldout": 10},
    "banking77": {"labels": 0},
    "clinc150": {"labels": 0},
}


def smoke(
    specs: Sequence[SweepSpec], study: str, started: Callable[[SweepSpec], None] = lambda spec: None
) -> list[tuple[SweepSpec, Exception]]:
    """Run a reduced form of each sweep into a temporary folder; the sweeps that failed, each with its error.

    Of tasks that have files it reads the examples in tests/data below the working directory; raises DataError where
    they are not.
    """
    of_files = sorted({spec.task for spec in specs if tasks.entry(spec.task).files})
    if of_files and not FIXTURES.is_dir():
        raise DataError(
            f"--smoke reads small data sets of {', '.join(of_files)} in {FIXTURES}, which the repository of fpt has "
            f"and {Path.cwd()} has not; without --smoke the whole data are read"
        )
    failures: list[tuple[SweepSpec, Exception]] = []
    reduced: dict[str, str] = {}  # folder name of a sweep that works -> that of its reduced form
    with tempfile.TemporaryDirectory(prefix="fpt-smoke-") as name, few_intents():
        data = Path(name) / "data"
        data.mkdir()  # ListOps is generated into it
        if FIXTURES.is_dir():
            shutil.copytree(FIXTURES, data, dirs_exist_ok=True)
        failures += unbuildable(specs, data)
        failed = {spec.hash for spec, _ in failures}
        specs = [spec for spec in specs if spec.hash not in failed]
        for spec in sorted(specs, key=lambda spec: spec.pretrained_by is not None):
            started(spec)
            try:
                if spec.pretrained_by and spec.pretrained_by not in reduced:
                    raise WeightsError(
                        f"it starts from the weights of {spec.pretrained_by}, which failed or is left out"
                    )
                small = reduced_form(spec, reduced)
                folder = Path(name) / study / small.folder_name
                run_sweep(small, folder, prepared=prepared_small(small, data, folder))
                reduced[spec.folder_name] = small.folder_name
            except (FptError, *BROKEN) as error:
                failures.append((spec, error))
    return failures


@contextmanager
def few_intents() -> Iterator[None]:
    """The few queries of FIXTURES pass for BANKING77 and CLINC150, which are known by the checksums of whole files."""
    whole = dict(intents.SOURCES)
    there = {name: address for name, (address, _) in whole.items() if (FIXTURES / name).is_file()}
    intents.SOURCES.update({name: (address, sha256(FIXTURES / name)) for name, address in there.items()})
    try:
        yield
    finally:
        intents.SOURCES.update(whole)


def unbuildable(specs: Sequence[SweepSpec], data: Path) -> Iterator[tuple[SweepSpec, Exception]]:
    """The sweeps whose backbone, named by its folder or commit, cannot be built in its size for the task's length."""
    for spec in specs:
        if spec.backbone in BACKBONES:
            continue
        options: dict[str, Any] = dict(spec.backbone_options)
        try:
            options_of_task = spec.task_options | FEW.get(spec.task, {})
            task = load_task(spec.task, spec.means.backbone, data, spec.variant, **options_of_task)
            with torch.device("meta"):
                build(task, spec.means.backbone, "random", spec.trainable, **options)
        except (FptError, *BROKEN) as error:
            yield spec, error


def reduced_form(spec: SweepSpec, reduced: dict[str, str]) -> SweepSpec:
    """The same sweep on a tiny model: at most two layers, two rates, one seed, and adapters of its width."""
    options = {name: value for name, value in spec.backbone_options.items() if name != "width"}
    if options.get("layers"):
        options["layers"] = min(int(options["layers"]), 2)
    fields = {
        "steps": min(spec.steps, STEPS),
        "learning_rates": spec.learning_rates[:2],
        "seeds": spec.seeds[:1],
        "rank": min(spec.rank, Adapters.rank),
        "data_fraction": max(spec.data_fraction, 0.5),  # of few examples
        "backbone_options": options,
        "task_options": spec.task_options | FEW.get(spec.task, {}),
        "pretrained_by": spec.pretrained_by and reduced[spec.pretrained_by],
    }
    return resolve(dict(spec) | SMALL | fields, "reduced for --smoke")


def prepared_small(spec: SweepSpec, data: Path, folder: Path) -> Prepared:
    """The task with short sequences, and a tiny model with random weights in the place of pretrained ones."""
    whole = spec.means.backbone
    task, small = cut(load_task(spec.task, whole, data, spec.variant, **spec.task_options)), tiny(whole)
    if task.own_table == READS:  # its tokenizer has the tokens of all of it
        symbols = family(whole).configuration(whole).vocab_size
        small = replace(small, config={**small.config, "vocab_size": symbols})
    weights = kept_weights(spec, folder.parent)
    if weights is None and spec.init != "random":
        options: dict[str, Any] = dict(spec.backbone_options)
        untrained = build(task, small, "random", "all", **options)
        folder.parent.mkdir(exist_ok=True)
        weights = folder.parent / f"{folder.name}.safetensors"
        save_file(untrained.initialise(0), weights)
    return fitted(spec, task, weights, small)


def cut(task: Task) -> Task:
    """The task, whose sequences end after TOKENS tokens."""
    if task.tokens <= TOKENS or not isinstance(task.data, Finite):
        return task

    def encode(inputs: Tensor, generator: Generator | None = None) -> Tensor:
        return task.encode(inputs, generator)[:, :TOKENS]

    def shortened(examples: Examples) -> Examples:
        return replace(examples, lengths=None if examples.lengths is None else examples.lengths.clamp(max=TOKENS))

    return replace(task, data=task.data.each(shortened), encode=encode)
