"""What is published, and what is refused."""

import json
from pathlib import Path

import committed
import pytest
import synthetic

from fpt.errors import DataError, FptError, SpecError
from fpt.files import sha256, study_folder
from fpt.results.runs import studies, study_names
from fpt.sweeps import Study, ledger
from fpt.sweeps.publish import FILES, REASON, publish
from fpt.sweeps.record import PUBLISHED, RESULT
from fpt.sweeps.study import load_study

TEXT = """
sweeps:
  - {task: digits, arm: [frozen-random, unfrozen-random], steps: 3, learning_rates: [1e-3, 1e-2],
     seeds: [0, 10], random_gain: [1, 2], compute_type: float32}
"""


@pytest.fixture
def study(workspace: Path) -> Study:
    """runs/mine with four sweeps, all of them done."""
    Path("runs/mine/study.yaml").write_text(TEXT)
    found = load_study(Path("runs/mine"))
    for sweep in found.sweeps:
        folder = found.folder / sweep.folder_name
        synthetic.write(sweep, folder)
        for name in (ledger.NOTEBOOK, ledger.LOCK, "worker.log"):
            (folder / name).write_text(f'{{"{name}": "{sweep.folder_name}"}}')
    return found


def test_finished_sweeps_are_copied(study: Study) -> None:
    written, archived = publish(study)
    assert not archived
    assert [path.name for path in written] == [sweep.folder_name for sweep in study.sweeps]
    for path in written:
        names = [*FILES, "runs.parquet", "curves.parquet"]
        assert sorted(file.name for file in path.iterdir()) == sorted(names)
        assert all((path / name).read_bytes() == (study.folder / path.name / name).read_bytes() for name in names)
    assert all(ledger.sweep_state(sweep, study.folder).published for sweep in study.sweeps)
    assert publish(study) == (written, [])


def test_what_a_sweep_measured_is_copied_with_it(study: Study) -> None:
    measuring = study.sweeps[1].model_copy(update={"measures": ("attention",)})
    synthetic.write(measuring, folder := study.folder / measuring.folder_name)
    (folder / ledger.NOTEBOOK).write_text("{}")
    sweeps = (study.sweeps[0], measuring)
    written, _ = publish(Study("mine", study.folder, sweeps))
    copied = [path for path in written if (path / "attention.parquet").is_file()]
    assert [path.name for path in copied] == [measuring.folder_name]


def test_an_archive_that_cannot_be_written_is_told(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(study)
    Path("runs/archive").write_text("a file, not a folder")
    with pytest.raises(FptError, match="archive"):
        publish(Study("mine", study.folder, study.sweeps[1:]))
    assert (study.folder / PUBLISHED / study.sweeps[0].folder_name / RESULT).is_file()


@pytest.mark.parametrize("missing", [RESULT, ledger.NOTEBOOK])
def test_an_incomplete_study_is_refused_unless_partial(study: Study, missing: str) -> None:
    name = study.sweeps[1].folder_name
    (study.folder / name / missing).unlink()
    with pytest.raises(SpecError, match=f"1 of 4 sweeps of mine are not finished here: {name}.*--partial"):
        publish(study)
    assert not (study.folder / "published").exists()
    assert len(publish(study, partial=True)[0]) == 3


def test_nothing_that_was_published_is_lost(study: Study) -> None:
    """What the study has no longer goes to the archive with a reason, as often as it does."""
    publish(study)
    gone, *rest = study.sweeps
    less = Study("mine", study.folder, tuple(rest))
    (first,) = publish(less)[1]
    assert first == Path("runs/archive/mine", gone.folder_name)
    assert {path.name for path in first.iterdir()} == {*FILES, "runs.parquet", "curves.parquet", REASON}
    assert "study.yaml" in (first / REASON).read_text()
    publish(study)
    (again,) = publish(less)[1]
    assert again.parent == first.parent
    assert first.is_dir()
    assert (again / "runs.parquet").read_bytes() == (first / "runs.parquet").read_bytes()
    names = {path.name for path in (study.folder / "published").iterdir()}
    assert names == {sweep.folder_name for sweep in rest}


def test_the_archive_is_no_study(study: Study) -> None:
    (study.folder / "published" / "digits.old-00000000").mkdir(parents=True)
    publish(study)
    assert studies() == study_names() == ["mine"]
    with pytest.raises(SpecError, match="unknown study 'archive'"):
        study_folder(Path("runs"), "archive")


def test_what_the_archive_has_is_as_it_was_published() -> None:
    """Each archived sweep says why it is there, and its tables are those of its record."""
    archived = [path.parent for path in committed.tracked() if path.match(f"runs/archive/*/*/{REASON}")]
    assert len(archived) >= 11
    for folder in archived:
        tables = json.loads((folder / RESULT).read_text())["tables"]
        assert tables == {name: sha256(folder / f"{name}.parquet") for name in tables}


def test_an_empty_notebook_is_no_result(study: Study) -> None:
    """Damaged tables: tests/bad_input/test_results.py."""
    (study.folder / study.sweeps[2].folder_name / "notebook.ipynb").write_bytes(b"")
    with pytest.raises(DataError, match=r"notebook\.ipynb"):
        publish(study)
    assert not (study.folder / "published").exists()


def test_what_is_published_stays_where_it_is_no_longer_finished_here(study: Study) -> None:
    written, _ = publish(study)
    for finished in (1, 0):
        for sweep in study.sweeps[finished:]:
            (study.folder / sweep.folder_name / RESULT).unlink(missing_ok=True)
        if finished:
            publish(study, partial=True)
        else:
            with pytest.raises(SpecError, match="nothing to publish"):
                publish(study, partial=True)
        assert all(path.is_dir() for path in written)


def test_the_smoke_study_is_never_published(study: Study) -> None:
    with pytest.raises(SpecError, match="smoke"):
        publish(Study("smoke", Path("runs/smoke"), study.sweeps))
