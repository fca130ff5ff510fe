"""What the `fpt` command shows: tables of sweeps, predicted times, progress bars."""

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column, Table

from fpt.bench.cost import Cost
from fpt.errors import FptError
from fpt.sweeps import ledger
from fpt.sweeps.engines import Watch
from fpt.sweeps.ledger import PROGRESS, SweepState, sweep_state
from fpt.sweeps.record import read_progress
from fpt.sweeps.spec import SweepSpec
from fpt.sweeps.study import Study
from fpt.sweeps.words import labels, title

if TYPE_CHECKING:
    from fpt.advise.verdict import Advice

LETTERS = 16  # of a name, which are not broken
FIRST_LINE = 0.01  # share done at which a sweep says for the first time how far it is

console = Console(highlight=False)


def printable(text: str) -> str:
    """Text of which a terminal obeys nothing: names of files and in data may hold control characters."""
    shown = (each.isprintable() or each == "\n" or category(each) == "Zs" for each in text)
    return "".join(each if kept else repr(each)[1:-1] for each, kept in zip(text, shown, strict=True))


def literal(text: str) -> str:
    """The same, of which rich takes nothing for markup."""
    return escape(printable(text))


def table_of(title: str, columns: Sequence[str | Column], rows: Iterable[Iterable[str]]) -> Table:
    """A table whose title and cells are shown as they are: nothing in them is markup, and nothing is cut. Numbers are
    columns on the right. Where the screen is too narrow for them in one line, a row becomes a block of lines."""
    shown = [replace(column, header=printable(str(column.header))) for column in map(_column, columns)]
    cells = [tuple(map(printable, row)) for row in rows]
    room = console.width - 3 * len(shown) - 1  # beside the lines and blanks around cells
    widths = _widths(shown, [[row[place] for row in cells] for place in range(len(shown))], room)
    if not widths:
        return _stacked(title, [str(column.header) for column in shown], cells)
    for column, width in zip(shown, widths, strict=True):
        column.width, column.overflow, column.header = width, "fold", escape(str(column.header))
    table = Table(*shown, title=literal(title))
    for row in cells:
        table.add_row(*map(escape, row))
    return table


def show_table(
    title: str, columns: Sequence[str | Column], rows: Iterable[Iterable[str]], as_json: bool = False
) -> None:
    """Print a table, or its rows as JSON for programs."""
    if as_json:
        show_json(records(columns, rows))
    else:
        console.print(table_of(title, columns, rows))


def show_json(content: Any) -> None:
    """Print what a program reads."""
    typer.echo(json.dumps(content, indent=1, allow_nan=False))


def records(columns: Sequence[str | Column], rows: Iterable[Iterable[str]]) -> list[dict[str, Any]]:
    """The rows of a table by the heads of its columns. In columns of numbers cells are numbers, and null where they are
    empty; a cell such as 8+ stays text."""
    heads = [(str(column.header), column.justify == "right") for column in map(_column, columns)]
    return [
        {head: _number(cell) if number else cell for (head, number), cell in zip(heads, row, strict=True)}
        for row in rows
    ]


def _number(cell: str) -> int | float | str | None:
    plain = cell.replace(",", "")
    for kind in (int, float):
        with suppress(ValueError):
            return kind(plain)
    return cell or None


def _column(column: str | Column) -> Column:
    return Column(column) if isinstance(column, str) else replace(column)


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """Of columns, which share the room; empty where it is less than their numbers, and some letters of names, need."""
    least, most = [], []
    for column, texts in zip(columns, cells, strict=True):
        head = str(column.header)
        words = [word for text in (head, *texts) for word in text.split()]
        text = min(max(map(cell_len, words), default=1), LETTERS)
        numbers = max(map(cell_len, [*texts, *head.split()]), default=1)
        least.append(numbers if column.justify == "right" else text)
        most.append(max(map(cell_len, [head, *texts])))
    spare = room - sum(least)
    if spare < 0:
        return []
    for place in sorted(range(len(least)), key=lambda place: most[place] - least[place]):
        more = min(max(most[place] - least[place], 0), spare)
        least[place], spare = least[place] + more, spare - more
    return least


