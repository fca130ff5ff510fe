"""Which architectures of the transformers library can be a backbone: what notebooks/architectures found."""

import json
from pathlib import Path

import pandas as pd

from fpt.sweeps.ledger import workspace

ORDER = ("works", "failed", "refused", "not built", "no answer")


def architecture_table(root: Path | str | None = None) -> pd.DataFrame:
    """One row per architecture, those that work first; no rows if there is no table. attrs: the `versions` of the
    libraries."""
    path = workspace(root) / "runs" / "architectures" / "table.json"
    if not path.is_file():
        return pd.DataFrame()
    content = json.loads(path.read_text(encoding="utf-8"))
    found = pd.DataFrame(content["architectures"])[["architecture", "kind", "state", "groups", "dropout", "why"]]
    found[["groups", "dropout"]] = found[["groups", "dropout"]].replace("_", " ", regex=True)
    found = found.rename(columns={"dropout": "drops out in", "why": "why not"})
    table = found.sort_values("state", key=lambda states: states.map(ORDER.index), kind="stable", ignore_index=True)
    table.attrs = {"versions": f"transformers {content['transformers']} and torch {content['torch']}"}
    return table
