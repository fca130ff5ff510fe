"""What is kept is what would be computed, and follows everything that it depends on."""

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import IO

import pytest
import synthetic
from processes import PATIENCE
from pydantic import TypeAdapter

from fpt.claims import verdicts
from fpt.papers import claims
from fpt.results import StudyCells, kept
from fpt.sweeps.ledger import is_held

NUMBERS = TypeAdapter(list[int])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FPT_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_nothing_is_written_where_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FPT_CACHE", raising=False)
    made = iter([[1], [2]])
    assert [kept.kept(NUMBERS, [], lambda: next(made)) for _ in range(2)] == [[1], [2]]
    assert not list(tmp_path.iterdir())


def test_it_is_made_once_for_what_it_follows_from(tmp_path: Path, folder: Path) -> None:
    made, source = iter([[1], [2], [3]]), tmp_path / "table"
    found = []
    for content in ("a", "a", "b", "a"):
        source.write_text(content)
        found.append(kept.kept(NUMBERS, [source], lambda: next(made)))
    assert found == [[1], [1], [2], [1]]
    kinds = sorted(path.suffix for path in folder.iterdir())
    assert kinds == [".json", ".json", ".lock", ".lock"]  # nothing half-written is left


def test_it_is_made_once_where_two_ask_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, both_ask = [], Barrier(2, timeout=PATIENCE)

    def flock(file: IO[str], how: int) -> None:
        both_ask.wait()  # before either has it
        fcntl.flock(file, how)

    def make() -> list[int]:
        (lock,) = folder.glob("*.lock")
        made.append(is_held(lock))
        return [1]

    monkeypatch.setattr(kept, "fcntl", SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX))

    with ThreadPoolExecutor(2) as both:  # the lock is one of open files: threads wait as processes do
        found = list(both.map(lambda _: kept.kept(NUMBERS, [], make), range(2)))
    assert (found, made) == ([[1], [1]], [True])


def test_another_package_or_paper_is_another_result(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, package = iter([[1], [2]]), tmp_path / "package"
    package.mkdir()
    monkeypatch.setattr(kept, "PACKAGE", package)
    found = []
    for content in ("a = 1", "a = 2"):
        (package / "rules.py").write_text(content)
        kept._package.cache_clear()
        found.append(kept.kept(NUMBERS, [], lambda: next(made)))
    kept._package.cache_clear()
    assert found == [[1], [2]]


def test_kept_verdicts_are_those_that_are_computed(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = synthetic.finish(synthetic.workspace(tmp_path), skip=("unfrozen-random",))
    by_runs = [name for name, claim in claims().items() if any(rule.table for rule in claim.rule)]

    def found() -> list[str]:
        cells = StudyCells(study)
        both = (
            [verdicts.verdicts(claims()[name], [cells]) for name in by_runs],
            [verdicts.other_reading(claims()[name], cells) for name in by_runs],
        )
        return list(map(repr, both))

    made = found()
    (file,) = folder.glob("*.json")
    with monkeypatch.context() as patch:
        patch.setattr(verdicts, "_judged", lambda *_: pytest.fail("computed again"))
        assert found() == made
    monkeypatch.delenv("FPT_CACHE")
    assert found() == made
    assert file.stat().st_size > 1000


def test_new_results_are_judged_anew(tmp_path: Path, folder: Path) -> None:
    study = synthetic.workspace(tmp_path)
    synthetic.finish(study, skip=("unfrozen-random", "unfrozen-pretrained", "frozen-random"))
    few = verdicts.verdicts(claims()["R-02"], [StudyCells(study)])
    synthetic.finish(study, skip=("frozen-pretrained",))
    more = verdicts.verdicts(claims()["R-02"], [StudyCells(study)])
    assert [each.word for each in few] == ["not run yet"]
    assert [each.word for each in more] == ["supported"]


def test_what_needs_no_runs_is_computed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(verdicts, "computed", lambda claim: (asked.append(claim.id), ("supported", claim.id))[1])
    for name in ("O-02", "L-19", "O-02"):
        (found,) = verdicts.verdicts(claims()[name], [])
        assert (found.word, found.note) == ("supported", name)
    assert asked == [name for name, claim in claims().items() if claim.arithmetic or claim.printed]
    monkeypatch.setattr(verdicts, "local_folder", lambda _: Path("elsewhere"))  # weights that were not here before
    verdicts.verdicts(claims()["O-02"], [])
    assert len(asked) == 2 * len(set(asked))
