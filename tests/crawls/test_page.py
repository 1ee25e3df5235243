"""The HTML report in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from scrapy_norobots.features.report.ineffective import MISPLACED
from scrapy_norobots.features.report.page import to_html
from scrapy_norobots.standard import KINDS, Severity
from tests.helpers.running.crawling import Crawl, crawl, with_report
from tests.helpers.sites import Answer, Site

pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img/src=x/onerror=window.pwned=1>",
    "\u2028\u2029</title></style><svg/onload=window.pwned=1>",
    "\u202egnp.exe\u2066\x1b[31m\x07\x00",
    "'\"&lt;&amp;\\u003c${pwned}$spider",
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Crawl, Path]:
    """The report of a crawl of a site with harmful text in its robots.txt."""
    file = tmp_path_factory.mktemp("hostile") / "report.html"
    lines = [
        "User-agent: *",
        *(f"Disallow: /{text}" for text in HOSTILE),
        "",
        "<script>window.pwned=1</script>",
    ]
    bad_name = Answer(status=302, headers={"Location": "/<script>window.pwned=1</script>"})
    with Site("\n".join(lines)) as site, Site(bad_name) as other:
        paths = (quote(text, safe="/&;$'=()!*+,:@") for text in HOSTILE)
        seen = crawl(
            *(f"{site.url}/{path}" for path in paths),
            f"{other.url}/",
            settings=with_report(file, file.with_suffix(".json")),
            arguments={"name": "</title><script>window.pwned=1</script>"},
        )
    return seen, file


def complaints(browser: webdriver.Chrome) -> list[str]:
    """The messages of the browser since the last call."""
    return [entry["message"] for entry in browser.get_log("browser")]  # type: ignore[no-untyped-call]


def test_a_hostile_site_shows_as_text(hostile: tuple[Crawl, Path], browser: webdriver.Chrome) -> None:
    _, file = hostile
    browser.get(file.as_uri())
    assert browser.title == "robots.txt in the crawl of </title><script>window.pwned=1</script>"
    assert browser.execute_script("return window.pwned") is None
    assert browser.execute_script("return [document.scripts.length, document.images.length]") == [3, 0]
    text = browser.find_element(By.TAG_NAME, "body").text
    assert text.replace("\n", "").isprintable()
    for shown in (
        "Disallow: /</script><script>window.pwned=1</script>",
        "Disallow: /<img/src=x/onerror=window.pwned=1>",
        r"Disallow: /\u2028\u2029</title></style><svg/onload=window.pwned=1>",
        r"Disallow: /\u202egnp.exe\u2066\x1b[31m\x07\x00",
        "Disallow: /'\"&lt;&amp;\\u003c${pwned}$spider",
    ):
        assert shown in text
    assert browser.execute_script('return performance.getEntriesByType("resource").length') == 0
    assert complaints(browser) == []  # no error, and nothing blocked by the policy


def test_the_content_security_policy_blocks_scripts(
    hostile: tuple[Crawl, Path], browser: webdriver.Chrome
) -> None:
    _, file = hostile
    text = file.read_text("utf-8")
    broken = file.with_name("broken.html")
    broken.write_text(text.replace("<main>", "<main><script>window.pwned=1</script>"), "utf-8")
    browser.get(broken.as_uri())
    assert browser.execute_script("return window.pwned") is None
    (complaint,) = complaints(browser)
    assert "Content Security Policy" in complaint


def test_a_hostile_site_is_text_in_json_and_log_too(hostile: tuple[Crawl, Path]) -> None:
    seen, file = hostile
    data = file.with_suffix(".json").read_bytes()
    assert data.isascii()
    causes = {cause["text"] for cause in json.loads(data)["dropped_most"]}
    assert r"/\u202egnp.exe\u2066\x1b[31m\x07\x00" in causes
    summary = seen.log.partition("INFO: robots.txt in this crawl (")[2].partition(
        "INFO: The robots.txt report"
    )[0]
    assert summary.count("Disallow: ") == len(HOSTILE)
    assert summary.replace("\n", "").isprintable()


def many(count: int) -> dict[str, Any]:
    """Facts of an invented crawl of many origins; the last one has the most drops."""
    row = {"source": "network", "ignored_lines": 0, "findings": "", "detail": ""}
    return {
        "crawl": {
            "generator": "", "spider": "town", "reason": "finished", "dry_run": False,
            "started": "2030-01-02T03:04:05+00:00", "finished": "2030-01-02T03:04:05+00:00",
        },
        "requests": dict.fromkeys(
            ("passed", "dropped", "overridden", "waited", "came_back", "given_up", "left"), 0
        ),
        "origins": count + 5,
        "outcomes": [],
        "sources": {},
        "slowest": None,
        "causes": 0,
        "dropped_most": [],
        "dropped_most_short_by": 0,
        "rows": [
            {
                "origin": f"http://town{number:06}.example", "outcome": ("rules", "open (4xx)")[number % 2],
                "seconds": number % 1000 / 100, "requests": number, "dropped": number,
                "crawl_delay": 0.0, **row,
            }
            for number in range(count)
        ],
        "rows_left_out": 5,
        "files": [],
    }  # fmt: skip


@pytest.fixture(scope="module")
def long_list(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("long") / "report.html"
    file.write_text(to_html(many(100_000)), "utf-8")

    return file


def column(browser: webdriver.Chrome, number: int) -> list[str]:
    """The texts in a column of the table, from top to bottom."""
    script = "return [...document.querySelectorAll(arguments[0])].map(cell => cell.firstChild.textContent)"
    return list(browser.execute_script(script, f"#rows-table tbody td:nth-child({number})"))


def status(browser: webdriver.Chrome) -> str:
    return browser.find_element(By.ID, "status").text


def test_100000_origins_are_shown_a_hundred_at_a_time(browser: webdriver.Chrome, long_list: Path) -> None:
    browser.get(long_list.as_uri())
    assert status(browser) == "1–100 of 100,000"
    assert column(browser, 1)[:2] == ["http://town099999.example", "http://town099998.example"]
    assert len(column(browser, 1)) == 100
    assert "5 more are counted above, but not listed" in browser.find_element(By.TAG_NAME, "body").text
    browser.find_element(By.ID, "next").click()
    assert status(browser) == "101–200 of 100,000"
    assert column(browser, 6)[0] == "99,899"
    browser.find_element(By.ID, "previous").click()
    assert status(browser) == "1–100 of 100,000"
    assert not browser.find_element(By.ID, "previous").is_enabled()


def test_the_table_has_a_column_for_crawl_delay_only_if_there_is_one(
    browser: webdriver.Chrome, tmp_path: Path
) -> None:
    facts = many(3)
    headers: list[list[str]] = []
    for delay in (0.0, 2.5):
        facts["rows"][1]["crawl_delay"] = delay
        file = tmp_path / "report.html"
        file.write_text(to_html(facts), "utf-8")
        browser.get(file.as_uri())
        headers.append([head.text for head in browser.find_elements(By.CSS_SELECTOR, "#rows-table th")])
        assert column(browser, 7) == (["", "2.5 s", ""] if delay else [""] * 3)
        assert column(browser, 8) == ([""] * 3 if delay else [])
        assert complaints(browser) == []
    assert headers[0] == [name for name in headers[1] if name != "Crawl-delay"]
    assert headers[1][6] == "Crawl-delay"


def test_the_list_is_sorted_by_click_and_by_key(browser: webdriver.Chrome, long_list: Path) -> None:
    browser.get(long_list.as_uri())
    by_origin, *_, by_seconds = browser.find_elements(By.CSS_SELECTOR, "thead button")[:4]
    by_seconds.click()
    assert set(column(browser, 4)) == {"9.99 s"}
    by_seconds.send_keys(Keys.ENTER)
    assert set(column(browser, 4)) == {"0.00 s"}
    by_origin.send_keys(Keys.SPACE)
    assert column(browser, 1)[0] == "http://town000000.example"
    sorted_by = browser.find_elements(By.CSS_SELECTOR, "th[aria-sort]")
    assert [(header.text.split()[0], header.get_attribute("aria-sort")) for header in sorted_by] == [
        ("Origin", "ascending")
    ]


def test_the_list_is_filtered_by_text_and_by_outcome(browser: webdriver.Chrome, long_list: Path) -> None:
    browser.get(long_list.as_uri())
    field = browser.find_element(By.ID, "filter")
    field.send_keys("TOWN0123")
    assert status(browser) == "1–100 of 100"
    choice = browser.find_element(By.ID, "outcome")
    choice.send_keys("open")
    assert status(browser) == "1–50 of 50"
    assert set(column(browser, 2)) == {"open (4xx)"}
    field.send_keys("no such")
    assert status(browser) == "none"


def test_the_pages_of_the_list_can_be_turned_below_it_too(
    browser: webdriver.Chrome, long_list: Path, tmp_path: Path
) -> None:
    browser.get(long_list.as_uri())
    said, previous, following = browser.find_elements(By.CSS_SELECTOR, "#below .pager > *")
    following.click()
    assert said.text == status(browser) == "101–200 of 100,000"
    previous.click()
    assert said.text == "1–100 of 100,000"
    assert not previous.is_enabled()
    file = tmp_path / "report.html"
    file.write_text(to_html(many(100)), "utf-8")
    browser.get(file.as_uri())
    assert not browser.find_element(By.CSS_SELECTOR, "#below .pager").is_displayed()


def test_findings_are_in_words(browser: webdriver.Chrome, tmp_path: Path) -> None:
    kinds = [kind for kind, (severity, *_) in KINDS.items() if severity is Severity.ERROR]
    facts = many(1)
    facts["rows"][0]["findings"] = ", ".join(
        f"{kind} (line {line})" for line, kind in enumerate((*kinds, MISPLACED)) if kind != "robots-txt"
    )
    file = tmp_path / "report.html"
    file.write_text(to_html(facts), "utf-8")
    browser.get(file.as_uri())
    text = browser.find_element(By.CSS_SELECTOR, "#rows-table tbody td:last-child").text
    assert text.startswith("misspelt field (line 0), NUL characters (line 1), neither a field nor a ")


def test_a_dry_run_never_says_that_requests_were_dropped(tmp_path: Path) -> None:
    with Site("User-agent: *\nDisallow: /a\n") as site:
        settings = with_report(tmp_path / "report.html", NOROBOTS_DRY_RUN=True)
        crawl(f"{site.url}/a", settings=settings)
    page = (tmp_path / "report.html").read_text().partition("<script")[0]
    said = re.sub(r"<[^>]*>", "", page.partition("<body>")[2])
    assert re.findall(r".*drop.*", said, re.IGNORECASE) == [
        "A dry run: nothing was dropped.",
        "requests would be dropped1",
        "Most frequent causes of would-be drops",
        "Would be dropped",
        "Would dropLineText",
    ]


def test_causes_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    facts = many(0)
    facts["requests"]["dropped"] = 1_150
    facts["causes"] = 150
    cause = {"origin": "http://town.example", "line": 1, "text": "/", "robot": None}
    facts["dropped_most"] = [{**cause, "count": 50 if number < 12 else 6} for number in range(100)]
    assert "and 138 other causes: 550 requests" in to_html(facts)
    facts["causes"] = 12
    assert "other cause" not in to_html(facts)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_and_can_be_read(
    browser: webdriver.Chrome, hostile: tuple[Crawl, Path], scheme: str, width: int
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(hostile[1].as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    wide = "return [...document.querySelectorAll('main *')].filter(e => e.scrollWidth > e.clientWidth + 1"
    assert browser.execute_script(f"{wide} && getComputedStyle(e).overflowX == 'auto').map(e => e.id)") == []
    assert browser.find_element(By.CSS_SELECTOR, "th[data-column=dropped]").is_displayed()
    colours = browser.execute_script(
        "const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]"
    )
    ink, paper = (sum(map(int, re.findall(r"\d+", colour))) for colour in colours)
    assert (ink > paper) == (scheme == "dark")
    assert abs(ink - paper) > 400


def test_the_log_has_ten_causes_and_bars_match_their_counts(tmp_path: Path) -> None:
    paths = [f"/{letter}/" for letter in "abcdefghijkl"]
    robots = "User-agent: *\n" + "".join(f"Disallow: {path}\n" for path in paths)
    with Site(robots) as site:
        urls = [f"{site.url}{path}{n}" for count, path in enumerate(paths, 1) for n in range(count)]
        seen = crawl(*urls, settings=with_report(tmp_path / "report.html"))
    summary = [
        path for path in paths if f"'Disallow: {path}'" in seen.log.partition("robots.txt in this crawl")[2]
    ]
    assert summary == paths[2:]
    page = (tmp_path / "report.html").read_text()
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)%"', page)]
    assert {round(100 * count / 12) for count in range(3, 13)} <= {round(width) for width in widths}
