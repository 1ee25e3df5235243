"""The HTML report in a real browser."""

from __future__ import annotations

import csv
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from scrapy import Request
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from scrapy_norobots.events import Load
from scrapy_norobots.features.report.counters import Counters, facts_of
from scrapy_norobots.features.report.listing import FILES_MAX, Examined, list_files
from scrapy_norobots.features.report.page import to_html
from tests.helpers.running.crawling import Crawl, crawl, with_report
from tests.helpers.sites import Answer, Site
from tests.unit.test_counters import access

pytestmark = pytest.mark.xdist_group("browser")

REFUSED = "1 site answered with a refusal such as 403, so nothing more was fetched"
HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img/src=x/onerror=window.pwned=1>",
    "\u2028\u2029</title></style><svg/onload=window.pwned=1>",
    "\u202egnp.exe\u2066\x1b[31m\x07\x00",
    "'\"&lt;&amp;\\u003c${pwned}$spider",
)
ROBOTS = """\
# of a town
User-agent: *
Disallow: /staff/
Allow: /staff/open
Disallow: /*.gif$

Disalow: /attic/
"""
SHOWN = (
    "Disallow: /</script><script>window.pwned=1</script>",
    "Disallow: /<img/src=x/onerror=window.pwned=1>",
    r"Disallow: /\u2028\u2029</title></style><svg/onload=window.pwned=1>",
    r"Disallow: /\u202egnp.exe\u2066\x1b[31m\x07\x00",
    "Disallow: /'\"&lt;&amp;\\u003c${pwned}$spider",
)


SAFE = "/&;$'=()!*+,:@"  # in paths


class Report:
    """The report of a crawl, in a browser; `sites` are a town, a hostile site, and one of each failure."""

    def __init__(self, file: Path, seen: Crawl, sites: dict[str, str]) -> None:
        self.file, self.seen, self.sites = file, seen, sites

    def open(self, browser: webdriver.Chrome, fragment: str = "", width: int = 1300) -> None:
        height = 800 if width < 500 else 900
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        if browser.current_url != "about:blank":
            browser.get("about:blank")  # else a new fragment would not load the page again
        browser.get(self.file.as_uri() + fragment)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    file = tmp_path_factory.mktemp("report") / "report.html"
    lines = ["User-agent: *", *(f"Disallow: /{text}" for text in HOSTILE), "", *HOSTILE, "x" * 5_000]
    moved = Answer(status=302, headers={"Location": "/<script>window.pwned=1</script>"})
    with (
        Site(ROBOTS) as town,
        Site("\n".join(lines)) as hostile,
        Site(moved) as other,
        Site(Answer(status=403)) as shut,
        Site("User-agent: *\nDisallow: /staff/\nDisallw: /cellar/\n") as village,
    ):
        sites = {"town": town, "hostile": hostile, "moved": other, "shut": shut, "village": village}
        seen = crawl(
            *(f"{town.url}/{path}" for path in ("staff/1", "staff/2", "a.gif", "a")),
            *(f"{hostile.url}/{quote(text, safe=SAFE)}" for text in HOSTILE),
            *(f"{site.url}/staff/" for site in (other, shut, village)),
            settings=with_report(file, file.with_suffix(".json"), NOROBOTS_ALSO_OBEY=["rfc9309"]),
            arguments={"name": "</title><script>window.pwned=1</script>"},
        )
    return Report(file, seen, {name: site.url for name, site in sites.items()})


def complaints(browser: webdriver.Chrome) -> list[str]:
    """The messages of the browser since the last call."""
    return [entry["message"] for entry in browser.get_log("browser")]  # type: ignore[no-untyped-call]


def column(browser: webdriver.Chrome, number: int) -> list[str]:
    """The texts in a column of the table, from top to bottom."""
    script = "return [...document.querySelectorAll(arguments[0])].map(c => c.firstChild?.textContent ?? '')"
    return list(browser.execute_script(script, f"#rows tbody td:nth-child({number})"))


def status(browser: webdriver.Chrome) -> str:
    return browser.find_element(By.ID, "status").text


