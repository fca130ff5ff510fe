"""The built book, page by page, whatever is published. Published results only, so that the checks are the same on every
machine."""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pandas as pd
import pytest
from bs4 import BeautifulSoup, Tag

from fpt.results import StudyCells, load_runs

pytestmark = pytest.mark.book

NETWORK = re.compile(r"^(https?:)?//")


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


def words(path: Path) -> str:
    """What the page says, with single spaces."""
    page = article(path)
    for inside in page.select(".rate, abbr"):  # a sentence
        inside.unwrap()
    page.smooth()
    return " ".join(page.get_text(" ").split())


def pages(html: Path) -> list[Path]:
    return sorted(path for path in html.rglob("*.html") if "_static" not in path.parts)


def test_every_page_of_the_contents_is_there_and_says_something(html: Path, contents: list[str]) -> None:
    for name in contents:
        page = html / f"{name}.html"
        assert page.is_file(), name
        assert len(article(page).get_text(" ", strip=True)) > 300, name


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


def test_no_error_reached_a_page(html: Path) -> None:
    for page in pages(html):
        text = article(page).get_text() if parsed(page).select_one("article.bd-article") else ""
        assert "Traceback (most recent call last)" not in text, page
        assert not parsed(page).select(".system-message, .problematic"), page


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
        and asked.get("arms", "FP,UP") in [",".join(pair["arms"]) for pair in each["pairs"]]
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


def test_nothing_is_loaded_from_a_network(html: Path) -> None:
    for page in pages(html):
        loads = [tag.get("src") for tag in parsed(page).select("script[src], img[src], iframe[src], source[src]")]
        loads += [tag.get("href") for tag in parsed(page).select("link[href]:not([rel~=canonical])")]
        assert not [url for url in loads if NETWORK.match(str(url))], page
    for style in html.rglob("*.css"):
        text = style.read_text(encoding="utf-8", errors="ignore")
        assert not re.search(r"""(@import\s+|url\()["']?(https?:)?//""", text), style


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
