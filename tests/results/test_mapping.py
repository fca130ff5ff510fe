"""The tables beside the records: they follow from the studies, and with them a number is read from records alone."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic

from fpt.errors import DataError, SpecError
from fpt.papers.schema import BASELINES
from fpt.results import StudyCells, arms_of, contrast, level, load_runs
from fpt.results import baselines as scores
from fpt.results.arm import ARMS, ROWS
from fpt.results.contrasts import find_arm
from fpt.results.mapping import write_mapping
from fpt.results.runs import BEFORE, SPEC, loaded_studies
from fpt.sweeps import SweepSpec, load_study
from fpt.sweeps.spec import fields_of

STUDY = "plane-minilm"
READ = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ("fpt.models", "fpt.tasks", "fpt.papers", "fpt.sweeps.study"):
            raise ImportError(f"{name} is not to be had")

if sys.argv[1] == "blocked":
    sys.meta_path.insert(0, Blocked())
from fpt.results import contrast, level, load_runs

for how in ({}, {"at": 1e-3}, {"at": "common", "budget": 800}, {"of": "gap"}):
    print(repr(contrast("plane-minilm", "FP", "UP", **how)))
print(repr(level("smollm2", "UP (layers 4)", task="mnist")), repr(level("controls", "FP", task="digits")))
print(load_runs("plane-minilm", table="curves").to_csv(), load_runs("laptop-lu2021").to_csv())
"""


def test_a_number_is_read_without_studies_tasks_models_and_papers(root: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", READ]
    blocked, free = (
        subprocess.run([*command, how], cwd=root, capture_output=True, text=True, check=False)
        for how in ("blocked", "free")
    )
    assert (blocked.returncode, blocked.stderr) == (0, "")
    assert blocked.stdout == free.stdout
    assert repr(contrast(STUDY, "FP", "UP")) in blocked.stdout


def test_what_is_committed_follows_from_the_studies(root: Path, tmp_path: Path) -> None:
    """`fpt publish --mapping` writes it anew."""
    studies = list(loaded_studies(root))
    for path in (root / "runs").glob("*/published"):
        (tmp_path / path.parent.name).mkdir()
        (tmp_path / path.parent.name / "published").symlink_to(path)
    write_mapping(tmp_path, studies)
    for file in (ARMS, ROWS):
        assert (tmp_path / file).read_text() == (root / "runs" / file).read_text(), "run fpt publish --mapping"
    sweeps = pd.read_csv(root / "runs" / ARMS)
    assert len(sweeps) == len(list((root / "runs").glob("*/published/*/result.json")))


def test_cells_are_those_that_the_study_file_plans(root: Path) -> None:
    """Of a study whose sweeps were all run: by the table of rows, and by the study."""
    from fpt.papers import papers

    cells = StudyCells(root / "runs/laptop-rothermel2021", "published")
    for table in (table for paper in papers().values() for table in paper.tables.values()):
        planned = cells.study.planned(table)
        found = [(cell.row, cell.arm.task, cell.stands_for, cell.scale) for cell in cells.cells(table)]
        assert found == [(each.row, each.task, each.stands_for, each.scale) for each in planned], table.id


def test_fields_are_those_of_a_sweep_and_older_records_had_the_defaults() -> None:
    fields = SweepSpec.model_fields
    assert [*SPEC] == ["arm", *(name for name in fields if name not in fields_of("grid", "measured"))]
    assert all(value == fields[name].default for name, value in BEFORE.items())
    assert BASELINES[:5] == (scores.CHANCE, scores.LINEAR, scores.MAJORITY, scores.COPYING, scores.OPERATOR)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return synthetic.finish(synthetic.workspace(tmp_path), "published")


def of_arm(study: Path, name: str) -> Path:
    lines = pd.read_csv(study.parent / ARMS, index_col="name")
    return study / "published" / str(lines.loc[name, "sweep"])


def edited(folder: Path) -> None:
    frame = pd.read_parquet(folder / "runs.parquet")
    frame.assign(test_accuracy=np.float64(1.0)).to_parquet(folder / "runs.parquet", index=False)


def other_record(folder: Path) -> None:
    record = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(record | {"choices": {}}))


