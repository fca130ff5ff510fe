"""The chapters as they are written: every number glued, every sentence short, every page listed, citations known."""

import ast
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from fpt.documents import read_document
from fpt.papers import claims
from fpt.show.guards import astray, cells, guards
from fpt.show.guards import prose as flowing

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "book").glob("*.md"))
RESULTS = (
    "freeze", "advice", "map", "pretraining", "lora", "controls", "other-models", "listops", "lu", "lu-ablations",
    "rothermel",
)  # fmt: skip
PAGES_OF_RESULTS = [path for path in CHAPTERS if path.stem in RESULTS]
# A result has a unit. Levels of the statistics, margins and shares of the design may be named.
TYPED = re.compile(r"\d+(?:\.\d+)?\s*(?:%|points?\b|percent\b)")
DESIGN = {"95%", "90%", "80%", "5%", "2.5%", "10%", "1 point", "2 points", "30 points", "20 points", "100%", "0 points"}
MOST_WORDS, LONGEST = 1200, 40


def prose(chapter: Path) -> str:
    """A chapter without its front matter, its blocks, its tables and what it quotes."""
    text = re.sub(r"\A---\n.*?\n---\n", "", chapter.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^(?:\||>|:::|\(|%).*$", "", text, flags=re.MULTILINE)


def sentences(chapter: Path) -> list[str]:
    """The sentences of the paragraphs and items; what is glued, linked or quoted as code is one word."""
    text = re.sub(r"\{[\w:]+\}`[^`]*`|`[^`]*`|\[[^]]*\]\([^)]*\)", "Word", prose(chapter))
    text = re.sub(r"</?a\b[^>]*>", "", text)  # an address on the explorer
    text = re.sub(r'"[^"]*"|“[^”]*”', "word", text)  # of a paper
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", text)
    found = [
        each for block in blocks for each in re.split(r"(?<=[.!?:;])[*_)]*\s+(?=[A-Z*_(\[])", " ".join(block.split()))
    ]
    return [each for each in found if each]


def by_name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("chapter", CHAPTERS, ids=by_name)
def test_no_result_is_typed(chapter: Path) -> None:
    assert not set(TYPED.findall(prose(chapter))) - DESIGN


@pytest.mark.parametrize("chapter", CHAPTERS, ids=by_name)
def test_cells_have_no_code_that_belongs_into_the_package(chapter: Path) -> None:
    kinds = (ast.FunctionDef, ast.ClassDef, ast.If)
    found = [node for code in cells(chapter.read_text(encoding="utf-8")) for node in ast.walk(ast.parse(code))]
    assert not [ast.unparse(node)[:60] for node in found if isinstance(node, kinds)]


@pytest.mark.parametrize("chapter", PAGES_OF_RESULTS, ids=by_name)
def test_no_sentence_is_long(chapter: Path) -> None:
    assert not [each for each in sentences(chapter) if len(each.split()) > LONGEST]


@pytest.mark.parametrize("chapter", PAGES_OF_RESULTS, ids=by_name)
def test_a_page_of_results_is_short(chapter: Path) -> None:
    assert len(prose(chapter).split()) <= MOST_WORDS


@pytest.mark.parametrize("chapter", PAGES_OF_RESULTS, ids=by_name)
def test_no_heading_has_a_number(chapter: Path) -> None:
    headings = re.findall(r"^##+ (.*)$", prose(chapter), flags=re.MULTILINE)
    assert headings
    assert not [each for each in headings if re.search(r"\d+(\.\d+)?\s*(%|points|seeds|pairs|studies)", each)]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=by_name)
def test_what_a_guard_holds_stands_on_its_page(chapter: Path) -> None:
    """That guards hold, the build of the book says: it runs them, and a cell that fails ends it."""
    assert not list(astray(chapter.read_text(encoding="utf-8")))


@pytest.mark.parametrize("chapter", PAGES_OF_RESULTS, ids=by_name)
def test_a_page_of_results_has_guards(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    assert any(list(guards(code)) for code in cells(text))
    assert flowing(text)


def test_every_chapter_is_in_the_contents_and_no_other() -> None:
    toc = read_document(ROOT / "book/_toc.yml", "_toc.yml")[0]
    listed = {toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])}
    assert listed == {f"book/{path.stem}" for path in CHAPTERS}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=by_name)
def test_headings_follow_each_other_without_a_jump(chapter: Path) -> None:
    levels = [len(marks) for marks in re.findall(r"^(#+) ", prose(chapter), flags=re.MULTILINE)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_no_name_in_a_chapter_is_unused_or_undefined(tmp_path: Path) -> None:
    for chapter in CHAPTERS:
        code = "\n".join(cells(chapter.read_text(encoding="utf-8")))
        (tmp_path / f"{chapter.stem}.py").write_text(code, encoding="utf-8")
    rules = ["--isolated", "--select=F", "--config=builtins = ['display']", "--output-format=concise"]
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *rules, tmp_path], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_claims_that_pages_name_exist() -> None:
    named = {name for path in CHAPTERS for name in re.findall(r"\b([BLOPRSX]-\d\d)\b", prose(path))}
    assert named <= set(claims())


def test_the_bibliography_has_what_is_cited_and_no_more() -> None:
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "book/references.bib").read_text(), flags=re.MULTILINE))
    cited = {
        key
        for path in CHAPTERS
        for keys in re.findall(r"\{cite:[pt]\}`([\w,]+)`", path.read_text())
        for key in keys.split(",")
    }
    assert cited == known


def test_the_book_has_no_code_of_its_own() -> None:
    assert not list((ROOT / "book").glob("*.py"))