def fragment(browser: webdriver.Chrome) -> str:
    return browser.current_url.partition("#")[2]


def click(browser: webdriver.Chrome, selector: str) -> None:
    browser.find_element(By.CSS_SELECTOR, selector).click()


# Hostile sites


def test_a_hostile_site_shows_as_text(report: Report, browser: webdriver.Chrome) -> None:
    for part in ("", f"#file={report.sites['hostile']}"):
        report.open(browser, part)
        assert browser.title == "robots.txt in the crawl of </title><script>window.pwned=1</script>"
        assert browser.execute_script("return window.pwned") is None
        assert browser.execute_script("return [document.scripts.length, document.images.length]") == [2, 0]
        browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
        text = browser.find_element(By.TAG_NAME, "body").text
        assert text.replace("\n", "").isprintable()
        for shown in SHOWN:
            assert shown in text
        assert browser.execute_script('return performance.getEntriesByType("resource").length') == 0
        assert complaints(browser) == []  # no error, and nothing blocked by the policy


def test_the_content_security_policy_blocks_scripts(report: Report, browser: webdriver.Chrome) -> None:
    broken = report.file.with_name("broken.html")
    text = report.file.read_text("utf-8")
    broken.write_text(text.replace("<main>", "<main><script>window.pwned=1</script>"), "utf-8")
    browser.get(broken.as_uri())
    assert browser.execute_script("return window.pwned") is None
    (complaint,) = complaints(browser)
    assert "Content Security Policy" in complaint


def test_a_hostile_site_is_text_in_json_and_log_too(report: Report) -> None:
    data = report.file.with_suffix(".json").read_bytes()
    assert data.isascii()
    assert {rule["text"] for rule in json.loads(data)["rules"]} >= set(SHOWN)
    summary = report.seen.log.partition("INFO: robots.txt in this crawl (")[2].partition("INFO: The robots")[
        0
    ]
    assert "to do: 1 site answered with a refusal" in summary
    assert summary.replace("\n", "").isprintable()


# What to do, why requests were dropped, how the crawl was set


def test_each_entry_leads_to_its_sites(report: Report, browser: webdriver.Chrome) -> None:
    report.open(browser)
    entries = browser.find_elements(By.CSS_SELECTOR, "[aria-labelledby=to-do] li")
    said = [entry.text for entry in entries]
    assert [text.partition(":")[0] for text in said] == [
        f"{REFUSED} (1 request dropped for such reasons)",
        "1 site meant to forbid more to this robot, but made a mistake",
    ]
    for entry, name in zip(entries, ("shut", "village"), strict=True):
        sites, docs = entry.find_elements(By.TAG_NAME, "a")
        assert (docs.get_attribute("href") or "").startswith("https://scrapy-norobots.readthedocs.io/")
        sites.click()
        expected = [report.sites[name]]
        WebDriverWait(browser, 60).until(lambda _: column(browser, 1) == expected)  # noqa: B023
    browser.back()
    WebDriverWait(browser, 60).until(lambda _: column(browser, 1) == [report.sites["shut"]])
    assert browser.find_element(By.ID, "show").get_property("value") == "refused"
    click(browser, ".outcomes a")
    WebDriverWait(browser, 60).until(lambda _: status(browser) == "1–4 of 4")
    assert set(column(browser, 2)) == {"rules"}


def test_causes_are_counted_over_sites_and_five_are_shown(report: Report, browser: webdriver.Chrome) -> None:
    report.open(browser)
    rows = browser.find_elements(By.CSS_SELECTOR, ".pair table tr")
    assert [row.is_displayed() for row in rows] == 5 * [True] + (len(rows) - 5) * [False]
    assert rows[0].text == "3 Disallow: /staff/ 2 sites"
    click(browser, ".pair details details summary")
    assert all(row.is_displayed() for row in rows)
    rows[0].find_element(By.TAG_NAME, "a").click()
    WebDriverWait(browser, 60).until(lambda _: len(column(browser, 1)) == 2)
    assert set(column(browser, 1)) == {report.sites["town"], report.sites["village"]}


