"""The built book, page by page, whatever is published. Published results only, so that the checks are the same on every
machine."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pandas as pd
import pytest
from bs4 import BeautifulSoup, Tag

from fpt.documents import read_document
from fpt.results import StudyCells, load_runs

pytestmark = pytest.mark.book
ROOT = Path(__file__).parents[2]
STUDY = ("The study", "The papers", "Method")  # parts of the contents; the others are documentation and sources
ALL_WORDS = 16_000  # of the study that are not folded: about 15,000
MOST_WORDS = {"freeze": 700, "method": 1500, "data": 2500}
MOVED: dict[str, str] = read_document(ROOT / "_config.yml", "_config.yml")[0]["sphinx"]["config"]["redirects"]


@cache
def parsed(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def addresses(path: Path) -> set[str]:
    return {str(tag["id"]) for tag in parsed(path).select("[id]")}


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


def visible_words(page: Path) -> int:
    """What a reader meets who opens nothing, searches no table, and sees no figure in whose place a script draws; the
    numbers along an axis are no words."""
    shown = BeautifulSoup(str(article(page)), "html.parser")
    unseen = "details, script, style, svg, .fpt-searchable, .tag_hide-cell, .headerlink, .fpt-explorer ~ figure"
    for folded in shown.select(unseen):
        folded.decompose()
    return len(shown.get_text(" ").split())


def test_the_study_is_read_in_an_hour(html: Path, workspace: Path) -> None:
    toc = read_document(workspace / "book/_toc.yml", "_toc.yml")[0]
    chapters = [chapter["file"] for part in toc["parts"] if part["caption"] in STUDY for chapter in part["chapters"]]
    counts = {name: visible_words(html / f"{name}.html") for name in (toc["root"], *chapters)}
    assert len(counts) > 9
    assert sum(counts.values()) <= ALL_WORDS, counts


@pytest.mark.parametrize(("name", "most"), MOST_WORDS.items(), ids=MOST_WORDS)
def test_a_page_is_no_longer_than_it_may_be(html: Path, name: str, most: int) -> None:
    assert visible_words(html / f"book/{name}.html") <= most


def test_every_image_has_words(html: Path) -> None:
    images = [(page, image) for page in pages(html) for image in parsed(page).select("img, [role=img]")]
    assert images
    for page, image in images:
        words = str(image.get("alt") or image.get("aria-label") or "").strip()
        assert len(words) > 10, f"{page.name}: {str(image)[:80]}"


def test_every_figure_has_a_caption(html: Path) -> None:
    figures = [figure for page in pages(html) for figure in parsed(page).select("figure:has(img, [role=img])")]
    assert figures
    assert all(figure.select_one("figcaption").get_text(strip=True) for figure in figures)  # type: ignore[union-attr]


def test_no_pasted_number_is_blank(html: Path) -> None:
    pasted = [(page, span) for page in pages(html) for span in parsed(page).select(".pasted-text")]
    assert len(pasted) > 30
    for page, span in pasted:
        text = span.get_text(strip=True)
        assert text, page
        assert text not in ("nan", "(no result)", "not tested"), f"{page.name}: published results are incomplete"


def test_no_library_speaks_on_a_chapter(html: Path) -> None:
    """Warnings name files of the machine that built the book."""
    for page in sorted((html / "book").glob("*.html")):
        assert not parsed(page).select(".output.stderr"), page


def is_on_the_explorer(file: Path, fragment: str) -> bool:
    """Whether the page has an explorer that can show all that the address asks for."""
    asked = dict(parse_qsl(fragment, strict_parsing=True))
    data = parsed(file).select_one(".fpt-explorer script")
    assert data is not None, file
    found = [each for each in json.loads(data.string or "") if each["study"] == asked["study"]]
    return any(
        asked.get("task", each["name"]) == each["name"]
        and asked.get("rate", each["rates"][0]) in each["rates"]
        and int(asked.get("budget", each["budgets"][0])) in each["budgets"]
        and set(asked.get("arms", "UP,FP").split(",")) in [set(pair["arms"]) for pair in each["pairs"]]
        for each in found
    )


def test_internal_links_lead_somewhere(html: Path) -> None:
    for page in pages(html):
        for link in parsed(page).select("a[href]"):
            target = urlsplit(str(link["href"]))
            if target.scheme or target.netloc:
                continue
            file = (page.parent / unquote(target.path)).resolve() if target.path else page
            assert file.is_file(), f"{page.name}: {link['href']}"
            if "=" in target.fragment:
                assert is_on_the_explorer(file, target.fragment), f"{page.name}: {link['href']}"
            elif target.fragment and file.suffix == ".html" and target.fragment != "top":
                assert unquote(target.fragment) in addresses(file), f"{page.name}: {link['href']}"


def test_no_run_was_executed_by_the_build(html: Path, contents: list[str]) -> None:
    executed = html.parent / "jupyter_execute"
    assert (executed / f"{contents[0]}.ipynb").is_file()
    assert [path.name for path in executed.iterdir()] == ["book"]


def test_downloads_are_there(html: Path, published: dict[str, StudyCells]) -> None:
    files = {
        file.name: file
        for page in sorted((html / "book").glob("*.html"))
        for link in parsed(page).select("a.download[href]")
        for file in [(page.parent / unquote(str(link["href"]))).resolve()]
    }
    of_studies = {f"{name}-{table}" for name in published for table in ("runs.csv", "curves.parquet")}
    assert of_studies <= set(files)
    assert all(file.stat().st_size > 300 for file in files.values())
    for name, study in published.items():
        assert len(pd.read_csv(files[f"{name}-runs.csv"])) == len(load_runs(study.folder, "published"))


def test_every_page_offers_its_notebook_or_source(html: Path, contents: list[str]) -> None:
    for name in contents:
        links = [str(link.get("href")) for link in parsed(html / f"{name}.html").select("a.btn-download-source-button")]
        assert links, name


def test_the_first_page_is_the_root_of_the_contents(html: Path, contents: list[str]) -> None:
    assert f"{contents[0]}.html" in (html / "index.html").read_text()


def test_every_published_sweep_leads_to_its_executed_notebook(html: Path, published: dict[str, StudyCells]) -> None:
    folders = {
        f"../runs/{name}/published/{folder}/notebook.ipynb"
        for name, study in published.items()
        for folder in study.results
    }
    links = {str(link["href"]) for page in (html / "book").glob("*.html") for link in parsed(page).select("td a[href]")}
    assert folders <= links  # that they lead somewhere is tested with all links


def test_the_search_index_knows_every_page(html: Path, contents: list[str]) -> None:
    index = (html / "searchindex.js").read_text(encoding="utf-8")
    assert [name for name in contents if f'"{name}"' not in index] == []


def test_no_figure_is_empty(html: Path) -> None:
    for page in sorted((html / "book").glob("*.html")):
        for image in parsed(page).select("article.bd-article figure.fpt [role=img]"):
            assert "no results" not in str(image["aria-label"]), page


def test_rates_abbreviations_and_frames_of_tables_are_marked(html: Path, contents: list[str]) -> None:
    """As test_browser.py looks for them."""
    found = [parsed(html / f"{name}.html") for name in contents]
    assert sum(len(page.select("article .rate")) for page in found) > 50
    assert {"FP", "FPT", "LSTM"} <= {tag.get_text() for page in found for tag in page.select("article abbr")}
    assert sum(len(page.select("article .fpt-scroll table")) for page in found) > 10


# --- the frame: what a page says to search engines, old addresses, and what stands once on a page


def test_every_page_has_one_title_a_description_and_a_preview(html: Path, contents: list[str]) -> None:
    described = []
    for name in contents:
        head = parsed(html / f"{name}.html").select_one("head")
        assert head is not None, name
        title = head.select_one("title")
        assert title is not None, name
        one, _, other = title.get_text().partition(" \u2014 ")
        assert one.strip() != other.strip(), name
        (text,) = [str(tag["content"]) for tag in head.select("meta[name=description]")]
        assert len(text) > 50, name
        described.append(text)
        (image,) = [str(tag["content"]) for tag in head.select('meta[property="og:image"]')]
        assert (html / image).is_file(), name
    assert len(set(described)) == len(contents)


def test_the_icon_is_there(html: Path, contents: list[str]) -> None:
    (icon,) = parsed(html / f"{contents[0]}.html").select("link[rel=icon]")
    assert (html / contents[0]).parent.joinpath(str(icon["href"])).is_file()


def test_no_address_stands_twice_on_a_page(html: Path, contents: list[str]) -> None:
    for name in contents:
        counts = Counter(str(tag["id"]) for tag in parsed(html / f"{name}.html").select("article [id]"))
        assert [each for each, count in counts.items() if count > 1] == [], name


@pytest.mark.parametrize("old", MOVED)
def test_an_old_address_leads_to_a_page(html: Path, contents: list[str], old: str) -> None:
    assert old not in contents
    page, _, place = MOVED[old].partition("#")
    leads = html / "book" / page
    assert f"book/{Path(page).stem}" in contents
    assert MOVED[old] in (html / f"{old}.html").read_text(encoding="utf-8")
    assert not place or parsed(leads).select(f"[id='{place}']"), MOVED[old]
