"""Figures and tables as accessible HTML: alt text and captions are computed with the figure, never typed."""

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

SHORT = 16  # characters that a cell keeps on one line
WIDE = 8  # columns; such a table is set smaller


class Shown(Protocol):
    """What a notebook shows as HTML."""

    def _repr_html_(self) -> str: ...


@dataclass
class Picture:
    """A figure with a caption that says what to see; notebooks show it by returning it.

    The figure's label is its alt text, computed from the same numbers; ValueError if it has none.
    """

    figure: Figure
    caption: str

    def _repr_html_(self) -> str:
        alt = str(self.figure.get_label())
        if not alt:
            raise ValueError("a figure needs alt text: Figure.set_label(...)")
        buffer = io.BytesIO()
        with mpl.rc_context({"svg.hashsalt": "fpt"}):  # the same figure gives the same bytes
            look: dict[str, Any] = {"facecolor": "white", "bbox_inches": "tight", "dpi": 144}
            self.figure.savefig(buffer, format="svg", metadata={"Date": None}, **look)
        data = base64.b64encode(buffer.getvalue()).decode()
        width = round(self.figure.get_figwidth() * 96)
        return (
            f'<figure class="fpt"><img src="data:image/svg+xml;base64,{data}" alt="{html.escape(alt)}" '
            f'style="max-width:100%;width:{width}px"><figcaption>{html.escape(self.caption)}</figcaption></figure>'
        )


@dataclass
class Table:
    """A table of text with a caption; a column in which nothing stands is not shown.

    A column `verdict` is bold.
    `links` are addresses, one a row or empty, to which the first column leads.
    Raises ValueError for a column without a name: it would be an empty header.
    """

    frame: pd.DataFrame
    caption: str = ""
    links: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not all(str(name).strip() for name in self.frame.columns):
            raise ValueError("every column of a table needs a name")
        filled = self.frame.map(_text).astype(bool).any()
        if filled.any():
            self.frame = self.frame.loc[:, filled]

    def _repr_html_(self) -> str:
        columns = {str(name): values for name, values in self.frame.items()}
        cells = pd.DataFrame(
            {html.escape(name): values.map(partial(self._cell, name)) for name, values in columns.items()}
        )
        if self.links:
            linked = zip(self.links, cells.iloc[:, 0], strict=True)
            cells.isetitem(0, [f'<a href="{html.escape(to)}">{text}</a>' if to else text for to, text in linked])
        kind = "dataframe wide" if len(cells.columns) >= WIDE else "dataframe"
        with pd.option_context("display.max_colwidth", None):
            table = cells.to_html(index=False, escape=False, border=0, classes=kind, justify="left")
        table = table.replace("<th>", '<th scope="col">')
        caption = f"<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return f'<figure class="fpt">{caption}<div class="fpt-scroll">{table}</div></figure>'

    def _cell(self, column: str, value: Any) -> str:
        text = html.escape(_text(value))
        short = len(text) <= SHORT
        if column == "verdict" and text:
            text = f"<strong>{text}</strong>"
        return f'<span class="short">{text}</span>' if short else text


@dataclass
class Folded:
    """What a reader opens."""

    summary: str
    inside: Shown

    def _repr_html_(self) -> str:
        return (
            f'<details class="fpt"><summary>{html.escape(self.summary)}</summary>{self.inside._repr_html_()}</details>'
        )


@dataclass
class Page:
    """Tables, pictures and HTML text, one below the other."""

    parts: Sequence[Shown | str]

    def _repr_html_(self) -> str:
        return "".join(part if isinstance(part, str) else part._repr_html_() for part in self.parts)


def paragraph(text: str) -> str:
    """Text as an HTML paragraph."""
    return f"<p>{html.escape(text)}</p>"


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)
