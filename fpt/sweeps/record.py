"""The record of a finished sweep, result.json, and its tables: what they must be to be believed.

result.json holds the SHA-256 of every table. Whoever reads a finished sweep reads it through this file: `read_record`
wherever a sweep counts as done, which imports neither pandas nor torch, and `read_table` where numbers are used. A
record says by itself what was run, so neither needs a study, a task or a model.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fpt.documents import explained
from fpt.errors import DataError, SpecError
from fpt.files import known_sha256, read_json, state_of
from fpt.sweeps import selection
from fpt.training.recipe import ANSWERS, ATTENTION, MEASURES, WINDOWS, Recipe

if TYPE_CHECKING:
    import pandas as pd

RESULT: Final = "result.json"
PUBLISHED: Final = "published"
RUN = ("learning_rate", "seed")
CHOSEN = ("selected_rate", "choices", "at_edge", "eligible")  # of a record, by its runs


@dataclass(frozen=True)
class Shape:
    """A table: what tells a row from all others, the other columns that it has at least, and those of them whose values
    are from 0 to 1 beside the accuracies."""

    key: tuple[str, ...]
    values: tuple[str, ...]
    shares: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return ("sweep", *self.key, *self.values)


TABLES = {  # NAME.parquet of a sweep
    "runs": Shape(
        RUN,
        ("best_step", "validation_accuracy", "train_accuracy", "test_accuracy", "test_accuracy_last",
         "train_accuracy_last", "diverged_at"),
    ),
    "curves": Shape(
        (*RUN, "step"), ("validation_loss", "validation_accuracy", "test_accuracy", "train_accuracy")
    ),
    ATTENTION: Shape(
        (*RUN, "trained", "query", "key"), ("weight", "relevant", "chance"), shares=("weight", "relevant", "chance")
    ),
    WINDOWS: Shape((*RUN, "part", "window"), ("loss",)),
    ANSWERS: Shape((*RUN, "part", "example"), ("target", "predicted")),
}  # fmt: skip
ALWAYS = tuple(name for name in TABLES if name not in MEASURES)
# Of the fields of a sweep, those by which its record is read, with their types
SPEC = dict.fromkeys(("task", "arm", "variant", "backbone"), str) | dict.fromkeys(
    ("seeds", "learning_rates", "measures"), list
)
ROUNDING = 1e-4  # by which a sum of weights in single precision may be above 1

Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0)]
Text = Annotated[str, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


class _Recorded(BaseModel):
    """Of exactly these types; a later version may record more."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False)


class Tested(_Recorded):
    """Test examples: of all, at every budget, at the last one."""

    drawn_by_seed: bool
    size: Count
    budget: Count
    last: Count
    collection: Count | None = None  # examples of which every seed tests another part; None: a test set, or new ones
    classes: Annotated[int, Field(ge=1)] | None = None


class Git(_Recorded):
    """The code that trained; of a sweep that was interrupted, the code that finished it."""

    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")]
    dirty: bool


class Record(_Recorded):
    """result.json, as fpt.sweeps.provenance writes it. What has a default was not recorded by every version."""

    spec: dict[str, Any]
    hash: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    protocol: int
    rules: int
    asks: dict[str, str]
    plan: list[str] = []
    grid: Annotated[list[Rate], Field(min_length=1)]
    selected_rate: Rate | None
    choices: dict[str, Rate | None]
    at_edge: bool
    within_one_se: list[Rate]
    eligible: list[Rate]
    test: Tested
    tables: dict[str, Sha256]
    data_checksum: Text
    weights_checksum: Text | None
    weights_revision: Text | None = None
    compute_type: Literal["float32", "bfloat16"]
    multiplied_in: Literal["float32", "bfloat16"] | None = None  # float32 for bfloat16 where a processor lacks it
    threads: Annotated[int, Field(ge=1)]
    wide_products: bool | None = None
    device: Text
    version: Text
    git: Git | None
    versions: dict[str, Text]
    fleets: list[Annotated[list[Count], Field(min_length=2, max_length=2)]]
    compiled: bool
    started_utc: Time
    finished_utc: Time
    wall_seconds: Annotated[float, Field(ge=0)]


class Asked(_Recorded):
    """What a study is run for, when a sweep of it starts."""

    asks: dict[str, str]
    plan: list[str]


class Progress(_Recorded):
    """progress.json of a sweep that is being trained."""

    grid: Text
    steps: Annotated[int, Field(ge=1)]
    step: Count
    run_steps: Count
    run_steps_total: Annotated[int, Field(ge=1)]
    started_utc: Time | None = None
    asked: Asked | None = None
    seconds: Annotated[float, Field(ge=0)] = 0.0
    leader: Annotated[tuple[float, float] | None, Field(strict=False)] = None  # of fpt.training.loop


def read_progress(path: Path) -> dict[str, Any] | None:
    """The file's content; None where it is not there, or is not what a sweep at work writes."""
    try:
        return Progress.model_validate(read_json(path)).model_dump()
    except ValidationError:
        return None


