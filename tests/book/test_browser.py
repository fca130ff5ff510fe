"""The built book in a browser: the explorer with every number that it shows, and what a page does and says in it.

Chromium without a window, led by Selenium; axe-core (tests/axe) looks for what keeps readers out.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pandas as pd
import pytest
import synthetic
from bs4 import BeautifulSoup
from chromium import CHROMIUM, DRIVER
from processes import PATIENCE
from seaborn.utils import relative_luminance
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from fpt.models import ARMS
from fpt.papers import claims, findings
from fpt.results import StudyCells
from fpt.results.estimate import MINUS
from fpt.show import report, word

pytestmark = [pytest.mark.book, pytest.mark.browser, pytest.mark.timeout(1200)]  # half a minute, if nothing else runs

TOO_NARROW, NARROW, WIDE = 240, 375, 1400  # pixels; at the first of them figures must scroll
WIDTHS = (1280, 1600, 1920, WIDE)
AXE = Path(__file__).parents[1] / "axe" / "axe.min.js"
BARRIERS = ("serious", "critical")
SHOWN = """
const all = (from, of) => [...from.querySelectorAll(of)], root = document.querySelector(".fpt-explorer");
const look = (cell) => ["sure", "open"].find((name) => cell.classList.contains(name)) || "";
return {
  points: all(root, ".point").map((point) => point.getAttribute("aria-label")),
  plane: all(root, "tbody tr").map((row) => [
    row.querySelector("th").textContent, all(row, "td").map((cell) => [cell.textContent, look(cell)])]),
  said: root.querySelector(".said").textContent,
}
"""
EVERY_CHOICE = f"""
const shown = () => {{ {SHOWN} }};
const control = (name) => document.getElementById(`explorer-${{name}}`);
const options = (name) => [...control(name).options].map((option) => option.text);
const choose = (name, place, event, field) => {{
  control(name)[field] = place;
  control(name).dispatchEvent(new Event(event));
  return shown();
}};
const take = (name, place) => choose(name, place, "change", "selectedIndex");
const walk = (name, see) => options(name).map((text, place) => see(text, take(name, place)));
const budgets = () => [...Array(Number(control("budget").max) + 1).keys()];
return walk("task", (task) => walk("model", () => ({{
  task,
  planes: walk("pair", (pair, {{plane}}) => [pair, plane]),
  points: budgets().map((place) => choose("budget", place, "input", "value").points),
}}))).flat();
"""
UNDER_THE_BAR = """
const bar = document.querySelector(".bd-header-article"), place = document.getElementById(arguments[0]);
return [place.getBoundingClientRect().top, Math.max(0, bar.getBoundingClientRect().bottom)];
"""
TYPESET = """
const all = (of) => [...document.querySelectorAll(`article ${of}`)];
const paragraphs = all("p, li, h1, h2, h3").filter((each) => !each.closest("figure, details, nav, .fpt-explorer"));
const bare = paragraphs.flatMap((each) => {
  const copy = each.cloneNode(true);
  for (const inside of copy.querySelectorAll(".rate, code, pre, p, li, .math")) inside.remove();
  return copy.textContent.match(/\\b\\d+(\\.\\d+)?e-\\d+\\b/g) || [];
});
const torn = all(".rate").filter((each) => each.getClientRects().length > 1);
const prose = all("p").map((each) => {
  const copy = each.cloneNode(true);
  for (const inside of copy.querySelectorAll("code, .math")) inside.remove();
  return copy.textContent;
});
const explained = all("abbr").some((each) => each.title.length > 5 && each.textContent === "FP");
const unexplained = explained ? [] : prose.filter((each) => /\\bFP\\b/.test(each));
return [...torn.map((each) => each.textContent), ...bare, ...unexplained];
"""
TOP = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
FOCUSED = """
const here = document.activeElement, {outlineStyle, outlineWidth} = getComputedStyle(here);
return [here.id || here.className.baseVal || here.tagName.toLowerCase(), outlineStyle, parseFloat(outlineWidth)];
"""
MOVES = """
return [".fpt-explorer .plane", ".fpt-explorer p", "section:has(.fpt-explorer) > h2"].map(
  (each) => (document.querySelector(each)?.getBoundingClientRect().height || 0) > 0);
