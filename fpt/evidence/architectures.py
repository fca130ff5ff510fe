"""Which architectures of the transformers library can be a backbone: what notebooks/architectures found."""

import json
from pathlib import Path

import pandas as pd

from fpt.sweeps.ledger import workspace

ORDER = ("works", "refused", "failed", "not built")


def architecture_table(root: Path | str | None = None) -> pd.DataFrame:
    """A row an architecture, those that work first; no rows where the table is not there.

    attrs: `versions` of the libraries, and `parity`, the largest difference from the library's hidden states of those
    that work, as a share of the largest.
    """
    path = workspace(root) / "runs" / "architectures" / "table.json"
    if not path.is_file():
        return pd.DataFrame()
    content = json.loads(path.read_text(encoding="utf-8"))
    found = pd.DataFrame(content["architectures"])
    works = found["state"] == "works"
    table = pd.DataFrame(
        {
            "architecture": found["architecture"],
            "kind": found["kind"],
            "state": found["state"],
            "position table": found["groups"]
            .str.contains("positions")
            .map({True: "yes", False: "no"})
            .where(works, ""),
            "drops out in": found["dropout"].str.replace("_", " ").where(works, ""),
            "why not": found["why"],
        }
    )
    table = table.sort_values("state", key=lambda states: states.map(ORDER.index), kind="stable", ignore_index=True)
    table.attrs = {
        "versions": f"transformers {content['transformers']} and torch {content['torch']}",
        "parity": float(found.loc[works, "parity"].max()),
    }
    return table
