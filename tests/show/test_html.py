"""Accessible HTML: nothing without words, nothing unescaped."""

import io
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
from bs4 import BeautifulSoup, Tag

from fpt.show import CaptionedFigure, Folded, Page, Table
from fpt.show.html import ABBREVIATIONS, explained, source
from fpt.show.plot import Plot, drawn


@drawn
def line(runs: pd.DataFrame | None = None) -> Plot:
    figure = Plot()
    figure.subplots().plot([1, 2])
    return figure.describe("A line & more.", pd.DataFrame({"x": [0, 1], "y": [1, 2]}), runs)


def picture() -> Tag:
    found = BeautifulSoup(CaptionedFigure(line(), "What FP is to <see>.")._repr_html_(), "html.parser").figure
    assert found is not None
    return found


def table(frame: pd.DataFrame) -> Tag:
    found = BeautifulSoup(Table(frame)._repr_html_(), "html.parser").table
    assert found is not None
    return found


def test_html_is_escaped() -> None:
    html = Table(pd.DataFrame({"<b>": ["a & b", None]}), caption="x < y")._repr_html_()
    assert "&lt;b&gt;" in html
    assert "a &amp; b" in html
    assert "x &lt; y" in html


def test_a_picture_is_an_image_with_words_a_caption_and_its_data() -> None:
    figure = picture()
    image, caption = figure.select_one("[role=img]"), figure.figcaption
    assert image is not None
    assert caption is not None
    assert image["aria-label"] == "A line & more."
    assert image.svg is not None
    assert caption.get_text().startswith("What FP is to <see>.")
    (link,) = caption.select("a[download]")
    assert (link["download"], link.get_text()) == ("line.csv", "data (CSV)")
    kind, _, csv = str(link["href"]).partition(",")
    assert kind == "data:text/csv;charset=utf-8"
    assert pd.read_csv(io.StringIO(unquote(csv))).to_dict("list") == {"x": [0, 1], "y": [1, 2]}


def test_where_a_figure_comes_from() -> None:
    def words(**columns: list[str] | list[int]) -> str:
        return BeautifulSoup(source(line(pd.DataFrame(columns))), "html.parser").get_text()

    assert BeautifulSoup(source(line()), "html.parser").get_text() == "line · data (CSV)"
    seeds = {"sweep": ["s", "s", "t"], "seed": [7, 8, 8]}
    assert words(**seeds, commit=["12345678"] * 3) == "line · 3 runs · 1 to 2 seeds · code at 12345678 · data (CSV)"
    many = words(study=list("abcde"), commit=list("vwxyz"))
    assert many == "line · 5 runs of 5 studies · code at 5 commits · data (CSV)"
    assert words(study=["a"] * 3, sweep=["s"] * 3, seed=[7, 8, 8]) == "line · 3 runs of a · 2 seeds · data (CSV)"
    assert 'download="line-a.csv"' in source(line(pd.DataFrame({"study": ["a"], "commit": ["b"]})))


def test_headers_have_a_scope() -> None:
    head = table(pd.DataFrame({"arm": ["FP"], "rate": ["1e-3"]})).select("th")
    assert [(cell.get("scope"), cell.get_text()) for cell in head] == [("col", "arm"), ("col", "rate")]


def test_abbreviations_explain_themselves() -> None:
    both = f'<abbr title="{ABBREVIATIONS["FP"]}">FP</abbr> &amp; <abbr title="{ABBREVIATIONS["UR"]}">UR</abbr>'
    assert explained("FP & UR") == both
    assert explained("FPX, xUR, FPT's") == f'FPX, xUR, <abbr title="{ABBREVIATIONS["FPT"]}">FPT</abbr>&#x27;s'
    cells = table(pd.DataFrame({"FR": ["UP - FP"]})).select("abbr")
    assert [each["title"] for each in cells] == [ABBREVIATIONS[each] for each in ("FR", "UP", "FP")]


def test_a_column_of_numbers_is_sorted_by_them() -> None:
    values = ["9.5 ± 0.1 / 80.0", "12,000†", "> 400", "1e-3 (2 seeds)", "-1.5 (-2 to 1)", "not run yet", ""]
    frame = pd.DataFrame({"number": values, "text": ["b", "a", "3 of them", "2026-01-02", "4b", "c", "d"]})
    keys = [[cell.get("data-sort") for cell in row.select("td")] for row in table(frame).select("tbody tr")]
    assert [row[0] for row in keys] == ["9.5", "12000", "400", "1e-3", "-1.5", "", ""]
    assert {row[1] for row in keys} == {None}
    dates = pd.DataFrame({"finished": ["2026-01-02", "2025-12-31"], "hash": ["12ab", "77f0"]})
    assert not table(dates).select("[data-sort]")


def test_a_cell_that_begins_with_an_abbreviation_is_sorted_by_its_text() -> None:
    """The script takes the title of an `abbr` that is the first child of a cell for all of its text."""
    cells = table(pd.DataFrame({"arm": ["UP of a model that reads novels, in full", "FP"]})).select("td")
    assert [cell.contents[0].name for cell in cells] == ["span", "span"]


def test_a_column_in_which_nothing_stands_is_not_shown() -> None:
    shown = Table(pd.DataFrame({"a": ["x"], "b": [""], "c": [0]}))
    assert list(shown.frame.columns) == ["a", "c"]


def test_the_first_column_leads_to_the_addresses_given() -> None:
    html = Table(pd.DataFrame({"sweep": ["a & b", "c"], "n": [1, 2]}), links=["../x?a&b", ""])._repr_html_()
    links = BeautifulSoup(html, "html.parser").select("td a")
    assert [(link["href"], link.get_text()) for link in links] == [("../x?a&b", "a & b")]
    with pytest.raises(ValueError, match="zip"):
        Table(pd.DataFrame({"sweep": ["a"]}), links=["x", "y"])._repr_html_()


def test_a_page_is_its_parts() -> None:
    html = Page(["<p>one</p>", Folded("More & more", Table(pd.DataFrame({"a": ["x"]})))])._repr_html_()
    assert html.startswith("<p>one</p><details")
    assert "<summary>More &amp; more</summary>" in html


def test_the_scripts_and_styles_lie_beside_the_code_with_their_licence() -> None:
    static = Path(__file__).parents[2] / "fpt/show/static"
    names = {path.name for path in static.iterdir()}
    assert names == {"fpt.css", "report.css", "fpt.js", "sortable.min.js", "sortable.LICENSE"}
    assert "public domain" in (static / "sortable.LICENSE").read_text()
