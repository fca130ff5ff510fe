"""The table of architectures, as its notebook writes it."""

import json
from pathlib import Path

from fpt.evidence import architecture_table

FIELDS = {"kind": "causal", "why": "", "groups": "", "dropout": "", "parity": None}


def test_those_that_work_come_first_with_what_was_found(tmp_path: Path) -> None:
    for folder in ("notebooks", "runs/architectures"):
        (tmp_path / folder).mkdir(parents=True)
    assert architecture_table(tmp_path).empty
    works = {"state": "works", "groups": "positions", "dropout": "input, feed_forward", "parity": 2e-7}
    records = [
        FIELDS | {"architecture": "none", "state": "not built", "why": "no such sizes"},
        FIELDS | {"architecture": "some", "state": "refused", "why": "it looks at the data"},
        FIELDS | {"architecture": "opt"} | works,
    ]
    content = {"transformers": "5.0", "torch": "2.6", "layers": 4, "architectures": records}
    (tmp_path / "runs/architectures/table.json").write_text(json.dumps(content))
    table = architecture_table(tmp_path)
    assert table["architecture"].tolist() == ["opt", "some", "none"]
    assert table.loc[0, ["groups", "drops out in", "why not"]].tolist() == ["positions", "input, feed forward", ""]
    assert table.loc[1, ["groups", "why not"]].tolist() == ["", "it looks at the data"]
    assert table.attrs == {"versions": "transformers 5.0 and torch 2.6"}


def test_the_published_table_is_of_what_works_and_gives_reasons_for_the_rest() -> None:
    table = architecture_table()
    assert {"llama", "gpt_neox", "modernbert"} <= set(table.loc[table["state"] == "works", "architecture"])
    assert (table.loc[table["state"] != "works", "why not"] != "").all()
