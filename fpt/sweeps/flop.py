"""What a sweep has to compute, in FLOP, from the shapes of its task and its model; needs no data and no weights.

MNIST and CIFAR-10 are stood in for by random pixels in their shape, homology by one invented protein; the numbers of
their examples are the published ones.
"""

import json
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fpt import models, tasks
from fpt.models.template import Template
from fpt.sweeps import speeds
from fpt.sweeps.spec import SweepSpec
from fpt.tasks.arrays import Finite, Task
from fpt.training import Recipe, features

SIZES = {"train": 120, "test": 40}  # examples of the stand-ins
PIXELS = {"mnist": ("mnist.npz", (28, 28)), **dict.fromkeys(("cifar10", "cifar10-lra"), ("cifar10.npz", (32, 32, 3)))}
EXAMPLES = {"mnist": 70_000, "cifar10": 60_000, "cifar10-lra": 60_000, "homology": 13_766}  # of the whole data
MATRICES = {"attention", "feed_forward", "recurrent", *models.PARTS}


def shaped_task(spec: SweepSpec) -> tuple[Task, list[int], str]:
    """The task, its numbers of validation and test examples, and whether its inputs are "real" or "random".

    Random ones go through the task's own loader and encoding, so shapes and work are those of the real task. ListOps
    is generated, a few examples only: the whole of it would take minutes and change nothing.
    """
    with tempfile.TemporaryDirectory(prefix="fpt-bench-") as folder:
        if spec.task == "listops":
            held = int(spec.task_options.get("heldout", tasks.entry("listops").options["heldout"]))
            few = {"train": SIZES["train"], "heldout": SIZES["test"]}
            return tasks.load(spec.task, folder, spec.variant, **few), [held, held], "real"
        if spec.task in PIXELS:
            name, shape = PIXELS[spec.task]
            draw = np.random.default_rng(0)
            arrays: dict[str, Any] = {f"x_{k}": draw.integers(0, 256, (n, *shape), np.uint8) for k, n in SIZES.items()}
            arrays |= {f"y_{k}": np.arange(n) % 10 for k, n in SIZES.items()}
            np.savez(Path(folder) / name, **arrays)
            return tasks.load(spec.task, folder, spec.variant, **spec.task_options), [10_000, 10_000], "random"
        if spec.task == "homology":
            records = [{"primary": "ACDEFGHIKL" * 17, "fold_label": fold} for fold in range(SIZES["train"])]
            for path in (Path(folder) / name for name in tasks.HOMOLOGY):
                path.parent.mkdir(exist_ok=True)
                path.write_text(json.dumps(records))
            held = 736 if spec.variant == "released" else 718  # TAPE's validation file, its fold hold-out
            return tasks.load(spec.task, folder, spec.variant), [736, held], "random"
    task = tasks.load(spec.task, None, spec.variant, **spec.task_options)
    return task, [len(task.split(0).validation), len(task.split(0).test)], "real"


def needed_flop(template: Template, batch_size: int, last_rows: int | None = None) -> int:
    """FLOP that one step of one run needs; a multiplication and its addition are two.

    A product of n rows with a matrix of w weights takes 2 n w FLOP forward, as much again for the gradient of its
    inputs (the input layer always trains, so every block passes gradients on), and as much again for the gradient of
    its weights where they train. Attention scores and the sums they weigh are two products of activations, with two
    gradients each. The last block needs keys and values at every token, everything else only at `last_rows` tokens
    (None: the task's read-out where the family's forward pass stops there, else all). Causal masks are not
    discounted, padding neither; layer norms, softmax, GELU and Adam are not counted, as is the custom. Where the
    output layer alone trains, its features are there already. Recurrent layers need every token, the last one too.
    """
    task, rows = template.task, batch_size * template.task.tokens
    reads_out = template.module.family.last_layer_reads_out
    last = batch_size * (last_rows or (task.readout if reads_out else task.tokens))
    above = (template.layers - 1) * rows  # rows of all blocks but the last
    weights = dict.fromkeys(template.groups.values(), 0)  # of one block's matrices
    for name, group in template.groups.items():
        used = len(template.shapes[name]) == 2 and "_global." not in name  # no token of Longformer attends globally
        weights[group] += template.shapes[name].numel() // template.layers if used else 0
    attention, feed_forward, recurrent = (
        2 * weights.get(group, 0) * (3 if group in template.trainable_groups else 2)
        for group in ("attention", "feed_forward", "recurrent")
    )
    products = above * attention + (rows + last) * attention // 2  # half of its weights make keys and values
    products += (above + last) * feed_forward + (above + rows) * recurrent
    scores = 3 * 2 * 2 * template.module.reach * template.width * (above + last)
    input_layer = 2 * 2 * rows * template.width * (task.width or 0)  # no gradient below; a table is no product
    output_layer = 3 * 2 * batch_size * task.readout * template.width * task.output_width
    if template.trainable_groups == ("output",):
        return output_layer * 2 // 3  # no gradient of the features
    return products + scores + input_layer + output_layer