"""
SCROLLING = "return [...document.querySelectorAll('.fpt-scroll')].map((each) => "
SCROLLING += "[each.scrollWidth > each.clientWidth, each.tabIndex])"
OUTSIDE = """
return [...document.querySelectorAll("article table")].filter((table) => {
  const box = table.closest(".fpt-scroll, .pst-scrollable-table-container, .cell_output") || table;
  return box.getBoundingClientRect().right > document.querySelector("article").getBoundingClientRect().right + 1;
}).map((table) => `${innerWidth} pixels: ${table.textContent.slice(0, 80)}`);
"""
COLOURS_OF_FIGURES = """
const numbers = (colour) => colour.match(/[0-9.]+/g).slice(0, 3).map(Number), page = getComputedStyle(document.body);
const all = (of, property) => [...new Set([...document.querySelectorAll(`figure.fpt .fpt-panels svg ${of}`)].map(
  (each) => getComputedStyle(each)[property]))].filter((colour) => colour.startsWith("rgb")).map(numbers);
return [numbers(page.color), numbers(page.backgroundColor), all("text", "fill"), all("path", "stroke")];
"""
WIDE_TABLES = """
for (const each of document.querySelectorAll("article details")) each.open = true;
const scrolls = ".fpt-scroll, .pst-scrollable-table-container, .dt-layout-cell, .cell_output .output";
const frames = [...document.querySelectorAll(scrolls)];
const tables = frames.filter((each) => each.querySelector("table"));
const hidden = [...document.querySelectorAll("table.cards td")].filter(
  (each) => each.textContent.trim() && !each.getClientRects().length);
const right = (each) => each.getBoundingClientRect().right;
const over = [...document.querySelectorAll("table.cards td code")].filter(
  (each) => right(each) > right(each.closest("td")) + 1);
return [...tables.filter((each) => each.scrollWidth > each.clientWidth + 1), ...hidden, ...over].map(
  (each) => each.textContent.slice(0, 80));
"""
NOTE_SORTED = """
const [table] = arguments;
table.isSorted = false;
table.addEventListener("sort-end", () => { table.isSorted = true }, {once: true});
"""
CARDS = "return [...document.querySelectorAll('details.claim:not([hidden])')].map((card) => card.id.toUpperCase())"
WITHOUT_TRANSITIONS = """
const style = document.createElement("style");
style.textContent = "*, *::before, *::after { transition: none !important }";
document.head.append(style);
"""
FIND = """
const [options, done] = arguments;
const all = {preload: false, resultTypes: ["violations"], ...options};
axe.run(document, all).then(({violations}) => done(violations.flatMap(
  ({id, impact, nodes}) => nodes.map(({target, failureSummary}) => [impact, `${id}: ${target} ${failureSummary}`]))));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    assert CHROMIUM is not None and DRIVER is not None  # noqa: PT018 - for the types
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))  # named: Selenium would download one
    driver.set_script_timeout(180)  # axe-core on the longest page, on a busy machine
    yield driver
    driver.quit()


