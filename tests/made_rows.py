"""Rows of a bench that nobody timed, and the file that holds them."""

import json
from pathlib import Path
from typing import Any

from fpt import tasks
from fpt.bench.cost import Measurement, Workload
from fpt.sweeps.spec import SweepSpec


def fields(of: SweepSpec, **changes: Any) -> dict[str, Any]:
    """A row for the fleets of a sweep, as the file holds it: a second a run-step, 10 ms an example."""
    measured = {
        "arm": of.arm, "compute_type": "float32", "tokens": tasks.entry(of.task).length(of.variant, of.task_options),
        "runs": 1, "held": [300, 400], "seconds": 1.0, "evaluation_seconds": 0.01, "peak_gib": 1.0, "flop": 1,
    }  # fmt: skip
    return Workload.of(of).model_dump(mode="json") | measured | changes


def row(of: SweepSpec, **changes: Any) -> Measurement:
    return Measurement.model_validate_json(json.dumps(fields(of, **changes)))


def bench(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """What a file holds."""
    ceiling = {"float32_flop_per_second": 1e11, "bfloat16_flop_per_second": 1e12}
    top = {"device": "a processor", "kind": "cpu", "threads": 2, "ceiling": ceiling, "rows": rows}
    return top | changes


def write(runs: Path, *rows: dict[str, Any], **changes: Any) -> Path:
    """The file of one device in a workspace's `runs`."""
    content = bench(*rows, **changes)
    path = runs / "bench" / f"{content['kind']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path
