"""runs/README.md names every file of runs/, and every column and field in it, and no other; what the table of
architectures says."""

import fnmatch
import json
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from fpt.sweeps import record
from fpt.sweeps.spec import FIELDS
from fpt.sweeps.study_file import StudyFile

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "runs"


def dictionary():
    """Heading -> the names in the first column of its table, in order."""
    found = {}
    for section in (RUNS / "README.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, _, body = section.partition("\n")
        found[heading] = re.findall(r"^\| `([^`]+)` \|", body, re.MULTILINE)
    return found


NAMED = dictionary()


def published(pattern):
    return sorted(RUNS.glob(f"*/published/*/{pattern}"))


@pytest.mark.parametrize("heading", NAMED)
def test_no_name_is_explained_twice_and_none_lacks_its_meaning(heading):
    assert len(set(NAMED[heading])) == len(NAMED[heading]) > 0
    rows = re.findall(r"^\| `[^`]+` \|(.*)\|$", (RUNS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == sum(map(len, NAMED.values()))
    assert all(row.strip() for row in rows)


@pytest.mark.parametrize("table", record.TABLES)
def test_every_column_of_the_published_tables(table):
    found = set(record.TABLES[table].columns)
    for path in published(f"{table}.parquet"):
        found |= set(pd.read_parquet(path).columns)
    assert set(NAMED[f"{table}.parquet"]) == found


def test_every_column_of_the_verdicts():
    assert NAMED["verdicts.csv"] == list(pd.read_csv(RUNS / "verdicts.csv", nrows=1))


def test_every_field_of_a_record():
    parts = {"test": record.Tested, "git": record.Git}
    expected = [name for name in record.Record.model_fields if name not in parts]
    expected += [f"{name}.{inside}" for name, part in parts.items() for inside in part.model_fields]
    assert set(NAMED["result.json"]) == set(expected)
    for path in published("result.json"):
        assert set(json.loads(path.read_text())) <= set(record.Record.model_fields), path


def test_every_field_of_a_study_and_of_a_sweep():
    assert NAMED["study.yaml"] == list(StudyFile.model_fields)
    assert set(NAMED["Fields of a sweep"]) == {*FIELDS, "keep_as"}


@pytest.mark.parametrize(
    ("heading", "files", "rows"),
    [
        ("bench/published/cpu.json, h200.json, bench/KIND.json", "bench/published/*.json", "rows"),
        ("architectures/table.json", "architectures/table.json", "architectures"),
    ],
)
def test_every_field_of_a_benchmark_and_of_the_architectures(heading, files, rows):
    fields = set()
    for file in RUNS.glob(files):
        table = json.loads(file.read_text())
        fields |= {*table, *(f"{rows}.{name}" for row in table[rows] for name in row)}
    assert set(NAMED[heading]) == fields


def test_the_published_table_is_of_what_works_and_gives_reasons_for_the_rest():
    table = json.loads((RUNS / "architectures/table.json").read_text())["architectures"]
    assert {"llama", "gpt_neox", "modernbert"} <= {each["architecture"] for each in table if each["state"] == "works"}
    assert all(each["why"] for each in table if each["state"] != "works")
    assert "failed" not in {each["state"] for each in table}  # that is not refused, and a check does not hold


def test_every_committed_file():
    listed = subprocess.run(["git", "ls-files", "runs"], cwd=ROOT, capture_output=True, text=True, check=True)
    patterns = [name.replace("STUDY", "*").replace("SWEEP", "*") for name in NAMED["Files"]]
    files = [line.removeprefix("runs/") for line in listed.stdout.splitlines() if line != "runs/README.md"]
    assert len(files) > 100
    own = "*/*/"  # `STUDY/SWEEP/` stands for what is never committed, and would match whatever is
    for file in files:
        folders = [each for each in patterns if each.endswith("/") and each != own]
        inside = any(file.startswith(each) for each in folders if "*" not in each)
        whole = any(fnmatch.fnmatchcase(file, each) and file.count("/") == each.count("/") for each in patterns)
        assert inside or whole, f"{file} is not in runs/README.md"
