"""What a sweep has to compute, in FLOP, from the shapes of its task and its model: no data, no weights, no network."""

import json
import math
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fpt import models, tasks
from fpt.bench.cost import Workload
from fpt.models.template import Template
from fpt.tasks.arrays import Finite, Task
from fpt.training import Recipe, features

# Stored shape of an image, and the published number of examples.
IMAGES = {"mnist": ((28, 28), 70_000), **dict.fromkeys(("cifar10", "cifar10-lra"), ((32, 32, 3), 60_000))}
PROTEINS = 13_766  # of TAPE's remote homology
MATRICES = {"attention", "feed_forward", "recurrent", *models.PARTS}


@dataclass(frozen=True)
class Sample:
    """A task in its real shape, maybe with few examples: `held` and `examples` count those of the whole data."""

    task: Task
    held: tuple[int, int]  # validation and test
    examples: int  # all; 0: a stream

    @staticmethod
    def of(task: Task) -> "Sample":
        """A task that was loaded whole."""
        split, data = task.split(0), task.data
        examples = len(data.train) + len(data.test) if isinstance(data, Finite) else 0
        return Sample(task, (len(split.validation), len(split.test)), examples)


@cache
def sample(name: str, variant: str, options: tuple[tuple[str, Any], ...], batch_size: int) -> Sample | None:
    """The task of a workload (its `data`) without its data; None for a task of which only its data tell the shape.

    Images and proteins are random ones, which go through the task's own loader and encoding: shapes and work are those
    of the real task. Of ListOps a few examples are generated: the whole would take minutes and change nothing. Other
    tasks are loaded where their loader is this package's and needs no files.
    """
    given = dict(options)
    few = {"train": 120 + 2 * batch_size, "test": 40}  # a sixth or a fifth of `train` is validation
    with tempfile.TemporaryDirectory(prefix="fpt-bench-") as scratch:
        folder = Path(scratch)
        if name in IMAGES:
            shape, examples = IMAGES[name]
            _write_images(folder / tasks.entry(name).files[0], shape, few)
            return Sample(tasks.load(name, folder, variant), (10_000, 10_000), examples)
        if name == "homology":
            _write_proteins(folder, few["train"])
            test = 736 if variant == "released" else 718  # TAPE's validation file, its fold hold-out
            return Sample(tasks.load(name, folder, variant), (736, test), PROTEINS)
        if name in ("listops", "listops-short"):
            held = given["heldout"]
            task = tasks.load(name, folder, variant, train=few["train"], heldout=few["test"])
            return Sample(task, (held, held), given["train"] + 2 * held)
        return Sample.of(tasks.load(name, folder, variant, **given)) if _needs_no_files(name) else None


def _needs_no_files(name: str) -> bool:
    """Whether a loader of this package makes the task from what is installed: a loader of a user may download."""
    entry = tasks.TASKS.get(tasks.NPZ if name.startswith("npz:") else name)
    return entry is not None and not entry.files and isinstance(entry.loader, str) and "." not in entry.loader


def _write_images(path: Path, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    draw = np.random.default_rng(0)
    arrays: dict[str, Any] = {f"x_{part}": draw.integers(0, 256, (n, *shape), np.uint8) for part, n in sizes.items()}
    arrays |= {f"y_{part}": np.arange(n) % 10 for part, n in sizes.items()}
    np.savez(path, **arrays)


def _write_proteins(folder: Path, count: int) -> None:
    records = [{"primary": "ACDEFGHIKL" * 17, "fold_label": fold} for fold in range(count)]
    for path in (folder / name for name in tasks.HOMOLOGY):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(records))


def needed_flop(template: Template, batch_size: int, last_rows: int | None = None, cached: bool = False) -> int:
    """FLOP that one step of one run needs; a multiplication and its addition are two.

    A product of n rows with a matrix of w weights takes 2 n w FLOP forward, as much again for the gradient of its
    inputs, and as much again for the gradient of its weights where they train. Every block passes gradients on, unless
    the output layer alone trains; if then the features are `cached`, the output layer alone is computed. Attention
    scores and the sums they weigh are two products of activations, with two gradients each. The last block needs keys
    and values at every token, everything else only at the `last_rows` tokens that are read (None: the task's read-out;
    the library's model computes all of them). Causal masks are not discounted, padding neither; layer norms, softmax,
    GELU and Adam are not counted, as is the custom. Recurrent layers need every token, the last one too.
    """
    task, trained = template.task, template.trainable_groups
    forward = trained == ("output",)  # alone: no gradient passes through the backbone
    output_layer = (2 if forward else 3) * 2 * batch_size * task.readout * template.width * task.output_width
    if cached:
        return output_layer
    rows, last = batch_size * task.tokens, batch_size * (last_rows or task.readout)
    above = (template.layers - 1) * rows  # rows of all blocks but the last

    def products(group: str) -> int:
        """FLOP a row of one block's matrices of a group; no token of Longformer attends globally."""
        names = [name for name, its in template.groups.items() if its == group and "_global." not in name]
        weights = sum(
            template.shapes[name].numel() // template.layers for name in names if len(template.shapes[name]) == 2
        )
        return 2 * weights * (1 if forward else 3 if group in trained else 2)

    flop = above * products("attention") + (rows + last) * products("attention") // 2  # half makes keys and values
    flop += (above + last) * products("feed_forward") + (above + rows) * products("recurrent")
    flop += (1 if forward else 3) * 2 * 2 * template.module.reach * template.width * (above + last)
    flop += (1 if forward else 2) * 2 * rows * template.width * (task.width or 0)  # a table is no product
    return flop + output_layer


@dataclass(frozen=True)
class Work:
    """What decides the cost of a workload: FLOP of one step of one run, and of the features of one seed where those are
    computed once; tokens of an example; width; validation and test examples; whether features are computed once and
    whether matrices train; whether tokens wait for each other."""

    step: int
    features: int
    tokens: int
    width: int
    held: tuple[int, int]
    kind: tuple[bool, bool]
    recurrent: bool

    def distance(self, other: "Work") -> tuple[bool, float, float]:
        """Recurrence first, then width, then tokens: smaller is nearer."""
        widths, tokens = other.width / self.width, other.tokens / self.tokens
        return other.recurrent != self.recurrent, abs(math.log(widths)), abs(math.log(tokens))


@cache
def work_of(workload: Workload) -> Work | None:
    """None for what `sample` does not know. Raises SpecError where the model cannot be built."""
    found = sample(*workload.data)
    if found is None or workload.backbone not in models.BACKBONES:
        return None
    task, options = found.task, workload.backbone_options
    with torch.device("meta"):  # shapes, no memory
        template = models.build(task, workload.backbone, "random", workload.trainable, **options)
    cached = features.constant(task, template, Recipe(dropout=workload.dropout))
    trains = bool(MATRICES & set(template.trainable_groups))
    once = needed_flop(template, found.examples) - needed_flop(template, found.examples, cached=True)
    return Work(
        step=needed_flop(template, workload.batch_size, cached=cached),
        features=once if cached else 0,
        tokens=task.tokens,
        width=template.width,
        held=found.held,
        kind=(cached, trains),
        recurrent="recurrent" in template.groups.values(),
    )