def other_field(folder: Path) -> None:
    """What contradicts nothing else that the record says."""
    record = json.loads((folder / "result.json").read_text())
    record["spec"]["random_gain"] += 1
    (folder / "result.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (edited, "runs.parquet"),
        (other_record, "result.json"),
        (other_field, "result.json"),
        (lambda folder: (folder / "result.json").unlink(), "result.json"),
        (lambda folder: (folder / "curves.parquet").unlink(), "curves.parquet"),
    ],
    ids=["an edited table", "an edited record", "an edited field of a record", "no record", "a table that is gone"],
)
def test_a_damaged_sweep_costs_its_own_arm_alone(damage, file: str, study: Path) -> None:
    before, root = contrast("laptop", "FP", "UP", root=study.parents[1]), study.parents[1]
    damage(folder := of_arm(study, "UR"))
    assert contrast("laptop", "FP", "UP", root=root) == before
    for read in (lambda: level("laptop", "UR", root=root), lambda: contrast("laptop", "FP", "UR", root=root)):
        with pytest.raises(DataError, match=rf"{folder.name}/{file}"):
            read()
    with pytest.warns(UserWarning, match=rf"left out: .*{folder.name}/{file}"):
        assert ("digits", "UR") not in arms_of("laptop", root)
    with pytest.warns(UserWarning, match=folder.name):
        assert set(load_runs(study)["name"]) == {"FP", "FR", "UP", "FR fixed", "UR fixed"}


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        ({"first": "FPX"}, ("FPX", "FP", "UR fixed")),
        ({"task": "mnist"}, ("mnist", "digits")),
        ({"budget": 7}, ("budget 7", "result.json", "400")),
        ({"at": 2e-3}, ("2e-3", "published", "1e-4, 1e-3, 1e-2, 1e-1")),
        ({"of": "speed"}, ("speed", "accuracy", "gap")),
    ],
)
def test_what_is_not_there_is_named_with_what_there_is(ask, named, study: Path) -> None:
    asked = {"study": "laptop", "first": "FP", "second": "UP", "root": study.parents[1], **ask}
    with pytest.raises(SpecError) as refused:
        contrast(**asked)
    assert all(each in str(refused.value) for each in named), str(refused.value)


def test_a_sweep_without_a_line_is_left_out_by_name(study: Path) -> None:
    runs, root = study.parent, study.parents[1]
    lines = (runs / ARMS).read_text().splitlines(keepends=True)
    (runs / ARMS).write_text("".join(line for line in lines if ".unfrozen-random-" not in line))
    with pytest.warns(UserWarning, match=r"unfrozen-random-.* has no line in .*arms\.csv.*fpt publish --mapping"):
        assert set(load_runs(study)["label"]) == {"FP", "FR", "UP", "FR fixed"}
    write_mapping(runs, [load_study(study)])
    assert ("digits", "UR") in arms_of("laptop", root)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (",letters,", ",initials,", "its columns must be"),
        (",4,10,", ",four,10,", "line 2"),
        (",4,10,", ",4,", "line 2"),
    ],
)
def test_a_table_that_was_edited_names_its_file_and_line(old: str, new: str, named: str, study: Path) -> None:
    path = study.parent / ARMS
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=rf"{ARMS}.*{named}"):
        find_arm("laptop", "FP", root=study.parents[1])


def test_lines_of_other_studies_stay_and_those_that_are_not_published_go(tmp_path: Path) -> None:
    first = synthetic.finish(synthetic.workspace(tmp_path, "first"), "published")
    second = synthetic.finish(synthetic.workspace(tmp_path, "second"), "published")
    before = (tmp_path / "runs" / ROWS).read_text()
    assert set(pd.read_csv(tmp_path / "runs" / ARMS)["study"]) == {"first", "second"}
    write_mapping(tmp_path / "runs", [load_study(first)])
    assert (tmp_path / "runs" / ROWS).read_text() == before
    (second / "published").rename(second / "withdrawn")
    write_mapping(tmp_path / "runs", [])
    assert set(pd.read_csv(tmp_path / "runs" / ARMS)["study"]) == {"first"}


@pytest.mark.parametrize("text", ["study,old\nmine,1\n", "", "study,sweep\nmine\n"])
def test_a_table_that_cannot_be_read_is_written_anew(text: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    for name in (ARMS, ROWS):
        (runs / name).write_text(text, encoding="utf-8")
    write_mapping(runs, [])
    assert [(runs / name).read_text().split("\n", 1)[1] for name in (ARMS, ROWS)] == ["", ""]
