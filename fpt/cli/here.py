"""The commands about what there is: backbones, this machine and how fast it is, and lists."""

import contextlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fpt.cli.options import AsJson, Root
from fpt.cli.tables import console, log, nothing, show_json, show_table
from fpt.errors import SpecError, unknown
from fpt.files import workspace, workspace_around


def _anywhere(root: Path | None) -> Path:
    """The workspace, or the working directory where there is none: for what needs none."""
    return workspace(root) if root else workspace_around(Path.cwd()) or Path()


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A few cells of the small model: under 3 minutes.")] = False,
    cell: Annotated[
        list[str] | None,
        typer.Option(metavar="BACKBONE[:LAYERS]/TASK[:VARIANT]/ARM/RUNS[/HOW]", help="Only this cell (repeatable)."),
    ] = None,
    as_json: AsJson = False,
    root: Root = None,
) -> None:
    """Measure fleets against a plain loop like that of the released code, and write runs/bench/DEVICE.json."""
    from fpt.bench.measure import bench as measure
    from fpt.bench.report import bench_table, bench_targets, bench_words

    with contextlib.chdir(workspace(root)):
        result = measure(cell or [], quick, Path("runs"), nothing if as_json else log)

    if as_json:
        show_json(result.model_dump(mode="json"))
        return
    console.print(bench_words(result), soft_wrap=True)
    for heading, frame in (("run-steps beside the reference", bench_table(result)), ("targets", bench_targets(result))):
        show_table(heading, list(frame.columns), frame.itertuples(index=False, name=None))


def models(
    task: Annotated[str, typer.Option(metavar="TASK", help="The task whose model is counted.")] = "digits",
    backbone: Annotated[str | None, typer.Option(metavar="NAME", help="Only this one.")] = None,
    arm: Annotated[
        str | None, typer.Option(metavar="ARM", help="What this arm trains of the backbone, and what a step takes.")
    ] = None,
    layers: Annotated[int | None, typer.Option(min=1, help="With --arm: the first so many layers.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="With --arm: examples of a step (default: 8).")] = None,
    rank: Annotated[int | None, typer.Option(help="With --arm: the rank of its adapters (default: 8).")] = None,
    targets: Annotated[
        str | None, typer.Option(help="With --arm: its adapted groups, attention, feed_forward or both (default).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List backbones: the size of their models of a task, how much of it is trained, where the weights come from."""
    from fpt.cli.models import COLUMNS, OF_ARM, of_arm, rows

    of_an_arm = {"batch_size": batch_size, "rank": rank, "targets": targets}
    given: dict[str, Any] = {name: value for name, value in of_an_arm.items() if value is not None}
    given |= {"backbone_options": {"layers": layers}} if layers is not None else {}
    if arm is None:
        if given:
            raise SpecError("--layers, --batch-size, --rank and --targets are about an arm: give --arm as well")
        show_table(f"backbones on {task}", COLUMNS, rows(task, backbone), as_json)
        return
    if backbone is None:
        raise SpecError(f"--arm {arm}: give --backbone as well, of which the arm trains a part")
    counts, lines = of_arm({"task": task, "backbone": backbone, "arm": arm, **given})
    show_table(f"parameters of {backbone} on {task}: {arm}", OF_ARM, counts, as_json)
    for line in [] if as_json else lines:
        console.print(line, soft_wrap=True)


def doctor(as_json: AsJson = False, root: Root = None) -> None:
    """Show what this machine has and how to get what is missing. Nothing is downloaded."""
    from fpt.cli.doctor import findings

    columns = ("what", "found", "how to get it")
    with contextlib.chdir(_anywhere(root)):
        show_table("this machine", columns, findings(), as_json)


def list_(
    kind: Literal["studies", "tasks", "models", "arms", "claims"],
    names: Annotated[str, typer.Argument(metavar="[NAMES]", help="Only what is called so ('Z-*').")] = "*",
    as_json: AsJson = False,
    root: Root = None,
) -> None:
    """List what there is: ours, and what is found in the workspace."""
    from fpt.cli.listed import COLUMNS, ROWS
    from fpt.sweeps.study_file import check_papers

    place = workspace(root) if kind == "studies" else _anywhere(root)
    with contextlib.chdir(place):
        if kind in ("studies", "claims"):
            check_papers()
        known = list(ROWS[kind]())
    found = [row for row in known if any(fnmatchcase(str(cell), names) for cell in row)]
    if known and not found:
        raise unknown(f"name among {kind}", names, [str(row[0]) for row in known])
    show_table(kind, COLUMNS[kind], found, as_json)
