"""The command about your own data."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from fpt.cli.options import AsJson, Root
from fpt.cli.tables import before_numbers, console, literal, log, nothing, show_json, table_of
from fpt.files import workspace, workspace_around
from fpt.tasks import BRIGHTEST_16, LONGEST_SIDE

if TYPE_CHECKING:
    from fpt.advise.verdict import Advice

Size = Annotated[
    int | None, typer.Option(min=1, max=LONGEST_SIDE, help="Of images: the side to which they are resized.")
]
Patch = Annotated[int | None, typer.Option(min=1, help="Pixels of a side, or columns, in a token.")]
White = Annotated[
    int | None, typer.Option(min=1, max=BRIGHTEST_16, help="Of images: white (default: 255; of 16 bits 65535).")
]
Padded = Annotated[bool, typer.Option("--padded", help="Of sequences in npz: 0 only fills, on the right.")]
Tokenizer = Annotated[
    str | None, typer.Option(metavar="own|bytes", help="Of texts (default: the model's own, where it has one).")
]
Pooling = Annotated[
    str | None, typer.Option(metavar="mean|last", help="Of texts in the model's own tokens (default: mean).")
]
Tokens = Annotated[int | None, typer.Option(min=1, help="Of texts: at most so many of each (default: 128).")]


def advise(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="Images in folders by class, a CSV, TSV, parquet or npz file."),
    ],
    backbone: Annotated[str, typer.Option(metavar="NAME", help="A name of fpt models, or hub:FOLDER.")] = "tiny-lm",
    arms: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="What trains after the probe: lora, full, frozen, scratch (default: lora,full)."
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.1, max=10_000, help="How long it may take.")] = 10.0,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of a table: the column of classes.")] = None,
    tolerance: Annotated[float, typer.Option(min=0.01, max=100, help="Points that do not matter.")] = 1.0,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="What decides: accuracy, macro-f1 or balanced-accuracy.")
    ] = "accuracy",
    seeds: Annotated[int, typer.Option(min=3, max=100, help="Fresh ones, that report.")] = 5,
    batch_size: Annotated[int, typer.Option(min=1, help="Examples of a step.")] = 32,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Of the study, advise-NAME.")] = None,
    size: Size = None,
    patch: Patch = None,
    white: White = None,
    padded: Padded = False,
    tokenizer: Tokenizer = None,
    pooling: Pooling = None,
    tokens: Tokens = None,
    steps: Annotated[int | None, typer.Option(min=50, help="At most so many (default: as many as fit).")] = None,
    as_json: AsJson = False,
    root: Root = None,
) -> None:
    """Should you freeze? The probe of your model on your data in minutes, then LoRA and full training, and what to use.

    The probe is logistic regression on features of the frozen model. Texts are read by the model's own tokenizer where
    it has one, else as bytes. It writes an ordinary study, runs/advise-NAME, that `fpt run` can run again: in the
    workspace, or where there is none in a new one, ./fpt-advise-NAME. If it was killed, start it again.
    """
    # Before torch is loaded: its threads wait by spinning, which costs a busy machine two thirds of its processor time.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from fpt.advise.report import finished
    from fpt.advise.request import request, title_of
    from fpt.advise.work import Work

    alone = root is None and workspace_around(Path.cwd()) is None
    place = Path(f"fpt-advise-{title_of(data, name)}") if alone else workspace(root)
    reading = {"target": target, "size": size, "patch": patch, "white": white, "padded": padded or None}
    reading |= {"tokenizer": tokenizer, "tokens": tokens, "pooling": pooling}
    wanted = request(
        data, backbone, arms, root=place, minutes=minutes, tolerance=tolerance, name=name, options=reading, steps=steps,
        metric=metric, seeds=seeds, batch_size=batch_size,
    )  # fmt: skip
    say = nothing if as_json else log
    say(f"reading {data}")
    if alone:
        say(f"there is no workspace here: what is written lies in a new one, {place}")
    with _new_workspace(place) if alone else contextlib.nullcontext(), contextlib.chdir(place):
        Work(wanted, say).run()
        found = finished(wanted)
    show_advice(found, as_json)


def show_advice(found: "Advice", json_alone: bool) -> None:
    """Print what `fpt advise` found, on one screen or as JSON."""
    if json_alone:
        show_json(found.as_json())
        return
    for shown in advice_screen(found):
        console.print(shown, soft_wrap=isinstance(shown, str))


def advice_screen(advice: "Advice") -> Iterator[Table | str]:
    """What `fpt advise` says, on one screen: the recommendation, what it rests on, what would take longer, warnings."""
    from fpt.advise import words
    from fpt.advise.report import PAGE, arms_frame, pairs_frame

    yield f"[bold]{literal(words.recommended(advice))}[/bold]"
    frames = {f"{advice.study}: fresh seeds": arms_frame(advice), "what can be told apart": pairs_frame(advice)}
    for heading, frame in frames.items():
        yield table_of(heading, before_numbers(*frame.columns), frame.itertuples(index=False, name=None))
    yield from map(literal, words.further(advice))
    for line in words.warnings(advice):
        yield f"[yellow]warning:[/yellow] {literal(line)}"
    yield literal(f"kept: {advice.winner}; README.md there says how to load it")
    yield literal(f"page: runs/{advice.study}/{PAGE}; again, or changed: fpt run {advice.study}")


@contextlib.contextmanager
def _new_workspace(place: Path) -> Iterator[None]:
    """A folder with runs/ in it. Where nothing was written into it, because the request was refused, it goes again."""
    runs = place / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # something is in it
            runs.rmdir()
            place.rmdir()
