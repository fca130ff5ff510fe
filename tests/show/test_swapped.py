"""Two arms of a study exchanged: the pages that were written about them no longer hold, and say where."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from fpt.files import sha256
from fpt.sweeps.record import RESULT, TABLES

ROOT = Path(__file__).parents[2]
STUDY, ARMS, PAGES = "plane-minilm", ("frozen-pretrained", "unfrozen-pretrained"), ("freeze.md", "map.md")
OF_RESULTS = re.compile(r"\b(leads|trails|open_)\(|\.(low|high|first|second|mean|open)\b|_map\[")
ITS_OWN = ("spec", "hash", "asks", "plan", "tables")  # of a record: what it is a record of


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A workspace with these pages and all runs; those of the study are copies."""
    for folder in ("runs", "book"):
        (tmp_path / folder).mkdir()
    for page in PAGES:
        shutil.copy(ROOT / "book" / page, tmp_path / "book")
    for path in (ROOT / "runs").iterdir():
        if path.name not in (STUDY, "arms.csv"):
            (tmp_path / "runs" / path.name).symlink_to(path)
    shutil.copytree(ROOT / "runs" / STUDY / "published", tmp_path / "runs" / STUDY / "published")
    shutil.copy(ROOT / "runs" / STUDY / "study.yaml", tmp_path / "runs" / STUDY)
    shutil.copy(ROOT / "runs/arms.csv", tmp_path / "runs")
    return tmp_path


def broken(workspace: Path) -> list[str]:
    """What `make guards` lists."""
    command = [sys.executable, "-m", "fpt.show.guards", *PAGES]
    done = subprocess.run(command, cwd=workspace / "book", capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert done.returncode == bool(done.stdout), done.stderr
    return done.stdout.splitlines()


def swap(published: Path) -> None:
    """Exchange the numbers of two sweeps, and leave records and checksums that fit: only sentences can notice."""
    folders = [next(published.glob(f"*.{arm}-*")) for arm in ARMS]
    arms = published.parents[1] / "arms.csv"
    known = arms.read_text()
    records = [json.loads((folder / RESULT).read_text()) for folder in folders]
    written = [name for name in TABLES if all((folder / f"{name}.parquet").exists() for folder in folders)]
    for name in written:
        files = [folder / f"{name}.parquet" for folder in folders]
        tables = [pd.read_parquet(file) for file in files]
        for file, own, other in zip(files, tables, tables[::-1], strict=True):
            other.assign(sweep=own["sweep"].iloc[0]).to_parquet(file)
    for folder, own, other in zip(folders, records, records[::-1], strict=True):
        tables = {name: sha256(folder / f"{name}.parquet") for name in written}
        exchanged = other | {name: own[name] for name in ITS_OWN if name in own} | {"tables": tables}
        before = sha256(folder / RESULT)
        (folder / RESULT).write_text(json.dumps(exchanged))
        known = known.replace(before, sha256(folder / RESULT))
    arms.write_text(known)


@pytest.mark.slow
def test_swapping_two_arms_breaks_the_sentences_about_them(copied: Path) -> None:
    assert broken(copied) == []
    swap(copied / "runs" / STUDY / "published")
    found = broken(copied)
    assert {line.partition(":")[0] for line in found} == set(PAGES)
    of_results = [
        line
        for line in found
        if re.search(r"(leads|trails|open_)\(|\.(low|high|first|second|mean|open)\b|_map\[", line)
    ]
    assert len(of_results) >= 5, "sentences about numbers, not damaged files"
