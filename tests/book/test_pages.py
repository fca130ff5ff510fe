"""The built book, page by page. Published results only, so that the checks are the same on every machine."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest
from bs4 import BeautifulSoup, Tag

from fpt.evidence import StudyCells, find_study, load_runs, verdicts_on
from fpt.evidence.show.numbers import difference
from fpt.evidence.stats import mean_interval
from fpt.papers import claims, table
from fpt.sweeps import load_study

pytestmark = pytest.mark.book

NETWORK = re.compile(r"^(https?:)?//")


@cache
def parsed(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def article(path: Path) -> Tag:
    found = parsed(path).select_one("article.bd-article")
    assert found is not None, path
    return found


def pages(html: Path) -> list[Path]:
    return sorted(path for path in html.rglob("*.html") if "_static" not in path.parts)


def test_every_page_of_the_contents_is_there_and_says_something(html: Path, contents: list[str]) -> None:
    for name in contents:
        page = html / f"{name}.html"
        assert page.is_file(), name
        assert len(article(page).get_text(" ", strip=True)) > 300, name


def test_the_first_page_is_the_summary(html: Path) -> None:
    assert "book/summary.html" in (html / "index.html").read_text()


def test_every_image_has_words(html: Path) -> None:
    images = [(page, image) for page in pages(html) for image in parsed(page).select("img")]
    assert len(images) > 8
    for page, image in images:
        assert len(str(image.get("alt") or "").strip()) > 10, f"{page.name}: {str(image)[:80]}"


def test_every_figure_has_a_caption(html: Path) -> None:
    figures = [figure for page in pages(html) for figure in parsed(page).select("figure:has(img)")]
    assert figures
    assert all(figure.select_one("figcaption").get_text(strip=True) for figure in figures)  # type: ignore[union-attr]


def test_no_pasted_number_is_blank(html: Path) -> None:
    pasted = [(page, span) for page in pages(html) for span in parsed(page).select(".pasted-text")]
    assert len(pasted) > 30
    for page, span in pasted:
        text = span.get_text(strip=True)
        assert text, page
        assert text not in ("nan", "(no result)", "not tested"), f"{page.name}: published results are incomplete"


def test_no_error_reached_a_page(html: Path) -> None:
    for page in pages(html):
        text = article(page).get_text() if parsed(page).select_one("article.bd-article") else ""
        assert "Traceback (most recent call last)" not in text, page
        assert not parsed(page).select(".system-message, .problematic"), page


def test_no_library_speaks_on_a_chapter(html: Path) -> None:
    """Warnings name files of the machine that built the book."""
    for page in sorted((html / "book").glob("*.html")):
        assert not parsed(page).select(".output.stderr"), page


def test_internal_links_lead_somewhere(html: Path) -> None:
    for page in pages(html):
        for link in parsed(page).select("a[href]"):
            target = urlsplit(str(link["href"]))
            if target.scheme or target.netloc:
                continue
            file = (page.parent / unquote(target.path)).resolve() if target.path else page
            assert file.is_file(), f"{page.name}: {link['href']}"
            if target.fragment and file.suffix == ".html" and target.fragment != "top":
                assert parsed(file).find(id=unquote(target.fragment)), f"{page.name}: {link['href']}"


def test_nothing_is_loaded_from_a_network(html: Path) -> None:
    for page in pages(html):
        loads = [tag.get("src") for tag in parsed(page).select("script[src], img[src], iframe[src], source[src]")]
        loads += [tag.get("href") for tag in parsed(page).select("link[href]:not([rel~=canonical])")]
        assert not [url for url in loads if NETWORK.match(str(url))], page
    for style in html.rglob("*.css"):
        text = style.read_text(encoding="utf-8", errors="ignore")
        assert not re.search(r"""(@import\s+|url\()["']?(https?:)?//""", text), style


def test_no_run_was_executed_by_the_build(html: Path) -> None:
    log = (html.parents[1] / "build.log").read_text(errors="replace")
    executed = re.findall(r"(\S+): Execut(?:ed|ing) notebook", log)
    assert any("summary" in name for name in executed)
    assert not [name for name in executed if "runs/" in name or name.endswith(".ipynb")]


def test_the_contents_list_exactly_the_published_notebooks(workspace: Path, contents: list[str]) -> None:
    published = {
        f"runs/{study.parent.name}/published/{spec.folder_name}/notebook"
        for study in workspace.glob("runs/*/study.yaml")
        for spec in load_study(study.parent).sweeps
        if (study.parent / "published" / spec.folder_name / "notebook.ipynb").is_file()
    }
    assert published
    assert {name for name in contents if name.startswith("runs/")} == published


def test_downloads_are_there(html: Path, workspace: Path) -> None:
    files = [
        (page.parent / unquote(str(link["href"]))).resolve()
        for page in (html / "book/data.html", html / "book/rerun.html")
        for link in article(page).select("a.download[href]")
    ]
    names = {file.name for file in files}
    assert {"laptop-runs.csv", "laptop-more-curves.parquet", "rothermel2021.yaml", "sweep.ipynb"} <= names
    assert all(file.stat().st_size > 300 for file in files)
    table = pd.read_csv(next(file for file in files if file.name == "laptop-runs.csv"))
    assert len(table) == len(load_runs(workspace / "runs/laptop", "published"))


def test_every_page_offers_its_notebook_or_source(html: Path, contents: list[str]) -> None:
    for name in contents:
        links = [str(link.get("href")) for link in parsed(html / f"{name}.html").select("a.btn-download-source-button")]
        assert links, name


def test_the_search_index_knows_the_chapters(html: Path) -> None:
    index = (html / "searchindex.js").read_text(encoding="utf-8")
    assert "book/learning-rate" in index
    assert "confirm" in index


def test_the_summary_says_what_the_runs_say(html: Path, workspace: Path) -> None:
    runs = load_runs(find_study("laptop", workspace), "published")
    text = article(html / "book/summary.html").get_text(" ")
    for label in ("FP", "UP"):
        arm = runs[(runs["label"] == label) & (runs["stage"] == "confirmation") & runs["selected"]]
        assert f"{100 * mean_interval(arm['test_accuracy'])[0]:.1f}%" in text
    chapter = article(html / "book/learning-rate.html").get_text(" ")
    study = StudyCells(find_study("laptop", workspace), "published")
    for verdict in verdicts_on(("P-03", "P-04", "P-05"), [study]):
        assert verdict.parts
        for part in verdict.parts:
            assert difference(part) in chapter
            assert part.word in chapter


def rows_of(html: Path, page: str, head: str) -> list[dict[str, str]]:
    """The first table of the page that has this header, a mapping a row."""
    shown = next(t for t in article(html / page).select("table") if head in [th.get_text() for th in t.select("th")])
    heads = [cell.get_text() for cell in shown.select("th")]
    return [
        dict(zip(heads, [cell.get_text() for cell in row.select("td")], strict=True))
        for row in shown.select("tbody tr")
    ]


def test_the_papers_numbers_are_those_of_the_paper(html: Path) -> None:
    row = next(row for row in rows_of(html, "book/beside.html", "MNIST (paper)") if row["row"] == "Unfrozen Pretrained")
    printed = table("rothermel-table-1").rows["UP"].printed["mnist"]
    assert row["MNIST (paper)"] == f"{printed.value:.1f} ± {printed.sem:.1f}"


def test_every_claim_of_both_papers_has_a_row_a_verdict_and_an_address(html: Path) -> None:
    rows = rows_of(html, "book/claims.html", "verdict")
    assert [row["id"] for row in rows] == [name for name, claim in claims().items() if claim.paper != "ours"]
    assert len(rows) == 131
    assert all(row["verdict"] for row in rows)
    page = parsed(html / "book/claims.html")
    assert all(page.find(id=name.lower()) for name in claims())
    assert all(row["scale"] for row in rows if row["studies"])


def test_no_figure_is_empty(html: Path) -> None:
    for page in sorted((html / "book").glob("*.html")):
        for image in article(page).select("figure.fpt img") if parsed(page).select_one("article.bd-article") else ():
            assert "no results" not in str(image["alt"]), page


def test_headers_of_tables_have_names(html: Path) -> None:
    for page in sorted((html / "book").glob("*.html")):
        heads = parsed(page).select("figure.fpt th")
        assert all(head.get_text(strip=True) and head.get("scope") == "col" for head in heads), page
