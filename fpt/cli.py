"""The `fpt` command: plan, run, watch and publish studies, see what this machine has and how fast it is."""

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
from fpt.sweeps import ledger, speeds
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
def plan(
    study: StudyName,
    only: Only = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time a few steps here for every kind of sweep that is to run.")
    ] = False,
    root: Root = None,
) -> None:
    """Show what `fpt run` would do, and how long it takes: as measured, else by the figures of `fpt bench`."""
    with opened(study, root) as opened_study:
        states = [sweep_state(spec, opened_study.folder) for spec in opened_study.feeding(only)]
        todo = [state for state in states if not state.complete]
        benches = [_measure_here(todo)] if measure else speeds.benches(Path("runs"))
    table = sweep_table(opened_study.name, "state", "runs", "steps", "time")
    total: dict[str, list[float]] = {}  # where it was measured -> seconds of each sweep to run
    for state in states:
        spec, times = state.spec, _times(state, benches)
        shown = "; ".join(_time(seconds) + where for where, seconds in times.items())
        table.add_row(spec.folder_name, state.state, _runs(spec), f"{spec.steps:,}", escape(shown or "unknown"))
        for where, seconds in times.items() if state in todo else ():
            total.setdefault(" as measured" if _known(state) else where, []).append(seconds)
    console.print(table)
    unknown = sum(not _times(state, benches) for state in todo)
    parts = [f"{_time(sum(times))}{where}" for where, times in total.items()]
    parts += [f"{unknown} of unknown time"] if unknown else []
    console.print(escape(f"{len(todo)} of {len(states)} sweeps to run" + (f": {', '.join(parts)}" if parts else "")))


def _known(state: SweepState) -> dict[str, Any] | None:
    """The result whose own wall time is known."""
    return state.result or state.published


def _times(state: SweepState, benches: Sequence[speeds.Bench]) -> dict[str, float]:
    """Seconds of a sweep by where they are from: its own result, else the published one's, else figures of benches."""
    if known := _known(state):
        return {"" if state.result else f" on {known['device']}": known["wall_seconds"]}
    found = {
        f" predicted for {bench['device']} (threads: {bench['threads']})": speeds.predict(state.spec, bench["rows"])
        for bench in benches
    }
    return {where: seconds for where, seconds in found.items() if seconds is not None}


def _measure_here(todo: Sequence[SweepState]) -> speeds.Bench:
    """Figures made here and now, a row for each kind of sweep; random weights will do."""
    from fpt import bench

    rows: list[dict[str, Any]] = []
    for spec in [state.spec for state in todo if not _known(state)]:
        if speeds.predict(spec, rows) is None:
            console.print(f"measuring {escape(spec.title)}")
            rows.append(bench.apart(bench.measure, spec.model_copy(update={"init": "random"}), 3, 0.5, False))
    return {"device": "this machine", "threads": rows[0]["threads"] if rows else 0, "rows": rows}


def _runs(spec: SweepSpec) -> str:
    """Runs of both stages; the selected rate may be one of the reference rates."""
    most, seeds = spec.confirmation_runs, len(spec.confirmation_seeds)
    return f"{spec.selection_runs} + {most - seeds} to {most}" if seeds else str(spec.selection_runs)


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


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
        from fpt.sweeps.engines import in_order, run_local
        from fpt.sweeps.execute import check_all
        from fpt.sweeps.ray_engine import run_ray

        chosen_engine = partial(run_ray, address=address) if engine is Engine.RAY else run_local

        with console.status("checking data, weights and disk"):
            check_all(todo, opened_study.folder)
        with SweepBars(todo, opened_study.folder) as bars:
            failures = in_order(chosen_engine, todo, opened_study.folder, threads, bars.watch)
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
        hours = _time(state.result["wall_seconds"]) if state.result else ""
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
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A few cells of the small model: under 3 minutes.")] = False,
    cell: Annotated[
        list[str] | None,
        typer.Option(metavar="BACKBONE/TASK[:VARIANT]/ARM/RUNS", help="Only this cell; may be given more than once."),
    ] = None,
    root: Root = None,
) -> None:
    """Measure fleets beside a plain loop in the released code's style; writes runs/bench/DEVICE.json."""
    from fpt.bench import bench as measure

    with contextlib.chdir(ledger.workspace(root)):
        result = measure(cell or [], quick, Path("runs"), lambda line: console.print(escape(line)))
    from fpt.evidence.speed import bench_table, bench_targets, bench_words

    console.print(bench_words(result), soft_wrap=True)
    for title, frame in (("run-steps beside the reference", bench_table(result)), ("targets", bench_targets(result))):
        table = Table(*frame.columns, title=title)
        for _, row in frame.iterrows():
            table.add_row(*row)
        console.print(table)
    console.print(f"written: runs/{speeds.FOLDER}/{result['kind']}.json; * random inputs in the task's shape")


@app.command()
def doctor(root: Root = None) -> None:
    """Show what this machine has, and how to get what it has not. Downloads nothing."""
    from fpt.doctor import findings

    table = Table("what", "found", Column("how to get it", overflow="fold"), title="this machine")
    with contextlib.chdir(ledger.workspace(root)):
        for what, found, remedy in findings():
            table.add_row(what, found, remedy)
    console.print(table)


if __name__ == "__main__":
    app()
