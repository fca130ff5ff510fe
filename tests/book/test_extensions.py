"""What the book's own extensions of Sphinx do: which pages are executed again, and verdicts that end the build."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

from fpt.claims import verdicts

EXTENSIONS = Path(__file__).parents[2] / "book/_ext"
PAGES = ("index", "book/claims", "book/plane")
RESULT = "runs/a/published/s/result.json"
READ = (RESULT, "runs/a/study.yaml", "runs/claims.csv", "fpt/train.py", "book/_toc.yml", "notebooks/advise.ipynb")
Build = Callable[[str], set[str]]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Builds a small book in `tmp_path` with one of the extensions, and returns the pages that it read."""
    monkeypatch.syspath_prepend(EXTENSIONS)
    for file in [*(f"{page}.rst" for page in PAGES), *READ]:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(":orphan:\n\nA\n=\n")

    def once(extension: str) -> set[str]:
        read: set[str] = set()
        monkeypatch.setattr(f"{extension}.ROOT", tmp_path)
        config = {"extensions": [extension]}
        app = Sphinx(tmp_path, None, tmp_path / "html", tmp_path / "html/.doctrees", "html", config, status=None)
        app.connect("source-read", lambda app, page, source: read.add(page))
        app.build()
        return read

    return once


def changed(file: str) -> Callable[[Path], object]:
    return lambda root: (root / file).write_text(":orphan:\n\nOther\n=====\n")


ALL = {*PAGES}
CHANGES = [  # one after the other, and whether pages are computed from it
    *((changed(file), True) for file in READ),
    (changed("runs/a/published/s/runs.parquet"), True),  # results that come
    (lambda root: (root / RESULT).unlink(), True),  # and go
    (changed("runs/a/report.html"), False),  # what readers make: `make report` ends so
    (changed("runs/a/s.log"), False),
    (changed("book/plane.rst"), False),  # Sphinx looks at the pages
]


@pytest.mark.usefixtures("build")
def test_what_pages_are_computed_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outdated = importlib.import_module("outdated")
    monkeypatch.setattr(outdated, "ROOT", tmp_path)
    for number, (change, counts) in enumerate(CHANGES):
        before = outdated.computed_from()
        change(tmp_path)
        assert (outdated.computed_from() != before) == counts, number
    for setting in ("FPT_DATA", "FPT_WEIGHTS"):
        before = outdated.computed_from()
        monkeypatch.setenv(setting, "other")
        assert outdated.computed_from() != before, setting


def test_a_page_is_executed_again_when_what_it_reads_changed(build: Build, tmp_path: Path) -> None:
    assert build("outdated") == ALL
    assert build("outdated") == set()
    changed(RESULT)(tmp_path)
    assert build("outdated") == ALL
    changed("book/plane.rst")(tmp_path)
    assert build("outdated") == {"book/plane"}


def test_verdicts_of_other_results_end_the_build(build: Build, tmp_path: Path) -> None:
    for file in ("runs/mine/published/a/result.json", "notebooks/sweep.ipynb"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    study = tmp_path / "runs/mine/study.yaml"
    study.write_text("name: mine\n")
    row = dict.fromkeys(verdicts.COLUMNS, "") | {"id": "0123abcd", "planned": "planned"}
    verdicts.write(pd.DataFrame([row]), tmp_path / "runs", verdicts.digest_of_runs(tmp_path))
    assert build("verdicts") == ALL
    study.write_text("name: yours\n")
    with pytest.raises(ConfigError, match="fpt judge"):
        build("verdicts")
