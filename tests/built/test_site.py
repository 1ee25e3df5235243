"""The documentation site in a browser: its search, and its widths."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from scrapy_norobots.features.report.listing import MISPLACED
from scrapy_norobots.standard import KINDS
from tests.helpers.running.processes import ROOT

PAGES = sorted(page.stem for page in (ROOT / "docs").glob("*.md") if page.stem != "README")
# On a narrow screen, code continues below where its line begins.
LINES = """
const pre = [...document.querySelectorAll("article pre")].find(pre => pre.textContent.includes(arguments[0]))
const line = [...pre.children].find(line => line.textContent.includes(arguments[0]))
const range = document.createRange()
range.selectNodeContents(line)
const lines = new Map()
for (const box of range.getClientRects()) {
  if (box.width) lines.set(box.bottom, Math.min(box.left, lines.get(box.bottom) ?? Infinity))
}
getSelection().selectAllChildren(pre)
return [[...lines.values()].map(Math.round), getSelection().toString()]
"""
# The widest drawing is the only code that is scrolled sideways, and only on a narrow screen. The page stacks
# its tables before the first frame of a new size.
TOO_WIDE = """
requestAnimationFrame(() => arguments[0](
    [...document.querySelectorAll("article pre, article .table-wrapper")]
    .filter(block => !block.closest(".highlight-text") || innerWidth > 1000)
    .filter(block => block.scrollWidth > block.clientWidth + 1).map(block => block.textContent.slice(0, 80))
))
"""

BROKEN = """
const broken = [...document.querySelectorAll("article .short")].filter(one => one.getClientRects().length > 1)
const texts = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT)
const range = document.createRange()
while (texts.nextNode()) {
  for (const option of texts.currentNode.data.matchAll(/--[a-z-]+/g)) {
    range.setStart(texts.currentNode, option.index)
    range.setEnd(texts.currentNode, option.index + option[0].length)
    if (range.getClientRects().length > 1) broken.push(range.startContainer)
  }
}
return broken.map(one => one.textContent)
"""


@pytest.mark.parametrize(
    ("words", "page"), [("Service Unavailable", "download-failures"), ("disable robots.txt", "settings")]
)
def test_the_search_finds_what_users_type(
    words: str, page: str, site: Path, browser: webdriver.Chrome
) -> None:
    browser.get(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
    found = f"#search-results a[href*='{page}.html']"
    WebDriverWait(browser, 60).until(lambda chrome: chrome.find_elements(By.CSS_SELECTOR, found))


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("403", "download-failures"),
        ("wait", "download-failures"),
        ("Retry-After", "download-failures"),
        ("noindex", "usage"),
        ("crawl+delay", "crawl-delay"),
        ("disable", "settings"),
    ],
)
def test_the_search_finds_the_page_about_a_word_first(
    word: str, page: str, site: Path, browser: webdriver.Chrome
) -> None:
    browser.get(f"{(site / 'search.html').as_uri()}?q={word}")
    first = f"#search-results li:first-child > a[href*='{page}.html']"
    WebDriverWait(browser, 60).until(lambda chrome: chrome.find_elements(By.CSS_SELECTOR, first))


def resize(browser: webdriver.Chrome, width: int) -> None:
    # A low screen is drawn in less time.
    metrics = {"width": width, "height": 300, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def test_nothing_must_be_scrolled_sideways_and_neither_short_code_nor_an_option_is_broken(
    site: Path, browser: webdriver.Chrome
) -> None:
    wide, broken = {}, {}
    widths = [1400, 390, 320]
    for page in PAGES:
        browser.get((site / f"{page}.html").as_uri())
        widths.reverse()  # a page begins with the last width, so it is drawn only twice
        for width in widths:
            resize(browser, width)
            if found := browser.execute_async_script(TOO_WIDE):
                wide[page, width] = found
            if width == 390 and (found := browser.execute_script(BROKEN)):
                broken[page] = found
    assert (wide, broken) == ({}, {})


def test_a_wrapped_line_of_code_is_indented_and_copied_as_it_is(
    site: Path, browser: webdriver.Chrome
) -> None:
    resize(browser, 390)
    page = site / "start.html"
    browser.get(page.as_uri())
    for code in re.findall(
        r"^```\w*\n(.*?)^```$", (ROOT / "docs/start.md").read_text(), re.MULTILINE | re.DOTALL
    ):
        longest = max(code.splitlines(), key=len)
        (first, *others), copied = browser.execute_script(LINES, longest)
        assert copied.rstrip() == code.removeprefix("$ ").rstrip()  # a prompt cannot be selected
        assert bool(others) == (len(longest) > 42)
        assert all(left > first for left in others)


def test_a_stacked_table_names_the_columns(site: Path, browser: webdriver.Chrome) -> None:
    resize(browser, 390)
    browser.get((site / "download-failures.html").as_uri())
    cells = browser.find_elements(By.CSS_SELECTOR, "table.stacked tr:first-child td")
    shown = [(cell.get_attribute("data-column"), cell.text) for cell in cells if cell.is_displayed()]
    assert shown[:2] == [("the download ends with:", "2xx"), ("koster1996 (default):", "rules")]


def test_the_report_links_to_each_kind_of_finding(site: Path, browser: webdriver.Chrome) -> None:
    script = files("scrapy_norobots.features.report").joinpath("page.js").read_text("utf-8")
    (link,) = re.findall(r"`\$\{docs\}(standard\.html#\S+)\$\{kind\}`", script)
    browser.get((site / "standard.html").as_uri())
    for kind in (*KINDS, MISPLACED):
        page, _, anchor = f"{link}{kind}".partition("#")
        assert page == "standard.html"
        place = browser.find_element(By.ID, anchor)
        assert place.find_element(By.TAG_NAME, "code").text == kind


def test_an_image_is_a_link_to_its_file(site: Path, browser: webdriver.Chrome) -> None:
    for page in ("report", "index"):
        browser.get((site / f"{page}.html").as_uri())
        for image in browser.find_elements(By.CSS_SELECTOR, "article img"):
            link = image.find_element(By.XPATH, "..")
            assert link.get_attribute("href") == image.get_attribute("src")


def test_no_page_has_a_link_to_edit_it_before_the_repository_has_an_address(site: Path) -> None:
    placeholder = "/OWNER/" in (ROOT / "pyproject.toml").read_text()
    for page in PAGES:
        assert ("Edit this page" in (site / f"{page}.html").read_text()) != placeholder
