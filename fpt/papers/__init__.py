"""What the papers say: one YAML file a paper, with its rows, tables, printed numbers and claims with their rules."""

from fpt.papers.paper import (
    Claim,
    Comparison,
    Number,
    Paper,
    Printed,
    Rule,
    Table,
    claim,
    claims,
    load_paper,
    paper_of,
    papers,
    table,
)  # fmt: skip

__all__ = [
    "Claim", "Comparison", "Number", "Paper", "Printed", "Rule", "Table", "claim", "claims", "load_paper", "paper_of",
    "papers", "table",
]  # fmt: skip
