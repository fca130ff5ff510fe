"""How long a sweep will take and how that is known: measured, predicted or estimated from runs/bench. No torch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fpt import models, tasks
from fpt.errors import DataError
from fpt.sweeps.ledger import SweepState
from fpt.sweeps.spec import SweepSpec

FOLDER = "bench"  # below runs/
TRAINING = 5  # examples that train for each one of validation, where no option says how many: as in CIFAR-10


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class Workload(_Record):
    """The fields of a sweep that decide what one step of one run costs, options in full."""

    task: str
    variant: str
    task_options: dict[str, Any]
    backbone: str
    backbone_options: dict[str, Any]
    trainable: str | list[str]  # a policy or parameter groups
    rank: int = models.Adapters.rank
    targets: str = models.Adapters.targets
    batch_size: int
    dropout: float

    @staticmethod
    def of(spec: SweepSpec) -> "Workload":
        fields = spec.model_dump(mode="json", include=set(Workload.model_fields))
        fields["task_options"] = {**tasks.entry(spec.task).options, **spec.task_options}
        fields["backbone_options"] = {**models.backbone(spec.backbone).options, **spec.backbone_options}
        return Workload(**fields)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def kind(self) -> Literal["features", "frozen", "matrices"]:
        """What a step computes: the output layer alone, on features that are computed once; or gradients as well, of
        matrices or of none."""
        own_table = tasks.entry(self.task).own_table
        groups = models.trainable_groups(self.trainable, self.backbone, "", self.backbone_options, own_table)
        if groups == ("output",) and self.dropout == 0:
            return "features"
        return "matrices" if {"attention", "feed_forward", "recurrent", *models.PARTS} & set(groups) else "frozen"

    @property
    def width(self) -> int:
        return int(self.backbone_options.get("width", models.backbone(self.backbone).width))

    @property
    def weights(self) -> int:
        """A number in proportion to the weights of the matrices of one architecture."""
        return int(self.backbone_options.get("layers") or models.backbone(self.backbone).layers) * self.width**2


class Row(Workload):
    """What was measured for one workload. Seconds are of one step of one run, or of evaluating one example once."""

    arm: str
    inputs: Literal["real", "random"] = "real"  # random: the task's files were missing
    compute_type: str
    compiled: bool = False
    tokens: int
    runs: int  # of the fleet
    held: tuple[int, int]  # validation and test examples of the whole data
    seconds: float
    evaluation_seconds: float
    peak_gib: float
    flop: int  # of one step of one run
    reference_seconds: float | None = None  # None: not compared
    ratios: list[float] = []  # reference / fleet, a round each

    @property
    def workload(self) -> Workload:
        return Workload(**self.model_dump(include=set(Workload.model_fields)))

    @property
    def cell(self) -> tuple[Any, ...]:
        """What tells rows of a device apart."""
        return self.workload, self.arm, self.runs, self.compute_type, self.compiled

    @property
    def ratio(self) -> float | None:
        """Reference / fleet, of the medians over the rounds."""
        return self.reference_seconds and self.reference_seconds / self.seconds


class Ceiling(_Record):
    """The best rates of matrix products that a device was seen to reach."""

    float32_flop_per_second: float
    bfloat16_flop_per_second: float


class Bench(_Record):
    """One file of runs/bench: a device, the software, and one row per cell."""

    device: str
    kind: str  # name of the file
    threads: int
    ceiling: Ceiling
    version: str | None = None
    git: dict[str, Any] | None = None
    versions: dict[str, str | None] = Field(default={})
    measured_utc: str = ""
    rows: list[Row]

    @property
    def title(self) -> str:
        return f"{self.device}, threads: {self.threads}"

    def utilisation(self, row: Row) -> float:
        """The share of the device's rate of products, in the number type of the row, that the row's FLOP reached."""
        rate: float = getattr(self.ceiling, f"{row.compute_type}_flop_per_second")
        return row.flop / row.seconds / rate

    def rows_like(self, other: "Bench") -> list[Row]:
        """The rows, if the same code ran on the same device; uncommitted changes leave open what the code was."""
        first, second = (bench.model_dump(exclude={"ceiling", "measured_utc", "rows"}) for bench in (self, other))
        return self.rows if first == second and not (self.git or {}).get("dirty", False) else []


def benches(runs: Path) -> list[Bench]:
    """Every file of `runs`/bench, by name: one per kind of device; an empty list if nothing was measured.

    Raises DataError, naming the file, for one that is not what `fpt bench` writes.
    """
    return [read(path) for path in sorted((runs / FOLDER).glob("*.json"))]


def read(path: Path) -> Bench:
    """One file. Raises DataError naming the file and what is wrong with it."""
    try:
        return Bench.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); fpt bench writes it") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        wrong = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise DataError(f"{path} is not what fpt bench writes: {wrong}; remove it and run fpt bench") from None


@dataclass(frozen=True)
class Cost:
    """Wall time of a sweep. measured: of the sweep itself; predicted: from a row of its workload; estimated: from
    a row of another workload."""

    seconds: float
    source: Literal["measured", "predicted", "estimated"]
    device: str = ""  # none: this workspace's own result


def costs(state: SweepState, figures: Mapping[str, Sequence[Row]]) -> list[Cost]:
    """What a sweep takes, by the best source that there is: its own result, the published one, or `figures` (rows by
    device), one Cost for every device that they serve. Empty where nothing is known."""
    if state.result:
        return [Cost(state.result["wall_seconds"], "measured")]
    if state.published:
        return [Cost(state.published["wall_seconds"], "measured", state.published["device"])]
    predicted = {device: predict(state.spec, rows) for device, rows in figures.items()}
    if found := [Cost(seconds, "predicted", device) for device, seconds in predicted.items() if seconds is not None]:
        return found
    estimated = {device: estimate(state.spec, rows) for device, rows in figures.items() if rows}
    return [Cost(seconds, "estimated", device) for device, seconds in estimated.items() if seconds is not None]


def predict(spec: SweepSpec, rows: Sequence[Row]) -> float | None:
    """Seconds of a sweep, by the row of its workload whose fleet is nearest in size; None where no row fits, and where
    most of the work is features that are computed once, which no row has.
    """
    workload = Workload.of(spec)
    fitting = [row for row in rows if _of_type(row, spec) and row.workload == workload]
    if not fitting or workload.kind == "features":
        return None
    row = min(fitting, key=lambda row: abs(row.runs - spec.runs))
    return seconds_of(spec, row.held, row.seconds, row.evaluation_seconds)


def _of_type(row: Row, spec: SweepSpec) -> bool:
    """Whether a row has the number type of the sweep, if that is decided yet."""
    return spec.compute_type in ("auto", row.compute_type)


def estimate(spec: SweepSpec, rows: Sequence[Row]) -> float | None:
    """Seconds of a sweep whose workload was not measured: those of the nearest row of its kind, in proportion to tokens
    and weights. Architecture comes first (tokens of an LSTM wait for each other), then width, number type, and tokens.
    Features that are computed once are a forward pass of every example, once a seed.

    None for a task of unknown length, and where no row is of its kind.
    """
    workload = Workload.of(spec)
    tokens = tasks.entry(spec.task).length(spec.variant, spec.task_options)
    kind = "frozen" if workload.kind == "features" else workload.kind
    alike = [row for row in rows if row.backbone in models.BACKBONES and row.kind == kind]
    if tokens is None or not alike:
        return None

    def distance(row: Row) -> tuple[bool, float, bool, float]:
        recurrent = ["recurrent" in models.backbone(each.backbone).groups for each in (row, workload)]
        widths, lengths = row.width / workload.width, row.tokens / tokens
        return recurrent[0] != recurrent[1], abs(math.log(widths)), not _of_type(row, spec), abs(math.log(lengths))

    near = min(alike, key=distance)
    held = next((row.held for row in rows if row.task == spec.task), near.held)
    scale = tokens * workload.weights / (near.tokens * near.weights)
    if workload.kind == "features":
        examples = workload.task_options.get("train", TRAINING * held[0]) + sum(held)
        return len(spec.seeds) * float(examples) * near.evaluation_seconds * scale
    step = near.seconds * scale * spec.batch_size / near.batch_size
    return seconds_of(spec, held, step, near.evaluation_seconds * scale)


def seconds_of(spec: SweepSpec, held: tuple[int, int], step: float, evaluation: float) -> float:
    """Seconds of a sweep whose grid is not extended, from those of a step of one run and of evaluating an example."""
    validation, test = held
    last = min(spec.test_examples or test, test)
    before, seen = min(spec.budget_examples or test, test), min(spec.budget_examples or last, last)
    budgets = len(spec.budgets())
    # The last parameters are scored as well, where they are not the best ones.
    examples = (budgets - 1) * before + 2 * last + (budgets + 1) * seen
    examples += len(spec.evaluation_steps()) * min(spec.evaluation_examples or validation, validation)
    return spec.runs * (spec.steps * step + examples * evaluation)
