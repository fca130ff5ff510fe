"""How results look. Importing it imports no torch.

`plot`, `svg` and `html` are what all figures and tables share. Of any study there are `figures`, `planes` and `tables`;
of verdicts `findings`; of the whole project `reference`, `explore` and the `picture` of README.md. `places`, `said` and
`guards` are for sentences, `report_page` and `compared_page` write whole documents. What one page of the book alone
shows is in `pages`, under the name of the page.
"""

from fpt.show.explore import explorer, setups
from fpt.show.figures import by_rate, dots, learning_rate_figure
from fpt.show.findings import cards, pairs_on, verdict_rows, word
from fpt.show.html import CaptionedFigure, Folded, Page, Table
from fpt.show.places import PAIRS, Place
from fpt.show.planes import plane
from fpt.show.report_page import report
from fpt.show.said import leads, open_, say, trails
from fpt.show.tables import summary

__all__ = [
    "PAIRS", "CaptionedFigure", "Folded", "Page", "Place", "Table", "by_rate", "cards", "dots", "explorer", "leads",
    "learning_rate_figure", "open_", "pairs_on", "plane", "report", "say", "setups", "summary", "trails",
    "verdict_rows", "word",
]  # fmt: skip
