"""The `fpt` command: plan, run, watch and publish studies, and see what this machine has."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table
from typer.core import TyperGroup

from fpt.errors import FptError, SpecError
from fpt.sweeps import ledger
from fpt.sweeps.ledger import SweepState, sweep_state
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study, load_study, study_folder

console = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)


class Commands(TyperGroup):
    """Every FptError becomes its message and exit code 2, whatever the command."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FptError as error:
            stderr.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
            raise typer.Exit(2) from None


app = typer.Typer(cls=Commands, help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="A folder of runs/ that holds a study.yaml.")]
Root = Annotated[Path | None, typer.Option("--root", help="The folder with runs/ and notebooks/ [default: nearest]")]
Only = Annotated[str | None, typer.Option("--only", metavar="ID", help="Only sweeps that feed this table or figure.")]


def sweep_table(title: str, *columns: str) -> Table:
    """A table whose first column is never cut: names of sweeps are copied from the screen."""
    return Table(Column("sweep", overflow="fold", ratio=1), *columns, title=escape(title))


@contextlib.contextmanager
def opened(name: str, root: Path | None) -> Iterator[Study]:
    """The study, with the workspace as working directory: results never hold a path from above it."""
    with contextlib.chdir(ledger.workspace(root)):
        yield load_study(study_folder(Path("runs"), name))


@app.command()
def plan(study: StudyName, only: Only = None, root: Root = None) -> None:
    """Show what `fpt run` would do, and how long it takes where that was measured."""
    with opened(study, root) as opened_study:
        states = [sweep_state(spec, opened_study.folder) for spec in opened_study.feeding(only)]
    table = sweep_table(opened_study.name, "state", "runs", "steps", "time")
    for state in states:
        spec = state.spec
        table.add_row(spec.folder_name, state.state, _runs(spec), f"{spec.steps:,}", _measured(state))
    console.print(table)
    todo = [state for state in states if not state.complete]
    measured = [result["wall_seconds"] for state in todo if (result := state.published)]
    unknown = len(todo) - len(measured)
    times = [f"{_time({'wall_seconds': sum(measured)})} as measured"] if measured else []
    total = ", ".join([*times, *([f"{unknown} of unknown time"] if unknown else [])])
    console.print(f"{len(todo)} of {len(states)} sweeps to run" + (f": {total}" if todo else ""))


def _runs(spec: SweepSpec) -> str:
    """Runs of both stages; the selected rate may be one of the reference rates."""
    first = len(spec.learning_rates) * len(spec.selection_seeds)
    seeds, references = len(spec.confirmation_seeds), len(spec.reference_rates)
    return f"{first} + {seeds * references} to {seeds * (references + 1)}" if seeds else str(first)


def _time(result: dict[str, Any]) -> str:
    seconds = result["wall_seconds"]
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def _measured(state: SweepState) -> str:
    """As measured here, else where the published results were made."""
    if state.result:
        return _time(state.result)
    if state.published:
        return f"{_time(state.published)} on {state.published['device']}"
    return "unknown"


class Engine(StrEnum):
    """Who starts the processes."""

    LOCAL = "local"
    RAY = "ray"


@app.command()
def run(
    study: StudyName,
    only: Only = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of each sweep [default: 1].")] = None,
    engine: Annotated[Engine, typer.Option(help="This machine alone, or a Ray cluster.")] = Engine.LOCAL,
    address: Annotated[str | None, typer.Option(help="HOST:PORT of the cluster [default: one that runs here]")] = None,
    root: Root = None,
) -> None:
    """Train what is not done yet. Finished sweeps are kept; a killed run is simply started again."""
    if address and engine is not Engine.RAY:
        raise SpecError(f"--address {address}: only --engine ray has an address")
    with opened(study, root) as opened_study:
        chosen = opened_study.feeding(only)
        states = [sweep_state(spec, opened_study.folder) for spec in chosen]
        todo = [state.spec for state in states if not state.complete]
        console.print(f"{escape(opened_study.name)}: {len(chosen) - len(todo)} of {len(chosen)} sweeps done")
        if not todo:
            return
        from fpt.sweeps.engines import run_local
        from fpt.sweeps.execute import check_all
        from fpt.sweeps.ray_engine import run_ray

        start = partial(run_ray, address=address) if engine is Engine.RAY else run_local

        with console.status("checking data, weights and disk"):
            check_all(todo, opened_study.folder)
        with SweepBars(todo, opened_study.folder) as bars:
            failures = start(todo, opened_study.folder, threads, bars.watch)
    for failure in failures:
        stderr.print(f"failed: {failure.spec.title}", style="red", markup=False)
        stderr.print(f"  {failure.reason}\n  see {failure.evidence}", markup=False, soft_wrap=True)
    if failures:
        raise typer.Exit(1)


