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
from fpt.sweeps.fields import with_options

ROOT = Path(__file__).parents[1]
README, FIGURE = ROOT / "README.md", ROOT / "book/_static/headline.svg"
MARKS = re.compile(r"(?<=<!-- computed by `make readme` -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)


def published() -> dict[str, StudyCells]:
    """The studies of this repository that have published results."""
    found = {name: StudyCells(find_study(name, ROOT), "published") for name in studies(ROOT)}
    return {name: study for name, study in found.items() if study.results}


def whole(found: Mapping[str, StudyCells]) -> list[dict[str, Cell]]:
    """The arms of every plane that is whole, by arm; the first is the one that is drawn."""
    return list(text.whole(found[name] for name in text.PLANES if name in found).values())


def findings(found: Mapping[str, StudyCells]) -> str:
    """Should one freeze, and the score, in Markdown."""
    if not (planes := whole(found)):
        return "No study has results yet.\n"
    score = text.score(all_verdicts(list(found.values())))
    return "\n".join(["", *(line for arms in planes for line in about(arms)), score, "", ""])


def about(arms: Mapping[str, Cell]) -> list[str]:
    """Of what the findings are, and how freezing does when tuned and at the rate of Lu et al."""
    cell, (tuned, of_lu, *_) = arms["FP"], text.answers(arms)
    model = with_options(cell.spec.backbone, cell.spec.backbone_options) if cell.spec else ""
    head = f"**{title(cell.task)}, {model}**, {max(cell.budgets):,} steps, {cell.seeds} seeds, 95% intervals:"
    return [head, "", f"- {tuned}", f"- {of_lu}", ""]


def figure(found: Mapping[str, StudyCells]) -> Figure | None:
    planes = whole(found)
    return plane_figure(planes[0]["FP"], planes[0]["UP"]) if planes else None


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
