"""The list of pairs: what counts, and what a file that is wrong gets."""

from pathlib import Path

import pytest

from fpt.errors import SpecError
from fpt.results import studies
from fpt.results.pairs import pairs
from fpt.results.runs import arms_in, find_study

TEXT = """
families: {backbones: {small-seed1: small}, tasks: {wide: narrow}}
pairs:
  small/early: {listed: 2026-01-01 10:00, by: one, started: 2026-01-01 11:00, speaks: [two, one], every_rate: [one]}
  small/late: {listed: 2026-01-02 10:00, by: one, started: 2026-01-01 11:00, speaks: [one]}
  small/never: {listed: 2026-01-01 10:00, by: one, speaks: [one]}
  small/none: {listed: 2026-01-01 10:00, by: one}
"""


def made(folder: Path, text: str) -> Path:
    (folder / "pairs.yaml").write_text(text)
    return folder / "pairs.yaml"


def test_a_pair_counts_where_it_was_listed_before_its_results(tmp_path: Path) -> None:
    found = pairs(made(tmp_path, TEXT))
    speakers = {name: found.speakers(name) for name in (*found.pairs, "small/unlisted") if found.speakers(name)}
    assert speakers == {"small/early": ("two", "one"), "small/never": ("one",)}
    assert found.speakers("small/early", every_rate=True) == ("one", "two", "one")
    assert found.name("small-seed1", "wide") == "small/narrow"
    assert "small/late" in found.pairs


def test_a_file_that_is_wrong_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"pairs\.yaml, line 4: pairs"):
        pairs(made(tmp_path, TEXT.replace("2026-01-01 10:00", "some day", 1)))


def test_every_published_result_is_of_a_pair_that_was_listed_before_it(root: Path) -> None:
    known = pairs()
    for name in studies(root):
        for arm in arms_in(find_study(name, root), "published").values():
            if arm.fields["backbone"] == "none":
                continue
            pair = known.pairs[arm.pair]
            started = arm.result["started_utc"][:16]
            assert pair.listed.isoformat(timespec="minutes") < started, arm.folder
            assert pair.started is not None, arm.folder
            assert pair.started.isoformat(timespec="minutes") <= started, arm.folder


def test_every_study_that_speaks_is_there(root: Path) -> None:
    named = {study for pair in pairs().pairs.values() for study in (*pair.speaks, *pair.every_rate)}
    assert named <= set(studies(root))
