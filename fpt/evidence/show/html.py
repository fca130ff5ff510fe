"""Figures and tables as accessible HTML: alt text and captions are computed with the figure, never typed."""

import base64
import html
import io
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fpt.evidence.show.figures import alt_text

SHORT = 16  # characters that a cell keeps on one line
WIDE = 8  # columns; such a table is set smaller


@dataclass
class Picture:
    """A figure with its alt text and a caption that says what to see; notebooks show it by returning it.

    Raises ValueError if the figure has no alt text.
    """

    figure: Figure
    caption: str

    def _repr_html_(self) -> str:
        alt = alt_text(self.figure)
        if not alt:
            raise ValueError("a figure needs alt text: Figure.set_label(...)")
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=144, facecolor="white", bbox_inches="tight")
        data = base64.b64encode(buffer.getvalue()).decode()
        width = round(self.figure.get_figwidth() * 96)
        return (
            f'<figure class="fpt"><img src="data:image/png;base64,{data}" alt="{html.escape(alt)}" '
            f'style="max-width:100%;width:{width}px"><figcaption>{html.escape(self.caption)}</figcaption></figure>'
        )


@dataclass
class Table:
    """A table of text with a caption; a column in which nothing stands is not shown.

    `bold` marks cells (same shape); a column `verdict` is bold anyway.
    """

    frame: pd.DataFrame
    caption: str = ""
    bold: pd.DataFrame | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        said = [bool(self.frame[name].map(_text).ne("").any()) for name in self.frame.columns]
        if any(said):
            self.bold = None if self.bold is None else self.bold.loc[:, said]
            self.frame = self.frame.loc[:, said]

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in self.frame.columns)
        rows = "".join(f"<tr>{self._row(i)}</tr>" for i in range(len(self.frame)))
        kind = "dataframe wide" if len(self.frame.columns) >= WIDE else "dataframe"
        caption = f"<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return (
            f'<figure class="fpt">{caption}<div class="fpt-scroll"><table class="{kind}">'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></figure>"
        )

    def _row(self, i: int) -> str:
        cells = []
        for j, value in enumerate(self.frame.iloc[i]):
            text = html.escape(_text(value))
            strong = self.bold is not None and bool(self.bold.iloc[i, j])
            strong = strong or (self.frame.columns[j] == "verdict" and text != "")
            short = ' class="short"' if len(text) <= SHORT else ""
            cells.append(f"<td{short}>{f'<strong>{text}</strong>' if strong else text}</td>")
        return "".join(cells)


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)
