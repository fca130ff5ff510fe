"""Every command that a page prints, run as it stands there, in a workspace of its own."""

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import click.testing
import numpy as np
import pytest
from committed import ROOT, studies, tracked
from papermill.cli import papermill
from small_studies import ONE_ARM, workspace
from typer.testing import CliRunner

from fpt.bench import measure
from fpt.bench.cost import Bench
from fpt.claims.verdicts import CLAIMS, CONTRASTS
from fpt.cli import app
from fpt.sweeps import load_study, run_sweep

LANGUAGES = "sh|bash|shell|console"
SHELL = re.compile(rf"^( *)(`{{3,}})(?:\{{code-block\}} *)?(?:{LANGUAGES})\n(.*?)^\1\2", re.DOTALL | re.MULTILINE)
STUDY_RUN = re.compile(r"^fpt run ([\w-]+)")
OF_STUDY = re.compile(r"^fpt (run|plan|status|report) [\w-]+")
SWEEP = re.compile(r"\b[\w-]+\.[\w-]+-[0-9a-f]{8}\b")
IN_PROCESS = {
    "fpt": partial(CliRunner().invoke, app),
    "papermill": partial(click.testing.CliRunner().invoke, papermill),
}
# What is not run, and why. Every pattern must fit a command of some page.
NOT_RUN = {
    "make *": "installs from the package index, trains, builds the book or runs these tests: CI does",
    "*pip install *": "installs from the package index: CI does",
    "hf download *": "fetches a model from the hub",
    "*pip freeze *": "lists what is installed in the checkout's own environment",
    "*pytest": "these tests",
    "*pre-commit install": "writes into the checkout's own .git",
    "ray start *": "needs a cluster; tests/sweeps/test_ray.py starts one",
    "export RAY_*": "the cluster's processes read it",
    "fpt run * --engine ray*": "needs a cluster; tests/sweeps/test_ray.py has one",
    "#!/bin/bash*#SBATCH *": "needs Slurm",
    "fpt advise *": "times this machine and trains for minutes; tests/advise has its parts",
    "git add *": "needs a sweep of many parts, half done; tests/training/test_by_length.py has one",
    "papermill * -p task listops -p variant lra": "needs the 96,000 lists of Long Range Arena",
}
READS_PUBLISHED = "*/headline.ipynb *"  # the results of this repository, which no small study stands in for
LONG = ("papermill *", "*jupyter execute *", "fpt run *")  # each starts a notebook, but not `fpt run --smoke`


class Command(NamedTuple):
    folder: str  # where the block has gone by `cd`
    line: str

    def __str__(self) -> str:
        return self.line


def commands_of(block: str) -> Iterator[Command]:
    """A script is one command; a line that ends in a backslash goes on in the next."""
    if block.startswith("#!"):
        yield Command(".", block)
        return
    folder = "."
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] == ["cd"]:
            folder = words[1]
        elif words:
            without_comment = re.sub(r"\s+# .*", "", line.removeprefix("$ ")).strip()
            yield Command(folder, re.sub(r"\s+", " ", without_comment))


def printed() -> list[Command]:
    """The commands of all pages, each once."""
    pages = [path for path in tracked() if path.suffix == ".md" and path.parent in (ROOT, ROOT / "book")]
    texts = [path.read_text(encoding="utf-8") for path in pages]
    blocks = [
        re.sub(rf"^{each[1]}", "", each[3], flags=re.MULTILINE) for text in texts for each in SHELL.finditer(text)
    ]
    return list(dict.fromkeys(command for block in blocks for command in commands_of(block)))


def fits(command: Command, *patterns: str) -> bool:
    return any(fnmatch.fnmatchcase(command.line, pattern) for pattern in patterns)


def marked(command: Command) -> object:
    slow = fits(command, *LONG) and "--smoke" not in command.line
    return pytest.param(command, id=command.line, marks=[pytest.mark.slow] if slow else [])


def alike(command: Command) -> str:
    """Commands that differ in the study alone are one: every study is ONE_ARM here."""
    line = OF_STUDY.sub(r"fpt \1 STUDY", command.line)
    return f"{command.folder}: {line}"


