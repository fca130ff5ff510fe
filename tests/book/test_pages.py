"""The built book, page by page: whole, readable without pictures or network, and every link leads somewhere.

FPT_BOOK names the folder of its index.html; `make test` builds that from published results.
"""

import functools
import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup, Tag

pytestmark = pytest.mark.book

ROOT = Path(__file__).parents[2]
BOOK = Path(os.environ.get("FPT_BOOK") or "book/_build/html").absolute()
TOC = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text())
PAGES = [TOC["root"], *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"])]
PAGES = [page.removesuffix(".ipynb") for page in PAGES]
SOURCES = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


@functools.cache
def page_of(name: str) -> BeautifulSoup:
    return BeautifulSoup((BOOK / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


def article(name: str) -> Tag:
    found = page_of(name).find("article")
    assert isinstance(found, Tag)
    return found


@functools.cache
def anchors(path: Path) -> set[str]:
    page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    return {str(tag["id"]) for tag in page.find_all(id=True)}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_there_and_has_a_title_and_text(name: str) -> None:
    title = article(name).find("h1")
    assert title is not None
    assert title.get_text().strip("# \n")
    assert len(article(name).get_text(" ", strip=True)) > 200


@pytest.mark.parametrize("name", PAGES)
def test_nothing_failed_or_went_missing_on_a_page(name: str) -> None:
    page = article(name)
    for output in page.select(".output.stderr, .output.traceback, .system-message, .problematic"):
        pytest.fail(output.get_text()[:300])
    prose = " ".join(tag.get_text(" ") for tag in page.find_all(["p", "li", "td", "figcaption"]))
    for word in ("nan", "None", "NaT", "Traceback", "KeyError", "{glue", "{{"):
        found = re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", prose)
        assert found is None, prose[max(0, found.start() - 80) : found.end() + 80]


@pytest.mark.parametrize("name", PAGES)
def test_a_picture_has_a_text_in_its_place(name: str) -> None:
    for image in page_of(name).find_all("img"):
        assert str(image.get("alt", "")).strip(), str(image)[:200]
    for picture in article(name).find_all("img"):
        if "logo" not in str(picture.get("class", "")):
            alt = str(picture["alt"])
            assert not re.search(r"\.(png|svg)$|^_images/", alt), alt  # a file name tells nobody anything


@pytest.mark.parametrize("name", PAGES)
def test_a_page_needs_no_network(name: str) -> None:
    for tag, attribute in SOURCES.items():
        for each in page_of(name).find_all(tag):
            if tag == "link" and "canonical" in str(each.get("rel", "")):
                continue
            assert not urlsplit(str(each.get(attribute, ""))).netloc, str(each)[:200]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_inside_the_book_leads_somewhere(name: str) -> None:
    here = BOOK / f"{name}.html"
    targets = [(each, str(each["href"])) for each in page_of(name).find_all("a", href=True)]
    targets += [
        (each, str(each[attribute]))
        for tag, attribute in SOURCES.items()
        for each in page_of(name).find_all(tag)
        if each.get(attribute)
    ]
    for each, link in targets:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        path = (here.parent / unquote(parts.path)).resolve() if parts.path else here
        assert path.exists(), f"{link} in {str(each)[:200]}"
        if parts.fragment and path.suffix == ".html":
            assert unquote(parts.fragment) in anchors(path), f"{link}: no such place"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_carries_no_trace_of_the_machine_that_built_it(name: str) -> None:
    text = (BOOK / f"{name}.html").read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert not re.search(r"(?<![\w.:/])/(?:home|root|Users)/\w", text)


def test_the_search_knows_the_pages() -> None:
    index = (BOOK / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"{name}"' in index for name in PAGES)


def test_the_first_page_leads_to_the_summary() -> None:
    assert f"{TOC['root']}.html" in (BOOK / "index.html").read_text(encoding="utf-8")


def test_no_page_is_left_over() -> None:
    built = {str(path.relative_to(BOOK).with_suffix("")) for path in (BOOK / "book").rglob("*.html")}
    assert built == {name for name in PAGES if name.startswith("book/")}
