"""The commands about a study: begin, plan, run, watch, publish, report, judge, clean."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.live import Live
from rich.markup import escape

from fpt.bench.cost import benches, costs
from fpt.cli.options import AsJson, Only, Root, StudyName, check_page
from fpt.cli.progress import SweepBars
from fpt.cli.states import plan_records, plan_table, status_records, status_table, total_text
from fpt.cli.tables import console, log, nothing, show_json, show_table, stderr
from fpt.errors import FptError, SpecError
from fpt.files import check_writable, study_folder, workspace, write_atomically
from fpt.sweeps import engines, ledger
from fpt.sweeps import publish as publishing
from fpt.sweeps.engines import local, ray
from fpt.sweeps.ledger import sweep_state
from fpt.sweeps.study import Study, load_study
from fpt.sweeps.words import title


@contextlib.contextmanager
def opened(name: str, root: Path | None) -> Iterator[Study]:
    """The study, with the workspace as working directory: results never hold a path from above it."""
    with contextlib.chdir(workspace(root)):
        yield load_study(study_folder(Path("runs"), name))


def init(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="It is made where it is not there.")] = Path(),
    name: Annotated[str, typer.Option(metavar="STUDY", help="Of the study.")] = "first",
) -> None:
    """Begin a workspace: write a small study that runs on this machine as it is. Nothing is downloaded."""
    from fpt.cli.begin import begin

    log(f"written: {begin(folder, name)}; `fpt run {name}` trains it")


def plan(
    study: StudyName,
    only: Only = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time a few steps on this machine for every kind of sweep to be run.")
    ] = False,
    as_json: AsJson = False,
    root: Root = None,
) -> None:
    """Show what `fpt run` would do and how long it would take, as measured before or as `fpt bench` predicts."""
    with opened(study, root) as opened_study:
        states = [sweep_state(spec, opened_study.folder) for spec in opened_study.serving(only)]
        todo = [state for state in states if not state.complete]
        figures = {bench.title: bench.rows for bench in benches(Path("runs"))}
        if measure:
            from fpt.bench.measure import measure_here

            figures = {"this machine": measure_here([state.spec for state in todo], nothing if as_json else log)}
            todo = [replace(state, published=None) for state in todo]  # its time is another machine's
            states = [state for state in states if state.complete] + todo
        found = [(state, costs(state, figures)) for state in states]
    if as_json:
        show_json(plan_records(found))
        return
    console.print(plan_table(opened_study.name, found))
    total = total_text([(state, known) for state, known in found if state in todo])
    console.print(escape(f"{len(todo)} of {len(states)} sweeps to run" + (f": {total}" if total else "")))


def run(
    study: StudyName,
    only: Only = None,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads of each sweep (default: 1; here, beside a GPU, its share of the cores)."),
    ] = None,
    engine: Annotated[Literal["local", "ray"], typer.Option(help="This machine alone, or a Ray cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help="HOST:PORT of the cluster (default: one that runs here)")] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Test that every sweep works, with tiny models, few data and 3 steps.")
    ] = False,
    root: Root = None,
) -> None:
    """Train every sweep that is not done. Finished sweeps are kept. If the command was killed, start it again."""
    if smoke:
        if threads or address or engine != "local":
            raise SpecError("--smoke runs in this process alone: leave out --threads, --engine and --address")
        _smoke(study, only, root)
        return
    if address and engine != "ray":
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
            start = partial(ray.run_ray, address=address) if engine == "ray" else local.run_local
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


def status(
    study: StudyName,
    watch: Annotated[bool, typer.Option("--watch", help="Keep the table up to date until Ctrl-C.")] = False,
    as_json: AsJson = False,
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
        with contextlib.chdir(workspace(root)):
            write_mapping(Path("runs"), loaded_studies())
        return
    with opened(study, root) as opened_study:
        written, archived = publishing.publish(opened_study, partial)
        write_mapping(Path("runs"), [opened_study])
    console.print(f"{len(written)} sweeps published")
    for folder in archived:
        log(f"no longer in the study, moved to {folder}")


def report(
    study: StudyName,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Where to write it (default: report.html in the study).",
        ),
    ] = None,
    root: Root = None,
) -> None:
    """Write one HTML page that shows a study: curves, planes, comparisons, verdicts on claims, provenance.

    Of your own results where there are some, else of the published ones.
    """
    from fpt.results import StudyCells
    from fpt.results.runs import Origin, has_own
    from fpt.show.report_page import report as page_of

    wanted = output and output.absolute()  # of the folder in which the command was given
    with opened(study, root) as opened_study:
        path = wanted or opened_study.folder.absolute() / "report.html"
        check_page("--output", path)
        check_writable(path.parent)
        origin: Origin = "own" if has_own(opened_study) else "published"
        write_atomically(path, page_of(StudyCells(opened_study.folder, origin)).encode())
    console.print(f"written: {path}", markup=False, soft_wrap=True)


def judge(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="Your runs of this study (default: all published results).")
    ] = None,
    as_json: AsJson = False,
    root: Root = None,
) -> None:
    """Say what the results show of every claim: contrasts.csv and claims.csv in runs, or of your own in runs/STUDY."""
    from fpt.claims.judge import judge as judged
    from fpt.claims.verdicts import CLAIMS, digest_of_runs, tally, tested, write
    from fpt.papers import claim
    from fpt.results import arms_of
    from fpt.sweeps.study_file import check_papers

    with contextlib.chdir(workspace(root)):
        check_papers()
        folder = study_folder(Path("runs"), study) if study else Path("runs")
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
    show_table(str(folder / CLAIMS), ("word", "claims", "findings"), tally(table), as_json)


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