PRINTED = printed()
RUN = list({alike(command): command for command in PRINTED if not fits(command, *NOT_RUN)}.values())


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a page takes for granted: the notebooks, the small data sets, an environment, the studies it names (all of
    them tiny), an own study `mine`, own data `mine.npz`, tables of results `runs.csv` and `sweeps.csv`, and
    an empty data folder."""
    workspace(tmp_path, ONE_ARM)  # one sweep, whoever's study it is
    for name in {*studies(), "my-study"}:
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "study.yaml").write_text(ONE_ARM, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "data").symlink_to(ROOT / "tests" / "data")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    images = np.random.default_rng(0).integers(0, 256, (400, 8, 8), dtype=np.uint8)
    labels = np.arange(400) % 4
    train, test = slice(300), slice(300, None)
    np.savez(
        tmp_path / "mine.npz", x_train=images[train], y_train=labels[train], x_test=images[test], y_test=labels[test]
    )
    rows = [
        f"{arm},{seed},{rate},0.{level}{seed},0.{level}{8 - seed}"
        for arm, levels in (("frozen", (81, 83)), ("full", (93, 90)))
        for rate, level in zip(("1e-4", "1e-3"), levels, strict=True)
        for seed in range(4)
    ]
    for name, by, score in (("runs.csv", "arm", "accuracy"), ("sweeps.csv", "method", "test_acc")):
        table = "\n".join([f"{by},seed,lr,{score},val_acc", *rows])
        (tmp_path / name).write_text(table, encoding="utf-8")
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("FPT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def short_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is measured is a small cell, for a moment, in this process."""
    rates = {"float32_flop_per_second": 1e12, "bfloat16_flop_per_second": 1e12}
    made = Bench.model_validate({"device": "made up", "kind": "cpu", "threads": 1, "ceiling": rates, "rows": []})
    once = cache(partial(measure.measure, measure.cell("tiny-lm/bit-xor/frozen-random/2"), 1, 0.01))
    monkeypatch.setattr(measure, "apart", lambda call, **_: call())
    monkeypatch.setattr(measure, "ceiling", lambda seconds: made)
    monkeypatch.setattr(measure, "measure", lambda spec, rounds, seconds, compared=True, compiled=False: once(compared))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a study whose sweeps are done."""
    root = tmp_path_factory.mktemp("results")
    folder = workspace(root, ONE_ARM)
    with chdir(root):
        for spec in load_study(folder.relative_to(root)).sweeps:
            run_sweep(spec, Path("runs/mine") / spec.folder_name)
    return folder


def test_pages_have_commands() -> None:
    assert len(RUN) > 10


def test_a_study_that_a_page_runs_is_there() -> None:
    named = {found[1] for command in PRINTED if (found := STUDY_RUN.match(command.line))}
    assert named <= {*studies(), "mine", "my-study"}


@pytest.mark.parametrize("command", [each for each in PRINTED if SWEEP.search(each.line)], ids=str)
def test_a_sweep_that_a_page_runs_is_in_its_study(command: Command) -> None:
    study = STUDY_RUN.match(command.line)
    assert study is not None
    names = {spec.folder_name for spec in load_study(ROOT / "runs" / study[1]).sweeps}
    assert set(SWEEP.findall(command.line)) <= names


@pytest.mark.parametrize("pattern", list(NOT_RUN))
def test_what_is_not_run_is_on_some_page(pattern: str) -> None:
    assert any(fits(command, pattern) for command in PRINTED)


@pytest.mark.parametrize("command", [marked(command) for command in RUN])
@pytest.mark.usefixtures("short_bench")
def test_a_command_of_a_page_works(command: Command, clone: Path, results: Path) -> None:
    if not fits(command, "fpt run *"):  # what shows results finds some
        for folder in clone.glob("runs/*"):
            shutil.copytree(results, folder, dirs_exist_ok=True)
    if fits(command, READS_PUBLISHED):
        for name in studies():
            (clone / "runs" / name / "published").symlink_to(ROOT / "runs" / name / "published")
        for name in (CONTRASTS, CLAIMS):
            (clone / "runs" / name).symlink_to(ROOT / "runs" / name)
    only_sweep = load_study(Path("runs/mine")).sweeps[0].folder_name
    line = SWEEP.sub(only_sweep, command.line)
    program, *words = shlex.split(line)
    if program in IN_PROCESS and command.folder == ".":
        done = IN_PROCESS[program](words)
        assert done.exit_code == 0, f"{command}: {done.exception!r}\n{done.output}"
    else:
        told = subprocess.run(["bash", "-ec", line], cwd=clone / command.folder, capture_output=True, text=True)
        assert told.returncode == 0, f"{command}\n{told.stdout}\n{told.stderr}"