def read_record(folder: Path, recorded: str | None = None) -> dict[str, Any]:
    """The result.json of a finished sweep, and its tables are those which the sweep wrote. Raises DataError where they
    are not.

    `recorded`: the SHA-256 of result.json that was written when it was published, which `check` preceded: where it
    fits, nothing else is checked again. Without one, the record must be what a sweep writes, and not contradict itself.
    """
    path = folder / RESULT
    if recorded is not None and path.is_file() and (now := known_sha256(path)) != recorded:
        raise damaged(path, f"its SHA-256 is {now}, and runs/arms.csv, written when it was published, has {recorded}")
    if (found := read_json(path)) is None:
        raise damaged(path, "it holds no JSON object" if path.is_file() else "is missing")
    if recorded is None:
        _check_record(path, found)
    for name, written in found["tables"].items():
        table = folder / f"{name}.parquet"
        if not table.is_file():
            raise damaged(table, f"is missing, and {RESULT} records it")
        if (now := known_sha256(table)) != written:
            raise damaged(table, f"its SHA-256 is {now}, and {RESULT} records {written}")
    return found


def check(folder: Path) -> dict[str, Any]:
    """The record of a finished sweep, checked with all of its tables, as it must be to be published. Raises DataError
    as `read_record` and `read_table` do."""
    result = read_record(folder)
    for name in result["tables"]:
        read_table(folder, name, result)
    return result


def _check_record(path: Path, found: dict[str, Any]) -> None:
    """DataError for what no sweep writes."""
    if "tables" not in found:
        raise damaged(path, "tables is missing: the SHA-256 of each table, which earlier versions did not record")
    try:
        record = Record.model_validate(found)
    except ValidationError as error:
        raise damaged(path, explained(error.errors(include_url=False)[0])) from None
    for finding in _contradictions(record):
        raise damaged(path, finding)


def recipe_of(result: Mapping[str, Any]) -> Recipe:
    """How the runs of a record were trained; a field that it lacks came later, and had its default."""
    fields = result["spec"]
    return Recipe(**{name: fields[name] for name in Recipe.model_fields if name in fields})


def sweep_of(result: Mapping[str, Any]) -> str:
    """The name of a sweep and of its folder, `TASK.ARM-HASH`, by its record."""
    return folder_name(result["spec"]["task"], result["spec"]["arm"], result["hash"])


def folder_name(task: str, arm: str, hashed: str) -> str:
    """`TASK.ARM-HASH`. What no folder can be called, as in `layers: last 2-pretrained`, becomes _: the hash tells arms
    apart."""
    return f"{task.partition(':')[0]}.{re.sub(r'[^A-Za-z0-9_+-]+', '_', arm)}-{hashed}"


def damaged(path: Path, finding: str) -> DataError:
    """The error for a file of a finished sweep, with what to do about it."""
    folder = path.parent
    again = f"remove {folder} and run the study again"
    if folder.parent.name == PUBLISHED:
        again = f"restore {folder}, as with git checkout, or remove it and publish the study again"
    return DataError(f"{path}: {finding}. It was changed after the sweep wrote it, or is damaged: {again}")


