"""A paper's table on a page: claims, words, table, figure and verdicts, with results and without."""

from pathlib import Path

import pytest
import synthetic
from bs4 import BeautifulSoup

from fpt.results import StudyCells
from fpt.show import claim_list, claims_of, exhibit
from fpt.show.exhibits import plane_exhibit


@pytest.fixture(scope="module", params=[True, False], ids=["with results", "without"])
def cells(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[StudyCells, bool]:
    study = synthetic.workspace(tmp_path_factory.mktemp("workspace"), study=synthetic.TABLE)
    return StudyCells(synthetic.finish(study) if request.param else study), request.param


def test_an_exhibit_has_claims_words_table_figure_and_verdicts(cells: tuple[StudyCells, bool]) -> None:
    study, done = cells
    html = exhibit("lu-table-2", study)._repr_html_()
    for words in ("L-10: ", "as printed"):
        assert words in html
    for words in ("What was run.", "not tested at this scale", "How the verdicts come about", "<svg"):
        assert (words in html) == done
    assert ("Nothing was run yet. Planned: " in html) == (not done)
    links = {str(link["href"]) for link in BeautifulSoup(html, "html.parser").select("li a")}
    assert "claims.html#l-10" in links


def test_steps_and_attention_are_exhibits_too(cells: tuple[StudyCells, bool]) -> None:
    study, done = cells
    assert ("the first budget of steps at which" in exhibit("lu-table-6", study)._repr_html_()) == done
    assert "L-22" in exhibit("lu-figure-3", study)._repr_html_()


def test_the_plane_is_an_exhibit_with_both_figures_and_their_claims(study: Path, tmp_path: Path) -> None:
    html = plane_exhibit(StudyCells(study))._repr_html_()
    assert html.count('role="img"') == 2
    for words in (
        "P-01: ",
        "P-02: ",
        "Of 24 pairs of learning rate and budget",
        "ahead at 12, 25, 50, 100, 200, 400 steps",
    ):
        assert words in html
    nothing = plane_exhibit(StudyCells(synthetic.workspace(tmp_path)))._repr_html_()
    assert "<svg" not in nothing
    assert "There are no results of the study laptop yet" in nothing
    half = synthetic.finish(synthetic.workspace(tmp_path / "half"), skip=("frozen-pretrained",))
    unfinished = plane_exhibit(StudyCells(half))._repr_html_()
    assert "<svg" not in unfinished
    assert "not run: Frozen Pretrained" in unfinished
    assert "5 of its 6 sweeps (not FP)" in BeautifulSoup(unfinished, "html.parser").get_text()


def test_a_table_of_other_weights_shows_the_papers_numbers_alone(cells: tuple[StudyCells, bool]) -> None:
    html = exhibit("lu-table-8", cells[0])._repr_html_()
    assert "Nothing was run" in html
    assert "as printed" in html


def test_claims_stand_with_their_table_and_their_verdicts(study: Path) -> None:
    assert "R-01" in claims_of("rothermel-table-1")
    html = claim_list(["P-05"], [StudyCells(study)])._repr_html_()
    assert "<strong>supported</strong>, at reduced scale (tiny-lm, digits, 400 steps)" in html