def test_the_page_says_how_the_crawl_was_set(report: Report, browser: webdriver.Chrome) -> None:
    report.open(browser)
    click(browser, "#setup summary")
    said = browser.find_element(By.ID, "setup").text
    for part in (
        "rules are chosen for Scrapy",
        "StrictRobotParser and ",
        "koster1996",
        "NOROBOTS_RETRY_CLOSED 0",
        "Scrapy 2.",
    ):
        assert part in said
    assert re.search(r"UTC, took 0:0\d:\d\d", browser.find_element(By.TAG_NAME, "header").text)


def test_a_dry_run_never_says_that_requests_were_dropped(tmp_path: Path) -> None:
    with Site("User-agent: *\nDisallow: /a\n") as site, Site(Answer(status=403)) as shut:
        settings = with_report(tmp_path / "report.html", NOROBOTS_DRY_RUN=True)
        crawl(f"{site.url}/a", f"{shut.url}/", settings=settings)
    page = (tmp_path / "report.html").read_text().partition("<script")[0]
    said = re.sub(r"<[^>]*>", "\n", page.partition("<body>")[2])
    assert [line.strip() for line in re.findall(r".*drop.*", said, re.IGNORECASE)] == [
        "A dry run: nothing was dropped.",
        "requests would be dropped",
        f"{REFUSED.removeprefix('1 site ')} (1 request would have been dropped for such reasons):",
        "Why requests would be dropped",
        "Would be dropped",
        "Would be dropped",
    ]


# The table


def many(count: int, files: int = 0) -> dict[str, Any]:
    """Facts of an invented crawl of many origins, some with files; the last one has the most drops."""
    counters = Counters(count)
    body = "User-agent: *\n" + "Disallow: /some/path/of/a/town\n" * 150
    listings = list_files((access(number, body=body) for number in range(files)), "FooBot", {})
    for number in range(count):
        at = access(number, (200, 404, 503)[number % 3])
        event = Load(at, None, "network", number % 1000 / 100, Request(at.snapshot.url), "FooBot")
        counters.load(event, Examined(3, "nul (line 7)"))
        counters.rows[at.snapshot.origin].dropped = number
    crawl = dict.fromkeys(("generator", "spider", "reason", "robot", "token", "status_policy"), "x")
    times = dict.fromkeys(("started", "finished"), "2030-01-02T03:04:05+00:00")
    setup = {"dry_run": False, "readings": ["x"], "settings": {}, "versions": {}}
    return {**facts_of(counters, {**crawl, **times, **setup}, listings), "rows_left_out": 5}


@pytest.fixture(scope="module")
def long_list(tmp_path_factory: pytest.TempPathFactory) -> Report:
    file = tmp_path_factory.mktemp("long") / "report.html"
    file.write_text(to_html(many(10_000, FILES_MAX)), "utf-8")
    return Report(file, Crawl([], [], {}, {}, ""), {})


def test_10000_sites_are_shown_a_hundred_at_a_time(browser: webdriver.Chrome, long_list: Report) -> None:
    text = long_list.file.read_text()
    assert text.count('"readers"') > 100  # robots.txt files, until they fill their room
    assert 2_000_000 < len(text.encode()) < 3_000_000
    long_list.open(browser)
    assert status(browser) == "1–100 of 10,000"
    assert column(browser, 1)[:2] == ["http://town9999.example", "http://town9998.example"]
    assert len(column(browser, 1)) == 100
    assert browser.find_element(By.CSS_SELECTOR, "#rows td:last-child").text == "3\nnul (line 7)"
    assert "5 more sites are only counted" in browser.find_element(By.TAG_NAME, "main").text
    click(browser, "#next")
    assert status(browser) == "101–200 of 10,000"
    assert column(browser, 5)[0] == "9,899"
    click(browser, "#previous")
    assert status(browser) == "1–100 of 10,000"
    assert not browser.find_element(By.ID, "previous").is_enabled()


