"""README.md says and shows what the published results say. `make readme` writes it anew."""

from xml.etree import ElementTree

import pytest
import readme

from fpt.results import StudyCells

pytestmark = pytest.mark.book

TITLE = ".//{http://purl.org/dc/elements/1.1/}title"


@pytest.fixture(scope="module")
def found() -> dict[str, StudyCells]:
    return readme.published()


def test_the_readme_has_the_findings_of_the_published_runs(found: dict[str, StudyCells]) -> None:
    (written,) = readme.MARKS.findall(readme.README.read_text(encoding="utf-8"))
    assert written == readme.findings(found)


def test_the_lead_figure_is_that_of_the_published_runs(found: dict[str, StudyCells]) -> None:
    """By its words: the bytes of a figure differ between machines."""
    shown = readme.figure(found)
    assert shown is not None
    written = ElementTree.parse(readme.FIGURE).find(TITLE)
    assert written is not None
    assert written.text == shown.get_label()


def test_what_is_found_without_results() -> None:
    assert readme.findings({}) == "No study has results yet.\n"
    assert readme.figure({}) is None