@dataclass(frozen=True)
class Work:
    """What decides the cost of a sweep: FLOP of one step of one run, and of the features of one seed where those are
    computed once; tokens of an example; width; validation and test examples; whether all, some or output trains;
    whether tokens are computed one after the other."""

    step: int
    features: int
    tokens: int
    width: int
    held: list[int]
    kind: str
    recurrent: bool


def work_of(spec: SweepSpec) -> Work:
    """Worked out once for sweeps of the same cost. Raises SpecError where the model cannot be built."""
    return _work(_json(speeds.cost_of(spec)))


@cache
def _work(cost: str) -> Work:
    of = json.loads(cost)
    task, held, examples = _shaped(of["task"], of["variant"], _json(of["task_options"]))
    build: Callable[..., Template] = partial(models.build, task, of["backbone"], "random", **of["backbone_options"])
    with torch.device("meta"):  # shapes, no memory
        template = build(of["trainable"])
        recurrent = "recurrent" in template.groups.values()
        if template.trainable_groups != ("output",):
            kind = "all" if MATRICES & set(template.trainable_groups) else "some"
            return Work(needed_flop(template, of["batch_size"]), 0, task.tokens, template.width, held, kind, recurrent)
        below = build(["input", "output"])
    if features.constant(task, template, Recipe(dropout=of["dropout"])):
        once = needed_flop(below, examples) // 2  # forward alone is half of forward and passing gradients on
        return Work(
            needed_flop(template, of["batch_size"]), once, task.tokens, template.width, held, "output", recurrent
        )
    return Work(needed_flop(below, of["batch_size"]) // 2, 0, task.tokens, template.width, held, "some", recurrent)


@cache
def _shaped(name: str, variant: str, options: str) -> tuple[Task, list[int], int]:
    """The task in its shape; its numbers of validation and test examples, and of all of them."""
    spec = SweepSpec.model_construct(task=name, variant=variant, task_options=json.loads(options))
    task, held, _ = shaped_task(spec)
    examples = len(task.data.train) + len(task.data.test) if isinstance(task.data, Finite) else 0
    if name == "listops":
        examples = sum(held) + int(spec.task_options.get("train", tasks.entry(name).options["train"]))
    return task, held, EXAMPLES.get(name, examples)


def flop_of(spec: SweepSpec) -> int:
    """FLOP of all training steps of a sweep, and of the features that are cached; evaluations are not counted."""
    work = work_of(spec)
    return (spec.selection_runs + spec.confirmation_runs) * spec.steps * work.step + _seeds(spec) * work.features


def estimate(spec: SweepSpec, rows: Sequence[dict[str, Any]]) -> float | None:
    """Seconds of a sweep that nothing was measured for: its FLOP at the speed of the row of its kind whose width, then
    whose number of tokens, is nearest. A recurrent one is measured by recurrent ones if there are any, else it will
    take longer. None where no row is of its kind.
    """
    work, works = work_of(spec), [_work(_json({name: row[name] for name in speeds.COST})) for row in rows]
    alike = [(done, row) for done, row in zip(works, rows, strict=True) if done.kind == work.kind]
    if not alike:
        return None

    def apart(pair: tuple[Work, Any]) -> tuple[bool, float, float]:
        other, _ = pair
        distances = (abs(math.log(other.width / work.width)), abs(math.log(other.tokens / work.tokens)))
        return other.recurrent != work.recurrent, *distances

    _, near = min(alike, key=apart)
    scale = work.step / near["flop"]
    an_example = near["evaluation_seconds"] * scale * near["batch_size"] / spec.batch_size
    row = {"held": work.held, "seconds": near["seconds"] * scale, "evaluation_seconds": an_example}
    fastest = max(float(row["flop"] / row["seconds"]) for row in rows)  # features are computed in large batches
    return speeds.seconds_of(spec, row) + _seeds(spec) * work.features / fastest


def _seeds(spec: SweepSpec) -> int:
    return len(spec.selection_seeds) + len(spec.confirmation_seeds)


def _json(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True)