def test_the_list_is_sorted_by_click_and_by_key(browser: webdriver.Chrome, long_list: Report) -> None:
    long_list.open(browser)
    by_origin, _, by_seconds = browser.find_elements(By.CSS_SELECTOR, "#rows th button")[:3]
    by_seconds.click()
    assert column(browser, 3)[0] == "9.99 s"
    by_seconds.send_keys(Keys.ENTER)
    assert column(browser, 3)[0] == "0.00 s"
    by_origin.send_keys(Keys.SPACE)
    assert column(browser, 1)[0] == "http://town0.example"
    sorted_by = browser.find_elements(By.CSS_SELECTOR, "th[aria-sort]")
    assert [(header.text.split()[0], header.get_attribute("aria-sort")) for header in sorted_by] == [
        ("Site", "ascending")
    ]


def test_the_fragment_keeps_what_is_shown(browser: webdriver.Chrome, long_list: Report) -> None:
    long_list.open(browser)
    browser.find_element(By.ID, "filter").send_keys("TOWN12")
    assert status(browser) == "1–100 of 111"
    browser.find_element(By.ID, "show").send_keys("open")
    assert status(browser) == "1–36 of 36"
    assert set(column(browser, 2)) == {"open (4xx)"}
    click(browser, "#rows th button")
    shown = fragment(browser)
    assert shown == "q=TOWN12&show=open+%284xx%29&sort=origin"
    first = column(browser, 1)
    long_list.open(browser, f"#{shown}")
    assert column(browser, 1) == first
    assert browser.find_element(By.ID, "filter").get_property("value") == "TOWN12"
    browser.find_element(By.ID, "filter").send_keys("no such")
    assert status(browser) == "none"
    long_list.open(browser, "#show=nonsense&page=999&sort=-nonsense&file=no")
    assert status(browser) == "9,901–10,000 of 10,000"


def test_the_csv_has_what_the_table_shows(
    browser: webdriver.Chrome, long_list: Report, tmp_path: Path
) -> None:
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    long_list.open(browser, "#q=town12&sort=origin")
    click(browser, "#csv")
    file = tmp_path / "robots.csv"
    WebDriverWait(browser, 60).until(lambda _: file.exists())
    with file.open(newline="") as lines:
        head, *rows = csv.reader(lines)
    assert " ".join(head) == "origin outcome seconds requests dropped ignored_lines detail findings"
    assert len(rows) == 111
    assert [row[0] for row in rows[:100]] == column(browser, 1)
    assert rows[0][1:6] == ["rules", "0.12", "0", "12", "3"]
    assert rows[0][7] == "nul (line 7)"


# The file behind a site


def line(browser: webdriver.Chrome, number: int) -> tuple[str, str, set[str]]:
    """Return what stands before and in a line, and its classes."""
    row = browser.find_element(By.ID, f"line-{number}")
    drops, _, text = row.find_elements(By.XPATH, "*")
    return drops.text, text.text, set((row.get_attribute("class") or "").split())


def test_a_row_opens_the_file_as_its_reader_saw_it(report: Report, browser: webdriver.Chrome) -> None:
    facts = json.loads(report.file.with_suffix(".json").read_text())
    (town,) = (file for file in facts["files"] if file["origin"] == report.sites["town"])
    assert (town["lines"], town["drops"]) == (ROBOTS.splitlines(), {"3": 2, "5": 1})
    report.open(browser)
    browser.find_element(By.LINK_TEXT, report.sites["town"]).click()
    WebDriverWait(browser, 60).until(lambda _: browser.find_element(By.ID, "file").is_displayed())
    assert browser.find_element(By.ID, "file-title").text == f"{report.sites['town']}/robots.txt"
    about = browser.find_element(By.ID, "file-about").text
    assert about.startswith("As read for Scrapy by StrictRobotParser and Rfc9309RobotParser.")
    assert line(browser, 1) == ("", "# of a town", set())
    drops, text, classes = line(browser, 2)
    assert (drops, classes) == ("", {"applies"})
    assert "the record for Scrapy" in text
    assert line(browser, 3) == ("2", "Disallow: /staff/", {"applies", "dropped"})
    assert "Another reading: Rfc9309RobotParser allows /staff/open." in line(browser, 4)[1]
    drops, text, classes = line(browser, 5)
    assert drops == "1"
    assert "Another reading: Rfc9309RobotParser forbids /x.gif." in text
    drops, text, classes = line(browser, 7)
    assert (drops, classes) == ("", {"idle"})
    assert "No effect: " in text
    assert "Write 'Disallow: /attic/'." in text
    docs = browser.find_element(By.CSS_SELECTOR, "#line-7 a").get_attribute("href") or ""
    assert docs.endswith("/standard.html#finding-misspelt-field")
    assert complaints(browser) == []


