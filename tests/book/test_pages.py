"""The built book, page by page, whatever is published. Published results only, so that the checks are the same on every
machine."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest
from bs4 import BeautifulSoup, Tag
from pages import definitions

from fpt.claims.verdicts import LEFT_OUT
from fpt.papers import claims
from fpt.results import StudyCells, load_runs
from fpt.show import printed_places, text, verdicts_on
from fpt.show.numbers import difference, points

pytestmark = pytest.mark.book

NETWORK = re.compile(r"^(https?:)?//")
RESULTS = {  # the pages of results, and the studies that they are about
    "plane": ["plane-digits", "plane-minilm", "plane-mnist", "laptop"],
    "learning-rate": ["laptop"],
    "random-init": ["scales"],
    "controls": ["controls"],
    "minilm": ["plane-minilm", "minilm", "minilm-cifar10"],
    "smollm2": ["smollm2"],
    "other-tasks": ["laptop-rothermel2021", "laptop-lu2021"],
    "bench": ["precision"],
}


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
    for rate in page.select(".rate"):  # inside a sentence
        rate.unwrap()
    page.smooth()
    return " ".join(page.get_text(" ").split())


def pages(html: Path) -> list[Path]:
    return sorted(path for path in html.rglob("*.html") if "_static" not in path.parts)


def test_every_page_of_the_contents_is_there_and_says_something(html: Path, contents: list[str]) -> None:
    for name in contents:
        page = html / f"{name}.html"
        assert page.is_file(), name
        assert len(article(page).get_text(" ", strip=True)) > 300, name


def test_the_first_page_is_the_summary(html: Path) -> None:
    assert "book/summary.html" in (html / "index.html").read_text()


def test_the_page_of_misprints_has_every_oddity(html: Path) -> None:
    shown = set(re.findall(r"O-\d\d", words(html / "book" / "misprints.html")))
    assert shown == {name for name in claims() if name.startswith("O-")}


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


def test_internal_links_lead_somewhere(html: Path) -> None:
    for page in pages(html):
        for link in parsed(page).select("a[href]"):
            target = urlsplit(str(link["href"]))
            if target.scheme or target.netloc:
                continue
            file = (page.parent / unquote(target.path)).resolve() if target.path else page
            assert file.is_file(), f"{page.name}: {link['href']}"
            if target.fragment and file.suffix == ".html" and target.fragment != "top":
                assert unquote(target.fragment) in addresses(file), f"{page.name}: {link['href']}"


def test_nothing_is_loaded_from_a_network(html: Path) -> None:
    for page in pages(html):
        loads = [tag.get("src") for tag in parsed(page).select("script[src], img[src], iframe[src], source[src]")]
        loads += [tag.get("href") for tag in parsed(page).select("link[href]:not([rel~=canonical])")]
        assert not [url for url in loads if NETWORK.match(str(url))], page
    for style in html.rglob("*.css"):
        text = style.read_text(encoding="utf-8", errors="ignore")
        assert not re.search(r"""(@import\s+|url\()["']?(https?:)?//""", text), style


def test_no_run_was_executed_by_the_build(html: Path) -> None:
    executed = html.parent / "jupyter_execute"
    assert (executed / "book/summary.ipynb").is_file()
    assert [path.name for path in executed.iterdir()] == ["book"]


def test_a_study_without_results_says_so_in_one_line(html: Path, published: dict[str, StudyCells]) -> None:
    for page, names in RESULTS.items():
        said = words(html / f"book/{page}.html")
        for name in names:
            assert said.count(f"no results of the study {name} yet") == (name not in published), (page, name)


def test_every_published_sweep_leads_to_its_executed_notebook(html: Path, published: dict[str, StudyCells]) -> None:
    folders = {
        f"../runs/{name}/published/{folder}/notebook.ipynb"
        for name, study in published.items()
        for folder in study.results
    }
    links = [str(link["href"]) for link in article(html / "book/status.html").select("figure.fpt a[href]")]
    assert sorted(links) == sorted(folders)  # that they lead somewhere is tested with all links


def test_downloads_are_there(html: Path, published: dict[str, StudyCells]) -> None:
    files = {
        file.name: file
        for page in (html / "book/data.html", html / "book/rerun.html")
        for link in article(page).select("a.download[href]")
        for file in [(page.parent / unquote(str(link["href"]))).resolve()]
    }
    of_studies = {f"{name}-{table}" for name in published for table in ("runs.csv", "curves.parquet")}
    assert {"rothermel2021.yaml", "sweep.ipynb"} | of_studies <= set(files)
    assert all(file.stat().st_size > 300 for file in files.values())
    for name, study in published.items():
        assert len(pd.read_csv(files[f"{name}-runs.csv"])) == len(load_runs(study.folder, "published"))


def test_every_page_offers_its_notebook_or_source(html: Path, contents: list[str]) -> None:
    for name in contents:
        links = [str(link.get("href")) for link in parsed(html / f"{name}.html").select("a.btn-download-source-button")]
        assert links, name


def test_the_search_index_knows_the_chapters(html: Path) -> None:
    index = (html / "searchindex.js").read_text(encoding="utf-8")
    assert "book/learning-rate" in index
    assert "budget" in index


def test_the_summary_leads_with_what_was_asked(html: Path, published: dict[str, StudyCells]) -> None:
    said = words(html / "book/summary.html")
    linked = re.findall(
        r'<td><a href="claims.html#[a-z0-9-]+">.*?([A-Z]-\d\d)', (html / "book/summary.html").read_text()
    )
    asked = ["P-01", "P-02", "L-04", "R-01", "R-02", "R-06", "R-08", "R-27"]
    assert list(dict.fromkeys(linked)) == [*asked, "X-01", "X-02", "X-03", "P-08", "P-09"]
    planes = text.whole(published[name] for name in text.PLANES if name in published)
    shown = planes or text.whole(published[name] for name in ("laptop",) if name in published)
    assert (definitions("book/summary.md").one_rate_answer(shown.values()) if shown else "Not decided yet") in said
    for arms in planes.values():
        assert f"{points(text.gain(arms['FP'], arms['UP'])[1].mean)} (" in said
    if not shown:
        assert said.count("There are no results of the study plane-digits yet") == 1


def test_pages_say_what_the_runs_say(html: Path, published: dict[str, StudyCells]) -> None:
    shown = {"plane": ("P-01", "P-02"), "learning-rate": ("R-01", "P-03", "P-04", "P-05")}
    for page, names in shown.items():
        said = words(html / f"book/{page}.html")
        for study in (published[name] for name in RESULTS[page] if name in published):
            for part in (part for verdict in verdicts_on(names, [study]) for part in verdict.parts):
                assert difference(part) in said
                assert part.word in said


def rows_of(html: Path, page: str, head: str) -> list[dict[str, str]]:
    """The first table of the page that has this header, a mapping a row."""
    shown = next(t for t in article(html / page).select("table") if head in [th.get_text() for th in t.select("th")])
    heads = [cell.get_text() for cell in shown.select("th")]
    return [
        dict(zip(heads, [cell.get_text() for cell in row.select("td")], strict=True))
        for row in shown.select("tbody tr")
    ]


def test_every_printed_accuracy_on_listops_has_its_place(html: Path) -> None:
    expected = printed_places()
    rows = rows_of(html, "book/listops.html", "on the ladder")
    assert [(row["row"], row["on the ladder"]) for row in rows] == list(
        zip(expected["row"], expected["on the ladder"], strict=True)
    )


def test_every_claim_has_a_card_a_verdict_and_an_address(html: Path, published: dict[str, StudyCells]) -> None:
    cards = article(html / "book/claims.html").select("details.claim")
    assert [str(card["id"]).upper() for card in cards] == list(claims())
    assert sum(claims()[str(card["id"]).upper()].paper != "ours" for card in cards) == 131
    for card in cards:
        name = str(card["id"]).upper()
        words = " ".join(card.get_text(" ").split())
        assert card["data-verdict"] in words, name
        assert claims()[name].quote.split("$")[0][:40].split("\n")[0] in words, name
        heads = [head.get_text() for head in card.select("dt")]
        assert {"Where", "The rule"} <= set(heads), name
        tested = [found for found in verdicts_on([name], list(published.values())) if found.parts and found.study]
        for found in tested:
            if found.word not in LEFT_OUT:
                assert f"{found.study}: {found.word}" in words, name
                assert all(difference(part) in words for part in found.parts), name


def test_links_to_claims_lead_to_their_cards(html: Path) -> None:
    links = {
        str(link["href"]).partition("claims.html#")[2]
        for page in sorted((html / "book").glob("*.html"))
        for link in parsed(page).select('a[href*="claims.html#"]')
    }
    assert {name.lower() for name in claims() if name.startswith(("R", "O", "P-0"))} <= links


def test_no_figure_is_empty(html: Path) -> None:
    for page in sorted((html / "book").glob("*.html")):
        for image in (
            article(page).select("figure.fpt [role=img]") if parsed(page).select_one("article.bd-article") else ()
        ):
            assert "no results" not in str(image["aria-label"]), page


def test_headers_of_tables_have_names(html: Path) -> None:
    for page in sorted((html / "book").glob("*.html")):
        heads = parsed(page).select("figure.fpt th")
        assert all(head.get_text(strip=True) and head.get("scope") == "col" for head in heads), page
