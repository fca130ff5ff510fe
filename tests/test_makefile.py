"""What `make` does beside the commands that CI runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def make(target: str, environment: Path, *settings: str) -> "subprocess.CompletedProcess[str]":
    """`make target` in the environment as it is: nothing is installed."""
    command = ["make", f"VENV={environment}", f"--assume-old={environment}/.fpt-installed", *settings, target]
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done


def test_make_report_ends_with_the_places_of_the_report_and_the_book() -> None:
    """`make compare` is its last part."""
    *_, report, book = make("compare", Path(sys.prefix)).stdout.splitlines()
    assert report.endswith(f"{ROOT}/runs/laptop/report.html")
    assert book == f"The book: {ROOT}/book/_build/html/index.html"


def test_what_is_printed_are_pages_and_the_list_names_the_command() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (printed,) = re.findall(r"^PRINTED = (.*)$", makefile, re.MULTILINE)
    assert len(printed.split()) == 3
    assert all((ROOT / "book" / f"{page}.md").is_file() for page in printed.split())
    assert "make pdf " in make("help", Path(sys.prefix)).stdout
    release = (ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8")
    assert "make site pdf" in release
    assert "./*.pdf" in release
