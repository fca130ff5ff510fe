"""Results that were edited or damaged: one refusal by every command that would read them, before anything is done."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest
import refusal
import small_studies
import synthetic

from fpt.errors import DataError
from fpt.files import sha256, write_json
from fpt.results import load_runs
from fpt.sweeps import ledger, load_study
from fpt.sweeps.publish import publish

STUDY = small_studies.PLAIN.replace("extend: 0", "extend: 1")
COMMANDS = ("plan", "status", "report", "publish", "run")
GRID = [1e-3, 1e-2]
MISSING = object()
RECORDS = {  # what result.json says, and what the refusal must name
    "no grid": ({"grid": MISSING}, ("grid", "missing")),
    "a rate as text": ({"grid": ["fast", 1e-2]}, ("grid", "fast")),
    "a grid that lacks a rate of the study": ({"grid": [1e-3]}, ("grid", "[0.001]")),
    "a grid out of order": ({"grid": GRID[::-1]}, ("grid", "ascending")),
    "a rate that was never trained": ({"grid": [*GRID, 0.1]}, ("fleets",)),
    "the same, and fleets to match": ({"grid": [*GRID, 0.1], "fleets": [[3, 2]]}, ("runs.parquet", "0.1", "missing")),
    "a selected rate beside the grid": ({"selected_rate": 2e-3}, ("selected_rate", "0.002")),
    "another selected rate": ({"selected_rate": 1e-3}, ("selected_rate", "0.001", "0.01")),
    "choices of other seeds": ({"choices": {"0": 1e-2, "7": 1e-2}}, ("choices", "7", "[0, 1]")),
    "other choices": ({"choices": {"0": 1e-3, "1": 1e-2}}, ("choices", "0.001")),
    "another edge": ({"at_edge": False}, ("at_edge", "false", "true")),
    "other eligible rates": ({"eligible": [1e-2]}, ("eligible", "0.001")),
    "another spec": ({"spec": {"steps": 4000}}, ("spec.steps", "4000", "3")),
    "another hash": ({"hash": "00000000"}, ("hash", "00000000")),
    "no tables": ({"tables": MISSING}, ("tables", "missing")),
    "a table too few": ({"tables": {"runs": "0" * 64}}, ("tables", "curves")),
}
# With the checksum of the changed table in the record
TABLES = {
    "half of the runs": ("runs", lambda rows: rows.iloc[:2], ("2 runs", "missing")),
    "doubled runs": ("runs", lambda rows: pd.concat([rows, rows]), ("8 rows", "repeat")),
    "percent": ("runs", lambda rows: rows.assign(test_accuracy=rows["test_accuracy"] * 100), ("test_accuracy", "1")),
    "words": ("runs", lambda rows: rows.assign(test_accuracy="good"), ("test_accuracy",)),
    "no numbers": ("runs", lambda rows: rows.assign(validation_accuracy=float("nan")), ("validation accuracy",)),
    "no accuracy": ("runs", lambda rows: rows.drop(columns="test_accuracy"), ("test_accuracy",)),
    "another's": ("runs", lambda rows: rows.assign(sweep="digits.other-00000000"), ("digits.other-00000000",)),
    "dates of divergence": ("runs", lambda rows: rows.assign(diverged_at="never"), ("diverged_at",)),
    "a step too few": ("curves", lambda rows: rows[rows["step"] > 1], ("step",)),
}
FILES = {
    "a list as the record": ("result.json", lambda _: b"[]", ("result.json",)),
    "a record that is no text": ("result.json", lambda _: b"\xff\xfe", ("result.json",)),
    "no curves": ("curves.parquet", lambda _: None, ("curves.parquet", "missing")),
    "a byte more": ("runs.parquet", lambda whole: whole + b"0", ("runs.parquet", "SHA-256")),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The only sweep of runs/mine, done; its best rate is the higher one."""
    monkeypatch.chdir(tmp_path)
    small_studies.workspace(tmp_path, STUDY)
    study = Path("runs/mine")
    (sweep,) = load_study(study).sweeps
    synthetic.write(sweep, study / sweep.folder_name, lambda _, rate, seed: 0.5 + 10 * rate)
    (study / sweep.folder_name / ledger.NOTEBOOK).write_text("{}")
    return study / sweep.folder_name


def change(path, **fields):
    record = json.loads(path.read_text()) | fields
    write_json(path, {name: value for name, value in record.items() if value is not MISSING})


def is_not_believed(folder, named, *commands):
    """Publishing reads everything there is; the record is read by every command."""
    for command in commands or ("publish",):
        refusal.refused(command, "mine", named=(str(folder), *named))
    assert not (folder.parent / "published").exists()
    assert not (folder.parent / "report.html").exists()
    with pytest.raises(DataError):
        (load_runs(folder.parent), load_runs(folder.parent, table="curves"))


@pytest.mark.parametrize("case", RECORDS)
def test_records(case, folder):
    fields, named = RECORDS[case]
    change(folder / ledger.RESULT, **fields)
    is_not_believed(folder, named)


@pytest.mark.parametrize("case", FILES)
def test_files(case, folder):
    name, damage, named = FILES[case]
    content = damage((folder / name).read_bytes())
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    is_not_believed(folder, named, *COMMANDS)


@pytest.mark.parametrize("case", TABLES)
def test_tables(case, folder):
    name, edit, named = TABLES[case]
    path = folder / f"{name}.parquet"
    edit(pd.read_parquet(path)).to_parquet(path, index=False)
    tables = json.loads((folder / ledger.RESULT).read_text())["tables"]
    change(folder / ledger.RESULT, tables=tables | {name: sha256(path)})
    is_not_believed(folder, named)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_published_is_checked_as_well(command, folder):
    ((copy,), _) = publish(load_study(folder.parent))
    change(copy / ledger.RESULT, choices={})
    message = refusal.refused(command, "mine", named=(str(copy), "choices"))
    assert "git checkout" in message


@pytest.mark.parametrize("what", ["record", "table"])
def test_nothing_damaged_gets_a_sha256_of_its_own(what, folder):
    """Of what runs/arms.csv lists nothing but the SHA-256 is checked later, so everything is checked before."""
    ((copy,), _) = publish(load_study(folder.parent))
    if what == "record":
        change(copy / ledger.RESULT, choices={})
    else:
        path = copy / "runs.parquet"
        pd.read_parquet(path).iloc[:2].to_parquet(path, index=False)
        tables = json.loads((copy / ledger.RESULT).read_text())["tables"]
        change(copy / ledger.RESULT, tables=tables | {"runs": sha256(path)})
    refusal.refused("publish", "--mapping", named=(str(copy), "git checkout"))
    assert not Path("runs/arms.csv").exists()


def test_a_table_that_changes_while_it_is_used(folder):
    """What is remembered of a file holds for as long as the file stays."""
    assert len(load_runs(folder.parent)) == 4
    os.truncate(folder / "runs.parquet", 100)
    with pytest.raises(DataError):
        load_runs(folder.parent)


@pytest.mark.parametrize("content", ["", "[]", '{"grid": "as planned", "steps": 3, "step": 1, "run_steps": 2}'])
def test_progress_that_no_sweep_wrote_is_none(content, folder):
    """It is not a result, so nothing is refused: the sweep is shown as running."""
    (folder / ledger.RESULT).unlink()
    (folder / ledger.PROGRESS).write_text(content)
    (sweep,) = load_study(folder.parent).sweeps
    with ledger.hold(folder / ledger.LOCK, sweep):
        state = ledger.sweep_state(sweep, folder.parent)
    assert (state.state, state.progress) == ("running", None)
