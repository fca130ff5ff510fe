"""The built book that FPT_BOOK names: the folder of its index.html, made by one build of the whole book."""

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from fpt.documents import read_document
from fpt.results import StudyCells, find_study, studies


@pytest.fixture(scope="session")
def html() -> Path:
    folder = Path(os.environ["FPT_BOOK"]).resolve()
    assert (folder / "index.html").is_file(), f"no book in {folder}"
    return folder


@pytest.fixture(scope="session")
def workspace(html: Path) -> Path:
    """The folder that the book was built in: it holds book/ and runs/."""
    return html.parents[2]


@pytest.fixture(scope="session")
def contents(workspace: Path) -> list[str]:
    """Every page of the table of contents."""
    toc: dict[str, Any] = read_document(workspace / "book/_toc.yml", "_toc.yml")[0]
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


@pytest.fixture(scope="session")
def published(workspace: Path) -> dict[str, StudyCells]:
    """The studies that have published results, a reader's own too: the book shows them."""
    with warnings.catch_warnings(action="ignore"):  # one that cannot be read is not shown
        found = {name: StudyCells(find_study(name, workspace), "published") for name in studies(workspace)}
    return {name: study for name, study in found.items() if study.results}
