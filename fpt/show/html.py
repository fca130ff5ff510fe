"""Figures, tables and documents as accessible HTML: alt text and captions are computed with the figure, never typed."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import pandas as pd
from itables import JavascriptFunction, to_html_datatable
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from fpt import models
from fpt.show.plot import Plot
from fpt.show.svg import inline

SHORTEST = 16  # characters that a cell keeps on one line
WIDE = 8  # columns; such a table is set smaller
ROWS = 8  # that a searchable table shows at once
CARDS = 5  # columns; a searchable table of so many is set as cards on a phone (fpt.css)
FEW = 3  # commits or studies that are named
PLURAL = {"study": "studies", "commit": "commits"}
ABBREVIATIONS = {models.ARMS[name].letters: models.ARMS[name].label for name in models.FOUR} | {
    "FLOP": "floating-point operations",
    "FPT": "frozen pretrained transformer",
    "LRA": "Long Range Arena",
    "LSTM": "long short-term memory",
    "MKL": "Intel's Math Kernel Library",
    "SE": "standard error",
    "TAPE": "Tasks Assessing Protein Embeddings",
    "TOST": "two one-sided tests",
    "ViT": "vision transformer",
}
STEPS_MATTER = "depends on steps"
BADGES = {  # remarks on a word that are seen at a glance, and what they mean
    STEPS_MATTER: "another study of the same pair, after other steps, has another word",
}
BADGED = re.compile("|".join(BADGES))
ABBREVIATED = re.compile(rf"\b({'|'.join(ABBREVIATIONS)})\b")
RATE = re.compile(r"\b\d+(?:\.\d+)?e-\d+\b")
NUMBER = re.compile(r"[<>]?\s*([+−-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w.-])")  # at the start of a cell


class Displayable(Protocol):
    """What a notebook shows as HTML."""

    def _repr_html_(self) -> str: ...


@dataclass
class CaptionedFigure:
    """A figure with a caption that says what to see, where it comes from, and its data to download; notebooks show it
    by returning it.

    The figure's label is its alt text. Where it is wider than a phone it is drawn once more for a phone.
    """

    figure: Plot
    caption: str

    def _repr_html_(self) -> str:
        alt = str(self.figure.get_label())
        assert alt, "a figure needs alt text: Plot.describe(...)"
        wide, narrow = inline(self.figure, self.caption), ""
        if self.figure.narrow:
            with self.figure.on_a_phone() as figure:
                narrow = inline(figure, f"{self.caption} narrow")
        drawn = {"wide": Markup(wide), "narrow": Markup(narrow)}
        return rendered("figure", alt=alt, **drawn, caption=explained(self.caption), source=source(self.figure))


def source(figure: Plot) -> Markup:
    """What drew a figure, from how many runs of which studies, trained by which commit of the code; and its data."""
    name, parts = figure.function, list[str]([Markup("<code>{}</code>").format(figure.function)])
    if figure.runs is not None and len(figure.runs):
        studies, commits = (_named(figure.runs, column) for column in ("study", "commit"))
        parts.append(f"{len(figure.runs):,} runs{studies and f' of {studies}'}")
        parts += [_seeds(figure.runs), commits and f"code at {commits}"]
        name += f"-{figure.runs['study'].iloc[0]}" if studies else ""
    if figure.data is not None:
        csv = quote(figure.data.to_csv(index=False, float_format="%.6g"))
        link = Markup('<a download="{}.csv" href="data:text/csv;charset=utf-8,{}">data (CSV)</a>')
        parts.append(link.format(name, csv))
    return Markup(" · ").join(filter(None, parts))


def _seeds(runs: pd.DataFrame) -> str:
    """How many seeds the sweeps have, as "8 seeds" or "8 to 12 seeds"; nothing where the runs do not tell."""
    if not {"sweep", "seed"} <= set(runs):
        return ""
    counts = runs.groupby("sweep")["seed"].nunique()
    return f"{' to '.join(map(str, sorted({counts.min(), counts.max()})))} seeds"


def _named(runs: pd.DataFrame, column: str) -> str:
    """The values of a column, or how many they are; nothing where there is no such column."""
    names = [str(name) for name in runs[column].unique() if name] if column in runs else []
    return ", ".join(names) if len(names) <= FEW else f"{len(names)} {PLURAL[column]}"


@dataclass
class Table:
    """A table of text with a caption; an empty column is not shown. A script of the page lets readers sort it: by the
    number with which a cell begins, if most cells of the column begin with one.

    A column `verdict` is bold. `links` are addresses, one per row or empty, to which the first column leads.
    Raises ValueError for a column without a name: it would be an empty header.
    """

    frame: pd.DataFrame
    caption: str = ""
    links: Sequence[str] = ()

    def __post_init__(self) -> None:
        assert all(str(name).strip() for name in self.frame.columns), "every column of a table needs a name"
        filled = self.frame.map(_text).astype(bool).any()
        if filled.any():
            self.frame = self.frame.loc[:, filled]

    def _repr_html_(self) -> str:
        columns = [self._column(str(name), values) for name, values in self.frame.items()]
        heads, rows = [explained(str(name)) for name in self.frame], zip(*columns, strict=True)
        wide = len(columns) >= WIDE
        return rendered("table", caption=explained(self.caption), heads=heads, rows=rows, wide=wide)

    def _column(self, name: str, values: "pd.Series[Any]") -> list[tuple[Markup, str | None, bool]]:
        """Of each cell its HTML, the number by which it is sorted in a column of numbers, and whether it is short."""
        texts = [_text(value) for value in values]
        cells = [explained(text) for text in texts]
        if name == self.frame.columns[0] and self.links:
            cells = _linked(cells, self.links)
        if name == "verdict":
            cells = [Markup("<strong>{}</strong>").format(cell) for cell in cells]
        return list(zip(cells, _sort_keys(texts), (len(text) <= SHORTEST for text in texts), strict=True))


def _sort_keys(texts: Sequence[str]) -> list[str | None]:
    """The number with which each text begins, if most begin with one; else nothing for any."""
    numbers = [NUMBER.match(text) for text in texts]
    if 2 * sum(map(bool, numbers)) < sum(map(bool, texts)):
        return [None] * len(texts)
    return [each[1].replace(",", "").replace("\N{MINUS SIGN}", "-") if each else "" for each in numbers]


def _linked(cells: Iterable[Markup], links: Sequence[str]) -> list[Markup]:
    """Each cell as a link to its address, where it has one."""
    link = Markup('<a href="{}">{}</a>')
    return [link.format(to, cell) if to else cell for to, cell in zip(links, cells, strict=True)]


@dataclass
class Searchable:
    """A long table that a reader searches, sorts and leafs through, by DataTables. A cell before writes this library
    into the page, so that nothing is fetched: `itables.init_notebook_mode(connected=False)`. `links` as in `Table`.
    """

    frame: pd.DataFrame
    links: Sequence[str] = ()

    def _repr_html_(self) -> str:
        cells = self.frame.map(lambda value: explained(_text(value)))
        if self.links:
            first = [explained(_text(value)) for value in self.frame.iloc[:, 0]]
            cells[cells.columns[0]] = _linked(first, self.links)
        cards = " cards" if len(cells.columns) >= CARDS else ""
        table = to_html_datatable(
            cells, connected=False, allow_html=True, showIndex=False, autoWidth=False, pageLength=ROWS,
            classes=f"display compact{cards}", columnDefs=_labelled(cells.columns), style="width: 100%",
            layout={"topStart": "search", "topEnd": None, "bottomStart": "info", "bottomEnd": "paging"},
        )  # fmt: skip
        return f'<div class="fpt-scroll fpt-searchable">{table}</div>'


def _labelled(columns: Iterable[str]) -> list[dict[str, Any]]:
    """Has each cell that is not empty name its column, for the cards of a phone: as fpt.js does in other tables, which
    sees no rows that are drawn later."""
    naming = "function (cell) {{ if (cell.textContent.trim()) cell.dataset.label = {name}; }}"
    return [
        {"targets": place, "createdCell": JavascriptFunction(naming.format(name=json.dumps(name)))}
        for place, name in enumerate(columns)
    ]


@dataclass
class Folded:
    """Something that a reader opens with a click."""

    summary: str
    inside: Displayable

    def _repr_html_(self) -> str:
        inside = Markup(self.inside._repr_html_())
        return Markup('<details class="fpt"><summary>{}</summary>{}</details>').format(self.summary, inside)


@dataclass
class Page:
    """Tables, figures and HTML text, one below the other."""

    parts: Sequence[Displayable | str]

    def _repr_html_(self) -> str:
        return "".join(part if isinstance(part, str) else part._repr_html_() for part in self.parts)


def explained(text: str) -> Markup:
    """Text as HTML in which abbreviations and badges explain themselves and rates stay on one line; what is HTML
    already stays as it is."""
    if isinstance(text, Markup):
        return text
    whole = RATE.sub(r'<span class="rate">\g<0></span>', html.escape(text))
    whole = BADGED.sub(lambda found: f'<abbr class="fpt-badge" title="{BADGES[found[0]]}">{found[0]}</abbr>', whole)
    return Markup(ABBREVIATED.sub(lambda found: f'<abbr title="{ABBREVIATIONS[found[1]]}">{found[1]}</abbr>', whole))


def paragraph(text: str) -> Markup:
    """Text as an HTML paragraph."""
    return Markup("<p>{}</p>").format(explained(text))


def heading(text: str) -> Markup:
    """The heading of a part of a document."""
    return Markup("<h2>{}</h2>").format(text)


TEMPLATES = Environment(loader=PackageLoader("fpt.show"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
TEMPLATES.filters["explained"] = explained


def rendered(template: str, **values: Any) -> Markup:
    """A file of fpt/show/templates with these values; what is not HTML already (`Markup`) is escaped."""
    return Markup(TEMPLATES.get_template(f"{template}.html").render(values))


def document(title: str, body: Page) -> Markup:
    """A whole HTML document in the style of the book, under its title, with its scripts. It loads nothing, and a
    browser runs no script in it but these, whatever stands in the names that a person chose."""
    css, js = _static("report.css", "fpt.css"), _static("sortable.min.js", "fpt.js")
    sha256 = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    return rendered("document", title=title, sha256=sha256, css=css, js=js, body=Markup(body._repr_html_()))


def _static(*names: str) -> Markup:
    """Files of fpt/show/static, one after the other."""
    return Markup("".join(Path(__file__).with_name("static").joinpath(name).read_text("utf-8") for name in names))


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)
