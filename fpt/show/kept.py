"""What a notebook showed when it was run, for a page."""

import json
from pathlib import Path

from fpt.errors import SpecError, check_known
from fpt.show.html import Page
from fpt.sweeps.ledger import workspace


def from_notebook(name: str, tag: str, root: Path | None = None) -> Page:
    """The HTML that the cell with a tag left in notebooks/NAME.ipynb when it was run last.

    Raises SpecError where there is no such notebook, no such tag, or no HTML.
    """
    path = workspace(root) / "notebooks" / f"{name}.ipynb"
    check_known("notebook", path.name, [each.name for each in path.parent.glob("*.ipynb")])
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    tagged = {each: cell for cell in found for each in cell["metadata"].get("tags", [])}
    check_known(f"tag in {path.name}", tag, tagged)
    for output in tagged[tag].get("outputs", []):
        if html := output.get("data", {}).get("text/html"):
            return Page(["".join(html)])
    raise SpecError(f"{path.name}: the cell {tag} left no HTML; run the notebook")
