"""runs/README.md names every file of runs/, and every column and field in it, and no other; what the table of
architectures says."""

import fnmatch
import json
import re

import pandas as pd
import pyarrow.parquet as pq
import pytest
from committed import ROOT, tracked

from fpt.sweeps import record
from fpt.sweeps.spec import FIELDS
from fpt.sweeps.study_file import StudyFile

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


def test_no_name_is_explained_twice_and_none_lacks_its_meaning():
    for heading, names in NAMED.items():
        assert len(set(names)) == len(names) > 0, heading
    rows = re.findall(r"^\| `[^`]+` \|(.*)\|$", (RUNS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == sum(map(len, NAMED.values()))
    assert all(row.strip() for row in rows)


@pytest.mark.parametrize("table", record.TABLES)
def test_every_column_of_the_published_tables(table):
    found = set(record.TABLES[table])
    for path in published(f"{table}.parquet"):
        found |= set(pq.read_schema(path).names)
    assert set(NAMED[f"{table}.parquet"]) == found


@pytest.mark.parametrize("file", ["contrasts.csv", "claims.csv", "arms.csv", "rows.csv"])
def test_every_column_of_the_tables_beside_the_studies(file):
    assert NAMED[file] == list(pd.read_csv(RUNS / file, nrows=1))


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
    listed = [path.relative_to(RUNS).as_posix() for path in tracked() if RUNS in path.parents]
    patterns = [name.replace("STUDY", "*").replace("SWEEP", "*") for name in NAMED["Files"]]
    files = [name for name in listed if name != "README.md"]
    assert len(files) > 100
    own = "*/*/"  # `STUDY/SWEEP/` stands for what is never committed, and would match whatever is
    for file in files:
        folders = [each for each in patterns if each.endswith("/") and each != own]
        inside = any(file.startswith(each) for each in folders if "*" not in each)
        whole = any(fnmatch.fnmatchcase(file, each) and file.count("/") == each.count("/") for each in patterns)
        assert inside or whole, f"{file} is not in runs/README.md"
