"""Advise on your own data; plan, run, watch, judge, report and publish studies; compare any table of results; list
backbones; show what this machine has and how fast it is."""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from typer.core import TyperGroup

import fpt
from fpt import tasks
from fpt.bench.cost import benches, costs
from fpt.cli import options
from fpt.cli.show import (
    SweepBars,
    advice_screen,
    before_numbers,
    console,
    numbers_of,
    plan_records,
    plan_table,
    printable,
    show_json,
    show_table,
    status_records,
    status_table,
    total_text,
)
from fpt.errors import FptError, SpecError, unknown
from fpt.files import check_writable, study_folder, workspace_around, write_atomically
from fpt.sweeps import engines, ledger
from fpt.sweeps import publish as publishing
from fpt.sweeps.engines import local, ray
from fpt.sweeps.ledger import sweep_state
from fpt.sweeps.study import Study, load_study
from fpt.sweeps.words import title

if TYPE_CHECKING:
    from fpt.advise.verdict import Advice

FOLDERS = ("FPT_DATA", "FPT_WEIGHTS", tasks.CODE)  # environment variables that name a folder
PAGES = (".html", ".htm")

stderr = Console(stderr=True, highlight=False)


class Commands(TyperGroup):
    """Every FptError, and every refusal by the system, such as a full disk, becomes its message and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # whoever reads what is printed wants no more: click ends in silence
        except (FptError, OSError) as error:
            stderr.print(printable(f"error: {error}"), style="red", markup=False, soft_wrap=True)
            raise typer.Exit(2) from None


app = typer.Typer(cls=Commands, help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        console.print(f"fpt {fpt.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    for name in FOLDERS:  # as they are meant here: commands work in the folder of the workspace
        if given := os.environ.get(name):
            os.environ[name] = os.path.abspath(os.path.expanduser(given))


StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="A folder below runs/ that holds a study.yaml.")]
Root = Annotated[Path | None, typer.Option("--root", help="The workspace, with runs/STUDY/study.yaml: else nearest.")]
Only = Annotated[str | None, typer.Option("--only", metavar="ID", help="Only this table, figure or sweep ('mnist.*').")]


@contextlib.contextmanager
def opened(name: str, root: Path | None) -> Iterator[Study]:
    """The study, with the workspace as working directory: results never hold a path from above it."""
    with contextlib.chdir(ledger.workspace(root)):
        yield load_study(study_folder(Path("runs"), name))


def _anywhere(root: Path | None) -> Path:
    """The workspace, or the working directory where there is none: for what needs none."""
    return ledger.workspace(root) if root else workspace_around(Path.cwd()) or Path()


def log(line: str) -> None:
    """Print a line about the work, without markup."""
    console.print(printable(line), markup=False)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="It is made where it is not there.")] = Path(),
    name: Annotated[str, typer.Option(metavar="STUDY", help="Of the study.")] = "first",
) -> None:
    """Begin a workspace: write a small study that runs on this machine as it is. Nothing is downloaded."""
    from fpt.cli.begin import begin

    log(f"written: {begin(folder, name)}; `fpt run {name}` trains it")


@app.command()
def plan(
    study: StudyName,
    only: Only = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time a few steps on this machine for every kind of sweep to be run.")
    ] = False,
    as_json: options.AsJson = False,
    root: Root = None,
) -> None:
    """Show what `fpt run` would do and how long it would take, as measured before or as `fpt bench` predicts."""
    with opened(study, root) as opened_study:
        states = [sweep_state(spec, opened_study.folder) for spec in opened_study.serving(only)]
        todo = [state for state in states if not state.complete]
        figures = {bench.title: bench.rows for bench in benches(Path("runs"))}
        if measure:
            from fpt.bench.measure import measure_here

            figures = {"this machine": measure_here([state.spec for state in todo], _nothing if as_json else log)}
            todo = [replace(state, published=None) for state in todo]  # its time is another machine's
            states = [state for state in states if state.complete] + todo
        found = [(state, costs(state, figures)) for state in states]
    if as_json:
        show_json(plan_records(found))
        return
    console.print(plan_table(opened_study.name, found))
    total = total_text([(state, known) for state, known in found if state in todo])
    console.print(escape(f"{len(todo)} of {len(states)} sweeps to run" + (f": {total}" if total else "")))


class Engine(StrEnum):
    """Who starts the processes."""

    LOCAL = "local"
    RAY = "ray"


@app.command()
def run(
    study: StudyName,
    only: Only = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads of each sweep (default: 1; here, beside a GPU, its share of the cores)."),
    ] = None,
    engine: Annotated[Engine, typer.Option(help="This machine alone, or a Ray cluster.")] = Engine.LOCAL,
    address: Annotated[str | None, typer.Option(help="HOST:PORT of the cluster (default: one that runs here)")] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Test that every sweep works, with tiny models, few data and 3 steps.")
    ] = False,
    root: Root = None,
) -> None:
    """Train every sweep that is not done. Finished sweeps are kept. If the command was killed, start it again."""
    if smoke:
        if threads or address or engine is not Engine.LOCAL:
            raise SpecError("--smoke runs in this process alone: leave out --threads, --engine and --address")
        _smoke(study, only, root)
        return
    if address and engine is not Engine.RAY:
        raise SpecError(f"--address {address}: only --engine ray has an address")
    with opened(study, root) as opened_study:
        chosen = opened_study.serving(only)
        todo = [spec for spec in chosen if not sweep_state(spec, opened_study.folder).complete]
        console.print(f"{escape(opened_study.name)}: {len(chosen) - len(todo)} of {len(chosen)} sweeps done")
        if not todo:
            return
        from fpt.sweeps.checks import check_all

        with console.status("checking data, weights and disk"):
            check_all(todo, opened_study.folder)
        with SweepBars(todo, opened_study.folder) as watch:
            start = partial(ray.run_ray, address=address) if engine is Engine.RAY else local.run_local
            failures = engines.in_order(partial(start, threads=threads, watch=watch), todo, opened_study.folder)
    for failure in failures:
        stderr.print(f"failed: {title(failure.spec)}", style="red", markup=False)
        stderr.print(f"  {failure.reason}\n  see {failure.evidence}", markup=False, soft_wrap=True)
    if failures:
        raise typer.Exit(1)


def _smoke(study: str, only: str | None, root: Path | None) -> None:
    from fpt.sweeps.smoke import smoke

    with opened(study, root) as opened_study:
        specs = opened_study.serving(only)
        failures = smoke(specs, opened_study.folder.name, lambda spec: console.print(escape(title(spec))))
    for spec, error in failures:
        stderr.print(f"failed: {title(spec)}\n  {type(error).__name__}: {error}", markup=False, soft_wrap=True)
    console.print(f"{len(specs) - len(failures)} of {len(specs)} sweeps work; nothing was kept: these are not results")
    if failures:
        raise typer.Exit(1)


@app.command()
def status(
    study: StudyName,
    watch: Annotated[bool, typer.Option("--watch", help="Keep the table up to date until Ctrl-C.")] = False,
    as_json: options.AsJson = False,
    root: Root = None,
) -> None:
    """Show the state of every sweep; with --watch, keep it up to date."""
    if watch and as_json:
        raise SpecError("--watch is for a screen: with --json, ask again")
    with opened(study, root) as opened_study, contextlib.suppress(KeyboardInterrupt):
        if as_json:
            show_json(status_records(opened_study))
            return
        if not watch:
            console.print(status_table(opened_study))
            return
        with Live(status_table(opened_study), console=console, auto_refresh=False) as live:
            while True:
                time.sleep(1)
                live.update(status_table(opened_study), refresh=True)


@app.command()
def publish(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="A folder below runs/ that holds a study.yaml.")
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Publish the finished sweeps of an unfinished study.")
    ] = False,
    mapping: Annotated[
        bool,
        typer.Option("--mapping", help="Copy nothing: write runs/arms.csv and runs/rows.csv anew."),
    ] = False,
    root: Root = None,
) -> None:
    """Copy finished sweeps to runs/STUDY/published, which the book reads, and write under which names, and as which
    rows of papers' tables, they are read. What STUDY has no longer goes to runs/archive."""
    from fpt.results.mapping import write_mapping
    from fpt.results.runs import loaded_studies

    if (study is None) is not mapping or (mapping and partial):
        raise FptError("fpt publish: name a STUDY, or give --mapping alone")
    if study is None:
        with contextlib.chdir(ledger.workspace(root)):
            write_mapping(Path("runs"), loaded_studies())
        return
    with opened(study, root) as opened_study:
        written, archived = publishing.publish(opened_study, partial)
        write_mapping(Path("runs"), [opened_study])
    console.print(f"{len(written)} sweeps published")
    for folder in archived:
        log(f"no longer in the study, moved to {folder}")


