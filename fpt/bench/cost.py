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
from fpt.sweeps.record import PUBLISHED
from fpt.sweeps.spec import SweepSpec

FOLDER = "bench"  # below runs/
TRAINING = 5  # examples that train for each one of validation, where no option says how many: as in CIFAR-10


class _Measured(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class Workload(_Measured):
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
        fields["backbone_options"] = {**spec.means.backbone.options, **spec.backbone_options}
        return Workload(**fields)

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def kind(self) -> Literal["features", "frozen", "matrices"]:
        """What a step computes: the output layer alone, on features that are computed once; or gradients as well, of
        matrices or of none."""
        own_table = tasks.own_table(self.task, self.task_options)
        groups = models.trainable_groups(self.trainable, self.model, self.backbone_options, own_table)
        if groups == ("output",) and self.dropout == 0:
            return "features"
        wholes = {whole for group in groups for whole in models.part(group).groups}
        return "matrices" if {"attention", "feed_forward", "recurrent"} & wholes else "frozen"

    @property
    def model(self) -> models.Backbone:
        """Of the name that a line of the file of measurements has."""
        return models.backbone(self.backbone)

    @property
    def width(self) -> int:
        return int(self.backbone_options.get("width", self.model.width))

    @property
    def weights(self) -> int:
        """A number in proportion to the weights of the matrices of one architecture."""
        return int(self.backbone_options.get("layers") or self.model.layers) * self.width**2


class Measurement(Workload):
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
    def key(self) -> tuple[Any, ...]:
        """What tells rows of a device apart."""
        return self.workload, self.arm, self.runs, self.compute_type, self.compiled

    def serves(self, spec: SweepSpec, workload: Workload) -> bool:
        """Whether it was measured for this workload, of the sweep `spec`, in the number type of the sweep."""
        return self.workload == workload and spec.compute_type in ("auto", self.compute_type)

    @property
    def ratio(self) -> float | None:
        """Reference / fleet, of the medians over the rounds."""
        return self.reference_seconds and self.reference_seconds / self.seconds


class Ceiling(_Measured):
    """The best rates of matrix products that a device was seen to reach."""

    float32_flop_per_second: float
    bfloat16_flop_per_second: float


class Bench(_Measured):
    """One file of runs/bench: a device, the software, and one row per cell."""

    device: str
    kind: str  # name of the file
    threads: int
    ceiling: Ceiling
    version: str | None = None
    git: dict[str, Any] | None = None
    versions: dict[str, str | None] = Field(default={})
    measured_utc: str = ""
    rows: list[Measurement]

    @property
    def title(self) -> str:
        return f"{self.device}, threads: {self.threads}"

    def utilisation(self, row: Measurement) -> float:
        """The share of the device's rate of products, in the number type of the row, that the row's FLOP reached."""
        rate: float = getattr(self.ceiling, f"{row.compute_type}_flop_per_second")
        return row.flop / row.seconds / rate

    def rows_like(self, other: "Bench") -> list[Measurement]:
        """The rows, if the same code ran on the same device; uncommitted changes leave open what the code was."""
        first, second = (bench.model_dump(exclude={"ceiling", "measured_utc", "rows"}) for bench in (self, other))
        return self.rows if first == second and not (self.git or {}).get("dirty", False) else []


def benches(runs: Path, own: bool = True) -> list[Bench]:
    """What was measured, a file a kind of device, by name: ours, of `runs`/bench/published, and then the reader's own,
    which lie beside that folder (`own`).

    Raises DataError, naming the file, for one that is not what `fpt bench` writes.
    """
    folders = [runs / FOLDER / PUBLISHED, *([runs / FOLDER] if own else [])]
    return [read(path) for folder in folders for path in sorted(folder.glob("*.json"))]


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


def costs(state: SweepState, figures: Mapping[str, Sequence[Measurement]]) -> list[Cost]:
    """What a sweep takes, by the best source that there is: its own result, the published one, or `figures` (rows by
    device), one Cost for every device that they serve. Empty where nothing is known."""
    if state.result:
        return [Cost(state.result["wall_seconds"], "measured")]
    if state.published:
        return [Cost(state.published["wall_seconds"], "measured", state.published["device"])]
    found = [cost for device, rows in figures.items() if (cost := forecast(state.spec, rows, device)) is not None]
    return [cost for cost in found if cost.source == "predicted"] or found


def forecast(spec: SweepSpec, rows: Sequence[Measurement], device: str = "") -> Cost | None:
    """The time by the row of the sweep's workload, else of the nearest one of its kind in proportion to tokens and
    weights: of its family, then by width, number type, tokens and runs.

    Features that are computed once are a forward pass of every example, once a seed. None for a task of unknown length
    whose workload was not measured, and where no row is of its kind.
    """
    workload = Workload.of(spec)
    family = spec.means.backbone.family
    length = tasks.entry(spec.task).length(spec.variant, spec.task_options)

    def distance(row: Measurement) -> tuple[bool, bool, float, bool, float, int]:
        return (
            not row.serves(spec, workload),
            row.model.family != family,
            abs(math.log(row.width / workload.width)),
            spec.compute_type not in ("auto", row.compute_type),
            abs(math.log(row.tokens / length)) if length else 0,
            abs(row.runs - spec.runs),
        )

    kind = "frozen" if workload.kind == "features" else workload.kind
    alike = [row for row in rows if row.backbone in (*models.BACKBONES, spec.backbone) and row.kind == kind]
    near = min(alike, key=distance, default=None)
    if near is None:
        return None
    exact = near.serves(spec, workload)
    tokens = near.tokens if exact else length
    if tokens is None:
        return None
    held = next((row.held for row in (near, *rows) if row.task == spec.task), near.held)
    scale = tokens * workload.weights / (near.tokens * near.weights)
    evaluation = near.evaluation_seconds * scale
    if workload.kind == "features":
        examples = workload.task_options.get("train", TRAINING * held[0]) + sum(held)
        return Cost(len(spec.seeds) * examples * evaluation, "estimated", device)
    step = near.seconds * scale * spec.batch_size / near.batch_size
    return Cost(seconds_of(spec, held, step, evaluation), "predicted" if exact else "estimated", device)


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