def wide(browser: webdriver.Chrome, pixels: int) -> None:
    view = {"width": pixels, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", view)


# --- every page


@dataclass(frozen=True)
class Visit:
    """What happened on a page: complaints in the console, addresses asked for, barriers, tables outside the page at
    some width; on a phone the width of the page, rates torn or without their mark, abbreviations without words, and
    what of a table is to be scrolled to or hidden."""

    console: list[str]
    requests: list[str]
    barriers: list[str]
    outside: list[str]
    width: int
    typeset: list[str]
    cut: list[str]


def visit(browser: webdriver.Chrome, page: Path) -> Visit:
    wide(browser, WIDE)
    browser.get(page.as_uri())
    browser.execute_script(AXE.read_text(encoding="utf-8") + WITHOUT_TRANSITIONS)
    barriers = []
    for theme, options in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):  # what differs in the dark
        browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        found = browser.execute_async_script(FIND, options)
        barriers += [f"{theme}: {words}" for impact, words in found if impact in BARRIERS]
    outside = []
    for pixels in (*WIDTHS, NARROW):
        wide(browser, pixels)
        outside += browser.execute_script(OUTSIDE)
    width = browser.execute_script("return document.documentElement.scrollWidth")
    typeset, cut = (browser.execute_script(script) for script in (TYPESET, WIDE_TABLES))
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]
    said = [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    return Visit(said, sent, barriers, outside, width, typeset, cut)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each page of the built book, so that a failure names it. Of pages that have moved one is enough."""
    if "page" in metafunc.fixturenames:
        html = Path(os.environ.get("FPT_BOOK") or "nowhere").resolve()
        pages = [page for page in sorted(html.rglob("*.html")) if "_static" not in page.parts]
        moved = [page for page in pages if "<title>This page has moved</title>" in page.read_text(encoding="utf-8")]
        visited = [page for page in pages if page not in moved[1:]]
        metafunc.parametrize("page", visited, ids=[str(page.relative_to(html)) for page in visited])


def is_for_everybody(browser: webdriver.Chrome, page: Path) -> None:
    found = visit(browser, page)
    assert (found.console, found.barriers, found.outside, found.typeset, found.cut) == ([], [], [], [], [])
    assert found.width <= NARROW, "it scrolls sideways on a phone"
    assert page.as_uri() in found.requests
    assert [url for url in found.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_a_page_has_no_barrier_no_request_no_complaint_and_fits_a_phone(browser: webdriver.Chrome, page: Path) -> None:
    is_for_everybody(browser, page)


# --- figures and tables, on the page that `fpt report` writes and in the book


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a made-up study."""
    folder = tmp_path_factory.mktemp("workspace")
    page = folder / "report.html"
    page.write_text(report(StudyCells(synthetic.finish(synthetic.workspace(folder)))), encoding="utf-8")
    return page


def test_a_report_is_for_everybody_too(browser: webdriver.Chrome, reported: Path) -> None:
    is_for_everybody(browser, reported)


def sort_by(browser: webdriver.Chrome, table: Any, head: str) -> list[str]:
    """The column under a header after Enter on it, which the keyboard has reached."""
    buttons = table.find_elements(By.CSS_SELECTOR, "th button")
    names = [button.text.strip(" \u25b2\u25bc") for button in buttons]
    browser.execute_script("arguments[0].focus()", buttons[0])
    for _ in range(names.index(head)):
        browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.execute_script(FOCUSED)[1] != "none"
    browser.execute_script(NOTE_SORTED, table)
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    # the script sorts a moment after the key
    WebDriverWait(browser, PATIENCE).until(lambda _: browser.execute_script("return arguments[0].isSorted", table))
    cells = table.find_elements(By.CSS_SELECTOR, f"td:nth-child({names.index(head) + 1})")
    return [cell.get_attribute("textContent") for cell in cells]


@contextmanager
def without_scripts(browser: webdriver.Chrome) -> Iterator[None]:
    """The page loaded again with its scripts off. The driver does not wait for such a page to load: this does."""
    before = browser.find_element(By.TAG_NAME, "html")
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.refresh()
        wait = WebDriverWait(browser, PATIENCE)
        wait.until(staleness_of(before))
        wait.until(lambda browser: browser.execute_script("return document.readyState") == "complete")
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_tables_are_sorted_with_the_keyboard_by_their_numbers(browser: webdriver.Chrome, reported: Path) -> None:
    wide(browser, WIDE)
    browser.get(reported.as_uri())
    tables = browser.find_elements(By.CSS_SELECTOR, "table.sortable")
    table = next(each for each in tables if "difference" in each.text)
    before = [cell.get_attribute("textContent") for cell in table.find_elements(By.CSS_SELECTOR, "td:nth-child(5)")]
    up = sort_by(browser, table, "difference")
    assert table.find_element(By.CSS_SELECTOR, "th[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert up == sorted(before, key=lambda text: float(text.replace(MINUS, "-")))
    assert up != sorted(before), "sorted as text"
    assert sort_by(browser, table, "difference") == up[::-1]
    assert table.find_element(By.CSS_SELECTOR, "th[aria-sort]").get_attribute("aria-sort") == "descending"


def test_a_long_table_is_searched(browser: webdriver.Chrome, html: Path) -> None:
    browser.get((html / "book/deviations.html").as_uri())
    wait = WebDriverWait(browser, PATIENCE)
    box = wait.until(lambda browser: browser.find_elements(By.CSS_SELECTOR, ".fpt-searchable input"))[0]
    box.send_keys("smollm2")
    table = browser.find_element(By.CSS_SELECTOR, ".fpt-searchable table.dataTable")
    wait.until(lambda _: all("smollm2" in row.text.lower() for row in table.find_elements(By.CSS_SELECTOR, "tbody tr")))
    assert "filtered from" in browser.find_element(By.CSS_SELECTOR, ".fpt-searchable .dt-info").text


def test_frames_that_scroll_are_reached_with_the_keyboard(browser: webdriver.Chrome, reported: Path) -> None:
    browser.get(reported.as_uri())
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    for pixels in (WIDE, NARROW, TOO_NARROW):
        wide(browser, pixels)
        WebDriverWait(browser, PATIENCE).until(
            lambda _: all(scrolls == (tab == 0) for scrolls, tab in browser.execute_script(SCROLLING))
        )
    assert any(scrolls for scrolls, _ in browser.execute_script(SCROLLING))


def test_the_data_of_a_figure_are_downloaded(browser: webdriver.Chrome, reported: Path, tmp_path: Path) -> None:
    to = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", to)
    browser.get(reported.as_uri())
    links = browser.find_elements(By.LINK_TEXT, "data (CSV)")
    names = [str(link.get_attribute("download")) for link in links]
    place = names.index("learning_rate_figure-laptop.csv")
    links[place].send_keys(Keys.ENTER)
    file = tmp_path / names[place]
    WebDriverWait(browser, PATIENCE).until(lambda _: file.is_file() and file.stat().st_size > 0)
    assert len(pd.read_csv(file)) == 6 * 4 * 8  # sweeps x rates x seeds


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_have_the_colour_of_the_text_around_them(browser: webdriver.Chrome, reported: Path, theme: str) -> None:
    try:
        feature = {"name": "prefers-color-scheme", "value": theme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        browser.get(reported.as_uri())
        text, background, fills, strokes = browser.execute_script(COLOURS_OF_FIGURES)
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert contrast(text, background) > 7
    assert (background[0] < 60) == (theme == "dark")
    assert text in fills
    assert text in strokes  # axes
    on_colours = ([255, 255, 255], [1, 1, 1])  # in the cells of the plane, which are the same in both
    assert all(fill == text or fill in on_colours for fill in fills)


def contrast(one: list[int], other: list[int]) -> float:
    """By WCAG, of two colours of 0 to 255."""
    low, high = sorted(relative_luminance(tuple(part / 255 for part in each)) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


# --- the explorer


@dataclass(frozen=True)
class Explorer:
    """The page as a reader works it."""

    browser: webdriver.Chrome

    def choices(self, name: str) -> list[str]:
        return [option.text for option in Select(self.control(name)).options]

    def choose(self, name: str, text: str) -> None:
        Select(self.control(name)).select_by_visible_text(text)

    def move(self, name: str, place: int) -> None:
        self.control(name).send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * place)

    def control(self, name: str) -> Any:
        return self.browser.find_element(By.ID, f"explorer-{name}")

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = self.browser.execute_script(SHOWN)
        return found

    def press(self, *keys: str) -> None:
        self.browser.switch_to.active_element.send_keys(*keys)


@pytest.fixture
def explorer(browser: webdriver.Chrome, html: Path) -> Explorer:
    wide(browser, WIDE)
    browser.get((html / "book/map.html").as_uri())
    return Explorer(browser)


@pytest.fixture(scope="module")
def models(html: Path) -> list[dict[str, Any]]:
    """What the page has the explorer show; tests/show/test_explorer.py compares such data with the tables."""
    page = BeautifulSoup((html / "book/map.html").read_text(encoding="utf-8"), "html.parser")
    return json.loads(page.select_one(".fpt-explorer script").string)


def in_the_plane(pair: dict[str, Any], budget: int, rate: str) -> list[str]:
    """Text and look of a cell."""
    _, text, _, look = pair["plane"].get(str(budget), {}).get(rate, [0, "–", "", ""])
    return [text + "*" * (look == "sure"), look]


def in_the_chart(model: dict[str, Any], budget: int) -> set[str]:
    """Every point."""
    return {
        f"{arm['name']} at {rate}: {text}"
        for arm in model["arms"].values()
        for rate, (mean, _, _, text) in arm["points"].get(str(budget), {}).items()
        if mean is not None
    }


def names_of(model: dict[str, Any], pair: dict[str, Any]) -> list[str]:
    return [model["arms"][arm]["name"] for arm in pair["arms"]]


def test_every_choice_shows_its_numbers(explorer: Explorer, models: list[dict[str, Any]]) -> None:
    """In one script: other tests choose by mouse and keyboard."""
    looks = set()
    found = explorer.browser.execute_script(EVERY_CHOICE)
    tasks = explorer.choices("task")
    for shown, model in zip(found, sorted(models, key=lambda each: tasks.index(each["task"])), strict=True):
        rates, budgets = model["rates"][::-1], model["budgets"]
        assert shown["task"] == model["task"]
        for (words, plane), pair in zip(shown["planes"], model["pairs"], strict=True):
            assert words == " minus ".join(names_of(model, pair))
            expected = [[rate, [in_the_plane(pair, budget, rate) for budget in budgets]] for rate in rates]
            assert plane == expected
            looks |= {look for _, line in expected for _, look in line}
        for points, budget in zip(shown["points"], budgets, strict=True):
            assert set(points) == in_the_chart(model, budget)
    assert {"sure", "open"} <= looks


def test_sliders_move_the_winner(explorer: Explorer, models: list[dict[str, Any]]) -> None:
    model, *_ = models
    pair, *_ = model["pairs"]
    leaders = set()
    for of_budget, budget in enumerate(model["budgets"]):
        explorer.move("budget", of_budget)
        for rate, (mean, text, around, look) in pair["plane"][str(budget)].items():
            explorer.move("rate", model["rates"].index(rate))
            said = explorer.shown()["said"]
            ahead = names_of(model, pair)[mean <= 0]
            leads = "too close to call" if look == "open" else f"{ahead} leads"
            leaders.add(leads)
            assert said.startswith(f"At learning rate {rate} after {budget:,} steps: {leads}.")
            assert f"{text} points (95% interval {around})" in said
            first, second = (model["arms"][arm]["points"][str(budget)][rate][3] for arm in pair["arms"])
            assert f"{first} and {second}" in said
            tuned, interval, _ = pair["tuned"][str(budget)]
            assert f"Each at its own rate: {tuned} points ({interval})" in said
    assert len(leaders) > 1


def test_the_keyboard_alone_suffices(explorer: Explorer) -> None:
    explorer.browser.execute_script("const h = document.querySelector('h1'); h.tabIndex = -1; h.focus()")
    reached = []
    while "explorer-rate" not in reached:
        explorer.press(Keys.TAB)
        name, outline, width = explorer.browser.execute_script(FOCUSED)
        reached.append(name)
        if name.startswith("explorer-"):
            assert outline != "none", name
            assert width >= 2, name
    controls = ["task", "model", "pair", "budget", "rate"]
    assert reached[-5:] == [f"explorer-{name}" for name in controls]
    said = [explorer.shown()["said"]]

    explorer.press(Keys.HOME)  # the lowest rate
    said.append(explorer.shown()["said"])
    explorer.press(Keys.TAB)  # to the chart
    assert explorer.browser.execute_script(FOCUSED)[0] == "point"
    labels = [explorer.browser.find_element(By.CSS_SELECTOR, ".fpt-explorer .label").text]
    explorer.press(Keys.ARROW_RIGHT)
    labels.append(explorer.browser.find_element(By.CSS_SELECTOR, ".fpt-explorer .label").text)
    assert set(labels) <= set(explorer.shown()["points"])
    assert labels[0] != labels[1]

    explorer.press(Keys.TAB)  # to the plane
    explorer.press(Keys.ARROW_UP)
    said.append(explorer.shown()["said"])
    explorer.press(Keys.ARROW_LEFT)
    said.append(explorer.shown()["said"])
    assert len(set(said)) == len(said)
    assert explorer.browser.execute_script(FOCUSED)[0] == "button"

    explorer.press(*[Keys.SHIFT + Keys.TAB + Keys.NULL] * 4)  # back to the pair
    assert explorer.browser.execute_script(FOCUSED)[0] == "explorer-pair"
    explorer.press(Keys.ARROW_DOWN)
    assert explorer.choices("pair")[1] in explorer.shown()["said"].lower()


def test_an_address_chooses_what_is_shown(explorer: Explorer, html: Path) -> None:
    browser = explorer.browser
    browser.get_log("browser")
    browser.get((html / "book/map.html").as_uri() + "#study=plane-digits&arms=FP,UR&rate=3e-3&budget=750")
    assert explorer.shown()["said"].startswith("At learning rate 3e-3 after 750 steps: ")
    chosen = Select(explorer.control("pair")).first_selected_option.text
    assert chosen == f"{ARMS['unfrozen-random'].label} minus {ARMS['frozen-pretrained'].label}"
    assert "plane-digits" in browser.find_element(By.CSS_SELECTOR, ".fpt-explorer .about").text
    assert 0 <= browser.execute_script(TOP, ".fpt-explorer") < 200, "the explorer is in view"
    for link in browser.find_elements(By.CSS_SELECTOR, "article a[href^='#study=']"):
        asked = dict(parse_qsl(str(link.get_dom_attribute("href"))[1:]))
        browser.execute_script("arguments[0].click()", link)
        WebDriverWait(browser, PATIENCE).until(
            lambda _, study=asked["study"]: study in browser.find_element(By.CSS_SELECTOR, ".fpt-explorer .about").text
        )
        assert explorer.shown()["said"].startswith(f"At learning rate {asked['rate']} after ")
    before = explorer.shown()
    browser.execute_script("location.hash = 'study=no-such-study&rate=7'")
    assert explorer.shown() == before
    assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []


def test_the_address_follows_what_is_chosen(explorer: Explorer, models: list[dict[str, Any]]) -> None:
    browser, seen = explorer.browser, {}
    alike = [each for each in models if (each["study"], each["name"]) == ("recipe", "mnist")]
    assert len(alike) > 1
    for model in alike:
        explorer.choose("task", model["task"])
        explorer.choose("model", model["model"])
        explorer.choose("pair", explorer.choices("pair")[-1])
        explorer.move("budget", 0)
        explorer.move("rate", 1)
        seen[browser.execute_script("return location.hash")] = explorer.shown()
    assert len(seen) == len(alike)
    for address, shown in seen.items():
        browser.execute_script("location.hash = arguments[0]", address)
        WebDriverWait(browser, PATIENCE).until(lambda _, shown=shown: explorer.shown() == shown)


def test_on_a_phone_its_map_comes_first(explorer: Explorer) -> None:
    order = [".fpt-explorer .plane", ".fpt-explorer .controls"]
    tops = [explorer.browser.execute_script(TOP, each) for each in order]
    assert tops[0] > tops[1]
    wide(explorer.browser, NARROW)
    WebDriverWait(explorer.browser, PATIENCE).until(
        lambda browser: browser.execute_script(TOP, order[0]) < browser.execute_script(TOP, order[1])
    )


def test_it_is_left_out_on_paper_and_a_line_stands_for_it_without_scripts(explorer: Explorer) -> None:
    browser = explorer.browser
    assert browser.execute_script(MOVES) == [True, True, True]
    try:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert browser.execute_script(MOVES) == [False, False, False]
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    with without_scripts(browser):
        assert browser.execute_script(MOVES) == [False, True, True]


STILL = """
const shown = (of) => [...document.querySelectorAll(of)].map((each) => each.getBoundingClientRect().height > 50);
return [shown(".fpt-picture > figure.fpt"), shown(".fpt-picture .small")];
"""


def test_the_picture_of_the_first_page_moves_where_it_can(browser: webdriver.Chrome, html: Path) -> None:
    """Each panel by itself; on paper and without scripts it is a figure."""
    wide(browser, WIDE)
    browser.get((html / "book/freeze.html").as_uri())
    panels = browser.find_elements(By.CSS_SELECTOR, ".fpt-explorer.small")
    before = [panel.find_element(By.CLASS_NAME, "said").text for panel in panels]
    assert [text.startswith("At learning rate 1e-3 after ") for text in before] == [True, True]
    panels[1].find_element(By.CSS_SELECTOR, "input[id$=-rate]").send_keys(Keys.END)
    after = [panel.find_element(By.CLASS_NAME, "said").text for panel in panels]
    assert (after[0], after[1] != before[1]) == (before[0], True)
    assert browser.execute_script("return location.hash") == ""
    assert browser.execute_script(STILL) == [[False], [True, True]]
    try:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert browser.execute_script(STILL) == [[True], [False, False]]
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    with without_scripts(browser):
        assert browser.execute_script(STILL) == [[True], [False, False]]


# --- the claims


@pytest.fixture
def cards(browser: webdriver.Chrome, html: Path) -> webdriver.Chrome:
    wide(browser, WIDE)
    browser.get((html / "book/claims.html").as_uri())
    WebDriverWait(browser, PATIENCE).until(lambda browser: browser.find_elements(By.CLASS_NAME, "fpt-filter"))
    return browser


def seen(browser: webdriver.Chrome) -> list[str]:
    """The claims that are shown."""
    found: list[str] = browser.execute_script(CARDS)
    return found


def test_claims_are_filtered_by_paper_and_verdict(cards: webdriver.Chrome) -> None:
    assert sorted(seen(cards)) == sorted(claims())
    verdicts = Select(cards.find_element(By.ID, "claims-verdict"))
    verdicts.select_by_visible_text("read, not tested")
    documentary = {name for name in claims() if word(name).word == "read, not tested"}
    assert set(seen(cards)) == documentary
    Select(cards.find_element(By.ID, "claims-paper")).select_by_visible_text("Rothermel et al.")
    both = {name for name in documentary if claims()[name].paper == "rothermel2021"}
    assert set(seen(cards)) == both
    said = cards.find_element(By.CSS_SELECTOR, ".fpt-filter [role=status]").text
    assert said == f"{len(both)} of {len(claims())} claims are shown."
    for section in cards.find_elements(By.CSS_SELECTOR, ".fpt-claims section"):
        if section.is_displayed():
            assert section.find_elements(By.CSS_SELECTOR, "details.claim:not([hidden])")


def test_an_address_opens_its_claim_whatever_is_filtered(cards: webdriver.Chrome) -> None:
    Select(cards.find_element(By.ID, "claims-paper")).select_by_visible_text("Lu et al.")
    assert not cards.find_element(By.ID, "r-01").is_displayed()
    cards.execute_script("location.hash = 'R-01'")
    WebDriverWait(cards, PATIENCE).until(
        lambda browser: browser.find_element(By.CSS_SELECTOR, "#r-01 dl").is_displayed()
    )
    assert sorted(seen(cards)) == sorted(claims())


def test_claims_are_reached_and_opened_by_keyboard(cards: webdriver.Chrome) -> None:
    cards.execute_script("const h = document.querySelector('h1'); h.tabIndex = -1; h.focus()")
    reached: list[str] = []
    while not reached or reached[-1] != "summary":
        cards.switch_to.active_element.send_keys(Keys.TAB)
        name, outline, width = cards.execute_script(FOCUSED)
        reached.append(name)
        if name.startswith("claims-") or name == "summary":
            assert outline != "none", name
            assert width >= 2, name
    assert [name for name in reached if name.startswith("claims-")] == [
        "claims-paper",
        "claims-verdict",
    ]
    cards.switch_to.active_element.send_keys(Keys.ENTER)
    assert cards.execute_script("return document.querySelector('details.claim').open") is True


def test_a_finding_and_a_claim_have_an_address_that_no_bar_hides(browser: webdriver.Chrome, html: Path) -> None:
    wide(browser, WIDE)
    page = (html / "book/claims.html").as_uri()
    for address, place in [(f"finding-{list(findings())[5]}",) * 2, ("L-04", "l-04"), ("p-02", "p-02")]:
        browser.get("about:blank")
        browser.get(f"{page}#{address}")
        top, bar = WebDriverWait(browser, PATIENCE).until(lambda _, place=place: settled(browser, place))
        assert bar <= top < 300, address


def settled(browser: webdriver.Chrome, place: str) -> list[float] | None:
    """Where a place is in the window, and where the bar at its top ends, once the page was scrolled to it."""
    tops: list[float] = browser.execute_script(UNDER_THE_BAR, place)
    return tops if tops[0] < 1000 else None


def test_printing_opens_what_is_folded_but_no_code(cards: webdriver.Chrome) -> None:
    folded = "return [...document.querySelectorAll('article details')].map((each) => [each.open, "
    folded += "each.matches('.hide'), each.getBoundingClientRect().height > 0])"
    before = cards.execute_script(folded)
    assert {opened for opened, _, _ in before} == {False}
    cards.execute_script(f"addEventListener('beforeprint', () => {{ window.printed = (() => {{ {folded} }})() }})")
    cards.execute_cdp_cmd("Page.printToPDF", {"pageRanges": "1"})
    printed = cards.execute_script("return window.printed")
    assert all(opened != code for opened, code, _ in printed)
    assert len(printed) > len(claims())
    assert cards.execute_script(folded) == before, "and as it was afterwards"
    try:
        cards.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert not any(shown for _, code, shown in cards.execute_script(folded) if code), "no code on paper"
    finally:
        cards.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_scripts_the_claims_are_the_whole_list(cards: webdriver.Chrome) -> None:
    with without_scripts(cards):
        assert sorted(seen(cards)) == sorted(claims())
        assert not cards.find_elements(By.CSS_SELECTOR, ".fpt-filter")


def test_the_first_page_answers_on_the_first_screen_of_a_phone(
    browser: webdriver.Chrome, html: Path, contents: list[str]
) -> None:
    wide(browser, NARROW)
    browser.get((html / f"{contents[0]}.html").as_uri())
    top = "return document.querySelector('article.bd-article p').getBoundingClientRect().top"
    assert browser.execute_script(top) <= 667