@app.command()
def report(
    study: StudyName,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Where to write it (default: report.html in the study; after fpt advise study.html).",
        ),
    ] = None,
    root: Root = None,
) -> None:
    """Write one HTML page that shows a study: curves, planes, comparisons, verdicts on claims, provenance.

    Of your own results where there are some, else of the published ones.
    """
    from fpt.advise.work import ASKED
    from fpt.results import StudyCells
    from fpt.results.runs import Origin, has_own
    from fpt.show.report_page import report as page_of

    wanted = output and output.absolute()  # of the folder in which the command was given
    with opened(study, root) as opened_study:
        advised = (opened_study.folder / ASKED).exists()  # its report.html is the page of fpt advise
        path = wanted or opened_study.folder.absolute() / ("study.html" if advised else "report.html")
        _check_file("--output", path)
        check_writable(path.parent)
        origin: Origin = "own" if has_own(opened_study) else "published"
        write_atomically(path, page_of(StudyCells(opened_study.folder, origin)).encode())
    console.print(f"written: {path}", markup=False, soft_wrap=True)


@app.command()
def compare(
    results: options.Results,
    by: options.By = None,
    pair: options.Pair = None,
    score: options.Score = None,
    tune: options.Tune = None,
    choose: options.Choose = None,
    within: options.Within = None,
    example: options.Example = None,
    where: options.Where = None,
    lower_is_better: options.LowerIsBetter = False,
    choose_lower: options.ChooseLower = None,
    unpaired: options.Unpaired = False,
    test_examples: options.TestExamples = None,
    test_share: options.TestShare = None,
    point: options.Point = None,
    margin: options.Margin = None,
    collapse: options.Collapse = None,
    diverged: options.Diverged = None,
    page: options.PageFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare the arms of any table of results, every arm at its own rate: intervals, corrections, seeds needed.

    fpt compare sweeps.csv --by method --pair seed --rate lr --score test_acc --choose val_acc
    """
    from fpt.cli.compared import show
    from fpt.results.compare import compare as compared
    from fpt.results.table import read_results

    if page:
        _check_file("--page", page)
    found = compared(
        read_results(results), by, pair or (), score, tune=tune or (), choose=choose, within=within or (),
        example=example, where=_where(where or ()), lower_is_better=lower_is_better, choose_lower=choose_lower,
        unpaired=unpaired, test_examples=test_examples, test_share=test_share, point=point, margin=margin,
        collapse=collapse, diverged=diverged,
    )  # fmt: skip
    if page:
        from fpt.show.compared_page import compared_page

        write_atomically(page.absolute(), compared_page(found, results.name).encode())
    show(found, as_json)


def _check_file(option: str, path: Path) -> None:
    """Refuse (FptError) what can be no page to write: what is there and no page holds data, or a study."""
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise FptError(f"{option} {path}: must be a file in a folder that exists")
    if path.exists() and path.suffix.lower() not in PAGES:
        raise FptError(f"{option} {path}: is there already, and would be lost; give a name that ends in {PAGES[0]}")


def _where(given: Sequence[str]) -> dict[str, list[str]]:
    """COLUMN=VALUE by column. Raises SpecError for what is none."""
    found: dict[str, list[str]] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise SpecError(f"--where {each}: must be COLUMN=VALUE")
        found.setdefault(name, []).append(value)
    return found


@app.command()
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
    size: options.Size = None,
    patch: options.Patch = None,
    white: options.White = None,
    padded: options.Padded = False,
    tokenizer: options.Tokenizer = None,
    pooling: options.Pooling = None,
    tokens: options.Tokens = None,
    steps: Annotated[int | None, typer.Option(min=50, help="At most so many (default: as many as fit).")] = None,
    as_json: options.AsJson = False,
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
    place = Path(f"fpt-advise-{title_of(data, name)}") if alone else ledger.workspace(root)
    reading = {"target": target, "size": size, "patch": patch, "white": white, "padded": padded or None}
    reading |= {"tokenizer": tokenizer, "tokens": tokens, "pooling": pooling}
    wanted = request(
        data, backbone, arms, root=place, minutes=minutes, tolerance=tolerance, name=name, options=reading, steps=steps,
        metric=metric, seeds=seeds, batch_size=batch_size,
    )  # fmt: skip
    say = _nothing if as_json else log
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


def _nothing(line: str) -> None:
    """A program reads what is printed: nothing else is."""


@app.command()
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A few cells of the small model: under 3 minutes.")] = False,
    cell: Annotated[
        list[str] | None,
        typer.Option(metavar="BACKBONE[:LAYERS]/TASK[:VARIANT]/ARM/RUNS[/HOW]", help="Only this cell (repeatable)."),
    ] = None,
    as_json: options.AsJson = False,
    root: Root = None,
) -> None:
    """Measure fleets against a plain loop like that of the released code, and write runs/bench/DEVICE.json."""
    from fpt.bench.measure import bench as measure
    from fpt.bench.report import bench_table, bench_targets, bench_words

    with contextlib.chdir(ledger.workspace(root)):
        result = measure(cell or [], quick, Path("runs"), _nothing if as_json else log)

    if as_json:
        show_json(result.model_dump(mode="json"))
        return
    console.print(bench_words(result), soft_wrap=True)
    for heading, frame in (("run-steps beside the reference", bench_table(result)), ("targets", bench_targets(result))):
        show_table(heading, list(frame.columns), frame.itertuples(index=False, name=None))


@app.command()
def judge(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="Your runs of this study (default: all published results).")
    ] = None,
    as_json: options.AsJson = False,
    root: Root = None,
) -> None:
    """Say what the results show of every claim: contrasts.csv and claims.csv in runs, or of your own in runs/STUDY."""
    from fpt.claims.judge import judge as judged
    from fpt.claims.verdicts import CLAIMS, digest_of_runs, tally, tested, write
    from fpt.papers import claim
    from fpt.results import arms_of

    with contextlib.chdir(ledger.workspace(root)):
        folder = Path("runs", study or "")
        if study and not arms_of(study, origin="own"):
            raise SpecError(f"no sweep of {study} is done, so there is nothing to judge: fpt run {study} trains them")
        with stderr.status("judging"):
            table = judged(Path(), study or "")
            write(table, folder, digest_of_runs(Path(), study or ""))
        said = [(*each, claim(each[0]).says) for each in tested(table)] if study else []
    if study:
        show_table(str(folder / CLAIMS), ("claim", "word", "planned", "note", "says"), said, as_json)
        if not (said or as_json):
            log("no claim was tested: none names rows that these sweeps serve")
        return
    found = ((word, str(of_claims), str(of_findings)) for word, of_claims, of_findings in tally(table))
    show_table(str(folder / CLAIMS), before_numbers("word", "claims", "findings"), found, as_json)


@app.command()
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
    as_json: options.AsJson = False,
) -> None:
    """List backbones: the size of their models of a task, how much of it is trained, where the weights come from."""
    from fpt.cli.models import COLUMNS, COUNTS, OF_ARM, of_arm, rows

    of_an_arm = {"batch_size": batch_size, "rank": rank, "targets": targets}
    given: dict[str, Any] = {name: value for name, value in of_an_arm.items() if value is not None}
    given |= {"backbone_options": {"layers": layers}} if layers is not None else {}
    if arm is None:
        if given:
            raise SpecError("--layers, --batch-size, --rank and --targets are about an arm: give --arm as well")
        columns = [numbers_of(name) if name in COUNTS else name for name in COLUMNS]
        show_table(f"backbones on {task}", columns, rows(task, backbone), as_json)
        return
    if backbone is None:
        raise SpecError(f"--arm {arm}: give --backbone as well, of which the arm trains a part")
    counts, lines = of_arm({"task": task, "backbone": backbone, "arm": arm, **given})
    show_table(f"parameters of {backbone} on {task}: {arm}", before_numbers(*OF_ARM), counts, as_json)
    for line in [] if as_json else lines:
        console.print(line, soft_wrap=True)


@app.command()
def doctor(as_json: options.AsJson = False, root: Root = None) -> None:
    """Show what this machine has and how to get what is missing. Nothing is downloaded."""
    from fpt.cli.doctor import findings

    columns = ("what", "found", "how to get it")
    with contextlib.chdir(_anywhere(root)):
        show_table("this machine", columns, findings(), as_json)


@app.command("list")
def list_(
    kind: Annotated[options.Listable, typer.Argument(metavar="|".join(options.Listable))],
    names: Annotated[str, typer.Argument(metavar="[NAMES]", help="Only what is called so ('Z-*').")] = "*",
    as_json: options.AsJson = False,
    root: Root = None,
) -> None:
    """List what there is: ours, and what is found in the workspace."""
    from fpt.cli.listed import COLUMNS, COUNTS, rows

    place = ledger.workspace(root) if kind is options.Listable.STUDIES else _anywhere(root)
    columns = [numbers_of(name) if name in COUNTS else name for name in COLUMNS[kind]]
    with contextlib.chdir(place):
        known = list(rows(kind))
    found = [row for row in known if any(fnmatchcase(cell, names) for cell in row)]
    if known and not found:
        raise unknown(f"name among {kind}", names, [row[0] for row in known])
    show_table(kind.value, columns, found, as_json)


@app.command()
def clean(
    study: StudyName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    root: Root = None,
) -> None:
    """Remove what is stale: results in runs/STUDY of sweeps that its study.yaml does not name any more. What is
    published stays."""
    with opened(study, root) as opened_study:
        stale = ledger.stale_results(opened_study)
        for folder in stale:
            log(folder.as_posix())
        if not stale:
            log("nothing is stale")
        elif yes or typer.confirm(f"Remove {len(stale)} folders?"):
            ledger.remove(stale)
            log(f"{len(stale)} folders removed")
