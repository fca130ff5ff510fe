"""The record of a finished sweep, result.json, and its tables: when they are believed.

result.json holds the SHA-256 of every table, and of what it says itself. Whoever reads a finished sweep reads it
through this file: `read_record` wherever a sweep counts as done, which imports neither pandas nor torch, and
`read_table` where numbers are used. A record says by itself what was run, so neither needs a study, a task or a model.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fpt.documents import explained
from fpt.errors import DataError
from fpt.files import State, known_sha256, read_json, state_of
from fpt.sweeps import selection
from fpt.training.recipe import ANSWERS, ATTENTION, MEASURES, WINDOWS, Recipe

if TYPE_CHECKING:
    import pandas as pd

RESULT: Final = "result.json"
PUBLISHED: Final = "published"
SEAL: Final = "sha256"  # of a record: the SHA-256 of all else that it says
RUN = ("sweep", "learning_rate", "seed")
TABLES = {  # NAME.parquet of a sweep: the columns that it has at least
    "runs": (
        *RUN, "best_step", "validation_accuracy", "train_accuracy", "test_accuracy", "test_accuracy_last",
        "train_accuracy_last", "diverged_at",
    ),
    "curves": (*RUN, "step", "validation_loss", "validation_accuracy", "test_accuracy", "train_accuracy"),
    ATTENTION: (*RUN, "trained", "query", "key", "weight", "relevant", "chance"),
    WINDOWS: (*RUN, "part", "window", "loss"),
    ANSWERS: (*RUN, "part", "example", "target", "predicted"),
}  # fmt: skip
ALWAYS = tuple(name for name in TABLES if name not in MEASURES)

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


class Swept(_Recorded):
    """The fields of a sweep by which its record is read; it has the others, too."""

    task: Text
    arm: Text
    variant: Text
    backbone: Text
    learning_rates: list[Rate]
    seeds: list[Count]
    measures: list[str]


class Record(_Recorded):
    """result.json, as fpt.sweeps.provenance writes it. What has a default was not recorded by every version."""

    spec: Swept
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
    sha256: Sha256 | None = None


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


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """The record with its own SHA-256, which is over its other fields in the order of their names."""
    text = json.dumps({name: value for name, value in record.items() if name != SEAL}, sort_keys=True)
    return record | {SEAL: hashlib.sha256(text.encode()).hexdigest()}


def read_record(folder: Path, recorded: str | None = None) -> dict[str, Any]:
    """The result.json of a finished sweep, and its tables are those which the sweep wrote. Raises DataError where they
    are not.

    `recorded`: the SHA-256 of result.json that was written when it was published. Without one the record must have the
    types of one, and its own SHA-256, which earlier versions did not write.
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
    return {name: value for name, value in found.items() if name != SEAL}


def _check_record(path: Path, found: dict[str, Any]) -> None:
    if found.get(SEAL) is not None and found != (written := sealed(found)):
        raise damaged(path, f"the SHA-256 of what it says is {written[SEAL]}, and it records {found[SEAL]}")
    try:
        Record.model_validate(found)
    except ValidationError as error:
        raise damaged(path, explained(error.errors(include_url=False)[0])) from None


def check(folder: Path) -> dict[str, Any]:
    """The record of a finished sweep as it must be to be published: it names the rates that its runs choose. Raises
    DataError, also as `read_record` and `read_table` do."""
    result = read_record(folder)
    tables = {name: read_table(folder, name) for name in result["tables"]}
    for name, chosen in selection.chosen(selection.by_seed(tables["runs"])).items():
        if result[name] != chosen:
            raise damaged(folder / RESULT, f"{name} = {result[name]}: its runs give {chosen}")
    return result


def recipe_of(result: Mapping[str, Any]) -> Recipe:
    """How the runs of a record were trained; a field that it lacks came later, and had its default."""
    fields = result["spec"]
    return Recipe(**{name: fields[name] for name in Recipe.model_fields if name in fields})


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


def read_table(folder: Path, name: str) -> "pd.DataFrame":
    """A table of a finished sweep whose record `read_record` let pass. The same file is read once. Raises DataError
    where it cannot be read."""
    path = folder / f"{name}.parquet"
    return _read(path, state_of(path))


@cache
def _read(path: Path, state: State) -> "pd.DataFrame":
    """A table, read once in a process for as long as it is the same file."""
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:  # pyarrow's, for a file that is no parquet, is a ValueError
        raise damaged(path, f"cannot be read ({error})") from None
