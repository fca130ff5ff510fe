"""The chapters as they are written: no results typed, every page listed, every citation known."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from fpt.sweeps.publish import BEGIN, END

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "book").glob("*.md"))
# A result has a unit. Levels of the statistics themselves may be named.
TYPED = re.compile(r"\d+(?:\.\d+)?\s*(?:%|points?\b|percent\b)")
NAMED = {"95%", "80%"}


def prose(chapter: Path) -> str:
    """A chapter without its front matter and code."""
    text = re.sub(r"\A---\n.*?\n---\n", "", chapter.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_no_result_is_typed(chapter: Path) -> None:
    assert not set(TYPED.findall(prose(chapter))) - NAMED


def test_every_chapter_is_in_the_contents_and_no_other() -> None:
    toc = yaml.safe_load((ROOT / "book/_toc.yml").read_text())
    listed = {toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])}
    assert {name for name in listed if name.startswith("book/")} == {f"book/{path.stem}" for path in CHAPTERS}


def test_the_contents_have_the_marks_that_publish_writes_between() -> None:
    lines = [line.strip() for line in (ROOT / "book/_toc.yml").read_text().splitlines()]
    assert lines.index(BEGIN) < lines.index(END)


def test_the_bibliography_has_what_is_cited_and_no_more() -> None:
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "book/references.bib").read_text(), flags=re.MULTILINE))
    cited = {key for path in CHAPTERS for key in re.findall(r"\{cite:[pt]\}`(\w+)`", path.read_text())}
    assert cited == known


def test_chapters_read_results_only_through_evidence() -> None:
    for path in CHAPTERS:
        assert not re.search(r"read_parquet|result\.json\"|open\(", path.read_text()), path.name


def _prose_module(name: str = "prose") -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"book_{name}", ROOT / f"book/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"book_{name}"] = module
    spec.loader.exec_module(module)
    return module


def _synthetic() -> ModuleType:
    spec = importlib.util.spec_from_file_location("synthetic", ROOT / "tests/evidence/synthetic.py")
    assert spec is not None
    assert spec.loader is not None
    synthetic = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(synthetic)
    return synthetic


def _made(tmp_path: Path, **options: object) -> Path:
    synthetic = _synthetic()
    study: Path = synthetic.workspace(tmp_path)
    return study if options.get("empty") else Path(synthetic.finish(study, **options))


def test_sentences_about_results_and_about_none(tmp_path: Path) -> None:
    from fpt.evidence import headline, load_runs

    book = _prose_module()
    study, nothing = _made(tmp_path / "a"), _made(tmp_path / "b", empty=True)
    some, none = load_runs(study), load_runs(nothing)
    facts, absent = book.facts(some), book.facts(none)
    assert set(facts) == set(absent)  # every number that a sentence asks for is always there
    assert re.fullmatch(r"\d\d\.\d%", facts["fp-tuned"])
    assert (facts["fp-rate"], facts["up-rate"], facts["confirmation-seeds"]) == ("1e-2", "1e-3", "8")
    assert absent["fp-tuned"] == book.NONE
    verdicts, missing = book.verdict_facts(headline(some)), book.verdict_facts([])
    assert set(missing) <= set(verdicts)
    assert verdicts["up-fp-tuned-verdict"] == "supported"
    assert "8 seeds" in verdicts["up-fp-tuned"]
    assert re.search(r"learning rate decides .* leads .* at 1e-3 and trails it by .*it wins by \d", book.answer(some))
    assert "no results yet" in book.answer(none)
    assert "your own results" in book.whose(study)
    assert "no results" in book.whose(nothing)


def test_a_partial_study_says_so(tmp_path: Path) -> None:
    book = _prose_module()
    study = _made(tmp_path, skip=("unfrozen-random", "unfrozen-pretrained"))
    assert "3 of its 6 sweeps (not UP, UR, UR fixed)" in book.whose(study)


def test_the_sentence_about_the_second_rug_has_every_scale(tmp_path: Path) -> None:
    from fpt.evidence import headline, load_runs

    book, synthetic = _prose_module(), _synthetic()
    assert book.rug([]) == book.rug(headline(load_runs(_made(tmp_path / "a", skip=("frozen-random",)))))
    assert book.rug([]) == "The gains have not been run yet."
    more = f"{synthetic.STUDY}  - {{task: digits, arm: frozen-random, random_gain: [0.5, 2]}}\n"
    runs = load_runs(synthetic.finish(synthetic.workspace(tmp_path / "b", study=more)))
    assert book.gains(runs) == "0.5, 1, 2"
    sentence = book.rug(headline(runs))
    said = re.findall(
        r"\d\.\d points (?:above|below) it at ([a-z ']+) \((?:supported|contradicted|inconclusive)", sentence
    )
    assert said == [
        "the library's fixed scale",
        "a scale matched to the width",
        "the best of several scales",
    ]
    assert sentence.startswith("On digits with tiny-lm, 400 steps, the frozen pretrained model beside")


def test_the_share_of_the_papers_steps(tmp_path: Path) -> None:
    from fpt.evidence import load_runs

    runs = load_runs(_made(tmp_path))
    assert "400 steps are 0.10% of the 400,000" in _prose_module().budget_share(runs, "mnist")
    assert "0.13% of the 300,000" in _prose_module().budget_share(runs, "listops")


@pytest.mark.parametrize("empty", [True, False])
def test_an_experiment_has_claims_words_table_and_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    page = _prose_module("lu")
    monkeypatch.chdir(_made(tmp_path, **({"empty": True} if empty else {})))
    monkeypatch.setattr(page, "STUDY", "laptop")
    html = page.show("lu-table-2")._repr_html_()
    for words in (
        "L-10: Lu et al. 2021, Table 2",
        "What was run.",
        "not tested at this scale",
        "as the paper prints it",
        "How the verdicts come about",
    ):
        assert words in html
    assert ("not run yet" in html, "<img" in html) == (empty, not empty)
    assert "L-22" in page.show_attention("bit-xor")._repr_html_()
    assert ("no results" in page.provenance()) == empty
    every, count = page.all_claims()
    assert every.frame["id"].is_unique
    assert re.match(r"\d+ ", count)
