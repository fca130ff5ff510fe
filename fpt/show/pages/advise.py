"""The page on `fpt advise`: what its notebook showed, and what other tools answer on the same data."""

import json

import pandas as pd

from fpt.files import workspace
from fpt.results.estimate import PERCENT, POINTS, Estimate
from fpt.show.html import Page, Table


def from_notebook(tag: str) -> Page:
    """The HTML that the cell with a tag left in notebooks/advise.ipynb when it was run last."""
    text = (workspace() / "notebooks/advise.ipynb").read_text(encoding="utf-8")
    (cell,) = (each for each in json.loads(text)["cells"] if tag in each["metadata"].get("tags", []))
    return Page(["".join(html) for output in cell["outputs"] if (html := output.get("data", {}).get("text/html"))])


def others() -> pd.DataFrame:
    """What `fpt advise` and other ways reach on the same data, a row a way, as it was measured."""
    return pd.read_csv(workspace() / "runs/bench/published/advise.csv")


def others_table(rows: pd.DataFrame, caption: str) -> Table:
    """The rows of `others` as text: accuracy in percent, and points above what `fpt advise` advised."""
    shown = rows[["data", "backbone", "what"]].rename(columns={"what": "way"})
    shown["answer or setting"] = rows["setting"]
    shown["accuracy, %"] = _cells(rows[["accuracy", "low", "high"]], PERCENT)
    shown["above, points"] = _cells(rows[["above", "above_low", "above_high"]], POINTS)
    shown["processor seconds"] = rows["processor_seconds"].astype(str)
    shown["minutes given"] = rows["minutes"].map("{:g}".format)
    shown["load a core"] = rows["load"].astype(str)
    return Table(shown, caption)


def _cells(rows: pd.DataFrame, unit: str) -> list[str]:
    """Estimates as text, of their value and both ends; none where there is no value."""
    found = rows.itertuples(index=False, name=None)
    return ["" if pd.isna(value) else Estimate(value, unit=unit, ends=(low, high)).cell for value, low, high in found]
