"""What README.md computes: the lead figure, and what is found between its two marks. `make readme` writes both."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from committed import studies
from matplotlib.figure import Figure
from pages import definitions

from fpt.claims import all_verdicts
from fpt.results import StudyCells
from fpt.results.cells import Cell
from fpt.show import plane_figure, text

ROOT = Path(__file__).parents[1]
README, FIGURE = ROOT / "README.md", ROOT / "book/_static/headline.svg"
MARKS = re.compile(r"(?<=<!-- computed by `make readme` -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)


def published() -> dict[str, StudyCells]:
    """The studies of this repository that have published results."""
    found = {name: StudyCells(folder, "published") for name, folder in studies().items()}
    return {name: study for name, study in found.items() if study.results}


def findings(found: Mapping[str, StudyCells]) -> str:
    """Should one freeze, and the score, in Markdown."""
    if not (planes := whole(found)):
        return "No study has results yet.\n"
    summary, verdicts = definitions("book/summary.md"), all_verdicts(list(found.values()))
    answer, table = summary.answer_of(planes, found.values(), verdicts), summary.gains(planes)
    rows = [[*table.frame], ["---"] * len(table.frame.columns), *table.frame.to_numpy().tolist()]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    score = text.score(verdicts)
    return "\n".join(["", *(f"- {each}" for each in answer), "", *lines, "", f"{table.caption}.", "", score, "", ""])


def whole(found: Mapping[str, StudyCells]) -> dict[str, dict[str, Cell]]:
    """The arms of every plane that is whole, by arm; the first is the one that is drawn."""
    return text.whole(found[name] for name in text.PLANES if name in found)


def figure(found: Mapping[str, StudyCells]) -> Figure | None:
    first = next(iter(whole(found).values()), None)
    return plane_figure(first["FP"], first["UP"]) if first else None


def write() -> None:
    found = published()
    computed = findings(found)
    README.write_text(MARKS.sub(lambda _: computed, README.read_text(encoding="utf-8")), encoding="utf-8")
    if shown := figure(found):
        with mpl.rc_context({"svg.hashsalt": "fpt"}):
            about = {"Title": str(shown.get_label()), "Date": None}
            shown.savefig(FIGURE, facecolor="white", bbox_inches="tight", metadata=about)


if __name__ == "__main__":
    sys.exit(write())