def _listed(value: Any) -> list[Any]:
    """The values of a list, of a mapping, or the one value."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _contradictions(record: Record) -> Iterator[str]:
    """What a record says that cannot be so."""
    spec = record.spec
    try:
        Recipe(**{name: spec[name] for name in Recipe.model_fields if name in spec})
    except SpecError as error:
        yield f"spec: {error}"
    if missing := [name for name in SPEC if not isinstance(spec.get(name), SPEC[name])]:
        yield f"spec.{missing[0]} = {spec.get(missing[0])!r}: {SPEC[missing[0]].__name__} is expected"
    if record.grid != sorted(set(record.grid)) or not set(spec["learning_rates"]) <= set(record.grid):
        yield f"grid = {record.grid}: rates in ascending order are expected, those of the study among them"
    for name in ("selected_rate", "within_one_se", "eligible", "choices"):
        if unknown := [rate for rate in _listed(getattr(record, name)) if rate not in (None, *record.grid)]:
            yield f"{name} holds {unknown[0]!r}: a rate of the grid {record.grid} is expected"
    if set(record.choices) != {str(seed) for seed in spec["seeds"]}:
        yield f"choices are of the seeds {', '.join(record.choices) or 'none'}: {spec['seeds']} are expected"
    runs, trained = len(record.grid) * len(spec["seeds"]), sum(rates * seeds for rates, seeds in record.fleets)
    if trained != runs:
        yield f"fleets = {record.fleets}: fleets of {runs} runs are expected, rates times seeds"
    tables = {*ALWAYS, *({*TABLES} & {*spec["measures"]})}
    if set(record.tables) != tables:
        yield f"tables = {sorted(record.tables)}: {sorted(tables)} are expected"


@dataclass(frozen=True)
class Expected:
    """What the tables of a sweep must agree with."""

    sweep: str
    grid: tuple[float, ...]
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    chosen: tuple[str, ...]  # what the record says of each of CHOSEN, as JSON

    @staticmethod
    def of(result: Mapping[str, Any]) -> "Expected":
        return Expected(
            sweep=sweep_of(result),
            grid=tuple(map(float, result["grid"])),
            seeds=tuple(result["spec"]["seeds"]),
            steps=tuple(recipe_of(result).evaluation_steps()),
            chosen=tuple(json.dumps(result[name], sort_keys=True) for name in CHOSEN),
        )


def read_table(folder: Path, name: str, result: Mapping[str, Any], published: bool = False) -> "pd.DataFrame":
    """A table of a finished sweep, by its name in `result`, which `read_record` let pass.

    DataError where it cannot be read, or is not what the sweep must have written; of what is published, this was
    checked before, and its SHA-256 holds it. The same file is read once.
    """
    path = folder / f"{name}.parquet"
    try:
        return _read(path, state_of(path), name, None if published else Expected.of(result))
    except OSError as error:
        raise damaged(path, f"cannot be read ({error.strerror or error})") from None


@cache
def _read(path: Path, written: tuple[int, int] | None, name: str, expected: Expected | None) -> "pd.DataFrame":
    """A table, read and checked once in a process for as long as it is the same file."""
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except ValueError as error:  # pyarrow's, for a file that is no parquet, is one
        raise damaged(path, f"cannot be read ({error})") from None
    if expected is not None:
        for finding in _faults(name, frame, expected):
            raise damaged(path, finding)
        for finding in _other_choices(frame, expected) if name == "runs" else ():
            raise damaged(path.with_name(RESULT), finding)
    return frame


def _faults(name: str, frame: "pd.DataFrame", expected: Expected) -> Iterator[str]:
    """What is wrong with a table by itself, the first thing first."""
    shape = TABLES[name]
    if missing := [column for column in shape.columns if column not in frame]:
        yield f"has no column {missing[0]!r}; expected are {', '.join(shape.columns)}"
    if others := set(frame["sweep"]) - {expected.sweep}:
        yield f"its column sweep holds {sorted(map(str, others))[0]}: {expected.sweep} is expected"
    rows = list(zip(*(frame[column].tolist() for column in shape.key), strict=True))
    if len(set(rows)) < len(rows):
        yield f"has {len(rows)} rows, and {len(rows) - len(set(rows))} repeat the {', '.join(shape.key)} of another"
    runs = {row[:2] for row in rows}
    wanted = set(product(expected.grid, expected.seeds))
    if runs != wanted:
        some = sorted(runs ^ wanted, key=str)[0]
        yield (
            f"has {len(runs)} runs, of which {len(runs & wanted)} are expected: {len(expected.grid)} learning rates "
            f"times {len(expected.seeds)} seeds; learning rate {some[0]} of seed {some[1]} is "
            f"{'missing' if some in wanted else 'not among these'}"
        )
    if name == "curves" and set(rows) != set(product(expected.grid, expected.seeds, expected.steps)):
        yield f"has {len(rows)} rows: expected is every run at each of the steps {', '.join(map(str, expected.steps))}"
    yield from _no_shares(name, frame)


def _no_shares(name: str, frame: "pd.DataFrame") -> Iterator[str]:
    """Accuracies and weights that are no numbers from 0 to 1.

    Only a run that diverged has no validation accuracy at its end. Another set may be beyond the range of numbers
    where the validation set was not yet.
    """
    for column in [*TABLES[name].shares, *(each for each in frame if "accuracy" in str(each))]:
        if frame[column].dtype.kind != "f":
            yield f"column {column!r} holds {frame[column].dtype}: numbers are expected"
            continue
        outside = frame[column][(frame[column] < 0) | (frame[column] > 1 + ROUNDING)]
        if len(outside):
            yield f"column {column!r} holds {outside.iloc[0]:g}: values between 0 and 1 are expected"
    if name == "runs":
        if frame["diverged_at"].dtype.kind not in "if":
            yield f"column 'diverged_at' holds {frame['diverged_at'].dtype}: steps are expected"
        lost = frame["validation_accuracy"].isna() & frame["diverged_at"].isna()
        if lost.any():
            yield f"{lost.sum()} runs have no validation accuracy, and did not diverge by column 'diverged_at'"


def _other_choices(runs: "pd.DataFrame", expected: Expected) -> Iterator[str]:
    """Where a record names other rates than those that its runs choose."""
    by_runs = selection.chosen(selection.by_seed(runs))
    for name, recorded in zip(CHOSEN, expected.chosen, strict=True):
        found = json.dumps(by_runs[name], sort_keys=True)
        if recorded != found:
            yield f"{name} = {recorded}: its runs give {found}"
