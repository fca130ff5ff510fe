"""What a notebook showed when it was run, for a page."""

import json
from dataclasses import dataclass
from pathlib import Path

from fpt.errors import SpecError, unknown
from fpt.sweeps.ledger import workspace


@dataclass
class Kept:
    """HTML, or text, that a cell left."""

    content: str

    def _repr_html_(self) -> str:
        return self.content


def from_notebook(name: str, tag: str, root: Path | None = None) -> Kept:
    """The HTML that the cell with a tag left in notebooks/NAME.ipynb when it was run last.

    Raises SpecError where there is no such notebook, no such tag, or no HTML.
    """
    path = workspace(root) / "notebooks" / f"{name}.ipynb"
    if not path.is_file():
        raise SpecError(f"there is no notebook {path.name}")
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    tagged = {each: cell for cell in found for each in cell["metadata"].get("tags", [])}
    if tag not in tagged:
        raise unknown(f"tag in {path.name}", tag, tagged)
    for output in tagged[tag].get("outputs", []):
        if html := output.get("data", {}).get("text/html"):
            return Kept("".join(html))
    raise SpecError(f"{path.name}: the cell {tag} left no HTML; run the notebook")
