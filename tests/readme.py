"""What README.md computes: the lead figure, and what is found between its two marks. `make readme` writes both."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from fpt.evidence import StudyCells, all_verdicts, find_study, plane_figure, studies
from fpt.evidence.cells import Cell
from fpt.evidence.show import text
from fpt.evidence.show.numbers import title

ROOT = Path(__file__).parents[1]
README, FIGURE = ROOT / "README.md", ROOT / "book/_static/headline.svg"
MARKS = re.compile(r"(?<=<!-- computed by `make readme` -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)
LEADS = ("plane-digits", "laptop")  # as on the book's first page


def published() -> dict[str, StudyCells]:
    """The studies of this repository that have published results."""
    found = {name: StudyCells(find_study(name, ROOT), "published") for name in studies(ROOT)}
    return {name: study for name, study in found.items() if study.results}


def lead(found: Mapping[str, StudyCells]) -> StudyCells | None:
    """The study that is shown: the first one with all of the arms."""
    there = (found[name] for name in LEADS if name in found)
    return next((study for study in there if not any(c.problem for c in text.arms(study, "digits").values())), None)


def findings(found: Mapping[str, StudyCells]) -> str:
    """Should one freeze, and the score, as a list in Markdown."""
    if (shown := lead(found)) is None:
        return "No study has results yet.\n"
    arms = text.arms(shown, "digits")
    every = all_verdicts(list(found.values()))
    lines = [*text.answers(arms), text.score(every)]
    return "\n".join(["", about(arms["FP"]), "", *(f"- {line}" for line in lines), "", ""])


def about(cell: Cell) -> str:
    """Of what the findings are."""
    model = cell.spec.backbone if cell.spec else ""
    return f"{title(cell.task)}, {model}, {cell.seeds} seeds, in points of test accuracy with 95% intervals:"


def figure(found: Mapping[str, StudyCells]) -> Figure | None:
    shown = lead(found)
    arms = text.arms(shown, "digits") if shown else {}
    return plane_figure(arms["FP"], arms["UP"]) if arms else None


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
