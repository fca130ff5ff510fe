"""What `fpt run` shows while sweeps train: a bar for each, or lines of a log."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from fpt.cli.tables import console, time_text
from fpt.errors import FptError
from fpt.sweeps.engines import Watch
from fpt.sweeps.ledger import PROGRESS, sweep_state
from fpt.sweeps.record import read_progress
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.words import title

FIRST_LINE = 0.01  # share done at which a sweep says for the first time how far it is


class SweepBars:
    """One bar for each running sweep, read from its progress.json. Where there is no terminal, plain lines: after the
    first percent, which shows that it trains and how long it will take, and after every tenth."""

    def __init__(self, specs: Sequence[SweepSpec], study: Path) -> None:
        self.study, self.done, self.total = study, 0, len(specs)
        titles = TextColumn("{task.description}", table_column=Column(overflow="fold"))
        columns = (titles, BarColumn(bar_width=20), TextColumn("{task.percentage:>3.0f}%"))
        self.bars = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)
        self.live: dict[str, TaskID] = {}
        self.earlier: dict[str, Any] = {}  # the last progress.json of the process that a resumed sweep goes on from
        # By sweep and its run-steps in all: the share done at its next line; share and seconds after its first step.
        self.next_line: dict[tuple[str, int], float] = {}
        self.first: dict[tuple[str, int], tuple[float, float]] = {}

    def __enter__(self) -> Watch:
        if console.is_terminal:
            self.bars.start()
        return self.watch

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def watch(self, running: Sequence[SweepSpec], ended: Sequence[SweepSpec]) -> None:
        """Called by the engine several times a second."""
        for spec in running:
            progress = read_progress(self.study / spec.folder_name / PROGRESS)
            if spec.hash not in self.live:
                self.live[spec.hash] = self.bars.add_task(title(spec), total=None)
                self.earlier[spec.hash] = progress
                self._line("started", spec)
            if progress:
                done, total = progress["run_steps"], progress["run_steps_total"]
                described = f"{title(spec)}{leader_text(progress)}"
                self.bars.update(self.live[spec.hash], completed=done, total=total, description=described)
                if not console.is_terminal and progress != self.earlier[spec.hash]:
                    self._progress_line(spec, progress)
        for spec in ended:
            if spec.hash in self.live:  # otherwise it ended before it was seen running
                self.bars.remove_task(self.live.pop(spec.hash))
            finished = self._is_done(spec)
            self.done += finished
            word = f"done ({self.done} of {self.total})" if finished else "ended without a result"
            self._line(word, spec)

    def _is_done(self, spec: SweepSpec) -> bool:
        """A result that cannot be read is none here: the engine names it among its failures, and others go on."""
        try:
            return sweep_state(spec, self.study).state == "done"
        except FptError:
            return False

    def _progress_line(self, spec: SweepSpec, progress: Mapping[str, Any]) -> None:
        if not progress["step"]:
            return
        # The first step can take minutes, since it loads and compiles: what is left is judged by the steps after it.
        # A grid that grows has more run-steps, and is judged anew.
        work, seconds = (spec.hash, progress["run_steps_total"]), progress["seconds"]
        share = progress["run_steps"] / progress["run_steps_total"]
        begun, before = self.first.setdefault(work, (share, seconds))
        if begun < share < 1 and share >= self.next_line.get(work, FIRST_LINE):
            self.next_line[work] = (math.floor(10 * share) + 1) / 10
            left = time_text((seconds - before) * (1 - share) / (share - begun))
            self._line(f"{share:.0%}, {left} left{leader_text(progress)}", spec)

    def _line(self, word: str, spec: SweepSpec) -> None:
        self.bars.console.print(f"{time.strftime('%H:%M:%S')} {word}: {title(spec)}", markup=False)


def leader_text(progress: Mapping[str, Any]) -> str:
    """What a sweep has learned so far, once it was evaluated."""
    if not progress["leader"]:
        return ""
    rate, accuracy = progress["leader"]
    return f", {accuracy:.1%} of validation right so far at {rate:g}"