def test_a_site_without_a_file_opens_nothing(report: Report, browser: webdriver.Chrome) -> None:
    report.open(browser)
    links = {link.text for link in browser.find_elements(By.CSS_SELECTOR, "#rows a")}
    assert links == {url for name, url in report.sites.items() if name != "shut"}


def test_a_file_is_opened_and_closed_by_keys_and_has_a_link(
    report: Report, browser: webdriver.Chrome
) -> None:
    report.open(browser, "#sort=origin")
    link = browser.find_element(By.LINK_TEXT, report.sites["town"])
    link.send_keys(Keys.ENTER)
    dialog = browser.find_element(By.ID, "file")
    WebDriverWait(browser, 60).until(lambda _: dialog.is_displayed())
    active = browser.switch_to.active_element
    assert active.get_attribute("id") == "close"
    active.send_keys(Keys.TAB)
    assert "file-scroll" in (browser.switch_to.active_element.get_attribute("class") or "")
    shown = fragment(browser)
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    WebDriverWait(browser, 60).until(lambda _: fragment(browser) == "sort=origin")
    assert not dialog.is_displayed()
    assert browser.switch_to.active_element == link
    report.open(browser, f"#{shown}")
    assert browser.find_element(By.ID, "file-title").text == f"{report.sites['town']}/robots.txt"
    click(browser, "#close")
    WebDriverWait(browser, 60).until(lambda _: fragment(browser) == "sort=origin")


# The looks


# Each scheme has one list and one file, because axe takes seconds for each.
@pytest.mark.parametrize(("scheme", "width", "kind"), [("light", 1300, "report"), ("dark", 400, "long_list")])
def test_axe_finds_no_serious_problem(
    browser: webdriver.Chrome,
    report: Report,
    request: pytest.FixtureRequest,
    scheme: str,
    width: int,
    kind: str,
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    check = (  # what passes is not described, which saves a third of the time
        "axe.run({resultTypes: ['violations']})"
        ".then(arguments[0], error => arguments[0]({violations: [String(error)]}))"
    )
    for shown, part in ((request.getfixturevalue(kind), ""), (report, f"#file={report.sites['village']}")):
        shown.open(browser, part, width)
        browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
        browser.execute_script(axe)
        found = browser.execute_async_script(check)
        assert found["passes"]
        assert [one for one in found["violations"] if one["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 400), ("dark", 1300)])
def test_the_page_and_its_files_fit_and_can_be_read(
    browser: webdriver.Chrome, report: Report, scheme: str, width: int
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    for part in ("", f"#file={report.sites['hostile']}", f"#file={report.sites['town']}"):
        report.open(browser, part, width)
        name = "file" if part else "list"
        left, right, bottom, wide = browser.execute_script(
            "const box = document.getElementById(arguments[0]).getBoundingClientRect();"
            "const wide = [...document.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth + 1"
            " && getComputedStyle(e).overflowX == 'auto').map(e => e.className);"
            "return [box.left, box.right, box.bottom, wide]",
            name,
        )
        assert left >= 0
        assert right <= width
        assert bottom <= 900 or not part
        (row,) = browser.find_elements(By.CSS_SELECTOR, "#rows tbody tr:first-child")
        assert row.rect["y"] < (800 if width < 500 else 900)  # the table begins on the first screen
        assert wide == []
        ink, paper = browser.execute_script(
            "const style = getComputedStyle(document.getElementById(arguments[0]).closest('dialog, body'));"
            "return [style.color, style.backgroundColor].map(colour =>"
            " colour.match(/[0-9]+/g).reduce((sum, part) => sum + Number(part), 0))",
            name,
        )
        assert (ink > paper) == (scheme == "dark")
        assert abs(ink - paper) > 400
