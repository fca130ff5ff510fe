"""The frame of the built book: what a page says to search engines, old addresses, and what stands once on a page."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from chromium import CHROMIUM, DRIVER
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

pytestmark = pytest.mark.book
ROOT = Path(__file__).parents[2]
MOVED: dict[str, str] = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["redirects"]
TABLES = """
return [...document.querySelectorAll("article table")].filter((table) => {
  const box = table.closest(".fpt-scroll, .pst-scrollable-table-container, .cell_output") || table;
  return box.getBoundingClientRect().right > document.querySelector("article").getBoundingClientRect().right + 1;
}).length
"""


@cache
def parsed(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


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


@pytest.mark.browser
def test_no_table_is_wider_than_its_page(html: Path, contents: list[str]) -> None:
    assert CHROMIUM is not None and DRIVER is not None  # noqa: PT018 - for the types
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu"):
        options.add_argument(f"--{argument}")
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        for width in (390, 1280, 1400, 1600, 1920):
            view = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", view)
            for name in contents:
                driver.get((html / f"{name}.html").as_uri())
                assert driver.execute_script(TABLES) == 0, (name, width)
    finally:
        driver.quit()
