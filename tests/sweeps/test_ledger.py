"""Folders, locks, and files that appear whole or not at all."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import synthetic
from processes import PATIENCE, ending
from stand_in import spec

from fpt import files
from fpt.errors import LockedError, SpecError
from fpt.sweeps import Study, ledger, results_folder
from fpt.sweeps.ledger import LOCK, PROGRESS, hold, is_held, sweep_state

HOLDER = """
import sys
from pathlib import Path
from fpt.sweeps.ledger import hold
from fpt.sweeps.spec import resolve
import json
with hold(Path(sys.argv[1]), resolve(json.loads(sys.argv[2]))):
    print("held", flush=True)
    sys.stdin.read()  # until it is killed, or the test's process has ended
"""


@pytest.fixture
def holder(workspace: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that writes runs/mine/sweep."""
    command = [sys.executable, "-c", HOLDER, f"runs/mine/sweep/{LOCK}", json.dumps(spec().resolved())]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with ending(process):
        assert process.stdout.readline() == "held\n"
        yield process


def done(folder: Path, **change: object) -> None:
    synthetic.write(spec(), folder, **change)


def test_the_states_of_a_folder(workspace: Path) -> None:
    study = Path("runs/mine")
    folder = study / spec().folder_name
    assert sweep_state(spec(), study).state == "waiting"
    with hold(folder / LOCK, spec()):
        progress = {"grid": "as planned", "steps": 4, "step": 1, "run_steps": 25, "run_steps_total": 100}
        files.write_json(folder / PROGRESS, progress)
        running = sweep_state(spec(), study)
        assert running.state == "running"
        assert running.progress.items() >= progress.items()
    assert sweep_state(spec(), study).state == "unfinished"
    done(folder)
    assert sweep_state(spec(), study).state == "done"
    assert not sweep_state(spec(), study).complete
    (folder / ledger.NOTEBOOK).touch()
    assert sweep_state(spec(), study).complete


def test_published_results_are_seen_but_are_not_own(workspace: Path) -> None:
    done(Path("runs/mine/published") / spec().folder_name, device="there")
    state = sweep_state(spec(), Path("runs/mine"))
    assert state.state == "waiting"
    assert (state.published or {})["device"] == "there"


def test_folders_that_the_study_no_longer_resolves_to_are_stale(workspace: Path) -> None:
    study = Study("mine", Path("runs/mine"), (spec(),))
    done(study.folder / spec().folder_name)
    done(study.folder / "published" / spec().folder_name)
    for old in (study.folder / "digits.old-00000000", study.folder / "published" / "digits.older-00000000"):
        done(old)
    assert [path.name for path in ledger.stale_folders(study)] == ["digits.old-00000000"]
    assert [path.name for path in ledger.stale_folders(study, "published")] == ["digits.older-00000000"]


def test_a_lock_names_its_holder(holder: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path("runs/mine/sweep")
    monkeypatch.setattr(ledger, "LOCK_WAIT", 0.3)
    assert is_held(folder / LOCK)
    with (
        pytest.raises(LockedError, match=f"process {holder.pid} on {socket.gethostname()}"),
        hold(folder / LOCK, spec()),
    ):
        pass
    with pytest.raises(LockedError, match=f"process {holder.pid}"):
        ledger.wait_until_free(folder)


def test_a_lock_dies_with_its_holder(holder: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("runs/mine/sweep") / LOCK
    monkeypatch.setattr(ledger, "LOCK_WAIT", PATIENCE)
    holder.kill()
    with hold(path, spec()):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    ledger.wait_until_free(path.parent)
    assert not any(is_held(path) for _ in range(3))  # observers do not hold up each other
    assert not is_held(path.with_name("never"))


def test_a_folder_of_another_spec_is_refused(workspace: Path) -> None:
    path = Path("runs/mine/sweep") / LOCK
    with hold(path, spec()):
        pass
    with pytest.raises(LockedError, match=f"holds another sweep.*process {os.getpid()}"), hold(path, spec(steps=4)):
        pass
    copied = Path("runs/mine/copied")  # a result without the lock file that made it
    done(copied)
    with pytest.raises(LockedError, match="holds another sweep"), hold(copied / LOCK, spec(steps=4)):
        pass


def test_the_workspace_is_the_nearest_folder_above(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.workspace() == workspace
    monkeypatch.chdir(workspace / "runs" / "mine")
    assert files.workspace() == workspace
    assert files.workspace(workspace) == workspace
    with pytest.raises(SpecError, match=r"as --root .*study\.yaml.*fpt init"):
        files.workspace(workspace / "runs")
    monkeypatch.chdir("/")
    with pytest.raises(SpecError, match=r"at or above the working directory.*--root"):
        files.workspace()


def test_results_go_below_the_study_only(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert results_folder(None) is None
    assert results_folder("runs/mine/sweep") == Path("runs/mine/sweep")
    for link in ("link", "mine/away"):
        (workspace / "runs" / link).symlink_to("/tmp")
    there = tmp_path_factory.mktemp("scratch")
    (there / files.STUDY_FILE).write_text("sweeps: []")
    (workspace / "runs" / "far").symlink_to(there)
    assert results_folder("runs/far/sweep") == Path("runs/far/sweep")  # a study may be a link
    for folder in (
        "/elsewhere/x/y", "runs/mine", "runs", "runs/mine/a/b", "runs/../../x", "runs/mine/../../x", "mine/sweep", "",
        "runs/mine/published", "runs/link/x", "runs/mine/.hidden", "runs/mine/away", "runs/far/../../x", 3,
    ):  # fmt: skip
        with pytest.raises(SpecError, match="nowhere else"):
            results_folder(folder)
    monkeypatch.chdir(workspace / "notebooks")
    assert results_folder("runs/mine/sweep") == workspace / "runs/mine/sweep"
