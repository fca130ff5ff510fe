"""The published table of architectures, which notebooks/architectures writes."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_published_table_is_of_what_works_and_gives_reasons_for_the_rest() -> None:
    table = json.loads((ROOT / "runs/architectures/table.json").read_text())["architectures"]
    assert {"llama", "gpt_neox", "modernbert"} <= {each["architecture"] for each in table if each["state"] == "works"}
    assert all(each["why"] for each in table if each["state"] != "works")
    assert "failed" not in {each["state"] for each in table}  # that is not refused, and a check does not hold
