"""The book is built from the verdicts of the results that are published."""

from pathlib import Path

import pandas as pd
import pytest
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

from fpt.claims import judge

EXTENSIONS = Path(__file__).parents[2] / "book/_ext"


def test_verdicts_of_other_results_end_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXTENSIONS)
    monkeypatch.setattr("verdicts.ROOT", tmp_path)
    for folder in ("runs/mine/published/a", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "notebooks/sweep.ipynb").touch()
    (tmp_path / "runs/mine/published/a/result.json").touch()
    (tmp_path / "runs/mine/study.yaml").write_text("name: mine\n")
    (tmp_path / "index.rst").write_text("A\n=\n")

    def build() -> None:
        config = {"extensions": ["verdicts"]}
        Sphinx(tmp_path, None, tmp_path / "html", tmp_path / "trees", "html", config, status=None)

    table = pd.DataFrame([dict.fromkeys(judge.COLUMNS, "")])
    judge.write(table, tmp_path / "runs" / judge.FILE, judge.digest_of_runs(tmp_path))
    build()
    (tmp_path / "runs/mine/study.yaml").write_text("name: yours\n")
    with pytest.raises(ConfigError, match="fpt judge"):
        build()