def _stacked(title: str, heads: Sequence[str], rows: Iterable[Iterable[str]]) -> Table:
    """A table of two columns, in which a row is a block of lines with the names of its cells."""
    names = min(max(map(cell_len, heads)), console.width // 3)
    table = Table(
        Column(width=names, overflow="fold"), Column(overflow="fold"), title=literal(title), show_header=False
    )
    for row in rows:
        for head, cell in zip(heads, row, strict=True):
            if cell:
                table.add_row(escape(head), escape(cell))
        table.add_section()
    return table


def before_numbers(first: str, *others: str) -> list[Column]:
    """Columns of which all but the first hold numbers."""
    return [Column(first), *map(numbers_of, others)]


def numbers_of(head: str) -> Column:
    """A column of numbers, which are never broken."""
    return Column(head, justify="right")


def arms_of(specs: Sequence[SweepSpec]) -> dict[str, str]:
    """By folder name what tells the sweeps apart in words, where task and arm of two are the same; else nothing."""
    arms = [spec.folder_name.rpartition("-")[0] for spec in specs]
    return labels(specs) if len(set(arms)) < len(arms) else {}


def time_text(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def plan_table(title: str, plan: Sequence[tuple[SweepState, Sequence[Cost]]]) -> Table:
    """Every sweep with its predicted times; the device is named if there is more than one. A + after its runs says that
    the grid may be extended."""
    arms = arms_of([state.spec for state, _ in plan])
    several = len({cost.device for _, costs in plan for cost in costs}) > 1
    rows = []
    for state, costs in plan:
        times = "; ".join(
            f"{time_text(cost.seconds)} {source_text(cost) if several else cost.source}" for cost in costs
        )
        spec = state.spec
        runs = f"{spec.runs}{'+' * bool(spec.extend)}"
        rows.append([*_names(arms, spec), state.state, runs, f"{spec.steps:,}", times or "unknown"])
    columns: list[str | Column]
    columns = ["sweep", *["arm"] * bool(arms), "state", numbers_of("runs"), numbers_of("steps"), "time"]
    return table_of(title, columns, rows)


def plan_records(plan: Sequence[tuple[SweepState, Sequence[Cost]]]) -> list[dict[str, Any]]:
    """The same for programs; times in seconds."""
    return [
        {
            "sweep": state.spec.folder_name,
            "task": state.spec.task,
            "arm": state.spec.arm,
            "state": state.state,
            "runs": state.spec.runs,
            "extend": state.spec.extend,
            "steps": state.spec.steps,
            "times": [asdict(cost) for cost in costs],
        }
        for state, costs in plan
    ]


def _names(arms: Mapping[str, str], spec: SweepSpec) -> list[str]:
    """The cells of a sweep's name and, if there is such a column, of its arm."""
    return [spec.folder_name, *([arms[spec.folder_name]] if arms else [])]


def source_text(cost: Cost) -> str:
    """How a time is known, and for which device."""
    return f"{cost.source} ({cost.device})" if cost.device else cost.source


def total_text(plan: Sequence[tuple[SweepState, Sequence[Cost]]]) -> str:
    """The sums of all times, by source and device, each with the number of its sweeps where these are not all, and the
    number of sweeps of unknown time."""
    sums: dict[str, list[float]] = {}
    for cost in (cost for _, costs in plan for cost in costs):
        sums.setdefault(source_text(cost), []).append(cost.seconds)
    unknown = sum(not costs for _, costs in plan)
    parts = [
        f"{time_text(sum(seconds))} {how}" + (f" for {len(seconds)} of them" if len(seconds) < len(plan) else "")
        for how, seconds in sums.items()
    ]
    return ", ".join(parts + [f"{unknown} of unknown time (--measure times them here)"] * bool(unknown))


def status_table(study: Study) -> Table:
    arms = arms_of(study.sweeps)
    rows = []
    for spec in study.sweeps:
        state = sweep_state(spec, study.folder)
        rate = ""
        if state.result:
            rate = f"{state.result['selected_rate'] or 'none'}" + (" (edge)" if state.result["at_edge"] else "")
        word, progress = state.state, state.progress
        if progress:
            share = progress["run_steps"] / progress["run_steps_total"]
            step = f"step {progress['step']:,} of {progress['steps']:,}"
            word = f"running {share:.0%} (grid {progress['grid']}, {step})"
        took = time_text(state.result["wall_seconds"]) if state.result else ""
        rows.append([*_names(arms, spec), word, rate, took, "yes" if state.published else ""])
    for inside in ("", ledger.PUBLISHED):
        for folder in ledger.stale_folders(study, inside):
            name = folder.relative_to(study.folder).as_posix()
            rows.append([name, *[""] * bool(arms), "stale", "", "", ""])
    columns: list[str | Column]
    columns = ["sweep", *["arm"] * bool(arms), "state", numbers_of("selected rate"), numbers_of("time"), "published"]
    return table_of(study.name, columns, rows)


def status_records(study: Study) -> list[dict[str, Any]]:
    """The same for programs, without what is stale."""
    found = []
    for spec in study.sweeps:
        state = sweep_state(spec, study.folder)
        result = {name: (state.result or {}).get(name) for name in ("selected_rate", "at_edge", "wall_seconds")}
        named = {"sweep": spec.folder_name, "task": spec.task, "arm": spec.arm, "state": state.state}
        found.append(named | result | {"progress": state.progress, "published": state.published is not None})
    return found


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


def advice_screen(advice: "Advice") -> Iterator[Table | str]:
    """What `fpt advise` says, on one screen: the recommendation, what it rests on, what would take longer, warnings."""
    from fpt.advise import words
    from fpt.advise.report import arms_frame, pairs_frame

    yield f"[bold]{literal(words.recommended(advice))}[/bold]"
    frames = {f"{advice.study}: fresh seeds": arms_frame(advice), "what can be told apart": pairs_frame(advice)}
    for heading, frame in frames.items():
        yield table_of(heading, before_numbers(*frame.columns), frame.itertuples(index=False, name=None))
    yield from map(literal, words.further(advice))
    for line in words.warnings(advice):
        yield f"[yellow]warning:[/yellow] {literal(line)}"
    yield literal(f"kept: {advice.winner}; README.md there says how to load it")
    yield literal(f"page: runs/{advice.study}/report.html; again, or changed: fpt run {advice.study}")
