"""The robots.txt that a row of the report opens, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.crawls.test_page import HOSTILE, complaints
from tests.helpers.running.crawling import crawl, with_report
from tests.helpers.sites import Answer, Site

pytestmark = pytest.mark.xdist_group("browser")

ROBOTS = """\
# of a town
User-agent: *
Disallow: /staff/
Allow: /staff/open
Disallow: /*.gif$

Disalow: /attic/
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a crawl of a town, a hostile site and one that is closed."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    lines = ["User-agent: *", *(f"Disallow: /{text}" for text in HOSTILE), "", *HOSTILE, "x" * 5_000]
    with Site(ROBOTS) as town, Site("\n".join(lines)) as hostile, Site(Answer(status=503)) as shut:
        crawl(
            *(f"{town.url}/{path}" for path in ("staff/1", "staff/2", "a.gif", "a")),
            *(f"{hostile.url}/{quote(text, safe='/&;$=()!*+,:@')}" for text in HOSTILE),
            f"{shut.url}/",
            settings=with_report(file, file.with_suffix(".json"), NOROBOTS_ALSO_OBEY=["rfc9309"]),
        )
    return file


def buttons(browser: webdriver.Chrome, report: Path) -> dict[str, WebElement]:
    """Open the page, and return what opens the two files; the hostile site had most drops."""
    browser.get(report.as_uri())
    hostile, town = browser.find_elements(By.CSS_SELECTOR, "#rows-table tbody button")
    return {"hostile": hostile, "town": town}


def line(browser: webdriver.Chrome, number: int) -> tuple[str, str, set[str]]:
    """Return what stands before and in a line, and its classes."""
    row = browser.find_element(By.ID, f"line-{number}")
    drops, _, text = row.find_elements(By.XPATH, "*")
    return drops.text, text.text, set((row.get_attribute("class") or "").split())


def test_the_file_is_in_the_data_too(report: Path) -> None:
    facts = json.loads(report.with_suffix(".json").read_text())
    assert len(facts["rows"]) == 3
    _, town = facts["files"]
    assert town["lines"] == ROBOTS.splitlines()
    assert town["drops"] == {"3": 2, "5": 0}


def test_a_row_opens_the_file_as_its_reader_saw_it(browser: webdriver.Chrome, report: Path) -> None:
    buttons(browser, report)["town"].click()
    assert browser.find_element(By.ID, "file-title").text.endswith("/robots.txt")
    about = browser.find_element(By.ID, "file-about").text
    assert about.startswith(
        "As read for Scrapy by StrictRobotParser and ProtegoRobotParser. "
        "Dropped, but not counted at a line: 1 ("
    )
    assert line(browser, 1) == ("", "# of a town", set())
    drops, text, classes = line(browser, 2)
    assert (drops, classes) == ("", {"applies"})
    assert "the record for Scrapy" in text
    assert line(browser, 3) == ("2", "Disallow: /staff/", {"applies", "dropped"})
    assert "Another reading: ProtegoRobotParser allows /staff/open." in line(browser, 4)[1]
    drops, text, classes = line(browser, 5)
    assert drops == "0"
    assert "Another reading: ProtegoRobotParser forbids /x.gif." in text
    drops, text, classes = line(browser, 7)
    assert (drops, classes) == ("", {"idle"})
    assert "No effect: " in text
    assert "Write 'Disallow: /attic/'." in text
    assert complaints(browser) == []


def test_a_site_without_a_file_opens_nothing(browser: webdriver.Chrome, report: Path) -> None:
    buttons(browser, report)
    rows = browser.find_elements(By.CSS_SELECTOR, "#rows-table tbody tr")
    without = [row for row in rows if not row.find_elements(By.TAG_NAME, "button")]
    assert ["closed (5xx)" in row.text for row in without] == [True]


def test_a_file_is_opened_and_closed_by_keys(browser: webdriver.Chrome, report: Path) -> None:
    button = buttons(browser, report)["town"]
    button.send_keys(Keys.ENTER)
    dialog = browser.find_element(By.ID, "file")
    assert dialog.is_displayed()
    active = browser.switch_to.active_element
    assert active.get_attribute("id") == "close"
    active.send_keys(Keys.TAB)
    assert "file-scroll" in (browser.switch_to.active_element.get_attribute("class") or "")
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not dialog.is_displayed()
    assert browser.switch_to.active_element == button
    button.send_keys(Keys.SPACE)
    browser.find_element(By.ID, "close").click()
    assert not dialog.is_displayed()


def test_what_a_site_wrote_is_text_there_too(browser: webdriver.Chrome, report: Path) -> None:
    buttons(browser, report)["hostile"].click()
    text = browser.find_element(By.ID, "lines").text
    assert browser.execute_script("return window.pwned") is None
    assert browser.execute_script("return [document.scripts.length, document.images.length]") == [3, 0]
    assert text.replace("\n", "").isprintable()
    for shown in (
        "</script><script>window.pwned=1</script>",
        "<img/src=x/onerror=window.pwned=1>",
        "${pwned}$spider",
    ):
        assert f"Disallow: /{shown}" in text or shown in text
    assert browser.execute_script('return performance.getEntriesByType("resource").length') == 0
    assert complaints(browser) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_file_fits_and_can_be_read(
    browser: webdriver.Chrome, report: Path, scheme: str, width: int
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for button in buttons(browser, report).values():
        browser.execute_script("arguments[0].click()", button)
        sizes = browser.execute_script(
            "const list = document.querySelector('.file-scroll');"
            "const box = document.getElementById('file').getBoundingClientRect();"
            "return [list.scrollWidth - list.clientWidth, box.left, box.right, box.bottom]"
        )
        assert sizes[0] <= 0
        assert sizes[1] >= 0
        assert sizes[2] <= width
        assert sizes[3] <= 844
        colours = browser.execute_script(
            "const style = getComputedStyle(document.getElementById('file'));"
            "return [style.color, style.backgroundColor].map(colour =>"
            " colour.match(/[0-9]+/g).reduce((sum, part) => sum + Number(part), 0))"
        )
        assert (colours[0] > colours[1]) == (scheme == "dark")
        assert abs(colours[0] - colours[1]) > 400
        browser.execute_script("document.getElementById('file').close()")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
