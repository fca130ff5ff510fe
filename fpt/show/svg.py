"""Figures as SVG inside a page: in the page's font and colour of text, in parts that a narrow page stacks."""

import io
import re
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

POINT = 4 / 3  # pixels
PHONE, SHRINK = 343, 0.9  # pixels of a column of text; the smallest scale at which text of 10 points is read
NO_METADATA: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
COLOUR_BAR = "<colorbar>"  # matplotlib's label of its axes
IN_A_PAGE = (  # what matplotlib writes for a file, and what it is in a page
    (r"\A.*?(?=<svg )", ""),  # the head of an XML file
    (r"<defs>\s*<style[^<]*</style>\s*</defs>", ""),  # would hold for the whole page
    (r'<g id="[^"]*"', "<g"),  # the same names in every figure
    (r"font-family: [^;\"]*", "font-family: inherit"),
    (r"(stroke|fill): #000000", r"\1: currentColor"),
)


def inline(figure: Figure, caption: str = "") -> str:
    """An SVG element for each panel, and one in a line of its own for each colour bar and legend.

    The figure keeps its layout from now on. The same figure and caption give the same text; its ids are no other
    figure's, nor those of the same figure below another caption.
    """
    parts = [part for part in (*figure.axes, *figure.legends) if part.get_visible()]
    figure.draw_without_rendering()  # the places of all parts, before some are hidden
    figure.set_layout_engine("none")
    drawn: list[str] = []
    for part in parts:
        for other in parts:
            other.set_visible(other is part)
        svg = _element(figure, f"{figure.get_label()} {caption} {len(drawn)}")
        is_key = part in figure.legends or part.get_label() == COLOUR_BAR
        drawn.append(f'<div class="key">{svg}</div>' if is_key else svg)
    for part in parts:
        part.set_visible(True)
    return "".join(drawn)


def _element(figure: Figure, salt: str) -> str:
    """What is visible of the figure. Black is written as the colour of the text around it; ids depend on the salt."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        look: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.03, "dpi": 144}
        figure.savefig(buffer, format="svg", transparent=True, metadata=NO_METADATA, **look)
    svg = buffer.getvalue().strip()
    for written, meant in IN_A_PAGE:
        svg = re.sub(written, meant, svg, flags=re.DOTALL)
    return re.sub(r' width="([\d.]+)pt" height="[\d.]+pt"', _sized, svg, count=1)


def _sized(found: re.Match[str]) -> str:
    """Its width in pixels, and the least to which a narrow page may shrink it; what is too wide even then scrolls at
    full size. Black fills are not written at all: they inherit the root's."""
    width = round(POINT * float(found[1]))
    least = SHRINK * width if SHRINK * width <= PHONE else width
    return f' width="{width}" style="--width: {width}px; --least: {least:g}px" fill="currentColor"'
