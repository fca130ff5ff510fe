"""What a sweep will cost: the figures that `fpt bench` left in runs/bench, and what they predict. Needs no torch."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fpt import models, tasks
from fpt.errors import DataError
from fpt.sweeps.spec import SweepSpec

FOLDER = "bench"  # below runs/
ADAM_BYTES = 28  # a parameter and step: it and two moments read and written, its gradient read; float32
Bench = dict[str, Any]  # one file: provenance, `ceiling`, and `rows`
COST = ("task", "variant", "task_options", "backbone", "backbone_options", "trainable", "batch_size", "dropout")
COMPARED = ("reference_seconds", "ratio", "ratios")  # not of every row
TOP = {"device": str, "kind": str, "threads": int, "ceiling": dict, "rows": list}
ROW: dict[str, Any] = {  # field -> type; `trainable` is a policy or a list of groups
    **dict.fromkeys(("backbone", "task", "variant", "arm", "compute_type", "inputs"), str),
    **dict.fromkeys(("tokens", "runs", "steps", "threads", "batch_size", "trainable_parameters", "flop"), int),
    **dict.fromkeys(
        ("ratio", "utilisation", "peak_gib", "seconds", "reference_seconds", "evaluation_seconds", "dropout"), float
    ),
    **dict.fromkeys(("task_options", "backbone_options"), dict),
    **dict.fromkeys(("ratios", "held"), list),
    "trainable": (str, list),
}


def benches(runs: Path) -> list[Bench]:
    """Every file of `runs`/bench, by name: one a kind of device; an empty list where nothing was measured.

    Raises DataError, naming the file, for one that is not what `fpt bench` writes.
    """
    return [read(path) for path in sorted((runs / FOLDER).glob("*.json"))]


def read(path: Path) -> Bench:
    """One file. Raises DataError naming the file and what is wrong with it."""
    try:
        bench: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); remove it: fpt bench writes it anew") from None
    wrong = _wrong(bench, TOP) or [name for row in bench["rows"] for name in _wrong(row, ROW)]
    if wrong or bench["kind"] != path.stem:
        what = f"{wrong[0]} is missing or wrong" if wrong else f"its device is {bench['kind']!r}"
        raise DataError(f"{path} is not what fpt bench writes: {what}; remove it: fpt bench writes it anew")
    return dict(bench)


def _wrong(found: Any, fields: dict[str, Any]) -> list[str]:
    """Fields that are missing or of another type; JSON does not keep 2.0 apart from 2."""
    found = found if isinstance(found, dict) else {}
    kinds = {k: kind for k, kind in fields.items() if k in found or k not in COMPARED}
    return [k for k, kind in kinds.items() if not isinstance(found.get(k), (int, float) if kind is float else kind)]


def cost_of(spec: SweepSpec) -> dict[str, Any]:
    """The fields that decide what one step of one run costs, as JSON holds them, options in full."""
    fields = {name: value for name, value in spec.model_dump(mode="json").items() if name in COST}
    fields["task_options"] = {**tasks.entry(spec.task).options, **spec.task_options}
    return fields | {"backbone_options": {**models.BACKBONES[spec.backbone].options, **spec.backbone_options}}


def predict(spec: SweepSpec, rows: Sequence[dict[str, Any]]) -> float | None:
    """Seconds of a sweep, by the row whose fleet is nearest in size; None where no row fits, and where most of the
    work is features that are computed once, which no row has.
    """
    if spec.trainable == "output" and spec.dropout == 0:
        return None
    cost, types = cost_of(spec), (spec.compute_type, "float32", "bfloat16")[: 3 if spec.compute_type == "auto" else 1]
    fitting = [row for row in rows if row["compute_type"] in types and all(row[k] == v for k, v in cost.items())]
    row = min(fitting, key=lambda row: abs(row["runs"] - spec.selection_runs), default=None)
    return None if row is None else seconds_of(spec, row)


def seconds_of(spec: SweepSpec, row: dict[str, Any]) -> float:
    """Seconds of both stages of a sweep whose fleets cost a run-step what the row's did.

    Counted: steps and evaluations of every run, with a confirmation at every reference rate and at one more.
    """
    selection, confirmation = spec.selection_runs, spec.confirmation_runs
    held, test = row["held"]
    cap = spec.evaluation_examples or max(held, test)
    stops = 2 * min(cap, held) * min(spec.evaluations, spec.steps)  # of the training set as many as of the validation's
    tests = 2 * (selection * min(cap, test) + confirmation * test)  # with the best and with the last parameters
    runs = selection + confirmation
    return float(runs * spec.steps * row["seconds"] + (runs * stops + tests) * row["evaluation_seconds"])
