"""Which pages are read again, and so executed again, when the book is built a second time."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sphinx.application import Sphinx

EXTENSIONS = Path(__file__).parents[2] / "book/_ext"
PAGES = ("index", "book/claims", "book/plane")
RESULT = "runs/a/published/s/result.json"
READ = (RESULT, "runs/a/study.yaml", "runs/verdicts.csv", "fpt/train.py", "book/_toc.yml", "notebooks/advise.ipynb")
Build = Callable[[], set[str]]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Builds a small book in `tmp_path` and returns the pages that it read."""
    monkeypatch.syspath_prepend(EXTENSIONS)
    monkeypatch.setattr("outdated.ROOT", tmp_path)
    for file in [*(f"{page}.rst" for page in PAGES), *READ]:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(":orphan:\n\nA\n=\n")

    def once() -> set[str]:
        read: set[str] = set()
        config = {"extensions": ["outdated"]}
        app = Sphinx(tmp_path, None, tmp_path / "html", tmp_path / "html/.doctrees", "html", config, status=None)
        app.connect("source-read", lambda app, page, source: read.add(page))
        app.build()
        return read

    assert once() == set(PAGES)
    return once


def test_a_book_that_nothing_changed_is_not_executed_again(build: Build) -> None:
    assert build() == set()


@pytest.mark.parametrize("file", READ)
def test_every_page_is_executed_again_when_results_or_code_changed(build: Build, tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("other")
    assert build() == set(PAGES)
    assert build() == set()


@pytest.mark.parametrize("change", ["added", "removed"])
def test_results_that_come_or_go_count_as_well(build: Build, tmp_path: Path, change: str) -> None:
    if change == "added":
        (tmp_path / RESULT).with_name("runs.parquet").write_text("new")
    else:
        (tmp_path / RESULT).unlink()
    assert build() == set(PAGES)


@pytest.mark.parametrize("file", ["runs/a/report.html", "runs/a/s/runs.parquet", "runs/a/s.log"])
def test_what_a_reader_makes_does_not(build: Build, tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("of a sweep or a report of their own")
    assert build() == set()


@pytest.mark.parametrize("setting", ["FPT_DATA", "FPT_WEIGHTS"])
def test_the_environment_counts(build: Build, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(setting, "other")
    assert build() == set(PAGES)


def test_a_changed_page_is_executed_again_and_no_other(build: Build, tmp_path: Path) -> None:
    (tmp_path / "book/plane.rst").write_text(":orphan:\n\nOther\n=====\n")
    assert build() == {"book/plane"}
