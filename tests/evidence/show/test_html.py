"""Accessible HTML: nothing without words, nothing unescaped."""

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from matplotlib.figure import Figure

from fpt.evidence import Folded, Page, Picture, Table


def test_html_is_escaped_and_a_picture_needs_words() -> None:
    html = Table(pd.DataFrame({"<b>": ["a & b", None]}), caption="x < y")._repr_html_()
    assert "&lt;b&gt;" in html
    assert "a &amp; b" in html
    assert "x &lt; y" in html
    with pytest.raises(ValueError, match="alt text"):
        Picture(Figure(), "no words")._repr_html_()


def test_headers_have_a_scope_and_a_name() -> None:
    head = BeautifulSoup(Table(pd.DataFrame({"arm": ["FP"], "rate": ["1e-3"]}))._repr_html_(), "html.parser").select(
        "th"
    )
    assert [(cell.get("scope"), cell.get_text()) for cell in head] == [("col", "arm"), ("col", "rate")]
    with pytest.raises(ValueError, match="needs a name"):
        Table(pd.DataFrame({"": ["FP"]}))


def test_a_column_in_which_nothing_stands_is_not_shown() -> None:
    table = Table(pd.DataFrame({"a": ["x"], "b": [""], "c": [0]}))
    assert list(table.frame.columns) == ["a", "c"]


def test_a_verdict_is_bold() -> None:
    assert "<strong>supported</strong>" in Table(pd.DataFrame({"verdict": ["supported"]}))._repr_html_()


def test_the_first_column_leads_to_the_addresses_given() -> None:
    html = Table(pd.DataFrame({"sweep": ["a & b", "c"], "n": [1, 2]}), links=["../x?a&b", ""])._repr_html_()
    links = BeautifulSoup(html, "html.parser").select("td a")
    assert [(link["href"], link.get_text()) for link in links] == [("../x?a&b", "a & b")]
    with pytest.raises(ValueError, match="zip"):
        Table(pd.DataFrame({"sweep": ["a"]}), links=["x", "y"])._repr_html_()


def test_a_page_is_its_parts() -> None:
    table = Table(pd.DataFrame({"a": ["x"]}))
    html = Page(["<p>one</p>", Folded("More & more", table)])._repr_html_()
    assert html.startswith("<p>one</p><details")
    assert "<summary>More &amp; more</summary>" in html


def test_the_same_figure_gives_the_same_bytes() -> None:
    def picture() -> str:
        figure = Figure(label="A line.")
        figure.subplots().plot([1, 2])
        return Picture(figure, "What to see.")._repr_html_()

    assert picture() == picture()
