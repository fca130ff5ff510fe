"""The chapters as they are written: no results typed, every page listed, every citation known."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from committed import studies

from fpt.claims.verdicts import DEPENDS, DISAGREE, IN_PART, ON_TASK
from fpt.papers import claims

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "book").glob("*.md"))
# A result has a unit. Levels of the statistics themselves may be named.
TYPED = re.compile(r"\d+(?:\.\d+)?\s*(?:%|points?\b|percent\b)")
NAMED = {"95%", "80%", "5%"}
BOX = re.compile(r"^:::\{admonition\} (.*?)\n:class: (\w+)\n(.*?)^:::$", flags=re.DOTALL | re.MULTILINE)
BOXES = {"says": r"The papers? says?", "does": "The code does", "finds": "We find"}  # class -> title, in this order
EXPLAINED = "book/question.md"  # shows the boxes themselves


def prose(chapter: Path) -> str:
    """A chapter without its front matter and code."""
    text = re.sub(r"\A---\n.*?\n---\n", "", chapter.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_no_result_is_typed(chapter: Path) -> None:
    own = re.sub(r"^> .*$", "", prose(chapter), flags=re.MULTILINE)  # what is quoted is compared below
    assert not set(TYPED.findall(own)) - NAMED


def test_every_chapter_is_in_the_contents_and_no_other() -> None:
    toc = yaml.safe_load((ROOT / "book/_toc.yml").read_text())
    listed = {toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])}
    assert listed == {f"book/{path.stem}" for path in CHAPTERS}  # executed notebooks are no pages


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_headings_follow_each_other_without_a_jump(chapter: Path) -> None:
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose(chapter), flags=re.MULTILINE)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_section_quotes_then_tests_then_finds(chapter: Path) -> None:
    for section in re.split(r"^##+ ", prose(chapter), flags=re.MULTILINE):
        found = [(title, kind) for title, kind, _ in BOX.findall(section)]
        assert section.count(":::{admonition}") == len(found)
        assert all(re.fullmatch(BOXES[kind], title) for title, kind in found)
        kinds = [kind for _, kind in found if chapter.name != Path(EXPLAINED).name]
        assert kinds == sorted(set(kinds), key=list(BOXES).index)


QUOTED = re.compile(r'^> "([^"]*)"', re.MULTILINE)


def test_quotations_are_those_of_the_claims_word_for_word() -> None:
    known = [" ".join(claim.quote.split()) for claim in claims().values()]
    found = [each for path in CHAPTERS for each in QUOTED.findall(path.read_text())]
    quoted = [" ".join(each.replace("\n> ", " ").split()).rstrip(".") for each in found]
    assert len(quoted) > 15
    assert [each for each in quoted if not any(each in quote for quote in known)] == []


def code_of(chapter: Path) -> str:
    """The code of a chapter's cells."""
    cells = re.findall(r"^```\{code-cell\}.*?\n\n(.*?)^```$", chapter.read_text(), flags=re.DOTALL | re.MULTILINE)
    return "\n".join(cells)


def test_no_name_in_a_chapter_is_unused_or_undefined(tmp_path: Path) -> None:
    for chapter in CHAPTERS:
        (tmp_path / f"{chapter.stem}.py").write_text(code_of(chapter), encoding="utf-8")
    rules = ["--isolated", "--select=F", "--config=builtins = ['display']", "--output-format=concise"]
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *rules, tmp_path], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_studies_that_a_chapter_reads_exist(chapter: Path) -> None:
    code = code_of(chapter)
    asked = re.findall(r"(?:study_cells|find_study)(?:, \(|\()([^)]*)\)", code)
    assert {name for each in asked for name in re.findall(r'"([^"]+)"', each)} <= set(studies())


def test_the_bibliography_has_what_is_cited_and_no_more() -> None:
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "book/references.bib").read_text(), flags=re.MULTILINE))
    cited = {key for path in CHAPTERS for key in re.findall(r"\{cite:[pt]\}`(\w+)`", path.read_text())}
    assert cited == known


def test_chapters_read_only_through_the_package() -> None:
    for path in CHAPTERS:
        assert not re.search(r"read_parquet|result\.json\"|open\(", path.read_text()), path.name


def test_the_book_has_no_code_of_its_own() -> None:
    """Every computed sentence stands in fpt/show/text.py."""
    assert not list((ROOT / "book").glob("*.py"))


@pytest.mark.parametrize("page", ["claims"])
def test_every_word_for_several_studies_is_defined(page: str) -> None:
    written = re.findall(r"\*([^*\n]+)\*", (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8"))
    assert {DEPENDS, ON_TASK, DISAGREE, IN_PART} <= {word.lower() for word in written}