class SweepBars:
    """One bar for each sweep at work, fed from its progress.json; plain lines where there is no terminal."""

    def __init__(self, specs: Sequence[SweepSpec], study: Path) -> None:
        self.study, self.done, self.total = study, 0, len(specs)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
        self.bars = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
        self.live: dict[str, TaskID] = {}

    def __enter__(self) -> "SweepBars":
        if console.is_terminal:
            self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def watch(self, running: Sequence[SweepSpec], ended: Sequence[SweepSpec]) -> None:
        """Called by the engine several times a second."""
        for spec in running:
            if spec.hash not in self.live:
                self.live[spec.hash] = self.bars.add_task(spec.title, total=None)
                self._line("started", spec)
            progress = sweep_state(spec, self.study).progress
            if progress:
                done, total = progress["run_steps"], progress["run_steps_total"]
                self.bars.update(self.live[spec.hash], completed=done, total=total)
        for spec in ended:
            self.bars.remove_task(self.live.pop(spec.hash))
            finished = sweep_state(spec, self.study).state == "done"
            self.done += finished
            word = f"done ({self.done} of {self.total})" if finished else "ended without a result"
            self._line(word, spec)

    def _line(self, word: str, spec: SweepSpec) -> None:
        self.bars.console.print(f"{time.strftime('%H:%M:%S')} {word}: {spec.title}", markup=False)


@app.command()
def status(
    study: StudyName,
    watch: Annotated[bool, typer.Option("--watch", help="Keep the table up to date until Ctrl-C.")] = False,
    root: Root = None,
) -> None:
    """Show the state of every sweep, live with --watch."""
    with opened(study, root) as opened_study, contextlib.suppress(KeyboardInterrupt):
        if not watch:
            console.print(_status(opened_study))
            return
        with Live(_status(opened_study), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(1)
                live.update(_status(opened_study), refresh=True)


def _status(study: Study) -> Table:
    table = sweep_table(study.name, "state", "selected rate", "time", "published")
    for spec in study.sweeps:
        state = sweep_state(spec, study.folder)
        rate = ""
        if state.result:
            rate = f"{state.result['selected_rate'] or 'none'}" + (" (edge)" if state.result["at_edge"] else "")
        word, progress = state.state, state.progress
        if progress:
            share = progress["run_steps"] / progress["run_steps_total"]
            step = f"step {progress['step']:,} of {progress['steps']:,}"
            word = f"running {share:.0%} ({progress['stage']}, {step})"
        hours = _time(state.result) if state.result else ""
        table.add_row(spec.folder_name, word, rate, hours, "yes" if state.published else "")
    for inside in ("", ledger.PUBLISHED):
        for folder in ledger.stale_folders(study, inside):
            table.add_row(folder.relative_to(study.folder).as_posix(), "stale", "", "", "", style="dim")
    return table


@app.command()
def publish(
    study: StudyName,
    partial: Annotated[
        bool, typer.Option("--partial", help="Publish the finished sweeps of an unfinished study.")
    ] = False,
    root: Root = None,
) -> None:
    """Copy finished sweeps to runs/STUDY/published and list their notebooks in the book."""
    from fpt.sweeps import publish as publishing

    with opened(study, root) as opened_study:
        written = publishing.publish(opened_study, partial)
        listed = publishing.list_notebooks(Path())
    console.print(f"{len(written)} sweeps published; the book lists {listed} executed notebooks")


@app.command()
def doctor(root: Root = None) -> None:
    """Show what this machine has, and how to get what it has not. Downloads nothing."""
    from fpt.doctor import findings

    table = Table("what", "found", "how to get it", title="this machine")
    with contextlib.chdir(ledger.workspace(root)):
        for what, found, remedy in findings():
            table.add_row(what, found, remedy)
    console.print(table)


if __name__ == "__main__":
    app()
