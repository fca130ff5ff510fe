"""Where results come from: spec, code, libraries, data, weights, machine and time, without a path or host name."""

import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fpt
from fpt.files import STUDY_FILE
from fpt.models import weights
from fpt.papers import claim, rule_hash
from fpt.papers.schema import RULES
from fpt.sweeps import ledger, selection
from fpt.sweeps.record import read_progress
from fpt.sweeps.spec import PROTOCOL, SweepSpec
from fpt.sweeps.study_file import read_study, study_label
from fpt.training.libraries import wide_products_are_on

if TYPE_CHECKING:
    import pandas as pd

    from fpt.models.template import Template
    from fpt.tasks.task import Task
    from fpt.training.loop import FleetResult

LIBRARIES = ("torch", "transformers", "numpy", "pandas", "pyarrow")
DECIDES = (":/fpt", ":/notebooks")  # uncommitted changes elsewhere in a checkout do not change results


class Beginning:
    """What is known when a sweep starts, whatever is edited while it trains: when it was started first and for which
    claims, and by which code it is trained now. `seconds` of work count those of a process that was killed, too.
    """

    def __init__(self, folder: Path) -> None:
        before = read_progress(folder / ledger.PROGRESS) or {}
        self.started_utc = str(before.get("started_utc") or now())
        self.asked = before.get("asked") or asked(folder)
        self.software = software()
        self._began = time.perf_counter() - float(before.get("seconds", 0))

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def asked(folder: Path) -> dict[str, Any]:
    """What the study around `folder` is run for: `asks` ({claim: hash of its rule now}) and `plan`, in words."""
    if not (folder.parent / STUDY_FILE).is_file():
        return {"asks": {}, "plan": []}
    file = read_study(folder.parent, study_label(folder.parent))
    return {"asks": {name: rule_hash(claim(name)) for name in file.asks}, "plan": file.plan}


def provenance(
    spec: SweepSpec,
    runs: "pd.DataFrame",
    tables: Mapping[str, str],
    task: "Task",
    template: "Template",
    fleets: "Sequence[FleetResult]",
    beginning: Beginning,
) -> dict[str, Any]:
    """What result.json records of how the numbers came about; `tables` are checksums. fpt.sweeps.record reads it."""
    validation, first = selection.by_seed(runs), fleets[0]
    sizes = {"budget": spec.budget_examples, "last": spec.test_examples}
    return {
        "spec": spec.resolved() | {"arm": spec.arm},
        "hash": spec.hash,
        "protocol": PROTOCOL,
        "rules": RULES,
        **beginning.asked,
        "grid": sorted(float(rate) for rate in validation.columns),
        **selection.chosen(validation),
        "test": {
            "drawn_by_seed": task.test_drawn_by_seed,
            "size": task.test_size,
            "collection": task.collection,
            "classes": task.classes,
            **{name: min(count or task.test_size, task.test_size) for name, count in sizes.items()},
        },
        "tables": dict(tables),
        "data_checksum": task.checksum,
        "weights_checksum": template.weights_checksum,
        "weights_revision": None if spec.init == "random" or template.weights else weights.commit(spec.means.backbone),
        "compute_type": first.compute_type,
        "multiplied_in": first.multiplied_in,
        "threads": first.threads,
        "wide_products": wide_products_are_on(),
        "device": device_name(first.device),
        **beginning.software,
        "fleets": [list(part) for fleet in fleets for part in fleet.parts],  # rates, seeds: split where memory is short
        "compiled": any(fleet.compiled for fleet in fleets),
        "started_utc": beginning.started_utc,
        "finished_utc": now(),
        "wall_seconds": round(beginning.seconds, 1),
    }


def software() -> dict[str, Any]:
    """What computed: version of fpt, commit (None outside a checkout), versions of the libraries."""
    versions = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {"version": fpt.__version__, "git": git_state(), "versions": versions}


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


def git_state() -> dict[str, Any] | None:
    """Commit and whether files differ from it, new ones included; None outside a checkout of this package."""
    package = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(package), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != package.parent:
            return None  # installed inside somebody else's checkout
        return {
            "commit": git("rev-parse", "HEAD"),
            "dirty": bool(git("status", "--porcelain", "-unormal", "--", *DECIDES)),
        }
    except (OSError, subprocess.SubprocessError):
        return None
