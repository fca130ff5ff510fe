"""What the `fpt` command shows: tables of sweeps, predicted times, bars of sweeps at work."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from fpt.sweeps import ledger, speeds
from fpt.sweeps.ledger import SweepState, sweep_state
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study

console = Console(highlight=False)


def sweep_table(title: str, *columns: str) -> Table:
    """A table whose first column is never cut: names of sweeps are copied from the screen."""
    return Table(Column("sweep", overflow="fold", ratio=1), *columns, title=escape(title))


def known_result(state: SweepState) -> dict[str, Any] | None:
    """The result whose own wall time is known."""
    return state.result or state.published


def times_of(state: SweepState, benches: Sequence[speeds.Bench]) -> dict[str, float]:
    """Seconds of a sweep by where they are from: its own result, else the published one's, else the figures of benches
    for its kind, else an estimate from figures for other kinds."""
    if known := known_result(state):
        return {"" if state.result else f" on {known['device']}": known["wall_seconds"]}
    for word, seconds_of in (("predicted", speeds.predict), ("estimated", estimate)):
        found = {
            f" {word} for {bench['device']} (threads: {bench['threads']})": seconds_of(state.spec, bench["rows"])
            for bench in benches
            if bench["rows"]
        }
        if times := {where: seconds for where, seconds in found.items() if seconds is not None}:
            return times
    return {}


def estimate(spec: SweepSpec, rows: Sequence[dict[str, Any]]) -> float | None:
    """By FLOP (fpt.sweeps.flop), which needs torch: only where no figure fits."""
    from fpt.sweeps import flop

    return flop.estimate(spec, rows)


def measure_here(todo: Sequence[SweepState]) -> speeds.Bench:
    """Figures made here and now, a row for each kind of sweep; random weights will do."""
    from fpt import bench

    kinds = {json.dumps(speeds.cost_of(state.spec)): state.spec for state in todo if not known_result(state)}
    rows: list[dict[str, Any]] = []
    for spec in kinds.values():
        console.print(f"measuring {escape(spec.title)}")
        rows.append(bench.apart(bench.measure, spec.model_copy(update={"init": "random"}), 3, 0.5, False))
    return {"device": "this machine", "threads": rows[0]["threads"] if rows else 0, "rows": rows}


def runs_text(spec: SweepSpec) -> str:
    """Runs of both stages; the selected rate may be one of the reference rates."""
    most, seeds = spec.confirmation_runs, len(spec.confirmation_seeds)
    return f"{spec.selection_runs} + {most - seeds} to {most}" if seeds else str(spec.selection_runs)


def time_text(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def status_table(study: Study) -> Table:
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
        hours = time_text(state.result["wall_seconds"]) if state.result else ""
        table.add_row(spec.folder_name, word, rate, hours, "yes" if state.published else "")
    for inside in ("", ledger.PUBLISHED):
        for folder in ledger.stale_folders(study, inside):
            table.add_row(folder.relative_to(study.folder).as_posix(), "stale", "", "", "", style="dim")
    return table


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
            if spec.hash in self.live:  # else it ended before anybody saw it run
                self.bars.remove_task(self.live.pop(spec.hash))
            finished = sweep_state(spec, self.study).state == "done"
            self.done += finished
            word = f"done ({self.done} of {self.total})" if finished else "ended without a result"
            self._line(word, spec)

    def _line(self, word: str, spec: SweepSpec) -> None:
        self.bars.console.print(f"{time.strftime('%H:%M:%S')} {word}: {spec.title}", markup=False)
