"""Figures inside a page: parts, colours, ids."""

import re

from bs4 import BeautifulSoup, Tag

from fpt.show.plot import INK, Plot, drawn, panels_of, shared_legend
from fpt.show.svg import inline


@drawn
def two_panels(title: str) -> Plot:
    figure, panels = panels_of(2)
    for axes in panels:
        axes.plot([0, 1], [0, 1], "o-", color=INK, label="a line")
        axes.fill_between([0, 1], [0, 1], facecolor="none", edgecolor="#999999", hatch="//")
        axes.set(title=title, xlabel="steps")
    figure.colorbar(panels[0].scatter([0], [0], c=[1]), ax=panels, location="bottom", shrink=0.5, label="points")
    shared_legend(figure, panels)
    figure.set_label(title)
    return figure


def parsed(figure: Plot) -> BeautifulSoup:
    return BeautifulSoup(inline(figure), "html.parser")


def test_a_part_for_each_panel_and_one_for_the_colour_bar_and_the_legend() -> None:
    parts = [part for part in parsed(two_panels("words")).children if isinstance(part, Tag)]
    assert [part.name for part in parts] == ["svg", "svg", "div", "div"]
    said = [part.get_text(" ", strip=True) for part in parts]
    assert [("steps" in words, "points" in words, "a line" in words) for words in said] == [
        (True, False, False), (True, False, False), (False, True, False), (False, False, True),
    ]  # fmt: skip
    assert all(int(str(svg["width"])) < 400 for svg in parsed(two_panels("words")).select("svg"))  # pixels: a phone's


def test_text_is_text_in_the_font_and_colour_of_the_page() -> None:
    html = inline(two_panels("words"))
    assert ">words</text>" in html
    assert set(re.findall(r"font-family: ([^;\"]*)", html)) == {"inherit"}
    assert "#000000" not in html
    assert "stroke: currentColor" in html
    assert all(svg["fill"] == "currentColor" for svg in BeautifulSoup(html, "html.parser").select("svg"))


def test_nothing_of_a_figure_reaches_beyond_it() -> None:
    """No style for the page, and no name that another figure has."""
    one, other = inline(two_panels("one")), inline(two_panels("other"))
    assert not re.search(r"<style|<\?xml|<!DOCTYPE|<metadata", one)
    ids = [re.findall(r'\bid="([^"]*)"', html) for html in (one, other)]
    assert ids[0]
    assert len(ids[0]) == len(set(ids[0]))
    assert not set(ids[0]) & set(ids[1])
    assert set(re.findall(r"url\(#([^)]*)\)|href=\"#([^\"]*)\"", one)) <= {(name, "") for name in ids[0]} | {
        ("", name) for name in ids[0]
    }


def test_the_same_figure_gives_the_same_text_and_stays_as_it_was() -> None:
    figure = two_panels("words")
    first = inline(figure)
    assert inline(figure) == first == inline(two_panels("words"))
    assert all(axes.get_visible() for axes in figure.axes)
