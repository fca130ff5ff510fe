"""Every sweep of a study in seconds: tiny random models of the same classes, small data, three steps, one process.

It shows that a sweep can be prepared, trained, measured and written. Its results are removed at the end; they say
nothing about the question.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from fpt.errors import DataError, FptError
from fpt.models import BACKBONES, backbone, build, tiny
from fpt.models.hub import slug
from fpt.sweeps.run import run_sweep
from fpt.sweeps.spec import SweepSpec, resolve
from fpt.tasks import TASKS, Entry, function, load

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from fpt.tasks.arrays import Examples
    from fpt.tasks.task import Task

FIXTURES = Path("tests/data")  # a few real examples of every task that has files
TOKENS = 128  # longer sequences are cut: it is not their length that is tried here
SMALL: dict[str, Any] = {
    "steps": 3,
    "batch_size": 2,
    "evaluations": 1,
    "evaluation_examples": 4,
    "budget_examples": 4,
    "test_examples": 4,
    "extend": 0,
    "compute_type": "float32",
}
FEW = {"listops": {"train": 80, "heldout": 10}, "listops-short": {"train": 80, "heldout": 10}}


def smoke(
    specs: Sequence[SweepSpec], study: str, started: Callable[[SweepSpec], None] = lambda spec: None
) -> list[tuple[SweepSpec, Exception]]:
    """Run a reduced form of each sweep into a temporary folder; the sweeps that failed, each with its error.

    Reads the examples in tests/data below the working directory; raises DataError where they are not.
    """
    if not FIXTURES.is_dir():
        raise DataError(f"--smoke reads the small data sets in {FIXTURES}, which {Path.cwd()} does not have")
    failures: list[tuple[SweepSpec, Exception]] = []
    reduced: dict[str, str] = {}  # folder name of a sweep -> that of its reduced form
    with tempfile.TemporaryDirectory(prefix="fpt-smoke-") as name:
        data = Path(name) / "data"
        shutil.copytree(FIXTURES, data)  # ListOps is generated into the folder of data
        failures += whole_models(specs, data)
        specs = [spec for spec in specs if all(spec is not failed for failed, _ in failures)]
        with stand_ins(specs, Path(name)):
            for spec in sorted(specs, key=lambda spec: spec.pretrained_by is not None):
                started(spec)
                try:
                    small = reduced_form(spec, reduced)
                    reduced[spec.folder_name] = small.folder_name
                    run_sweep(small, Path(name) / study / small.folder_name, data)
                except (FptError, RuntimeError, ValueError, LookupError, TypeError) as error:
                    failures.append((spec, error))
    return failures


def whole_models(specs: Sequence[SweepSpec], data: Path) -> Iterator[tuple[SweepSpec, FptError]]:
    """The sweeps whose backbone, named by its folder or commit, cannot be built in its size for the task's length."""
    import torch

    for spec in specs:
        if spec.backbone in BACKBONES:
            continue
        options: dict[str, Any] = dict(spec.backbone_options)
        try:
            backbone(spec.backbone)  # tried with real numbers
            task = load(spec.task, data, spec.variant, **spec.task_options | FEW.get(spec.task, {}))
            with torch.device("meta"):
                build(task, spec.backbone, "random", spec.trainable, **options)
        except FptError as error:
            yield spec, error


def reduced_form(spec: SweepSpec, reduced: dict[str, str]) -> SweepSpec:
    """The same sweep on a tiny model: at most two layers, two rates, one seed."""
    options = {name: value for name, value in spec.backbone_options.items() if name != "width"}
    if options.get("layers"):
        options["layers"] = min(int(options["layers"]), 2)
    fields = {
        "learning_rates": spec.learning_rates[:2],
        "seeds": spec.seeds[:1],
        "data_fraction": max(spec.data_fraction, 0.5),  # of few examples
        "backbone_options": options,
        "task_options": spec.task_options | FEW.get(spec.task, {}),
        "pretrained_by": spec.pretrained_by and reduced[spec.pretrained_by],
    }
    return resolve(dict(spec) | SMALL | fields, "reduced for --smoke")


@contextmanager
def stand_ins(specs: Sequence[SweepSpec], folder: Path) -> Iterator[None]:
    """Tiny models, with random weights in the place of pretrained ones, and tasks with short sequences."""
    from fpt.models.families import family
    from fpt.models.weights import save_random

    weights = folder / "weights"
    with patch.dict(BACKBONES), patch.dict(TASKS), patch.dict(os.environ, FPT_WEIGHTS=str(weights)):
        for name in {spec.backbone for spec in specs}:
            entry = tiny(name)
            if family(entry.family).has_table:  # frozen positions must reach as far as the real model's
                entry = replace(entry, config={**entry.config, "max_position_embeddings": 2 * TOKENS})
            if any(spec.backbone == name and spec.init != "random" for spec in specs):
                save_random(entry, weights / slug(name))
            BACKBONES[name] = entry
        for name in {spec.task for spec in specs} & set(TASKS):
            TASKS[name] = replace(TASKS[name], loader=partial(cut, TASKS[name]))
        yield


def cut(entry: Entry, place: Path, variant: str, **options: Any) -> "Task":
    """The task of `entry`, whose sequences end after TOKENS tokens."""
    from fpt.tasks.arrays import Finite

    task = function(entry)(place, variant, **options)
    if task.tokens <= TOKENS or not isinstance(task.data, Finite):
        return task

    def encode(inputs: "Tensor", generator: "Generator | None" = None) -> "Tensor":
        return task.encode(inputs, generator)[:, :TOKENS]

    def shortened(examples: "Examples") -> "Examples":
        return replace(examples, lengths=None if examples.lengths is None else examples.lengths.clamp(max=TOKENS))

    return replace(task, data=task.data.each(shortened), encode=encode, tokens=TOKENS)
