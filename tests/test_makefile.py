"""What `make` does beside the commands that CI runs."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_make_report_ends_with_the_numbers_and_the_place_of_the_book() -> None:
    """`make compare` is its last part. The environment is this one, as it is: nothing is installed."""
    command = ["make", f"VENV={sys.prefix}", f"--assume-old={sys.prefix}/.fpt-installed", "compare"]
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    head, *rows, book = done.stdout.splitlines()
    assert "your accuracy" in head
    assert "published accuracy" in head
    assert len(rows) == 4  # the arms
    assert book == f"The book: {ROOT}/book/_build/html/index.html"
