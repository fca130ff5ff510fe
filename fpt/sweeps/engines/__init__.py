"""Engines: every sweep in a fresh worker process, which executes the sweep notebook by papermill.

`schedule` is the loop of all engines; an engine says how an attempt is started, and its attempts when they ended.
local.py starts them on this machine, ray.py on a cluster; tests/sweeps/test_engines.py is what both promise.
"""

import json
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import fpt
from fpt.errors import DataError, FptError, LockedError
from fpt.files import check_writable
from fpt.sweeps import ledger
from fpt.sweeps.spec import SweepSpec

SOURCE = Path("notebooks/sweep.ipynb")  # in this repository; a wheel has a copy of it in fpt/sweeps (pyproject.toml)
FAILED, LOG = "notebook.failed.ipynb", "worker.log"
OWN_ERROR, LOST = 1, 138  # exit codes of a worker; 138 is papermill's own for a dead kernel
RETRIES = 2  # of a lost worker; a sweep that fails by its own error is not tried again
POLL = 0.2  # seconds

Launch = Callable[[SweepSpec, int], "Attempt | None"]  # the engine: a new attempt, None while there is no room for it
Engine = Callable[[Sequence[SweepSpec], Path], list["Failure"]]  # the sweeps below the folder of their study
Watch = Callable[[Sequence[SweepSpec], Sequence[SweepSpec]], None]  # (running, finished since the last call)


@dataclass(frozen=True)
class Failure:
    """A sweep that did not finish: why, and the file that tells more."""

    spec: SweepSpec
    reason: str
    evidence: Path


@dataclass(eq=False)
class Attempt(ABC):
    """One attempt (`number`, from 1) at one sweep, given to an engine; `started` once its worker runs."""

    spec: SweepSpec
    folder: Path
    number: int
    started: bool = field(default=True, kw_only=True)

    @abstractmethod
    def poll(self) -> int | None:
        """The exit code of its worker once that ended."""

    @abstractmethod
    def hang_up(self) -> None:
        """Let its worker end, without waiting for it."""

    def stop(self) -> None:
        """Return when its worker has ended."""
        self.hang_up()


def schedule(launch: Launch, specs: Sequence[SweepSpec], watch: Watch | None) -> list[Failure]:
    """Run the sweeps; those that failed, while the others go on. Whatever ends this function ends its workers."""
    waiting = deque((spec, 1) for spec in specs)
    running: list[Attempt] = []
    failures: list[Failure] = []
    try:
        while waiting or running:
            while waiting and (attempt := launch(*waiting[0])):
                running.append(attempt)
                waiting.popleft()
            time.sleep(POLL)
            ended = [(attempt, end) for attempt in running if (end := _end(attempt)) is not None]
            for attempt, end in ended:
                running.remove(attempt)
                outcome = end if isinstance(end, Failure) else settle(attempt, end)
                if outcome == "again":
                    waiting.append((attempt.spec, attempt.number + 1))
                elif outcome:
                    failures.append(outcome)
            if watch:
                finished = [attempt.spec for attempt, _ in ended if attempt.started]
                watch([attempt.spec for attempt in running if attempt.started], finished)
    finally:
        for attempt in running:  # first all pipes, so that the workers end together
            attempt.hang_up()
        for attempt in running:
            attempt.stop()
    return failures


def _end(attempt: Attempt) -> int | Failure | None:
    """The exit code of a worker that ended; a failure where somebody else has begun to write its folder."""
    try:
        return attempt.poll()
    except LockedError as error:  # of this sweep alone: the others go on
        attempt.hang_up()
        return Failure(attempt.spec, str(error), attempt.folder)


def in_order(engine: Engine, specs: Sequence[SweepSpec], study: Path) -> list[Failure]:
    """Run the sweeps by `engine`, after all others those that start from the weights which one of the others keeps."""
    first = [spec for spec in specs if spec.pretrained_by is None]
    failures = engine(first, study) if first else []
    ready = []
    for spec, keeper in [(spec, study / spec.pretrained_by) for spec in specs if spec.pretrained_by]:
        if (keeper / ledger.KEPT_WEIGHTS).is_file():
            ready.append(spec)
        else:
            reason = f"it starts from the weights of {keeper.name}, which has not kept any"
            failures.append(Failure(spec, reason, keeper))
    return failures + (engine(ready, study) if ready else [])


def to_do(specs: Sequence[SweepSpec], study: Path) -> list[SweepSpec]:
    """The sweeps that are not complete, once it is sure that nobody is at work on any.

    Raises LockedError if somebody else is at work in one of the folders.
    """
    for spec in specs:
        ledger.wait_until_free(study / spec.folder_name)
    specs = [spec for spec in specs if not ledger.sweep_state(spec, study).complete]  # another driver may have done it
    # Longest first: what trains everything takes twice as long, and would keep the other cores waiting at the end.
    return sorted(specs, key=lambda spec: len(spec.means.groups), reverse=True)


def sweep_notebook() -> Path:
    """The notebook that executes a sweep: that of the workspace where it has one, as this repository, else that of the
    package, which lies in an installed one, or beside that of a checkout."""
    package = Path(fpt.__file__).parent
    places = (SOURCE, package / "sweeps" / SOURCE.name, package.parent / SOURCE)
    return next(place for place in places if place.is_file())


def settle(attempt: Attempt, code: int) -> Failure | Literal["again"] | None:
    """What follows when a worker ended with `code`: nothing if the sweep is done, another attempt, or a failure."""
    spec, log, failed = attempt.spec, attempt.folder / LOG, attempt.folder / FAILED
    try:
        done = code == 0 and ledger.read_result(attempt.folder, spec)
    except DataError as damage:  # of this sweep alone: the others go on
        return Failure(spec, str(damage), attempt.folder)
    if done:
        log.unlink(missing_ok=True)
        return None
    if code < 0 or code == LOST:
        reason = f"its process was killed {attempt.number} times, most often for lack of memory"
        return "again" if attempt.number <= RETRIES else Failure(spec, reason, log)
    if failed.is_file() and (error := _notebook_error(failed)):
        return Failure(spec, error, failed)
    lines = log.read_text(errors="replace").strip().splitlines() if log.is_file() else []
    last = lines[-1] if lines else _silence(log)
    return Failure(spec, f"its worker ended with exit code {code} and no result of this sweep: {last}", log)


def _silence(log: Path) -> str:
    """Why a worker that failed wrote nothing: most often a disk that filled while it trained."""
    try:
        check_writable(log.parent)
    except FptError as error:
        return f"{error}. Make room and start the command again: it goes on from the last checkpoint"
    return f"{log} is empty"


def _notebook_error(path: Path) -> str | None:
    """`Name: message` of the exception that an executed notebook ends with."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                return f"{output['ename']}: {output['evalue']}"
    return None
