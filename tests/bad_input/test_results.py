"""Results that were edited or damaged: one refusal by every command that would read them, before anything is done."""

import json
import os
from pathlib import Path

import pytest
import refusal
import small_studies
import synthetic

from fpt.errors import DataError
from fpt.files import write_json
from fpt.results import load_runs
from fpt.results.mapping import write_mapping
from fpt.sweeps import ledger, load_study
from fpt.sweeps.publish import publish
from fpt.sweeps.record import RESULT, SEAL, sealed

STUDY = small_studies.PLAIN.replace("extend: 0", "extend: 1")
COMMANDS = ("plan", "status", "report", "publish", "run")
MISSING = object()
EARLIER = {SEAL: MISSING}  # a record of a version that did not write the SHA-256 of what it says
RECORDS = {  # what result.json says, and what the refusal must name
    "other choices": ({"choices": {"0": 1e-3, "1": 1e-2}}, ("result.json", "SHA-256")),
    "no tables": ({"tables": MISSING}, ("result.json", "SHA-256")),
    "another spec": ({"spec": {"steps": 4000}}, ("result.json", "SHA-256")),
    "another SHA-256": ({SEAL: "0" * 64}, ("result.json", "SHA-256")),
    "no grid": (EARLIER | {"grid": MISSING}, ("grid", "missing")),
    "a rate as text": (EARLIER | {"grid": ["fast", 1e-2]}, ("grid", "fast")),
    "no fields of the sweep": (EARLIER | {"spec": {"steps": 4000}}, ("spec.task", "missing")),
    "another hash": (EARLIER | {"hash": "00000000"}, ("hash", "00000000")),
}
CHOICES = {  # of an earlier version, what its runs do not give: refused where it would be published
    "another selected rate": ({"selected_rate": 1e-3}, ("selected_rate", "0.001", "0.01")),
    "other choices": ({"choices": {"0": 1e-3, "1": 1e-2}}, ("choices", "0.001")),
    "another edge": ({"at_edge": False}, ("at_edge", "False", "True")),
    "other eligible rates": ({"eligible": [1e-2]}, ("eligible", "0.001")),
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
    change(folder / RESULT, **fields)
    is_not_believed(folder, named)


@pytest.mark.parametrize("case", CHOICES)
def test_choices(case, folder):
    fields, named = CHOICES[case]
    change(folder / RESULT, **EARLIER, **fields)
    refusal.refused("publish", "mine", named=(str(folder), *named))
    assert not (folder.parent / "published").exists()


@pytest.mark.parametrize("case", FILES)
def test_files(case, folder):
    name, damage, named = FILES[case]
    content = damage((folder / name).read_bytes())
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    is_not_believed(folder, named, *COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_published_is_checked_as_well(command, folder):
    ((copy,), _) = publish(load_study(folder.parent))
    change(copy / RESULT, choices={})
    message = refusal.refused(command, "mine", named=(str(copy), "SHA-256"))
    assert "git checkout" in message


def test_another_record_with_its_own_sha256_is_not_the_published_one(folder):
    study = load_study(folder.parent)
    ((copy,), _) = publish(study)
    write_mapping(folder.parent.parent, [study])
    path = copy / RESULT
    write_json(path, sealed(json.loads(path.read_text()) | {"wall_seconds": 1.0}))
    with pytest.warns(UserWarning, match=r"SHA-256.*runs/arms\.csv"):
        assert load_runs(folder.parent, origin="published").empty


def test_nothing_damaged_gets_a_sha256_of_its_own(folder):
    """Of what runs/arms.csv lists nothing but the SHA-256 is checked later, so what is checked is checked before."""
    ((copy,), _) = publish(load_study(folder.parent))
    change(copy / RESULT, **EARLIER, choices={})
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
    (folder / RESULT).unlink()
    (folder / ledger.PROGRESS).write_text(content)
    (sweep,) = load_study(folder.parent).sweeps
    with ledger.hold(folder / ledger.LOCK, sweep):
        state = ledger.sweep_state(sweep, folder.parent)
    assert (state.state, state.progress) == ("running", None)
