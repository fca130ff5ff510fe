"""What `make` does beside the commands that CI runs."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def make(target: str, environment: Path, *settings: str) -> "subprocess.CompletedProcess[str]":
    """`make target` in the environment as it is: nothing is installed."""
    command = ["make", f"VENV={environment}", f"--assume-old={environment}/.fpt-installed", *settings, target]
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "FPT_ORIGIN")}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done


def test_make_report_ends_with_the_places_of_the_report_and_the_book() -> None:
    """`make compare` is its last part."""
    *_, report, book = make("compare", Path(sys.prefix)).stdout.splitlines()
    assert report.endswith(f"{ROOT}/runs/laptop/report.html")
    assert book == f"The book: {ROOT}/book/_build/html/index.html"


def test_the_book_that_is_tested_is_of_published_results(tmp_path: Path) -> None:
    """Also where `make report` has left results of one's own. The build is one that notes what it was told."""
    commands = {
        "jupyter-book": "",
        "sphinx-build": 'for out; do :; done; mkdir -p "$out"; echo "$FPT_ORIGIN" >"$out/origin"',
    }
    (tmp_path / "bin").mkdir()
    for name, does in commands.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    make("built-book", tmp_path, f"CHECKED={tmp_path}/checked")
    assert (tmp_path / "checked/_build/html/origin").read_text() == "published\n"
